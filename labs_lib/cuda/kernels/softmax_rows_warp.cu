// Softmax of each row of s [rows, cols] into p: one warp a row. Block (32, 4), four
// rows; grid (ceil(rows / 4)). The lanes of a warp exchange registers by shuffles: no shared
// memory, no barrier.
// A row of minus infinities gives zeros.
#define ALL 0xffffffffu

__device__ float largest_of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, step));
    return x;
}

__device__ float sum_of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

__global__ void softmax_rows_warp(const float* s, float* p, int rows, int cols) {
    int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;  // a whole warp leaves, so no shuffle misses a lane
    s += (size_t)row * cols;
    p += (size_t)row * cols;

    float most = -INFINITY;
    for (int i = lane; i < cols; i += 32) most = fmaxf(most, s[i]);
    most = largest_of_warp(most);
    if (most == -INFINITY) most = 0.0f;  // -inf - (-inf) would be NaN

    float sum = 0.0f;
    for (int i = lane; i < cols; i += 32) sum += expf(s[i] - most);
    sum = sum_of_warp(sum);

    float share = sum == 0.0f ? 0.0f : 1.0f / sum;
    for (int i = lane; i < cols; i += 32) p[i] = expf(s[i] - most) * share;
}
