"""What lab 06 shows of the two models where these are not on the machine: data/heads.

`python -m labs_lib.models.studies [NAME...]` measures anew, on the models of this machine, in
about a quarter of an hour. `recorded(NAME)` returns what was measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from labs_lib import paths
from labs_lib.models import importance, outliers, roles, small_trials
from labs_lib.models.loading import load
from labs_lib.models.texts import HELD_OUT, PAIRS, PROSE
from labs_lib.notebook.atomic import write_text

MAKE = "python -m labs_lib.models.studies"
SHARES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.8)  # of the heads that are pruned
RANDOM_ORDERS = 2
TO_CHOOSE = tuple(PROSE[0].split("; ", 1))  # two examples
DECIMALS = 4


def recorded(name: str) -> dict[str, Any]:
    """Return what was measured, by model, in one of STUDIES.

    Raises KeyError for an unknown name, FileNotFoundError where nothing was recorded.
    """
    if name not in STUDIES:
        raise KeyError(f"no study is named {name!r}; there are {', '.join(STUDIES)}")
    path = paths.data() / "heads" / f"{name}.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; `{MAKE} {name}` measures it anew")
    return json.loads(path.read_text(encoding="utf-8"))


def measured_roles(name: str, model: nn.Module) -> dict[str, Any]:
    """Return role scores of every head, what chance and an offset score, and the control's best."""
    control = roles.head_roles(roles.untrained(model), PROSE)
    return {
        "scores": {role: plain(s) for role, s in roles.head_roles(model, PROSE).items()},
        "baselines": {
            role: {k: rounded(v) for k, v in found.items()}
            for role, found in roles.role_baselines(model, PROSE).items()
        },
        "untrained": {role: rounded(float(s.max())) for role, s in control.items()},
    }


def measured_importance(name: str, model: nn.Module) -> dict[str, Any]:
    """Return the loss, each head's gradient of its gate, and what silencing it costs, in nats."""
    question = question_of(name, model)
    return {
        "loss": rounded(question.mean_loss()),
        "gradient": plain(importance.by_gradient(question)),
        "ablation": plain(
            importance.next_token_by_ablation(model, TO_CHOOSE)
            if name == "smollm2"
            else importance.by_ablation(question)
        ),
    }


def measured_pruning(name: str, model: nn.Module) -> dict[str, Any]:
    """Return the loss on held-out texts with 0 to 80 % of the heads gone, in several orders."""
    question = question_of(name, model, held_out=True)
    n_layer, n_head = question.size
    counts = [round(share * n_layer * n_head) for share in SHARES]
    scores = recorded("importance")[name]
    orders = {
        f"by {how}": [importance.order(torch.tensor(scores[how]))]
        for how in ("gradient", "ablation")
    }
    orders["at random"] = [
        importance.random_order(question.size, seed) for seed in range(RANDOM_ORDERS)
    ]
    return {
        "heads": n_layer * n_head,
        "pruned": counts,
        "losses": {
            how: [
                [rounded(x) for x in importance.pruning_curve(question, o, counts)] for o in found
            ]
            for how, found in orders.items()
        },
    }


def measured_outliers(name: str, model: nn.Module) -> dict[str, Any]:
    """Return the largest activations by layer, and what int8 makes of them."""
    return {
        key: plain(torch.tensor(value)) for key, value in outliers.outliers(model, PROSE[0]).items()
    }


def measured_first_tokens(name: str, model: nn.Module) -> dict[str, Any]:
    """Return the share that all heads together give to the first place, by the token put there."""
    return {
        token: rounded(small_trials.share_on_first(model, PROSE[1], token))
        for token in small_trials.FIRST_TOKENS[name]
    }


def measured_brackets(name: str, model: nn.Module) -> dict[str, Any]:
    """Return the head that finds a closing bracket's partner best, and how well."""
    found = small_trials.bracket_heads(model)
    return {k: rounded(v) if isinstance(v, float) else v for k, v in found.items()}


Study = Callable[[str, nn.Module], dict[str, Any]]
STUDIES: dict[str, Study] = {
    "roles": measured_roles,
    "outliers": measured_outliers,
    "first_tokens": measured_first_tokens,
    "brackets": measured_brackets,
    "importance": measured_importance,
    "pruning": measured_pruning,
}


def question_of(name: str, model: nn.Module, *, held_out: bool = False) -> importance.Question:
    """Return what a model is asked to do: the next token of prose, or a sentence's partner.

    The pairs of sentences are cut in two halves, one to choose heads by and one to judge on.
    """
    if name == "smollm2":
        return importance.next_token(model, HELD_OUT[:1] if held_out else TO_CHOOSE)
    half = len(PAIRS) // 2
    return importance.find_partner(model, PAIRS[half:] if held_out else PAIRS[:half])


def plain(values: Tensor) -> list:
    """Return a tensor as nested lists of rounded numbers."""
    return [rounded(v) if isinstance(v, float) else plain(torch.tensor(v)) for v in values.tolist()]


def rounded(value: float) -> float:
    """Return a number with the digits that a record keeps."""
    return round(value, DECIMALS)


def main(arguments: list[str]) -> int:
    """Measure the named studies, or all of them; return the exit status."""
    unknown = [name for name in arguments if name not in STUDIES]
    if unknown:
        print(f"no study: {', '.join(unknown)}; there are {', '.join(STUDIES)}", file=sys.stderr)
        return 2
    for name in arguments or STUDIES:
        found = {which: STUDIES[name](which, load(which)) for which in ("minilm", "smollm2")}
        lines = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
        write_text(paths.data() / "heads" / f"{name}.json", "{\n" + lines + "\n}\n")
        print(f"{name}: done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
