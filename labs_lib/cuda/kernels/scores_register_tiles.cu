// The same scores with tiles in registers too: a block of (16, 16) threads makes 64 x 64 scores,
// each thread 4 x 4 of them. Four numbers of q and four of k from shared memory make 16 products,
// where the kernel before read two for each; and a block's tile is four times as wide, so that
// global memory is read a quarter as often.
#define THREADS 16
#define EACH 4
#define WIDE (THREADS * EACH)  // queries and keys of a block
#define DEEP 16                // columns of a tile

__global__ void scores_register_tiles(const float* q, const float* k, float* s, int n_q, int n_k,
                                      int head_dim, float scale) {
    __shared__ float q_tile[WIDE][DEEP];
    __shared__ float k_tile[DEEP][WIDE + 2];  // [column][key], as in scores_tiled
    int x = threadIdx.x, y = threadIdx.y;
    int first_key = blockIdx.x * WIDE, first_query = blockIdx.y * WIDE;
    float sum[EACH][EACH];
    for (int a = 0; a < EACH; ++a)
        for (int b = 0; b < EACH; ++b) sum[a][b] = 0.0f;
    for (int start = 0; start < head_dim; start += DEEP) {
        bool inside = start + x < head_dim;
        for (int row = y; row < WIDE; row += THREADS) {
            int query = first_query + row, key = first_key + row;
            q_tile[row][x] = inside && query < n_q ? q[(size_t)query * head_dim + start + x] : 0.0f;
            k_tile[x][row] = inside && key < n_k ? k[(size_t)key * head_dim + start + x] : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < DEEP; ++i) {
            float qs[EACH], ks[EACH];
            // A thread's rows are 16 apart: what a warp reads and writes stays in one piece.
            for (int a = 0; a < EACH; ++a) qs[a] = q_tile[y + a * THREADS][i];
            for (int b = 0; b < EACH; ++b) ks[b] = k_tile[i][x + b * THREADS];
            for (int a = 0; a < EACH; ++a)
                for (int b = 0; b < EACH; ++b) sum[a][b] += qs[a] * ks[b];
        }
        __syncthreads();
    }
    for (int a = 0; a < EACH; ++a)
        for (int b = 0; b < EACH; ++b) {
            int query = first_query + y + a * THREADS, key = first_key + x + b * THREADS;
            if (query < n_q && key < n_k) s[(size_t)query * n_k + key] = sum[a][b] * scale;
        }
}
