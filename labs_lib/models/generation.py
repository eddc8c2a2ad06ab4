"""Let the decoder write on: always the likeliest token, with or without a cache."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from labs_lib.models.hooks import Hooks
from labs_lib.models.kv_cache import growing
from labs_lib.models.layer import Attend
from labs_lib.models.smollm2 import SmolLM2

ENDS = ("<|im_end|>", "<|endoftext|>")
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def generate(model: SmolLM2, prompt: str | Tensor, max_new: int = 32, **how) -> str:
    """Return what the model writes after a prompt, without the prompt.

    The prompt is a text or token ids [1, seq]; keywords are those of `stream`.
    """
    return model.words.decode(stream(model, prompt, max_new, **how), special=False)


@torch.no_grad()
def stream(
    model: SmolLM2,
    prompt: str | Tensor,
    max_new: int = 32,
    *,
    cached: bool = True,
    hooks: Hooks | None = None,
    attend: Attend | None = None,
) -> Iterator[int]:
    """Yield the likeliest next token again and again, until the text ends or max_new are written.

    The prompt is a text or token ids [1, seq]. With `cached`, each pass reads the one new token
    only; else the whole text anew, as in a copy of the course that leaves the cache to its student.
    Raises ValueError for an empty prompt, for several texts, and for max_new below 0.
    """
    ids = model.ids(prompt) if isinstance(prompt, str) else prompt
    if ids.ndim != 2 or ids.shape[0] != 1:
        raise ValueError(f"the prompt is {tuple(ids.shape)}; one text at a time is [1, seq]")
    if max_new < 0:
        raise ValueError(f"max_new is {max_new}; it is the number of tokens to write, from 0 on")
    ends = {model.words.id(token) for token in ENDS}
    cache, unread = (growing() if cached else None), ids
    for _ in range(max_new):
        logits = model(unread, cache=cache, hooks=hooks, attend=attend, last=True)  # [1, 1, vocab]
        token = int(logits[0, -1].argmax())
        if token in ends:
            return
        yield token
        new = torch.tensor([[token]])
        unread = new if cache is not None else torch.cat([unread.cpu(), new], dim=1)


def chat_prompt(question: str, system: str = SYSTEM) -> str:
    """Return a question as the model was trained to be asked, up to where its answer begins."""
    return (
        f"<|im_start|>system\n{system}<|im_end|>\n"
        f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    )
