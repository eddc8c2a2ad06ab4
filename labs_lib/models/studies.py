"""What labs 06 and 07 show of the two models where these are not on the machine: data/heads.

`python -m labs_lib.models.studies [NAME...]` measures anew, on the models of this machine, in
some minutes. `recorded(NAME)` returns what was measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch

from labs_lib import paths
from labs_lib.models import importance, outliers, roles, small_trials
from labs_lib.models.atlas import measured_atlas
from labs_lib.models.induction_study import measured_induction
from labs_lib.models.loading import load
from labs_lib.models.minilm import MiniLM
from labs_lib.models.rounding import rounded
from labs_lib.models.smollm2 import SmolLM2
from labs_lib.models.texts import PAIRS, PROSE, halves, passages
from labs_lib.notebook.atomic import write_text

Either = MiniLM | SmolLM2
MAKE = "python -m labs_lib.models.studies"
SHARES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.8)  # of the heads that are pruned
RANDOM_ORDERS = 2
TO_SILENCE = tuple(PROSE[0].split("; ", 1))  # two examples: each head costs a pass of its own
N_LOOKED_AT, N_CONTROL = 40, 5  # passages for role scores, and for those of an untrained model
N_CHOOSE, N_JUDGE = 16, 6  # passages for the gradients of SmolLM2's gates, and for its pruning
AMONG = 8  # partners to choose from


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


def measured_roles(name: str, model: Either) -> dict[str, Any]:
    """Return role scores of every head, what chance and an offset score, and the control's best."""
    texts = passages("to look at", N_LOOKED_AT)
    control = roles.head_roles(roles.untrained(model), texts[:N_CONTROL])
    return {
        "tokens": sum(len(model.words.encode(text)) for text in texts),
        "scores": rounded(roles.head_roles(model, texts)),
        "baselines": rounded(roles.role_baselines(model, texts)),
        "untrained": {role: rounded(s.max()) for role, s in control.items()},
    }


def measured_importance(name: str, model: Either) -> dict[str, Any]:
    """Return each head's gradient of its gate, and what silencing it costs, in nats.

    `loss` is that of the texts on which heads were silenced, `halves agree` the rank correlation
    of the gradients of one half of the examples with those of the other half.
    """
    slopes = importance.slopes(question_of(name, model)).abs()  # [examples, n_layer, n_head]
    question = silence_question(name, model)
    return {
        "examples": len(slopes),
        "gradient": rounded(slopes.mean(dim=0)),
        "halves agree": rounded(
            importance.rank_agreement(slopes[0::2].mean(dim=0), slopes[1::2].mean(dim=0))
        ),
        "loss": rounded(question.mean_loss()),
        "ablation": rounded(
            importance.next_token_by_ablation(model, TO_SILENCE)
            if isinstance(model, SmolLM2)
            else importance.by_ablation(question)
        ),
    }


def measured_pruning(name: str, model: Either) -> dict[str, Any]:
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
            how: [rounded(importance.pruning_curve(question, o, counts)) for o in found]
            for how, found in orders.items()
        },
    }


def measured_outliers(name: str, model: Either) -> dict[str, Any]:
    """Return the largest activations by layer, and what int8 makes of them."""
    return rounded(outliers.outliers(model, PROSE[0]))


def measured_first_tokens(name: str, model: Either) -> dict[str, Any]:
    """Return the share that all heads together give to the first place, by the token put there."""
    return {
        token: rounded(small_trials.share_on_first(model, PROSE[1], token))
        for token in small_trials.FIRST_TOKENS[name]
    }


def measured_brackets(name: str, model: Either) -> dict[str, Any]:
    """Return the head that finds a closing bracket's partner best, and how well."""
    return rounded(small_trials.bracket_heads(model))


Study = Callable[[str, Either], dict[str, Any]]
STUDIES: dict[str, Study] = {
    "roles": measured_roles,
    "atlas": measured_atlas,
    "outliers": measured_outliers,
    "first_tokens": measured_first_tokens,
    "brackets": measured_brackets,
    "induction": measured_induction,
    "importance": measured_importance,
    "pruning": measured_pruning,
}


def question_of(name: str, model: Either, *, held_out: bool = False) -> importance.Question:
    """Return what a model is asked to do: the next token of prose, or a text's partner.

    Partners are sentences of one meaning, and the two halves of a passage. With `held_out`, other
    texts are asked: heads are chosen by the first ones and judged on these.
    """
    part = "to judge" if held_out else "to choose"
    if isinstance(model, SmolLM2):
        return importance.next_token(model, passages(part, N_JUDGE if held_out else N_CHOOSE))
    pairs = PAIRS[AMONG:] if held_out else PAIRS[:AMONG]
    pairs += tuple(map(halves, passages(part, (4 if held_out else 2) * AMONG, longest=450)))
    return importance.find_partner(model, pairs, among=AMONG)


def silence_question(name: str, model: Either) -> importance.Question:
    """Return what is asked while heads are silenced one at a time; each takes a pass of its own."""
    if isinstance(model, SmolLM2):
        return importance.next_token(model, TO_SILENCE)
    return question_of(name, model)


def main(arguments: list[str]) -> int:
    """Measure the named studies, or all of them; return the exit status."""
    unknown = [name for name in arguments if name not in STUDIES]
    if unknown:
        print(f"no study: {', '.join(unknown)}; there are {', '.join(STUDIES)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)  # more of them wait for each other on a machine that is busy
    for name in arguments or STUDIES:
        found = {which: STUDIES[name](which, load(which)) for which in ("minilm", "smollm2")}
        lines = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
        write_text(paths.data() / "heads" / f"{name}.json", "{\n" + lines + "\n}\n")
        print(f"{name}: done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
