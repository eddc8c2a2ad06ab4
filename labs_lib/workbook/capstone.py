"""What lab 12 puts together: whose kernel runs, where, how fast, and the report on all of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from torch import Tensor

from .. import cuda
from ..checking import progress
from ..checking.given import NotGiven, given
from ..checking.shipped import has_answers
from ..cuda import ladder
from ..exercises import exercises, labs
from ..paths import state
from ..withheld import Withheld
from .own_report import OwnReport, Section, save

KERNEL = "lab11.flash_kernel"
EARLIER = (
    "lab01.causal_mask",
    "lab02.split_heads",
    "lab02.merge_heads",
    "lab11.io_bytes",
    KERNEL,
)
STEM = "12_your_attention_speaks"
YOURS, COURSES, LADDERS = "yours", "the course's solution", "the library's flash_forward.cu"


def unwritten(*functions: Callable[..., Any]) -> list[str]:
    """The names of those functions that are still stubs."""
    missing = []
    for function in functions:
        try:
            function(*[None] * function.__code__.co_argcount)
        except NotImplementedError:
            missing.append(function.__name__)
        except Exception:
            continue  # it is written, and nothing can be made of None
    return missing


@dataclass(frozen=True)
class Chosen:
    """A kernel to launch, whose it is, and a sentence; `kernel` is None where there is none."""

    kernel: Any
    whose: str
    sentence: str


class FromTheLadder:
    """The library's flash_forward, launched as lab 11's kernel: the grid is its own."""

    def __init__(self) -> None:
        self.rung = ladder.rung("flash_forward")
        self.kernel = self.rung.compile()

    def __getitem__(self, _geometry: Any) -> Callable[..., None]:
        def launch(q: Tensor, *more: Any) -> Any:
            geometry = self.rung.geometry(_sizes(q, more))
            return self.kernel[geometry](q, *more)

        return launch

    @property
    def trace(self) -> _Traced:
        """Traced launches, by the same brackets."""
        return _Traced(self)


class _Traced:
    def __init__(self, ladders: FromTheLadder) -> None:
        self.ladders = ladders

    def __getitem__(self, _geometry: Any) -> Callable[..., Any]:
        def launch(q: Tensor, *more: Any) -> Any:
            geometry = self.ladders.rung.geometry(_sizes(q, more))
            return self.ladders.kernel.trace[geometry](q, *more)

        return launch


def flash_kernel() -> Chosen:
    """Your own kernel of lab 11 if it has passed, else one in its place, else none.

    In `solutions/`, where no progress is kept, it is the one that lab 11's solution has.
    """
    if not cuda.available():
        return Chosen(None, "", "There is no C++ compiler here, and without one no kernel runs.")
    source = progress.entry(KERNEL).get("source")
    if isinstance(source, str) and source:
        try:
            return Chosen(_compiled(source), YOURS, "The kernel is yours, of lab 11.")
        except cuda.CudaError as error:
            return _in_its_place(f"Your kernel of lab 11 can't be used ({error}). ")
    if state() is None and has_answers("lab11"):
        return Chosen(given(KERNEL), COURSES, "The kernel is the one in lab 11's solution.")
    return _in_its_place(f"{KERNEL} has not passed yet. ")


def beside(attend: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same attention on this machine's GPU, if kernels run there; q and the answer stay here.

    attend(q, k, v, mask) gets its tensors on the GPU.
    """
    if not on_gpu():
        return attend

    def moved(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        there = [t if t is None else t.cuda() for t in (q, k, v, mask)]
        return attend(*there).to(q.device)

    return moved


def on_gpu() -> bool:
    """Whether kernels run on a GPU here."""
    found = cuda.available()
    return bool(found.gpu and found.nvcc)


def where() -> str:
    """Where kernels run here, in words that end a sentence."""
    return f"on {cuda.available().gpu}" if on_gpu() else "on the CPU, without a GPU"


def ratio(own: Callable[[], Any], other: Callable[[], Any], times: int = 5) -> float:
    """How many times as long `own` takes as `other`: medians of runs that alternate."""
    own(), other()
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for number, program in enumerate((own, other)):
            start = time.perf_counter()
            program()
            taken[number].append(time.perf_counter() - start)
    return median(taken[0]) / median(taken[1])


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


def piece(name: str) -> Any:
    """What an earlier exercise asked for, as `given`; None, and a sentence, where it isn't here."""
    try:
        return given(name)
    except NotGiven as error:
        print(error)
        return None


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


_NO_COMPILER = "There is no C++ compiler here, so no kernel ran."


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


def _in_its_place(why: str) -> Chosen:
    try:
        return Chosen(FromTheLadder(), LADDERS, f"{why}{LADDERS.capitalize()} takes its place.")
    except Withheld:
        return Chosen(None, "", f"{why}Write it in lab 11; this copy of the course has none.")


def _compiled(source: str) -> Any:
    made = cuda.compile(source)
    return made if isinstance(made, cuda.Kernel) else made["flash_kernel"]


def _sizes(q: Tensor, more: tuple[Any, ...]) -> dict[str, int]:
    names = ("n_head", "n_kv_head", "n_q", "n_k", "head_dim")
    sizes = dict(zip(names, more[4:9], strict=True))
    batch = q.numel() // max(sizes["n_head"] * sizes["n_q"] * sizes["head_dim"], 1)
    return {"batch": batch, **sizes, "causal": int(more[10])}
