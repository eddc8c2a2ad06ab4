"""The head split shows every pair of sizes and tells right from wrong, also in a student's own."""

from __future__ import annotations

import pytest
import torch

from labs_lib.plots.byte_map import byte_map, owners
from labs_lib.widgets.head_split import OWN, RIGHT, WRONG, agreement, head_split


def wrong(x, n_head):
    return x.reshape(x.shape[0], n_head, x.shape[1], -1)


def test_the_wrong_reshape_is_seen_and_counted():
    panel = head_split(12, 768, seq=10)
    assert "Every number is where it belongs." in panel.message
    assert "768 to its next token, 64 to the next head." in panel.message
    right_picture = panel.picture
    panel.way = WRONG
    assert "1.67 %" in panel.message
    assert "64 to its next token, 640 to the next head." in panel.message
    assert panel.picture != right_picture


def test_agreement_of_the_wrong_reshape_is_what_a_count_by_hand_gives():
    agreed = 0
    for token in range(10):
        for place in range(768):
            head, number = divmod(place, 64)
            agreed += token * 768 + place == head * 640 + token * 64 + number
    places = torch.arange(7680).view(1, 10, 768)
    assert agreement(wrong(places, 12)[0]) == agreed / 7680


@pytest.mark.parametrize(("n_head", "seq"), [(1, 10), (12, 1)])
def test_sizes_that_hide_the_mistake_say_so(n_head, seq):
    panel = head_split(n_head, 768, seq=seq)
    panel.way = WRONG
    assert "the wrong reshape is right too" in panel.message


@pytest.mark.parametrize("way", [RIGHT, WRONG])
def test_every_pair_is_drawn_or_explained_and_never_raises(way):
    panel = head_split()
    panel.way = way
    for n_head in (1, 5, 12, 32):
        for d_model in (8, 96, 1536):
            panel.set(n_head=n_head, d_model=d_model)
            assert not panel.failed, panel.message
            assert panel.legal == (d_model % n_head == 0)
            assert panel.legal or panel.offers


def test_a_function_of_ones_own_is_drawn_and_its_mistakes_shown():
    panel = head_split(4, 32, seq=6, split=wrong)
    assert panel.way == OWN
    assert "% of the numbers" in panel.message
    panel = head_split(4, 32, seq=6, split=lambda x, n_head: x)
    assert panel.failed
    assert panel.message.startswith("Your function gave [1, 6, 32]; ")
    assert "[1, 4, 6, 8]" in panel.message


def _titles(split):
    """The title that the browser draws, and that of the still."""
    panel = head_split(4, 32, seq=6, split=split)
    return panel.own["title"], panel.still.figure.axes[0].get_title(loc="left")


@pytest.mark.parametrize(
    ("split", "title"),
    [
        (lambda x, n: x.unflatten(2, (n, -1)).transpose(1, 2), "Each head has 8 of the 32 numbers"),
        (wrong, "A head has pieces of some queries and nothing of others"),
        (lambda x, n: x.unflatten(2, (-1, n)).permute(0, 3, 1, 2), "numbers of every query, but"),
        (
            lambda x, n: x.unflatten(2, (n, -1)).transpose(1, 2).flip(1),
            "numbers of every query, but",
        ),
        (lambda x, n: x.unflatten(2, (n, -1)).transpose(1, 2).flip(3), "own numbers, in another"),
    ],
    ids=["right", "one reshape", "dealt out one by one", "heads backwards", "numbers backwards"],
)
def test_the_title_says_what_a_head_has_and_has_not(split, title):
    in_browser, in_still = _titles(split)
    assert title in in_browser and in_still == in_browser


def test_a_function_not_written_yet_is_no_error():
    def stub(x, n_head):
        raise NotImplementedError

    panel = head_split(4, 32, seq=6, split=stub)
    assert not panel.failed
    assert "Write split_heads" in panel.message


def test_the_memory_map_names_the_head_of_each_place():
    places = torch.tensor([[[0, 1], [4, 5]], [[2, 3], [6, 7]]])
    assert owners(places).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1]]
    assert len(byte_map(places).texts) == 4


@pytest.mark.parametrize("bad", [torch.zeros(2, 2, 2), torch.arange(4)])
def test_the_memory_map_refuses_what_is_no_arrangement_of_places(bad):
    with pytest.raises(ValueError, match=r"place"):
        byte_map(bad)
