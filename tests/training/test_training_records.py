"""Recorded runs are complete, belong to the code and text beside them, and carry what labs say."""

import json
from dataclasses import asdict

import pytest

from labs_lib import paths
from labs_lib.training import byte_text, records
from labs_lib.training.experiments import EXPERIMENTS
from labs_lib.training.layers import sdpa
from labs_lib.training.loop import train
from labs_lib.training.records import load_record, record, record_path, rerun
from labs_lib.training.runs import Record

NAMES = list(EXPERIMENTS)
RUN_KEYS = ["variant", "seed", "config", "parameters", "steps", "interrupted", "curve", "final"]


@pytest.fixture
def empty_course(tmp_path, monkeypatch):
    """A course folder without records, so that a test can write some."""
    monkeypatch.setenv("LABS_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_every_variant_was_trained_to_the_end_with_three_seeds_or_more(name):
    made, what = load_record(name), EXPERIMENTS[name]
    assert len(what.seeds) >= 3
    expected = [(variant, seed) for variant in what.variants for seed in what.seeds]
    assert [(run.variant, run.seed) for run in made.runs] == expected
    for run in made.runs:
        assert not run.interrupted and run.steps == what.variants[run.variant].steps
        assert 30 <= len(run.curve) <= 60 and run.curve[-1][0] == run.steps
        assert made.measure in run.final


@pytest.mark.parametrize("name", NAMES)
def test_a_record_belongs_to_the_settings_and_the_text_of_today(name):
    made, what = load_record(name), EXPERIMENTS[name]
    assert made.question == what.question and made.claims == list(what.claims)
    for run in made.runs:
        task = what.variants[run.variant]
        assert run.config == {"task": type(task).__name__, **asdict(task)}
    on_text = any(isinstance(task, byte_text.ByteText) for task in what.variants.values())
    assert made.text == (byte_text.text_hash() if on_text else None)


@pytest.mark.parametrize("name", NAMES)
def test_a_record_says_nothing_about_the_machine_that_made_it(name):
    data = json.loads(record_path(name).read_text(encoding="utf-8"))
    assert list(data) == ["experiment", "question", "claims", "measure", "torch", "text", "runs"]
    watched = hasattr(next(iter(EXPERIMENTS[name].variants.values())), "watch")
    keys = [*RUN_KEYS, "watched"] if watched else RUN_KEYS
    assert all(list(run) == keys for run in data["runs"])
    assert "+" not in data["torch"]  # the build, cpu or cu130, is the machine's


def test_all_records_together_stay_under_a_megabyte_and_each_has_an_experiment():
    files = list((paths.data() / "records").glob("*.json"))
    assert sorted(file.stem for file in files) == sorted(NAMES)
    assert sum(file.stat().st_size for file in files) < 1_000_000


@pytest.mark.parametrize("name", NAMES)
def test_a_record_read_and_written_again_is_the_same_file(name, tmp_path):
    records.write_record(load_record(name), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == record_path(name).read_bytes()


def test_recorded_one_head_follows_both_rules_and_the_control_follows_none():
    made = load_record("two_rules")
    for rule in ("by_key", "by_position"):
        assert made.spread("one head", f"accuracy_{rule}").low > 0.98
        assert made.spread("one head", f"weight_{rule}").low > 0.9
        assert made.spread("no choice", f"accuracy_{rule}").high < 0.2


def test_recorded_one_head_names_two_targets_as_a_set_but_not_in_order():
    made = load_record("two_targets")
    assert made.spread("1 head, in order").high < 0.3
    for variant in ("1 head, as a set", "2 heads, as a set", "2 heads, in order"):
        assert made.spread(variant).low > 0.97


def test_recorded_slices_of_the_input_cost_more_than_seeds_do():
    made = load_record("true_slicing")
    whole, slices = made.spread("all inputs"), made.spread("own slice")
    assert slices.mean - whole.mean > 0.1
    assert slices.low > whole.high


def test_recorded_thirty_two_heads_are_worst_and_one_head_is_no_worse_than_eight():
    made = load_record("head_sweep")
    spreads = {variant: made.spread(variant) for variant in made.variants}
    worst = spreads.pop("n_head=32")
    assert all(worst.low > other.high for other in spreads.values())
    assert spreads["n_head=1"].mean <= spreads["n_head=8"].mean
    assert {run.parameters for run in made.runs} == {111_872}


def test_recorded_runs_without_w_o_lose_hundredths_and_a_wider_ffn_gives_them_back():
    made = load_record("without_w_o")
    base, without, wider = (made.spread(variant).mean for variant in made.variants)
    assert 0 < without - base < 0.05
    assert abs(wider - base) < without - base


def test_experiments_that_share_a_baseline_show_the_same_baseline():
    short = [("true_slicing", "all inputs"), ("head_sweep", "n_head=8")]
    long = [("without_w_o", "with W_O"), ("shared_heads", "8 key/value heads")]
    for names in (short, long):
        curves = [[run.curve for run in load_record(name).of(variant)] for name, variant in names]
        assert curves[0] == curves[1]


@pytest.mark.parametrize("name", ["two_rules", "two_targets"])
def test_a_rerun_has_the_structure_of_the_record(name):
    again, made = rerun(name, seed=7, steps=2), load_record(name)
    assert again.variants == made.variants and again.seeds == [7]
    for variant in made.variants:
        assert again.of(variant)[0].final.keys() == made.of(variant)[0].final.keys()
    data = again.to_json()
    assert data.keys() == made.to_json().keys()
    assert list(data["runs"][0]) == RUN_KEYS
    assert Record.from_json(json.loads(json.dumps(data))).variants == made.variants


def test_a_rerun_of_one_variant_with_your_own_attention_uses_it():
    calls = []

    def mine(q, k, v, mask):
        calls.append(q.shape)
        return sdpa(q, k, v, mask)

    again = rerun("head_sweep", steps=1, variant="n_head=4", attend=mine)
    assert again.variants == ["n_head=4"] and again.runs[0].steps == 1
    assert calls[0] == (16, 4, 64, 16)


def test_an_interrupted_rerun_keeps_the_runs_it_has(stop_at_call):
    again = rerun("two_targets", steps=5, attend=stop_at_call(10))
    assert [(run.variant, run.steps, run.interrupted) for run in again.runs] == [
        ("1 head, as a set", 5, False),
        ("2 heads, as a set", 2, True),
    ]
    assert "2 heads, as a set" in again.table()


def test_a_table_says_what_was_not_measured(stop_at_call):
    again = rerun("two_rules", steps=2, variant="one head", attend=stop_at_call(3))
    assert again.runs[0].final == {} and "not measured" in again.table()
    with pytest.raises(KeyError, match="none: the run stopped before it was measured"):
        again.spread("one head")


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(KeyError, match="no experiment is named 'tworules'; these are: two_rules"):
        load_record("tworules")
    with pytest.raises(KeyError, match="has no variant '3 heads'; it has '1 head, as a set'"):
        rerun("two_targets", variant="3 heads")
    with pytest.raises(KeyError, match="has no variant '3 heads'; it has 1 head"):
        load_record("two_targets").of("3 heads")
    with pytest.raises(KeyError, match="no measurement 'bleu'; it has accuracy"):
        load_record("two_targets").spread("1 head, in order", "bleu")


def test_a_missing_or_broken_record_says_how_to_make_it(empty_course):
    with pytest.raises(FileNotFoundError, match=r"records two_rules` trains it anew"):
        load_record("two_rules")
    path = record_path("two_rules")
    path.parent.mkdir(parents=True)
    for content in ("", "{", "[]", '{"runs": []}', '{"runs": 3}'):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=r"is not a record .* trains it anew"):
            load_record("two_rules")


def test_making_a_record_writes_what_load_record_reads(empty_course):
    made = record("two_rules", steps=2)
    assert load_record("two_rules").to_json() == made.to_json()
    assert [path.name for path in record_path("two_rules").parent.iterdir()] == ["two_rules.json"]


def test_an_interrupted_recording_leaves_the_old_record_whole(empty_course, monkeypatch):
    record("two_rules", steps=2)
    before = record_path("two_rules").read_bytes()

    def stopped(task, **settings):
        run = train(task, **settings)
        return type(run)(**{**vars(run), "interrupted": True})

    monkeypatch.setattr(records, "train", stopped)
    with pytest.raises(KeyboardInterrupt, match="two_rules, one head, seed 0 was stopped"):
        record("two_rules", steps=3)
    assert record_path("two_rules").read_bytes() == before


def test_the_command_refuses_unknown_names_and_trains_nothing(empty_course, capsys):
    assert records.main(["two_rules", "tree_rules"]) == 2
    assert "no experiment: tree_rules; there are: two_rules" in capsys.readouterr().err
    assert not record_path("two_rules").exists()


@pytest.mark.slow
def test_a_short_training_of_two_rules_beats_chance_under_both_rules():
    (run,) = rerun("two_rules", seed=0, steps=500, variant="one head").runs
    assert run.final["accuracy_by_key"] > 0.9 and run.final["accuracy_by_position"] > 0.9


def test_recorded_heads_trained_as_shared_lose_little_and_heads_merged_afterwards_much():
    made = load_record("shared_heads")
    whole, two, one = (made.spread(variant).mean for variant in made.variants)
    assert abs(two - whole) < 0.02 < one - whole < 0.05
    for run in made.of("8 key/value heads"):
        lost = {name: value - run.final["loss"] for name, value in run.final.items()}
        for n in (4, 2, 1):
            assert min(lost[f"mean_{n}"], lost[f"first_{n}"]) > 0.5
            assert 0.1 < lost[f"mean_{n}_more"] < lost[f"mean_{n}"] / 2
        assert lost["mean_4_more"] < lost["mean_2_more"] < lost["mean_1_more"]
