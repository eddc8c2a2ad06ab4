"""A small language model over bytes: two pre-norm layers, learned positions, tied embeddings."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labs_lib import paths
from labs_lib.training.layers import Attend, AttentionLayer

N_BYTE = 128  # the text is ASCII: a byte is its own token id
BLOCK = 8192  # bytes; every tenth block is held out
HELD_OUT_EVERY = 10
QUIET_START = 0.2  # at first the blocks whisper, else their noise drowns the embeddings
N_TEST_WINDOW = 1024
TEST_BATCH = 128


@dataclass(frozen=True)
class ByteText:
    """Predict the next byte of documentation text; the settings name one variant of the model."""

    threads: ClassVar[int] = 2

    n_head: int = 8
    n_kv_head: int | None = None
    sliced: bool = False
    output: bool = True
    d_model: int = 64
    d_ffn: int = 256
    n_layer: int = 2
    context: int = 64
    batch: int = 16
    steps: int = 600
    learning_rate: float = 1e-2

    def build(self, attend: Attend | None = None) -> "ByteModel":
        """Return the untrained model."""
        return ByteModel(self, attend)

    def loss(self, model: "ByteModel", generator: torch.Generator) -> Tensor:
        """Return the mean cross-entropy in nats a byte, a scalar, on random training windows."""
        train, _ = text_parts()
        starts = torch.randint(len(train) - self.context, (self.batch,), generator=generator)
        return window_loss(model, train, starts, self.context)

    def evaluate(self, model: "ByteModel") -> dict[str, float]:
        """Return the loss in nats a byte on 1,024 fixed windows of the held-out part."""
        _, held_out = text_parts()
        starts = torch.linspace(0, len(held_out) - self.context - 1, N_TEST_WINDOW).long()
        losses = [window_loss(model, held_out, s, self.context) for s in starts.split(TEST_BATCH)]
        return {"loss": torch.stack(losses).mean().item()}


class ByteModel(nn.Module):
    """A causal transformer over bytes; its logits use the embedding table again."""

    mask: Tensor  # bool [context, context]

    def __init__(self, task: ByteText, attend: Attend | None = None):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(N_BYTE, task.d_model) * task.d_model**-0.5)
        self.position = nn.Parameter(torch.randn(task.context, task.d_model) * task.d_model**-0.5)
        self.blocks = nn.ModuleList(Block(task, attend) for _ in range(task.n_layer))
        self.norm = nn.LayerNorm(task.d_model)
        ones = torch.ones(task.context, task.context, dtype=torch.bool)
        self.register_buffer("mask", ones.tril(), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits [batch, seq, N_BYTE] of the bytes after tokens [batch, seq <= context]."""
        seq = tokens.shape[1]
        x = self.embedding[tokens] + self.position[:seq]  # [batch, seq, d_model]
        for block in self.blocks:
            x = block(x, self.mask[:seq, :seq])
        return self.norm(x) @ self.embedding.T

    @property
    def stack(self) -> list["Block"]:
        """The blocks, in the order in which x passes them."""
        return cast("list[Block]", list(self.blocks))


class Block(nn.Module):
    """Attention, then a two-layer network, each on a normalised copy, added to the stream."""

    def __init__(self, task: ByteText, attend: Attend | None = None):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(task.d_model), nn.LayerNorm(task.d_model)
        self.attention = AttentionLayer(
            task.d_model,
            task.n_head,
            n_kv_head=task.n_kv_head,
            sliced=task.sliced,
            output=task.output,
            attend=attend,
        )
        self.wide = nn.Linear(task.d_model, task.d_ffn)
        self.back = nn.Linear(task.d_ffn, task.d_model)
        with torch.no_grad():
            self.attention.W_V.mul_(QUIET_START)
            self.back.weight.mul_(QUIET_START)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return x [batch, seq, d_model] with what both halves added."""
        x = x + self.attention(self.norm_1(x), mask=mask)
        return x + self.back(F.relu(self.wide(self.norm_2(x))))


def window_loss(model: ByteModel, text: Tensor, starts: Tensor, context: int) -> Tensor:
    """Return the mean loss in nats a byte, a scalar, on windows of `context` bytes of text [n].

    starts is [batch], the place where each window begins.
    """
    windows = text[starts[:, None] + torch.arange(context + 1)]
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def head_weights(model: ByteModel, tokens: Tensor) -> list[Tensor]:
    """Return each layer's weights for tokens [batch, seq]: [batch, n_head, seq, seq]."""
    seq = tokens.shape[1]
    mask, found = model.mask[:seq, :seq], []
    x = model.embedding[tokens] + model.position[:seq]  # [batch, seq, d_model]
    for block in model.stack:
        found.append(block.attention.weights(block.norm_1(x), mask=mask))
        x = block(x, mask)
    return found


def text_path() -> Path:
    """Return where the text lies."""
    return paths.data() / "text" / "python_docs.txt"


@cache
def text_parts() -> tuple[Tensor, Tensor]:
    """Return the training part and the held-out part of the text as token ids, [n] each."""
    ids = torch.frombuffer(bytearray(text_path().read_bytes()), dtype=torch.uint8).long()
    blocks = ids.split(BLOCK)
    held_out = [block for i, block in enumerate(blocks) if i % HELD_OUT_EVERY == 0]
    train = [block for i, block in enumerate(blocks) if i % HELD_OUT_EVERY]
    return torch.cat(train), torch.cat(held_out)


def text_hash() -> str:
    """Return the SHA-256 of the text, which ties a record to the bytes that it was trained on."""
    return hashlib.sha256(text_path().read_bytes()).hexdigest()
