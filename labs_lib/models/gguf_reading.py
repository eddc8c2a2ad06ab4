"""A Llama-style model in a GGUF file, made once into two files that load fast.

`model.safetensors` has the weights in float32 under the names of `SmolLM2`, each matrix
[d_in, d_out] as `x @ W` uses it; `tokenizer.json` has the byte-level BPE.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labs_lib.models.bpe import byte_level_bpe
from labs_lib.notebook.atomic import temporary_beside, write_text

if TYPE_CHECKING:
    from gguf import GGUFReader

SPECIAL = 3  # GGUF's token type "control"
LAYER_NAMES = {  # GGUF's name within a layer, ours
    "attn_norm": "norm_attention",
    "attn_q": "attention.W_Q",
    "attn_k": "attention.W_K",
    "attn_v": "attention.W_V",
    "attn_output": "attention.W_O",
    "ffn_norm": "norm_mlp",
    "ffn_gate": "W_gate",
    "ffn_up": "W_up",
    "ffn_down": "W_down",
}


def convert(source: Path, folder: Path) -> None:
    """Write model.safetensors and tokenizer.json into folder, each whole or not at all."""
    from gguf import GGUFReader
    from safetensors.numpy import save_file

    reader = GGUFReader(source)
    with temporary_beside(folder / "model.safetensors") as temporary:
        save_file(weights(reader), temporary)
        os.replace(temporary, folder / "model.safetensors")
    write_text(folder / "tokenizer.json", tokenizer(reader).to_str())


def weights(reader: GGUFReader) -> dict[str, np.ndarray]:
    """Return all weights as float32 under our names; the rotary pairs are put apart again."""
    from gguf.quants import dequantize

    heads = {
        "attn_q": value(reader, "llama.attention.head_count"),
        "attn_k": value(reader, "llama.attention.head_count_kv"),
    }
    found = {}
    for tensor in reader.tensors:
        plain = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)  # [d_out, d_in]
        name, kind = our_name(tensor.name)
        if kind in heads:
            plain = halves_from_pairs(plain, heads[kind])
        is_matrix = plain.ndim == 2 and kind != "token_embd"
        found[name] = np.ascontiguousarray(plain.T if is_matrix else plain)
    return found


def halves_from_pairs(rows: np.ndarray, n_head: int) -> np.ndarray:
    """Return the rows of a rotary projection [n_head * head_dim, d_in] in the order of halves.

    GGUF keeps the two rows that turn together side by side, 0 1 0 1 ...; elsewhere the first of
    every pair stand in the head's first half, the second ones in its second half.
    """
    paired = rows.reshape(n_head, -1, 2, rows.shape[-1])  # [n_head, head_dim / 2, 2, d_in]
    return paired.swapaxes(1, 2).reshape(rows.shape)


def our_name(name: str) -> tuple[str, str]:
    """Return our name of a GGUF tensor and its kind: blk.3.attn_q.weight is an attn_q."""
    parts = name.removesuffix(".weight").split(".")
    if parts[0] == "blk":
        return f"layers.{parts[1]}.{LAYER_NAMES[parts[2]]}", parts[2]
    return {"token_embd": "embed", "output_norm": "norm"}[parts[0]], parts[0]


def tokenizer(reader: GGUFReader) -> Any:
    """Return the byte-level BPE of a GGUF file, special tokens included."""
    tokens = value(reader, "tokenizer.ggml.tokens")
    kinds = value(reader, "tokenizer.ggml.token_type")
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == SPECIAL]
    return byte_level_bpe(tokens, value(reader, "tokenizer.ggml.merges"), special)


def value(reader: GGUFReader, key: str) -> Any:
    """Return a field of the file's head; raises ValueError where it isn't there."""
    field = reader.get_field(key)
    if field is None:
        raise ValueError(f"the GGUF file has no {key}; it is no model of this kind")
    return field.contents()
