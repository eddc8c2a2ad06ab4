import dataclasses
import io
from collections import Counter

import pytest
from claims_in_labs import measured_cells, unaccounted
from rich.console import Console

from labs_lib import claims, paths

LEDGER = claims.load()

SOURCE = """---
kernelspec:
  display_name: Python 3
  name: python3
---

The text may name claim-C04 without measuring it.

```{code-cell} ipython3
:tags: [nbval-ignore-output, claim-C01]

1 + 1
```

```{code-cell} ipython3
---
tags: [claim-C02, claim-C126]
---
2 + 2
```

+++ {"tags": ["claim-C05"]}

A paragraph measures nothing.
"""


def claim(**changes):
    return dataclasses.replace(LEDGER[0], **changes)


def test_every_claim_has_a_row_in_order():
    assert [c.id for c in LEDGER] == [f"C{n:02d}" for n in range(1, 127)]


def test_the_verdicts_are_counted_as_checked():
    verdicts = Counter(c.verdict for c in LEDGER)
    assert verdicts == {"true": 37, "within-limits": 57, "wrong": 25, "unverifiable": 7}


@pytest.mark.parametrize("row", LEDGER, ids=lambda c: c.id)
def test_a_row_says_what_is_claimed_what_is_right_and_who_says_so(row):
    assert row.lab in {f"{n:02d}" for n in range(1, 13)}
    for text in (row.claim, row.right_value):
        assert text.endswith(".")
        assert 5 < len(text) < 260
    assert len(row.source) > 5


def test_no_claim_is_measured_without_its_cell_and_no_cell_without_its_claim():
    measured = measured_cells(paths.home() / "solutions")
    assert unaccounted(claims.load(), measured) == []


def test_tags_are_read_from_code_cells_in_both_spellings(tmp_path):
    (tmp_path / "01_one_head.md").write_text(SOURCE, encoding="utf-8")
    cells = measured_cells(tmp_path)
    assert cells == {id_: ["01_one_head"] for id_ in ("C01", "C02", "C126")}


def test_a_measured_claim_without_a_cell_is_told():
    told = unaccounted([claim(status="measured")], {})
    assert told == [
        "C01 is marked measured in lab 01, but a cell tagged claim-C01 is in no notebook"
    ]


def test_a_measured_claim_in_another_lab_is_told():
    told = unaccounted([claim(status="measured")], {"C01": ["06_what_heads_learn"]})
    assert told == [
        "C01 is marked measured in lab 01, but a cell tagged claim-C01 is only in lab 06"
    ]
    both = {"C01": ["01_one_head", "06_what_heads_learn"]}
    assert unaccounted([claim(status="measured")], both) == []


def test_a_cell_whose_claim_is_not_marked_is_told():
    cells = {"C01": ["01_one_head"], "C999": ["01_one_head"]}
    assert unaccounted([claim(status="planned")], cells) == [
        "01_one_head measures claim-C01, which is planned",
        "01_one_head measures claim-C999, which is not in the ledger",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "right"},
        {"status": "done"},
        {"status": "not-measurable", "why": ""},
        {"status": "planned", "why": "Too large."},
    ],
)
def test_a_row_that_says_nothing_clear_is_refused(changes):
    with pytest.raises(ValueError, match="C01: "):
        claim(**changes)


def test_the_printed_table_has_every_claim_or_those_asked_for():
    def printed(**which):
        out = io.StringIO()
        claims.print_claims(**which, console=Console(file=out, width=200))
        return out.getvalue()

    whole = printed()
    assert all(f" {c.id} " in whole for c in LEDGER)
    assert "126 claims: 37 true, 57 within-limits, 25 wrong, 7 unverifiable" in whole
    lab4 = printed(lab="4", verdict="wrong")
    wanted = [c.id for c in LEDGER if c.lab == "04" and c.verdict == "wrong"]
    assert wanted
    assert [c.id for c in LEDGER if f" {c.id} " in lab4] == wanted
