"""The panel on which a student scrubs through a small model's training."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labs_lib.training.growing import ROLES
from labs_lib.training.records import load_record
from labs_lib.widgets.training_scrub import chance, scores_over_steps, training_scrub


def test_a_step_shows_what_was_recorded_at_it():
    run = load_record("head_growth").runs[0]
    steps, scores = scores_over_steps(run, "previous")
    panel = training_scrub(role="previous", step=steps[2])
    assert scores.shape == (len(steps), 2, 8)
    best = scores[-1].max()
    assert f"and {best:.2f} at the end" in panel.message
    assert "n_head 8" in panel.message and "d_model 64" in panel.message
    assert f"step {steps[2]:,} and" in panel.message and not panel.failed


def test_every_step_role_and_seed_can_be_shown():
    panel = training_scrub()
    shown = {"step": range(0, 601, 50), "role": ROLES, "seed": range(3)}
    seen = set()
    for name, options in shown.items():
        for option in options:
            panel.set(**{name: option})
            assert not panel.failed, panel.message
            seen.add(panel.message)
    assert len(seen) > 13


def test_between_two_looks_the_earlier_one_is_shown():
    panel = training_scrub(step=149)
    assert "at step 100 and" in panel.message and not panel.failed


def test_a_run_that_was_stopped_ends_where_it_stopped():
    whole = load_record("head_growth").runs[0]
    stopped = replace(whole, seed=7, watched=whole.watched[:3], curve=whole.curve[:10])
    panel = training_scrub(whole, stopped)
    panel.seed = 7
    assert "at step 100 and" in panel.message and not panel.failed
    assert training_scrub(stopped).step == 100


def test_chance_is_small_for_one_place_and_larger_for_spaces():
    assert chance("first") == pytest.approx(0.059, abs=0.01)
    assert chance("space") > chance("same byte") > chance("first")


def test_a_run_that_was_not_watched_is_refused_by_name():
    with pytest.raises(ValueError, match="was not watched"):
        scores_over_steps(load_record("head_census").runs[0], "previous")
