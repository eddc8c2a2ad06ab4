"""`labs`: the one command of the course. Each subcommand loads what it needs, and only then.

Exit codes: 0 for done, 1 where something doesn't pass, 2 for what can't be done as asked.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import NoReturn, cast

from . import __version__
from .errors import UsageError, ended_in_order, ending

OVERVIEW = """\
Attention Labs: build multi-head attention, check it, understand it.

For students
  labs start                   open the notebooks in JupyterLab
  labs check [02]              run a lab's checks; without a number, all of them
  labs progress [02]           what is done
  labs hint EXERCISE           the next hint of an exercise
  labs reset EXERCISE          bring an exercise's stub back; a copy is kept
  labs claims [02]             what the lessons say, and what the labs measure
  labs update                  a new release of the course, your answers merged into it
  labs submit --id ID          pack the notebooks for the instructor

About this machine
  labs doctor                  what it can do, and how to get what is missing
  labs models [get]            the pretrained models: what is here, fetch, verify, remove
  labs bench [cuda]            what is fast, beside what it is compared with

For instructors and authors
  labs handout DIR --from NN   a copy for a class, without the answers of lab NN and later
  labs grade SUBMISSIONS       marks and feedback for a folder or archive of submissions
  labs release [02]            make the notebooks from solutions/*.md, which you edit

labs COMMAND --help says more, with an example.
"""

EXAMPLES = {
    "start": ("labs start --no-browser", "print the address and open nothing"),
    "check": ("labs check 02", "run the checks of lab 02"),
    "progress": ("labs progress 02", "what is done of lab 02"),
    "hint": ("labs hint lab02.split_heads", "one more hint at each call"),
    "reset": ("labs reset lab02.split_heads", "begin this exercise again"),
    "update": ("labs update --from lab03.zip", "take the release from a file handed out"),
    "submit": ("labs submit --id ada", "writes ada.zip"),
    "doctor": ("labs doctor", "one screen; each row says how to mend what is missing"),
    "models": ("labs models get minilm", "fetch one of the two"),
    "claims": ("labs claims 02 --verdict wrong", "what turned out wrong in lab 02"),
    "bench": ("labs bench cuda --json figures.json", "kernels without a GPU, kept in a file"),
    "release": ("labs release 02", "after solutions/02_*.md was edited"),
    "handout": ("labs handout ../class --from 02", "labs 00 and 01 with answers, the rest without"),
    "grade": ("labs grade submissions.zip --labs 02", "one lab, results in grades/"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _forgive_narrow_terminals()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["help"]:  # `labs help check`, as many write it
        arguments = [*arguments[1:2], "--help"] if arguments[1:] else []
    if not arguments:
        print(OVERVIEW, end="")
        return 0
    try:
        return _run(arguments)
    except SystemExit as leaving:  # argparse, after --help or a usage error
        return leaving.code if isinstance(leaving.code, int) else 0
    except KeyboardInterrupt as stop:
        return _refuse(*ending(stop))
    except BrokenPipeError:  # the reader, such as `head`, has what it wanted
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(arguments: list[str]) -> int:
    """Call the command; what can't be done as asked becomes one sentence."""
    parser, known = _parser()
    name = arguments[0]
    if name.startswith("-") and name not in ("-h", "--help", "--version"):
        return _refuse(f"there is no option {name}; `labs --help` shows what there is")
    if not name.startswith("-") and name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        way_out = f"did you mean `labs {near[0]}`?" if near else f"there are {', '.join(known)}"
        return _refuse(f"there is no command {name!r}; {way_out}")
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        return _refuse(f"labs {name} takes no {unknown[0]}; `labs {name} --help` shows how")
    try:
        return int(options.run(options) or 0)
    except UsageError as error:
        return _refuse(str(error))
    except LookupError as error:
        if not _is_unknown_name(error):
            raise
        return _refuse(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _refuse(f"{where}{error.strerror or error}")


def _is_unknown_name(error: LookupError) -> bool:
    from .exercises.registry import UnknownExercise, UnknownLab

    return isinstance(error, (UnknownExercise, UnknownLab))


def _refuse(sentence: str, code: int = 2) -> int:
    print(f"labs: {' '.join(sentence.split())}", file=sys.stderr)
    return code


def _forgive_narrow_terminals() -> None:
    """A terminal that can't show a letter shows `?` in its place, and never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            cast("io.TextIOWrapper", stream).reconfigure(errors="replace")


class _Parser(argparse.ArgumentParser):
    """Answers wrong usage with one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(_refuse(f"{message}; `{self.prog} --help` shows how"))


def _parser() -> tuple[argparse.ArgumentParser, list[str]]:
    parser = _Parser(
        prog="labs",
        usage="labs COMMAND ...",
        description=OVERVIEW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"attention-labs {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, help=argparse.SUPPRESS)

    def command(run: FunctionType) -> argparse.ArgumentParser:
        name, text = run.__name__.strip("_"), " ".join((run.__doc__ or "").split())
        added = commands.add_parser(
            name,
            description="\n".join(textwrap.wrap(text, 78)),
            epilog="example:\n  {}\n      {}".format(*EXAMPLES[name]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            prog=f"labs {name}",
        )
        added.set_defaults(run=run)
        return added

    _add_student_commands(command)
    _add_author_commands(command)
    return parser, list(commands.choices)


def _add_student_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    add = command(_start).add_argument
    add("--no-browser", action="store_true", help="print the address, open nothing")
    add("--port", type=int, metavar="N", help="the port; without it, a free one from 8888 on")
    add = command(_check).add_argument
    add("which", nargs="*", metavar="NN|NOTEBOOK", help="a lab's number, or a notebook's path")
    command(_progress).add_argument("lab", nargs="?", metavar="NN", help="one lab only")
    command(_hint).add_argument("exercise", metavar="EXERCISE", help="such as lab02.split_heads")
    parser = command(_reset)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("exercise", nargs="?", metavar="EXERCISE", help="such as lab02.split_heads")
    which.add_argument("--lab", metavar="NN", help="every exercise of a lab")
    add = command(_update).add_argument
    which = "the new release as a folder or a .zip; a handout is one"
    add("--from", dest="source", type=Path, metavar="DIR_OR_ZIP", help=which)
    add = command(_submit).add_argument
    add("--id", required=True, metavar="ID", help="your id, as your instructor knows it")
    add("--out", type=Path, metavar="FILE", help="the archive; without it, ID.zip in the course")
    command(_doctor)
    add = command(_models).add_argument
    actions = ("list", "get", "verify", "remove")
    add("action", nargs="?", choices=actions, default="list", help="list unless another is given")
    add("names", nargs="*", metavar="NAME", help="minilm or smollm2; without a name, both")
    add("--cache", type=Path, metavar="DIR", help="another folder than the user's cache")
    add = command(_claims).add_argument
    add("lab", nargs="?", metavar="NN", help="one lab only")
    add("--verdict", metavar="V", help="true, within-limits, wrong or unverifiable only")
    add = command(_bench).add_argument
    add("name", nargs="?", metavar="NAME", help="one bench only, such as cuda")
    add("--device", choices=("cpu", "cuda"), help="what is measured: the processor or the GPU")
    add("--json", type=Path, metavar="FILE", help="write the figures there too")


def _add_author_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    add = command(_release).add_argument
    add("labs", nargs="*", metavar="NN", help="labs; without any, all")
    add("--all", action="store_true", help="execute also labs whose source hasn't changed")
    add("--force", action="store_true", help="overwrite a student's notebook that holds answers")
    add = command(_handout).add_argument
    add("target", type=Path, metavar="DIR", help="a new folder")
    first = "the first lab to withhold; end withholds none"
    add("--from", dest="from_lab", required=True, metavar="NN", help=first)
    from .grading.options import add_arguments

    add_arguments(command(_grade).add_argument)


def _start(options: argparse.Namespace) -> int:
    """Open the notebooks in JupyterLab; nothing is written outside the course's folder."""
    from .workbook.start import start

    return start(browser=not options.no_browser, port=options.port)


def _check(options: argparse.Namespace) -> int:
    """Run the checks of labs or notebooks; exit code 0 if every one passes, else 1."""
    from .workbook.run_checks import check

    return 0 if check(options.which) else 1


def _progress(options: argparse.Namespace) -> None:
    """Show what is done, exercise by exercise."""
    from .workbook.progress_table import show

    show(options.lab)


def _hint(options: argparse.Namespace) -> None:
    """Print the next hint of an exercise; after the last one they start again."""
    from .checking.hints import hint

    hint(options.exercise)


def _reset(options: argparse.Namespace) -> None:
    """Bring an exercise's stub back into your notebook; a copy of the notebook is kept."""
    from .workbook.reset import reset, reset_lab

    done = reset_lab(options.lab) if options.lab is not None else reset(options.exercise)
    print("\n".join(done.done))
    print(f"the notebook as it was: {done.backup}")
    print("If it is open in JupyterLab, choose File > Reload Notebook from Disk.")


def _update(options: argparse.Namespace) -> int:
    """Bring the course to a new release and merge what you wrote into its notebooks.

    Without --from it comes from where this git clone came from. Copies of all that is written
    over are kept. Exit code 1 if a notebook couldn't be read and stays as it is.
    """
    from .workbook.update import update

    done = update(options.source)
    print("\n".join([f"release: {done.release}", *done.lines]))
    if not done.changed:
        print("everything is up to date")
    if done.backup is not None:
        print(f"as it was before: {done.backup}")
    if done.written:
        print("Notebooks that are open in JupyterLab: File > Reload Notebook from Disk.")
    print("".join(f"{advice}\n" for advice in done.advice), end="")
    return 1 if done.skipped else 0


def _submit(options: argparse.Namespace) -> None:
    """Pack your notebooks, without their outputs, into one archive for your instructor."""
    from .workbook.submit import submit

    done = submit(options.id, options.out)
    for note in done.notes:
        print(f"labs: {note}", file=sys.stderr)
    print(f"{done.archive} holds {', '.join(done.notebooks)}")


def _doctor(options: argparse.Namespace) -> int:
    """Look at this machine: what the labs can use, and how to get what is missing."""
    from .workbook.doctor import show

    return 0 if show() else 1


def _models(options: argparse.Namespace) -> int:
    """Pretrained models: list them, get them, verify every byte of them, remove them.

    Wheels are fetched by pip from the index that it is set to; nothing is installed.
    """
    from .models import command

    if options.action == "verify":
        return 0 if command.verify(options.names, options.cache) else 1
    actions = {"list": command.show, "get": command.get, "remove": command.remove}
    actions[options.action](options.names, options.cache)
    return 0


def _claims(options: argparse.Namespace) -> None:
    """Show what the lessons say, the right value, and the lab that measures it."""
    from .claims import print_claims

    print_claims(options.lab, options.verdict)


def _bench(options: argparse.Namespace) -> int:
    """Measure speeds, each beside a peer in the same run; exit code 1 if a bar is missed."""
    try:
        from .bench.show import bench
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("labs_lib.bench"):
            raise
        raise UsageError("this copy holds no benches; the whole course does") from None
    try:
        fine = bench(options.name, device=options.device, to=options.json)
    except LookupError as error:
        raise UsageError(str(error.args[0])) from error
    return 0 if fine else 1


def _release(options: argparse.Namespace) -> int:
    """Make the solution and student notebooks from solutions/*.md."""
    from .authoring.release import ReleaseError, release

    try:
        written = release(options.labs, everything=options.all, force=options.force)
    except ReleaseError as error:
        print(f"labs: {error}", file=sys.stderr)
        return 1
    print(f"notebooks written: {len(written)}" if written else "everything is up to date")
    return 0


@ended_in_order
def _handout(options: argparse.Namespace) -> None:
    """Build the copy that a class gets: no answers of lab NN and later, no tests."""
    from .authoring.handout import handout

    held_back = handout(options.target, options.from_lab)
    what = f"without the answers of {', '.join(held_back)}" if held_back else "with every answer"
    print(f"{options.target} is ready to hand out, {what}")


@ended_in_order
def _grade(options: argparse.Namespace) -> int:
    """Grade submissions: grades.csv, JUnit XML and a page of feedback per student."""
    from .grading.extras import from_options
    from .grading.grade import grade, prepare

    if options.prepare:
        prepare(options.prepare, options.labs, level=options.fence)
        return 0
    if options.submissions is None:
        raise UsageError("give a folder or an archive of submissions: labs grade SUBMISSIONS")
    grade(
        options.submissions,
        options.out,
        labs=options.labs,
        seed=options.seed,
        extras=from_options(options),
        workers=options.workers,
        scheduler=options.scheduler,
        again=options.again,
        level=options.fence,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
