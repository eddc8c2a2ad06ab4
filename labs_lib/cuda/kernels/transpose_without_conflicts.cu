// b = a^T by way of a tile whose rows are 33 floats long, block (32, 8): the numbers of a column
// lie in 32 different banks, and so do those of a row. One float a row is all that it costs.
#define TILE 32

__global__ void transpose_without_conflicts(const float* a, float* b, int rows, int cols) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x;
    for (int down = threadIdx.y; down < TILE; down += blockDim.y) {
        int y = blockIdx.y * TILE + down;
        if (x < cols && y < rows) tile[down][threadIdx.x] = a[(size_t)y * cols + x];
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;  // a column of b is a row of a
    for (int down = threadIdx.y; down < TILE; down += blockDim.y) {
        int y = blockIdx.x * TILE + down;
        if (x < rows && y < cols) b[(size_t)y * rows + x] = tile[threadIdx.x][down];
    }
}
