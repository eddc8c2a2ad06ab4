"""Trainings are seeded, interruptible, and leave no trace in the process that ran them."""

import random
import re

import numpy as np
import pytest
import torch

from labs_lib.attention.single_head import scaled_dot_product_attention
from labs_lib.training import loop
from labs_lib.training.byte_text import ByteText
from labs_lib.training.layers import sdpa
from labs_lib.training.loop import Progress, schedule, train
from labs_lib.training.progress import ProgressLine, seconds_in_words
from labs_lib.training.retrieval import TwoRules, TwoTargets
from labs_lib.training.runs import thin

TASKS = [TwoRules(), TwoTargets(n_head=2), ByteText(batch=2)]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_the_same_seed_trains_the_same_model(task):
    first, again = train(task, seed=5, steps=3), train(task, seed=5, steps=3)
    assert first.curve == again.curve
    assert first.final == again.final
    assert train(task, seed=6, steps=3).curve != first.curve


def test_the_order_of_trainings_does_not_matter():
    alone = train(TwoRules(), seed=1, steps=3)
    train(TwoTargets(), seed=0, steps=2)
    torch.rand(17)
    assert train(TwoRules(), seed=1, steps=3).curve == alone.curve


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_training_leaves_every_global_random_state_alone(task):
    torch.manual_seed(11)
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    train(task, seed=0, steps=2)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert (np.random.get_state()[1] == states[2]).all()


@pytest.fixture
def two_threads():
    """A process that uses two threads, as a student's does."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(before)


@pytest.mark.parametrize("call", [3, None], ids=["interrupted", "finished"])
def test_training_uses_one_thread_and_gives_the_others_back(call, two_threads, stop_at_call):
    attend, seen = stop_at_call(call), []

    def spy(q, k, v, mask):
        seen.append(torch.get_num_threads())
        return attend(q, k, v, mask)

    train(TwoRules(), steps=4, attend=spy)
    assert set(seen) == {1}
    assert torch.get_num_threads() == two_threads


def test_an_interrupt_keeps_the_steps_and_measures_the_model(stop_at_call):
    run = train(TwoRules(), seed=0, steps=50, attend=stop_at_call(8))
    assert run.interrupted and run.steps == 7
    assert run.curve[-1][0] == 7
    assert 0 <= run.final["accuracy"] <= 1
    assert run.model is not None


def test_what_an_interrupt_keeps_is_the_start_of_the_full_training(stop_at_call):
    losses = {}
    for name, attend in (("stopped", stop_at_call(8)), ("full", sdpa)):
        losses[name] = train(TwoRules(), seed=0, steps=20, attend=attend).curve
    assert losses["stopped"] == losses["full"][:7]


def test_an_interrupt_before_the_first_step_still_gives_a_run(capsys, stop_at_call):
    run = train(TwoRules(), steps=50, attend=stop_at_call(1), show=True)
    assert run.interrupted and run.steps == 0 and run.curve == []
    assert "stopped before the first step" in capsys.readouterr().err


def test_an_interrupt_while_the_model_is_measured_keeps_the_curve(stop_at_call):
    run = train(TwoRules(), steps=5, attend=stop_at_call(6))
    assert run.interrupted and run.steps == 5 and len(run.curve) == 5
    assert run.final == {}


def test_another_error_in_your_attention_is_not_swallowed():
    def broken(q, k, v, mask):
        raise RuntimeError("size mismatch")

    with pytest.raises(RuntimeError, match="size mismatch"):
        train(TwoRules(), steps=2, attend=broken)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_the_course_attention_trains_as_torch_attention_does(task):
    ours = train(task, seed=0, steps=4, attend=scaled_dot_product_attention)
    theirs = train(task, seed=0, steps=4)
    for (_, a), (_, b) in zip(ours.curve, theirs.curve, strict=True):
        assert a == pytest.approx(b, abs=1e-4)


@pytest.mark.parametrize("steps", [0, -3, True, 2.5, "10"])
def test_an_impossible_number_of_steps_is_refused_with_the_way_out(steps):
    with pytest.raises(ValueError, match=re.escape(f"steps={steps!r}; give a whole number")):
        train(TwoRules(), steps=steps)


def test_the_learning_rate_rises_then_falls_and_stays_positive():
    rates = [schedule(step, 200) for step in range(1, 201)]
    peak = rates.index(max(rates))
    assert max(rates) == pytest.approx(1) and peak == 19
    assert rates[:20] == sorted(rates[:20]) and rates[19:] == sorted(rates[19:], reverse=True)
    assert min(rates) > 0
    assert all(0 < schedule(1, steps) <= 1 for steps in (1, 2, 3))


def test_a_curve_has_at_most_sixty_points_and_ends_at_the_last_step():
    losses = [float(i) for i in range(1, 1001)]
    points = thin(losses)
    assert len(points) == 60 and points[-1][0] == 1000
    assert points[0][1] == pytest.approx(sum(losses[: points[0][0]]) / points[0][0])
    assert thin([2.0, 4.0]) == [(1, 2.0), (2, 4.0)]
    assert thin([]) == []


def test_the_live_line_tells_step_loss_and_time_left():
    progress = Progress(step=250, steps=1000, loss=1.2345, seconds=30.0)
    assert str(progress) == "step 250 of 1,000, loss 1.234, 1 min 30 s left"
    assert [seconds_in_words(s) for s in (0.2, 59.4, 59.6, 125)] == [
        "0 s",
        "59 s",
        "1 min 00 s",
        "2 min 05 s",
    ]


def test_training_is_silent_where_output_is_compared(capsys):
    train(TwoRules(), steps=2)
    assert capsys.readouterr() == ("", "")


def test_training_says_how_it_ended_when_asked(capsys, stop_at_call):
    train(TwoRules(), steps=2, show=True, name="two rules")
    train(TwoRules(), steps=9, show=True, name="two rules", attend=stop_at_call(4))
    done, stopped = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"two rules: 2 steps in \d+ s, loss \d\.\d{3}", done)
    assert re.fullmatch(r"two rules: stopped at step 3 of 9, loss \d\.\d{3}, \d+ s; kept", stopped)


def test_a_terminal_line_is_rewritten_in_place_without_leftovers(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    line = ProgressLine(show=True)
    line.update("a long first line")
    line.update("skipped: too soon after the first")
    line.finish("short")
    text = capsys.readouterr().err
    assert text == "\ra long first line\rshort" + " " * 12 + "\n"


@pytest.mark.slow
def test_a_notebook_shows_one_line_that_stays_and_none_under_nbval():
    import nbformat
    from nbclient import NotebookClient

    code = "from labs_lib.training.loop import train\n"
    code += "from labs_lib.training.retrieval import TwoRules\n"
    cells = [
        code + "run = train(TwoRules(), steps=150, show=True)",
        "run = train(TwoRules(), steps=9)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (shown,) = notebook.cells[0].outputs
    assert shown.output_type == "display_data"
    assert "150 steps in" in shown.data["text/plain"]
    assert notebook.cells[1].outputs == []


def test_measuring_takes_no_gradients():
    model = loop.build(TwoRules(), seed=0)
    loop.measure(TwoRules(), model)
    assert all(p.grad is None for p in model.parameters())
