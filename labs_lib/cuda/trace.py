"""What a traced run saw: bytes, sectors, bank conflicts, races, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial

import torch

from labs_lib.cuda import child, findings, unset
from labs_lib.cuda.accesses import Event, Log, make_log
from labs_lib.cuda.findings import Finding
from labs_lib.cuda.layout import SHARED
from labs_lib.cuda.lines import lines_of
from labs_lib.cuda.tiles import Tiles, make_tiles, untouched


@dataclass(frozen=True)
class Traffic:
    """Bytes that the kernel asked for, as its source says; an atomic counts once."""

    read: int = 0
    written: int = 0
    atomic: int = 0


@dataclass(frozen=True)
class Line:
    """What one line of the source did to one tensor, or to shared memory.

    `requests` are instructions of a warp; `sectors` the 32-byte pieces that they touched in global
    memory, `wavefronts` the passes that they took through the banks of shared memory. `moved` are
    bytes, request by request 32 for each sector, and at least those asked for; no file keeps it.
    """

    line: int | None
    where: str
    what: str
    count: int
    bytes: int
    requests: int
    sectors: int
    wavefronts: int
    moved: int = field(default=0, repr=False, compare=False)

    @property
    def sectors_per_request(self) -> float:
        """4 when a warp reads 32 neighbouring floats; 32 when each lane is elsewhere."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def conflict(self) -> float:
        """Passes through the banks for each request: 1 is free of conflicts."""
        return self.wavefronts / self.requests if self.requests else 0.0


@dataclass(frozen=True)
class Trace:
    """A traced launch. Print it, or take `tensors`, `lines`, `findings` from it.

    `events` are the first accesses of the first block, up to 20,000 (`k.trace.steps` watches other
    blocks); `log` has them by warp, `tiles` what became of each element, and `draw` shows it.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arch: str
    source: str = field(repr=False)
    tensors: dict[str, Traffic]
    shared: Traffic
    shared_bytes: int
    barriers: int
    lines: list[Line]
    findings: list[Finding]
    complete: bool
    grouped_blocks: int
    tiles: dict[str, Tiles] = field(default_factory=dict, repr=False)
    log: Log = field(default_factory=Log, repr=False)

    @property
    def events(self) -> list[Event]:
        """The accesses of the watched blocks, in each thread's own order."""
        return self.log.events

    @property
    def read(self) -> int:
        """Bytes read from all tensors."""
        return sum(t.read for t in self.tensors.values())

    @property
    def written(self) -> int:
        """Bytes written to all tensors."""
        return sum(t.written for t in self.tensors.values())

    @property
    def clean(self) -> bool:
        """Whether it ran to its end and nothing is wrong."""
        return self.complete and all(f.harmless for f in self.findings)

    def to_dict(self) -> dict:
        """Everything as plain data for JSON."""
        made = {f.name: getattr(self, f.name) for f in fields(self)}
        made |= {"grid": list(self.grid), "block": list(self.block), "log": self.log.to_dict()}
        made["tensors"] = {name: asdict(t) for name, t in self.tensors.items()}
        made["tiles"] = {name: t.to_dict() for name, t in self.tiles.items()}
        made["shared"] = asdict(self.shared)
        made["lines"] = [asdict(line) for line in self.lines]
        made["findings"] = [f.to_dict() for f in self.findings]
        for line, data in zip(self.lines, made["lines"], strict=True):
            del data["moved"]
            data["sectors_per_request"] = line.sectors_per_request
            data["conflict"] = line.conflict
        return made | {"read": self.read, "written": self.written, "clean": self.clean}

    @classmethod
    def from_dict(cls, data: dict) -> Trace:
        """The trace that `to_dict` was made from, also by way of JSON."""
        made = {f.name: data[f.name] for f in fields(cls)}
        made |= {name: tuple(data[name]) for name in ("grid", "block")}
        made["tensors"] = {name: Traffic(**t) for name, t in data["tensors"].items()}
        made["tiles"] = {name: Tiles.from_dict(t) for name, t in data["tiles"].items()}
        made["shared"] = Traffic(**data["shared"])
        names = [f.name for f in fields(Line) if f.name != "moved"]
        made["lines"] = [Line(*(line[n] for n in names)) for line in data["lines"]]
        made["findings"] = [Finding.from_dict(f) for f in data["findings"]]
        made["log"] = Log.from_dict(data["log"])
        return cls(**made)

    def draw(self, *, block: tuple[int, ...] | None = None, into=None) -> list:
        """Draws who reads and writes which elements, and how often; see `picture.draw`."""
        from labs_lib.cuda.picture import draw

        return draw(self, block=block, into=into)

    def __str__(self) -> str:
        from labs_lib.cuda.table import table

        return table(self)

    __repr__ = __str__


def make_trace(launcher, args, arch: str) -> Trace:
    """Runs a launcher's kernel traced; results are written to the tensors when it ends well.

    Args:
        launcher: a kernel with its geometry, and `watched` and `most`: the places in the grid of
            the blocks whose accesses are logged, and how many of each block. Without any there
            are no tiles either.
    """
    kernel, grid = launcher.kernel, launcher.grid
    signature = kernel.signature
    held = [a.cpu() if isinstance(a, torch.Tensor) else a for a in args]
    told = partial(Trace, signature.spelled, grid, launcher.block, arch=arch, source=kernel.source)
    pointers = {p.name: a for p, a in zip(signature.parameters, held, strict=True) if p.pointer}
    if 0 in grid:
        return _nothing_ran(told, pointers)
    library, again = kernel.library(True), unset.before(kernel, held)
    report, regions, fault = child.run(
        library, signature, held, grid, launcher.block, launcher.shared, arch,
        source=kernel.source, trace=True, watched=launcher.watched, most=launcher.most,
    )  # fmt: skip
    for p, given, ours in zip(signature.parameters, args, held, strict=True):
        if p.pointer and not p.const and ours is not given:
            given.copy_(ours)
    sites = report["sites"][: int(report["n_sites"])]
    wanted = [int(s["pc"]) - 1 for s in sites] + findings.addresses(report)
    where = lines_of(library, wanted, kernel.source.count("\n") + 1)
    found = findings.read(report, regions, where)
    if again is not None and all(f.harmless for f in found):
        found += unset.proved(launcher, held, fault, again, arch)
    return told(
        tensors=_tensors(report, regions, pointers),
        shared=_traffic(report["totals"][SHARED]),
        shared_bytes=int(report["shared_used"]),
        barriers=int(report["barriers"]),
        lines=_lines(sites, regions, where),
        findings=[*found, *([findings.from_fault(fault)] if fault else [])],
        complete=fault is None,
        grouped_blocks=int(report["grouped_blocks"]),
        tiles=_in_order(make_tiles(regions), pointers) if launcher.watched else {},
        log=make_log(report, regions, where, _what, grid, launcher.watched),
    )


def _nothing_ran(told: Callable[..., Trace], pointers: Mapping[str, torch.Tensor]) -> Trace:
    """The trace of a grid without blocks."""
    return told(
        tensors={name: Traffic() for name in pointers}, shared=Traffic(), shared_bytes=0,
        barriers=0, lines=[], findings=[], complete=True, grouped_blocks=0,
        tiles={name: untouched(name, a) for name, a in pointers.items() if a.numel()},
    )  # fmt: skip


def _traffic(total) -> Traffic:
    return Traffic(int(total["read"]), int(total["written"]), int(total["atomic"]))


def _tensors(report, regions, names) -> dict[str, Traffic]:
    """Traffic by argument; arguments that share memory share one count."""
    found = {name: Traffic() for name in names}
    for i, region in enumerate(regions):
        key = "/".join(region.names)
        for name in region.names:
            found.pop(name, None)
        found[key] = _traffic(report["totals"][i])
    order = {name: i for i, name in enumerate(names)}
    return dict(sorted(found.items(), key=lambda item: order[item[0].split("/")[0]]))


def _in_order(found: dict, names: Iterable[str]) -> dict:
    return {name: found[name] for name in names if name in found}


def _lines(sites, regions, where) -> list[Line]:
    """Sites of one line, tensor and kind are one row; rows stand in the source's order."""
    rows: dict[tuple, list[int]] = {}
    for s in sites:
        index, how = int(s["region"]), int(s["how"])
        name = "shared" if index == SHARED else "/".join(regions[index].names)
        row = rows.setdefault((where.get(int(s["pc"]) - 1), name, _what(how)), [0] * 6)
        for i, key in enumerate(("count", "bytes", "requests", "sectors", "wavefronts", "moved")):
            row[i] += int(s[key])
    ordered = sorted(rows.items(), key=lambda item: (item[0][0] or 0, item[0][1:]))
    return [Line(*key, *row) for key, row in ordered]


def _what(how: int) -> str:
    return "atomic" if how & 2 else "write" if how & 1 else "read"
