"""Answers to induction_score."""

from __future__ import annotations

import torch

from labs_lib.attention import induction

from ..kit import Answer, Right, Wrong
from .whole_text import WHOLE_TEXT


def _copies(tokens):
    """Where an earlier place holds the query's token: bool [batch, seq, seq]."""
    place = torch.arange(tokens.shape[1])
    return (tokens[:, :, None] == tokens[:, None, :]) & (place[:, None] > place)


def _last(tokens):
    return torch.where(_copies(tokens), torch.arange(tokens.shape[1]), -1).amax(dim=-1)


def _first(tokens):
    seq = tokens.shape[1]
    return torch.where(_copies(tokens), torch.arange(seq), seq).amin(dim=-1)


def _counts(tokens, real):
    has = _copies(tokens).any(dim=-1)
    return has if real is None else has & real


def _at(weights, key):
    """The weight of each query on its key [batch, seq]: [batch, n_head, seq]."""
    key = key.clamp(0, weights.shape[-1] - 1)
    return weights.gather(-1, key[:, None, :, None].expand(-1, weights.shape[1], -1, 1))[..., 0]


def _mean(found, counts):
    return (found * counts[:, None]).sum(dim=(0, 2)) / counts.sum()


def _looks(key, counts=_counts):
    """A program that takes the weight on other keys, or of other queries."""

    def program(weights, tokens, real=None):
        return _mean(_at(weights, key(tokens)), counts(tokens, real))

    return program


def _after(tokens):
    return _last(tokens) + 1


def _divided_by_all(weights, tokens, real=None):
    counts = _counts(tokens, real)
    return (_at(weights, _after(tokens)) * counts[:, None]).mean(dim=(0, 2))


def _divided_by_real(weights, tokens, real=None):
    counts = _counts(tokens, real)
    total = counts.numel() if real is None else real.sum()
    return (_at(weights, _after(tokens)) * counts[:, None]).sum(dim=(0, 2)) / total


def _fixed_offset(weights, tokens, real=None):
    return weights.diagonal(1 - tokens.shape[1] // 2, dim1=-2, dim2=-1).mean(dim=(0, 2))


def _padding_divides(weights, tokens, real=None):
    counts = _counts(tokens, real)
    found = (_at(weights, _after(tokens)) * counts[:, None]).sum(dim=(0, 2))
    return found / _copies(tokens).any(dim=-1).sum()


def _queries_without_a_copy(weights, tokens, real=None):
    real = torch.ones_like(tokens, dtype=torch.bool) if real is None else real
    return _mean(_at(weights, _after(tokens)), real)


def _mean_of_means(weights, tokens, real=None):
    counts = _counts(tokens, real)
    found = _at(weights, _after(tokens)) * counts[:, None]
    return (found.sum(dim=2) / counts.sum(dim=1, keepdim=True)).mean(dim=0)


def _all_copies(weights, tokens, real=None):
    """Adds the weights behind all earlier copies."""
    behind = _copies(tokens).roll(1, dims=-1).to(weights)
    found = (weights * behind[:, None]).sum(dim=-1)
    return _mean(found, _counts(tokens, real))


def _mean_over_copies(weights, tokens, real=None):
    behind = _copies(tokens).roll(1, dims=-1).to(weights)
    found = (weights * behind[:, None]).sum(dim=-1) / behind.sum(dim=-1).clamp_min(1)[:, None]
    return _mean(found, _counts(tokens, real))


def _turned(weights, tokens, real=None):
    return induction.induction_score(weights.mT, tokens, real)


def _half_a_sequence(weights, tokens, real=None):
    """Takes it for granted that the text is a block twice."""
    seq = tokens.shape[1]
    place = torch.arange(seq // 2, seq)
    return weights[:, :, place, place - seq // 2 + 1].mean(dim=(0, 2))


def _hits(weights, tokens, real=None):
    best = weights.argmax(dim=-1) == _after(tokens)[:, None]
    return _mean(best.to(weights), _counts(tokens, real)) + 0.0 * weights.sum()


def _largest_text(weights, tokens, real=None):
    return _at(weights, _after(tokens)).mul(_counts(tokens, real)[:, None]).amax(dim=(0, 2))


def _summed(weights, tokens, real=None):
    return (_at(weights, _after(tokens)) * _counts(tokens, real)[:, None]).sum(dim=(0, 2))


def _first_text(weights, tokens, real=None):
    real = None if real is None else real[:1]
    return induction.induction_score(weights[:1], tokens[:1], real)


def _next_query(weights, tokens, real=None):
    """Takes the row behind the query, as if the row of i spoke of token i - 1."""
    counts = _counts(tokens, real)
    counts = counts & (torch.arange(tokens.shape[1]) < tokens.shape[1] - 1)
    return _mean(_at(weights.roll(-1, dims=2), _after(tokens)), counts)


def _one_memory(weights, tokens, real=None):
    """A dictionary that isn't emptied between texts."""
    found, last = [], {}
    for b, row in enumerate(tokens.tolist()):
        for i, token in enumerate(row):
            if token in last and (real is None or real[b, i]) and last[token] + 1 < len(row):
                found.append(weights[b, :, i, last[token] + 1])
            last[token] = i
    return torch.stack(found).mean(dim=0)


def _tensors_as_names(weights, tokens, real=None):
    """A dictionary whose keys are tensors: none is ever found again."""
    found = []
    for b, row in enumerate(tokens):
        last = {}
        for i, token in enumerate(row):
            if token in last:
                found.append(weights[b, :, i, last[token] + 1])
            last[token] = i
    return torch.stack(found).mean(dim=0)


def _includes_itself(weights, tokens, real=None):
    """Looks for the copy among all places up to the query: it finds the query."""
    place = torch.arange(tokens.shape[1])
    real = torch.ones_like(tokens, dtype=torch.bool) if real is None else real
    key = (place + 1).expand_as(tokens)
    inside = real & (place + 1 < tokens.shape[1])
    return _mean(_at(weights, key) * inside[:, None], real)


def _itself_inside(weights, tokens, real=None):
    """Finds each query itself, and leaves out those behind which the text ends."""
    found = []
    for b, row in enumerate(tokens.tolist()):
        for i in range(len(row) - 1):
            if real is None or real[b, i]:
                found.append(weights[b, :, i, i + 1])
    return torch.stack(found).mean(dim=0)


def _loop(weights, tokens, real=None):
    batch, n_head, seq, _ = weights.shape
    found = [[] for _ in range(n_head)]
    for b in range(batch):
        for i in range(seq):
            if real is not None and not real[b, i]:
                continue
            earlier = [j for j in range(i) if tokens[b, j] == tokens[b, i]]
            if earlier:
                for h in range(n_head):
                    found[h].append(weights[b, h, i, earlier[-1] + 1])
    return torch.stack([torch.stack(one).mean() for one in found])


def _by_dictionary(weights, tokens, real=None):
    texts, queries, keys = [], [], []
    for b, row in enumerate(tokens.tolist()):
        last = {}
        for i, token in enumerate(row):
            if token in last and (real is None or bool(real[b, i])):
                texts.append(b), queries.append(i), keys.append(last[token] + 1)
            last[token] = i
    return weights[texts, :, queries, keys].mean(dim=0)


def _by_mask(weights, tokens, real=None):
    seq = tokens.shape[1]
    target = torch.nn.functional.one_hot(_after(tokens), seq).to(weights)  # [batch, seq, seq]
    target = target * _counts(tokens, real)[..., None]
    return torch.einsum("bhqk,bqk->h", weights, target) / target.sum()


FINDS_ITSELF = (
    "The search for the same token begins at the query and finds the query: the place\n"
    "after it can't be seen. Begin one place earlier."
)

INDUCTION_SCORE = Answer(
    reference=induction.induction_score,
    wrong=(
        Wrong(
            "the_copy_itself",
            _looks(_last),
            "This is the weight on the earlier copy itself. A head that looks there finds equal\n"
            "tokens; an induction head looks one place further, at what came next.",
        ),
        Wrong(
            "before_the_copy",
            _looks(lambda tokens: _last(tokens) - 1),
            "This is the weight on the token before the earlier copy. What came next stands on\n"
            "the other side.",
        ),
        Wrong(
            "before_the_copy_and_round",
            _looks(lambda tokens: (_last(tokens) - 1) % tokens.shape[1]),
            "This is the weight on the token before the earlier copy. What came next stands on\n"
            "the other side.",
        ),
        Wrong(
            "the_next_query",
            _next_query,
            "This is the weight of query i + 1. The query that stands on the token itself is i;\n"
            "only the key is one place further.",
        ),
        Wrong(
            "one_memory_for_all_texts",
            _one_memory,
            "Copies are found in other texts of the batch: what has been seen isn't forgotten\n"
            "when a new text begins.",
        ),
        Wrong(
            "tensors_as_names",
            _tensors_as_names,
            "No copy was found in any text. Is it tensors that you look up in a dict or a set?\n"
            "Two tensors are two keys, whatever they hold: tokens.tolist() gives numbers.",
        ),
        Wrong(
            "two_after",
            _looks(lambda tokens: _last(tokens) + 2),
            "This looks two places behind the earlier copy: one too far.",
        ),
        Wrong(
            "first_copy",
            _looks(lambda tokens: _first(tokens) + 1),
            "With two copies it is right. Where a token stood more often, you take what followed\n"
            "the first time; wanted is the last time.",
        ),
        Wrong(
            "all_copies",
            _all_copies,
            "The weights behind all earlier copies are added up. Wanted is the last copy only.",
        ),
        Wrong(
            "mean_over_copies",
            _mean_over_copies,
            "The weights behind all earlier copies are averaged. Wanted is the last copy only.",
        ),
        Wrong(
            "the_token_before",
            _looks(lambda tokens: torch.arange(tokens.shape[1]).expand_as(tokens) - 1),
            "This is the weight on the token before the query, wherever its copy stands.",
        ),
        Wrong(
            "the_query_itself",
            _looks(lambda tokens: torch.arange(tokens.shape[1]).expand_as(tokens)),
            "This is the weight of each query on itself.",
        ),
        *WHOLE_TEXT,
        Wrong("finds_itself", _includes_itself, FINDS_ITSELF),
        Wrong("finds_itself_inside", _itself_inside, FINDS_ITSELF),
        Wrong(
            "half_a_sequence",
            _half_a_sequence,
            "For a block that stands twice it is right. You count half a sequence back instead of\n"
            "looking where the token stood: in real texts copies lie anywhere.",
        ),
        Wrong(
            "all_queries_divide",
            _divided_by_all,
            "The sum is right and divided by all queries. Those whose token hasn't stood before\n"
            "don't count; in a block that stands twice that would halve every score.",
        ),
        Wrong(
            "real_queries_divide",
            _divided_by_real,
            "The sum is right and divided by all real queries. Those whose token hasn't stood\n"
            "before don't count.",
        ),
        Wrong(
            "first_half_counts",
            _queries_without_a_copy,
            "Queries whose token hasn't stood before are in the mean, with their weight on some\n"
            "other place. They have nothing to copy and don't count.",
        ),
        Wrong(
            "padding_counts",
            _looks(_after, lambda tokens, real: _counts(tokens, None)),
            "Without padding it is right. Padded places hold equal tokens, find each other as\n"
            "copies, and count here as well.",
        ),
        Wrong(
            "padding_divides",
            _padding_divides,
            "Padded queries are left out of the sum, and still counted in the number that it is\n"
            "divided by.",
        ),
        Wrong(
            "mean_of_means",
            _mean_of_means,
            "Each text has its own mean here, and then the texts are averaged, so that a query of\n"
            "a text with few copies counts more. All queries that count are to count the same.",
        ),
        Wrong(
            "turned_over",
            _turned,
            "Queries and keys are exchanged. Row i of the weights belongs to the query.",
        ),
        Wrong(
            "summed",
            _summed,
            "The weights are added up and not averaged.",
        ),
        Wrong(
            "how_often_the_largest",
            _hits,
            "You count how often the right key has the largest weight. Wanted is the weight\n"
            "itself, on average.",
        ),
        Wrong(
            "highest_query",
            _largest_text,
            "This is the query that does best. Wanted is the mean.",
        ),
        Wrong(
            "fixed_offset",
            _fixed_offset,
            "This is a diagonal, half of the text back: right for nothing but a block that stands\n"
            "twice. In a text the copy may be anywhere; look for it.",
        ),
        Wrong(
            "first_text_only",
            _first_text,
            "Only the first text of the batch is looked at.",
        ),
        Wrong(
            "all_heads_together",
            lambda weights, tokens, real=None: induction.induction_score(
                weights, tokens, real).mean(),
            "All heads are averaged into one number. Each has its own.",
        ),
        Wrong(
            "softmaxed_again",
            lambda weights, tokens, real=None: induction.induction_score(
                weights.softmax(-1), tokens, real),
            "The weights went through a softmax once more. They add up to 1 already.",
        ),
    ),
    right=(
        Right("loop", _loop),
        Right("dictionary", _by_dictionary),
        Right("by_a_mask", _by_mask),
        Right("float64_inside", lambda weights, tokens, real=None: induction.induction_score(
            weights.double(), tokens, real).to(weights.dtype)),
    ),
)  # fmt: skip
