"""all-MiniLM-L6-v2: a BERT encoder that turns a sentence into one vector.

Source: Devlin et al. 2019, arXiv 1810.04805; Wang et al. 2020, arXiv 2002.10957; Reimers &
Gurevych 2019, arXiv 1908.10084, for the mean over tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labs_lib.models.bpe import Tokenizer
from labs_lib.models.hooks import Hooks
from labs_lib.models.layer import Attend, AttentionLayer, Pass, Shape, sdpa, unfilled
from labs_lib.models.model import Model

SHAPE = Shape(
    n_layer=6,
    d_model=384,
    n_head=12,
    n_kv_head=12,
    head_dim=32,
    d_ff=1536,
    vocab=30_522,
    context=512,
)
NORM_EPSILON = 1e-12
IN_LAYER = {  # the file's name within a layer, ours
    "attention.self.query.weight": "attention.W_Q",
    "attention.self.query.bias": "attention.b_Q",
    "attention.self.key.weight": "attention.W_K",
    "attention.self.key.bias": "attention.b_K",
    "attention.self.value.weight": "attention.W_V",
    "attention.self.value.bias": "attention.b_V",
    "attention.output.dense.weight": "attention.W_O",
    "attention.output.dense.bias": "attention.b_O",
    "attention.output.LayerNorm.weight": "norm_attention.weight",
    "attention.output.LayerNorm.bias": "norm_attention.bias",
    "intermediate.dense.weight": "W_up",
    "intermediate.dense.bias": "b_up",
    "output.dense.weight": "W_down",
    "output.dense.bias": "b_down",
    "output.LayerNorm.weight": "norm_mlp.weight",
    "output.LayerNorm.bias": "norm_mlp.bias",
}
AROUND = {
    "embeddings.word_embeddings.weight": "embed",
    "embeddings.position_embeddings.weight": "embed_position",
    "embeddings.token_type_embeddings.weight": "embed_type",
    "embeddings.LayerNorm.weight": "norm.weight",
    "embeddings.LayerNorm.bias": "norm.bias",
}


class MiniLM(Model):
    """The encoder: `model(ids, real)` gives a vector for each token, `sentence_vectors` for a text.

    `attend(q, k, v, mask)` may be replaced at any time by another function of the same contract;
    the mask is None, or bool [batch, 1, 1, seq] where texts of several lengths are padded.
    """

    causal = False

    def __init__(self, tokenizer: Tokenizer | None = None, attend: Attend = sdpa):
        super().__init__()
        self.shape, self.tokenizer, self.attend = SHAPE, tokenizer, attend
        self.embed_type = unfilled(2, SHAPE.d_model)
        self.embed_position = unfilled(SHAPE.context, SHAPE.d_model)
        self.embed = unfilled(SHAPE.vocab, SHAPE.d_model)
        self.norm = nn.LayerNorm(SHAPE.d_model, eps=NORM_EPSILON)
        self.layers = nn.ModuleList(_Layer(SHAPE) for _ in range(SHAPE.n_layer))

    @classmethod
    def load(cls, folder: Path, attend: Attend = sdpa) -> MiniLM:
        """Return the model of a folder that holds model.safetensors and tokenizer.json."""
        from safetensors.torch import load_file

        with torch.device("meta"):
            model = cls(Tokenizer.load(folder / "tokenizer.json"), attend)
        stored = load_file(folder / "model.safetensors")
        named = dict(_named(name, tensor) for name, tensor in stored.items() if _is_used(name))
        model.load_state_dict(named, assign=True)
        return model.requires_grad_(False).eval()

    def forward(
        self,
        ids: Tensor,
        real: Tensor | None = None,
        *,
        hooks: Hooks | None = None,
        attend: Attend | None = None,
    ) -> Tensor:
        """Return a vector for each token: [batch, seq, d_model] for ids [batch, seq].

        real is bool [batch, seq], False where a text is padded; None means that none is.
        Raises ValueError for ids that the model can't read.
        """
        self._check(ids, real)
        if hooks is not None:
            hooks.begin(self.shape.n_layer, self.shape.n_head)
        device = self.embed.device
        mask = None
        if real is not None and not bool(real.all()):
            mask = real.to(device)[:, None, None, :]  # [batch, 1, 1, seq]
        along = Pass(attend or self.attend, mask, hooks=hooks)
        x = self.embed[ids.to(device)] + self.embed_position[: ids.shape[1]] + self.embed_type[0]
        x = self.norm(x)
        for number, layer in enumerate(self.layers):
            if hooks is not None:
                hooks.see(number, "residual", x)
            x = layer(x, along, number)
        if hooks is not None:
            hooks.see(self.shape.n_layer, "residual", x)
        return x

    def sentence_vectors(self, texts: Sequence[str] | str, **how) -> Tensor:
        """Return a vector of length one for each text: [texts, d_model]; no gradient is kept.

        The mean over a text's tokens, [CLS] and [SEP] included. Keywords go to the pass.
        """
        ids, real = self.ids(texts)
        with torch.no_grad():
            return mean_direction(self(ids, real, **how), real)

    def ids(self, texts: Sequence[str] | str) -> tuple[Tensor, Tensor]:
        """Return token ids [texts, seq] between [CLS] and [SEP], and which of them are real."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        if not texts:
            raise ValueError("no text was given; give one at least")
        rows = [self.words.encode(text) for text in texts]
        seq = max(map(len, rows))
        padding = self.words.special["[PAD]"]
        ids = torch.tensor([row + [padding] * (seq - len(row)) for row in rows])
        real = torch.tensor([[i < len(row) for i in range(seq)] for row in rows])
        return ids, real

    def row(self, text: str) -> Tensor:
        return self.ids(text)[0]

    def look(self, ids: Tensor, hooks: Hooks) -> None:
        self(ids, hooks=hooks)

    def _check(self, ids: Tensor, real: Tensor | None) -> None:
        self.check_ids(ids)
        if not 0 < ids.shape[1] <= self.shape.context:
            raise ValueError(
                f"{ids.shape[1]} tokens; the model reads 1 to {self.shape.context}: "
                "it has no more positions"
            )
        if real is not None and (real.dtype != torch.bool or real.shape != ids.shape):
            raise ValueError(
                f"real is {real.dtype} {tuple(real.shape)}; it is bool of the shape of ids, "
                f"{tuple(ids.shape)}, False where a text is padded"
            )


def mean_direction(x: Tensor, real: Tensor) -> Tensor:
    """Return the mean of x [texts, seq, d_model] over its real tokens, of length one.

    real is bool [texts, seq]; the result is [texts, d_model].
    """
    weight = real.to(x)[:, :, None]
    return F.normalize((x * weight).sum(dim=1) / weight.sum(dim=1), dim=-1)


class _Layer(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.attention = AttentionLayer(shape, bias=True)
        self.norm_attention = nn.LayerNorm(shape.d_model, eps=NORM_EPSILON)
        self.W_up, self.b_up = unfilled(shape.d_model, shape.d_ff), unfilled(shape.d_ff)
        self.W_down, self.b_down = unfilled(shape.d_ff, shape.d_model), unfilled(shape.d_model)
        self.norm_mlp = nn.LayerNorm(shape.d_model, eps=NORM_EPSILON)

    def forward(self, x: Tensor, along: Pass, number: int) -> Tensor:
        x = self.norm_attention(x + self.attention(x, along, number))
        y = F.gelu(x @ self.W_up + self.b_up) @ self.W_down + self.b_down
        return self.norm_mlp(x + y)


def _is_used(name: str) -> bool:
    return not name.startswith("pooler.") and name != "embeddings.position_ids"


def _named(name: str, tensor: Tensor) -> tuple[str, Tensor]:
    """Our name of a stored tensor, and the tensor as `x @ W` uses it."""
    if name in AROUND:
        return AROUND[name], tensor
    _, _, number, rest = name.split(".", 3)  # encoder.layer.3.attention....
    turned = tensor.T if tensor.ndim == 2 else tensor  # stored as [d_out, d_in]
    return f"layers.{number}.{IN_LAYER[rest]}", turned
