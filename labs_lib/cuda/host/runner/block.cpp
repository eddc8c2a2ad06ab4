#include "block.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
__thread lab::Thread* labs_now = nullptr;
}

namespace host {

thread_local Worker* t_worker = nullptr;

static void describe(Fault& f, const Fiber& a, const Fiber* b) {
    f.at = place_of(&a);
    f.line = a.site & 0xffff;
    if (b) {
        f.other = place_of(b);
        f.other_line = b->site & 0xffff;
    }
}

// Nobody can go on: some thread waits for others that ended or wait elsewhere.
[[noreturn]] static void stuck(Worker& w) {
    int at_barrier = -1, at_warp = -1, ended = -1;
    for (int i = 0; i < w.n; ++i) {
        if (w.state[i] == kAtBarrier && at_barrier < 0) at_barrier = i;
        if (w.state[i] == kAtWarp && at_warp < 0) at_warp = i;
        if (w.state[i] == kEnded && ended < 0) ended = i;
    }
    Fault& f = g_report->fault;
    if (at_warp >= 0) {
        claim_fault(kWarpBarrier);
        Fiber& waiting = w.fibers[at_warp];
        int base = at_warp & ~31, other = -1;
        for (int lane = 0; lane < 32 && base + lane < w.n; ++lane) {
            Fiber& o = w.fibers[base + lane];
            bool with = w.state[base + lane] == kAtWarp && o.mask == waiting.mask;
            if ((waiting.mask >> lane & 1) && !with) other = base + lane;
        }
        describe(f, waiting, other < 0 || w.state[other] == kEnded ? nullptr : &w.fibers[other]);
        if (other >= 0) f.other = place_of(&w.fibers[other]);
        f.offset = waiting.mask;
        strcpy(f.text, other >= 0 && w.state[other] == kEnded       ? "ended"
                       : other >= 0 && w.state[other] == kAtBarrier ? "barrier"
                                                                    : "mask");
        end_run();
    }
    claim_fault(kBarrier);
    describe(f, w.fibers[at_barrier < 0 ? 0 : at_barrier], nullptr);
    if (ended >= 0) f.other = place_of(&w.fibers[ended]);
    strcpy(f.text, "ended");
    end_run();
}

static void start(Worker& w, Fiber& f) {
    f.path = 0;
    f.atomics = 0;
    f.call = 0;
    if (f.past) f.past->depth = 0, f.past->has_fenced = false;
    w.state[f.linear] = kReady;
}

static Fiber& start_on_own_stack(Worker& w) {
    int i = w.started++;
    Fiber& f = w.fibers[i];
    f.stack = w.stacks + i * kStride + kGuard;
    if (i >= w.stacks_ready) {
        make_guard(f.stack - kGuard);
        w.stacks_ready = i + 1;
    }
    // Staggered: tops at equal distances would share a few lines of the cache.
    prepare(&f.context, f.stack, i * 7 % 64 * 64, fiber_main);
    start(w, f);
    return f;
}

static Fiber& next_ready(Worker& w, int from) {
    for (int i = from + 1; i < w.n; ++i)
        if (w.state[i] == kReady) return w.fibers[i];
    for (int i = 0; i <= from; ++i)
        if (w.state[i] == kReady) return w.fibers[i];
    stuck(w);
}

Fiber& next_thread(Worker& w) {
    return w.started < w.n ? start_on_own_stack(w) : next_ready(w, (int)self()->linear);
}

void yield(Worker& w) {
    Fiber& from = *self();
    Fiber& to = next_thread(w);
    if (&to == &from) return;
    labs_now = &to;
    switch_to(&from.context, &to.context, result(w, to));
    labs_now = &from;
}

// A thread that ends hands its stack to the next one that hasn't begun: without a barrier, one
// stack serves the whole block.
void fiber_main() {
    Worker& w = *t_worker;
    for (;;) {
        g_entry(g_args);
        Fiber* f = self();
        w.state[f->linear] = kEnded;
        ++w.ended;
        if (w.at_warp) release_warp(w, f->linear / 32);
        if (w.started < w.n) {
            Fiber& next = w.fibers[w.started++];
            next.stack = f->stack;
            start(w, next);
            labs_now = &next;
            continue;
        }
        bool whole = w.ended == w.n;
        Fiber* next = whole ? nullptr : &next_ready(w, (int)f->linear);
        labs_now = next;
        if (whole) switch_to(&f->context, &w.home, 0);
        else switch_to(&f->context, &next->context, result(w, *next));
    }
}

static void fill_arena(Worker& w, uint32_t bytes) {
    uint64_t* words = (uint64_t*)w.arena;
    for (uint32_t i = 0; i < (bytes + kZone + 7) / 8; ++i) words[i] = lab::kPoison;
}

void run_block(Worker& w, uint3 index) {
    const Request& r = *g_request;
    w.n = r.block[0] * r.block[1] * r.block[2];
    w.started = w.ended = w.arrived = w.at_warp = 0;
    // Variables keep their places from block to block, so that a place means one variable.
    fill_arena(w, w.used > w.dynamic ? w.used : w.dynamic);
    memset(w.state, kUnstarted, w.n);
    w.shape.block = index;
    async_block_start(w);
    trace_block_start(w);
    labs_now = &start_on_own_stack(w);
    switch_to(&w.home, &self()->context, 0);
    trace_block_end(w);
}

Worker* make_worker() {
    Worker* w = (Worker*)aligned_alloc(128, (sizeof(Worker) + 127) / 128 * 128);
    memset((void*)w, 0, offsetof(Worker, snapshots));
    memset(w->turn, 0, sizeof w->turn);
    w->n_variables = 0;
    w->barriers = w->most_shared = 0;
    const Request& r = *g_request;
    int n = r.block[0] * r.block[1] * r.block[2];
    w->fibers = (Fiber*)aligned_alloc(64, n * sizeof(Fiber));
    memset((void*)w->fibers, 0, n * sizeof(Fiber));
    if (r.trace) w->pasts = (Past*)calloc(n, sizeof(Past));
    w->stacks = make_stacks(kMaxThreads);
    if (!w->stacks) fail(kStart, "no memory for the threads' stacks");
    for (int i = 0; i < n; ++i) {
        Fiber& f = w->fibers[i];
        f.linear = i;
        f.thread = {i % r.block[0], i / r.block[0] % r.block[1], i / (r.block[0] * r.block[1])};
        f.shape = &w->shape;
        f.past = w->pasts ? w->pasts + i : nullptr;
    }
    w->shape.block_dim = dim3(r.block[0], r.block[1], r.block[2]);
    w->shape.grid_dim = dim3(r.grid[0], r.grid[1], r.grid[2]);
    // Dynamic shared memory comes first and grows to where the static variables start.
    w->dynamic = (uint32_t)r.dynamic_shared;
    w->used = r.dynamic_shared ? ((uint32_t)r.dynamic_shared + kZone + 127) / 128 * 128 : kZone;
    w->most_shared = r.dynamic_shared;
    return w;
}

static void wrong_barrier(Worker& w, Fiber& f) {
    claim_fault(kBarrier);
    describe(g_report->fault, f, &w.fibers[w.first]);
    strcpy(g_report->fault.text, "sites");
    end_run();
}

// A thread comes to a barrier; true if it must wait there for others.
static inline bool arrive(Worker& w, Fiber& f, uint32_t site, int predicate, int what) {
    f.site = site, f.wait = what;
    if (w.arrived == 0) w.site = site, w.site_calls = f.call, w.first = f.linear, w.votes = 0;
    else if (w.site != site || w.site_calls != f.call) wrong_barrier(w, f);
    w.votes += predicate;
    if (++w.arrived < w.n) {
        w.state[f.linear] = kAtBarrier;
        return true;
    }
    w.arrived = 0;
    w.vote_result = w.votes;
    memset(w.state, kReady, w.n);
    ++w.barriers;
    trace_barrier(w);
    return false;
}

}  // namespace host

using namespace host;

#if defined(LABS_ASM)
static __attribute__((noinline)) Turn turn_slowly(uint32_t site, int predicate, int what, void* stack) {
    Worker& w = *t_worker;
    Fiber& f = *self();
    bool waits = arrive(w, f, site, predicate, what);
    return turn_to(w, f, waits ? next_thread(w) : f, stack);
}

// The common case, without a call: neither the first to come nor the last, and the next thread of
// the block can go on.
extern "C" __attribute__((used)) Turn labs_turn_sync(uint32_t site, int predicate, int what,
                                                     void* stack) {
    Worker& w = *t_worker;
    Fiber& f = *self();
    uint32_t i = f.linear;
    if (w.arrived == 0 || w.arrived + 1 == w.n || w.state[i + 1] != kReady || w.started < w.n ||
        w.site != site || w.site_calls != f.call)
        return turn_slowly(site, predicate, what, stack);
    f.site = site, f.wait = what;
    w.votes += predicate;
    ++w.arrived;
    w.state[i] = kAtBarrier;
    return turn_to(w, f, w.fibers[i + 1], stack);
}
#else
extern "C" int labs_sync_vote(uint32_t site, int predicate, int what) {
    Worker& w = *t_worker;
    Fiber& f = *self();
    if (arrive(w, f, site, predicate, what)) yield(w);
    return (int)result(w, f);
}

extern "C" void labs_sync(uint32_t site) { labs_sync_vote(site, 0, 0); }
#endif

extern "C" void labs_spin(void) {
    if (labs_now) yield(*t_worker);
}

extern "C" void* labs_dynamic_shared(void) {
    if (!g_request->dynamic_shared)
        fail(kStopped,
             "the kernel uses extern __shared__ memory, and the launch gives none: "
             "k[grid, block, bytes](...)");
    return t_worker->arena;
}

extern "C" void* labs_shared(const void* tag, size_t size, size_t align, const char* name) {
    Worker& w = *t_worker;
    for (int i = 0; i < w.n_variables; ++i)
        if (w.variables[i].tag == tag) return w.arena + w.variables[i].offset;
    uint32_t at = (w.used + (uint32_t)align - 1) / (uint32_t)align * (uint32_t)align;
    uint64_t total = w.most_shared + size, fixed = total - g_request->dynamic_shared;
    Fault& f = g_report->fault;
    if (fixed > g_request->static_limit || total > g_request->shared_limit ||
        at + size > (size_t)kArena || w.n_variables == kMaxNames) {
        claim_fault(kSharedLimit);
        f.offset = (int64_t)(fixed > g_request->static_limit ? fixed : total);
        f.size = (uint32_t)(fixed > g_request->static_limit ? g_request->static_limit
                                                            : g_request->shared_limit);
        f.write = fixed > g_request->static_limit;
        strncpy(f.text, name, sizeof f.text - 1);
        end_run();
    }
    w.variables[w.n_variables++] = {tag, name, at, (uint32_t)size};
    if (g_request->trace) {  // at once: a launch that is stopped has told them, too
        SharedName& told = g_report->names[g_report->n_names++];
        strncpy(told.name, name, sizeof told.name - 1);
        told.offset = at, told.size = size;
    }
    uint32_t end = at + (uint32_t)size;
    for (uint32_t i = w.used / 8; i < (end + kZone) / 8; ++i) ((uint64_t*)w.arena)[i] = lab::kPoison;
    w.used = (end + kZone + 15) / 16 * 16;
    w.most_shared = total;
    return w.arena + at;
}

// How many values a format takes; CUDA's printf knows no %n, which would store where nobody counts.
static int values_of(const char* format) {
    int n = 0;
    for (const char* at = format; *at; ++at) {
        if (*at != '%') continue;
        if (at[1] == '%') {
            ++at;
            continue;
        }
        at += strspn(at + 1, "-+ #0'I*$.123456789hlLqjzt") + 1;
        if (*at == 'n') host::fail(kStopped, "printf knows no %n on a GPU");
        if (!*at) break;
        ++n;
    }
    return n;
}

extern "C" int labs_printf(const char* format, ...) {
    static std::atomic_flag busy = ATOMIC_FLAG_INIT;
    char line[1024];
    int values = values_of(format);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n > (int)sizeof line - 1) n = sizeof line - 1;
    while (busy.test_and_set(std::memory_order_acquire)) {
    }
    uint32_t at = g_report->text_length;
    if (n > 0 && at + n < (uint32_t)kMaxText) {
        memcpy(g_report->text + at, line, n);
        g_report->text_length = at + n;
    }
    busy.clear(std::memory_order_release);
    return values;
}
