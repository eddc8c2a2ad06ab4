// b = a^T by way of a tile in shared memory, block (32, 8): a warp reads neighbours and writes
// neighbours. The turn happens in shared memory, where a warp reads down a column of the tile. Rows
// of 32 floats put a column into one bank: 32 passes in place of one.
#define TILE 32

__global__ void transpose_tiled(const float* a, float* b, int rows, int cols) {
    __shared__ float tile[TILE][TILE];
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
