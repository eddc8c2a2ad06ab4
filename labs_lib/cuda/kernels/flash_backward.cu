// Flash attention, backward: the weights are made again from q, k and lse, tile by tile, and never
// stored. Three kernels, block 256 each, and no atomics: every gradient has one block that sums it.
//
//   flash_backward_delta   grid (ceil(batch * n_head * n_q / 8))     delta = rowsum(d_o * o)
//   flash_backward_q       grid (ceil(n_q / 16), n_head, batch)      d_q, along tiles of 32 keys
//   flash_backward_kv      grid (ceil(n_k / 16), n_kv_head, batch)   d_k and d_v, along tiles of 32
//                          queries of all query heads that share the KV head
//
// With s = scale * q k^T and p = exp(s - lse):  d_v = p^T d_o,  d_s = p * (d_o v^T - delta),
// d_q = scale * d_s k,  d_k = scale * d_s^T q. Shapes and masks are those of flash_forward.
// Dynamic shared memory, in floats: d_q 32 * head_dim + 64 * (head_dim | 1) + 512, d_k and d_v
// 576 more.
#define WARPS 8
#define EACH 2                // rows of a warp
#define ROWS (WARPS * EACH)   // rows of a block: queries for d_q, keys for d_k and d_v
#define TILE 32               // what the block walks along: a lane each
#define MAX_DIM 128
#define PARTS (MAX_DIM / 32)  // numbers of a row of a gradient that a lane keeps
#define ALL 0xffffffffu

// Brings `rows` rows of head_dim floats, from row `first` on, to shared memory; zeros beyond n.
__device__ void fetch(float* tile, int pitch, const float* from, int first, int rows, int n,
                      int head_dim) {
    for (int r = threadIdx.x / 32; r < rows; r += WARPS)
        for (int i = threadIdx.x % 32; i < head_dim; i += 32) {
            bool inside = first + r < n;
            tile[r * pitch + i] = inside ? from[(size_t)(first + r) * head_dim + i] : 0.0f;
        }
}

__global__ void flash_backward_delta(const float* o, const float* d_o, float* delta, int rows,
                                     int head_dim) {
    int lane = threadIdx.x % 32, row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) return;  // a whole warp leaves
    float sum = 0.0f;
    for (int i = lane; i < head_dim; i += 32) {
        size_t at = (size_t)row * head_dim + i;
        sum += o[at] * d_o[at];
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
    if (lane == 0) delta[row] = sum;
}

__global__ void flash_backward_q(const float* q, const float* k, const float* v, const float* d_o,
                                 const float* lse, const float* delta, float* d_q, int n_head,
                                 int n_kv_head, int n_q, int n_k, int head_dim, float scale,
                                 int causal) {
    extern __shared__ float tiles[];
    int pitch = head_dim | 1;
    float* q_tile = tiles;
    float* g_tile = q_tile + ROWS * head_dim;  // d_o
    float* k_tile = g_tile + ROWS * head_dim;
    float* v_tile = k_tile + TILE * pitch;
    float* s_tile = v_tile + TILE * pitch;  // d_s, [ROWS][TILE]

    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = blockIdx.x * ROWS, mine = warp * EACH;
    size_t head = (size_t)blockIdx.z * n_head + blockIdx.y;
    size_t kv_head = (size_t)blockIdx.z * n_kv_head + blockIdx.y / (n_head / n_kv_head);
    k += kv_head * n_k * head_dim;
    v += kv_head * n_k * head_dim;
    fetch(q_tile, head_dim, q + head * n_q * head_dim, first, ROWS, n_q, head_dim);
    fetch(g_tile, head_dim, d_o + head * n_q * head_dim, first, ROWS, n_q, head_dim);
    // Lane r keeps what belongs to the warp's row r.
    bool keeps = lane < EACH && first + mine + lane < n_q;
    float lse_kept = keeps ? lse[head * n_q + first + mine + lane] : 0.0f;
    float delta_kept = keeps ? delta[head * n_q + first + mine + lane] : 0.0f;

    float acc[EACH][PARTS];
    for (int r = 0; r < EACH; ++r)
        for (int c = 0; c < PARTS; ++c) acc[r][c] = 0.0f;
    int seen = causal ? min(n_k, min(first + ROWS, n_q) + n_k - n_q) : n_k;  // by any query here
    for (int start = 0; start < seen; start += TILE) {
        fetch(k_tile, pitch, k, start, TILE, n_k, head_dim);
        fetch(v_tile, pitch, v, start, TILE, n_k, head_dim);
        __syncthreads();  // the tiles are whole
        float score[EACH], gain[EACH];  // q k^T and d_o v^T of this lane's key
        for (int r = 0; r < EACH; ++r) score[r] = gain[r] = 0.0f;
        for (int i = 0; i < head_dim; ++i) {
            float key = k_tile[lane * pitch + i], value = v_tile[lane * pitch + i];
            for (int r = 0; r < EACH; ++r) {
                score[r] += q_tile[(mine + r) * head_dim + i] * key;
                gain[r] += g_tile[(mine + r) * head_dim + i] * value;
            }
        }
        for (int r = 0; r < EACH; ++r) {
            int row = first + mine + r, end = causal ? min(n_k, row + 1 + n_k - n_q) : n_k;
            float row_lse = __shfl_sync(ALL, lse_kept, r);
            float row_delta = __shfl_sync(ALL, delta_kept, r);
            bool sees = row < n_q && start + lane < end && row_lse > -INFINITY;
            float p = sees ? expf(score[r] * scale - row_lse) : 0.0f;
            s_tile[(mine + r) * TILE + lane] = p * (gain[r] - row_delta);
        }
        __syncwarp();  // a warp reads only what it wrote
        for (int j = 0; j < TILE; ++j)
            for (int c = 0; c < PARTS; ++c) {
                if (lane + 32 * c >= head_dim) continue;
                float key = k_tile[j * pitch + lane + 32 * c];
                for (int r = 0; r < EACH; ++r) acc[r][c] += s_tile[(mine + r) * TILE + j] * key;
            }
        __syncthreads();  // nobody needs the tiles any more
    }
    for (int r = 0; r < EACH; ++r)
        for (int c = 0; c < PARTS; ++c) {
            int row = first + mine + r, i = lane + 32 * c;
            if (row < n_q && i < head_dim)
                d_q[(head * n_q + row) * head_dim + i] = acc[r][c] * scale;
        }
}

__global__ void flash_backward_kv(const float* q, const float* k, const float* v, const float* d_o,
                                  const float* lse, const float* delta, float* d_k, float* d_v,
                                  int n_head, int n_kv_head, int n_q, int n_k, int head_dim,
                                  float scale, int causal) {
    extern __shared__ float tiles[];
    int pitch = head_dim | 1;
    float* k_tile = tiles;
    float* v_tile = k_tile + ROWS * head_dim;
    float* q_tile = v_tile + ROWS * head_dim;
    float* g_tile = q_tile + TILE * pitch;     // d_o
    float* s_tile = g_tile + TILE * pitch;     // d_s, [ROWS][TILE], keys by queries
    float* p_tile = s_tile + ROWS * TILE;      // p, likewise
    float* lse_tile = p_tile + ROWS * TILE;    // [TILE]
    float* delta_tile = lse_tile + TILE;       // [TILE]

    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = blockIdx.x * ROWS, mine = warp * EACH, group = n_head / n_kv_head;
    size_t kv_head = (size_t)blockIdx.z * n_kv_head + blockIdx.y;
    fetch(k_tile, head_dim, k + kv_head * n_k * head_dim, first, ROWS, n_k, head_dim);
    fetch(v_tile, head_dim, v + kv_head * n_k * head_dim, first, ROWS, n_k, head_dim);

    float acc_k[EACH][PARTS], acc_v[EACH][PARTS];
    for (int r = 0; r < EACH; ++r)
        for (int c = 0; c < PARTS; ++c) acc_k[r][c] = acc_v[r][c] = 0.0f;
    int from = causal ? max(0, first - (n_k - n_q)) : 0;  // the first query that sees a key here
    for (int member = 0; member < group; ++member) {
        size_t head = (size_t)blockIdx.z * n_head + blockIdx.y * group + member;
        for (int start = from; start < n_q; start += TILE) {
            fetch(q_tile, pitch, q + head * n_q * head_dim, start, TILE, n_q, head_dim);
            fetch(g_tile, pitch, d_o + head * n_q * head_dim, start, TILE, n_q, head_dim);
            if (warp == 0) {
                bool inside = start + lane < n_q;
                lse_tile[lane] = inside ? lse[head * n_q + start + lane] : -INFINITY;
                delta_tile[lane] = inside ? delta[head * n_q + start + lane] : 0.0f;
            }
            __syncthreads();  // the tiles are whole
            float score[EACH], gain[EACH];  // q k^T and d_o v^T of this lane's query
            for (int r = 0; r < EACH; ++r) score[r] = gain[r] = 0.0f;
            for (int i = 0; i < head_dim; ++i) {
                float query = q_tile[lane * pitch + i], out = g_tile[lane * pitch + i];
                for (int r = 0; r < EACH; ++r) {
                    score[r] += k_tile[(mine + r) * head_dim + i] * query;
                    gain[r] += v_tile[(mine + r) * head_dim + i] * out;
                }
            }
            for (int r = 0; r < EACH; ++r) {
                int key = first + mine + r;
                bool sees = !causal || key <= start + lane + n_k - n_q;
                bool any = lse_tile[lane] > -INFINITY;
                float p = sees && any ? expf(score[r] * scale - lse_tile[lane]) : 0.0f;
                p_tile[(mine + r) * TILE + lane] = p;
                s_tile[(mine + r) * TILE + lane] = p * (gain[r] - delta_tile[lane]);
            }
            __syncwarp();  // a warp reads only what it wrote
            for (int j = 0; j < TILE; ++j)
                for (int c = 0; c < PARTS; ++c) {
                    if (lane + 32 * c >= head_dim) continue;
                    float query = q_tile[j * pitch + lane + 32 * c];
                    float out = g_tile[j * pitch + lane + 32 * c];
                    for (int r = 0; r < EACH; ++r) {
                        acc_k[r][c] += s_tile[(mine + r) * TILE + j] * query;
                        acc_v[r][c] += p_tile[(mine + r) * TILE + j] * out;
                    }
                }
            __syncthreads();  // nobody needs the tiles any more
        }
    }
    for (int r = 0; r < EACH; ++r)
        for (int c = 0; c < PARTS; ++c) {
            int key = first + mine + r, i = lane + 32 * c;
            if (key >= n_k || i >= head_dim) continue;
            d_k[(kv_head * n_k + key) * head_dim + i] = acc_k[r][c] * scale;
            d_v[(kv_head * n_k + key) * head_dim + i] = acc_v[r][c];
        }
}
