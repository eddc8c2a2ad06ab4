// The copies of cp.async that are under way.
#pragma once
#include <vector>

#include "block.h"

namespace host {

struct Copy {
    void* to;
    const void* from;
    const void* origin;  // where in the kernel it was begun
    uint32_t size, thread, group, site;
};

// What the block's threads have begun and not waited for; filled in the traced mode only.
const std::vector<Copy>& open_copies();

}  // namespace host
