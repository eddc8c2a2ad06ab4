"""What an explorer looks like where no browser runs it: one picture and one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from ..checking.unwritten import calls_unwritten, is_stub
from ..plots.style import bare_figure, look, png
from .rules import Misfit

Draw = Callable[..., str]
Rule = Callable[[Mapping[str, Any]], Misfit | None]


class Still:
    """The picture and the sentence of one setting.

    `draw(figure, **values) -> str` fills the figure and gives the sentence; it isn't called where a
    rule finds a misfit. An error in it is kept as the sentence, never raised.
    """

    def __init__(
        self,
        draw: Draw,
        values: Mapping[str, Any],
        rules: Iterable[Rule] = (),
        size: tuple[float, float] = (7.0, 3.2),
    ) -> None:
        self.figure = bare_figure(*size)
        self.failed = False
        found = (rule(values) for rule in rules)
        self.misfit = next((misfit for misfit in found if misfit is not None), None)
        with look():
            self.message = self._drawn(draw, values)

    @property
    def picture(self) -> bytes:
        """The bytes of a PNG."""
        return png(self.figure)

    def _drawn(self, draw: Draw, values: Mapping[str, Any]) -> str:
        try:
            if self.misfit is None:
                return str(draw(self.figure, **values))
            self.misfit.draw(self.figure)
            return f"Not allowed: {self.misfit.told}."
        except Exception as error:  # a student's function may raise anything
            self.failed = True
            self.figure.clear()
            self.figure.text(0.02, 0.5, "no picture: see the sentence below", fontsize=11)
            return raised(error)


class OwnFunctionFailed(Exception):
    """A student's function raised, or gave something else; the text is the sentence on it."""


@contextlib.contextmanager
def students_own() -> Generator[None]:
    """Where a student's function runs: its error is told as its own, save for a stub's."""
    try:
        yield
    except Exception as error:
        if calls := calls_unwritten(error):
            raise OwnFunctionFailed(
                f"Your function calls {calls}, which is not written yet."
            ) from error
        if is_stub(error):
            raise
        raise OwnFunctionFailed(f"Your function raised {type(error).__name__}: {error}") from error


def raised(error: Exception) -> str:
    """The sentence on an error that a student's function or a setting raised."""
    if isinstance(error, OwnFunctionFailed):
        return str(error)
    return f"This setting raised {type(error).__name__}: {error}"
