"""Lab 09: the plain tiled kernel, and odd ones that are right."""

from __future__ import annotations

from .edits import edited

LOAD_Q = "        q_tile[y][x] = query < n_q && i < head_dim ? q[query * head_dim + i] : 0.0f;\n"
LOAD_K = "        k_tile[y][x] = row < n_k && i < head_dim ? k[row * head_dim + i] : 0.0f;\n"
WHOLE = "        __syncthreads();  // the tiles are whole\n"
DONE = "        __syncthreads();  // nobody needs them any more\n"
MULTIPLY = "        for (int j = 0; j < TILE; j++) sum += q_tile[y][j] * k_tile[x][j];\n"
STORE = "    if (query < n_q && key < n_k) s[query * n_k + key] = sum * scale;\n"
BEFORE = "    float sum = 0.0f;\n"
PLACES = """\
    int query = blockIdx.y * TILE + y, key = blockIdx.x * TILE + x;  // this thread's score
    int row = blockIdx.x * TILE + y;  // the key that it fetches
"""
LOOP = "    for (int start = 0; start < head_dim; start += TILE) {\n        int i = start + x;\n"

TILED = f"""
#define TILE 16

__global__ void scores_tiled(const float* q, const float* k, float* s, int n_q, int n_k,
                             int head_dim, float scale) {{
    __shared__ float q_tile[TILE][TILE];
    __shared__ float k_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
{PLACES}{BEFORE}{LOOP}{LOAD_Q}{LOAD_K}{WHOLE}{MULTIPLY}{DONE}    }}
{STORE}}}
"""


def with_edits(*pairs: tuple[str, str]) -> str:
    """The plain kernel with some words exchanged."""
    return edited(TILED, *pairs)


def deeper(columns: int) -> str:
    """Tiles that take another number of columns at a time; rows of 33 or 9 floats."""
    return with_edits(
        ("#define TILE 16\n", f"#define TILE 16\n#define DEEP {columns}\n"),
        ("q_tile[TILE][TILE]", "q_tile[TILE][DEEP + 1]"),
        ("k_tile[TILE][TILE]", "k_tile[TILE][DEEP + 1]"),
        ("start += TILE) {\n        int i = start + x;", "start += DEEP) {"),
        (
            LOAD_Q + LOAD_K,
            "        for (int c = x; c < DEEP; c += TILE) {\n            int i = start + c;\n"
            "            bool inside = i < head_dim;\n"
            "            q_tile[y][c] = query < n_q && inside ? q[query * head_dim + i] : 0.0f;\n"
            "            k_tile[y][c] = row < n_k && inside ? k[row * head_dim + i] : 0.0f;\n"
            "        }\n",
        ),
        ("j < TILE", "j < DEEP"),
    )


def swizzled() -> str:
    """A row's numbers change places in a way that depends on the row."""
    return with_edits(
        ("k_tile[y][x] =", "k_tile[y][x ^ y] ="), ("k_tile[x][j]", "k_tile[x][j ^ x]")
    )


def float4_loads() -> str:
    """A quarter of the threads fetch, four numbers at once; wants head_dim a multiple of four."""
    return with_edits(
        ("float q_tile[TILE][TILE]", "alignas(16) float q_tile[TILE][TILE]"),
        ("float k_tile[TILE][TILE]", "alignas(16) float k_tile[TILE][TILE]"),
        ("        int i = start + x;\n", ""),
        (
            LOAD_Q + LOAD_K,
            "        if (x < 4) {\n            int i = start + 4 * x;\n"
            "            float4 none = make_float4(0, 0, 0, 0);\n"
            "            bool inside = i < head_dim;\n"
            "            const float4* a = (const float4*)(q + (size_t)query * head_dim + i);\n"
            "            const float4* b = (const float4*)(k + (size_t)row * head_dim + i);\n"
            "            *(float4*)&q_tile[y][4 * x] = query < n_q && inside ? *a : none;\n"
            "            *(float4*)&k_tile[y][4 * x] = row < n_k && inside ? *b : none;\n"
            "        }\n",
        ),
    )


def two_buffers() -> str:
    """The next tiles are fetched into other memory, so that one barrier a step is enough."""
    return with_edits(
        ("q_tile[TILE][TILE];", "q_tile[2][TILE][TILE];"),
        ("k_tile[TILE][TILE];", "k_tile[2][TILE][TILE];"),
        (
            "        int i = start + x;\n",
            "        int i = start + x, now = start / TILE % 2;\n",
        ),
        ("q_tile[y][x] =", "q_tile[now][y][x] ="),
        ("k_tile[y][x] =", "k_tile[now][y][x] ="),
        ("q_tile[y][j] * k_tile[x][j]", "q_tile[now][y][j] * k_tile[now][x][j]"),
        (DONE, ""),
    )
