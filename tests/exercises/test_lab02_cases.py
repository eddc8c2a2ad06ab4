"""Lab 02's cases tell right from wrong at every seed, and read a message as a person would."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from labs_lib.answers import answer
from labs_lib.exercises import exercise
from labs_lib.exercises.kit import Case
from labs_lib.exercises.lab02_cases import call_head_config


def refused_with(message):
    def config(d_model, n_head, head_dim=None):
        raise ValueError(message)

    return call_head_config(config, Case("refuse: a little too wide", (1030, 8)))


@pytest.mark.parametrize(
    "message",
    [
        "1024 and 1032 do",
        "1,024 or 1,032",
        "take 1024,1032",
        "1030 % 8 is 6; nearest: [1024, 1032]",
    ],
)
def test_a_message_names_its_numbers_in_any_writing(message):
    assert sorted(refused_with(message).values()) == ["1024", "1032", "ValueError", "nothing"]


@pytest.mark.parametrize("message", ["", "11024 and 10320", "102 and 103", "1030 over 8"])
def test_a_message_that_names_other_numbers_names_nothing(message):
    assert list(refused_with(message).values()).count("not named") == 2


def test_what_was_made_in_spite_of_all_is_told_apart():
    made = call_head_config(
        lambda d_model, n_head: SimpleNamespace(head_dim=d_model / n_head),
        Case("refuse: no width", (0, 8)),
    )
    assert made == {"refused with": "no error", "made instead": "a head_dim of 0"}


class Lazy:
    d_model, n_head = 768, 12

    @property
    def head_dim(self):
        return self.no_such_name


def test_a_size_that_is_not_kept_is_named_and_one_that_fails_shows_its_own_error():
    case = Case("768 over 12", (768, 12))
    made = call_head_config(lambda *sizes: SimpleNamespace(n_head=12, head_dim=64), case)
    assert made["kept as attributes"] == "n_head, head_dim"
    assert call_head_config(lambda *sizes: {}, case)["kept as attributes"].endswith("of type dict")
    with pytest.raises(AttributeError, match="no_such_name"):
        call_head_config(lambda *sizes: Lazy(), case)


def test_layouts_are_true_and_false_at_every_seed_and_drawn_by_it():
    item = exercise("lab02.is_contiguous_per_head")
    reference = answer(item.name).reference
    drawn = set()
    for seed in range(8):
        found = [reference(*case.args) for case in item.make_cases(seed)]
        assert found[:10].count(True) == 6
        drawn.add(tuple(found[10:]))
    assert len(drawn) > 3
