"""Students whose answers are wrong, each in its own way."""

from __future__ import annotations

from pupil_cells import MASK, SCORES, SDPA, STD, find, new_cell, pupil, write

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
