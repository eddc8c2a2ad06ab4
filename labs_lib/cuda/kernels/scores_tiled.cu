// The same scores by tiles in shared memory: a block of (16, 16) threads makes 16 x 16 scores.
// It fetches 16 columns of 16 rows of q and of k at a time, and then each number is used 16 times.
// So the block's reads are those of the naive kernel divided by 16.
#define TILE 16

__global__ void scores_tiled(const float* q, const float* k, float* s, int n_q, int n_k,
                             int head_dim, float scale) {
    __shared__ float q_tile[TILE][TILE];
    // [column][key]: the lanes of a warp read neighbours. Rows of 18 put what a warp writes, 16
    // columns of two keys, into 32 different banks.
    __shared__ float k_tile[TILE][TILE + 2];
    int x = threadIdx.x, y = threadIdx.y;
    int first_key = blockIdx.x * TILE, first_query = blockIdx.y * TILE;
    float sum = 0.0f;
    for (int start = 0; start < head_dim; start += TILE) {
        bool inside = start + x < head_dim;
        int query = first_query + y, key = first_key + y;  // the rows that this thread fetches from
        q_tile[y][x] = inside && query < n_q ? q[(size_t)query * head_dim + start + x] : 0.0f;
        k_tile[x][y] = inside && key < n_k ? k[(size_t)key * head_dim + start + x] : 0.0f;
        __syncthreads();  // the tiles are whole
        for (int i = 0; i < TILE; ++i) sum += q_tile[y][i] * k_tile[i][x];
        __syncthreads();  // nobody needs them any more
    }
    int query = first_query + y, key = first_key + x;
    if (query < n_q && key < n_k) s[(size_t)query * n_k + key] = sum * scale;
}
