"""The kernels that the emulator is timed with: CUDA C++ here, the same in numba_peer.py."""

PRODUCT = """
#define T 16
__global__ void product(const float* a, const float* b, float* c, int n) {
    __shared__ float as[T][T], bs[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < n; t += T) {
        as[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
        __syncthreads();
        for (int i = 0; i < T; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
"""

# One thread a query; tiles of k and v in shared memory; the softmax goes along.
FLASH = """
#define B 32
#define D 64
__global__ void flash(const float* q, const float* k, const float* v, float* o, int n) {
    __shared__ float ks[B][D], vs[B][D];
    int row = blockIdx.x * B + threadIdx.x;
    float acc[D], mine[D], m = -INFINITY, l = 0.0f;
    for (int i = 0; i < D; ++i) {
        acc[i] = 0.0f;
        mine[i] = row < n ? q[row * D + i] : 0.0f;
    }
    for (int start = 0; start < n; start += B) {
        for (int i = threadIdx.x; i < B * D; i += B) {
            bool inside = start + i / D < n;
            ks[i / D][i % D] = inside ? k[start * D + i] : 0.0f;
            vs[i / D][i % D] = inside ? v[start * D + i] : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < B && start + j < n; ++j) {
            float s = 0.0f;
            for (int i = 0; i < D; ++i) s += mine[i] * ks[j][i];
            s *= 0.125f;
            float bigger = fmaxf(m, s), keep = expf(m - bigger), p = expf(s - bigger);
            l = l * keep + p;
            m = bigger;
            for (int i = 0; i < D; ++i) acc[i] = acc[i] * keep + p * vs[j][i];
        }
        __syncthreads();
    }
    if (row >= n) return;
    for (int i = 0; i < D; ++i) o[row * D + i] = acc[i] / l;
}
"""
