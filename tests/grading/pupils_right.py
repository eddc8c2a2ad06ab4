"""Students whose answers are right, in several styles."""

from __future__ import annotations

import copy
import json
import random

from pupil_cells import (
    BUDGET,
    MASK,
    POINTS,
    SCORES,
    STD,
    dump,
    find,
    new_cell,
    pupil,
    released,
    write,
)

from labs_lib.notebook.cells import role


@pupil
def right(whole):
    """Nothing changes the course's own answers."""


@pupil
def right_in_another_style(whole):
    write(
        whole,
        SCORES,
        'attention_scores = lambda q, k: torch.einsum("...qd,...kd->...qk", q, k)'
        " / q.shape[-1] ** 0.5",
    )
    write(
        whole,
        MASK,
        "def causal_mask(seq_q, seq_k=None):\n"
        "    seq_k = seq_k or seq_q\n"
        "    rows = [[j <= i + seq_k - seq_q for j in range(seq_k)] for i in range(seq_q)]\n"
        "    return torch.tensor(rows, dtype=torch.bool).reshape(seq_q, seq_k)",
    )
    write(
        whole,
        STD,
        "class Spread:\n"
        "    def __call__(self, head_dim, q_std, k_std):\n"
        "        return float(np.sqrt(head_dim) * q_std * k_std)\n\n"
        "dot_product_std = Spread()",
    )


@pupil
def right_and_noisy(whole):
    text = whole.cells[find(whole, SCORES)].source
    noisy = text.replace(
        "    head_dim = q.shape[-1]",
        '    import sys, warnings\n    print("shape", q.shape)\n    warnings.warn("careful")\n'
        '    print("error: 0.01", file=sys.stderr)\n    head_dim = q.shape[-1]',
    )
    assert noisy != text
    write(whole, SCORES, noisy + '\nprint("done")\nattention_scores')


@pupil
def right_in_new_cells(whole):
    for name in POINTS:
        at = find(whole, name)
        answer = whole.cells[at].source
        whole.cells[at].source = released().cells[find(released(), name)].source
        whole.cells.insert(at + 1, new_cell(answer))


@pupil
def right_in_one_cell(whole):
    texts = [whole.cells[find(whole, name)].source for name in POINTS]
    for name in POINTS:
        write(whole, name, released().cells[find(released(), name)].source)
    write(whole, SCORES, "\n\n".join(texts))


@pupil
def right_without_metadata_and_ids(whole):
    for cell in whole.cells:
        cell.metadata, cell["id"] = {}, f"{random.random():.12f}"[2:]


@pupil
def right_with_a_helper_and_own_imports(whole):
    at = next(n for n, c in enumerate(whole.cells) if role(c) == "setup")
    whole.cells[at].source += "\nfrom math import sqrt as root"
    at = find(whole, SCORES)
    whole.cells.insert(at, new_cell("def swapped(x):\n    return x.transpose(-2, -1)"))
    write(
        whole,
        SCORES,
        "def attention_scores(q, k):\n    return q @ swapped(k) / root(q.shape[-1])",
    )


@pupil
def right_with_scratch_cells(whole):
    for name in reversed(POINTS):
        at = find(whole, name, "check")
        whole.cells.insert(at + 1, new_cell("q = torch.randn(3, 4)\nq @ 7"))
        whole.cells.insert(at + 1, new_cell("while True: pass"))
        whole.cells.insert(at, new_cell("F.scaled_dot_product_attention"))


@pupil
def right_with_a_byte_order_mark(whole):
    return b"\xef\xbb\xbf" + dump(whole)


@pupil
def right_with_windows_quotes(whole):
    at = find(whole, SCORES)
    whole.cells[at].source += "\n# it QUOTE s done"
    return dump(whole).replace(b"QUOTE", b"\x92")


@pupil
def right_in_format_3(whole):
    cells = []
    for cell in whole.cells:
        old = {"cell_type": cell.cell_type, "metadata": {}}
        if cell.cell_type == "code":
            old |= {"input": cell.source, "outputs": [], "language": "python", "prompt_number": 1}
        else:
            old |= {"source": cell.source}
        cells.append(old)
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}}
    return json.dumps(old | {"worksheets": [{"cells": cells}]}).encode("utf-8")


@pupil
def right_from_colab(whole):
    whole["nbformat_minor"] = 2
    whole.metadata = {"widgets": {"application/vnd": {"a": {}}}, "kernelspec": {"name": "ir"}}
    for cell in whole.cells:
        cell.metadata["outputId"] = "x"


@pupil
def right_but_retyped(whole):
    at = find(whole, MASK)
    cell = whole.cells[at]
    whole.cells[at] = new_cell(cell.source, "markdown")
    whole.cells[at].metadata = cell.metadata


@pupil
def right_but_shuffled(whole):
    whole.cells.reverse()


@pupil
def right_with_copies_of_stubs(whole):
    for name in POINTS:
        stub = copy.deepcopy(released().cells[find(released(), name)])
        whole.cells.insert(find(whole, name) + 1, stub)


@pupil
def right_with_checks_deleted(whole):
    whole.cells = [cell for cell in whole.cells if role(cell) != "check"]


@pupil
def right_with_markers(whole):
    at = find(whole, SCORES)
    whole.cells[at].source = "# NBVAL_SKIP\n" + whole.cells[at].source
    whole.cells[at].metadata["tags"] = ["nbval-skip", "raises-exception"]
    text = whole.cells[find(whole, MASK)].source
    write(whole, MASK, text.replace('"""', '"""\n    # NBVAL_CHECK_OUTPUT\n', 1))


@pupil
def right_in_odd_ways(whole):
    """numpy's numbers, noise of all kinds, and names that a later cell gives another meaning."""
    write(
        whole,
        STD,
        "def dot_product_std(head_dim, q_std, k_std):\n"
        '    print("ab\\bc\\r 10%|#   |\\r 20%|##  |", "\\x1b[31merror: 0.01\\x1b[0m")\n'
        "    noise = 0 * float(torch.randn(())) + 0 * np.random.rand()\n"
        "    return np.float64(np.sqrt(head_dim) * q_std * k_std + noise)",
    )
    late = "attention_scores = 4\ncausal_mask = None\nq = k = head_dim = dot_product_std\n0"
    at = find(whole, BUDGET)
    whole.cells[at].source += f"\n{late}"
