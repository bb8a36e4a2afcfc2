/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * System calls that pass by libc: no errno, no cancellation point, no lazy
 * binding, no hook of another library.
 *
 * Invariant: a result is what the kernel answered, a negative errno in case of
 * failure, -EPERM if it was not asked because of a filter; nothing else of the
 * process changes.
 */
#ifndef SEEP_BASE_SYSCALL_H
#define SEEP_BASE_SYSCALL_H

#include <errno.h>
#include <linux/mman.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/calls.h"
#include "base/compiler.h"

#if defined(__x86_64__)

static inline long seep_syscall_forward(long number, long a, long b, long c,
                                        long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
                       "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#elif defined(__aarch64__)

static inline long seep_syscall_forward(long number, long a, long b, long c,
                                        long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

#else
#error "seep: no raw system calls for this architecture"
#endif

/* seep_syscall_forward() makes a call that the program asked for. The others
 * are our own: what a filter would kill the process for is not made. */
static inline long seep_syscall6(long number, long a, long b, long c, long d,
                                 long e, long f)
{
    if (seep_unlikely(seep_calls_denied != 0) &&
        (seep_calls_denied & seep_calls_bit(number)) != 0) {
        return -EPERM;
    }
    return seep_syscall_forward(number, a, b, c, d, e, f);
}

static inline long seep_syscall0(long number)
{
    return seep_syscall6(number, 0, 0, 0, 0, 0, 0);
}

static inline long seep_syscall1(long number, long a)
{
    return seep_syscall6(number, a, 0, 0, 0, 0, 0);
}

static inline long seep_syscall2(long number, long a, long b)
{
    return seep_syscall6(number, a, b, 0, 0, 0, 0);
}

static inline long seep_syscall3(long number, long a, long b, long c)
{
    return seep_syscall6(number, a, b, c, 0, 0, 0);
}

static inline long seep_syscall4(long number, long a, long b, long c, long d)
{
    return seep_syscall6(number, a, b, c, d, 0, 0);
}

/** Is what mmap() or another call that returns addresses gave an error? */
static inline bool seep_syscall_failed(long result)
{
    return result < 0 && result > -4096;
}

/** Private memory of zeros. @return as mmap() */
static inline long seep_syscall_zeros(size_t bytes)
{
    return seep_syscall6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

#endif
