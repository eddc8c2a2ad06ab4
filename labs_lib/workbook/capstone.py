"""What lab 12 asks of this copy: which functions are written, and the report on all of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType

from .. import cuda
from ..checking import progress
from ..checking.limit import TooSlow, time_limit
from ..checking.observe import quiet
from ..checking.shipped import has_answers
from ..checking.unwritten import calls_unwritten
from ..exercises import exercises, labs
from ..paths import state
from .own_kernel import KERNEL, Chosen, where
from .own_report import OwnReport, Section, save

EARLIER = (
    "lab01.causal_mask",
    "lab02.split_heads",
    "lab02.merge_heads",
    "lab11.io_bytes",
    KERNEL,
)
STEM = "12_your_attention_speaks"
_NO_COMPILER = "There is no C++ compiler here, so no kernel ran."


def unwritten(*functions: FunctionType) -> list[str]:
    """The names of those functions that are still stubs."""
    missing = []
    for function in functions:
        try:
            with quiet(), time_limit(1.0):
                function(*[None] * function.__code__.co_argcount)
        except NotImplementedError as error:
            if not calls_unwritten(error):
                missing.append(function.__name__)
        except (Exception, TooSlow):
            continue  # it is written, and nothing can be made of None
    return missing


def in_words(times: float) -> str:
    """A ratio with two digits or so: 0.9 times, 3.4 times, 130 times."""
    return f"{float(f'{times:.2g}'):,g} times"


def whose(names: tuple[str, ...] = EARLIER) -> dict[str, str]:
    """Whose piece stands for each exercise: yours, or the course's in its place."""
    return {
        name: "passed by you"
        if progress.entry(name).get("passed")
        else "the course's own piece"
        if has_answers(name.partition(".")[0])
        else "not here yet"
        for name in names
    }


def report(
    *,
    kernel: Chosen | None = None,
    traffic: Mapping[str, int] | None = None,
    speed: Mapping[str, float] | None = None,
    written: Mapping[str, str] | None = None,
    words: str = "",
) -> OwnReport:
    """Put the report together, keep it beside the notebook, and return it.

    Args:
        traffic: what was counted -> bytes.
        speed: what was compared -> how many times as long it took.
        written: how the text was made -> what SmolLM2 wrote.
        words: what you want to say about it.
    """
    sections = [
        Section("In your own words", words or "(nothing yet)"),
        Section("Where it ran", f"Kernels run {where()}." if cuda.available() else _NO_COMPILER),
        Section("Checks", *_checks()),
        Section("Pieces", "", tuple(whose().items())),
    ]
    if kernel is not None:
        sections.append(Section("The kernel", kernel.sentence))
    if traffic:
        rows = tuple((name, f"{count:,} B") for name, count in traffic.items())
        sections.append(Section("Its traffic in one layer", "", rows))
    if speed:
        rows = tuple((name, f"{in_words(times)} as long") for name, times in speed.items())
        sections.append(Section("Its speed, side by side on this machine", "", rows))
    if written:
        sections.append(Section("What SmolLM2 wrote", "", tuple(written.items())))
    made = OwnReport("Your attention speaks: a report", tuple(sections))
    save(made, STEM)
    return made


def _checks() -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Which exercises have passed, lab by lab, as far as this copy keeps it."""
    if state() is None:
        return "This copy keeps no progress.", ()
    rows = []
    for lab in labs():
        asked = [item.name for item in exercises(lab.number) if item.points]
        passed = [name for name in asked if progress.entry(name).get("passed")]
        missing = ", ".join(name.partition(".")[2] for name in asked if name not in passed)
        rows.append((lab.title, f"{len(passed)} of {len(asked)}", missing and f"open: {missing}"))
    return "", tuple(rows)
