// The first fault ends the run: it is written down with thread and block, and the process ends.
#pragma once
#include <stdint.h>

#include "report.h"

namespace lab {
struct Thread;
}

namespace host {

extern Report* g_report;
extern Request* g_request;
extern char* g_memory;  // where the regions' address range starts

Place place_of(const lab::Thread* t);
// Returns to the one caller that may describe the fault; all others wait here for the end.
void claim_fault(FaultKind kind);
[[noreturn]] void end_run();
[[noreturn]] void fail(FaultKind kind, const char* text, uint32_t line = 0);
// The region whose pages or surroundings hold the address, or -1.
int region_near(uintptr_t address, int64_t* offset);
void install_handlers();
void use_signal_stack();
void start_clock(uint64_t milliseconds);

}  // namespace host
