"""One line that tells how a training goes: rewritten in place in a terminal and in a notebook."""

import os
import sys
import time

BETWEEN_UPDATES_S = 0.2
QUIET_WHEN_SET = ("PYTEST_VERSION", "LABS_RUN", "LABS_NBVAL", "LABS_QUIET")


def is_quiet() -> bool:
    """Tell whether output is compared or graded (pytest, nbval), so that no line may vary."""
    return any(name in os.environ for name in QUIET_WHEN_SET)


def seconds_in_words(seconds: float) -> str:
    """Return a duration as a person says it: 8 s, 1 min 20 s."""
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"


class ProgressLine:
    """A line of text that replaces itself; `show=None` shows it unless `is_quiet()`."""

    def __init__(self, show: bool | None = None):
        self.show = not is_quiet() if show is None else show
        self._notebook = self.show and _in_notebook()
        self._handle = None
        self._last = 0.0
        self._width = 0

    def update(self, text: str) -> None:
        """Show text unless the last update was a moment ago; a pipe gets only the last line."""
        now = time.monotonic()
        if not self.show or now - self._last < BETWEEN_UPDATES_S:
            return
        self._last = now
        if self._notebook:
            self._display(text)
        elif sys.stderr.isatty():
            self._rewrite(text, end="")

    def finish(self, text: str) -> None:
        """Leave text as the line's last state."""
        if not self.show:
            return
        if self._notebook:
            self._display(text)
        else:
            self._rewrite(text, end="\n")

    def _display(self, text: str) -> None:
        from IPython.display import display

        bundle = {"text/plain": text}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)

    def _rewrite(self, text: str, end: str) -> None:
        start = "\r" if sys.stderr.isatty() else ""
        sys.stderr.write(start + text.ljust(self._width) + end)
        sys.stderr.flush()
        self._width = len(text)


def _in_notebook() -> bool:
    if "ipykernel" not in sys.modules:  # never imports IPython where there is none
        return False
    from IPython import get_ipython

    return get_ipython() is not None and hasattr(get_ipython(), "kernel")
