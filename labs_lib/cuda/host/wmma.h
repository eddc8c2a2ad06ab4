// Tensor-core fragments of 16 x 16 x 16 (and the two oblong shapes), one warp at a time.
//
// Which lane holds which element is the machine's affair: here it is shuffled on purpose, so that a
// kernel that counts on one GPU's layout shows its mistake.
#pragma once
#include "abi.h"
#include "half.h"

namespace nvcuda {
namespace wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int M, int N, int K> struct Extent;
template <int M, int N, int K> struct Extent<matrix_a, M, N, K> { enum { rows = M, cols = K }; };
template <int M, int N, int K> struct Extent<matrix_b, M, N, K> { enum { rows = K, cols = N }; };
template <int M, int N, int K> struct Extent<accumulator, M, N, K> { enum { rows = M, cols = N }; };

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
    static_assert(M * N == 256 && K == 16, "wmma shapes here: 16x16x16, 32x8x16 and 8x32x16");
    typedef Extent<Use, M, N, K> E;
    enum { num_elements = E::rows * E::cols / 32 };
    T x[num_elements];
};

// Element `i` of lane `lane`, as a place in row-major order.
template <int per_lane>
LABS_FN int place(int lane, int i) {
    int turned = (lane * 5 + 3) & 31;  // a permutation: 5 is odd
    return turned * per_lane + ((i + lane) & (per_lane - 1));
}

LABS_FN int lane() { return labs_now->linear & 31; }

LABS_FN void meet(uint32_t site) { labs_exchange(0xffffffffu, 0, site, 0); }

template <class F, class T>
LABS_FN void load(uint32_t site, F& f, const T* p, unsigned stride, bool by_column, const void* from) {
    meet(site);
    for (int i = 0; i < F::num_elements; ++i) {
        int at = place<F::num_elements>(lane(), i), row = at / F::E::cols, col = at % F::E::cols;
        const T* q = p + (by_column ? (size_t)col * stride + row : (size_t)row * stride + col);
#if defined(LABS_TRACE)
        labs_touch(q, sizeof(T), lab::kRead, from);
#else
        (void)from;
#endif
        __builtin_memcpy((void*)&f.x[i], (const void*)q, sizeof(T));
    }
}

template <class L> struct ByColumn { enum { value = 0 }; };
template <> struct ByColumn<col_major> { enum { value = 1 }; };

template <class Use, int M, int N, int K, class T, class L>
LABS_FN void load_matrix_at(uint32_t site, fragment<Use, M, N, K, T, L>& f, const T* p, unsigned s) {
    load(site, f, p, s, ByColumn<L>::value, __builtin_return_address(0));
}

template <int M, int N, int K, class T>
LABS_FN void load_matrix_at(uint32_t site, fragment<accumulator, M, N, K, T>& f, const T* p,
                            unsigned s, layout_t layout) {
    load(site, f, p, s, layout == mem_col_major, __builtin_return_address(0));
}

template <int M, int N, int K, class T>
LABS_FN void store_matrix_at(uint32_t site, T* p, const fragment<accumulator, M, N, K, T>& f,
                             unsigned stride, layout_t layout) {
    constexpr int n = fragment<accumulator, M, N, K, T>::num_elements;
    meet(site);
    for (int i = 0; i < n; ++i) {
        int at = place<n>(lane(), i), row = at / N, col = at % N;
        T* q = p + (layout == mem_col_major ? (size_t)col * stride + row : (size_t)row * stride + col);
        LABS_TOUCH(q, sizeof(T), lab::kWrite);
        __builtin_memcpy((void*)q, (const void*)&f.x[i], sizeof(T));
    }
}

template <class Use, int M, int N, int K, class T, class L, class V>
LABS_FN void fill_fragment(fragment<Use, M, N, K, T, L>& f, V value) {
    for (int i = 0; i < f.num_elements; ++i) f.x[i] = T(value);
}

// One lane's view of the fragments that the others brought.
template <class F>
LABS_FN float element(const uint64_t* all, int at) {
    int turned = at / F::num_elements, lane = ((turned - 3) * 13) & 31;  // 5 * 13 = 1 (mod 32)
    const F* f = reinterpret_cast<const F*>((uintptr_t)all[lane]);
    // Copied here first: a conversion in another lane's stack would be counted (see touch.h).
    typename std::remove_const<typename std::remove_reference<decltype(f->x[0])>::type>::type own;
    __builtin_memcpy((void*)&own, (const void*)&f->x[(at - lane) & (F::num_elements - 1)], sizeof own);
    return (float)own;
}

template <int M, int N, int K, class TD, class TA, class LA, class TB, class LB, class TC>
LABS_FN void mma_at(uint32_t site, fragment<accumulator, M, N, K, TD>& d,
                    const fragment<matrix_a, M, N, K, TA, LA>& a,
                    const fragment<matrix_b, M, N, K, TB, LB>& b,
                    const fragment<accumulator, M, N, K, TC>& c) {
    typedef fragment<matrix_a, M, N, K, TA, LA> A;
    typedef fragment<matrix_b, M, N, K, TB, LB> B;
    uint64_t as[32], bs[32];
    const uint64_t* all = labs_exchange(0xffffffffu, (uintptr_t)&a, site, 0);
    for (int i = 0; i < 32; ++i) as[i] = all[i];
    all = labs_exchange(0xffffffffu, (uintptr_t)&b, site, 0);
    for (int i = 0; i < 32; ++i) bs[i] = all[i];
    float out[8];
    for (int i = 0; i < 8; ++i) {
        int at = place<8>(lane(), i), row = at / N, col = at % N;
        float sum = (float)c.x[i];
        for (int k = 0; k < K; ++k) sum += element<A>(as, row * K + k) * element<B>(bs, k * N + col);
        out[i] = sum;
    }
    meet(site);  // nobody changes a fragment that a neighbour still reads
    for (int i = 0; i < 8; ++i) d.x[i] = TD(out[i]);
}

}  // namespace wmma
}  // namespace nvcuda

#define load_matrix_sync(...) load_matrix_at(LABS_SITE, __VA_ARGS__)
#define store_matrix_sync(...) store_matrix_at(LABS_SITE, __VA_ARGS__)
#define mma_sync(...) mma_at(LABS_SITE, __VA_ARGS__)
