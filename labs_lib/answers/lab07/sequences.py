"""Answers to repeated_sequence."""

from __future__ import annotations

import torch

from labs_lib.attention import induction

from ..kit import Answer, Right, Wrong


def _places(block, times):
    return torch.arange(block.shape[1] * times)


def _copied(copied):
    """A program with the right tokens and other places."""
    return lambda block, times: (block.repeat(1, times), copied(block, times))


def _tokens(tokens):
    """A program with the right places and other tokens."""
    return lambda block, times: (tokens(block, times), _places(block, times) > block.shape[1])


def _wrapping(block, times):
    at = _places(block, times)
    return (at > block.shape[1]) & (at < at.numel() - 1)


def _whole_batch(block, times):
    right = _places(block, times) > block.shape[1]
    return right.expand(block.shape[0], -1).clone()


def _by_index(block, times):
    at = _places(block, times)
    return block[:, at % block.shape[1]], at - 1 >= block.shape[1]


def _by_cat(block, times):
    period = block.shape[1]
    copied = [False] * (period + 1) + [True] * (period * (times - 1) - 1)
    return torch.cat([block] * times, dim=1), torch.tensor(copied[: period * times])


def _by_search(block, times):
    """Asks of each place whether the token before stood earlier and came before the same."""
    tokens = block.tile(times)
    return tokens, _found_in(tokens[0].tolist())


def _found_in(row):
    found = (
        any(row[j - 1] == row[i - 1] and row[j] == row[i] for j in range(1, i))
        for i in range(len(row))
    )
    return torch.tensor([*found])


def _below_each_other(block, times):
    tokens = block.repeat(times, 1)
    return tokens, torch.arange(tokens.shape[1]) > block.shape[1]


EACH_TOKEN_AGAIN = (
    "Each token stands several times in a row: 7 7 3 3 5 5. The block as a whole is to\ncome again."
)


def _each_again(copied):
    """Each token several times in a row, with the places that somebody finds in that."""

    def program(block, times):
        tokens = block.repeat_interleave(times, dim=1)
        return tokens, copied(tokens, block.shape[1], times)

    return program


def _from_place(first):
    return lambda tokens, period, times: torch.arange(tokens.shape[1]) >= first(period)


REPEATED_SEQUENCE = Answer(
    reference=induction.repeated_sequence,
    wrong=(
        Wrong(
            "first_of_the_second_copy",
            _copied(lambda block, times: _places(block, times) >= block.shape[1]),
            "The first token of the second copy counts as copied. The token before it ends the\n"
            "block and hasn't stood earlier, so nothing tells that the block begins again.",
        ),
        Wrong(
            "one_place_late",
            _copied(lambda block, times: _places(block, times) > block.shape[1] + 1),
            "The second token of the second copy is left out. The token before it has stood\n"
            "earlier, and so has what came next.",
        ),
        Wrong(
            "queries_marked",
            _copied(_wrapping),
            "The last place is left out. You mark places that have a next token; wanted are\n"
            "places whose own token can be copied.",
        ),
        Wrong(
            "only_the_second",
            _copied(lambda block, times: (_places(block, times) > block.shape[1])
                    & (_places(block, times) < 2 * block.shape[1])),
            "With two copies it is right; of more, only the second counts here. Each later one\n"
            "can be copied as well, its first token too: by then the block's end has stood.",
        ),
        Wrong(
            "each_copy_begins_unknown",
            _copied(lambda block, times: (_places(block, times) > block.shape[1])
                    & (_places(block, times) % block.shape[1] != 0)),
            "The first token of the third copy and later ones is left out. By then the end of the\n"
            "block has stood before, and what followed it too.",
        ),
        Wrong(
            "all_but_the_first_place",
            _copied(lambda block, times: _places(block, times) > 0),
            "Places of the first copy count. No token has stood earlier there.",
        ),
        Wrong(
            "turned_over",
            _copied(lambda block, times: _places(block, times) <= block.shape[1]),
            "True and False are exchanged: True means that the place can be copied.",
        ),
        Wrong(
            "as_numbers",
            _copied(lambda block, times: (_places(block, times) > block.shape[1]).long()),
            "The places are right, as numbers 0 and 1. Wanted are bool: with numbers, tokens[:,\n"
            "copied] would pick columns 0 and 1.",
        ),
        Wrong(
            "a_row_for_each_text",
            _copied(_whole_batch),
            "There is a row of places for each text. All texts have the same period, so one row\n"
            "[times * period] is wanted.",
        ),
        Wrong(
            "each_token_again",
            _tokens(lambda block, times: block.repeat_interleave(times, dim=1)),
            EACH_TOKEN_AGAIN,
        ),
        Wrong(
            "each_token_again_from_the_second_copy",
            _each_again(_from_place(lambda period: period)),
            EACH_TOKEN_AGAIN,
        ),
        Wrong(
            "each_token_again_from_the_second_place",
            _each_again(_from_place(lambda period: 1)),
            EACH_TOKEN_AGAIN,
        ),
        Wrong(
            "each_token_again_but_the_first_of_its_kind",
            _each_again(lambda tokens, period, times: torch.arange(tokens.shape[1]) % times > 0),
            EACH_TOKEN_AGAIN,
        ),
        Wrong(
            "each_token_again_and_searched",
            _each_again(lambda tokens, period, times: _found_in(tokens[0].tolist())),
            EACH_TOKEN_AGAIN,
        ),
        Wrong(
            "more_texts",
            lambda block, times: (block.repeat(times, 1), _places(block, times) > block.shape[1]),
            "The texts come again, one below the other: the first axis grew. The copies belong\n"
            "behind each other, along the second.",
        ),
        Wrong(
            "more_texts_and_their_places",
            _below_each_other,
            "The texts come again, one below the other: the first axis grew. The copies belong\n"
            "behind each other, along the second.",
        ),
        Wrong(
            "places_that_predict",
            _copied(lambda block, times: (_places(block, times) >= block.shape[1])
                    & (_places(block, times) < _places(block, times).numel() - 1)),
            "Marked are places at which the next token can be copied. Wanted are places whose own\n"
            "token can be: all one further on.",
        ),
        Wrong(
            "only_the_last",
            _copied(lambda block, times: _places(block, times) > (times - 1) * block.shape[1]),
            "Only the last copy counts here. From the second one on all can be copied, but for\n"
            "the place where the second begins.",
        ),
        Wrong(
            "batch_for_period",
            _copied(lambda block, times: _places(block, times) > block.shape[0]),
            "The number of texts is taken for the period. block is [batch, period].",
        ),
        Wrong(
            "a_list_of_places",
            lambda block, times: (
                block.repeat(1, times), (_places(block, times) > block.shape[1]).tolist()),
            "The places are a Python list. Wanted is a tensor of bool.",
        ),
        Wrong(
            "backwards",
            _tokens(lambda block, times: torch.cat(
                [block if i % 2 == 0 else block.flip(1) for i in range(times)], dim=1)),
            "Every second copy runs backwards.",
        ),
        Wrong(
            "one_copy_more",
            lambda block, times: induction.repeated_sequence(block, times + 1),
            "There is one copy too many: times counts the first one as well.",
        ),
        Wrong(
            "behind_the_middle",
            _copied(lambda block, times: _places(block, times) > block.shape[1] * times // 2),
            "With two copies it is right. With more, copying begins in the second one already:\n"
            "one period from the beginning, not half of the text.",
        ),
        Wrong(
            "always_twice",
            lambda block, times: induction.repeated_sequence(block, 2),
            "The block stands twice, whatever times says.",
        ),
        Wrong(
            "numbers_of_the_places",
            lambda block, times: (
                block.repeat(1, times),
                torch.arange(block.shape[1] + 1, block.shape[1] * times)),
            "These are the numbers of the places. Wanted is True or False for each place of the\n"
            "text.",
        ),
        Wrong(
            "one_place_early",
            _copied(lambda block, times: _places(block, times) >= block.shape[1] - 1),
            "It begins in the first copy. The last token of the block stands there for the first\n"
            "time; so does the step back to the beginning, one place later.",
        ),
        Wrong(
            "all_but_first_places",
            _copied(lambda block, times: _places(block, times) % block.shape[1] > 0),
            "Places of the first copy count too. Nothing of it has stood earlier.",
        ),
        Wrong(
            "first_block_only",
            lambda block, times: (
                block[0].repeat(times), _places(block, times) > block.shape[1]),
            "Only the first block is there, and the batch axis is gone.",
        ),
        Wrong(
            "places_missing",
            lambda block, times: block.repeat(1, times),
            "The tokens are there, the places are missing: return both, as a tuple.",
        ),
        Wrong(
            "places_before_tokens",
            lambda block, times: induction.repeated_sequence(block, times)[::-1],
            "Both are right and stand in the wrong order: tokens first, then places.",
        ),
    ),
    right=(
        Right("by_index", _by_index),
        Right("by_cat", _by_cat),
        Right("by_search", _by_search),
        Right("a_list", lambda block, times: list(induction.repeated_sequence(block, times))),
    ),
)  # fmt: skip
