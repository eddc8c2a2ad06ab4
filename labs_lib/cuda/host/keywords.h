// CUDA's words for functions and threads, barriers, and memory that a block shares.
#pragma once
#include <type_traits>
#include <utility>

#include "abi.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline
#define __align__(n) alignas(n)
#define __launch_bounds__(...)
#define __grid_constant__

// Field by field: a copy of the whole would be counted (see touch.h).
LABS_FN uint3 labs_parts(const uint3& v) { return {v.x, v.y, v.z}; }
LABS_FN uint3 labs_thread_index() { return labs_parts(labs_now->thread); }
LABS_FN uint3 labs_block_index() { return labs_parts(labs_now->shape->block); }
LABS_FN dim3 labs_block_dim() { return labs_now->shape->block_dim; }
LABS_FN dim3 labs_grid_dim() { return labs_now->shape->grid_dim; }
#define threadIdx (labs_thread_index())
#define blockIdx (labs_block_index())
#define blockDim (labs_block_dim())
#define gridDim (labs_grid_dim())
constexpr int warpSize = 32;

#define __syncthreads() labs_sync(LABS_SITE)
#define __syncthreads_count(p) labs_sync_vote(LABS_SITE, !!(p), 0)
#define __syncthreads_and(p) labs_sync_vote(LABS_SITE, !!(p), 1)
#define __syncthreads_or(p) labs_sync_vote(LABS_SITE, !!(p), 2)
#define __threadfence() labs_fence()
#define __threadfence_block() labs_fence()
#define __threadfence_system() labs_fence()

#define printf labs_printf
#define __trap() labs_stop("the kernel called __trap()", __LINE__)
#undef assert
#define assert(x) ((x) ? (void)0 : labs_stop("assertion failed: " #x, __LINE__))

namespace lab {

// One place per variable: a local struct of the rewritten kernel, so templates differ by themselves.
template <class S>
LABS_FN S& shared(const char* name) {
    static char tag;
    return *static_cast<S*>(labs_shared(&tag, sizeof(S), alignof(S) < 16 ? 16 : alignof(S), name));
}

// `extern __shared__ T s[];` outside of a function.
template <class T>
struct Dynamic {
    LABS_MEMBER operator T*() const { return static_cast<T*>(labs_dynamic_shared()); }
};

// Calls a kernel with arguments that lie at the given addresses.
template <class... A, size_t... I>
LABS_MEMBER inline void call_at(void (*kernel)(A...), void** a, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<A>*>(a[I])...);
}

template <class... A>
LABS_MEMBER inline void call(void (*kernel)(A...), void** a) {
    call_at(kernel, a, std::index_sequence_for<A...>());
}

// Tells iterations of a loop apart, so that lanes of a warp are compared in the same one.
struct Loop {
    uint64_t outer, turn, id;
    bool first = true;
    LABS_MEMBER explicit Loop(uint64_t id_) : outer(labs_now->path), turn(0), id(id_) { mark(); }
    LABS_MEMBER ~Loop() { labs_now->path = outer; }
    LABS_MEMBER void mark() {
        uint64_t h = (outer ^ (id * 0x9e3779b97f4a7c15ull)) * 0xbf58476d1ce4e5b9ull;
        labs_now->path = (h ^ (h >> 29) ^ turn) * 0x94d049bb133111ebull;
    }
    LABS_MEMBER bool once() {
        bool was = first;
        first = false;
        return was;
    }
    LABS_MEMBER void next() {
        ++turn;
        mark();
    }
};

}  // namespace lab
