// Blocks may run in any order: the traced mode tries three and compares what they leave behind.
#pragma once
#include <vector>

#include "trace.h"

namespace host {

struct Memory {
    std::vector<std::vector<char>> regions;
    std::vector<char> globals;
};

Memory remember(Span globals);
void restore(const Memory& m, Span globals);
// Writes down the first element that differs by more than rounding.
void compare(const Memory& first, int order);
uint64_t block_at(int order, uint64_t i, uint64_t n);

}  // namespace host
