"""What a training leaves behind: a Run, and a Record of runs that share one question."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

MAX_POINTS = 60


@dataclass(frozen=True)
class Spread:
    """The mean of several seeds' values, with the lowest and the highest."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True)
class Run:
    """One training: what was trained, how far it came, its loss curve and its final measurements.

    `curve` has at most 60 points (step, mean training loss in nats since the point before).
    `watched` is what the task's `watch` measured on the way, (step, values) from step 0 on.
    `seconds` and the trained `model` exist only for a run made in this process, not in records.
    """

    variant: str
    seed: int
    config: dict[str, Any]
    parameters: int
    steps: int
    interrupted: bool
    curve: list[tuple[int, float]]
    final: dict[str, float]
    watched: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    seconds: float | None = field(default=None, compare=False)
    model: nn.Module | None = field(default=None, compare=False, repr=False)

    def called(self, variant: str) -> "Run":
        """Return the same run under another variant's name."""
        return replace(self, variant=variant)

    def to_json(self) -> dict[str, Any]:
        """Return the machine-independent part as plain JSON values, rounded to 4 places."""
        watched = [[step, rounded(values)] for step, values in self.watched]
        return {
            "variant": self.variant,
            "seed": self.seed,
            "config": self.config,
            "parameters": self.parameters,
            "steps": self.steps,
            "interrupted": self.interrupted,
            "curve": [[step, round(loss, 4)] for step, loss in self.curve],
            "final": rounded(self.final),
            **({"watched": watched} if watched else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Run":
        """Return the Run that `to_json` wrote."""
        curve = [(step, loss) for step, loss in data["curve"]]
        watched = [(step, values) for step, values in data.get("watched", [])]
        values: dict[str, Any] = {**data, "curve": curve, "watched": watched}
        return cls(**values)


@dataclass(frozen=True)
class Record:
    """All runs of one experiment; a re-run gives the same structure with one seed.

    `measure` names the measurement to compare, `torch` the version that ran, `text` the SHA-256 of
    the training text (None where there is none).
    """

    experiment: str
    question: str
    claims: list[str]
    measure: str
    torch: str
    text: str | None
    runs: list[Run]

    @property
    def variants(self) -> list[str]:
        """The variants in the order in which they were run."""
        return list(dict.fromkeys(run.variant for run in self.runs))

    @property
    def seeds(self) -> list[int]:
        """The seeds, in order."""
        return sorted({run.seed for run in self.runs})

    def of(self, variant: str) -> list[Run]:
        """Return the runs of one variant; raises KeyError with the names that exist."""
        found = [run for run in self.runs if run.variant == variant]
        if not found:
            raise KeyError(
                f"{self.experiment} has no variant {variant!r}; it has {', '.join(self.variants)}"
            )
        return found

    def spread(self, variant: str, measure: str | None = None) -> Spread:
        """Return mean, lowest and highest of a final measurement over the seeds of a variant."""
        measure = measure or self.measure
        runs = self.of(variant)
        values = [run.final[measure] for run in runs if measure in run.final]
        if not values:
            known = ", ".join(runs[0].final) or "none: the run stopped before it was measured"
            raise KeyError(f"{variant!r} has no measurement {measure!r}; it has {known}")
        return Spread(math.fsum(values) / len(values), min(values), max(values))

    def table(self, *measures: str) -> str:
        """Return one line per variant with the spread of each measurement, as text."""
        measures = measures or (self.measure,)
        width = max(len(name) for name in (*self.variants, "variant"))
        lines = ["  ".join(["variant".ljust(width), *(m.rjust(24) for m in measures)])]
        for variant in self.variants:
            cells = [self._cell(variant, m).rjust(24) for m in measures]
            lines.append("  ".join([variant.ljust(width), *cells]))
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        head = {name: getattr(self, name) for name in ("experiment", "question", "claims")}
        tail = {"measure": self.measure, "torch": self.torch, "text": self.text}
        return {**head, **tail, "runs": [run.to_json() for run in self.runs]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Record":
        """Return the Record that `to_json` wrote."""
        values: dict[str, Any] = {**data, "runs": [Run.from_json(run) for run in data["runs"]]}
        return cls(**values)

    def _cell(self, variant: str, measure: str) -> str:
        measured = any(measure in run.final for run in self.of(variant))
        return str(self.spread(variant, measure)) if measured else "not measured"

    def __repr__(self) -> str:
        return (
            f"Record({self.experiment!r}: {len(self.variants)} variants, "
            f"{len(self.seeds)} seeds, torch {self.torch})"
        )


def rounded(values: dict[str, float]) -> dict[str, float]:
    """Return measurements with the digits that a record keeps."""
    return {name: round(value, 4) for name, value in values.items()}


def thin(losses: list[float]) -> list[tuple[int, float]]:
    """Return at most 60 points (step, mean loss since the point before), the last included."""
    points, start = [], 0
    count = min(MAX_POINTS, len(losses))
    for i in range(1, count + 1):
        end = round(i * len(losses) / count)
        points.append((end, math.fsum(losses[start:end]) / (end - start)))
        start = end
    return points
