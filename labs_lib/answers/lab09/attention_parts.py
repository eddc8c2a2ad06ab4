"""Lab 09: three right kernels for attention by heads, to be spoilt one word at a time."""

from __future__ import annotations

from .edits import edited

SIGNATURE = """
__global__ void attention_per_head_blocks(const float* q, const float* k, const float* v, float* o,
                                          int n_head, int n_q, int n_k, int head_dim, float scale,
                                          int causal) {
"""
DOT = """
__device__ float dot(const float* a, const float* b, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}
"""
START = "    int pair = blockIdx.y * n_head + blockIdx.x;  // which text, which head\n"
PLACES = """\
    q += pair * n_q * head_dim;
    k += pair * n_k * head_dim;
    v += pair * n_k * head_dim;
    o += pair * n_q * head_dim;
"""
ROWS = "    for (int row = threadIdx.x; row < n_q; row += blockDim.x) {\n"
END = "        int end = causal ? row + 1 + n_k - n_q : n_k;\n"
STORE = (
    "        for (int i = 0; i < head_dim; i++)\n"
    "            o[row * head_dim + i] = end > 0 ? out[i] / sum : 0.0f;\n"
)

ATTENTION = f"""{DOT}{SIGNATURE}{START}{PLACES}{ROWS}\
        const float* mine = q + row * head_dim;
{END}        float most = -INFINITY, sum = 0.0f, out[128] = {{}};
        for (int key = 0; key < end; key++)
            most = fmaxf(most, scale * dot(mine, k + key * head_dim, head_dim));
        for (int key = 0; key < end; key++) {{
            float weight = expf(scale * dot(mine, k + key * head_dim, head_dim) - most);
            sum += weight;
            for (int i = 0; i < head_dim; i++) out[i] += weight * v[key * head_dim + i];
        }}
{STORE}    }}
}}
"""

ONLINE = f"""{DOT}{SIGNATURE}{START}{PLACES}{ROWS}\
        const float* mine = q + row * head_dim;
{END}        float most = -INFINITY, sum = 0.0f, out[128] = {{}};
        for (int key = 0; key < end; key++) {{
            float score = scale * dot(mine, k + key * head_dim, head_dim);
            float bigger = fmaxf(most, score);
            float keep = expf(most - bigger);
            sum *= keep;
            for (int i = 0; i < head_dim; i++) out[i] *= keep;
            float weight = expf(score - bigger);
            sum += weight;
            for (int i = 0; i < head_dim; i++) out[i] += weight * v[key * head_dim + i];
            most = bigger;
        }}
{STORE}    }}
}}
"""

# A thread for each query again, but keys and values come by tiles of 16 that the block shares.
TILED = f"""{DOT}{SIGNATURE}\
    __shared__ float k_tile[16][128], v_tile[16][128];
{START}{PLACES}\
    for (int first = 0; first < n_q; first += blockDim.x) {{
        int row = first + threadIdx.x;
{END}        float most = -INFINITY, sum = 0.0f, out[128] = {{}};
        for (int start = 0; start < n_k; start += 16) {{
            int here = min(16, n_k - start);
            for (int i = threadIdx.x; i < here * head_dim; i += blockDim.x) {{
                k_tile[i / head_dim][i % head_dim] = k[start * head_dim + i];
                v_tile[i / head_dim][i % head_dim] = v[start * head_dim + i];
            }}
            __syncthreads();  // the tiles are whole
            for (int j = 0; j < here && row < n_q && start + j < end; j++) {{
                float score = scale * dot(q + row * head_dim, k_tile[j], head_dim);
                float bigger = fmaxf(most, score), keep = expf(most - bigger);
                float weight = expf(score - bigger);
                sum = sum * keep + weight;
                for (int i = 0; i < head_dim; i++) out[i] = out[i] * keep + weight * v_tile[j][i];
                most = bigger;
            }}
            __syncthreads();  // nobody needs them any more
        }}
        if (row < n_q)
    {STORE}    }}
}}
"""


def with_edits(*pairs: tuple[str, str]) -> str:
    """The plain kernel, three passes over the keys, with some words exchanged."""
    return edited(ATTENTION, *pairs)


def in_online(*pairs: tuple[str, str]) -> str:
    """The kernel with a running maximum, with some words exchanged."""
    return edited(ONLINE, *pairs)


def in_tiled(*pairs: tuple[str, str]) -> str:
    """The kernel with tiles of keys and values, with some words exchanged."""
    return edited(TILED, *pairs)
