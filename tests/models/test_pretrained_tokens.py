"""Text to tokens and back, in several scripts."""

from __future__ import annotations

import json

import independent
import pytest

FIGURES = json.loads(independent.FIGURES.read_text(encoding="utf-8"))
TEXTS = [*independent.TEXTS, *independent.TOKENS_ONLY]


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_byte_level_tokens_are_those_of_llama_cpp(smollm2, number):
    assert smollm2.tokenizer.encode(TEXTS[number]) == FIGURES["llama_cpp"]["ids"][number]


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_word_pieces_are_those_of_transformers(minilm, number):
    assert minilm.tokenizer.encode(TEXTS[number]) == FIGURES["minilm"]["ids"][number]


@pytest.mark.parametrize("text", TEXTS)
def test_byte_level_tokens_lose_nothing(smollm2, text):
    tokenizer = smollm2.tokenizer
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_empty_text_has_no_token_or_the_two_around_it(minilm, smollm2):
    assert smollm2.tokenizer.encode("") == []
    assert minilm.tokenizer.tokens(minilm.tokenizer.encode("")) == ["[CLS]", "[SEP]"]
    assert minilm.tokenizer.encode("", special=False) == []


def test_special_tokens_in_a_text_are_one_token_each(smollm2, minilm):
    ids = smollm2.tokenizer.encode("a<|im_end|>b")
    assert ids[1] == smollm2.tokenizer.special["<|im_end|>"] == smollm2.tokenizer.id("<|im_end|>")
    assert smollm2.tokenizer.decode(ids, special=False) == "ab"
    assert minilm.tokenizer.special["[MASK]"] in minilm.tokenizer.encode("a [MASK] b")


def test_numbers_are_read_digit_by_digit_after_any_spaces(smollm2):
    tokenizer = smollm2.tokenizer
    assert tokenizer.tokens(tokenizer.encode("a   907")) == ["a", "   ", "9", "0", "7"]


def test_tokens_are_readable(smollm2, minilm):
    ids = smollm2.tokenizer.encode("The café opens.")
    assert smollm2.tokenizer.tokens(ids) == ["The", " café", " opens", "."]
    ids = minilm.tokenizer.encode("unaffordable", special=False)
    assert "".join(minilm.tokenizer.tokens(ids)).replace("##", "") == "unaffordable"


def test_long_text_is_neither_cut_off_nor_padded(minilm):
    assert len(minilm.tokenizer.encode("word " * 400)) == 402
    assert len(minilm.tokenizer.encode("word")) == 3


def test_vocabularies_have_their_size(minilm, smollm2):
    assert len(minilm.tokenizer) == minilm.shape.vocab
    assert len(smollm2.tokenizer) == smollm2.shape.vocab


def test_unknown_token_is_named(smollm2):
    with pytest.raises(KeyError, match="no-such-token"):
        smollm2.tokenizer.id("no-such-token")
