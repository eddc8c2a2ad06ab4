"""What anybody may put into a cell, beside a right or a wrong answer."""

from __future__ import annotations

import random

from pupil_cells import (
    BUDGET,
    MASK,
    POINTS,
    SCORES,
    SDPA,
    STD,
    SUBMISSIONS,
    find,
    new_cell,
    write,
)
from pupils_wrong import WRONG_SCORES

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
