// What -fsanitize=bounds calls when an index lies outside of an array whose length is in its type:
// arrays of a thread's own, which no access of the trace shows, and `__shared__` ones.
#include <string.h>

#include "faults.h"

namespace host {

// As compilers lay it out; the file's name, the line and the column come first.
struct ArrayType {
    uint16_t kind, info;  // of an integer, info has a bit for its sign, then the logarithm of its bits
    char name[1];
};

struct IndexSite {
    const char* file;
    uint32_t line, column;
    const ArrayType *array, *index;
};

static int64_t value_of(const ArrayType& type, uintptr_t bits) {
    unsigned width = 1u << (type.info >> 1);
    if (type.kind != 0 || !(type.info & 1) || width >= 64) return (int64_t)bits;
    return (int64_t)(bits << (64 - width)) >> (64 - width);
}

static bool in_the_cell(const char* file) {
    const char* dot = file ? strrchr(file, '.') : nullptr;
    return dot && (!strcmp(dot, ".cu") || !strcmp(dot, ".cpp"));
}

}  // namespace host

extern "C" void __ubsan_handle_out_of_bounds(void* site, uintptr_t index) {
    using namespace host;
    const IndexSite& at = *(const IndexSite*)site;
    claim_fault(kIndex);
    Fault& f = g_report->fault;
    f.pc = (uint64_t)__builtin_return_address(0) - g_report->base;
    f.size = 2;  // the address is that of what follows the call
    f.offset = value_of(*at.index, index);
    if (in_the_cell(at.file)) f.line = at.line, f.other_line = at.column;
    strncpy(f.text, at.array->name, sizeof f.text - 1);
    end_run();
}
