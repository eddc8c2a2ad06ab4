"""Lab 11: flash attention as a kernel, right ones and one of them spoilt a word at a time."""

from __future__ import annotations

from labs_lib.exercises.lab11_kernel import HIDDEN, ONCE, SHARE

from ..kit import Answer, Right, Wrong, edited
from ..lab10.parts import MAXIMUM_OVER_HIDDEN

KV_HEAD = "    int kv_head = blockIdx.z * n_kv_head + blockIdx.y / (n_head / n_kv_head);\n"
HEAD = "    int head = blockIdx.z * n_head + blockIdx.y;\n"
START = "    float m = -INFINITY, l = 0.0f;\n"
LAST = "    int last = min((blockIdx.x + 1) * ROWS, n_q);  // one behind the block's last query\n"
BLOCK_END = "    int fetched = causal ? min(n_k, last + n_k - n_q) : n_k;\n"
OWN_END = "    int seen = causal ? min(n_k, row + 1 + n_k - n_q) : n_k;\n"
BARRIER = "        __syncthreads();\n"
LOADED = f"{BARRIER}        int end = min(KEYS, seen - start);\n"
DONE = f"        }}\n{BARRIER}    }}\n"
GUARD = "            bool there = start + key < n_k;\n"
SCALE = "            score *= scale;\n"
FACTORS = "            float keep = expf(m - bigger), weight = expf(score - bigger);\n"
SUM = "            l = l * keep + weight;\n"
OUT = "out[i] = out[i] * keep + weight * v_tile[key][i];"
STORE = "o[row * head_dim + i] = l > 0.0f ? out[i] / l : 0.0f;"
LSE = "    lse[row] = l > 0.0f ? m + logf(l) : -INFINITY;\n"
RETURN = "    if (row >= n_q) return;\n"

SIGNATURE = """
__global__ void flash_kernel(const float* q, const float* k, const float* v, float* o, float* lse,
                             int n_head, int n_kv_head, int n_q, int n_k, int head_dim,
                             float scale, int causal) {
"""

KERNEL = f"""
#define ROWS 64
#define KEYS 32
#define MAX_DIM 64
{SIGNATURE}    __shared__ float k_tile[KEYS][MAX_DIM], v_tile[KEYS][MAX_DIM];
    int row = blockIdx.x * ROWS + threadIdx.x;
{HEAD}{KV_HEAD}    q += head * n_q * head_dim;
    o += head * n_q * head_dim;
    lse += head * n_q;
    k += kv_head * n_k * head_dim;
    v += kv_head * n_k * head_dim;

    float query[MAX_DIM], out[MAX_DIM];
    for (int i = 0; i < head_dim; i++) {{
        query[i] = row < n_q ? q[row * head_dim + i] : 0.0f;
        out[i] = 0.0f;
    }}
{START}{LAST}{BLOCK_END}{OWN_END}    for (int start = 0; start < fetched; start += KEYS) {{
        for (int at = threadIdx.x; at < KEYS * head_dim; at += ROWS) {{
            int key = at / head_dim, i = at % head_dim;
{GUARD}            k_tile[key][i] = there ? k[(start + key) * head_dim + i] : 0.0f;
            v_tile[key][i] = there ? v[(start + key) * head_dim + i] : 0.0f;
        }}
{LOADED}        for (int key = 0; key < end; key++) {{
            float score = 0.0f;
            for (int i = 0; i < head_dim; i++) score += query[i] * k_tile[key][i];
{SCALE}            float bigger = fmaxf(m, score);
{FACTORS}{SUM}            for (int i = 0; i < head_dim; i++) {OUT}
            m = bigger;
{DONE}{RETURN}    for (int i = 0; i < head_dim; i++) {STORE}
{LSE}}}
"""

# The scores of a tile first, then one correction for all of them.
BY_TILES = edited(
    KERNEL,
    f"""{SCALE}            float bigger = fmaxf(m, score);
{FACTORS}{SUM}            for (int i = 0; i < head_dim; i++) {OUT}
            m = bigger;
        }}
""",
    """            scores[key] = score * scale;
        }
        float bigger = m;
        for (int key = 0; key < end; key++) bigger = fmaxf(bigger, scores[key]);
        float keep = bigger > m ? expf(m - bigger) : 1.0f;
        l *= keep;
        for (int i = 0; i < head_dim; i++) out[i] *= keep;
        for (int key = 0; key < end; key++) {
            float weight = expf(scores[key] - bigger);
            l += weight;
            for (int i = 0; i < head_dim; i++) out[i] += weight * v_tile[key][i];
        }
        m = bigger;
""",
    START,
    f"{START}    float scores[KEYS];\n",
)

# Scores of hidden keys, too, and the tile's maximum over all of them.
OVER_HIDDEN_KEYS = edited(
    BY_TILES,
    LOADED,
    f"{LOADED}        int all = min(KEYS, n_k - start);\n",
    "        for (int key = 0; key < end; key++) {\n            float score",
    "        for (int key = 0; key < all; key++) {\n            float score",
    "key < end; key++) bigger",
    "key < all; key++) bigger",
)


def _spoilt(*pairs: str) -> str:
    return edited(KERNEL, *pairs)


SHIFT = (
    "The shift of the causal limit has the wrong sign: n_q - n_k was added where n_k - n_q is\n"
    "meant."
)

WRONG = (
    Wrong(
        "o_not_rescaled",
        _spoilt(OUT, "out[i] += weight * v_tile[key][i];"),
        "o is never rescaled, only l is. When a larger score comes, what o has collected weighs\n"
        "too much.",
    ),
    Wrong(
        "l_not_rescaled",
        _spoilt(SUM, "            l += weight;\n"),
        "l is never rescaled, only o is. Both are sums of exp(score - m).",
    ),
    Wrong(
        "factor_upside_down",
        _spoilt("keep = expf(m - bigger)", "keep = m == -INFINITY ? 0.0f : expf(bigger - m)"),
        "The factor is exp(bigger - m), larger than 1. It has to be the other way round.",
    ),
    Wrong(
        "maximum_overwritten_first",
        _spoilt(FACTORS, "            m = bigger;\n" + FACTORS),
        "m is overwritten before the factor is made, so the factor is always 1.",
    ),
    Wrong(
        "maximum_begins_with_zero",
        _spoilt(START, "    float m = 0.0f, l = 0.0f;\n"),
        "m begins with 0. Where all scores are around -200, every exp becomes 0.",
    ),
    Wrong(
        "finite_sentinel",
        _spoilt(START, "    float m = -5e4f, l = 0.0f;\n"),
        "m begins with -50000, which is meant as minus infinity. Scores of -60000 lie below it.",
    ),
    Wrong(
        "no_maximum",
        _spoilt("float bigger = fmaxf(m, score);", "float bigger = m = 0.0f;"),
        "Nothing is subtracted: exp(89) is beyond float.",
    ),
    Wrong(
        "divided_at_each_key",
        _spoilt(OUT, "out[i] = (out[i] * keep + weight * v_tile[key][i]) / l;"),
        "o is divided by l at each key. Divide once, at the end.",
    ),
    Wrong(
        "never_divided",
        _spoilt(STORE, "o[row * head_dim + i] = out[i];"),
        "o comes out as it was summed. The division by l is missing.",
    ),
    Wrong(
        "no_scale",
        _spoilt(SCALE, ""),
        "The scores are not multiplied by scale.",
    ),
    Wrong(
        "scale_by_head_dim",
        _spoilt(SCALE, "            score /= head_dim;\n"),
        "The scores are divided by head_dim, or scaled twice, which is the same. scale has the\n"
        "root in it, and comes in once.",
    ),
    Wrong(
        "power_of_two",
        _spoilt(FACTORS, FACTORS.replace("expf", "exp2f")),
        "The powers are of 2 and not of e. exp(x) = 2 to the power of what?",
    ),
    Wrong(
        "padded_keys_count",
        _spoilt(
            "int end = min(KEYS, seen - start);",
            "int end = causal\n            ? min(KEYS, seen - start) : KEYS;",
        ),
        "In the last tile the places without a key are zeros, and they count: their score is 0.",
    ),
    Wrong(
        "itself_hidden",
        _spoilt(OWN_END, OWN_END.replace("row + 1 +", "row +")),
        "With causal a query doesn't see its own token: it sees keys up to and including\n"
        "i + n_k - n_q.",
    ),
    Wrong(
        "one_key_too_many",
        _spoilt(
            OWN_END,
            OWN_END.replace("row + 1 +", "row + 2 +"),
            LAST,
            LAST.replace("ROWS, n_q)", "ROWS, n_q) + 1"),
        ),
        "With causal each query sees one key of the future.",
    ),
    Wrong(
        "aligned_at_the_first_token",
        _spoilt(
            OWN_END,
            OWN_END.replace("row + 1 + n_k - n_q", "row + 1"),
            BLOCK_END,
            "    int fetched = n_k;\n",
        ),
        "The causal limit is aligned at the first key. The last query is the newest token:\n"
        "j <= i + n_k - n_q.",
    ),
    Wrong(
        "queries_counted_within_the_block",
        _spoilt(OWN_END, OWN_END.replace("row + 1", "(int)threadIdx.x + 1")),
        "The causal limit counts queries from the block's first one. Count from the text's.",
    ),
    Wrong(
        "causal_ignored",
        _spoilt(OWN_END, "    int seen = n_k;\n", BLOCK_END, "    int fetched = n_k;\n"),
        "causal changes nothing: every query sees every key.",
    ),
    Wrong("maximum_over_hidden_keys", OVER_HIDDEN_KEYS, MAXIMUM_OVER_HIDDEN),
    Wrong(
        "nan_for_nobody",
        _spoilt(STORE, "o[row * head_dim + i] = out[i] / l;"),
        "A query that sees no key gives 0/0. It gives zeros.",
    ),
    Wrong(
        "lse_without_logarithm",
        _spoilt(LSE, LSE.replace("logf(l)", "l")),
        "lse is m + l. The logarithm of l belongs to m.",
    ),
    Wrong(
        "lse_without_the_maximum",
        _spoilt(LSE, LSE.replace("m + logf(l)", "logf(l)")),
        "lse is log(l). The m that was subtracted has to come back.",
    ),
    Wrong(
        "lse_not_written",
        _spoilt(LSE, ""),
        "Nothing is written to lse.",
    ),
    Wrong(
        "heads_dealt_out",
        _spoilt("blockIdx.y / (n_head / n_kv_head);", "blockIdx.y % n_kv_head;"),
        "Query head h reads key/value head h % n_kv_head. Neighbours share: h divided by how many\n"
        "share one.",
    ),
    Wrong(
        "divided_by_the_number_of_heads",
        _spoilt("blockIdx.y / (n_head / n_kv_head);", "blockIdx.y / n_kv_head;"),
        "Query head h reads key/value head h / n_kv_head. The divisor is how many query heads\n"
        "share one: n_head / n_kv_head.",
    ),
    Wrong(
        "first_head_for_all",
        _spoilt(KV_HEAD, "    int kv_head = blockIdx.z * n_kv_head;\n"),
        "All query heads read the first key/value head of their text.",
    ),
    Wrong(
        "always_the_first_text",
        _spoilt(HEAD, "    int head = blockIdx.y;\n"),
        "The place of a head leaves out blockIdx.z: all texts write over the first one.",
    ),
    Wrong(
        "no_barrier_after_the_load",
        _spoilt(LOADED, LOADED.replace(BARRIER, "")),
        "Between fetching a tile and using it there is no barrier: a thread may read what another\n"
        "has not fetched yet.",
    ),
    Wrong(
        "no_barrier_before_the_next_load",
        _spoilt(DONE, "        }\n    }\n"),
        "Behind the walk over a tile there is no barrier: a fast thread fetches the next tile\n"
        "over keys that a slow one still reads.",
    ),
    Wrong(
        "returns_before_the_barrier",
        _spoilt(RETURN, "", START, RETURN + START),
        "Threads without a query leave at once, and the others wait for them at the barrier. They\n"
        "have to fetch and wait with the others.",
    ),
    Wrong(
        "loop_ends_at_its_own_last_key",
        _spoilt("start < fetched", "start < seen"),
        "Each thread leaves the loop over tiles at its own last key, and the barriers are in that\n"
        "loop. All threads go on until the block's last query has seen its keys.",
    ),
    Wrong(
        "short_tile_dropped",
        _spoilt("start < fetched", "start + KEYS <= fetched"),
        "Keys behind the last full tile are never read. The last tile may be short.",
    ),
    Wrong(
        "keys_beyond_the_end",
        _spoilt(GUARD, "            bool there = true;\n"),
        "k or v is read beyond its end. In the last tile there may be fewer keys than places; and\n"
        "there are n_kv_head heads of n_k keys each, not n_head.",
    ),
    Wrong(
        "rows_beyond_the_end",
        _spoilt(RETURN, ""),
        "Threads without a query write, too, behind the last row.",
    ),
    Wrong(
        "each_thread_reads_its_own_keys",
        _spoilt(
            "score += query[i] * k_tile[key][i];",
            "score += query[i] * k[(start + key) * head_dim + i];",
        ),
        SHARE,
    ),
    Wrong(
        "query_read_for_each_key",
        _spoilt(
            "score += query[i] * k_tile[key][i];",
            "score += (row < n_q ? q[row * head_dim + i] : 0.0f) * k_tile[key][i];",
        ),
        ONCE,
    ),
    Wrong(
        "tile_narrower_than_a_head",
        _spoilt(
            "k_tile[KEYS][MAX_DIM], v_tile[KEYS][MAX_DIM]", "k_tile[KEYS][32], v_tile[KEYS][32]"
        ),
        "A row of the tile has fewer places than head_dim, which is up to 64. What has no place\n"
        "there lies in the next row, where another key is.",
    ),
    Wrong(
        "shift_the_other_way",
        _spoilt(
            OWN_END,
            OWN_END.replace("n_k - n_q", "n_q - n_k"),
            BLOCK_END,
            BLOCK_END.replace("n_k - n_q", "n_q - n_k"),
        ),
        SHIFT,
    ),
    Wrong(
        "shift_the_other_way_for_each_query",
        _spoilt(
            OWN_END,
            OWN_END.replace("n_k - n_q", "n_q - n_k"),
            BLOCK_END,
            "    int fetched = n_k;\n",
        ),
        SHIFT,
    ),
    Wrong(
        "summed_in_o",
        _spoilt(
            "        out[i] = 0.0f;\n",
            "",
            OUT,
            "if (row < n_q)\n                o[row * head_dim + i] = o[row * head_dim + i] * keep\n"
            "                    + weight * v_tile[key][i];",
            STORE,
            "o[row * head_dim + i] /= l;",
        ),
        "Every o is NaN though lse is right: o is never written, or the sum for it doesn't begin\n"
        "with 0. Sum in an array of the thread's own, and write to o once, at the end.",
    ),
    Wrong(
        "hidden_tiles_read",
        _spoilt(BLOCK_END, "    int fetched = n_k;\n"),
        HIDDEN,
    ),
)

FLASH_KERNEL = Answer(
    reference=KERNEL,
    wrong=WRONG,
    right=(
        Right("a_correction_for_each_tile", BY_TILES),
        Right("other_tiles", KERNEL.replace("#define KEYS 32", "#define KEYS 16")),
        Right("powers_of_two", edited(
            KERNEL, FACTORS,
            "            float keep = exp2f(1.44269504f * (m - bigger));\n"
            "            float weight = exp2f(1.44269504f * (score - bigger));\n")),
        Right("barrier_counts_nothing", edited(
            KERNEL, RETURN, "    if (row < n_q) {\n", LSE, LSE + "    }\n")),
    ),
)  # fmt: skip
