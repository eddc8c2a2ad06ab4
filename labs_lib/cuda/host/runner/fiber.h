// Stacks, and the switch from one to another.
#pragma once
#include <stdint.h>
#include <sys/mman.h>

namespace host {

constexpr size_t kStack = 128 * 1024, kGuard = 16 * 1024, kStride = kStack + kGuard;

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(LABS_UCONTEXT)
#define LABS_ASM 1

extern "C" void labs_switch(void** save, void* load, uint64_t value);

#if defined(__APPLE__)
#define LABS_SYMBOL(name) "_" name
#else
#define LABS_SYMBOL(name) name
#endif
#define LABS_ENTRY(name) ".globl " LABS_SYMBOL(name) "\n" LABS_SYMBOL(name) ":\n"

// A rendezvous leaves by one jump, straight into the kernel of the next thread: what each of
// labs_turn_* returns is that thread's stack pointer and the value that its call brings back. No
// `ret` follows a switch, since the processor would guess each one's target wrong.
#if defined(__x86_64__)
#define LABS_SAVE \
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
#define LABS_LOAD                                                                              \
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"           \
    "  popq %rcx\n  jmpq *%rcx\n"
#define LABS_TURN(name) \
    "  subq $8, %rsp\n  call " LABS_SYMBOL(name) "\n  movq %rax, %rsp\n  movq %rdx, %rax\n"
asm(".text\n"
    LABS_ENTRY("labs_switch") LABS_SAVE
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n  movq %rdx, %rax\n" LABS_LOAD
    LABS_ENTRY("labs_sync") "  xorl %esi, %esi\n  xorl %edx, %edx\n"
    LABS_ENTRY("labs_sync_vote") LABS_SAVE "  movq %rsp, %rcx\n" LABS_TURN("labs_turn_sync") LABS_LOAD
    LABS_ENTRY("labs_exchange") LABS_SAVE "  movq %rsp, %r8\n" LABS_TURN("labs_turn_exchange") LABS_LOAD);
constexpr int kSaved = 6;
#else
#define LABS_SAVE                                                                              \
    "  sub sp, sp, #160\n"                                                                     \
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"         \
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"        \
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"                                    \
    "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
#define LABS_LOAD                                                                              \
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"         \
    "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"        \
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"                                    \
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"                                 \
    "  add sp, sp, #160\n  br x30\n"
#define LABS_TURN(name) "  bl " LABS_SYMBOL(name) "\n  mov sp, x0\n  mov x0, x1\n"
asm(".text\n.p2align 2\n"
    LABS_ENTRY("labs_switch") LABS_SAVE
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n  mov x0, x2\n" LABS_LOAD
    LABS_ENTRY("labs_sync") "  mov w1, wzr\n  mov w2, wzr\n"
    LABS_ENTRY("labs_sync_vote") LABS_SAVE "  mov x3, sp\n" LABS_TURN("labs_turn_sync") LABS_LOAD
    LABS_ENTRY("labs_exchange") LABS_SAVE "  mov x4, sp\n" LABS_TURN("labs_turn_exchange") LABS_LOAD);
#endif

// A context is the stack pointer of what was left behind.
typedef void* Context;

inline void prepare(Context* c, char* low, size_t stagger, void (*entry)()) {
    uintptr_t top = ((uintptr_t)low + kStack - stagger) & ~(uintptr_t)15;
#if defined(__x86_64__)
    void** sp = (void**)top;
    *--sp = nullptr;         // where a return address would stand
    *--sp = (void*)entry;
    for (int i = 0; i < kSaved; ++i) *--sp = nullptr;
    *c = sp;
#else
    uint64_t* sp = (uint64_t*)(top - 160);
    for (int i = 0; i < 20; ++i) sp[i] = 0;
    sp[11] = (uint64_t)entry;
    *c = sp;
#endif
}

// `value` is what the call brings back that `to` waits in.
inline void switch_to(Context* from, Context* to, uint64_t value) { labs_switch(from, *to, value); }

#else
}  // namespace host
#include <ucontext.h>
namespace host {

typedef ucontext_t Context;

inline void prepare(Context* c, char* low, size_t stagger, void (*entry)()) {
    getcontext(c);
    c->uc_stack.ss_sp = low;
    c->uc_stack.ss_size = kStack - (stagger & ~(size_t)15);
    c->uc_link = nullptr;
    makecontext(c, entry, 0);
}

inline void switch_to(Context* from, Context* to, uint64_t) { swapcontext(from, to); }

#endif

// Room for `n` stacks, each above a page that may not be touched.
inline char* make_stacks(int n) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
    flags |= MAP_NORESERVE;
#endif
    void* p = mmap(nullptr, n * kStride, PROT_READ | PROT_WRITE, flags, -1, 0);
    return p == MAP_FAILED ? nullptr : (char*)p;
}

// Linux since 6.13 marks pages in place, which costs a tenth of a mapping of their own.
inline void make_guard(char* low) {
#if defined(__linux__)
    constexpr int kGuardInstall = 102;  // MADV_GUARD_INSTALL, which older headers don't name
    if (!madvise(low, kGuard, kGuardInstall)) return;
#endif
    mprotect(low, kGuard, PROT_NONE);
}

}  // namespace host
