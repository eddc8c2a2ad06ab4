// Flash attention, forward, with the work partition of FlashAttention-2: block 256, grid
// (ceil(n_q / 32), n_head, batch). A block takes 32 queries of one head, each of its 8 warps 4 of
// them, and walks over tiles of 32 keys, a lane each. q and o are [batch, n_head, n_q, head_dim],
// k and v are [batch, n_kv_head, n_k, head_dim], lse is [batch, n_head, n_q]; head_dim is at most
// 128. Query head h uses KV head h / (n_head / n_kv_head). Causal is bottom-right: query i sees
// key j when j <= i + n_k - n_q; tiles that no query of the block sees are not fetched. A query
// that sees nothing gives zeros and lse = -inf.
// Dynamic shared memory, in floats: 32 * (2 * head_dim + (head_dim | 1) + 32).
#define WARPS 8
#define EACH 4               // queries of a warp
#define ROWS (WARPS * EACH)  // queries of a block
#define KEYS 32              // keys of a tile
#define MAX_DIM 128
#define PARTS (MAX_DIM / 32)  // numbers of an output row that a lane keeps
#define ALL 0xffffffffu

__device__ float largest_of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, step));
    return x;
}

__device__ float sum_of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

__global__ void flash_forward(const float* q, const float* k, const float* v, float* o, float* lse,
                              int n_head, int n_kv_head, int n_q, int n_k, int head_dim,
                              float scale, int causal) {
    extern __shared__ float tiles[];
    int pitch = head_dim | 1;  // odd, so that lanes walking along rows of k meet 32 different banks
    float* q_tile = tiles;
    float* k_tile = q_tile + ROWS * head_dim;
    float* v_tile = k_tile + KEYS * pitch;
    float* p_tile = v_tile + KEYS * head_dim;  // a warp's weights, [ROWS][KEYS]

    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = blockIdx.x * ROWS, mine = warp * EACH;  // this warp's first row in the tile
    size_t head = (size_t)blockIdx.z * n_head + blockIdx.y;
    size_t kv_head = (size_t)blockIdx.z * n_kv_head + blockIdx.y / (n_head / n_kv_head);
    q += head * n_q * head_dim;
    o += head * n_q * head_dim;
    lse += head * n_q;
    k += kv_head * n_k * head_dim;
    v += kv_head * n_k * head_dim;

    float m[EACH], l[EACH], acc[EACH][PARTS];
    for (int r = 0; r < EACH; ++r) {
        m[r] = -INFINITY;
        l[r] = 0.0f;
        for (int c = 0; c < PARTS; ++c) acc[r][c] = 0.0f;
    }
    for (int r = warp; r < ROWS; r += WARPS)
        for (int i = lane; i < head_dim; i += 32) {
            size_t at = (size_t)(first + r) * head_dim + i;
            q_tile[r * head_dim + i] = first + r < n_q ? q[at] : 0.0f;
        }

    int seen = causal ? min(n_k, min(first + ROWS, n_q) + n_k - n_q) : n_k;  // by any query here
    for (int start = 0; start < seen; start += KEYS) {
        for (int j = warp; j < KEYS; j += WARPS)
            for (int i = lane; i < head_dim; i += 32) {
                size_t at = (size_t)(start + j) * head_dim + i;
                k_tile[j * pitch + i] = start + j < n_k ? k[at] : 0.0f;
                v_tile[j * head_dim + i] = start + j < n_k ? v[at] : 0.0f;
            }
        __syncthreads();  // the tiles are whole

        float score[EACH];
        for (int r = 0; r < EACH; ++r) score[r] = 0.0f;
        for (int i = 0; i < head_dim; ++i) {
            float key = k_tile[lane * pitch + i];
            for (int r = 0; r < EACH; ++r) score[r] += q_tile[(mine + r) * head_dim + i] * key;
        }
        for (int r = 0; r < EACH; ++r) {
            int end = causal ? min(n_k, first + mine + r + 1 + n_k - n_q) : n_k;
            float s = start + lane < end ? score[r] * scale : -INFINITY;
            float bigger = fmaxf(m[r], largest_of_warp(s));
            float shift = bigger == -INFINITY ? 0.0f : bigger;  // -inf - (-inf) would be NaN
            float keep = expf(m[r] - shift), weight = expf(s - shift);
            p_tile[(mine + r) * KEYS + lane] = weight;
            l[r] = l[r] * keep + sum_of_warp(weight);
            m[r] = bigger;
            for (int c = 0; c < PARTS; ++c) acc[r][c] *= keep;
        }
        __syncwarp();  // a warp reads only the weights that it wrote
        for (int j = 0; j < KEYS; ++j)
            for (int c = 0; c < PARTS; ++c) {
                if (lane + 32 * c >= head_dim) continue;
                float value = v_tile[j * head_dim + lane + 32 * c];
                for (int r = 0; r < EACH; ++r) acc[r][c] += p_tile[(mine + r) * KEYS + j] * value;
            }
        __syncthreads();  // nobody needs the tiles any more
    }

    for (int r = 0; r < EACH; ++r) {
        int row = first + mine + r;
        if (row >= n_q) continue;
        float share = l[r] == 0.0f ? 0.0f : 1.0f / l[r];
        for (int c = 0; c < PARTS; ++c)
            if (lane + 32 * c < head_dim)
                o[(size_t)row * head_dim + lane + 32 * c] = acc[r][c] * share;
        if (lane == 0) lse[row] = l[r] == 0.0f ? -INFINITY : m[r] + logf(l[r]);
    }
}
