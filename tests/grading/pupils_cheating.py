"""Students who try to pass without an answer."""

from __future__ import annotations

import nbformat
from pupil_cells import SCORES, SDPA, STD, find, pupil, write
from pupils_wrong import WRONG_SCORES

from labs_lib.answers import answer
from labs_lib.checking.oracle import VISIBLE_SEED
from labs_lib.exercises import exercise


@pupil
def cheat_skips_the_check(whole):
    write(whole, SCORES, "# NBVAL_SKIP\n" + WRONG_SCORES)
    at = find(whole, SCORES, "check")
    whole.cells[at].source = "# NBVAL_SKIP\n" + whole.cells[at].source
    whole.cells[at].metadata["tags"] = ["nbval-skip"]


@pupil
def cheat_edits_the_checks_and_their_outputs(whole):
    write(whole, SCORES, WRONG_SCORES)
    at = find(whole, SCORES, "check")
    whole.cells[at].source = 'print("PASS  lab01.attention_scores")'
    out = nbformat.v4.new_output("stream", name="stdout", text="PASS  lab01.attention_scores\n")
    whole.cells[at].outputs, whole.cells[at].execution_count = [out], 1


@pupil
def cheat_patches_print(whole):
    write(whole, SCORES, WRONG_SCORES)
    write(
        whole,
        STD,
        whole.cells[find(whole, STD)].source
        + "\nimport builtins\nbuiltins.print = lambda *a, **k: None",
    )


@pupil
def cheat_is_equal_to_everything(whole):
    write(
        whole,
        SCORES,
        "class Same(torch.Tensor):\n    def __eq__(self, other):\n        return True\n"
        "    def __ne__(self, other):\n        return False\n"
        "    def __sub__(self, other):\n        return torch.zeros(())\n\n"
        "def attention_scores(q, k):\n    return Same(q @ k.transpose(-2, -1))",
    )


@pupil
def cheat_has_a_check_of_its_own(whole):
    write(whole, SCORES, WRONG_SCORES + "\n\ndef check(*_):\n    print('PASS')")


@pupil
def cheat_rewrites_cells(whole):
    write(
        whole,
        SCORES,
        WRONG_SCORES
        + "\n\nget_ipython().input_transformers_cleanup.append("
        + "lambda lines: ['print(\"PASS\")\\n'] if 'check(' in ''.join(lines) else lines)",
    )


@pupil
def cheat_patches_the_measuring(whole):
    write(
        whole,
        SDPA,
        whole.cells[find(whole, SDPA)].source
        + "\nimport labs_lib.checking.check as measuring\nmeasuring.rules_kept = lambda *_: {}",
    )


@pupil
def cheat_silences_errors_and_prints_marks(whole):
    write(
        whole,
        SCORES,
        "import IPython, json\n"
        'marks = json.dumps({"lab01.attention_scores": {"status": "pass", "points": 99}})\n'
        "shell = IPython.core.interactiveshell.InteractiveShell\n"
        "shell.showtraceback = shell._showtraceback = lambda *a, **k: print(marks)\n"
        "def attention_scores(q, k):\n    raise GeneratorExit(marks)\n\nprint(marks)\nmarks",
    )


@pupil
def cheat_tells_its_inputs(whole):
    """Hidden inputs in what it raises: as they are, without a point, and in letters."""
    write(
        whole,
        SCORES,
        "def attention_scores(q, k):\n"
        "    plain = q.flatten()[:4].tolist()\n"
        "    raise ValueError(plain, [int(x * 1e6) for x in plain], repr(plain).encode().hex())",
    )


@pupil
def cheat_plants_files(whole):
    """Files that another student's kernel, or the grader, would load if they were kept."""
    write(
        whole,
        SCORES,
        WRONG_SCORES + "\n\nimport os, pathlib, site, sys\n"
        'patch = "import builtins; builtins.print = lambda *a, **k: None"\n'
        "places = [pathlib.Path(p) for p in (*sys.path, '.', '..', '~', os.environ['HOME'])]\n"
        "for place in places + [pathlib.Path(site.getusersitepackages())]:\n"
        "    for name in ('.ipython/profile_default/startup/0.py', 'sitecustomize.py', 'x.pth',\n"
        "                 'conftest.py', 'labs_lib.py', 'grades.csv'):\n"
        "        try:\n"
        "            (place / name).parent.mkdir(parents=True, exist_ok=True)\n"
        "            (place / name).write_text(patch, encoding='utf-8')\n"
        "        except OSError:\n"
        "            pass",
    )


@pupil
def cheat_looks_for_what_is_expected(whole):
    """In the frames above it, among all objects, in the environment and in every file near it."""
    write(
        whole,
        SCORES,
        "def attention_scores(q, k):\n"
        "    import gc, os, pathlib, sys\n"
        "    seen, frame = [], sys._getframe()\n"
        "    while frame:\n"
        "        seen += [*frame.f_locals.values()]\n"
        "        frame = frame.f_back\n"
        "    seen += [x for x in gc.get_objects() if isinstance(x, (dict, list, tuple))]\n"
        "    near = {pathlib.Path('.'), *map(pathlib.Path, os.environ.values())}\n"
        "    for place in [p for p in near if p.is_file() and p.stat().st_size < 1e6]:\n"
        "        seen.append(place.read_bytes().decode('utf-8', 'replace'))\n"
        "    for thing in seen:\n"
        "        text = thing if isinstance(thing, str) else ''\n"
        "        if text.startswith('lab01.attention_scores\\ncase'):\n"
        "            raise RuntimeError(text)\n"
        "        wanted = (*q.shape[:-1], k.shape[-2])\n"
        "        if isinstance(thing, torch.Tensor) and thing.shape == wanted:\n"
        "            return thing\n"
        "    return q @ k.transpose(-2, -1) / q.shape[-1]",
    )


def table_of_visible_answers():
    """A program that holds the results for the inputs that a student's own check uses."""
    item = exercise(STD)
    cases = item.make_cases(VISIBLE_SEED)
    known = {str(case.args): item.call(answer(STD).reference, case) for case in cases}
    return (
        f"KNOWN = {known!r}\n\ndef dot_product_std(*given):\n"
        "    return KNOWN.get(str(given), given[0])"
    )


@pupil
def cheat_knows_the_visible_answers(whole):
    write(whole, STD, table_of_visible_answers())
