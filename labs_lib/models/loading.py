"""Load a model from the cache."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError

from labs_lib.models import on_disk
from labs_lib.models.fetch import finish
from labs_lib.models.layer import Attend, sdpa
from labs_lib.models.minilm import MiniLM
from labs_lib.models.smollm2 import SmolLM2

CLASSES = {"minilm": MiniLM, "smollm2": SmolLM2}


def load(
    name: str,
    *,
    attend: Attend = sdpa,
    device: torch.device | str = "cpu",
    cache: Path | None = None,
) -> MiniLM | SmolLM2:
    """Return "minilm" or "smollm2", ready to be used; never asks a network.

    `attend(q, k, v, mask)` computes its attention: torch's own unless another function is given.
    Raises MissingModel or BrokenModel, each with the command that helps.
    """
    found = on_disk.require(name, cache)
    if found.state == on_disk.UNFINISHED:
        finish(found)
    try:
        model = CLASSES[found.entry.name].load(found.folder, attend)
    except SafetensorError as error:
        raise on_disk.BrokenModel(
            f"{found.folder / 'model.safetensors'} can't be read ({error}); "
            f"{on_disk.command_to_get(name, cache)} mends it"
        ) from error
    return model.to(device)
