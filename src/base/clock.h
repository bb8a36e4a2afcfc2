/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Time inside a hook: the coarse monotonic clock (4 ms, no system call, 5 ns)
 * and the cycle counter for our own cost.
 */
#ifndef SEEP_BASE_CLOCK_H
#define SEEP_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The coarse clocks are read from the vDSO whatever the clock source, and
 * clock_gettime() touches errno only for a bad clock id. */
static inline uint64_t seep_clock_ns(clockid_t clock)
{
    struct timespec now = {0, 0};

    clock_gettime(clock, &now);
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

#endif
