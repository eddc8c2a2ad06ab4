"""The `labs` command: helpful without arguments, one sentence for what can't be done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labs_lib import __version__, cli
from labs_lib.errors import UsageError

ROOT = Path(__file__).parents[1]

COMMANDS = [
    *("start", "check", "progress", "hint", "reset", "update", "submit", "doctor", "claims"),
    *("release", "handout", "grade"),
]


@pytest.fixture
def course(tmp_path, monkeypatch):
    home = tmp_path / "course"
    (home / "notebooks").mkdir(parents=True)
    (home / "data").symlink_to(ROOT / "data")
    monkeypatch.setenv("LABS_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


def test_without_arguments_every_command_is_shown(capsys):
    assert cli.main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"labs {name}" in shown for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name, capsys):
    assert cli.main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: labs {name}")
    assert f"example:\n  labs {name}" in shown


def test_what_grade_offers_is_what_the_grader_has():
    from labs_lib.grading import options
    from labs_lib.grading.expected import ready
    from labs_lib.grading.sandbox import levels

    assert (options.FENCES, options.MOST_SETS) == (levels.LEVELS, ready.MOST_SETS)


def test_help_is_a_word_too(capsys):
    assert cli.main(["help"]) == 0
    assert capsys.readouterr().out == cli.OVERVIEW
    assert cli.main(["help", "check"]) == 0
    assert capsys.readouterr().out.startswith("usage: labs check")


def test_check_of_a_file_that_is_no_notebook_says_so_without_our_words_for_it(course, capsys):
    (course.parent / "notes.txt").write_text("hello\n", encoding="utf-8")
    assert cli.main(["check", "notes.txt"]) == 2
    said = capsys.readouterr().err
    assert said == (
        "labs: notes.txt is not a notebook that can be read "
        "(its text is not JSON, which a notebook's is)\n"
    )


@pytest.mark.parametrize("name", cli.EXAMPLES)
def test_example_of_every_command_is_one_that_can_be_given(name):
    parser, known = cli._parser()
    assert set(known) == set(cli.EXAMPLES)
    given, said = cli.EXAMPLES[name]
    assert parser.parse_args(given.split()[1:]).run and said


def test_overview_is_short_and_names_every_command_once():
    lines = cli.OVERVIEW.splitlines()
    named = [line.split()[1] for line in lines if line.startswith("  labs ")]
    assert sorted(named) == sorted(cli.EXAMPLES)
    assert len(lines) <= 30 and max(map(len, lines)) < 100


def test_version_is_the_packages(capsys):
    assert cli.main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["chek"], "labs check"),
        (["xyzzy"], "there are start"),
        (["--nope"], "no option --nope"),
        (["help", "chek"], "labs check"),
        (["start", "now"], "`labs start --help`"),
        (["check", "42"], "no lab"),
        (["check", "nope.ipynb"], "no notebook"),
        (["check"], "no notebook"),
        (["check", "--fast"], "--help"),
        (["progress", "42"], "no lab"),
        (["hint"], "EXERCISE"),
        (["hint", "lab02"], "lab02 is a lab; give one of its exercises: lab02.head_dim, "),
        (["hint", "lab00.first_tensr"], "lab00.first_tensor"),
        (["reset"], "EXERCISE"),
        (["reset", "lab00.first_tensr"], "lab00.first_tensor"),
        (["reset", "first_tensor"], "lab00.first_tensor"),
        (["reset", "lab00.first_tensor", "--lab", "00"], "not allowed"),
        (["reset", "lab00.first_tensor"], "not there"),
        (["update"], "--from"),
        (["update", "--from", "nowhere"], "there is no nowhere"),
        (["update", "--from", "."], "no release"),
        (["submit"], "--id"),
        (["submit", "--id", "../x"], "id"),
        (["submit", "--id", "ada"], "nothing to submit"),
        (["start", "--port", "http"], "invalid int"),
        (["start", "--port", "70000"], "70000"),
        (["release", "42"], "no lab"),
        (["handout", "there"], "--from"),
        (["handout", "there", "--from", "42"], "no lab"),
        (["handout", "there", "--from", "02x"], "no lab"),
        (["claims", "77"], "no claim"),
        (["bench", "cuda", "--json", "."], "is a folder"),
        (["bench", "cuda", "--json", "nowhere/a.json"], "no folder nowhere"),
        (["claims", "02", "--verdict", "maybe"], "within-limits"),
        (["grade", "nowhere"], "nowhere"),
        (["grade", ".", "--seed", "-1"], "--seed"),
        (["grade", ".", "--labs", "42"], "no lab"),
        (["grade", ".", "--jobs", "0"], "from 1 on"),
        (["grade", ".", "--fence", "wall"], "bubblewrap"),
        (["grade"], "SUBMISSIONS"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_two(course, capsys, arguments, says):
    before = sorted(course.rglob("*"))
    assert cli.main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("labs: ")
    assert shown.err.count("\n") == 1
    assert says in shown.err
    assert sorted(course.rglob("*")) == before, "something was written"


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (UsageError("two\nlines"), 2, "labs: two lines\n"),
        (PermissionError(13, "Permission denied", "a.zip"), 2, "labs: a.zip: Permission denied\n"),
        (OSError(28, "No space left on device"), 2, "labs: No space left on device\n"),
        (KeyboardInterrupt(), 130, "labs: interrupted\n"),
    ],
)
def test_trouble_on_the_way_is_one_sentence_too(monkeypatch, capsys, error, code, says):
    def fail(*arguments):
        raise error

    monkeypatch.setattr("labs_lib.workbook.submit.submit", fail)
    assert cli.main(["submit", "--id", "ada"]) == code
    assert capsys.readouterr().err == says


def test_mistake_of_our_own_keeps_its_traceback(monkeypatch):
    def fail(*arguments):
        raise KeyError("a bug")

    monkeypatch.setattr("labs_lib.workbook.submit.submit", fail)
    with pytest.raises(KeyError):
        cli.main(["submit", "--id", "ada"])


def test_brackets_in_a_claim_are_shown_and_not_taken_for_markup(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main(["claims", "02"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "[batch, n_head, seq, head_dim]" in shown


def test_reader_that_leaves_early_sees_no_traceback(course):
    script = "import sys; from labs_lib.cli import main; sys.exit(main(['progress']))"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as labs:
        labs.stdout.close()
        assert b"Traceback" not in labs.stderr.read()


def test_overview_costs_no_torch_and_no_jupyter():
    script = (
        "import sys; from labs_lib.cli import main; main([]); "
        "sys.exit(any(m in sys.modules for m in ('torch', 'IPython', 'nbformat', 'rich')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_terminal_of_another_encoding_is_survived(course):
    script = "import sys; from labs_lib.cli import main; sys.exit(main(['progress', '0']))"
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", script],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"00 ? Start here" in done.stdout
