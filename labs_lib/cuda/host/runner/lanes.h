// What the lanes of one warp touch in one instruction: 32-byte sectors and shared-memory banks.
#pragma once
#include <stdint.h>

#include "block.h"

namespace host {

void lanes_touch(uint64_t key, uint32_t site, bool shared, uint64_t offset, unsigned size);
void lanes_flush();
bool lanes_block_start();  // false once the budget is spent: later blocks aren't grouped

}  // namespace host
