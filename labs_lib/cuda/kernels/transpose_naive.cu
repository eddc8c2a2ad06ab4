// b = a^T. a is [rows, cols], b is [cols, rows]. Block (32, 8): it takes 32 x 32 numbers, each
// thread 4. A warp reads 32 neighbours, and writes 32 numbers that lie a row of b apart: 32
// sectors.
#define TILE 32

__global__ void transpose_naive(const float* a, float* b, int rows, int cols) {
    int x = blockIdx.x * TILE + threadIdx.x;
    for (int down = threadIdx.y; down < TILE; down += blockDim.y) {
        int y = blockIdx.y * TILE + down;
        if (x < cols && y < rows) b[(size_t)x * rows + y] = a[(size_t)y * cols + x];
    }
}
