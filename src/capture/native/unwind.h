/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Native stacks of the calling thread, from inside a hook.
 *
 * One interface, two backends: the .eh_frame walker (default) and
 * libunwind (dlopened on demand). What the chosen one cannot walk ends the
 * stack early, with the reason.
 *
 * Threads: any number at once. The walker takes no lock, allocates nothing,
 * makes no system call after a thread's first capture, changes no errno, and
 * reads nothing outside the calling thread's own stack, the unwind sections
 * of loaded objects, and its own cache.
 */
#ifndef SEEP_CAPTURE_NATIVE_UNWIND_H
#define SEEP_CAPTURE_NATIVE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "seep/stack.h"

/** Where a walk begins: the state of the caller of the hook, just returned. */
struct seep_capture_start {
    uintptr_t pc; /* the hook's return address */
    uintptr_t sp; /* the caller's stack pointer after the return (the CFA) */
    uintptr_t fp; /* the caller's frame pointer register (rbp, x29) */
    /* if not NULL: receives the stack pointer of each frame, as many as pcs;
     * frame i lies in [sps[i], sps[i + 1]) */
    uintptr_t *sps;
    bool alone; /* who called the caller does not matter: one frame is enough */
};

/* The stack pointer before the call of the function that asks. A frame record
 * lies at its frame's upper end on x86-64, anywhere in it on aarch64. */
#if defined(__aarch64__)
#define SEEP_CAPTURE_CFA() ((uintptr_t)__builtin_dwarf_cfa())
#else
#define SEEP_CAPTURE_CFA() \
    ((uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *))
#endif

/**
 * The start as seen by the function that this is written in: it must be the
 * exported hook itself. Asking for its frame address gives it a frame pointer.
 */
#define SEEP_CAPTURE_START()                            \
    ((struct seep_capture_start){                       \
        .pc = (uintptr_t)__builtin_extract_return_addr( \
            __builtin_return_address(0)),               \
        .sp = SEEP_CAPTURE_CFA(),                       \
        .fp = *(const uintptr_t *)__builtin_frame_address(0)})

/** The bounds of a thread's own stack; part of its TLS, all 0 at first. */
struct seep_stack_bounds {
    uintptr_t low;
    uintptr_t high; /* first address above it; 0: not known yet */
};

/** How a capture ended. */
struct seep_capture_end {
    enum seep_cut cut;
    bool through_signal; /* a signal handler's frame is among those walked */
};

/**
 * Choose the backend, once, from the constructor (may allocate, may dlopen).
 *
 * @return 0; -ENOTSUP if the backend is not to be had here: then every
 *         capture answers one frame, cut as SEEP_CUT_DISABLED
 */
int seep_native_init(enum seep_unwinder unwinder);

/**
 * Capture the calling thread's stack.
 *
 * @param start     where it begins; its pc becomes pcs[0]
 * @param bounds    of this thread; filled at its first capture
 * @param pcs       receives addresses inside the calling instruction (return
 *                  address - 1; a signal frame's pc as it is), innermost first
 * @param capacity  at most SEEP_STACK_FRAMES_MAX are used
 * @param ret_end   why it ended, and what it passed
 * @return number of frames, at least 1 if capacity is
 */
size_t seep_native_capture(const struct seep_capture_start *start,
                           struct seep_stack_bounds *bounds, uintptr_t *pcs,
                           size_t capacity, struct seep_capture_end *ret_end);

/** In the child of a fork: forget what belongs to threads that are gone. */
void seep_native_after_fork(void);

/** Now and then: give back the pages that were only needed to learn rules. */
void seep_native_settle(void);

/** System calls are no longer welcome (seccomp): make none from now on. */
void seep_native_restrict(void);

#endif
