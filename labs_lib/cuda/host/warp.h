// Warps of 32: shuffles, votes, matches and reductions. Each waits for every lane of its mask.
#pragma once
#include <string.h>

#include "abi.h"

namespace lab {

template <class T>
LABS_FN uint64_t pack(T value) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <class T>
LABS_FN T unpack(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}

LABS_FN int lane() { return labs_now->linear & 31; }

// `what`: 0 index, 1 up, 2 down, 3 xor. Outside of the segment a lane keeps its own value.
template <class T>
LABS_FN T shuffle(int what, unsigned mask, T value, int by, int width, uint32_t site) {
    if (width < 1 || width > 32 || (width & (width - 1)))
        labs_stop("the width of a shuffle must be 1, 2, 4, 8, 16 or 32", site & 0xffff);
    const uint64_t* all = labs_exchange(mask, pack(value), site, 0);
    int me = lane(), base = me & ~(width - 1), from = me;
    if (what == 0) from = base + (by & (width - 1));
    if (what == 1) from = me - by < base ? me : me - by;
    if (what == 2) from = me + by >= base + width ? me : me + by;
    if (what == 3) from = (me ^ by) >= base + width ? me : me ^ by;
    return unpack<T>(all[from & 31]);
}

// Votes: lanes that take no part read as poison, which is neither 0 nor 1.
LABS_FN unsigned ballot(unsigned mask, int predicate, uint32_t site) {
    const uint64_t* all = labs_exchange(mask, predicate ? 1 : 0, site, 0);
    unsigned bits = 0;
    for (int i = 0; i < 32; ++i)
        if ((mask >> i & 1) && all[i] == 1) bits |= 1u << i;
    return bits;
}

LABS_FN unsigned voters(unsigned mask) { return mask & labs_alive_lanes(); }
LABS_FN int vote_all(unsigned m, int p, uint32_t s) { return ballot(m, !p, s) == 0; }
LABS_FN int vote_any(unsigned m, int p, uint32_t s) { return ballot(m, p, s) != 0; }
LABS_FN int vote_uni(unsigned m, int p, uint32_t s) {
    unsigned yes = ballot(m, p, s);
    return yes == 0 || yes == voters(m);
}

template <class T>
LABS_FN unsigned match_any(unsigned mask, T value, uint32_t site) {
    uint64_t mine = pack(value);
    const uint64_t* all = labs_exchange(mask, mine, site, 0);
    unsigned bits = 0;
    for (int i = 0; i < 32; ++i)
        if ((mask >> i & 1) && all[i] == mine) bits |= 1u << i;
    return bits;
}

// `what`: 0 add, 1 min, 2 max, 3 and, 4 or, 5 xor.
template <class T>
LABS_FN T reduce(int what, unsigned mask, T value, uint32_t site) {
    unsigned live = voters(mask);
    const uint64_t* all = labs_exchange(mask, pack(value), site, 0);
    T total = value;
    bool first = true;
    for (int i = 0; i < 32; ++i) {
        if (!(live >> i & 1)) continue;
        T x = unpack<T>(all[i]);
        if (first) total = x;
        else if (what == 0) total = total + x;
        else if (what == 1) total = x < total ? x : total;
        else if (what == 2) total = total < x ? x : total;
        else if (what == 3) total = total & x;
        else if (what == 4) total = total | x;
        else total = total ^ x;
        first = false;
    }
    return total;
}

LABS_FN void sync_warp(uint32_t site, unsigned mask = 0xffffffffu) {
    labs_exchange(mask, 0, site, 1);
}

template <class T>
LABS_FN T shuffle_of(int what, uint32_t site, unsigned mask, T value, int by, int width = 32) {
    return shuffle<T>(what, mask, value, by, width, site);
}

}  // namespace lab

#define __syncwarp(...) lab::sync_warp(LABS_SITE __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_sync(...) lab::shuffle_of(0, LABS_SITE, __VA_ARGS__)
#define __shfl_up_sync(...) lab::shuffle_of(1, LABS_SITE, __VA_ARGS__)
#define __shfl_down_sync(...) lab::shuffle_of(2, LABS_SITE, __VA_ARGS__)
#define __shfl_xor_sync(...) lab::shuffle_of(3, LABS_SITE, __VA_ARGS__)
#define __ballot_sync(mask, p) lab::ballot(mask, !!(p), LABS_SITE)
#define __all_sync(mask, p) lab::vote_all(mask, !!(p), LABS_SITE)
#define __any_sync(mask, p) lab::vote_any(mask, !!(p), LABS_SITE)
#define __uni_sync(mask, p) lab::vote_uni(mask, !!(p), LABS_SITE)
#define __match_any_sync(mask, v) lab::match_any(mask, v, LABS_SITE)
#define __reduce_add_sync(mask, v) lab::reduce(0, mask, v, LABS_SITE)
#define __reduce_min_sync(mask, v) lab::reduce(1, mask, v, LABS_SITE)
#define __reduce_max_sync(mask, v) lab::reduce(2, mask, v, LABS_SITE)
#define __reduce_and_sync(mask, v) lab::reduce(3, mask, v, LABS_SITE)
#define __reduce_or_sync(mask, v) lab::reduce(4, mask, v, LABS_SITE)
#define __reduce_xor_sync(mask, v) lab::reduce(5, mask, v, LABS_SITE)
#define __activemask() labs_alive_lanes()
