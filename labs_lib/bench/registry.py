"""Which benches there are. A new one is a module with `rows()` and one line here."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from labs_lib.bench.rows import Row


@dataclass(frozen=True)
class Bench:
    """A bench by its name: its title, the device it measures, and the module that measures."""

    name: str
    title: str
    device: str = "cpu"
    module: str = ""

    def rows(self) -> Sequence[Row | str]:
        """Measures; a string among the rows is a sentence to print below them.

        Raises: Unavailable where this machine can't; WrongResult.
        """
        module = importlib.import_module(f"labs_lib.bench.{self.module or self.name}")
        return module.rows()


BENCHES = (
    Bench("cuda", "Kernels without a GPU: our emulator and numba's simulator", module="emulator"),
    Bench("attention", "Attention on the CPU as n grows: whole rows, our tiles, torch's kernel"),
    Bench("grading", "Grading a class, beside nbgrader, and one student's whole course"),
    Bench("models", "The pretrained models, until they stand in memory"),
    Bench("widgets", "From a key to the painted frame, 95th percentile, in a headless Chromium"),
    Bench("ladder", "The ladder of kernels against torch on this GPU", "cuda"),
)


def chosen(name: str | None, device: str | None) -> list[Bench]:
    """The benches asked for: by name, by device, or all of this machine's processor.

    Raises: LookupError that lists the names, or for a bench that doesn't measure this device.
    """
    known = [b.name for b in BENCHES]
    if name is not None and name not in known:
        raise LookupError(f"there is no bench {name!r}; there are {', '.join(known)}")
    if name is None:
        return [b for b in BENCHES if b.device == (device or "cpu")]
    if (name, device) == ("cuda", "cuda"):  # the kernels on the GPU are meant
        name = "ladder"
    found = next(b for b in BENCHES if b.name == name)
    if device not in (None, found.device):
        raise LookupError(f"the bench {name!r} measures {found.device} only; leave --device out")
    return [found]
