// What a kernel's library and the runner share: the thread that a kernel runs as, and the calls
// that reach the runner. The runner defines all of these; a library leaves them open.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "touch.h"
#include "vectors.h"

#if defined(LABS_TRACE)
// Our own code must not be counted as the student's; calls keep the student's line as their origin.
#define LABS_FN static inline __attribute__((noinline, no_sanitize("thread"), unused))
#else
#define LABS_FN static inline __attribute__((unused))
#endif
#define LABS_MEMBER __attribute__((no_sanitize("thread")))

// A rendezvous is known by its place in the source: line below, running number above.
#define LABS_SITE ((uint32_t)((__COUNTER__ + 1) << 16 | (__LINE__ & 0xffff)))

namespace lab {

// What the threads of a block have in common.
struct Shape {
    uint3 block;
    dim3 block_dim, grid_dim;
};

struct Thread {
    uint3 thread;
    uint32_t linear;  // place in the block: x fastest, then y, then z
    const Shape* shape;
    uint64_t path;    // iteration of each loop around, folded into one number
    uint32_t atomics; // done so far; now and then one of them lets the others run
};

// What a lane reads from a lane that takes no part: NaN as a float, large as an integer.
constexpr uint64_t kPoison = 0x7fc0dead7fc0deadull;

}  // namespace lab

extern "C" {
extern __thread lab::Thread* labs_now __attribute__((tls_model("initial-exec")));

void labs_sync(uint32_t site);
int labs_sync_vote(uint32_t site, int predicate, int what);
// Waits for every lane of `mask`; returns what each of the 32 lanes brought. `order` also orders memory.
const uint64_t* labs_exchange(unsigned mask, uint64_t value, uint32_t site, int order);
unsigned labs_alive_lanes(void);
void* labs_shared(const void* tag, size_t size, size_t align, const char* name);
void* labs_dynamic_shared(void);
void labs_fence(void);
void labs_spin(void);
int labs_printf(const char* format, ...);
__attribute__((noreturn)) void labs_stop(const char* reason, uint32_t line);
}
