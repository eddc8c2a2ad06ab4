"""Tokenizers: byte-level BPE rebuilt from tokens and merges, and one face for both models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as _Tokenizer


def byte_level_bpe(
    tokens: Sequence[str], merges: Iterable[str], special: Sequence[str]
) -> _Tokenizer:
    """Return a byte-level BPE that splits numbers into single digits.

    tokens are in the order of their ids, merges "left right" in the order of their rank, special
    those of the tokens that are never split. Source: Radford et al. 2019, section 2.2.
    """
    pairs = [(left, right) for left, right in (merge.split(" ") for merge in merges)]
    bpe = models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=pairs)
    made = _Tokenizer(bpe)
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    return made


class Tokenizer:
    """Text to token ids and back.

    Special tokens written in a text are taken as such. Nothing is cut off and nothing padded.
    """

    def __init__(self, inner: _Tokenizer):
        inner.no_padding()
        inner.no_truncation()
        self._inner = inner
        added = inner.get_added_tokens_decoder()
        self.special = {token.content: i for i, token in sorted(added.items()) if token.special}

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Return the tokenizer of a tokenizer.json file."""
        return cls(_Tokenizer.from_file(str(path)))

    def __len__(self) -> int:
        return self._inner.get_vocab_size()

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Return token ids; `special` adds those that the model wants around a text, if any."""
        return self._inner.encode(text, add_special_tokens=special).ids

    def decode(self, ids: Iterable[int], *, special: bool = True) -> str:
        """Return the text of ids; `special=False` leaves special tokens out."""
        return self._inner.decode(list(ids), skip_special_tokens=not special)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return each token as a person reads it; half a letter shows as �."""
        if isinstance(self._inner.decoder, decoders.ByteLevel):
            return [self._inner.decode([i], skip_special_tokens=False) for i in ids]
        return [self._inner.id_to_token(i) or "" for i in ids]

    def id(self, token: str) -> int:
        """Return the id of a token as the vocabulary spells it; raises KeyError for another."""
        found = self._inner.token_to_id(token)
        if found is None:
            raise KeyError(f"{token!r} is no token of this model")
        return found
