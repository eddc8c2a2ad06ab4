#include "shadow.h"

#include <string.h>
#include <sys/mman.h>

#include <map>
#include <unordered_map>
#include <vector>

#include "async.h"

namespace host {

Time g_time;

// Which block an epoch belonged to.
static std::vector<std::pair<uint32_t, uint3>> g_blocks;
// What a block may rely on: for each block that released, the last epoch that it let go.
typedef std::map<uint32_t, uint32_t> Released;  // first epoch of the block -> last epoch released
static Released g_acquired;
static std::unordered_map<uintptr_t, Released> g_words;

struct Pair {
    Finding* finding = nullptr;
    uintptr_t address;
    unsigned size;
    uint64_t before;
} static g_pending;

static Cell* make_cells(size_t n) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
    flags |= MAP_NORESERVE;
#endif
    void* p = mmap(nullptr, n * sizeof(Cell), PROT_READ | PROT_WRITE, flags, -1, 0);
    return p == MAP_FAILED ? nullptr : (Cell*)p;
}

bool make_shadow(Shadow& s, uintptr_t base, size_t size) {
    s.base = base & ~(uintptr_t)3;
    s.size = size;
    s.words = make_cells(size / 4 + 2);
    return s.words != nullptr;
}

static size_t block_of(uint32_t epoch) {
    size_t low = 0, high = g_blocks.size();
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        (g_blocks[middle].first <= epoch ? low : high) = middle;
    }
    return low;
}

void shadow_block_start(uint3 index) {
    settle();
    g_time.block_start = ++g_time.epoch;
    ++g_time.blocks;
    g_blocks.push_back({g_time.epoch, index});
    g_acquired.clear();
}

// An atomic operation takes what others released through this word, and releases what its own
// thread fenced before.
void shadow_atomic(uintptr_t address) {
    Fiber& f = *self();
    auto found = g_words.find(address);
    if (found != g_words.end())
        for (auto& r : found->second) {
            uint32_t& known = g_acquired[r.first];
            if (known < r.second) known = r.second;
        }
    if (!f.past->has_fenced) return;
    Released& word = g_words[address];
    for (auto& r : g_acquired)
        if (word[r.first] < r.second) word[r.first] = r.second;
    word[g_time.block_start] = f.past->fenced;
}

static bool unordered(const Mark& m, const Fiber& f, bool shared) {
    if (!m.epoch) return false;
    if (m.epoch < g_time.block_start) {
        if (shared) return false;
        auto known = g_acquired.find(g_blocks[block_of(m.epoch)].first);
        return known == g_acquired.end() || known->second < m.epoch;
    }
    if (m.thread == f.linear || m.epoch < g_time.epoch) return false;
    if (m.thread / 32 == f.linear / 32) return f.past->clock[m.thread & 31] < m.clock;
    return true;
}

static uint64_t value_at(uintptr_t address, unsigned size) {
    uint64_t v = 0;
    memcpy(&v, (const void*)address, size > 8 ? 8 : size);
    return v;
}

void settle() {
    if (!g_pending.finding) return;
    if (value_at(g_pending.address, g_pending.size) != g_pending.before) g_pending.finding->same = 0;
    g_pending.finding = nullptr;
}

static Place place_of_mark(const Mark& m) {
    Worker& w = *t_worker;
    Place p = place_of(&w.fibers[m.thread < w.n ? m.thread : 0]);
    uint3 block = g_blocks[block_of(m.epoch)].second;
    p.block[0] = block.x, p.block[1] = block.y, p.block[2] = block.z;
    return p;
}

static void report(const Mark& m, uint32_t first, int region, uintptr_t address, uintptr_t base,
                   unsigned size, int flags, uint32_t site) {
    Report& r = *g_report;
    uint64_t a = r.sites[m.site & ~kAtomicBit].pc, b = r.sites[site & ~kAtomicBit].pc;
    uint32_t kind = m.epoch < g_time.block_start ? kCrossBlock : kRace;
    uint32_t how = first | (flags & lab::kWrite ? 2 : 0);
    for (uint32_t i = 0; i < r.n_findings; ++i) {
        Finding& f = r.findings[i];
        if (f.kind != kind || f.pc_a != a || f.pc_b != b || f.how != how) continue;
        ++f.count;
        if (f.same && how == 3) {
            settle();
            g_pending = {&f, address, size, value_at(address, size)};
        }
        return;
    }
    if (r.n_findings == kMaxFindings) return;
    Finding& f = r.findings[r.n_findings++];
    f = {kind, region, a, b, (int64_t)(address - base), size, 1, how, how == 3, {}, {}};
    f.a = place_of_mark(m);
    f.b = place_of(labs_now);
    if (how == 3) {
        settle();
        g_pending = {&f, address, size, value_at(address, size)};
    }
}

static void judge_cell(Cell& c, Shadow& s, int region, uintptr_t address, unsigned size, int flags,
                       uint32_t site) {
    Fiber& f = *self();
    bool atomic = flags & (lab::kAtomic | lab::kVolatile), shared = region == kShared;
    if (atomic) site |= kAtomicBit;
    Mark now = {g_time.epoch, (uint16_t)f.linear, f.past->clock[f.linear & 31], site};
    auto clash = [&](const Mark& m) {
        return unordered(m, f, shared) && !(atomic && (m.site & kAtomicBit));
    };
    if (clash(c.write)) report(c.write, true, region, address, s.base, size, flags, site);
    if (flags & lab::kWrite) {
        if (clash(c.read)) report(c.read, false, region, address, s.base, size, flags, site);
        else if (clash(c.other)) report(c.other, false, region, address, s.base, size, flags, site);
        c.write = now;
        return;
    }
    // Two readers are kept, of different warps where there are such.
    bool old = c.read.epoch < g_time.epoch, mine = c.read.thread == f.linear;
    if (c.read.epoch == 0 || mine || (old && (shared || c.read.epoch >= g_time.block_start))) {
        c.read = now;
    } else if (!(c.other.epoch == g_time.epoch && c.other.thread / 32 != c.read.thread / 32)) {
        c.other = now;
    }
}

// What a copy has not yet brought may neither be read nor written, by nobody.
static void judge_open(Shadow& s, uintptr_t address, unsigned size, int flags, uint32_t site) {
    for (const Copy& copy : open_copies()) {
        uintptr_t to = (uintptr_t)copy.to;
        if (address >= to + copy.size || to >= address + size) continue;
        Mark m = {g_time.epoch, (uint16_t)copy.thread, 0, copy.site};
        report(m, kWrote | kLate, kShared, address, s.base, size, flags, site);
    }
}

void judge(Shadow& s, int region, uintptr_t address, unsigned size, int flags, uint32_t site) {
    uintptr_t at = address - s.base, end = at + size;
    if (region == kShared && !open_copies().empty()) judge_open(s, address, size, flags, site);
    if (region == kShared && !(flags & lab::kWrite)) {
        Cell& c = s.words[at / 4];
        const Mark& w = c.split ? s.bytes[at].write : c.write;
        if (w.epoch < g_time.block_start) {
            Report& r = *g_report;
            uint64_t pc = r.sites[site].pc;
            for (uint32_t i = 0; i < r.n_findings; ++i)
                if (r.findings[i].kind == kUninitialised && r.findings[i].pc_b == pc) {
                    ++r.findings[i].count;
                    return;
                }
            if (r.n_findings < (uint32_t)kMaxFindings) {
                Finding& f = r.findings[r.n_findings++];
                f = {kUninitialised, region, 0, pc, (int64_t)at, size, 1, 0, 0, {}, {}};
                f.b = place_of(labs_now);
            }
            return;
        }
    }
    while (at < end) {
        Cell& c = s.words[at / 4];
        bool whole = at % 4 == 0 && end - at >= 4;
        if (!whole && !c.split) {
            if (!s.bytes && !(s.bytes = make_cells(s.size + 8)))
                fail(kStart, "no memory to keep the trace; use smaller tensors");
            for (int i = 0; i < 4; ++i) {
                s.bytes[at / 4 * 4 + i] = c;
                s.bytes[at / 4 * 4 + i].split = 0;
            }
            c.split = 1;
        }
        if (!c.split) {
            judge_cell(c, s, region, s.base + at, 4, flags, site);
            at += 4;
        } else {
            judge_cell(s.bytes[at], s, region, s.base + at, 1, flags, site);
            at += 1;
        }
    }
}

}  // namespace host
