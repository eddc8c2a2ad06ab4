"""SmolLM2's induction heads: who they are, and what is lost without them."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from labs_lib import paths
from labs_lib.models.hooks import Head, Hooks
from labs_lib.models.model import Model
from labs_lib.models.roles import scores_on
from labs_lib.models.smollm2 import SmolLM2

N_BLOCK, BLOCK = 4, 50  # random blocks, and how many tokens each has
FIRST_ORDINARY = 100  # tokens below are marks of the tokenizer and single bytes
TO_FIND, TO_JUDGE = 0, 1  # seeds: heads are chosen on other blocks than they are judged on
CLEAN = 0.5  # a head above this counts as an induction head
N_RANDOM = 3  # sets of random heads
N_PASSAGE, PASSAGE = 4, 256  # pieces of documentation, and how many tokens each has
TEXT = "We bought it from a man called Vlorin Teskapp. The next day we went back to see Vlorin"
EXAMPLES = {  # a text, and the word that copying, or translating, would give
    "an invented name": (TEXT, " Teskapp"),
    "the doctor": ("Zhang is a doctor. Li is a teacher. Zhang is a", " doctor"),
    "the doctor, in Chinese": ("张三是医生。李四是老师。张三是", "医"),
    "a French word": (
        "English: apple\nFrench: pomme\nEnglish: dog\nFrench: chien\nEnglish: book\nFrench:",
        " livre",
    ),
    "a Chinese word": ("英文: apple 中文: 苹果\n英文: dog 中文: 狗\n英文: book 中文:", "书"),
}


def random_blocks(vocab: int, seed: int, blocks: int = N_BLOCK) -> Tensor:
    """Return random token ids, each row a block that stands twice: [blocks, 2 * BLOCK]."""
    generator = torch.Generator().manual_seed(seed)
    once = torch.randint(FIRST_ORDINARY, vocab, (blocks, BLOCK), generator=generator)
    return once.repeat(1, 2)


def copy_mask(ids: Tensor, after: int = 1) -> Tensor:
    """Return where a copying head would look, bool [seq, seq], for token ids [seq].

    Behind the last place where the query's token stood before, `after` places further.
    """
    seq = len(ids)
    mask = torch.zeros(seq, seq, dtype=torch.bool)
    last: dict[int, int] = {}
    for place, token in enumerate(ids.tolist()):
        if token in last:
            mask[place, last[token] + after] = True
        last[token] = place
    return mask


def head_scores(model: Model, rows: Tensor, after: int = 1) -> Tensor:
    """Return each head's share of weight where it would copy from, [n_layer, n_head]."""
    hooks = Hooks(keep="weights")
    with torch.no_grad():
        model.look(rows, hooks)
    every = hooks.stacked("weights").unbind(dim=1)  # of each row: [n_layer, n_head, seq, seq]
    found = [scores_on(w, copy_mask(row, after)) for w, row in zip(every, rows, strict=True)]
    return torch.stack(found).mean(dim=0)


def best_heads(scores: Tensor, count: int) -> list[Head]:
    """Return the (layer, head) pairs of the highest scores [n_layer, n_head], best first."""
    return [divmod(int(i), scores.shape[1]) for i in scores.flatten().topk(count).indices]


def other_heads(
    size: tuple[int, int], count: int, seed: int, *, but: Collection[Head], layers: Sequence[int]
) -> list[Head]:
    """Return as many random (layer, head) pairs of these layers, none of them in `but`."""
    every = [(at, h) for at in layers for h in range(size[1]) if (at, h) not in set(but)]
    return random.Random(seed).sample(every, count)


def copy_losses(model: SmolLM2, rows: Tensor, ablate: Collection[Head] = ()) -> tuple[float, float]:
    """Return the loss in nats on the first copies and on the second, for rows [rows, 2 * copy]."""
    half = rows.shape[1] // 2
    losses = _losses(model, rows, ablate)  # [rows, seq - 1]
    return float(losses[:, : half - 1].mean()), float(losses[:, half:].mean())


def passages(model: SmolLM2) -> Tensor:
    """Return pieces of documentation, evenly spread over data/text: [N_PASSAGE, PASSAGE] ids."""
    text = (paths.data() / "text" / "python_docs.txt").read_text(encoding="utf-8")
    found = []
    for number in range(N_PASSAGE):
        start = text.index("\n\n", len(text) * number // N_PASSAGE) + 2
        found.append(model.ids(text[start : start + 8 * PASSAGE])[0, :PASSAGE])
    return torch.stack(found)


def prose_losses(model: SmolLM2, rows: Tensor, ablate: Collection[Head] = ()) -> Tensor:
    """Return the loss in nats over all tokens, over those that copying gives, and the others: [3].

    Copying gives a token that also came next when the token before it last stood there.
    """
    losses = _losses(model, rows, ablate)
    copied = torch.stack([copied_next(row) for row in rows])
    return torch.stack([losses.mean(), losses[copied].mean(), losses[~copied].mean()])


def copied_next(ids: Tensor) -> Tensor:
    """Return for each next token of ids [seq] whether copying gives it: bool [seq - 1]."""
    mask = copy_mask(ids)[:-1]  # [seq - 1, seq]
    where = mask.int().argmax(dim=1)
    return mask.any(dim=1) & (ids[where] == ids[1:])


def next_words(
    model: SmolLM2, text: str, wanted: str, ablate: Collection[Head] = (), most: int = 4
) -> dict[str, object]:
    """Return the likeliest next tokens of a text, and how likely the wanted one is to begin."""
    with torch.no_grad():
        logits = model(model.ids(text), hooks=Hooks(ablate=ablate), last=True)
    likely = logits[0, -1].softmax(dim=-1)
    top = likely.topk(most)
    first = model.words.encode(wanted)[0]
    return {
        "top": model.words.tokens(top.indices.tolist()),
        "likely": top.values.tolist(),
        "wanted": float(likely[first]),
        "rank": int((likely > likely[first]).sum()) + 1,
    }


def _losses(model: SmolLM2, ids: Tensor, ablate: Collection[Head]) -> Tensor:
    with torch.no_grad():
        return model.losses(ids, hooks=Hooks(ablate=ablate))
