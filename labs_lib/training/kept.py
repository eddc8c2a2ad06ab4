"""The one trained model that is kept with its weights, so that a lab can open it at once.

`python -m labs_lib.training.kept` trains it anew and writes data/records/induction.safetensors.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save

from labs_lib import paths
from labs_lib.training.experiments import experiment
from labs_lib.training.induction import AttentionOnly
from labs_lib.training.loop import build, train
from labs_lib.training.runs import Run

EXPERIMENT, VARIANT, SEED = "induction", "two layers", 0
MAKE = "python -m labs_lib.training.kept"


def kept_path() -> Path:
    """Return where the weights lie."""
    return paths.data() / "records" / f"{EXPERIMENT}.safetensors"


def kept_model() -> AttentionOnly:
    """Return the model of two layers that the record `induction` tells of, seed 0, trained.

    Raises FileNotFoundError with the command that makes it.
    """
    if not kept_path().is_file():
        raise FileNotFoundError(f"{kept_path()} is missing; `{MAKE}` trains it anew")
    model = build(experiment(EXPERIMENT).variants[VARIANT], SEED)
    weights = {name: tensor.float() for name, tensor in load_file(kept_path()).items()}
    model.load_state_dict(weights)
    return model.requires_grad_(False)


def keep(run: Run) -> None:
    """Write the weights of a run's model, with 16 bits each; ValueError for one of a record."""
    if run.model is None:
        raise ValueError("this run comes from a record, which holds no weights; train it anew")
    weights = {name: tensor.to(torch.float16) for name, tensor in run.model.state_dict().items()}
    kept_path().write_bytes(save(weights))


def main() -> int:
    """Train the model anew and keep it; return the exit status."""
    run = train(experiment(EXPERIMENT).variants[VARIANT], seed=SEED, threads=1)
    if run.interrupted:
        return 130
    keep(run)
    print(f"{EXPERIMENT}: {VARIANT}, seed {SEED}: accuracy {run.final['accuracy']:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
