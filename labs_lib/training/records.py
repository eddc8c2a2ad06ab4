"""The recorded runs in data/records, one file per experiment.

`python -m labs_lib.training.records [NAME...]` makes them anew, one training at a time, on one
thread.
"""

import json
import sys
from pathlib import Path
from typing import Any

from labs_lib import paths
from labs_lib.notebook.atomic import write_text
from labs_lib.training.experiments import EXPERIMENTS, collect, experiment, rerun
from labs_lib.training.loop import Task, train
from labs_lib.training.runs import Record, Run

__all__ = ["load_record", "main", "record", "record_path", "rerun", "write_record"]

MAKE = "python -m labs_lib.training.records"


def record_path(name: str) -> Path:
    """Return where the record of an experiment lies; raises KeyError for an unknown name."""
    experiment(name)
    return paths.data() / "records" / f"{name}.json"


def load_record(name: str) -> Record:
    """Return the recorded runs of an experiment.

    Raises KeyError for an unknown name, FileNotFoundError for a record that was never made and
    ValueError for a file that is no record, each with the command that makes it.
    """
    path = record_path(name)
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; `{MAKE} {name}` trains it anew")
    try:
        return Record.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{path} is not a record ({error}); `{MAKE} {name}` trains it anew"
        ) from None


def record(
    name: str,
    *,
    steps: int | None = None,
    done: dict[tuple[Task, int], Run] | None = None,
) -> Record:
    """Train every variant of an experiment with every seed, write the record and return it.

    `done` carries runs from one experiment to the next, since several share a baseline. An
    interrupt raises KeyboardInterrupt and leaves the record on disk as it was.
    """
    what, done, runs = experiment(name), {} if done is None else done, []
    for label, task in what.variants.items():
        for seed in what.seeds:
            run = done.get((task, seed))
            if run is None:
                title = f"{name}, {label}, seed {seed}"
                run = train(task, seed=seed, steps=steps, name=title, threads=1)
                if run.interrupted:
                    raise KeyboardInterrupt(f"{title} was stopped; the record stays as it was")
                done[task, seed] = run
            runs.append(run.called(label))
    made = collect(name, runs)
    write_record(made, record_path(name))
    return made


def write_record(made: Record, path: Path) -> None:
    """Write a record with one run a line, whole or not at all."""
    write_text(path, _as_text(made.to_json()))


def main(arguments: list[str]) -> int:
    """Make the named records, or all of them; return the exit status."""
    unknown = [name for name in arguments if name not in EXPERIMENTS]
    if unknown:
        print(
            f"no experiment: {', '.join(unknown)}; there are: {', '.join(EXPERIMENTS)}",
            file=sys.stderr,
        )
        return 2
    done: dict[tuple[Task, int], Run] = {}
    for name in arguments or EXPERIMENTS:
        try:
            made = record(name, done=done)
        except KeyboardInterrupt as stop:
            print(f"\n{stop}", file=sys.stderr)
            return 130
        print(f"{name}: {made.question}\n{made.table()}\n", flush=True)
    return 0


def _as_text(data: dict[str, Any]) -> str:
    head = [f" {json.dumps(key)}: {json.dumps(data[key])}," for key in data if key != "runs"]
    runs = ",\n".join("  " + json.dumps(run) for run in data["runs"])
    return "\n".join(["{", *head, ' "runs": [', runs, " ]", "}"]) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
