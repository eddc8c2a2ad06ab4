"""Two small pretrained models, offline once fetched, whose attention can be exchanged and opened.

`load("minilm")` is a BERT encoder, `load("smollm2")` a Llama-style decoder. Names are loaded when
they are first used, so that asking what lies on disk costs no torch.
"""

import importlib
from typing import Any

_WHERE = {
    "BrokenModel": "on_disk",
    "Hooks": "hooks",
    "KVCache": "kv_cache",
    "MODELS": "catalog",
    "MiniLM": "minilm",
    "MissingModel": "on_disk",
    "SmolLM2": "smollm2",
    "available": "on_disk",
    "chat_prompt": "generation",
    "generate": "generation",
    "load": "loading",
    "prune": "pruning",
    "status": "on_disk",
    "stream": "generation",
}

__all__ = [
    "MODELS",
    "BrokenModel",
    "Hooks",
    "KVCache",
    "MiniLM",
    "MissingModel",
    "SmolLM2",
    "available",
    "chat_prompt",
    "generate",
    "load",
    "prune",
    "status",
    "stream",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"labs_lib.models has no {name!r}; there are {', '.join(__all__)}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
