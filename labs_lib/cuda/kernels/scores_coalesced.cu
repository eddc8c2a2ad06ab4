// The same scores from k_t, which is k transposed: [head_dim, n_k]. Block (32, 8): a warp is 32
// keys of one query. In each step its lanes read 32 neighbouring floats of k_t, which are 4
// sectors; along the rows of k they would be 32. The bytes are the same.
__global__ void scores_coalesced(const float* q, const float* k_t, float* s, int n_q, int n_k,
                                 int head_dim, float scale) {
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    int query = blockIdx.y * blockDim.y + threadIdx.y;
    if (query >= n_q || key >= n_k) return;
    const float* q_row = q + (size_t)query * head_dim;
    float sum = 0.0f;
    for (int i = 0; i < head_dim; ++i) sum += q_row[i] * k_t[(size_t)i * n_k + key];
    s[(size_t)query * n_k + key] = sum * scale;
}
