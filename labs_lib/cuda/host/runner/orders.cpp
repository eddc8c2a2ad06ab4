#include "orders.h"

#include <math.h>
#include <string.h>

#include "../half.h"

namespace host {

static char* start_of(const Region& r) { return g_memory + r.address + r.start; }

Memory remember(Span globals) {
    Memory m;
    const Request& r = *g_request;
    for (uint32_t i = 0; i < r.n_regions; ++i) {
        m.regions.emplace_back();
        if (!r.regions[i].writable) continue;
        const char* p = start_of(r.regions[i]);
        m.regions.back().assign(p, p + r.regions[i].size);
    }
    if (globals.size) m.globals.assign((char*)globals.low, (char*)globals.low + globals.size);
    return m;
}

void restore(const Memory& m, Span globals) {
    const Request& r = *g_request;
    for (uint32_t i = 0; i < r.n_regions; ++i)
        if (r.regions[i].writable) memcpy(start_of(r.regions[i]), m.regions[i].data(), r.regions[i].size);
    if (globals.size) memcpy((void*)globals.low, m.globals.data(), globals.size);
}

static double value(uint32_t kind, const char* p) {
    float f;
    double d;
    uint16_t h;
    if (kind == kDouble) return memcpy(&d, p, 8), d;
    if (kind == kFloat) return memcpy(&f, p, 4), f;
    memcpy(&h, p, 2);
    return kind == kHalf ? lab::from_half(h) : lab::from_bf16(h);
}

// Sums of atomics come in another order and round differently: that is no dependence to report.
static bool differs(uint32_t kind, const char* a, const char* b, size_t size) {
    if (!memcmp(a, b, size)) return false;
    if (kind == kBytes) return true;
    double x = value(kind, a), y = value(kind, b);
    if (isnan(x) || isnan(y)) return isnan(x) != isnan(y);
    double allowed = kind == kDouble ? 1e-9 : kind == kFloat ? 1e-4 : 2e-2;
    return !(fabs(x - y) <= allowed * (1e-2 + fmax(fabs(x), fabs(y))));
}

void compare(const Memory& first, int order) {
    const Request& r = *g_request;
    for (uint32_t i = 0; i < r.n_regions; ++i) {
        const Region& region = r.regions[i];
        if (!region.writable) continue;
        size_t step = region.kind == kDouble ? 8 : region.kind == kFloat ? 4 : region.kind ? 2 : 1;
        for (size_t at = 0; at + step <= region.size; at += step) {
            if (!differs(region.kind, first.regions[i].data() + at, start_of(region) + at, step)) continue;
            if (g_report->n_findings == (uint32_t)kMaxFindings) return;
            Finding& f = g_report->findings[g_report->n_findings++];
            f = {kOrder, (int32_t)i, 0, 0, (int64_t)at, (uint32_t)step, 1, (uint32_t)order, 0, {}, {}};
            return;
        }
    }
}

uint64_t block_at(int order, uint64_t i, uint64_t n) {
    if (order == 1) return n - 1 - i;
    if (order == 2) {
        // Steps of a size that shares no factor with n visit each block once.
        uint64_t step = n * 5 / 8 + 1;
        for (;; ++step) {
            uint64_t a = n, b = step;
            while (b) {
                uint64_t rest = a % b;
                a = b, b = rest;
            }
            if (a == 1) break;
        }
        return (i % n * (step % n) + n / 3) % n;
    }
    return i;
}

}  // namespace host
