"""What is trained: each experiment is a question, its variants, and the seeds of its record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from labs_lib.training.byte_text import ByteText, text_hash
from labs_lib.training.census import HeadCensus
from labs_lib.training.growing import GrowingHeads
from labs_lib.training.induction import Induction
from labs_lib.training.layers import Attend
from labs_lib.training.loop import Task, train
from labs_lib.training.no_op import NoOp
from labs_lib.training.pooling import PooledHeads
from labs_lib.training.retrieval import TwoRules, TwoTargets
from labs_lib.training.runs import Record, Run

LONG = 1500  # steps for differences that a short training does not show


@dataclass(frozen=True)
class Experiment:
    """A question, the claims it answers, the variants to train and the measurement to compare."""

    question: str
    claims: tuple[str, ...]
    measure: str
    variants: Mapping[str, Task[Any]]  # each task builds its own kind of model
    seeds: tuple[int, ...] = (0, 1, 2)


EXPERIMENTS: dict[str, Experiment] = {
    "two_rules": Experiment(
        question="Can one head follow two rules, one by key and one by position?",
        claims=("C01", "C38"),
        measure="accuracy",
        variants={"one head": TwoRules(), "no choice": TwoRules(attention="uniform")},
    ),
    "two_targets": Experiment(
        question="Can one head give all it has to two tokens at once?",
        claims=("C40",),
        measure="accuracy",
        variants={
            "1 head, as a set": TwoTargets(n_head=1, ordered=False),
            "2 heads, as a set": TwoTargets(n_head=2, ordered=False),
            "1 head, in order": TwoTargets(n_head=1, ordered=True),
            "2 heads, in order": TwoTargets(n_head=2, ordered=True),
        },
    ),
    "true_slicing": Experiment(
        question="What is lost when each head sees only its own slice of the input?",
        claims=("C02",),
        measure="loss",
        variants={"all inputs": ByteText(), "own slice": ByteText(sliced=True)},
    ),
    "head_sweep": Experiment(
        question="Is one wide head worse than many narrow ones?",
        claims=("C41", "C61"),
        measure="loss",
        variants={f"n_head={n_head}": ByteText(n_head=n_head) for n_head in (1, 2, 4, 8, 16, 32)},
    ),
    "head_census": Experiment(
        question="How sharply do trained heads choose, and do spare heads steady the training?",
        claims=("C51", "C52"),
        measure="loss",
        variants={"n_head=1": HeadCensus(n_head=1), "n_head=8": HeadCensus(n_head=8)},
        seeds=(0, 1, 2, 3, 4),
    ),
    "without_w_o": Experiment(
        question="What does the loss say when W_O is left out?",
        claims=("C72",),
        measure="loss",
        variants={
            "with W_O": ByteText(steps=LONG),
            "without W_O": ByteText(output=False, steps=LONG),
            "without W_O, wider FFN": ByteText(output=False, d_ffn=288, steps=LONG),
        },
    ),
    "head_growth": Experiment(
        question="When do heads take up their roles, and how many of them can go afterwards?",
        claims=("C03", "C62"),
        measure="loss",
        variants={"n_head=8": GrowingHeads()},
    ),
    "no_op": Experiment(
        question="Where does a head's weight go when it has nothing to do?",
        claims=("C55", "C56", "C58"),
        measure="error_absent",
        variants={
            "a mark first": NoOp(),
            "an ordinary token first": NoOp(first="an ordinary token"),
            "no first slot": NoOp(first="nothing"),
            "no first slot, less than 1 allowed": NoOp(first="nothing", may_say_nothing=True),
        },
    ),
    "induction": Experiment(
        question="What does a model need before a head copies what came after the last time?",
        claims=("C116", "C117", "C119", "C120", "C121"),
        measure="accuracy",
        variants={
            "two layers": Induction(),
            "one layer": Induction(n_layer=1),
            "one layer, smeared keys": Induction(n_layer=1, smeared=True),
        },
    ),
    "shared_heads": Experiment(
        question="What is lost when query heads share their keys and values?",
        claims=("C94",),
        measure="loss",
        variants={
            "8 key/value heads": PooledHeads(steps=LONG),
            "2 key/value heads": ByteText(n_kv_head=2, steps=LONG),
            "1 key/value head": ByteText(n_kv_head=1, steps=LONG),
        },
    ),
}


def experiment(name: str) -> Experiment:
    """Return the experiment of that name; raises KeyError with the names that exist."""
    if name not in EXPERIMENTS:
        raise KeyError(f"no experiment is named {name!r}; these are: {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def rerun(
    name: str,
    seed: int = 0,
    steps: int | None = None,
    *,
    variant: str | None = None,
    attend: Attend | None = None,
    show: bool | None = None,
) -> Record:
    """Train an experiment again on this machine and return a Record of its one seed.

    `variant` trains only that one, `steps` shortens every training, `attend(q, k, v, mask)` puts
    your own attention in torch's place. An interrupt keeps the runs so far, the unfinished one
    included. Numbers differ a little from the record's: rounding differs between machines. Raises
    KeyError for an unknown experiment or variant, ValueError for steps < 1.
    """
    what = experiment(name)
    if variant is not None and variant not in what.variants:
        names = ", ".join(repr(known) for known in what.variants)
        raise KeyError(f"{name} has no variant {variant!r}; it has {names}")
    chosen = list(what.variants) if variant is None else [variant]
    runs: list[Run] = []
    for label in chosen:
        task = what.variants[label]
        runs.append(train(task, seed=seed, steps=steps, attend=attend, name=label, show=show))
        if runs[-1].interrupted:
            break
    return collect(name, runs)


def collect(name: str, runs: list[Run]) -> Record:
    """Return a Record of an experiment from its runs."""
    what = experiment(name)
    on_text = any(isinstance(task, ByteText) for task in what.variants.values())
    return Record(
        experiment=name,
        question=what.question,
        claims=list(what.claims),
        measure=what.measure,
        torch=torch.__version__.partition("+")[0],
        text=text_hash() if on_text else None,
        runs=runs,
    )
