"""A number that earns points stands nowhere in what a class is given: no search finds it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache

import pytest

from labs_lib.answers import answer
from labs_lib.authoring.handout import GRADERS_ROOMS, TOP_FILES, TOP_FOLDERS
from labs_lib.checking.oracle import LiveOracle
from labs_lib.checking.stored import pack
from labs_lib.exercises import exercises
from labs_lib.paths import home

TEXT = {".py", ".md", ".json", ".toml", ".yml", ".ipynb", ".cu", ".svg", ".lock", ".mjs", ".cff"}
ASKED = [item for item in exercises() if item.kind == "number" and item.points]


def forms(item):
    """A pattern of the number as people write it: 35840, 35,840, 35_840, 12.55, 12.551."""
    value = answer(item.name).reference
    if not item.decimals:
        whole = f"{round(value):,}".split(",")
        return rf"(?<![\d.,]){'[,_  ]?'.join(whole)}(?![\d]|[.,]\d)"
    return "|".join(
        rf"(?<![\d.]){re.escape(f'{value:.{places}f}')}(?!\d)"
        for places in range(item.decimals, item.decimals + 3)
    )


@cache
def shipped():
    """The texts of a handout that withholds every lab, by their names."""
    found = {}
    files = [home() / name for name in TOP_FILES]
    folders = (*TOP_FOLDERS, "notebooks", "labs_lib")
    files += [path for name in folders for path in (home() / name).rglob("*")]
    for path in files:
        parts = path.relative_to(home()).parts
        kept_back = parts[:1] == ("labs_lib",) and parts[1] in ("answers", "bench", *GRADERS_ROOMS)
        if path.is_file() and path.suffix in TEXT and not kept_back:
            found["/".join(parts)] = path.read_text(encoding="utf-8")
    return found


@pytest.mark.parametrize("item", ASKED, ids=lambda item: item.name)
def test_no_text_of_a_handout_holds_a_number_that_is_asked(item):
    pattern = re.compile(forms(item))
    assert pattern.search(f"({answer(item.name).reference:.{item.decimals or 0}f})")
    assert not [name for name, text in shipped().items() if pattern.search(text)]


@pytest.mark.parametrize("item", ASKED, ids=lambda item: item.name)
def test_no_sentence_about_a_mistake_holds_the_number_and_outputs_store_only_hashes(item):
    pattern = re.compile(forms(item))
    told = [wrong.says for wrong in answer(item.name).wrong] + [item.stub, *item.hints]
    assert not [text for text in told if pattern.search(text)]
    entries, _ = pack([item], LiveOracle(), lambda name: replace(answer(name), wrong=()))
    assert not pattern.search(entries) and json.loads(entries)
