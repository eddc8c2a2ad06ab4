// Copies that arrive late: each thread's own, in groups, done when their group is waited for.
#include <string.h>

#include <vector>

#include "async.h"
#include "shadow.h"

namespace host {

struct Copies {
    std::vector<Copy> open;
    uint32_t groups = 0;  // closed so far
};

static thread_local std::vector<Copies> t_copies;  // by thread of the block
static std::vector<Copy> g_open;                   // of the block; traced mode only

const std::vector<Copy>& open_copies() { return g_open; }

void async_block_start(Worker& w) {
    if (t_copies.empty()) return;
    t_copies.assign(w.n, Copies());
    g_open.clear();
}

static void finish(const Copy& copy) {
    for (size_t i = 0; i < g_open.size(); ++i)
        if (g_open[i].to == copy.to && g_open[i].thread == copy.thread) {
            g_open.erase(g_open.begin() + i);
            break;
        }
    if (tracing()) labs_touch(copy.to, copy.size, lab::kWrite, copy.origin);
    memcpy(copy.to, copy.from, copy.size);
}

}  // namespace host

using namespace host;

extern "C" void labs_copy_async(void* to, const void* from, unsigned size, const void* origin) {
    Worker& w = *t_worker;
    Fiber& f = *self();
    if (t_copies.size() != (size_t)w.n) t_copies.assign(w.n, Copies());
    if (((uintptr_t)to | (uintptr_t)from) % size)
        fail(kStopped, "copy_async needs two addresses that are multiples of its size");
    if ((uintptr_t)to - (uintptr_t)w.arena >= sizeof w.arena)
        fail(kStopped, "copy_async copies to shared memory, and to nothing else");
    Copies& mine = t_copies[f.linear];
    Copy copy = {to, from, origin, size, f.linear, mine.groups, 0};
    if (tracing()) copy.site = site_of((uint64_t)origin, kShared, lab::kWrite);
    mine.open.push_back(copy);
    if (tracing()) g_open.push_back(copy);
}

extern "C" void labs_commit_group(void) {
    uint32_t at = self()->linear;
    if (at < t_copies.size()) ++t_copies[at].groups;
}

extern "C" void labs_wait_group(unsigned still) {
    uint32_t at = self()->linear;
    if (at >= t_copies.size()) return;
    Copies& mine = t_copies[at];
    std::vector<Copy> later;
    for (const Copy& copy : mine.open) {
        if (copy.group + still < mine.groups) finish(copy);
        else later.push_back(copy);
    }
    mine.open.swap(later);
}
