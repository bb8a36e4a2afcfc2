// SPDX-License-Identifier: LGPL-2.1-or-later
// Stacks of code that no compiler wrote, and of code that is stopped behind
// each single instruction: prologues and epilogues, the loader's lazy binding,
// the unwinder of exceptions, switches of stacks.
//
//     capture_forms NAME
//
// Invariant: where instructions are stepped nothing allocates of its own; the
// preloaded library is asked to capture instead.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>
#include <sys/mman.h>
#include <ucontext.h>

#define FRAME __attribute__((noinline, noclone))
#define TRAP_FLAG 0x100
#define CONTEXTS 6
#define STACK_BYTES (64U << 10)

extern "C" {
void forms_touch(void);
void forms_rsp(void);
void forms_rbx(void);
void forms_r12(void);
void forms_loaded(void);
void forms_frame_pointer(void);
void forms_bare(void);
}

__asm__(R"(
        .text
        .globl forms_rsp, forms_rbx, forms_r12, forms_loaded
        .globl forms_frame_pointer, forms_bare

forms_rsp:
        .cfi_startproc
        pushq %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        subq $48, %rsp
        .cfi_adjust_cfa_offset 48
        call forms_touch
        addq $48, %rsp
        .cfi_adjust_cfa_offset -48
        popq %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        ret
        .cfi_endproc

forms_rbx:
        .cfi_startproc
        pushq %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        movq %rsp, %rbx
        .cfi_def_cfa_register %rbx
        subq $100, %rsp
        andq $-64, %rsp
        call forms_touch
        movq %rbx, %rsp
        .cfi_def_cfa_register %rsp
        popq %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc

forms_r12:
        .cfi_startproc
        pushq %r12
        .cfi_def_cfa_offset 16
        .cfi_offset %r12, -16
        movq %rsp, %r12
        .cfi_def_cfa_register %r12
        subq $200, %rsp
        andq $-64, %rsp
        call forms_rsp
        movq %r12, %rsp
        .cfi_def_cfa_register %rsp
        popq %r12
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc

# As in OpenSSL: CFA = *(rsp + 128) + 8.
forms_loaded:
        .cfi_startproc
        movq %rsp, %rax
        .cfi_def_cfa_register %rax
        pushq %rbx
        .cfi_offset %rbx, -16
        subq $136, %rsp
        andq $-64, %rsp
        movq %rax, 128(%rsp)
        .cfi_escape 0x0f, 0x06, 0x77, 0x80, 0x01, 0x06, 0x23, 0x08
        call forms_touch
        movq 128(%rsp), %rax
        .cfi_def_cfa %rax, 8
        movq -8(%rax), %rbx
        .cfi_restore %rbx
        leaq (%rax), %rsp
        .cfi_def_cfa_register %rsp
        ret
        .cfi_endproc

forms_frame_pointer:
        pushq %rbp
        movq %rsp, %rbp
        subq $32, %rsp
        call forms_touch
        leave
        ret

forms_bare:
        subq $24, %rsp
        call forms_touch
        addq $24, %rsp
        ret
)");

namespace
{

void (*capture)();
volatile sig_atomic_t steps;

FRAME void touch(size_t bytes)
{
    void *volatile block = std::malloc(bytes);

    std::free(block);
}

void on_trap(int)
{
    steps = steps + 1;
    if (capture != nullptr) {
        capture();
    }
}

/* The flag is set in what the signal returns to, so no code of ours is. */
void on_switch(int number, siginfo_t *, void *context)
{
    greg_t *flags =
        &static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_EFL];

    *flags = number == SIGUSR1 ? *flags | TRAP_FLAG : *flags & ~TRAP_FLAG;
}

FRAME void step(void (*run)())
{
    struct sigaction trap = {};
    struct sigaction change = {};

    trap.sa_handler = on_trap;
    sigaction(SIGTRAP, &trap, nullptr);
    change.sa_sigaction = on_switch;
    change.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR1, &change, nullptr);
    sigaction(SIGUSR2, &change, nullptr);
    raise(SIGUSR1);
    run();
    raise(SIGUSR2);
}

int order(const void *left, const void *right)
{
    return *static_cast<const int *>(left) - *static_cast<const int *>(right);
}

__attribute__((target("avx2"))) FRAME int realigned(int depth)
{
    alignas(64) volatile char room[192];
    int bytes = depth * 24 + 16;
    volatile char *more =
        static_cast<char *>(__builtin_alloca(static_cast<size_t>(bytes)));

    room[bytes % 192] = 1;
    more[bytes - 1] = 2;
    return depth == 0 ? room[0] : realigned(depth - 1) + more[0];
}

/* Lazily bound calls, a callback, realigned frames, and an exception. */
void plain_code()
{
    char text[64];
    int numbers[12] = {5, 2, 9, 1, 7, 3, 8, 0, 4, 6, 11, 10};

    std::qsort(numbers, 12, sizeof(int), order);
    std::snprintf(text, sizeof(text), "%d %.3f", numbers[3], 2.5);
    realigned(0); /* whose epilogue gcc describes wrongly for its caller */
    forms_rsp();
    forms_rbx();
    forms_r12();
    forms_loaded();
}

FRAME void thrower(int depth)
{
    volatile char room[40];

    room[depth] = 1;
    if (room[depth] > depth) {
        throw std::runtime_error("stepped");
    }
    thrower(depth - 1);
    room[depth] = 2;
}

void exception()
{
    try {
        thrower(2);
    } catch (const std::exception &error) {
        steps = steps + static_cast<int>(std::strlen(error.what()) == 0);
    }
}

sigjmp_buf back;

FRAME void jumper(int depth)
{
    if (depth == 0) {
        siglongjmp(back, 1);
    }
    jumper(depth - 1);
    steps = steps + 1;
}

void jump()
{
    if (sigsetjmp(back, 1) == 0) {
        jumper(3);
    }
}

ucontext_t outside;
ucontext_t contexts[CONTEXTS];

FRAME void deeper(int depth)
{
    volatile char room[48];

    room[depth % 48] = 1;
    forms_touch();
    if (depth > 0) {
        deeper(depth - room[depth % 48]);
    }
    room[1] = room[0];
}

void context_body(int self)
{
    for (int i = 0; i < 10; i++) {
        deeper(self * 7 + i);
        swapcontext(&contexts[self], &outside);
    }
}

/* All on stacks of their own, in turn; some lie side by side. */
void run_contexts(char *stacks)
{
    for (int i = 0; i < CONTEXTS; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks + i * STACK_BYTES;
        contexts[i].uc_stack.ss_size = STACK_BYTES;
        contexts[i].uc_link = &outside;
        makecontext(&contexts[i], reinterpret_cast<void (*)()>(context_body), 1,
                    i);
    }
    for (int i = 0; i < 10 * CONTEXTS; i++) {
        deeper(i % 5);
        swapcontext(&outside, &contexts[i % CONTEXTS]);
    }
}

void contexts_switched()
{
    char *stacks = static_cast<char *>(
        mmap(nullptr, CONTEXTS * STACK_BYTES, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

    run_contexts(stacks);
    run_contexts(stacks);
    munmap(stacks, CONTEXTS * STACK_BYTES);
}

void on_alternate(int number)
{
    deeper(30);
    if (number == SIGUSR1) {
        raise(SIGUSR2);
    }
    deeper(3);
}

FRAME void raiser(int depth)
{
    if (depth == 0) {
        raise(SIGUSR1);
        return;
    }
    raiser(depth - 1);
    touch(16);
}

/* A handler on its own stack, and another on top of it. */
void alternate()
{
    static char memory[256 << 10];
    stack_t stack = {};
    struct sigaction action = {};

    stack.ss_sp = memory;
    stack.ss_size = sizeof(memory);
    sigaltstack(&stack, nullptr);
    action.sa_handler = on_alternate;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    sigaction(SIGUSR2, &action, nullptr);
    for (int i = 0; i < 30; i++) {
        raiser(i);
    }
}

template <void (*run)()> void repeat()
{
    for (int i = 0; i < 100; i++) {
        run();
    }
}

template <void (*run)()> void stepped()
{
    step(run);
    step(run);
}

const struct {
    const char *name;
    void (*run)();
} all[] = {
    {"rsp", repeat<forms_rsp>},
    {"rbx", repeat<forms_rbx>},
    {"r12", repeat<forms_r12>},
    {"loaded", repeat<forms_loaded>},
    {"frame_pointer", repeat<forms_frame_pointer>},
    {"bare", repeat<forms_bare>},
    {"contexts", contexts_switched},
    {"alternate", alternate},
    {"step_code", stepped<plain_code>},
    {"step_exception", stepped<exception>},
    {"step_jump", stepped<jump>},
};

} // namespace

void forms_touch(void)
{
    touch(64);
}

int main(int argc, char **argv)
{
    void *found = dlsym(RTLD_DEFAULT, "capture_oracle_here");

    std::memcpy(&capture, &found, sizeof(found));
    for (const auto &form : all) {
        if (argc < 2 || std::strcmp(argv[1], form.name) == 0) {
            form.run();
        }
    }
    return 0;
}
