"""A handout without answers still checks, still names mistakes, and doesn't tell numbers."""

from __future__ import annotations

import json

import pytest
from observed import observe_once

from labs_lib.answers import answer
from labs_lib.checking.oracle import LiveOracle
from labs_lib.checking.stored import StoredOracle, pack
from labs_lib.checking.verdict import FAIL, PASS, judge
from labs_lib.exercises import exercises, labs


@pytest.fixture(scope="module", params=labs(), ids=lambda lab: lab.name)
def stored(request, tmp_path_factory):
    name, items = request.param.name, exercises(request.param.number)
    folder = tmp_path_factory.mktemp(name)
    text, arrays = pack(items, LiveOracle(), answer)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    (folder / f"{name}.npz").write_bytes(arrays)
    return items, StoredOracle.load(name, folder), text


def test_stored_outputs_give_the_same_verdicts_as_the_answers(stored, monkeypatch):
    items, oracle, _ = stored
    for item in items:
        known = answer(item.name)
        assert judge(item, known.reference, oracle).outcome == PASS
        for wrong in known.wrong[:: 6 if item.kind == "kernel" else 1]:
            with monkeypatch.context() as patch:
                observe_once(patch, item, wrong)
                live = judge(item, wrong.program, LiveOracle())
                assert judge(item, wrong.program, oracle) == live


def test_stored_choices_and_numbers_hold_no_value_and_no_open_sentence(stored):
    items, oracle, text = stored
    entries = json.loads(text)
    for item in items:
        if not item.is_program:
            known = answer(item.name)
            assert set(entries[item.name]) == {"salt", "hash", "because", "mistakes"}
            assert all(w.says.split("\n")[0] not in text for w in known.wrong)
            assert known.because == "" or known.because not in text
            assert judge(item, "nonsense", oracle).outcome == FAIL
