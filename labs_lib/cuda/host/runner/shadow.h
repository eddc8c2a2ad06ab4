// For each 4-byte word (each byte, once a smaller access came by): who wrote it last, who read it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "block.h"

namespace host {

struct Mark {
    uint32_t epoch;  // barriers passed since the run began: it only grows, so nothing is cleared
    uint16_t thread, clock;
    uint32_t site;  // index of the place in the source, the top bit for atomics
};

constexpr uint32_t kAtomicBit = 0x80000000u;

struct Cell {
    Mark write, read, other;
    uint32_t split;
};

struct Shadow {
    uintptr_t base = 0;
    size_t size = 0;
    Cell* words = nullptr;
    Cell* bytes = nullptr;
};

bool make_shadow(Shadow& s, uintptr_t base, size_t size);
// Judges one access of the current thread against what came before, and writes it down.
void judge(Shadow& s, int region, uintptr_t address, unsigned size, int flags, uint32_t site);

// The time of the traced run.
struct Time {
    uint32_t epoch = 1, block_start = 1, blocks = 0;
};
extern Time g_time;

void shadow_block_start(uint3 index);
void shadow_atomic(uintptr_t address);
void settle();  // looks whether the last pair of writes wrote the same value

}  // namespace host
