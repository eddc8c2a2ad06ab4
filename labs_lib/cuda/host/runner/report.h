// What the notebook asks for and what it gets back: plain structs in one shared file.
// layout.py describes the same structs.
#pragma once
#include <stdint.h>

namespace host {

constexpr int kMaxArgs = 64, kMaxRegions = 32, kShared = kMaxRegions, kMaxFindings = 64;
constexpr int kMaxSites = 2048, kMaxText = 65536, kMaxNames = 64, kMaxEvents = 65536,
              kMaxWatched = 8;

struct Arg {
    uint32_t pointer, region;
    uint64_t value;  // a scalar's bits, or a pointer's offset into its region
};

struct Region {
    uint64_t file, address, start, size, span;  // offsets in the file and in the address range
    uint32_t writable, kind;                    // kind: see Kind
    uint64_t seen;       // its first cell among all
    uint32_t unit, bin;  // 2^unit bytes are an element, 2^bin elements a cell
    uint64_t phase;      // bytes from a sector's start to the first element, on a GPU
};

enum Kind : uint32_t { kBytes, kFloat, kHalf, kBfloat, kDouble };

struct Request {
    uint32_t trace, workers, n_args, n_regions;
    uint32_t rounds;  // how often a benchmark runs the grid in the fast mode; 0 is 1
    uint32_t grid[3], block[3];
    uint64_t milliseconds, dynamic_shared, static_limit, shared_limit, reserve, group_budget;
    uint64_t seen_file, seen_size;       // where the cells are in the file, in bytes
    uint32_t n_watched, most_events;     // events of each watched block
    uint64_t watched[kMaxWatched];       // blocks, x fastest
    Arg args[kMaxArgs];
    Region regions[kMaxRegions];
};

struct Place {
    uint32_t thread[3], block[3];
};

enum FaultKind : uint32_t {
    kNone, kTimeout, kSegv, kStackOverflow, kDivision, kIllegal, kStopped, kBarrier, kWarpBarrier,
    kSharedLimit, kOutOfBounds, kMissed, kMask, kStart, kMisaligned, kIndex
};

struct Fault {
    uint32_t kind;
    int32_t region;
    uint64_t pc;
    int64_t offset;  // bytes from the start of the region
    uint32_t size, write, line, other_line;
    Place at, other;
    char text[160];
};

enum FindingKind : uint32_t {
    kRace = 1, kCrossBlock, kUninitialised, kAbsentLanes, kOrder
};

// 1 the first wrote, 2 the second wrote, 4 the first is a copy that has not arrived.
enum How : uint32_t { kWrote = 1, kWroteToo = 2, kLate = 4 };

struct Finding {
    uint32_t kind;
    int32_t region;
    uint64_t pc_a, pc_b;
    int64_t offset;
    uint32_t size, count, how, same;  // how: see How; same: equal values
    Place a, b;
};

struct Site {
    uint64_t pc;
    int32_t region;
    uint32_t how;
    uint64_t count, bytes, requests, sectors, wavefronts;
    uint64_t moved;  // request by request: 32 bytes for each sector, and at least what was asked for
};

struct Total {
    uint64_t read, written, atomic;
};

struct SharedName {
    char name[48];
    uint64_t offset, size;
};

// One access of a watched block, in each thread's own order.
struct Event {
    uint32_t site, offset, size, turn;  // turn: equal for lanes that do the same at once
    uint16_t thread, step;              // step: barriers passed in the block
    uint32_t watched;
};

// What became of one or more elements. `block` (from 1) and `thread` wrote last, or, where none
// wrote, read first; `many`: 1 other threads of a block did so too, 2 other blocks. `framed` has
// bits for the watched blocks: which read, which wrote, and the same for their first warps.
struct Seen {
    uint32_t reads, writes, block;
    uint16_t thread, many;
    uint32_t framed;
};

struct Report {
    uint32_t done, n_findings, n_sites, text_length, n_names, grouped_blocks, n_events, cut;
    uint64_t base, barriers, shared_used;
    uint64_t nanoseconds;  // of the blocks in the fast mode: the middle of all rounds but the first
    Fault fault;
    Total totals[kMaxRegions + 1];
    Finding findings[kMaxFindings];
    Site sites[kMaxSites];
    SharedName names[kMaxNames];
    Event events[kMaxEvents];
    char text[kMaxText];
};

constexpr uint64_t kReportAt = 16384;

}  // namespace host
