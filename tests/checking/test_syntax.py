"""The text of an answer is read, never run; ways around a forbidden name are doubt."""

from __future__ import annotations

import pytest

from labs_lib.checking.syntax import Reading, read
from labs_lib.checking.verdict import source_of

FORBIDDEN = ("torch.nn.functional.scaled_dot_product_attention", "labs_lib.config.AttentionConfig")
SDPA, CONFIG = FORBIDDEN


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("F.scaled_dot_product_attention(q, k, v)", SDPA),
        ("from torch.nn.functional import scaled_dot_product_attention as mine", SDPA),
        ("import torch.nn.functional as G\nG.scaled_dot_product_attention(q)", SDPA),
        ("%time\nx = F.scaled_dot_product_attention(q)", SDPA),
        ("Config = AttentionConfig", CONFIG),
        ("from labs_lib.config import AttentionConfig", CONFIG),
        ("class AttentionConfig(AttentionConfig):\n    pass", CONFIG),
        ("def AttentionConfig(d, base=AttentionConfig):\n    return base(d)", CONFIG),
        ("AttentionConfig = lambda d, base=AttentionConfig: base(d)", CONFIG),
        ("@wraps(AttentionConfig)\ndef AttentionConfig(d):\n    return d", CONFIG),
    ],
)
def test_a_forbidden_name_is_found_under_any_path_and_alias(source, found):
    assert read(source, FORBIDDEN).forbidden == (found,)


@pytest.mark.parametrize(
    "source",
    [
        "def scaled_dot_product_attention(q, k, v):\n    return q",
        "def f(q):\n    # F.scaled_dot_product_attention would do it\n    return q",
        'def f(q):\n    "as F.scaled_dot_product_attention does"\n    return q',
        "class AttentionConfig:\n    def copy(self):\n        return AttentionConfig()",
        "AttentionConfig = lambda d: d",
        "x = 1",
    ],
)
def test_ones_own_definition_and_prose_are_no_use(source):
    assert read(source, FORBIDDEN) == Reading()


@pytest.mark.parametrize(
    "source",
    [
        "getattr(F, 'scaled_dot' + '_product_attention')(q)",
        "eval('F.scaled_dot_product_attention')(q)",
        "import importlib\nimportlib.import_module('labs_lib.config')",
        "from torch.nn.functional import *\nx = 1",
        "globals()['x']",
        "name = 'scaled_dot_product_attention'",
        "F.__dict__['x']",
        "def broken(:\n    F.scaled_dot_product_attention",
    ],
)
def test_ways_around_a_name_are_doubt(source):
    reading = read(source, FORBIDDEN)
    assert reading.doubts and not reading.forbidden


def test_nothing_forbidden_means_nothing_to_read():
    assert read("eval('1')", ()) == Reading()


def test_a_cell_too_deep_to_parse_is_no_crash():
    assert read("x = " + "(" * 5000 + ")" * 5000, FORBIDDEN).forbidden == ()


def test_the_text_of_a_class_is_found_through_its_methods():
    assert source_of(int) == ""
    assert "def entropy" in source_of(Die)


class Die:
    """A class of a file."""

    def entropy(self):
        return 2.6
