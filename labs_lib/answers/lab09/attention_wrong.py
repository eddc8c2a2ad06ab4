"""Lab 09: wrong kernels for attention by heads."""

from __future__ import annotations

from ..kit import Wrong
from .attention_parts import (
    ATTENTION,
    END,
    PLACES,
    ROWS,
    START,
    STORE,
    in_online,
    in_tiled,
    with_edits,
)

SCORE = "scale * dot(mine, k + key * head_dim, head_dim)"

MIXED_SUM = (
    "The sum is taken while the maximum still grows, so that it mixes exponentials of several\n"
    "maxima. Take it when the maximum is known, or scale it down whenever that grows."
)
NOT_MOVED = (
    "One pointer still stands at the first head of the first text. Each block moves all four to\n"
    "its own pair: q, k, v and o."
)

FROM_THE_ROW_BEFORE = (
    "A thread's second query begins with what its first one has gathered. out and the sum have to\n"
    "be zero for each query."
)

GRID = (
    *(
        Wrong(
            f"{name}_of_the_first_pair",
            with_edits((f"    {name} += pair", "    0 * pair")),
            NOT_MOVED,
        )
        for name in "qkvo"
    ),
    Wrong(
        "head_and_text_swapped",
        with_edits((START, "    int pair = blockIdx.x * n_head + blockIdx.y;\n")),
        "You take x for the text and y for the head; the grid is (n_head, batch). With as many\n"
        "heads as texts it would look right.",
    ),
    Wrong(
        "always_the_first_head",
        with_edits((START, "    int pair = blockIdx.y * n_head;\n")),
        "Every block of a text takes head 0: the pair leaves out blockIdx.x.",
    ),
    Wrong(
        "always_the_first_text",
        with_edits((START, "    int pair = blockIdx.x;\n")),
        "Every block takes a head of the first text: the pair leaves out blockIdx.y.",
    ),
    Wrong(
        "texts_apart_by_one_head",
        with_edits((START, "    int pair = blockIdx.y + blockIdx.x;\n")),
        "From one text to the next it is n_head heads; you step by one, and blocks share pairs.",
    ),
    Wrong(
        "keys_apart_by_n_q",
        with_edits((PLACES, PLACES.replace("pair * n_k", "pair * n_q"))),
        "The keys and values of a pair begin at pair * n_k rows; you step by n_q. With as many of\n"
        "one as of the other it would look right.",
    ),
    Wrong(
        "output_apart_by_n_k",
        with_edits((PLACES, PLACES.replace("o += pair * n_q", "o += pair * n_k"))),
        "o has n_q rows for each pair, like q; you step by n_k.",
    ),
    Wrong(
        "query_rows_one_apart",
        with_edits(("mine = q + row * head_dim", "mine = q + row")),
        "From one query to the next it is head_dim numbers; you step by one.",
    ),
    Wrong(
        "one_query_a_thread",
        with_edits((ROWS, "    int row = threadIdx.x;\n    if (row < n_q) {\n")),
        "Each thread takes one query. There may be more queries than the block has threads.",
    ),
    Wrong(
        "no_guard_on_the_rows",
        with_edits((ROWS, "    {\n        int row = threadIdx.x;\n")),
        "Threads beyond the last query read and write rows that aren't theirs, and queries beyond\n"
        "the number of threads are left out.",
    ),
    Wrong(
        "one_row_too_many",
        with_edits((ROWS, ROWS.replace("row < n_q", "row <= n_q"))),
        "The loop takes one row too many. It belongs to the next head, or to nobody.",
    ),
)

CAUSAL = (
    Wrong(
        "causal_from_the_top_left",
        with_edits((END, "        int end = causal ? min(row + 1, n_k) : n_k;\n")),
        "Query i sees keys up to i. That is right where there are as many queries as keys. Else\n"
        "the last query stands at the last key: it is the lower right corner that counts.",
    ),
    Wrong(
        "not_its_own_key",
        with_edits((END, END.replace("row + 1", "row"))),
        "A query doesn't see its own key. Causal means up to and including oneself.",
    ),
    Wrong(
        "lengths_exchanged",
        with_edits((END, "        int end = causal ? min(n_k, row + 1 + n_q - n_k) : n_k;\n")),
        "Query i sees keys up to i + n_k - n_q: the more keys there are from before, the more it\n"
        "sees. In yours it sees fewer.",
    ),
    Wrong(
        "one_key_ahead",
        with_edits((END, "        int end = causal ? min(n_k, row + 2 + n_k - n_q) : n_k;\n")),
        "A query sees one key of its future.",
    ),
    Wrong(
        "never_causal",
        with_edits((END, "        int end = n_k;\n")),
        "Every query sees every key, whatever causal says.",
    ),
    Wrong(
        "always_causal",
        with_edits((END, "        int end = row + 1 + n_k - n_q;\n")),
        "Later keys are hidden even where causal is 0.",
    ),
    Wrong(
        "causal_within_the_tile",
        in_tiled(("start + j < end", "(!causal || j <= (int)threadIdx.x)")),
        "You compare places within the tiles. Which key of the whole text is row j of this tile?",
    ),
    Wrong(
        "masked_by_zero",
        with_edits(
            (f"most = fmaxf(most, {SCORE});", f"most = fmaxf(most, key < end ? {SCORE} : 0.0f);"),
            (
                f"float weight = expf({SCORE} - most);",
                f"float weight = expf((key < end ? {SCORE} : 0.0f) - most);",
            ),
        ).replace("key = 0; key < end", "key = 0; key < n_k"),
        "Hidden keys get the score 0, and exp(0) is not 0: they take part. What is hidden has to\n"
        "weigh nothing.",
    ),
    Wrong(
        "divides_by_nothing",
        with_edits((STORE, STORE.replace("end > 0 ? out[i] / sum : 0.0f", "out[i] / sum"))),
        "With more queries than keys the first queries see no key at all. Their sum is 0, and 0 /\n"
        "0 is NaN; such a row gives zeros.",
    ),
)

SOFTMAX = (
    Wrong(
        "no_maximum",
        with_edits((f"expf({SCORE} - most)", f"expf({SCORE})")),
        "exp is taken of the scores themselves: exp(89) is more than a float can hold. Subtract\n"
        "the row's maximum first.",
    ),
    Wrong(
        "maximum_begins_at_zero",
        with_edits(("float most = -INFINITY", "float most = 0.0f")),
        "The maximum begins at 0. Where all scores of a row are far below zero every exp is 0\n"
        "then, and 0 / 0 is NaN.",
    ),
    Wrong(
        "maximum_without_the_scale",
        with_edits((f"most = fmaxf(most, {SCORE});", f"most = fmaxf(most, {SCORE[8:]});")),
        "The maximum is that of the unscaled scores, which are sqrt(head_dim) times as large.\n"
        "With large scores every exp is 0 then, and 0 / 0 is NaN.",
    ),
    Wrong(
        "maximum_over_half_the_keys",
        with_edits(
            (
                f"key < end; key++)\n            most = fmaxf(most, {SCORE});",
                f"key < (end + 1) / 2; key++)\n            most = fmaxf(most, {SCORE});",
            )
        ),
        "The maximum is that of the first half of the keys. Where the largest score is in the\n"
        "second half, exp overflows.",
    ),
    Wrong(
        "scale_missing",
        ATTENTION.replace("scale * dot", "dot"),
        "The weights are made of scores that aren't scaled: they are too sharp.",
    ),
    Wrong(
        "scale_by_head_dim",
        ATTENTION.replace("scale * dot", "1.0f / head_dim * dot"),
        "The scores are divided by head_dim: the weights are too even. The kernel is handed the\n"
        "factor that it should use.",
    ),
    Wrong(
        "not_divided",
        with_edits((STORE, STORE.replace("out[i] / sum", "out[i]"))),
        "Nothing is divided in the end: the weights of a row don't add up to 1.",
    ),
    Wrong(
        "divided_by_the_number_of_keys",
        with_edits((STORE, STORE.replace("out[i] / sum", "out[i] / end"))),
        "You divide by the number of keys. Divide by the sum of the weights.",
    ),
    Wrong(
        "power_of_two",
        ATTENTION.replace("expf(", "exp2f("),
        "These are powers of two. exp(x) is exp2(x * log2(e)); without the factor the weights are\n"
        "too even.",
    ),
    Wrong(
        "sum_in_the_first_walk",
        with_edits(
            (
                f"            most = fmaxf(most, {SCORE});\n",
                f"        {{\n            float score = {SCORE};\n"
                "            most = fmaxf(most, score);\n"
                "            sum += expf(score - most);\n        }\n",
            ),
            ("            sum += weight;\n", ""),
        ),
        MIXED_SUM,
    ),
    Wrong(
        "output_not_rescaled",
        in_online(("            for (int i = 0; i < head_dim; i++) out[i] *= keep;\n", "")),
        "When a larger score comes, the sum is scaled down and what has been gathered of v is not.",
    ),
    Wrong(
        "sum_not_rescaled",
        in_online(("            sum *= keep;\n", "")),
        MIXED_SUM,
    ),
    Wrong(
        "rescaled_the_wrong_way",
        in_online(("expf(most - bigger)", "expf(bigger - most)")),
        "When a larger score comes, what was gathered before grows. It has to become smaller:\n"
        "exp(old maximum - new maximum).",
    ),
    Wrong(
        "divided_in_each_step",
        in_online(
            (
                "            most = bigger;\n",
                "            most = bigger;\n"
                "            for (int i = 0; i < head_dim; i++) out[i] /= sum;\n",
            )
        ),
        "You divide by the sum at each key. The sum is whole only after the last one.",
    ),
)

PLACE = (
    Wrong(
        "value_of_the_query",
        with_edits(("v[key * head_dim + i]", "v[(row % n_k) * head_dim + i]")),
        "Each weight meets the value of the query's own place. It belongs to the key's value.",
    ),
    Wrong(
        "keys_for_values",
        with_edits(("weight * v[key", "weight * k[key")),
        "The weighted mean is taken over the keys. What a head hands on are the values.",
    ),
    Wrong(
        "output_not_started",
        with_edits(("out[128] = {}", "out[128]")),
        "out begins with whatever was in its place. A variable without a value isn't zero.",
    ),
    Wrong(
        "array_of_64",
        with_edits(("out[128] = {}", "out[64] = {}")),
        "An index leaves an array of the thread's own; what is written there hits other\n"
        "variables. A row has up to 128 numbers, and weights for all n_k keys fit in no array.",
    ),
    Wrong(
        "adds_to_the_output",
        with_edits((STORE, STORE.replace("o[row * head_dim + i] =", "o[row * head_dim + i] +="))),
        "The result is added to what o held before, and nobody has promised that it held zeros.",
    ),
    Wrong(
        "kept_from_the_row_before",
        with_edits(
            (ROWS, "    float out[128] = {};\n" + ROWS),
            ("sum = 0.0f, out[128] = {};", "sum = 0.0f;"),
        ),
        FROM_THE_ROW_BEFORE,
    ),
    Wrong(
        "sum_kept_from_the_row_before",
        with_edits(
            (ROWS, "    float sum = 0.0f;\n" + ROWS),
            ("most = -INFINITY, sum = 0.0f,", "most = -INFINITY,"),
        ),
        FROM_THE_ROW_BEFORE,
    ),
    Wrong(
        "at_most_64_wide",
        ATTENTION.replace(
            "i < head_dim; i++)\n            o", "i < min(head_dim, 64); i++)\n            o"
        ),
        "Only 64 numbers of each row are stored; a head may have up to 128.",
    ),
)

BARRIERS = (
    Wrong(
        "no_barrier_after_the_load",
        in_tiled(("            __syncthreads();  // the tiles are whole\n", "")),
        "Threads begin with the tiles before all of their numbers have been fetched.",
    ),
    Wrong(
        "no_barrier_before_the_next_load",
        in_tiled(("            __syncthreads();  // nobody needs them any more\n", "")),
        "Fast threads fetch the next tiles while slow ones still read these.",
    ),
    Wrong(
        "leaves_before_the_barrier",
        in_tiled(
            (
                "        int row = first + threadIdx.x;\n",
                "        int row = first + threadIdx.x;\n        if (row >= n_q) return;\n",
            )
        ),
        "Threads without a query leave, and the others wait for them at the barrier. They are\n"
        "needed anyway: each fetches a part of the tiles.",
    ),
    Wrong(
        "barriers_inside_an_if",
        in_tiled(
            (
                "            int here = min(16, n_k - start);\n",
                "            if (start >= end) break;\n"
                "            int here = min(16, n_k - start);\n",
            )
        ),
        "Each thread leaves the loop over tiles at its own last key, and the barriers are in that\n"
        "loop. All threads of a block have to reach a barrier, or none.",
    ),
    Wrong(
        "tail_read_unguarded",
        in_tiled(("int here = min(16, n_k - start);", "int here = 16;")),
        "The last tile is fetched whole, also where there are fewer than 16 keys left: that is\n"
        "beyond the end of k and v, or another head's.",
    ),
)

WRONG = (*GRID, *CAUSAL, *SOFTMAX, *PLACE, *BARRIERS)  # fmt: skip
