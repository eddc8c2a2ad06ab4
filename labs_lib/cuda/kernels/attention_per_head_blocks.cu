// Attention with one block for each (batch, head) pair, the work partition of FlashAttention-1:
// grid (n_head, batch), block 256. q and o are [batch, n_head, n_q, head_dim], k and v
// [batch, n_head, n_k, head_dim], head_dim at most 128.
// The block takes 8 queries at a time, a warp each, and walks over tiles of 32 keys, a lane each.
// Of a row's scores only the running maximum m, the sum l and the weighted sum of v are kept, so
// there is no limit on n_k. Causal is bottom-right: query i sees key j when j <= i + n_k - n_q.
#define ROWS 8
#define KEYS 32
#define MAX_DIM 128
#define ALL 0xffffffffu

__device__ float largest_of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, step));
    return x;
}

__device__ float sum_of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

__global__ void attention_per_head_blocks(const float* q, const float* k, const float* v, float* o,
                                          int n_head, int n_q, int n_k, int head_dim, float scale,
                                          int causal) {
    __shared__ float q_tile[ROWS][MAX_DIM];
    __shared__ float k_tile[KEYS][MAX_DIM + 1];  // each lane walks along a row: 129 is odd, so in
    __shared__ float v_tile[KEYS][MAX_DIM];      // each step they are in 32 different banks
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    size_t pair = (size_t)blockIdx.y * n_head + blockIdx.x;
    q += pair * n_q * head_dim;
    k += pair * n_k * head_dim;
    v += pair * n_k * head_dim;
    o += pair * n_q * head_dim;

    for (int first = 0; first < n_q; first += ROWS) {
        int row = first + warp;
        for (int i = lane; i < head_dim; i += 32)
            q_tile[warp][i] = row < n_q ? q[(size_t)row * head_dim + i] : 0.0f;
        // Keys that this row sees, and keys that some row of these eight sees.
        int mine = causal ? min(n_k, row + 1 + n_k - n_q) : n_k;
        int all = causal ? min(n_k, min(first + ROWS, n_q) + n_k - n_q) : n_k;
        float m = -INFINITY, l = 0.0f, acc[MAX_DIM / 32];
        for (int c = 0; c < MAX_DIM / 32; ++c) acc[c] = 0.0f;

        for (int start = 0; start < all; start += KEYS) {
            for (int j = warp; j < KEYS; j += ROWS)
                for (int i = lane; i < head_dim; i += 32) {
                    size_t at = (size_t)(start + j) * head_dim + i;
                    k_tile[j][i] = start + j < n_k ? k[at] : 0.0f;
                    v_tile[j][i] = start + j < n_k ? v[at] : 0.0f;
                }
            __syncthreads();
            float score = -INFINITY;
            if (start + lane < mine) {
                score = 0.0f;
                for (int i = 0; i < head_dim; ++i) score += q_tile[warp][i] * k_tile[lane][i];
                score *= scale;
            }
            float bigger = fmaxf(m, largest_of_warp(score));
            float shift = bigger == -INFINITY ? 0.0f : bigger;  // -inf - (-inf) would be NaN
            float keep = expf(m - shift), weight = expf(score - shift);
            l = l * keep + sum_of_warp(weight);
            m = bigger;
            for (int c = 0; c < MAX_DIM / 32; ++c) acc[c] *= keep;
            for (int j = 0; j < KEYS; ++j) {
                float w = __shfl_sync(ALL, weight, j);
                for (int c = 0; c < MAX_DIM / 32; ++c)
                    if (lane + 32 * c < head_dim) acc[c] += w * v_tile[j][lane + 32 * c];
            }
            __syncthreads();  // nobody needs the tiles any more
        }
        if (row < n_q)
            for (int c = 0; c < MAX_DIM / 32; ++c)
                if (lane + 32 * c < head_dim)
                    o[(size_t)row * head_dim + lane + 32 * c] = l == 0.0f ? 0.0f : acc[c] / l;
    }
}
