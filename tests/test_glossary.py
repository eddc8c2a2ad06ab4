"""The glossary: each entry stands in the lab that it names, and is defined in no earlier one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| (\d\d) \|$", re.MULTILINE)
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [(name, number) for names, _, number in ROW.findall(PAGE) for name in names.split(", ")]


def text(number):
    (file,) = (ROOT / "solutions").glob(f"{number}_*.md")
    return " ".join(file.read_text(encoding="utf-8").split())


@pytest.mark.parametrize(("name", "number"), ROWS)
def test_each_entry_stands_in_its_lab_and_is_not_defined_in_an_earlier_one(name, number):
    word = name.strip("`").strip()
    plain = rf"(?<!\w){re.escape(word)}(?:s|es)?(?!\w)"
    assert re.search(plain, text(number), re.IGNORECASE), f"lab {number} has no {word!r}"
    for earlier in range(int(number)):
        bold = rf"\*\*{re.escape(word)}s?\*\*"
        assert not re.search(bold, text(f"{earlier:02d}"), re.IGNORECASE), f"see lab {earlier:02d}"


def test_no_entry_stands_twice():
    names = [name.lower() for name, _ in ROWS]
    assert sorted(names) == sorted(set(names)) and len(names) > 60
