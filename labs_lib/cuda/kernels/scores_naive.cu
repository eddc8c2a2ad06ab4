// Attention scores, s = scale * q k^T. One thread makes one score, along a row of q and a row of k.
// q is [n_q, head_dim], k is [n_k, head_dim], s is [n_q, n_k]. Block (16, 16): x is the key, y the
// query.
// Each row of q is read n_k times, and each row of k n_q times.
__global__ void scores_naive(const float* q, const float* k, float* s, int n_q, int n_k,
                             int head_dim, float scale) {
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    int query = blockIdx.y * blockDim.y + threadIdx.y;
    if (query >= n_q || key >= n_k) return;
    const float* q_row = q + (size_t)query * head_dim;
    const float* k_row = k + (size_t)key * head_dim;
    float sum = 0.0f;
    for (int i = 0; i < head_dim; ++i) sum += q_row[i] * k_row[i];
    s[(size_t)query * n_k + key] = sum * scale;
}
