"""No way to a forbidden function is a silent point, and no honest way of writing is a doubt."""

from __future__ import annotations

import pytest

from labs_lib.exercises import exercise
from labs_lib.grading.reading.structure import structure
from labs_lib.notebook.matching import Answer, Piece

SDPA = "lab01.scaled_dot_product_attention"
HEAD = "def scaled_dot_product_attention(q, k, v, mask=None):\n    return "
NAME = "'scaled_dot' + '_product_attention'"


def found(text, name=SDPA):
    answer = Answer(name, (Piece(text, 1, ""),), attempted=True)
    return structure(exercise(name), {name: answer})


ROADS = [  # an expression that is, or leads to, the function; what stands above it
    (f"getattr(getattr(torch.nn, 'functional'), {NAME})", ""),
    (f"object.__getattribute__(F, {NAME})", ""),
    (f"type(F).__getattribute__(F, {NAME})", ""),
    (f"super(type(F), F).__getattribute__({NAME})", ""),
    (f"vars(F)[{NAME}]", ""),
    (f"F.__dict__[{NAME}]", ""),
    ("im('torch.nn.functional').x", "from importlib import import_module as im"),
    ("torch.ops.aten.scaled_dot_product_attention", ""),
    ("torch.ops.aten._scaled_dot_product_flash_attention_for_cpu", ""),
    ("o.aten.x", "from torch import ops as o"),
    ("torch._C._nn.scaled_dot_product_attention", ""),
    ("functools.partial(F.scaled_dot_product_attention)", "import functools"),
    (f"m({NAME}, q, k, v)(F)", "from operator import methodcaller as m"),
    ("pickle.loads(b'ctorch.nn.functional')", "import pickle"),
    ("torch.load(io.BytesIO(DATA), weights_only=False)", ""),
    ("torch.serialization.pickle.loads(DATA)", ""),
    ("torch.multiprocessing.reductions.ForkingPickler.loads(DATA)", ""),
    ("np.load(FILE, allow_pickle=True).item()", "import numpy as np"),
    ("np.testing.runstring(TEXT, FOUND)", "import numpy as np"),
    ("np.lib.npyio.pickle.loads(DATA)", "import numpy as np"),
    ("pd.eval(TEXT)", "import pandas as pd"),
    ("eval(TEXT)", ""),
    ("c(TEXT, '', 'eval')", "c = compile"),
    ("K.f", "class K:\n    f = staticmethod(F.scaled_dot_product_attention)"),
    ("g.__annotations__['return']", "def g() -> F.scaled_dot_product_attention: ..."),
    (
        "typing.get_type_hints(G)['f']",
        f"import typing\nclass G: f: 'F.' {NAME.replace(' + ', ' ')}",
    ),
    (f"typing._eval_type(typing.ForwardRef('F.' + {NAME}), FOUND)", "import typing"),
    ("dataclasses.sys.modules['torch.nn'].x", "import dataclasses"),
    ("enum.sys.modules['torch.nn'].x", "import enum"),
    ("collections._sys.modules['torch.nn'].x", "import collections"),
    ("contextlib.os.x", "import contextlib"),
    ("torch.sys.modules['torch.nn.functional'].x", ""),
    ("torch.builtins.eval(TEXT)", ""),
    ("F.importlib.import_module(TEXT).x", ""),
    ("i.import_module(TEXT).x", "from torch import importlib as i"),
    ("torch.hub.load(PLACE, TEXT)", ""),
    ("torch.package.PackageImporter(FILE).x", ""),
    ("torch.overrides.get_testing_overrides()", ""),
    ("torch.testing._internal.common_methods_invocations.op_db", ""),
    ("torch.distributed.x", ""),
    ("torch.fx.symbolic_trace(q)", ""),
    ("torch.export.export(q)", ""),
    ("torch.jit.CompilationUnit(TEXT).f", ""),
    ("torch.ao.nn.quantizable.MultiheadAttention(4, 1)", ""),
    ("F.multi_head_attention_forward", ""),
    ("nn.TransformerDecoder(1, 1)", "from torch import nn"),
    ("torch.nn.Module.__subclasses__()[0]", ""),
    ("type(q).mro()[0]", ""),
    ("[o for o in gc.get_objects()][0]", "import gc"),
    ("(x for x in [1]).gi_frame.f_back.f_builtins['ev' + 'al'](TEXT)", ""),
    ("error.__traceback__.tb_frame.f_globals['F']", ""),
    ("(lambda: 0).__builtins__['ev' + 'al'](TEXT)", ""),
    ("F.softmax.__globals__['F']", ""),
    ("torch.utils.checkpoint.sys", ""),
    ("sys.path_hooks[0]", "import sys"),
    ("s.modules['torch'].x", "import sys as s"),
    ("plt.sys.modules['torch'].x", "import matplotlib.pyplot as plt"),
    ("F.\N{LATIN SMALL LETTER LONG S}caled_dot_product_attention", ""),
    ("types.FunctionType(CODE, FOUND)", "import types"),
    ("sympy.lambdify('q', TEXT)", "import sympy"),
    ("use(q)", "def use(f):\n    return F.scaled_dot_product_attention"),
]


@pytest.mark.parametrize(("road", "above"), ROADS, ids=[road[:60] for road, _ in ROADS])
def test_no_way_to_a_forbidden_function_is_a_silent_point(road, above):
    read = found(f"{above}\n{HEAD}{road}(q, k, v, mask)".lstrip())
    assert read.forbidden or read.doubts


WHOLE = [
    f"def use(f):\n    return F.scaled_dot_product_attention\n@use\n{HEAD}q",
    f"@torch.jit.script\n{HEAD}q",
    "scaled_dot_product_attention = lambda q, k, v, m=None, f=F.scaled_dot_product_attention: f(q)",
    "def scaled_dot_product_attention(q, k, v, m=None, f=torch.nn.functional."
    "scaled_dot_product_attention):\n    return f(q, k, v, m)",
    "match F:\n    case object(scaled_dot_product_attention=scaled_dot_product_attention): pass",
    "class T(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, f, t, a):\n"
    f"        return f(*a)\n{HEAD}q",
    f"delattr(torch, 'softmax')\n{HEAD}q",
]


@pytest.mark.parametrize("text", WHOLE, ids=range(len(WHOLE)))
def test_no_statement_brings_a_forbidden_function_silently(text):
    read = found(text)
    assert read.forbidden or read.doubts


BODY = """\
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ v
"""
PLAIN = "def scaled_dot_product_attention(q, k, v, mask=None):\n"
HONEST = {
    "einsum": PLAIN
    + "    w = torch.einsum('...id,...jd->...ij', q, k)\n    return w.softmax(-1) @ v",
    "a-helper": "def weights(s):\n    return torch.softmax(s, dim=-1)\n\n" + PLAIN + BODY,
    "a-class": "class Attention:\n    def __call__(self, q, k, v):\n        return q @ k.mT @ v\n\n"
    + PLAIN
    + "    attend = Attention()\n    return attend(q, k, v)",
    "a-module": "class Head(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.attention = torch.nn.Linear(4, 4)\n\n" + PLAIN + BODY,
    "numpy": "import numpy as np\n\n" + PLAIN + "    x = np.asarray(q).copy()\n    rng = "
    "np.random.default_rng(0)\n    return torch.from_numpy(x) @ k.mT @ v",
    "functools": "import functools\n\n@functools.lru_cache\ndef scale(n):\n    return n**-0.5\n\n"
    + PLAIN
    + BODY,
    "contextlib": "from contextlib import nullcontext\n\n" + PLAIN + "    with nullcontext():\n"
    "        w = (q @ k.mT).softmax(-1)\n    return w @ v",
    "math-and-types": "import math\nfrom typing import Optional\nfrom torch import Tensor\n\ndef "
    "scaled_dot_product_attention(q: Tensor, k, v, mask: Optional[Tensor] = None):\n" + BODY,
    "a-dictionary": PLAIN + "    kept = {'q': q}.copy()\n    kept.update(k=k)\n" + BODY,
    "match": PLAIN
    + "    match mask:\n        case None: pass\n        case _: q = q.clone()\n"
    + BODY,
    "reduce": "from functools import reduce\n\n" + PLAIN + "    w = (q @ k.mT).exp()\n"
    "    return reduce(torch.matmul, [w / w.sum(-1, keepdim=True), v])",
    "try": PLAIN + "    try:\n        s = q @ k.mT\n    except RuntimeError as error:\n"
    "        raise ValueError('shapes') from error\n    return s.softmax(-1) @ v",
    "device": PLAIN + "    zero = torch.zeros((), device=q.device, dtype=q.dtype)\n" + BODY,
    "autocast-off": PLAIN
    + "    with torch.autograd.set_detect_anomaly(False):\n        s = q @ k.mT\n"
    "    return s.softmax(-1) @ v",
}


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_an_honest_program_of_another_style_is_no_doubt(text):
    read = found(text)
    assert not read.forbidden and not read.doubts
