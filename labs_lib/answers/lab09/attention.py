"""Lab 09: attention with one block for each pair of a text and a head."""

from __future__ import annotations

from ..kit import Answer, Right
from .attention_parts import (
    ATTENTION,
    ONLINE,
    START,
    TILED,
    in_online,
    with_edits,
)
from .attention_wrong import WRONG
from .edits import bundled

ATTENTION_PER_HEAD_BLOCKS = Answer(
    reference=bundled("attention_per_head_blocks"),
    wrong=WRONG,
    right=(
        Right("a_thread_for_each_query", ATTENTION),
        Right("online", ONLINE),
        Right("tiles_of_keys", TILED),
        Right("pairs_in_another_order", with_edits(
            (START, "    int pair = blockIdx.x * gridDim.y + blockIdx.y;  // each once\n"))),
        Right("exp2_of_scaled", ATTENTION.replace("scale * dot", "1.44269504f * scale * dot")
              .replace("expf(", "exp2f(")),
        Right("rescaled_only_when_needed", in_online(
            ("            float keep = expf(most - bigger);\n            sum *= keep;\n"
             "            for (int i = 0; i < head_dim; i++) out[i] *= keep;\n",
             "            if (bigger > most) {\n                float keep = expf(most - bigger);\n"
             "                sum *= keep;\n"
             "                for (int i = 0; i < head_dim; i++) out[i] *= keep;\n"
             "            }\n"))),
        Right("keys_backwards", ATTENTION.replace(
            "for (int key = 0; key < end; key++)", "for (int key = end - 1; key >= 0; key--)")),
        Right("masked_by_a_large_number", with_edits(
            ("        int end = causal ? row + 1 + n_k - n_q : n_k;\n",
             "        int last = causal ? row + n_k - n_q : n_k - 1, end = last < 0 ? 0 : n_k;\n"),
            ("most = fmaxf(most, scale * dot(mine, k + key * head_dim, head_dim));",
             "most = fmaxf(most, key > last\n"
             "            ? -1e30f : scale * dot(mine, k + key * head_dim, head_dim));"),
            ("float weight = expf(scale * dot(mine, k + key * head_dim, head_dim) - most);",
             "float weight = expf((key > last\n"
             "            ? -1e30f : scale * dot(mine, k + key * head_dim, head_dim)) - most);"))),
    ),
)  # fmt: skip
