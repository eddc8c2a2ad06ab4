// What <labs/mma.h> is on a CPU. Copies arrive as late as they may: when their group is waited for.
#pragma once
#include "abi.h"
#include "half.h"

extern "C" {
void labs_copy_async(void* to, const void* from, unsigned size, const void* origin);
void labs_commit_group(void);
void labs_wait_group(unsigned still);
}

namespace ptx {

template <int bytes>
LABS_FN void copy_async(void* to, const void* from) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "copy_async takes 4, 8 or 16 bytes");
    LABS_TOUCH(from, bytes, lab::kRead);
    labs_copy_async(to, from, bytes, __builtin_return_address(0));
}

LABS_FN void commit_group() { labs_commit_group(); }

template <int still>
LABS_FN void wait_group() {
    labs_wait_group(still);
}

LABS_FN unsigned lane() { return labs_now->linear & 31; }

// Lane l gets of matrix i the pair at row l / 4, columns 2 (l % 4) and the next; transposed, the
// pair at column l / 4.
template <int n>
LABS_FN void load(uint32_t site, unsigned (&r)[n], const void* row, bool transposed, const void* from) {
    (void)from;
#if defined(LABS_TRACE)
    if (lane() < 8 * n) labs_touch(row, 16, lab::kRead, from);
#endif
    if ((uintptr_t)row % 16 && lane() < 8 * n)
        labs_stop("ldmatrix needs rows at multiples of 16 bytes", site & 0xffff);
    const uint64_t* rows = labs_exchange(0xffffffffu, (uintptr_t)row, site, 0);
    unsigned major = lane() / 4, minor = 2 * (lane() % 4);
    for (unsigned i = 0; i < n; ++i) {
        uint16_t pair[2];
        for (unsigned j = 0; j < 2; ++j) {
            unsigned at = transposed ? minor + j : major, col = transposed ? major : minor + j;
            const char* p = (const char*)(uintptr_t)rows[8 * i + at] + 2 * col;
            __builtin_memcpy(&pair[j], p, 2);
        }
        r[i] = pair[0] | (unsigned)pair[1] << 16;
    }
    labs_exchange(0xffffffffu, 0, site, 0);  // nobody writes what a neighbour still reads
}

template <int n>
LABS_FN void load_matrices_at(uint32_t site, unsigned (&r)[n], const void* row) {
    load(site, r, row, false, __builtin_return_address(0));
}

template <int n>
LABS_FN void load_matrices_transposed_at(uint32_t site, unsigned (&r)[n], const void* row) {
    load(site, r, row, true, __builtin_return_address(0));
}

// Element of a register of some lane: `high` is its upper half.
LABS_FN float element(const uint64_t* all, unsigned lane, int reg, int high, bool brain) {
    const unsigned* regs = (const unsigned*)(uintptr_t)all[lane];
    uint16_t bits = (uint16_t)(regs[reg] >> (16 * high));
    return brain ? lab::from_bf16(bits) : lab::from_half(bits);
}

LABS_FN void mma(uint32_t site, float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                 const float (&c)[4], bool brain) {
    uint64_t as[32], bs[32];
    const uint64_t* all = labs_exchange(0xffffffffu, (uintptr_t)&a, site, 0);
    for (int i = 0; i < 32; ++i) as[i] = all[i];
    all = labs_exchange(0xffffffffu, (uintptr_t)&b, site, 0);
    for (int i = 0; i < 32; ++i) bs[i] = all[i];
    float out[4];
    for (int i = 0; i < 4; ++i) {
        unsigned row = lane() / 4 + 8 * (i / 2), col = 2 * (lane() % 4) + i % 2;
        float sum = c[i];
        for (unsigned k = 0; k < 16; ++k) {
            unsigned pair = k % 8 / 2;
            float x = element(as, row % 8 * 4 + pair, row / 8 + 2 * (k / 8), k % 2, brain);
            sum += x * element(bs, col * 4 + pair, k / 8, k % 2, brain);
        }
        out[i] = sum;
    }
    labs_exchange(0xffffffffu, 0, site, 0);  // nobody changes a register that a neighbour reads
    for (int i = 0; i < 4; ++i) d[i] = out[i];
}

LABS_FN void mma_16x8x16_at(uint32_t site, float (&d)[4], const unsigned (&a)[4],
                            const unsigned (&b)[2], const float (&c)[4]) {
    mma(site, d, a, b, c, false);
}

LABS_FN void mma_16x8x16_bf16_at(uint32_t site, float (&d)[4], const unsigned (&a)[4],
                                 const unsigned (&b)[2], const float (&c)[4]) {
    mma(site, d, a, b, c, true);
}

}  // namespace ptx

#define load_matrices(...) load_matrices_at(LABS_SITE, __VA_ARGS__)
#define load_matrices_transposed(...) load_matrices_transposed_at(LABS_SITE, __VA_ARGS__)
#define mma_16x8x16(...) mma_16x8x16_at(LABS_SITE, __VA_ARGS__)
#define mma_16x8x16_bf16(...) mma_16x8x16_bf16_at(LABS_SITE, __VA_ARGS__)
