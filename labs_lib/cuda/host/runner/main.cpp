// Runs one launch: `runner LIBRARY ENTRY FD`, with the request and the tensors in the file FD.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#if defined(__linux__)
#include <link.h>
#include <signal.h>
#include <sys/prctl.h>
#endif

#include "orders.h"
#include "seen.h"

namespace host {

Report* g_report = nullptr;
Request* g_request = nullptr;
char* g_memory = nullptr;
void (*g_entry)(void**) = nullptr;
void** g_args = nullptr;

static void map_tensors(int fd) {
    Request& r = *g_request;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
    flags |= MAP_NORESERVE;
#endif
    g_memory = (char*)mmap(nullptr, r.reserve, PROT_NONE, flags, -1, 0);
    if (g_memory == MAP_FAILED) fail(kStart, "no room in the address space for the tensors");
    for (uint32_t i = 0; i < r.n_regions; ++i) {
        Region& region = r.regions[i];
        char* at = g_memory + region.address;
        if (mmap(at, region.span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, region.file) ==
            MAP_FAILED)
            fail(kStart, "the tensors could not be mapped");
        for (uint64_t j = 0; j < region.start; ++j) at[j] = (char)0xfb;
        for (uint64_t j = region.start + region.size; j < region.span; ++j) at[j] = (char)0xfb;
    }
}

// Writes that missed a tensor by less than the room around it leave a mark there.
static void check_guards() {
    Request& r = *g_request;
    for (uint32_t i = 0; i < r.n_regions; ++i) {
        Region& region = r.regions[i];
        const char* at = g_memory + region.address;
        for (uint64_t j = 0; j < region.span; ++j) {
            if (j == region.start) j += region.size;
            if (j >= region.span || at[j] == (char)0xfb) continue;
            claim_fault(kMissed);
            g_report->fault.region = i;
            g_report->fault.offset = (int64_t)j - (int64_t)region.start;
            g_report->fault.write = 1;
            end_run();
        }
    }
}

static std::vector<uint64_t> g_values;
static std::vector<void*> g_pointers;

static void gather_arguments() {
    Request& r = *g_request;
    g_values.resize(r.n_args + 1);
    for (uint32_t i = 0; i < r.n_args; ++i) {
        Arg& a = r.args[i];
        g_values[i] = a.value;
        if (a.pointer == 2) g_values[i] = 0;  // an empty tensor: a null pointer
        if (a.pointer == 1) {
            Region& region = r.regions[a.region];
            g_values[i] = (uint64_t)(uintptr_t)(g_memory + region.address + region.start) + a.value;
        }
    }
    for (uint32_t i = 0; i < r.n_args; ++i) g_pointers.push_back(&g_values[i]);
    g_args = g_pointers.data();
}

#if defined(__linux__)
static int find_variables(dl_phdr_info* info, size_t, void* out) {
    if ((uint64_t)info->dlpi_addr != g_report->base) return 0;
    uintptr_t sealed = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& h = info->dlpi_phdr[i];
        if (h.p_type == PT_GNU_RELRO) sealed = info->dlpi_addr + h.p_vaddr + h.p_memsz;
    }
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& h = info->dlpi_phdr[i];
        if (h.p_type != PT_LOAD || !(h.p_flags & PF_W)) continue;
        uintptr_t low = info->dlpi_addr + h.p_vaddr, high = low + h.p_memsz;
        sealed = (sealed + 4095) & ~(uintptr_t)4095;
        if (sealed > low && sealed < high) low = sealed;
        if (sealed >= high) continue;
        *(Span*)out = {low, high - low};
    }
    return 1;
}

static int find_library(dl_phdr_info* info, size_t, void* out) {
    if ((uint64_t)info->dlpi_addr != g_report->base) return 0;
    Span& s = *(Span*)out;
    s.low = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& h = info->dlpi_phdr[i];
        if (h.p_type == PT_LOAD && h.p_vaddr + h.p_memsz > s.size) s.size = h.p_vaddr + h.p_memsz;
    }
    return 1;
}
#endif

static void run_order(int order, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) run_block(*t_worker, block_index(block_at(order, i, n)));
}

// Variables are copied to try other orders of blocks.
constexpr uint64_t kMostVariables = 256u << 20;

static void run_traced() {
    use_signal_stack();
    t_worker = make_worker();
    Span variables, whole;
#if defined(__linux__)
    dl_iterate_phdr(find_variables, &variables);
    dl_iterate_phdr(find_library, &whole);
#endif
    if (variables.size > kMostVariables) fail(kStart, "its __device__ variables take over 256 MiB");
    Memory before = remember(variables);
    trace_setup(*t_worker, whole);
    uint64_t n = block_count();
    trace_on(true);
    run_order(0, n);
    trace_on(false);
    Worker& w = *t_worker;
    g_report->barriers = w.barriers;
    g_report->shared_used = w.most_shared;
    if (n < 2) return;
    Memory after = remember(variables);
    uint32_t text = g_report->text_length;
    for (int order = 1; order < 3; ++order) {
        restore(before, variables);
        run_order(order, n);
        compare(after, order);
    }
    restore(after, variables);
    g_report->text_length = text;
}

static int main_(int argc, char** argv) {
    if (argc != 4) return 2;
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    int fd = atoi(argv[3]);
    char* shared = (char*)mmap(nullptr, kReportAt + sizeof(Report), PROT_READ | PROT_WRITE,
                               MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) return 2;
    g_request = (Request*)shared;
    g_report = (Report*)(shared + kReportAt);
    install_handlers();
    use_signal_stack();
    start_clock(g_request->milliseconds);  // what initialises a library runs on it too
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(kStart, dlerror());
    g_entry = (void (*)(void**))dlsym(library, argv[2]);
    if (!g_entry) fail(kStart, dlerror());
    Dl_info info;
    if (dladdr((void*)g_entry, &info)) g_report->base = (uint64_t)(uintptr_t)info.dli_fbase;
    map_tensors(fd);
    gather_arguments();
    if (g_request->trace) seen_setup(fd);
    if (g_request->trace) run_traced();
    else run_fast();
    check_guards();
    g_report->done = 1;
    return 0;
}

}  // namespace host

int main(int argc, char** argv) {
    int rc = host::main_(argc, argv);
    _exit(rc);
}
