"""What a fenced kernel may see and how much it may use, as plain data that fits a kernel.json."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """How much one kernel may use; seconds, bytes and counts, each above zero.

    `memory_bytes` bounds the private memory of all processes of the kernel together;
    `output_bytes` bounds what one cell may send to its front end. Raises ValueError.
    """

    cell_s: float = 20.0
    notebook_s: float = 180.0
    startup_s: float = 60.0
    grace_s: float = 2.0
    cpu_s: int = 180
    memory_bytes: int = 3 * GIB
    processes: int = 128
    file_bytes: int = 64 * MIB
    scratch_bytes: int = 256 * MIB
    output_bytes: int = 2 * MIB

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise ValueError(
                    f"{item.name}={value!r} is not a limit: give a number above zero, "
                    f"for instance the default {item.default}"
                )


@dataclass(frozen=True)
class Policy:
    """Everything a fence needs to know.

    handout      folder that holds the handout build of `labs_lib`; read-only, first on the path
    run_json     the file of a graded run; the kernel finds its copy by the variable LABS_RUN
    readable     further files or folders (data, model files), read-only, at their own paths
    hidden       files or folders that stay hidden even inside a readable tree
    environment  further variables of the kernel's environment
    level        the name of a level to insist on; None takes the best that works here
    python       the interpreter whose installation and environment the kernel sees
    """

    limits: Limits = field(default_factory=Limits)
    handout: Path | None = None
    run_json: Path | None = None
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    level: str | None = None
    python: Path = field(default_factory=lambda: Path(sys.executable))

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON values; `from_json` reads it back."""
        return {
            "limits": asdict(self.limits),
            "handout": None if self.handout is None else str(Path(self.handout).absolute()),
            "run_json": None if self.run_json is None else str(Path(self.run_json).absolute()),
            "readable": [str(Path(path).absolute()) for path in self.readable],
            "hidden": [str(Path(path).absolute()) for path in self.hidden],
            "environment": dict(self.environment),
            "level": self.level,
            "python": str(Path(self.python).absolute()),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Policy:
        """The policy that `to_json` wrote; missing names take their defaults."""
        given = dict(data)
        if "limits" in given:
            given["limits"] = Limits(**given["limits"])
        for name in ("handout", "run_json", "python"):
            if given.get(name) is not None:
                given[name] = Path(given[name])
        for name in ("readable", "hidden"):
            given[name] = tuple(Path(path) for path in given.get(name, ()))
        return cls(**given)
