#include "lanes.h"

#include <string.h>

#include <algorithm>
#include <vector>

#include "report.h"

namespace host {

struct Group {
    uint64_t key;
    uint32_t site, lanes;
    uint16_t size;
    bool shared;
    uint64_t first;
    int32_t offset[32];  // from `first`
};

struct WarpGroups {
    std::vector<Group> groups;
    std::vector<uint32_t> table;  // index + 1 into groups
    uint32_t next[32] = {0};      // of each lane: lanes mostly follow the first one, in its order

    void grow() {
        table.assign(table.empty() ? 256 : table.size() * 2, 0);
        for (uint32_t i = 0; i < groups.size(); ++i) put(groups[i].key, i + 1);
    }
    void put(uint64_t key, uint32_t value) {
        size_t at = key & (table.size() - 1);
        while (table[at]) at = (at + 1) & (table.size() - 1);
        table[at] = value;
    }
    Group& find(uint64_t key) {
        uint32_t& soon = next[self()->linear & 31];
        if (soon < groups.size() && groups[soon].key == key) return groups[soon++];
        soon = look_up(key) + 1;
        return groups[soon - 1];
    }
    uint32_t look_up(uint64_t key) {
        if (groups.size() * 2 >= table.size()) grow();
        size_t at = key & (table.size() - 1);
        for (; table[at]; at = (at + 1) & (table.size() - 1))
            if (groups[table[at] - 1].key == key) return table[at] - 1;
        groups.push_back({});
        table[at] = (uint32_t)groups.size();
        groups.back().key = key;
        return table[at] - 1;
    }
};

static WarpGroups g_warps[32];
static uint64_t g_spent = 0;

static uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ull;
    return x ^ (x >> 29);
}

void lanes_touch(uint64_t key, uint32_t site, bool shared, uint64_t offset, unsigned size) {
    Fiber& f = *self();
    uint32_t bit = 1u << (f.linear & 31);
    WarpGroups& warp = g_warps[f.linear / 32];
    // One call of ours may read and write: lanes that do only one of it must not be mixed up.
    key = mixed(key + (uint64_t)site * 0xbf58476d1ce4e5b9ull);
    Group* g = &warp.find(key);
    // The same place again in the same turn of its loops (a goto, a range loop): the next group.
    for (int i = 0; (g->lanes & bit) && i < 64; ++i) g = &warp.find(key = mixed(key + 1));
    if (g->lanes & bit) return;
    if (!g->lanes) g->site = site, g->size = (uint16_t)size, g->shared = shared, g->first = offset;
    g->lanes |= bit;
    g->offset[f.linear & 31] = (int32_t)(offset - g->first);
    ++g_spent;
}

static int distinct(int64_t* items, int n) {
    int found = 0;
    for (int i = 0; i < n; ++i) {
        bool known = false;
        for (int j = found - 1; j >= 0 && !known; --j) known = items[j] == items[i];
        if (!known) items[found++] = items[i];
    }
    return found;
}

static int sectors(const Group& g) {
    int64_t list[32 * 9];
    int n = 0;
    for (int i = 0; i < 32; ++i) {
        if (!(g.lanes >> i & 1)) continue;
        int64_t at = (int64_t)g.first + g.offset[i];
        int pieces = 0;
        for (int64_t s = at >> 5; s <= (at + g.size - 1) >> 5 && pieces < 9; ++s, ++pieces)
            list[n++] = s;
    }
    return distinct(list, n);
}

// Whether no two of the words lie in one bank.
static bool conflict_free(const int64_t* words, int n) {
    int64_t held[32];
    uint32_t used = 0;
    for (int i = 0; i < n; ++i) {
        int bank = words[i] & 31;
        if ((used >> bank & 1) && held[bank] != words[i]) return false;
        used |= 1u << bank;
        held[bank] = words[i];
    }
    return true;
}

// Passes through the 32 banks of 4 bytes; wide accesses go by half or quarter warps.
static int wavefronts(const Group& g) {
    int lanes_a_pass = g.size <= 4 ? 32 : g.size <= 8 ? 16 : 8, total = 0;
    for (int from = 0; from < 32; from += lanes_a_pass) {
        int64_t words[32 * 4];
        int n = 0, worst = 0, banks[32] = {0};
        for (int i = from; i < from + lanes_a_pass; ++i) {
            if (!(g.lanes >> i & 1)) continue;
            int64_t at = (int64_t)g.first + g.offset[i];
            for (int64_t w = at >> 2; w <= (at + g.size - 1) >> 2 && n < 128; ++w) words[n++] = w;
        }
        if (conflict_free(words, n)) {
            total += n > 0;
            continue;
        }
        n = distinct(words, n);
        for (int i = 0; i < n; ++i)
            if (++banks[words[i] & 31] > worst) worst = banks[words[i] & 31];
        total += worst;
    }
    return total;
}

void lanes_flush() {
    for (WarpGroups& warp : g_warps) {
        for (const Group& g : warp.groups) {
            Site& s = g_report->sites[g.site];
            ++s.requests;
            if (g.shared) {
                s.wavefronts += wavefronts(g);
                continue;
            }
            uint64_t touched = sectors(g);
            s.sectors += touched;
            s.moved += std::max<uint64_t>(32 * touched, __builtin_popcount(g.lanes) * g.size);
        }
        if (warp.groups.empty()) continue;
        warp.groups.clear();
        memset(warp.next, 0, sizeof warp.next);
        memset(warp.table.data(), 0, warp.table.size() * sizeof(uint32_t));
    }
}

bool lanes_block_start() { return g_spent < g_request->group_budget; }

}  // namespace host
