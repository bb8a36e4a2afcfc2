/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What seep keeps of a thread: one initial-exec TLS object of 64 bytes.
 *
 * Invariant: nothing else of seep is thread-local. What a thread holds (a
 * claimed slot, a shard, a site) is noted here before it is taken, so that a
 * thread whose hook was abandoned by a jump can find and release it.
 */
#ifndef SEEP_BASE_THREAD_H
#define SEEP_BASE_THREAD_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * Time inside a hook: the coarse monotonic clock (4 ms, no system call, 5 ns)
 * and the cycle counter for our own cost.
 */

/** libc's own clock_gettime(), once it was looked up at the start: one that was
 * preloaded to fake the time (libfaketime) would make rates ten times wrong. */
extern int (*seep_clock_gettime)(clockid_t clock, struct timespec *ret_time)
    __attribute__((visibility("hidden")));

/* The coarse clocks are read from the vDSO whatever the clock source, and
 * clock_gettime() touches errno only for a bad clock id. */
static inline uint64_t seep_clock_ns(clockid_t clock)
{
    struct timespec now = {0, 0};

    seep_clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline uint64_t seep_clock_monotonic_ns(void)
{
    return seep_clock_ns(CLOCK_MONOTONIC_COARSE);
}

/** The process has forbidden itself the counter, or may have: a strict
 * seccomp does, and reading it is then a SIGSEGV. Never false again. */
extern bool seep_clock_forbidden __attribute__((visibility("hidden")));

/** 0 where there is none. */
static inline uint64_t seep_clock_cycles(void)
{
    if (seep_clock_forbidden) {
        return 0;
    }
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t cycles;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(cycles));
    return cycles;
#else
    return 0;
#endif
}

struct seep_thread {
    int64_t countdown_bytes; /* until the next sample; <= 0: slow path */
    uint64_t random;         /* xorshift state; 0: not seeded yet */
    uintptr_t hook_frame;    /* frame of the hook under way; 0: outside */
    uintptr_t stack_low;     /* bounds of the own stack; 0: not known yet */
    uintptr_t stack_high;
    union {
        /* ring position << 24 | shard + 1; 0: no slot is being claimed */
        _Atomic uint64_t claim;
        /* while .serving, which is before any claim: where a walk stands */
        uintptr_t served_pc;
    };
    _Atomic uint32_t held_site;  /* index + 1 */
    _Atomic uint32_t held_shard; /* index + 1 */
    uint32_t id;                 /* kernel's thread id; 0: not asked yet */
    uint8_t sample_log2;         /* under which countdown_bytes was drawn */
    uint8_t serving;             /* dl_iterate_phdr is answered by us */
    uint16_t nested : 15;        /* entries since hook_frame was set */
    uint16_t in_driver : 1;      /* stands in the table of cuda/wrappers.c */
};

static_assert(sizeof(struct seep_thread) <= 64, "static TLS is scarce");

extern __thread struct seep_thread seep_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

#endif
