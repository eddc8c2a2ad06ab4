// Warps: lanes of a mask meet, and each reads what the others brought.
#include <string.h>

#include "block.h"

namespace host {

static unsigned existing(Worker& w, int warp) {
    int lanes = w.n - warp * 32;
    return lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
}

// Lanes that have not ended; those that haven't begun will come.
static unsigned alive(Worker& w, int warp) {
    unsigned bits = 0, all = existing(w, warp);
    for (int i = 0; i < 32; ++i)
        if ((all >> i & 1) && w.state[warp * 32 + i] != kEnded) bits |= 1u << i;
    return bits;
}

// Lets a group go when each of its living lanes waits with the same mask.
static bool try_release(Worker& w, int warp, unsigned mask) {
    unsigned group = mask & alive(w, warp);
    int base = warp * 32;
    for (int i = 0; i < 32; ++i)
        if ((group >> i & 1) && (w.state[base + i] != kAtWarp || w.fibers[base + i].mask != mask))
            return false;
    if (!group) return false;
    int order = 0, first = base + __builtin_ctz(group);
    // In one round of the block each lane is released at most once, so 64 snapshots outlive their
    // readers; a lane that meets only itself goes on at once, and may do so without end.
    bool alone = !(group & (group - 1)) && self() == &w.fibers[first];
    uint64_t* snapshot = alone ? w.alone : w.snapshots[warp][w.turn[warp]++ & 63];
    for (int i = 0; i < 32; ++i) {
        snapshot[i] = (group >> i & 1) ? w.fibers[base + i].brought : lab::kPoison;
        if (!(group >> i & 1)) continue;
        Fiber& f = w.fibers[base + i];
        order |= f.order;
        f.snapshot = snapshot;
        w.state[base + i] = kReady;
        --w.at_warp;
        if (f.site != w.fibers[first].site && tracing()) {
            claim_fault(kWarpBarrier);
            Fault& fault = g_report->fault;
            fault.at = place_of(&f), fault.line = f.site & 0xffff;
            fault.other = place_of(&w.fibers[first]);
            fault.other_line = w.fibers[first].site & 0xffff;
            fault.offset = mask;
            strcpy(fault.text, "sites");
            end_run();
        }
    }
    unsigned gone = mask & existing(w, warp) & ~group;
    if (gone) trace_absent(w, w.fibers[first], gone);
    trace_warp(w, base, group, order);
    return true;
}

void release_warp(Worker& w, int warp) {
    int base = warp * 32;
    for (int i = 0; i < 32 && base + i < w.n; ++i)
        if (w.state[base + i] == kAtWarp) try_release(w, warp, w.fibers[base + i].mask);
}

}  // namespace host

using namespace host;

extern "C" unsigned labs_alive_lanes(void) {
    Worker& w = *t_worker;
    return alive(w, self()->linear / 32);
}

// A thread comes to a rendezvous of its warp; true if it must wait there for others.
static bool meet(Worker& w, Fiber& f, unsigned mask, uint64_t value, uint32_t site, int order) {
    f.site = site;
    if (!(mask >> (f.linear & 31) & 1)) {
        claim_fault(kMask);
        g_report->fault.line = site & 0xffff;
        g_report->fault.offset = mask;
        end_run();
    }
    f.mask = mask, f.brought = value, f.order = order, f.wait = kExchange;
    w.state[f.linear] = kAtWarp;
    ++w.at_warp;
    return !try_release(w, f.linear / 32, mask);
}

#if defined(LABS_ASM)
extern "C" __attribute__((used)) Turn labs_turn_exchange(unsigned mask, uint64_t value, uint32_t site,
                                                         int order, void* stack) {
    Worker& w = *t_worker;
    Fiber& f = *self();
    bool waits = meet(w, f, mask, value, site, order);
    return turn_to(w, f, waits ? next_thread(w) : f, stack);
}
#else
extern "C" const uint64_t* labs_exchange(unsigned mask, uint64_t value, uint32_t site, int order) {
    Worker& w = *t_worker;
    Fiber& f = *self();
    if (meet(w, f, mask, value, site, order)) yield(w);
    return f.snapshot;
}
#endif
