"""The training loop: seeded, interruptible, with live loss and time left."""

import math
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import Field, asdict, dataclass
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from labs_lib.training.layers import Attend
from labs_lib.training.progress import ProgressLine, seconds_in_words
from labs_lib.training.runs import Run, thin

WARM_UP = 0.1  # share of the steps in which the learning rate rises
Trained = TypeVar("Trained", bound=nn.Module)


class Task(Protocol[Trained]):
    """What `train` needs: frozen settings that build, feed and measure a model.

    A task that is `Watched` is also measured on the way.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def threads(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def learning_rate(self) -> float: ...

    def build(self, attend: Attend | None = None) -> Trained: ...

    def loss(self, model: Trained, generator: torch.Generator) -> Tensor: ...

    def evaluate(self, model: Trained) -> dict[str, float]: ...


@runtime_checkable
class Watched(Protocol):
    """A task that is measured every so many steps, and before the first."""

    watch_every: ClassVar[int]

    def watch(self, model: Any) -> dict[str, float]: ...


@dataclass(frozen=True)
class Progress:
    """Where a training stands: steps done and planned, the loss of this step in nats, seconds."""

    step: int
    steps: int
    loss: float
    seconds: float

    @property
    def seconds_left(self) -> float:
        """Time left if the remaining steps take as long as those before."""
        return self.seconds / self.step * (self.steps - self.step)

    def __str__(self) -> str:
        left = seconds_in_words(self.seconds_left)
        return f"step {self.step:,} of {self.steps:,}, loss {self.loss:.3f}, {left} left"


def train(
    task: Task[Trained],
    *,
    seed: int = 0,
    steps: int | None = None,
    attend: Attend | None = None,
    name: str = "",
    show: bool | None = None,
    threads: int | None = None,
) -> Run:
    """Train the task's model from `seed` and return the Run, with the trained model in it.

    An interrupt (the stop button, Ctrl-C) ends the training and keeps what it has. The global
    random state and torch's number of threads are left as they were. `steps` replaces the task's
    own number, and the learning-rate schedule is stretched to it; `show` forces the live line on or
    off, `threads` replaces the task's limit. Raises ValueError for steps < 1.
    """
    steps = _checked_steps(task.steps if steps is None else steps)
    name, line = name or type(task).__name__, ProgressLine(show)
    model, final, losses, watched = build(task, seed, attend), {}, [], []
    started = time.monotonic()

    def look(step: int) -> None:
        if seen := watch(task, model, step):
            watched.append((step, seen))

    def go_through() -> None:
        look(0)
        for progress in training_steps(task, model, seed, steps):
            losses.append(progress.loss)
            look(progress.step)
            line.update(f"{name}: {progress}")

    with at_most_threads(task.threads if threads is None else threads):
        interrupted = _stopped(go_through)
        seconds = time.monotonic() - started
        # When this is stopped the curve is kept, and the measurements are missing.
        interrupted |= _stopped(lambda: final.update(measure(task, model)))
    line.finish(_last_words(name, losses, steps, interrupted, seconds))
    return Run(
        variant=name,
        seed=seed,
        config={"task": type(task).__name__, **asdict(task)} | {"steps": steps},
        parameters=sum(p.numel() for p in model.parameters()),
        steps=len(losses),
        interrupted=interrupted,
        curve=thin(losses),
        final=final,
        watched=watched,
        seconds=seconds,
        model=model,
    )


def _stopped(work: Callable[[], None]) -> bool:
    """Do something, and say whether an interrupt ended it."""
    try:
        work()
    except KeyboardInterrupt:
        return True
    return False


def training_steps(
    task: Task[Trained], model: Trained, seed: int, steps: int
) -> Iterator[Progress]:
    """Take `steps` steps of AdamW, one per item, on batches drawn from `seed`; yield after each."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=task.learning_rate, weight_decay=0.01)
    started = time.monotonic()
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = task.learning_rate * schedule(step, steps)
        loss = task.loss(model, generator)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield Progress(step, steps, loss.item(), time.monotonic() - started)


def build(task: Task[Trained], seed: int, attend: Attend | None = None) -> Trained:
    """Return the task's untrained model with initial values drawn from `seed` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reach CUDA's as well
        return task.build(attend)


def measure(task: Task[Trained], model: Trained) -> dict[str, float]:
    """Return the task's measurements of a model, without gradients."""
    with torch.no_grad():
        return task.evaluate(model)


def watch(task: Task[Trained], model: Trained, step: int) -> dict[str, float]:
    """Return what a watched task measures at this step, without gradients; mostly nothing."""
    if not isinstance(task, Watched) or step % task.watch_every:
        return {}
    with torch.no_grad():
        return task.watch(model)


def schedule(step: int, steps: int) -> float:
    """Return the share of the learning rate at a step from 1: a linear rise, then a cosine to 0."""
    rise = max(1, round(WARM_UP * steps))
    if step <= rise:
        return step / rise
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / (steps - rise + 1)))


@contextmanager
def at_most_threads(threads: int) -> Generator[None]:
    """Use no more threads inside: on matrices this small, many threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(threads, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _checked_steps(steps: Any) -> int:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ValueError(
            f"steps={steps!r}; give a whole number of at least 1, or None for the default"
        )
    return steps


def _last_words(name: str, losses: list[float], steps: int, stopped: bool, seconds: float) -> str:
    spent = seconds_in_words(seconds)
    if not losses:
        return f"{name}: stopped before the first step"
    loss = f"loss {thin(losses)[-1][1]:.3f}"
    if stopped:
        return f"{name}: stopped at step {len(losses):,} of {steps:,}, {loss}, {spent}; kept"
    return f"{name}: {steps:,} steps in {spent}, {loss}"
