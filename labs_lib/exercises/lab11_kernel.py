"""Lab 11: the kernel that is asked, its launches and what it may cost."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from .inputs import uniform
from .kernel_rules import traffic_rule
from .kernels import Launch, case_launch, kernel_exercise, unwritten
from .kit import Case, Tolerance
from .lab10_cases import last_above, steep_qkv

NAME = "lab11.flash_kernel"
QUERIES = 64
NAMES = (
    *("q", "k", "v", "o", "lse"),
    *("n_head", "n_kv_head", "n_q", "n_k", "head_dim", "scale", "causal"),
)


def flash_cases(rng: np.random.Generator) -> list[Case]:
    """q [batch, n_head, n_q, head_dim], k and v with n_kv_head heads and n_k keys, and causal."""

    def case(name, batch, n_head, n_kv_head, n_q, n_k, head_dim, causal=False):
        q = uniform(rng, batch, n_head, n_q, head_dim, std=1.0)
        k = uniform(rng, batch, n_kv_head, n_k, head_dim, std=1.0)
        v = uniform(rng, batch, n_kv_head, n_k, head_dim, std=1.0, mean=0.5)
        return Case(name, (q, k, v, causal))

    def steep(name, of_query, of_key, causal=False, head_dim=4):
        q, k, v = steep_qkv(rng, of_query, of_key, head_dim, torch.float32)
        v = torch.cat([v, v[..., :1] - 1, *[v[..., 1:2]] * (head_dim - 4)], dim=-1)
        return Case(name, (q, k, v, causal))

    def flat(name, level, n_q, n_k, causal=False):
        return steep(name, torch.full((n_q,), level), torch.zeros(n_k), causal)

    rise = torch.linspace(-10, 10, 97)
    return [
        case("two texts, six heads share three", 2, 6, 3, 17, 33, 8),
        case("causal, three tiles of keys", 1, 2, 1, 70, 70, 8, True),
        case("causal, more keys than queries", 1, 4, 2, 17, 65, 16, True),
        case("causal, queries that see no key", 1, 2, 2, 90, 33, 8, True),
        case("whole tiles", 1, 1, 1, 128, 128, 16),
        case("whole tiles, causal", 1, 1, 1, 128, 128, 16, True),
        case("head_dim 64", 1, 1, 1, 65, 31, 64),
        case("head_dim 40, one query", 2, 3, 1, 1, 97, 40),
        steep("scores that rise along the keys", torch.zeros(3), rise),
        steep("scores that fall along the keys", torch.zeros(3), -rise),
        steep("scores from 90 to 120", torch.full((3,), 105.0), 1.5 * rise, head_dim=16),
        steep("rows around 150 and around -150", torch.tensor([150.0, -150] * 3), torch.zeros(33)),
        flat("scores around -200", -200.0, 3, 33),
        flat("scores around -60000", -6e4, 3, 33),
        flat("seventeen scores around -8", -8.0, 3, 17),
        flat("causal, scores around -9", -9.0, 40, 40, True),
        steep("causal, the last key 150 above the others", torch.zeros(40), last_above(40), True),
    ]


def launch_flash(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Launch:
    """64 threads for each 64 queries of a head: x is the tile, y the head, z the text."""
    batch, n_head, n_q, head_dim = q.shape
    o, lse = unwritten(*q.shape), unwritten(batch, n_head, n_q)
    sizes = (n_head, k.shape[1], n_q, k.shape[2], head_dim, 1 / math.sqrt(head_dim), int(causal))
    grid = (-(-n_q // QUERIES), n_head, batch)
    return Launch(grid, (QUERIES,), (q, k, v, o, lse, *sizes), {"o": 3, "lse": 4}, names=NAMES)


WHOLE = 4 * 128 * 16  # bytes of q, k or v

SHARE = "All queries of a block can share what its threads fetched together."
ONCE = "A thread reads its query once, into an array of its own, before the loop over keys."
HIDDEN = "The first 64 queries see none of the later keys: end the loop over tiles there."

RULES = (
    traffic_rule(
        "bytes_read",
        "k and v were read once for each 64 queries",
        "The output is right. But your kernel reads {k} bytes of k and {v} of v, where {k_most}\n"
        f"are enough of each.\n{SHARE}",
        case_launch(NAME, flash_cases, launch_flash, "whole tiles"),
        {"k": 2 * WHOLE, "v": 2 * WHOLE},
    ),
    traffic_rule(
        "query_read_once",
        "q was read once",
        "The output is right. But your kernel reads {q} bytes of q, where {q_most} are enough.\n"
        f"{ONCE}",
        case_launch(NAME, flash_cases, launch_flash, "whole tiles"),
        {"q": WHOLE},
    ),
    traffic_rule(
        "hidden_tiles",
        "tiles of keys that no query of the block sees were not read",
        "The output is right. But with causal your kernel reads {k} bytes of k and {v} of v,\n"
        f"where {{k_most}} are enough of each.\n{HIDDEN}",
        case_launch(NAME, flash_cases, launch_flash, "whole tiles, causal"),
        {"k": WHOLE + WHOLE // 2, "v": WHOLE + WHOLE // 2},
    ),
)

FLASH_KERNEL = kernel_exercise(
    NAME,
    "flash attention as a kernel: a thread for each query, tiles of keys in shared memory",
    """%%cuda
// o = softmax(scale * q k^T) v and lse = log(sum(exp(scale * q k^T))), tile by tile.
// q and o are [batch, n_head, n_q, head_dim], k and v [batch, n_kv_head, n_k, head_dim], lse is
// [batch, n_head, n_q]; head_dim is at most 64. Query head h uses key/value head
// h / (n_head / n_kv_head). A block of 64 threads takes 64 queries of one head: grid
// (ceil(n_q / 64), n_head, batch). With causal, query i sees key j where j <= i + n_k - n_q, and
// tiles that no query of the block sees are not read. A query without keys: zeros, lse -INFINITY.
__global__ void flash_kernel(const float* q, const float* k, const float* v, float* o, float* lse,
                             int n_head, int n_kv_head, int n_q, int n_k, int head_dim,
                             float scale, int causal) {
    // your kernel
}
""",
    cases=flash_cases,
    launch=launch_flash,
    rules=RULES,
    axes=("batch", "n_head", "query", "head_dim"),
    tolerances={"float32": Tolerance(5e-4, 2e-4)},  # large scores are exact to 1e-5 or so
    hints=(
        "A thread keeps its query and its o in float query[64], out[64], and m and l beside them.\n"
        "__shared__ float k_tile[32][64], v_tile[32][64]; are the block's worktop.",
        "For each tile of 32 keys: all threads fetch it together, __syncthreads(), each thread\n"
        "walks over the keys of the tile that its query sees, __syncthreads() again, or a fast\n"
        "thread overwrites what a slow one still reads.",
        "A thread whose query doesn't exist fetches and waits like the others, and only writes\n"
        "nothing. Two ends: how many keys the block's last query sees, for the loop over tiles,\n"
        "and how many this thread's query sees, for the loop within one.",
    ),
    minutes=40,
)
