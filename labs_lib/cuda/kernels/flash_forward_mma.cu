// Flash attention, forward, on tensor cores: half in and out, sums in float. The partition is that
// of flash_forward: block 128, grid (ceil(n_q / 64), n_head, batch); each of the 4 warps has 16
// queries, tiles have 32 keys. Shapes, masks and lse are those of flash_forward.
// Nobody may know which lane holds which element of a fragment, and yet the sums of a row must be
// rescaled when its maximum grows. So a fragment is loaded once whose elements are the numbers of
// their own rows: it says where every element stands, on whatever GPU.
// Dynamic shared memory, in bytes, with d = head_dim rounded up to a multiple of 16:
// 256 * (d + 8) + 15616.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

#define WARPS 4
#define FRAG 16
#define ROWS (WARPS * FRAG)      // queries of a block
#define KEYS 32                  // keys of a tile
#define MAX_DIM 128
#define PARTS (MAX_DIM / FRAG)   // fragments of an output row
#define S_PITCH (KEYS + 8)       // floats, and halves, of a row of scores and of weights
#define ALL 0xffffffffu
#define LOG2_E 1.4426950408889634f

typedef wmma::fragment<wmma::matrix_a, FRAG, FRAG, FRAG, half, wmma::row_major> Left;
typedef wmma::fragment<wmma::matrix_b, FRAG, FRAG, FRAG, half, wmma::col_major> Keys;
typedef wmma::fragment<wmma::matrix_b, FRAG, FRAG, FRAG, half, wmma::row_major> Values;
typedef wmma::fragment<wmma::accumulator, FRAG, FRAG, FRAG, float> Sums;

// Brings `rows` rows of head_dim halves, from row `first` on; zeros beyond n and up to `wide`.
__device__ void fetch(half* tile, int pitch, const half* from, int first, int rows, int n,
                      int head_dim, int wide) {
    bool vectors = head_dim % 8 == 0 && (size_t)from % 16 == 0;
    int step = vectors ? 8 : 1, line = wide / step;
    for (int t = threadIdx.x; t < rows * line; t += WARPS * 32) {
        int r = t / line, i = t % line * step;
        bool inside = first + r < n && i < head_dim;
        const half* source = from + (size_t)(first + r) * head_dim + i;
        if (vectors)
            *(int4*)(tile + r * pitch + i) = inside ? *(const int4*)source : make_int4(0, 0, 0, 0);
        else
            tile[r * pitch + i] = inside ? *source : __float2half(0.0f);
    }
}

__global__ void flash_forward_mma(const half* q, const half* k, const half* v, half* o, float* lse,
                                  int n_head, int n_kv_head, int n_q, int n_k, int head_dim,
                                  float scale, int causal) {
    extern __shared__ __align__(128) half tiles[];
    int wide = (head_dim + FRAG - 1) / FRAG * FRAG, pitch = wide + 8;
    half* q_tile = tiles;
    half* k_tile = q_tile + ROWS * pitch;
    half* v_tile = k_tile + KEYS * pitch;
    float* s_tile = (float*)(v_tile + KEYS * pitch);
    half* p_tile = (half*)(s_tile + ROWS * S_PITCH);
    float* keep_tile = (float*)(p_tile + ROWS * S_PITCH);

    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x * ROWS;
    size_t head = (size_t)blockIdx.z * n_head + blockIdx.y;
    size_t kv_head = (size_t)blockIdx.z * n_kv_head + blockIdx.y / (n_head / n_kv_head);
    k += kv_head * n_k * head_dim;
    v += kv_head * n_k * head_dim;
    s_tile += warp * FRAG * S_PITCH;  // from here on, this warp's 16 rows
    p_tile += warp * FRAG * S_PITCH;
    keep_tile += warp * FRAG;
    fetch(q_tile, pitch, q + head * n_q * head_dim, first, ROWS, n_q, head_dim, wide);

    Sums numbers, sums[PARTS];
    for (int i = lane; i < FRAG * FRAG; i += 32) s_tile[i / FRAG * S_PITCH + i % FRAG] = i / FRAG;
    __syncwarp();
    wmma::load_matrix_sync(numbers, s_tile, S_PITCH, wmma::mem_row_major);
    for (int c = 0; c < PARTS; ++c) wmma::fill_fragment(sums[c], 0.0f);

    // Two lanes have a row: its maximum and its sum. They take every second four keys.
    int mine = lane / 2, row = first + warp * FRAG + mine;
    int end = row >= n_q ? 0 : causal ? min(n_k, row + 1 + n_k - n_q) : n_k;
    float m = -INFINITY, l = 0.0f;

    int seen = causal ? min(n_k, min(first + ROWS, n_q) + n_k - n_q) : n_k;  // by any query here
    for (int start = 0; start < seen; start += KEYS) {
        fetch(k_tile, pitch, k, start, KEYS, n_k, head_dim, wide);
        fetch(v_tile, pitch, v, start, KEYS, n_k, head_dim, wide);
        __syncthreads();  // the tiles are whole
        Sums scores[KEYS / FRAG];
        for (int j = 0; j < KEYS / FRAG; ++j) wmma::fill_fragment(scores[j], 0.0f);
        for (int i = 0; i < wide; i += FRAG) {
            Left queries;  // once for all keys of the tile
            wmma::load_matrix_sync(queries, q_tile + warp * FRAG * pitch + i, pitch);
            for (int j = 0; j < KEYS / FRAG; ++j) {
                Keys keys;
                wmma::load_matrix_sync(keys, k_tile + j * FRAG * pitch + i, pitch);
                wmma::mma_sync(scores[j], queries, keys, scores[j]);
            }
        }
        for (int j = 0; j < KEYS / FRAG; ++j)
            wmma::store_matrix_sync(s_tile + j * FRAG, scores[j], S_PITCH, wmma::mem_row_major);
        __syncwarp();

        float s[KEYS / 2], bigger = m;
        for (int t = 0; t < KEYS / 8; ++t) {
            int column = 8 * t + 4 * (lane % 2);
            float4 four = *(float4*)(s_tile + mine * S_PITCH + column);
            s[4 * t] = four.x, s[4 * t + 1] = four.y, s[4 * t + 2] = four.z, s[4 * t + 3] = four.w;
            for (int e = 4 * t; e < 4 * t + 4; ++e) {
                bool sees = start + column + e - 4 * t < end;
                s[e] = sees ? s[e] * scale : -INFINITY;
                bigger = fmaxf(bigger, s[e]);
            }
        }
        bigger = fmaxf(bigger, __shfl_xor_sync(ALL, bigger, 1));
        float shift = bigger == -INFINITY ? 0.0f : bigger;  // -inf - (-inf) would be NaN
        float keep = exp2f((m - shift) * LOG2_E), sum = 0.0f;
        for (int t = 0; t < KEYS / 8; ++t) {
            half2* pair = (half2*)(p_tile + mine * S_PITCH + 8 * t + 4 * (lane % 2));
            for (int e = 0; e < 2; ++e) {
                int at = 4 * t + 2 * e;
                half2 two = __floats2half2_rn(exp2f((s[at] - shift) * LOG2_E),
                                              exp2f((s[at + 1] - shift) * LOG2_E));
                sum += __low2float(two) + __high2float(two);  // the weights as they will be used
                pair[e] = two;
            }
        }
        l = l * keep + sum + __shfl_xor_sync(ALL, sum, 1);
        m = bigger;
        if (lane % 2 == 0) keep_tile[mine] = keep;
        __syncwarp();

        for (int c = 0; c < PARTS; ++c)
            for (int e = 0; e < numbers.num_elements; ++e)
                sums[c].x[e] *= keep_tile[(int)numbers.x[e]];
        for (int j = 0; j < KEYS; j += FRAG) {
            Left weights;
            wmma::load_matrix_sync(weights, p_tile + j, S_PITCH);
            for (int c = 0; c < PARTS; ++c) {
                if (c * FRAG >= wide) continue;
                Values values;
                wmma::load_matrix_sync(values, v_tile + j * pitch + c * FRAG, pitch);
                wmma::mma_sync(sums[c], weights, values, sums[c]);
            }
        }
        __syncthreads();  // nobody needs the tiles any more
    }

    float share = l == 0.0f ? 0.0f : 1.0f / l;
    o += head * n_q * head_dim;
    for (int c = 0; c < PARTS; ++c) {
        if (c * FRAG >= wide) continue;
        __syncwarp();
        wmma::store_matrix_sync(s_tile, sums[c], S_PITCH, wmma::mem_row_major);
        __syncwarp();
        for (int e = 0; e < FRAG; e += 2) {
            int column = c * FRAG + e + lane % 2;
            float value = s_tile[mine * S_PITCH + e + lane % 2] * share;
            if (row < n_q && column < head_dim)
                o[(size_t)row * head_dim + column] = __float2half(value);
        }
    }
    if (row < n_q && lane % 2 == 0)
        lse[head * n_q + row] = l == 0.0f ? -INFINITY : m + logf(l);
}
