"""A trace as text: tensors, lines, and what was found."""

from __future__ import annotations

import textwrap

from labs_lib.cuda.words import many


def table(trace) -> str:
    """The trace as a table of at most 100 columns."""
    blocks = trace.grid[0] * trace.grid[1] * trace.grid[2]
    threads = trace.block[0] * trace.block[1] * trace.block[2]
    parts = [f"{trace.kernel}: {many(blocks, 'block')} of {many(threads, 'thread')}, {trace.arch}"]
    rows = [
        [name, *(f"{n:,}" for n in (t.read, t.written, t.atomic))]
        for name, t in [*trace.tensors.items(), ("shared memory", trace.shared)]
    ]
    parts.append(_grid(["", "bytes read", "bytes written", "atomic"], rows))
    barriers = many(trace.barriers, "barrier")
    parts.append(f"shared memory {trace.shared_bytes:,} bytes a block, {barriers}")
    if trace.lines:
        head = ["line", "what", "where", "bytes", "per warp", "", "source"]
        parts.append(_grid(head, [_line(trace, line) for line in trace.lines]))
    if trace.grouped_blocks < blocks and trace.lines:
        parts.append(f"per warp: measured on the first {many(trace.grouped_blocks, 'block')}")
    parts += [_finding(f) for f in trace.findings] or ["Nothing wrong was found."]
    return "\n\n".join(parts)


def _line(trace, line) -> list[str]:
    lines = trace.source.split("\n")
    text = lines[line.line - 1].strip() if line.line else ""
    if line.where == "shared":
        rate, unit = line.conflict, "bank passes"
    else:
        rate, unit = line.sectors_per_request, "sectors"
    shown = f"{rate:.3g}" if line.requests else ""
    return [
        str(line.line or "?"), line.what, line.where, f"{line.bytes:,}", shown,
        unit if shown else "", textwrap.shorten(text, 38, placeholder=" …"),
    ]  # fmt: skip


def _finding(finding) -> str:
    times = f" ({finding.count:,} times)" if finding.count > 1 else ""
    mark = "note" if finding.harmless else "PROBLEM"
    first, *rest = finding.message.split("\n")
    wrapped = textwrap.fill(f"{mark}, {finding.kind}{times}: {first}", 96)
    return "\n".join([wrapped, *rest])


def _grid(head: list[str], rows: list[list[str]]) -> str:
    """Columns with equal widths; numbers to the right."""
    cells = [head, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    right = [i for i in range(len(head)) if head[i].startswith(("bytes", "atomic", "per", "line"))]
    out = []
    for row in cells:
        fitted = [
            cell.rjust(w) if i in right else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        out.append("  ".join(fitted).rstrip())
    out.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(out)
