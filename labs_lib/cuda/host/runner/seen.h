// What a picture of a trace needs: how often each element was touched and by whom, and the
// accesses of the blocks that are watched, one by one.
#pragma once
#include <stddef.h>

#include "block.h"

namespace host {

void seen_setup(int fd);  // maps the cells, once the request is there
void seen_block_start(uint3 block);
// One access of the current thread; `turn` is equal for lanes that do the same at the same time.
void seen_event(Fiber& f, uint32_t site, uint64_t offset, unsigned size, uint64_t turn);
void seen_cells(Fiber& f, int region, uint64_t offset, unsigned size, int flags);

}  // namespace host
