// Softmax of each row of s [rows, cols] into p: one block of 256 threads a row, grid (rows).
// The row is read three times: for its maximum, for the sum, and for the result.
// A row of minus infinities, one that may attend to nothing, gives zeros.
#define THREADS 256

__global__ void softmax_rows(const float* s, float* p, int rows, int cols) {
    __shared__ float part[THREADS];
    int t = threadIdx.x;
    s += (size_t)blockIdx.x * cols;
    p += (size_t)blockIdx.x * cols;

    float most = -INFINITY;
    for (int i = t; i < cols; i += THREADS) most = fmaxf(most, s[i]);
    part[t] = most;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {  // a tree: 256 numbers, 128, ..., one
        if (t < half) part[t] = fmaxf(part[t], part[t + half]);
        __syncthreads();
    }
    most = part[0] == -INFINITY ? 0.0f : part[0];  // -inf - (-inf) would be NaN
    __syncthreads();                               // all have read part[0]; it is used again

    float sum = 0.0f;
    for (int i = t; i < cols; i += THREADS) sum += expf(s[i] - most);
    part[t] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    sum = part[0];

    float share = sum == 0.0f ? 0.0f : 1.0f / sum;
    for (int i = t; i < cols; i += THREADS) p[i] = expf(s[i] - most) * share;
}
