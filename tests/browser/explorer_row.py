"""What the browser tests know of one explorer."""

from __future__ import annotations

from dataclasses import dataclass

THREADS = "import torch; torch.set_num_threads(1)  # as each lab does"


@dataclass(frozen=True)
class Row:
    """One explorer.

    `call` is the line that anyone may write; `moves` the control that a test moves by the arrow
    keys; `settings` are set from Python, and the browser must then say what Python says; `illegal`
    is typed in by the keyboard and must be explained with a way out. `own` is the code of a
    student's function that the call names: Python runs it, and the browser shows what it says.
    `module` is where the function lies, if its name is another; `start` is what the call needs.
    """

    name: str
    call: str
    moves: str
    settings: tuple[dict, ...]
    illegal: tuple[str, int] | None = ("n_head", 7)
    keys: tuple[str, str] = ("ArrowRight", "ArrowLeft")
    own: str = ""
    module: str = ""
    start: str = ""

    @property
    def cell(self) -> str:
        """The code cell that shows it, with the explorer under its name."""
        function = self.call.partition("(")[0]
        known = f"from labs_lib.widgets.{self.module or function} import {function}"
        shown = f"w_{self.name} = {self.call}\nw_{self.name}"
        return "\n".join([THREADS, known, self.start, self.own, shown])
