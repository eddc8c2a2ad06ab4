"""Every explorer that computes in the browser: how it is called, moved, and made illegal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One explorer.

    `call` is the line that anyone may write; `moves` the control that a test moves by the arrow
    keys; `settings` are set from Python, and the browser must then say what Python says; `illegal`
    is typed in by the keyboard and must be explained with a way out. `own` is the code of a
    student's function that the call names: Python runs it, and the browser shows what it says.
    """

    name: str
    call: str
    moves: str
    settings: tuple[dict, ...]
    illegal: tuple[str, int] | None = ("n_head", 7)
    keys: tuple[str, str] = ("ArrowRight", "ArrowLeft")
    own: str = ""

    @property
    def cell(self) -> str:
        """The code cell that shows it, with the explorer under its name."""
        function = self.call.partition("(")[0]
        start = f"from labs_lib.widgets.{function} import {function}\n{self.own}\n"
        return f"{start}w_{self.name} = {self.call}\nw_{self.name}"


WRONG = "one reshape (wrong)"

# Right for two heads, wrong for four, of a wrong shape for eight, not written for sixteen.
SPLIT = """
def split(x, n_head):
    if n_head == 16: raise NotImplementedError
    if n_head == 8: return x
    parts = x.reshape(1, x.shape[1], n_head, -1).transpose(1, 2)
    return parts if n_head == 2 else x.reshape(parts.shape)
"""

# Even weights with four heads, not written for two, of a wrong shape for three, else torch's own.
ATTEND = """
from torch.nn.functional import scaled_dot_product_attention as sdpa
def attend(q, k, v, mask=None):
    if q.shape[-1] == 384: raise NotImplementedError
    if q.shape[-1] == 256: return q
    return v.mean(-2, keepdim=True) if q.shape[-1] == 192 else sdpa(q, k, v, attn_mask=mask)
"""

EXPLORERS = (
    Row(
        "head_split",
        "head_split(n_head=12, d_model=768)",
        moves="seq",
        settings=(
            {"n_head": 12, "d_model": 768, "seq": 10, "way": WRONG},
            {"n_head": 1, "d_model": 96, "seq": 3, "way": WRONG},
            {"n_head": 4, "d_model": 1536, "seq": 1, "way": WRONG},
            {"n_head": 32, "d_model": 32, "seq": 16, "way": "cut the width, then swap the axes"},
            {"n_head": 5, "d_model": 8},
            {"n_head": 31, "d_model": 1531},
        ),
    ),
    Row(
        "own_split",
        "head_split(n_head=4, d_model=32, seq=6, split=split)",
        moves="seq",
        settings=(
            {"seq": 5},
            {"n_head": 8, "d_model": 64},
            {"n_head": 3},
            {"n_head": 2, "way": WRONG},
            {"n_head": 16},
            {"n_head": 32, "d_model": 1536, "seq": 16, "way": "your split_heads"},
        ),
        own=SPLIT,
    ),
    Row(
        "attention_row",
        "attention_row()",
        moves="query",
        settings=(
            {"n_head": 1, "d_model": 1536, "scale": "none"},
            {"n_head": 12, "d_model": 96, "scale": "1/√d_model", "causal": True, "query": 2},
            {"query": 0, "pull": 6.0, "key": 0},
            {"query": 5, "pull": -3.5, "key": 2, "causal": False, "scale": "1/√head_dim"},
            {"n_head": 7},
        ),
    ),
    Row(
        "own_row",
        "attention_row(attend)",
        moves="query",
        settings=({"n_head": 4}, {"query": 1}, {"n_head": 2}, {"n_head": 3}, {"n_head": 6}),
        own=ATTEND,
    ),
)
