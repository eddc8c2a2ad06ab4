#pragma once
#include "block.h"

namespace host {

// A library's own variables (`__device__`, `__constant__`).
struct Span {
    uintptr_t low = 0;
    size_t size = 0;
};

void trace_setup(Worker& w, Span globals);
void trace_on(bool on);

}  // namespace host
