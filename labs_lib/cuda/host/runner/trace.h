// What a launch starts and stops of the trace.
#pragma once
#include "block.h"

namespace host {

// A piece of memory: a library's own variables (`__device__`, `__constant__`), or all of it.
struct Span {
    uintptr_t low = 0;
    size_t size = 0;
};

void trace_setup(Worker& w, Span library);
void trace_on(bool on);

}  // namespace host
