"""Lab 04: what its exercises promise beyond what every exercise does."""

from __future__ import annotations

import pytest

from labs_lib.answers import answer
from labs_lib.checking.compare import same
from labs_lib.checking.observe import observe_all
from labs_lib.checking.oracle import LiveOracle
from labs_lib.checking.verdict import FAIL, PASS, judge
from labs_lib.config import model_rows
from labs_lib.exercises import exercise, exercises

FUNCTIONS = [item for item in exercises(4) if item.kind == "function"]
ORACLE = LiveOracle()


@pytest.mark.parametrize("item", FUNCTIONS, ids=lambda item: item.name)
def test_no_wrong_program_survives_any_seed_and_no_two_are_taken_for_each_other(item):
    for seed in range(12):
        want = observe_all(item, answer(item.name).reference, seed)
        seen = {w.name: observe_all(item, w.program, seed) for w in answer(item.name).wrong}
        assert not [name for name, got in seen.items() if same(item, want, got)]
        names = list(seen)
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        assert not [(a, b) for a, b in pairs if same(item, seen[a], seen[b])]


@pytest.mark.parametrize("item", [e for e in FUNCTIONS if "params" in e.name or "flops" in e.name])
def test_one_too_many_is_wrong_however_large_the_count(item):
    reference = answer(item.name).reference

    def one_more(*sizes, **more):
        right = reference(*sizes, **more)
        return {**right, "Q": right["Q"] + 1} if isinstance(right, dict) else right + 1

    assert judge(item, one_more, ORACLE).outcome == FAIL


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("lab04.attention_params", "from labs_lib.arithmetic import attention_params as count"),
        ("lab04.model_params", "import labs_lib.arithmetic as a"),
        ("lab04.softmax_work", "from labs_lib.arithmetic.flops import softmax_work as count"),
        ("lab04.attention_flops", "from torch.utils.flop_counter import FlopCounterMode"),
        ("lab04.read_config", "from labs_lib.config import AttentionConfig"),
    ],
)
def test_the_counting_has_to_be_ones_own(name, program):
    item, reference = exercise(name), answer(name).reference
    assert judge(item, reference, ORACLE, program).outcome == FAIL
    assert judge(item, reference, ORACLE, "import math, torch").outcome == PASS


@pytest.mark.parametrize(
    "row", [r for r in model_rows() if r["mla"] is None], ids=lambda row: row["name"]
)
def test_every_published_model_is_read_as_its_row_says(row):
    config = {
        "hidden_size": row["d_model"],
        "num_attention_heads": row["n_head"],
        "num_key_value_heads": row["n_kv_head"],
        "head_dim": row["head_dim"],
    }
    read = answer("lab04.read_config").reference
    assert read(config) == (row["n_head"], row["n_kv_head"], row["head_dim"])
