"""A class of students who hand in lab 01 in every way that graders have met.

`SUBMISSIONS` maps a student to what they do with their notebook: a function that changes the solved
notebook in place (and may return other bytes to hand in).
"""

from __future__ import annotations

import copy
import json
import random

import nbformat

from labs_lib.answers import answer
from labs_lib.checking.oracle import VISIBLE_SEED
from labs_lib.exercises import exercise, lab
from labs_lib.grading.course import Course, stub_of
from labs_lib.notebook.cells import exercise_name, role

COURSE = Course(lab(1))
SCORES, MASK, SDPA, STD, BUDGET = (
    f"lab01.{name}"
    for name in (
        "attention_scores",
        "causal_mask",
        "scaled_dot_product_attention",
        "dot_product_std",
        "budget",
    )
)
POINTS = (SCORES, MASK, SDPA, STD, BUDGET)
SUBMISSIONS = {}


def released():
    """The student's notebook, untouched."""
    return stub_of(COURSE)


def solved():
    """The student's notebook with the course's own answers in it."""
    whole = released()
    solution = COURSE.solution()
    for cell, ours in zip(whole.cells, solution.cells, strict=True):
        if role(cell) == "answer":
            cell.source = ours.source.strip()
    return whole


def find(whole, name, kind="answer"):
    """The index of an exercise's cell."""
    return next(
        n for n, c in enumerate(whole.cells) if role(c) == kind and exercise_name(c) == name
    )


def write(whole, name, text):
    """Put another answer into an exercise's cell."""
    whole.cells[find(whole, name)].source = text


def new_cell(text, kind="code"):
    """A cell as an editor makes it."""
    make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}[kind]
    return make(text)


def pupil(function):
    """Register what a student does; the function's name is the student's."""
    SUBMISSIONS[function.__name__] = function
    return function


def dump(whole):
    return json.dumps(whole, ensure_ascii=False, indent=1).encode("utf-8")


# Right, in several styles ------------------------------------------------------------------------


@pupil
def right(whole):
    """Nothing changes the course's own answers."""


@pupil
def right_in_another_style(whole):
    write(
        whole,
        SCORES,
        'attention_scores = lambda q, k: torch.einsum("...qd,...kd->...qk", q, k)'
        " / q.shape[-1] ** 0.5",
    )
    write(
        whole,
        MASK,
        "def causal_mask(seq_q, seq_k=None):\n"
        "    seq_k = seq_k or seq_q\n"
        "    rows = [[j <= i + seq_k - seq_q for j in range(seq_k)] for i in range(seq_q)]\n"
        "    return torch.tensor(rows, dtype=torch.bool).reshape(seq_q, seq_k)",
    )
    write(
        whole,
        STD,
        "class Spread:\n"
        "    def __call__(self, head_dim, q_std, k_std):\n"
        "        return float(np.sqrt(head_dim) * q_std * k_std)\n\n"
        "dot_product_std = Spread()",
    )


@pupil
def right_and_noisy(whole):
    text = whole.cells[find(whole, SCORES)].source
    noisy = text.replace(
        "    head_dim = q.shape[-1]",
        '    import sys, warnings\n    print("shape", q.shape)\n    warnings.warn("careful")\n'
        '    print("error: 0.01", file=sys.stderr)\n    head_dim = q.shape[-1]',
    )
    assert noisy != text
    write(whole, SCORES, noisy + '\nprint("done")\nattention_scores')


@pupil
def right_in_new_cells(whole):
    for name in POINTS:
        at = find(whole, name)
        answer = whole.cells[at].source
        whole.cells[at].source = released().cells[find(released(), name)].source
        whole.cells.insert(at + 1, new_cell(answer))


@pupil
def right_in_one_cell(whole):
    texts = [whole.cells[find(whole, name)].source for name in POINTS]
    for name in POINTS:
        write(whole, name, released().cells[find(released(), name)].source)
    write(whole, SCORES, "\n\n".join(texts))


@pupil
def right_without_metadata_and_ids(whole):
    for cell in whole.cells:
        cell.metadata, cell["id"] = {}, f"{random.random():.12f}"[2:]


@pupil
def right_with_a_helper_and_own_imports(whole):
    at = next(n for n, c in enumerate(whole.cells) if role(c) == "setup")
    whole.cells[at].source += "\nfrom math import sqrt as root"
    at = find(whole, SCORES)
    whole.cells.insert(at, new_cell("def swapped(x):\n    return x.transpose(-2, -1)"))
    write(
        whole,
        SCORES,
        "def attention_scores(q, k):\n    return q @ swapped(k) / root(q.shape[-1])",
    )


@pupil
def right_with_scratch_cells(whole):
    for name in reversed(POINTS):
        at = find(whole, name, "check")
        whole.cells.insert(at + 1, new_cell("q = torch.randn(3, 4)\nq @ 7"))
        whole.cells.insert(at + 1, new_cell("while True: pass"))
        whole.cells.insert(at, new_cell("F.scaled_dot_product_attention"))


@pupil
def right_with_a_byte_order_mark(whole):
    return b"\xef\xbb\xbf" + dump(whole)


@pupil
def right_with_windows_quotes(whole):
    at = find(whole, SCORES)
    whole.cells[at].source += "\n# it QUOTE s done"
    return dump(whole).replace(b"QUOTE", b"\x92")


@pupil
def right_in_format_3(whole):
    cells = []
    for cell in whole.cells:
        old = {"cell_type": cell.cell_type, "metadata": {}}
        if cell.cell_type == "code":
            old |= {"input": cell.source, "outputs": [], "language": "python", "prompt_number": 1}
        else:
            old |= {"source": cell.source}
        cells.append(old)
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}}
    return json.dumps(old | {"worksheets": [{"cells": cells}]}).encode("utf-8")


@pupil
def right_from_colab(whole):
    whole["nbformat_minor"] = 2
    whole.metadata = {"widgets": {"application/vnd": {"a": {}}}, "kernelspec": {"name": "ir"}}
    for cell in whole.cells:
        cell.metadata["outputId"] = "x"


@pupil
def right_but_retyped(whole):
    at = find(whole, MASK)
    cell = whole.cells[at]
    whole.cells[at] = new_cell(cell.source, "markdown")
    whole.cells[at].metadata = cell.metadata


@pupil
def right_but_shuffled(whole):
    whole.cells.reverse()


@pupil
def right_with_copies_of_stubs(whole):
    for name in POINTS:
        stub = copy.deepcopy(released().cells[find(released(), name)])
        whole.cells.insert(find(whole, name) + 1, stub)


@pupil
def right_with_checks_deleted(whole):
    whole.cells = [cell for cell in whole.cells if role(cell) != "check"]


@pupil
def right_with_markers(whole):
    at = find(whole, SCORES)
    whole.cells[at].source = "# NBVAL_SKIP\n" + whole.cells[at].source
    whole.cells[at].metadata["tags"] = ["nbval-skip", "raises-exception"]
    text = whole.cells[find(whole, MASK)].source
    write(whole, MASK, text.replace('"""', '"""\n    # NBVAL_CHECK_OUTPUT\n', 1))


@pupil
def right_in_odd_ways(whole):
    """numpy's numbers, noise of all kinds, and names that a later cell gives another meaning."""
    write(
        whole,
        STD,
        "def dot_product_std(head_dim, q_std, k_std):\n"
        '    print("ab\\bc\\r 10%|#   |\\r 20%|##  |", "\\x1b[31merror: 0.01\\x1b[0m")\n'
        "    noise = 0 * float(torch.randn(())) + 0 * np.random.rand()\n"
        "    return np.float64(np.sqrt(head_dim) * q_std * k_std + noise)",
    )
    late = "attention_scores = 4\ncausal_mask = None\nq = k = head_dim = dot_product_std\n0"
    at = find(whole, BUDGET)
    whole.cells[at].source += f"\n{late}"


# Wrong, each in its own way ----------------------------------------------------------------------

WRONG_SCORES = "def attention_scores(q, k):\n    return q @ k.transpose(-2, -1) / q.shape[-1]"


@pupil
def wrong_scale(whole):
    write(whole, SCORES, WRONG_SCORES)


@pupil
def wrong_in_an_unheard_of_way(whole):
    write(
        whole,
        SCORES,
        "def attention_scores(q, k):\n    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])\n"
        "    return s * 1.01 + 0.1",
    )


@pupil
def wrong_shape(whole):
    write(whole, SCORES, "def attention_scores(q, k):\n    return q.sum(-1)")


@pupil
def wrong_type(whole):
    write(whole, SCORES, "attention_scores = torch.zeros(3)")
    write(whole, MASK, "def causal_mask(seq_q, seq_k=None):\n    return None")
    write(whole, STD, "def dot_product_std(head_dim, q_std, k_std):\n    return '8'")


@pupil
def wrong_with_a_memory(whole):
    write(
        whole,
        STD,
        "calls = []\ndef dot_product_std(head_dim, q_std, k_std):\n    calls.append(1)\n"
        "    return math.sqrt(head_dim) * q_std * k_std * (1 + (len(calls) > 3))",
    )


@pupil
def wrong_choice(whole):
    write(whole, "lab01.quiz_scale", 'quiz_scale = "e"')


@pupil
def forbidden(whole):
    write(
        whole,
        SDPA,
        "def scaled_dot_product_attention(q, k, v, mask=None):\n"
        "    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n"
        "    return torch.nan_to_num(out)",
    )


@pupil
def forbidden_by_another_way(whole):
    write(
        whole,
        SDPA,
        "def scaled_dot_product_attention(q, k, v, mask=None):\n"
        '    attend = getattr(F, "scaled_dot" + "_product_attention")\n'
        "    return torch.nan_to_num(attend(q, k, v, attn_mask=mask))",
    )


@pupil
def forbidden_through_a_helper(whole):
    helper = "def attend(q, k, v, m):\n    return F.scaled_dot_product_attention(q, k, v, m)"
    whole.cells.insert(find(whole, SCORES), new_cell(helper))
    write(
        whole,
        SDPA,
        "def scaled_dot_product_attention(q, k, v, mask=None):\n"
        "    return torch.nan_to_num(attend(q, k, v, mask))",
    )


@pupil
def takes_it_from_the_library(whole):
    write(whole, SCORES, "from labs_lib.attention.single_head import attention_scores")


# Cheats ------------------------------------------------------------------------------------------


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


# What anybody may put into a cell, beside a right or a wrong answer ------------------------------

WRONG = {
    SCORES: WRONG_SCORES,
    MASK: "def causal_mask(seq_q, seq_k=None):\n"
    "    return torch.ones(seq_q, seq_k or seq_q).tril().bool()",
    SDPA: "def scaled_dot_product_attention(q, k, v, mask=None):\n"
    "    return torch.softmax(q @ k.transpose(-2, -1), -1) @ v",
    STD: "def dot_product_std(head_dim, q_std, k_std):\n    return head_dim * q_std * k_std",
    BUDGET: "def budget(n_key, n_wanted, gap):\n    return 1.0",
}
MEAN = """
import builtins; builtins.print = lambda *a, **k: None
import sys; sys.stdout = None
torch.set_default_dtype(torch.float16)
torch.manual_seed(1); import random; random.seed(1); np.random.seed(1)
del check
check = lambda *a: print("PASS")
import atexit, os; atexit.register(os._exit, 0)
import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)
import threading; threading.Timer(0.2, print, ["PASS  lab01.attention_scores"]).start()
get_ipython().events.register("post_run_cell", lambda *a: print("PASS"))
get_ipython().display_formatter = None
import sys; sys.setrecursionlimit(60)
import gc; gc.disable(); kept = gc.get_objects()
import os; os.environ.clear()
import os; open("r.json", "w").write('{"seed": 0}'); os.environ["LABS_RUN"] = "r.json"
import os; os.close(1); os.close(2)
import json; json.loads = lambda *a, **k: {"seed": 0, "places": {}}
import labs_lib.checking.check as c; c.observe_all = lambda *a: []
import labs_lib.checking.check as c; c.render = lambda *a: "PASS"
torch.Tensor.__eq__ = lambda a, b: True
torch.allclose = torch.equal = lambda *a, **k: True
import sys; sys.modules.pop("torch"); sys.modules.pop("labs_lib")
import sys; sys.exit()
raise KeyboardInterrupt
%reset -f
!kill -9 $PPID
import os; os.kill(os.getpid(), 11)
import os; os.fork() or os._exit(0)
import subprocess; subprocess.Popen(["sleep", "99"], start_new_session=True)
from IPython.display import display; display({"text/plain": "PASS"}, raw=True)
import os; os.chmod(".", 0); os.rmdir(os.getcwd())
while True: raise MemoryError
import numpy; numpy.round = numpy.around = lambda x, *a: 0 * x
exec("def attention_scores(q, k): return q * 0")
import gc; [setattr(x, "maximum", 0) for x in gc.get_objects() if hasattr(x, "__dict__")][:0]
"\ud800\x00" * 9
""".strip().split("\n")


def hostile(seed):
    """A change to a solved notebook, and the exercises that have a wrong answer after it."""
    rng = random.Random(seed)
    wrong = {name for name in POINTS if rng.random() < 0.6} | {rng.choice(POINTS)}

    def change(whole):
        for name in POINTS:
            if name in wrong:
                write(whole, name, WRONG[name])
            for text in rng.sample(MEAN, rng.choice([1, 2])):
                at = find(whole, name)
                if rng.random() < 0.5:
                    whole.cells[at].source += f"\n{text}"
                else:
                    whole.cells.insert(at + rng.choice([0, 1]), new_cell(text))

    return change, wrong


HOSTILE = {}
for _seed in range(5):
    SUBMISSIONS[f"hostile_{_seed}"], HOSTILE[f"hostile_{_seed}"] = hostile(_seed)


# Troubles ----------------------------------------------------------------------------------------


@pupil
def half_done(whole):
    for name in (SDPA, BUDGET):
        write(whole, name, released().cells[find(released(), name)].source)


@pupil
def untouched(whole):
    whole.cells = released().cells


@pupil
def does_not_parse(whole):
    write(whole, SCORES, "def attention_scores(q, k):\n    return q @ (k\n")
    write(whole, MASK, "def causal_mask(seq_q, seq_k=None):\n\tif seq_k:\n        return 3\n")


@pupil
def raises(whole):
    write(whole, SCORES, "def attention_scores(q, k):\n    return q @ undefined_name")
    write(whole, STD, "def dot_product_std(head_dim, q_std, k_std):\n    raise SystemExit")
    write(whole, BUDGET, "def budget(n_key, n_wanted, gap):\n    return input('?')")


@pupil
def loops(whole):
    write(whole, MASK, "while True:\n    pass")


@pupil
def loops_inside(whole):
    write(
        whole,
        SCORES,
        "def attention_scores(q, k):\n    while True:\n        try:\n            q = q + 1\n"
        "        except BaseException:\n            pass",
    )


@pupil
def leaves(whole):
    write(whole, SCORES, "import os\ndef attention_scores(q, k):\n    os._exit(0)")


@pupil
def eats_memory(whole):
    write(
        whole,
        MASK,
        "def causal_mask(seq_q, seq_k=None):\n    kept = []\n    while True:\n"
        "        kept.append(torch.ones(30_000_000))",
    )


@pupil
def floods(whole):
    write(whole, STD, "while True:\n    print('x' * 1000)")


# Not what was asked for --------------------------------------------------------------------------


@pupil
def not_json(whole):
    return b"import torch\nprint('hello')\n"


@pupil
def empty(whole):
    return b""


@pupil
def cut_off(whole):
    return dump(whole)[:2000]


@pupil
def in_conflict(whole):
    lines = dump(whole).split(b"\n")
    return b"\n".join([*lines[:4], b"<<<<<<< HEAD", *lines[4:]])


@pupil
def of_another_lab(whole):
    return dump(stub_of(Course(lab(0))))


@pupil
def of_no_lab(whole):
    return dump(nbformat.v4.new_notebook(cells=[new_cell("print(1)")]))
