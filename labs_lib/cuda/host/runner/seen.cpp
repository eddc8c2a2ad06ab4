#include "seen.h"

#include <sys/mman.h>

#include "report.h"

namespace host {

static Seen* g_cells = nullptr;
static uint32_t g_block = 0;
static int g_watched = -1;  // which of the watched blocks this is
static uint32_t g_noted[kMaxWatched];

void seen_setup(int fd) {
    const Request& r = *g_request;
    if (!r.seen_size) return;
    void* p = mmap(nullptr, r.seen_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, r.seen_file);
    if (p != MAP_FAILED) g_cells = (Seen*)p;
}

void seen_block_start(uint3 b) {
    const Request& r = *g_request;
    uint64_t linear = ((uint64_t)b.z * r.grid[1] + b.y) * r.grid[0] + b.x;
    g_block = (uint32_t)linear + 1;
    g_watched = -1;
    for (uint32_t i = 0; i < r.n_watched; ++i)
        if (r.watched[i] == linear) g_watched = (int)i;
}

void seen_event(Fiber& f, uint32_t site, uint64_t offset, unsigned size, uint64_t turn) {
    if (g_watched < 0) return;
    Report& r = *g_report;
    if (g_noted[g_watched] == g_request->most_events || r.n_events == (uint32_t)kMaxEvents) {
        r.cut |= 1u << g_watched;
        return;
    }
    ++g_noted[g_watched];
    uint16_t step = (uint16_t)(g_time.epoch - g_time.block_start - 1);
    turn = (turn ^ turn >> 31) * 0x9e3779b97f4a7c15ull >> 32;
    r.events[r.n_events++] = {site,          (uint32_t)offset,   size, (uint32_t)turn,
                              (uint16_t)f.linear, step, (uint32_t)g_watched};
}

void seen_cells(Fiber& f, int index, uint64_t offset, unsigned size, int flags) {
    const Region& region = g_request->regions[index];
    if (!g_cells || !size) return;
    bool write = flags & (lab::kWrite | lab::kAtomic);
    uint16_t thread = (uint16_t)f.linear;
    uint32_t frame = 0;
    if (g_watched >= 0) frame = (f.linear < 32 ? 0x10001u : 1u) << g_watched << (write ? 8 : 0);
    for (uint64_t e = offset >> region.unit; e <= (offset + size - 1) >> region.unit; ++e) {
        Seen& c = g_cells[region.seen + (e >> region.bin)];
        if (write ? !c.writes : !c.block) c = {c.reads, c.writes, g_block, thread, 0, c.framed};
        else if (write || !c.writes) {
            if (c.block != g_block) c.many |= 2;
            else if (c.thread != thread) c.many |= 1;
            if (write) c.block = g_block, c.thread = thread;
        }
        ++(write ? c.writes : c.reads);
        c.framed |= frame;
    }
}

}  // namespace host
