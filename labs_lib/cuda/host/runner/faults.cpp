#include "faults.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>

#include "block.h"

namespace host {

static std::atomic<int> g_claimed{0};

Place place_of(const lab::Thread* t) {
    Place p;
    memset(&p, 0, sizeof p);
    if (!t) return p;
    p.thread[0] = t->thread.x, p.thread[1] = t->thread.y, p.thread[2] = t->thread.z;
    const uint3& block = t->shape->block;
    p.block[0] = block.x, p.block[1] = block.y, p.block[2] = block.z;
    return p;
}

void claim_fault(FaultKind kind) {
    if (g_claimed.exchange(1)) {
        for (;;) pause();
    }
    Fault& f = g_report->fault;
    memset(&f, 0, sizeof f);
    f.region = -1;
    f.at = place_of(labs_now);
    f.kind = kind;
}

void end_run() {
    g_report->done = 2;
    _exit(3);
}

void fail(FaultKind kind, const char* text, uint32_t line) {
    claim_fault(kind);
    Fault& f = g_report->fault;
    strncpy(f.text, text, sizeof f.text - 1);
    f.line = line;
    end_run();
}

int region_near(uintptr_t address, int64_t* offset) {
    int best = -1;
    uint64_t nearest = ~0ull;
    if (!g_memory || address - (uintptr_t)g_memory >= g_request->reserve) return -1;
    for (uint32_t i = 0; i < g_request->n_regions; ++i) {
        const Region& r = g_request->regions[i];
        int64_t at = (int64_t)(address - (uintptr_t)g_memory) - (int64_t)(r.address + r.start);
        uint64_t away = at < 0 ? -at : at >= (int64_t)r.size ? at - r.size : 0;
        if (away < nearest) nearest = away, best = i, *offset = at;
    }
    return best;
}

static uint64_t program_counter(void* context) {
#if defined(__linux__) && defined(__x86_64__)
    return ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__linux__) && defined(__aarch64__)
    return ((ucontext_t*)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static bool in_guard(uintptr_t address) {
    Worker* w = t_worker;
    if (!w || !w->stacks) return false;
    uintptr_t at = address - (uintptr_t)w->stacks;
    return at < kMaxThreads * kStride && at % kStride < kGuard;
}

static void on_signal(int number, siginfo_t* info, void* context) {
    FaultKind kind = kSegv;
    if (number == SIGPROF || number == SIGXCPU) kind = kTimeout;
    if (number == SIGFPE) kind = kDivision;
    if (number == SIGILL || number == SIGABRT || number == SIGTRAP) kind = kIllegal;
    uintptr_t address = (uintptr_t)info->si_addr;
    if (kind == kSegv && in_guard(address)) kind = kStackOverflow;
    claim_fault(kind);
    Fault& f = g_report->fault;
    f.pc = program_counter(context) - g_report->base;
    f.size = 1;  // the address is that of the instruction itself
    if (f.pc >> 32 && g_last_pc) {  // in a hook of ours: the access that called it
        f.pc = g_last_pc - g_report->base;
        f.size = 2;
    }
    if (kind == kSegv) {
        f.region = region_near(address, &f.offset);
        if (f.region < 0) f.offset = (int64_t)address;
#if defined(__linux__) && defined(__x86_64__)
        f.write = ((ucontext_t*)context)->uc_mcontext.gregs[REG_ERR] >> 1 & 1;
#endif
    }
    end_run();
}

void use_signal_stack() {
    stack_t s;
    memset(&s, 0, sizeof s);
    s.ss_size = 64 * 1024;
    s.ss_sp = malloc(s.ss_size);
    sigaltstack(&s, nullptr);
}

void install_handlers() {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = on_signal;
    a.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&a.sa_mask);
    for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF, SIGXCPU})
        sigaction(s, &a, nullptr);
}

void start_clock(uint64_t milliseconds) {
    itimerval t;
    memset(&t, 0, sizeof t);
    t.it_value.tv_sec = milliseconds / 1000;
    t.it_value.tv_usec = milliseconds % 1000 * 1000;
    setitimer(ITIMER_PROF, &t, nullptr);
    rlimit cpu;
    cpu.rlim_cur = cpu.rlim_max = milliseconds / 1000 + 5;
    setrlimit(RLIMIT_CPU, &cpu);
    rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
}

}  // namespace host

extern "C" void labs_stop(const char* reason, uint32_t line) {
    host::fail(host::kStopped, reason, line);
}
