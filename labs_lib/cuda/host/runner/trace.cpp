// Each load and store of an instrumented kernel comes by here.
#include <string.h>

#include <algorithm>

#include "lanes.h"
#include "seen.h"
#include "shadow.h"
#include "trace.h"

namespace host {

static bool g_on = false, g_tracing = false, g_grouping = false;
static Shadow g_shadows[kMaxRegions], g_shared_shadow;
static Span g_library;  // all of it: code, constants and variables
static int g_last = 0;
uint64_t g_last_pc = 0;

struct SiteKey {
    uint64_t pc;
    uint32_t region_how, index;
};
static SiteKey g_sites[8192];

bool tracing() { return g_tracing; }
void trace_on(bool on) { g_on = on; }

void trace_setup(Worker& w, Span library) {
    g_tracing = true;
    g_library = library;
    const Request& r = *g_request;
    bool ok = make_shadow(g_shared_shadow, (uintptr_t)w.arena, sizeof w.arena);
    for (uint32_t i = 0; i < r.n_regions; ++i)
        ok = ok && make_shadow(g_shadows[i], (uintptr_t)g_memory + r.regions[i].address +
                                                 r.regions[i].start, r.regions[i].size);
    if (!ok) fail(kStart, "no memory to keep the trace; use smaller tensors");
}

static uint32_t site_of(uint64_t pc, int region, int how) {
    uint32_t rest = (uint32_t)region << 8 | how;
    uint64_t h = (pc ^ (uint64_t)rest << 40) * 0x9e3779b97f4a7c15ull >> 51;
    for (;; h = (h + 1) & 8191) {
        SiteKey& k = g_sites[h];
        if (k.pc == pc && k.region_how == rest) return k.index;
        if (k.pc) continue;
        Report& r = *g_report;
        if (r.n_sites == kMaxSites - 1) return kMaxSites - 1;
        k = {pc, rest, r.n_sites++};
        Site& s = r.sites[k.index];
        memset(&s, 0, sizeof s);
        s.pc = pc - r.base, s.region = region, s.how = how;
        return k.index;
    }
}

[[noreturn]] static void out_of_bounds(FaultKind kind, int region, int64_t offset, unsigned size,
                                       int flags, uint64_t pc) {
    claim_fault(kind);
    Fault& f = g_report->fault;
    f.region = region, f.offset = offset, f.size = size, f.write = flags & lab::kWrite;
    f.pc = pc - g_report->base;
    f.line = 0;
    end_run();
}

static void touch_shared(Worker& w, Fiber& f, uintptr_t a, unsigned size, int flags, uint64_t pc) {
    uint64_t at = a - (uintptr_t)w.arena;
    bool inside = at + size <= w.dynamic;
    for (int i = 0; i < w.n_variables && !inside; ++i)
        inside = at >= w.variables[i].offset &&
                 at + size <= w.variables[i].offset + w.variables[i].size;
    if (!inside) out_of_bounds(kOutOfBounds, kShared, at, size, flags, pc);
    uint32_t site = site_of(pc, kShared, flags & 3);
    Site& s = g_report->sites[site];
    ++s.count, s.bytes += size;
    Total& t = g_report->totals[kShared];
    (flags & lab::kAtomic ? t.atomic : flags & lab::kWrite ? t.written : t.read) += size;
    seen_event(f, site, at, size, pc ^ f.call ^ f.path);
    judge(g_shared_shadow, kShared, a, size, flags, site);
    if (g_grouping) lanes_touch(pc ^ f.call ^ f.path, site, true, at, size);
}

static __attribute__((noinline)) void watch(Fiber* f, uintptr_t a, unsigned size, int flags,
                                            uint64_t pc) {
    g_last_pc = pc;
    Worker& w = *t_worker;
    settle();
    if (a - (uintptr_t)w.arena < sizeof w.arena) return touch_shared(w, *f, a, size, flags, pc);
    const Request& r = *g_request;
    for (uint32_t i = 0; i < r.n_regions; ++i) {
        int index = g_last + i;
        if (index >= (int)r.n_regions) index -= r.n_regions;
        const Region& region = r.regions[index];
        uint64_t at = a - (uintptr_t)g_memory - region.address - region.start;
        if (at >= region.size) continue;
        g_last = index;
        if (at + size > region.size) break;
        if (a % (size > 16 ? 16 : size) && !(size & (size - 1)))
            out_of_bounds(kMisaligned, index, at, size, flags, pc);
        uint32_t site = site_of(pc, index, flags & 3);
        Site& s = g_report->sites[site];
        ++s.count, s.bytes += size;
        Total& t = g_report->totals[index];
        (flags & lab::kAtomic ? t.atomic : flags & lab::kWrite ? t.written : t.read) += size;
        if (flags & lab::kAtomic) shadow_atomic(a);
        seen_event(*f, site, at, size, pc ^ f->call ^ f->path);
        seen_cells(*f, index, at, size, flags);
        judge(g_shadows[index], index, a, size, flags, site);
        if (g_grouping) lanes_touch(pc ^ f->call ^ f->path, site, false, at + region.phase, size);
        return;
    }
    if (a - g_library.low < g_library.size) {
        if (flags & lab::kAtomic) shadow_atomic(a);
        return;
    }
    int64_t offset = 0;
    int region = region_near(a, &offset);
    out_of_bounds(kOutOfBounds, region, region < 0 ? (int64_t)a : offset, size, flags, pc);
}

// Most accesses are to a thread's own stack, or come when nobody watches.
static inline void touch(uintptr_t a, unsigned size, int flags, uint64_t pc) {
    if (!g_on) return;
    Fiber* f = self();
    if (f && a - (uintptr_t)f->stack >= kStack) watch(f, a, size, flags, pc);
}

void trace_barrier(Worker& w) {
    if (!g_on) return;
    settle();
    ++g_time.epoch;
    for (int i = 0; i < w.n; ++i) {
        memset(w.fibers[i].past->clock, 0, sizeof w.fibers[i].past->clock);
        w.fibers[i].past->clock[i & 31] = 1;
    }
    if (g_grouping) lanes_flush();
}

void trace_warp(Worker& w, int first, unsigned lanes, int order) {
    if (!g_on || !order) return;
    uint16_t known[32] = {0};
    for (int i = 0; i < 32; ++i)
        for (int j = 0; (lanes >> i & 1) && j < 32; ++j)
            known[j] = std::max(known[j], w.fibers[first + i].past->clock[j]);
    for (int i = 0; i < 32; ++i) {
        if (!(lanes >> i & 1)) continue;
        memcpy(w.fibers[first + i].past->clock, known, sizeof known);
        ++w.fibers[first + i].past->clock[i];
    }
}

void trace_absent(Worker& w, Fiber& f, unsigned lanes) {
    if (!g_on) return;
    Report& r = *g_report;
    for (uint32_t i = 0; i < r.n_findings; ++i)
        if (r.findings[i].kind == kAbsentLanes && r.findings[i].pc_b == (f.site & 0xffff)) {
            ++r.findings[i].count;
            return;
        }
    if (r.n_findings == kMaxFindings) return;
    Finding& x = r.findings[r.n_findings++];
    x = {kAbsentLanes, -1, 0, f.site & 0xffff, (int64_t)lanes, 0, 1, 0, 0, {}, {}};
    x.a = place_of(&w.fibers[(f.linear & ~31u) + __builtin_ctz(lanes)]);
    x.b = place_of(&f);
}

void trace_block_start(Worker& w) {
    if (!g_on) return;
    shadow_block_start(w.shape.block);
    seen_block_start(w.shape.block);
    trace_barrier(w);
    g_grouping = lanes_block_start();
    if (g_grouping) ++g_report->grouped_blocks;
}

void trace_block_end(Worker&) {
    if (!g_on) return;
    settle();
    if (g_grouping) lanes_flush();
}

}  // namespace host

using namespace host;

extern "C" {

void labs_touch(const void* p, unsigned size, int flags, const void* origin) {
    touch((uintptr_t)p, size, flags, (uint64_t)origin);
}

void labs_fence(void) {
    Fiber* f = self();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!f || !f->past) return;
    f->past->fenced = g_time.epoch;
    f->past->has_fenced = true;
}

#define LABS_PC ((uint64_t)__builtin_return_address(0))
#define LABS_HOOK(size)                                                                       \
    void __tsan_read##size(void* p) { touch((uintptr_t)p, size, 0, LABS_PC); }                \
    void __tsan_write##size(void* p) { touch((uintptr_t)p, size, lab::kWrite, LABS_PC); }     \
    void __tsan_unaligned_read##size(void* p) { touch((uintptr_t)p, size, 0, LABS_PC); }      \
    void __tsan_unaligned_write##size(void* p) {                                              \
        touch((uintptr_t)p, size, lab::kWrite, LABS_PC);                                      \
    }                                                                                         \
    void __tsan_volatile_read##size(void* p) {                                                \
        touch((uintptr_t)p, size, lab::kVolatile, LABS_PC);                                   \
        labs_spin();                                                                          \
    }                                                                                         \
    void __tsan_volatile_write##size(void* p) {                                               \
        touch((uintptr_t)p, size, lab::kWrite | lab::kVolatile, LABS_PC);                     \
    }                                                                                         \
    void __tsan_unaligned_volatile_read##size(void* p) { __tsan_volatile_read##size(p); }     \
    void __tsan_unaligned_volatile_write##size(void* p) { __tsan_volatile_write##size(p); }
LABS_HOOK(1)
LABS_HOOK(2)
LABS_HOOK(4)
LABS_HOOK(8)
LABS_HOOK(16)

void __tsan_read_range(void* p, size_t n) { touch((uintptr_t)p, (unsigned)n, 0, LABS_PC); }
void __tsan_write_range(void* p, size_t n) {
    touch((uintptr_t)p, (unsigned)n, lab::kWrite, LABS_PC);
}
// clang since 16 names the copies of whole structs so.
void* __tsan_memcpy(void* to, const void* from, size_t n) {
    touch((uintptr_t)from, (unsigned)n, 0, LABS_PC);
    touch((uintptr_t)to, (unsigned)n, lab::kWrite, LABS_PC);
    return memcpy(to, from, n);
}
void* __tsan_memset(void* to, int value, size_t n) {
    touch((uintptr_t)to, (unsigned)n, lab::kWrite, LABS_PC);
    return memset(to, value, n);
}
void __tsan_init(void) {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}

// The chain of calls tells one use of a device function from another.
void __tsan_func_entry(void* caller) {
    Fiber* f = self();
    if (!f) return;
    g_last_pc = LABS_PC;
    if (f->past->depth < 64) f->past->calls[f->past->depth] = f->call;
    ++f->past->depth;
    f->call = (f->call ^ (uint64_t)caller) * 0xbf58476d1ce4e5b9ull + 1;
}
void __tsan_func_exit(void) {
    Fiber* f = self();
    if (!f || f->past->depth == 0) return;
    if (--f->past->depth < 64) f->call = f->past->calls[f->past->depth];
}
}
