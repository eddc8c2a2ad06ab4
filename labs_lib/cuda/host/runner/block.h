// One block at a time on each worker: its threads are fibers, a barrier is a switch.
#pragma once
#include <atomic>

#include "../abi.h"
#include "faults.h"
#include "fiber.h"

namespace host {

constexpr int kMaxThreads = 1024, kArena = 1 << 18, kZone = 64;

enum State : uint8_t { kUnstarted, kReady, kAtBarrier, kAtWarp, kEnded };

// How a thread waits, which says what its call brings back.
enum Wait : uint32_t { kCount, kAll, kAny, kExchange };

// Trace only: the calls around a thread, and what this lane knows of its warp.
struct Past {
    uint64_t calls[64];
    int depth;
    uint16_t clock[32];
    uint32_t fenced;
    bool has_fenced;
};

// What a barrier touches comes first: one cache line a thread, and its stack.
struct alignas(64) Fiber : lab::Thread {
    uint32_t site, wait;
    Context context;
    uint64_t call;  // the chain of calls, folded into one number; 0 where nobody counts calls
    // What a warp's operation touches.
    uint32_t mask;
    int order;
    uint64_t brought;
    const uint64_t* snapshot;
    char* stack;
    Past* past;
};

struct Variable {
    const void* tag;
    const char* name;
    uint32_t offset, size;
};

struct Worker {
    Fiber* fibers;
    Past* pasts;
    char* stacks;
    int stacks_ready = 0;
    Context home;
    lab::Shape shape;
    uint8_t state[kMaxThreads + 1];  // one more, which is never ready
    int n = 0, started = 0, ended = 0, arrived = 0, at_warp = 0;
    uint32_t site = 0;
    uint64_t site_calls = 0;
    int first = 0;
    int votes = 0, vote_result = 0;  // the result stays until all have arrived again
    uint64_t snapshots[32][64][32], alone[32];
    uint8_t turn[32];
    alignas(128) char arena[kArena + kZone];
    Variable variables[kMaxNames];
    int n_variables = 0;
    uint32_t used = 0, dynamic = 0;
    uint64_t barriers = 0, most_shared = 0;
};

extern void (*g_entry)(void**);
extern void** g_args;
extern Request* g_request;
extern thread_local Worker* t_worker;

inline Fiber* self() { return static_cast<Fiber*>(labs_now); }

// Hooks of the traced mode; they do nothing in the fast mode.
void trace_barrier(Worker& w);
void trace_warp(Worker& w, int first, unsigned lanes, int order);
void trace_block_start(Worker& w);
void trace_block_end(Worker& w);
void async_block_start(Worker& w);
void trace_absent(Worker& w, Fiber& f, unsigned lanes);
bool tracing();
extern uint64_t g_last_pc;  // of the last access that was watched

void fiber_main();
// The thread that goes on when the present one waits; one that hasn't begun comes first.
Fiber& next_thread(Worker& w);
void yield(Worker& w);
// What the call that a thread waits in brings back to it.
inline uint64_t result(const Worker& w, const Fiber& f) {
    if (f.wait == kCount) return w.vote_result;
    if (f.wait == kExchange) return (uint64_t)f.snapshot;
    return f.wait == kAll ? w.vote_result == w.n : w.vote_result > 0;
}

#if defined(LABS_ASM)
struct Turn {
    void* stack;
    uint64_t value;
};

// `from` has its registers on `stack` and waits; `to` goes on.
inline Turn turn_to(Worker& w, Fiber& from, Fiber& to, void* stack) {
    from.context = stack;
    labs_now = &to;
    // Those that come soon have their stacks where no prefetcher of the processor looks.
    uint32_t soon = to.linear + 2;
    if (soon + 2 < (uint32_t)w.n) {
        const char* top = (const char*)w.fibers[soon].context;
        for (int i = 0; i < 3; ++i) __builtin_prefetch(top + 64 * i, 1);
        __builtin_prefetch(&w.fibers[soon + 2], 1);
    }
    return {to.context, result(w, to)};
}
#endif

void run_block(Worker& w, uint3 index);
void release_warp(Worker& w, int warp);
Worker* make_worker();
uint3 block_index(uint64_t linear);
uint64_t block_count();
void run_fast();

}  // namespace host
