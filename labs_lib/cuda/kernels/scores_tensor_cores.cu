// The same scores on tensor cores: half in, float out. A warp multiplies fragments of 16 x 16 and
// adds up in float. Block 128: four warps make 32 x 32 scores, a quarter each.
// Tiles go through shared memory and are filled up with zeros there, so that any n_q, n_k and
// head_dim will do.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

#define WIDE 32         // queries and keys of a block
#define DEEP 32         // columns of a tile: two fragments
#define ROW (DEEP + 8)  // a row's length in shared memory: a multiple of 8 halves, as wmma wants it

__global__ void scores_tensor_cores(const half* q, const half* k, float* s, int n_q, int n_k,
                                    int head_dim, float scale) {
    __shared__ alignas(32) half q_tile[WIDE][ROW];
    __shared__ alignas(32) half k_tile[WIDE][ROW];
    __shared__ alignas(32) float s_tile[WIDE][WIDE + 4];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int down = warp / 2 * 16, right = warp % 2 * 16;  // this warp's quarter
    int first_key = blockIdx.x * WIDE, first_query = blockIdx.y * WIDE;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int start = 0; start < head_dim; start += DEEP) {
        int column = start + lane;
        half zero = __float2half(0.0f);
        for (int row = warp; row < WIDE; row += 4) {
            int query = first_query + row, key = first_key + row;
            size_t q_at = (size_t)query * head_dim + column, k_at = (size_t)key * head_dim + column;
            q_tile[row][lane] = column < head_dim && query < n_q ? q[q_at] : zero;
            k_tile[row][lane] = column < head_dim && key < n_k ? k[k_at] : zero;
        }
        __syncthreads();
        for (int i = 0; i < DEEP; i += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> qf;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> kf;  // k transposed
            wmma::load_matrix_sync(qf, &q_tile[down][i], ROW);
            wmma::load_matrix_sync(kf, &k_tile[right][i], ROW);
            wmma::mma_sync(sum, qf, kf, sum);
        }
        __syncthreads();
    }
    wmma::store_matrix_sync(&s_tile[down][right], sum, WIDE + 4, wmma::mem_row_major);
    __syncthreads();
    for (int row = warp; row < WIDE; row += 4) {
        int query = first_query + row, key = first_key + lane;
        if (query < n_q && key < n_k) s[(size_t)query * n_k + key] = s_tile[row][lane] * scale;
    }
}
