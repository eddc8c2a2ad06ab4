// One block at a time on each worker: its threads are fibers, a barrier is a switch.
#pragma once
#include <atomic>

#include "../abi.h"
#include "faults.h"
#include "fiber.h"

namespace host {

constexpr int kMaxThreads = 1024, kArena = 1 << 18, kZone = 64;

enum State : uint8_t { kUnstarted, kReady, kAtBarrier, kAtWarp, kEnded };

// What a barrier touches comes first: two cache lines a thread.
struct alignas(64) Fiber : lab::Thread {
    Context context;
    uint64_t call;  // the chain of calls, folded into one number; 0 where nobody counts calls
    uint64_t brought;
    const uint64_t* snapshot;
    uint32_t site, mask;
    int order;
    char* stack;
    // Trace only: the calls around; and what this lane knows of its warp.
    uint64_t calls[64];
    int depth;
    uint16_t clock[32];
    uint32_t fenced;
    bool has_fenced;
};

struct Variable {
    const void* tag;
    const char* name;
    uint32_t offset, size;
};

struct Worker {
    Fiber* fibers;
    char* stacks;
    int stacks_ready = 0;
    Context home;
    uint8_t state[kMaxThreads];
    int n = 0, started = 0, ended = 0, arrived = 0, at_warp = 0;
    uint32_t site = 0;
    uint64_t site_calls = 0;
    int first = 0;
    int votes = 0, vote_result = 0;
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
void trace_absent(Worker& w, Fiber& f, unsigned lanes);
bool tracing();
extern uint64_t g_last_pc;  // of the last access that was watched

void fiber_main();
void yield(Worker& w);
void run_block(Worker& w, uint3 index);
void release_warp(Worker& w, int warp);
Worker* make_worker();

}  // namespace host
