// PTX by name: asynchronous copies to shared memory, ldmatrix and mma.sync of 16 x 8 x 16.
// On a GPU (sm_80 and later) each is one instruction; on a CPU it is emulated.
#pragma once

#if !defined(__CUDACC__)
#include "../../ptx.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace ptx {

__device__ inline unsigned shared_address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

// Copies 4, 8 or 16 bytes from global to shared memory; they are there after a wait.
template <int bytes>
__device__ inline void copy_async(void* to, const void* from) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "copy_async takes 4, 8 or 16 bytes");
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from),
                 "n"(bytes)
                 : "memory");
}

// Closes a group of copies of this thread.
__device__ inline void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for this thread's groups but the latest `still`.
template <int still>
__device__ inline void wait_group() {
    asm volatile("cp.async.wait_group %0;" ::"n"(still) : "memory");
}

// Four (two) matrices of 8 x 8 halves: lane 8i + j gives the address of row j of matrix i.
__device__ inline void load_matrices(unsigned (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}
__device__ inline void load_matrices(unsigned (&r)[2], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row))
                 : "memory");
}
__device__ inline void load_matrices_transposed(unsigned (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}
__device__ inline void load_matrices_transposed(unsigned (&r)[2], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row))
                 : "memory");
}

#define LABS_MMA(name, type)                                                                      \
    __device__ inline void name(float(&d)[4], const unsigned(&a)[4], const unsigned(&b)[2],       \
                                const float(&c)[4]) {                                             \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                       \
                     ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"   \
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                             \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),          \
                       "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));                               \
    }
// d = a b + c: a is 16 x 16 by rows, b 16 x 8 by columns, sums are in float32.
LABS_MMA(mma_16x8x16, "f16")
LABS_MMA(mma_16x8x16_bf16, "bf16")
#undef LABS_MMA

}  // namespace ptx
#endif
