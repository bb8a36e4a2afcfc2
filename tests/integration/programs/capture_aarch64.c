/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The walker on aarch64: each stack against backtrace(), which asks libgcc.
 *
 * Built by a cross compiler with the sources of src/capture, and run under an
 * emulator, so with nothing but libc. Exit 0 if all stacks are equal, else 1
 * with the first that is not.
 */
#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/compiler.h"
#include "capture/native/elf.h"
#include "capture/native/unwind.h"

#define TRUTH_MAX (SEEP_STACK_FRAMES_MAX + 32)

static __thread struct seep_stack_bounds bounds;
static unsigned int stack_count;
static unsigned int differing;
static unsigned int through_signal;
static enum seep_cut expected_cut;

static void complain(const char *shape, const uintptr_t *pcs, size_t count,
                     void *const *truth, size_t truth_count, enum seep_cut cut)
{
    if (differing++ < 8) {
        printf("%s: %zu frames of %zu, cut %d\n", shape, count, truth_count,
               cut);
        for (size_t i = 0; i < count || i < truth_count; i++) {
            printf("  %zx %zx\n", i < count ? (size_t)pcs[i] : 0,
                   i < truth_count ? (size_t)truth[i] : 0);
        }
    }
}

/* The hook. What backtrace() tells first is its own caller, in here. */
SEEP_NOINLINE static void check(const char *shape)
{
    struct seep_capture_start start = SEEP_CAPTURE_START();
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t sps[SEEP_STACK_FRAMES_MAX];
    void *truth[TRUTH_MAX];
    struct seep_capture_end end;
    size_t truth_count = (size_t)backtrace(truth, TRUTH_MAX) - 1;
    size_t count;
    size_t same = 0;
    bool ordered = true;

    start.sps = sps;
    count =
        seep_native_capture(&start, &bounds, pcs, SEEP_STACK_FRAMES_MAX, &end);
    while (same < count && same < truth_count &&
           (pcs[same] + 1 == (uintptr_t)truth[same + 1] ||
            pcs[same] == (uintptr_t)truth[same + 1])) {
        ordered = ordered && (same == 0 || sps[same] > sps[same - 1] ||
                              end.through_signal);
        same++;
    }
    stack_count++;
    through_signal += end.through_signal;
    /* backtrace() goes on behind a first frame that says it is the first. */
    if (same != count || !ordered || end.cut != expected_cut ||
        (count < truth_count && count < SEEP_STACK_FRAMES_MAX &&
         truth[count + 1] != NULL)) {
        complain(shape, pcs, count, truth + 1, truth_count, end.cut);
    }
}

SEEP_NOINLINE static int recurse(int depth)
{
    if (depth == 0) {
        check("recursion");
        return 1;
    }
    depth = recurse(depth - 1) + 1;
    __asm__ volatile("" : "+r"(depth)); /* no loop in the place of calls */
    return depth;
}

SEEP_NOINLINE static int dynamic(size_t bytes)
{
    volatile char *block = alloca(bytes);

    block[bytes / 2] = 1;
    check("alloca");
    return block[bytes / 2];
}

SEEP_NOINLINE static int large(void)
{
    volatile char block[3 << 20];

    block[17] = 1;
    check("a large frame");
    return block[17];
}

/* Every register that a call keeps is in use, so that it is saved. */
SEEP_NOINLINE static long saves_all(long a)
{
    __asm__ volatile("" ::
                         : "x19", "x20", "x21", "x22", "x23", "x24", "x25",
                           "x26", "x27", "x28");
    check("all registers saved");
    return a + 1;
}

static int compare(const void *left, const void *right)
{
    check("a callback of libc");
    return *(const int *)left - *(const int *)right;
}

/* As the kernel's own trampoline: known by its code, without a rule. */
__asm__(".text\n"
        "  .globl trampoline\n"
        "  .type trampoline, %function\n"
        "  .p2align 2\n"
        "  nop\n"
        "trampoline:\n"
        "  mov x8, 139\n"
        "  svc 0\n");

void trampoline(void);

struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

static void handler(int number)
{
    (void)number;
    check("a signal handler");
}

/* A leaf: its return address is in x30 only. */
__asm__(".text\n"
        "  .globl leaf\n"
        "  .type leaf, %function\n"
        "leaf:\n"
        "  .cfi_startproc\n"
        "  brk 1\n"
        "  ret\n"
        "  .cfi_endproc\n");
void leaf(void);

static void handle_trap(int number, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;

    (void)number;
    (void)info;
    check("an interrupted leaf");
    interrupted->uc_mcontext.pc += 4;
}

SEEP_NOINLINE static void signals(void)
{
    struct kernel_action action = {.handler = handler,
                                   .flags = 0x04000000 /* SA_RESTORER */,
                                   .restorer = trampoline};
    void (*trap)(int, siginfo_t *, void *) = handle_trap;

    syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, sizeof(action.mask));
    raise(SIGUSR1);
    memcpy(&action.handler, &trap, sizeof(trap));
    action.flags |= SA_SIGINFO;
    syscall(SYS_rt_sigaction, SIGTRAP, &action, NULL, sizeof(action.mask));
    leaf();
    __asm__ volatile("");
}

static void *in_thread(void *argument)
{
    recurse(5);
    dynamic(777);
    return argument;
}

int main(void)
{
    int numbers[] = {5, 3, 9, 1, 7, 2, 8};
    pthread_t thread;

    seep_objects_init();
    if (seep_native_init(SEEP_UNWINDER_EH_FRAME) != 0) {
        return 2;
    }
    for (int depth = 0; depth < 60; depth++) {
        recurse(depth);
        dynamic((size_t)depth * depth * 16 + 8);
    }
    expected_cut = SEEP_CUT_DEPTH;
    recurse(150);
    expected_cut = SEEP_CUT_NONE;
    large();
    saves_all(1);
    qsort(numbers, 7, sizeof(int), compare);
    signals();
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    printf("stacks %u, through signals %u, differing %u\n", stack_count,
           through_signal, differing);
    return differing != 0 || through_signal < 2;
}
