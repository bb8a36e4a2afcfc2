/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * System calls that pass by libc: no errno, no cancellation point, no lazy
 * binding, no hook of another library. Every kind that the recorder makes of
 * its own, which of them a filter (seccomp) would kill the process for, and how
 * they are made.
 *
 * Invariant: what is not in the list is not made, and what is in the set of
 * denied calls is answered with -EPERM, without asking the kernel. Else a
 * result is what the kernel answered, a negative errno in case of failure;
 * nothing else of the process changes.
 */
#ifndef SEEP_BASE_SYSCALL_H
#define SEEP_BASE_SYSCALL_H

#include <assert.h>
#include <errno.h>
#include <linux/ipc.h>
#include <linux/mman.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/compiler.h"

/**
 * X(NAME, NEED, FIRST, SECOND): two arguments with which it does nothing and
 * does not wait, the others 0. NEEDED: without it nothing is recorded, since an
 * error would be taken for a value, or there is no file.
 */
#define SEEP_CALLS(X)                     \
    X(close, NEEDED, -1, 0)               \
    X(faccessat, WANTED, -1, 0)           \
    X(fallocate, WANTED, -1, 0)           \
    X(fchmod, NEEDED, -1, 0)              \
    X(fcntl, WANTED, -1, F_DUPFD_CLOEXEC) \
    X(flock, WANTED, -1, 0)               \
    X(fstat, WANTED, -1, 0)               \
    X(fstatfs, WANTED, -1, 0)             \
    X(ftruncate, NEEDED, -1, 0)           \
    X(futex, WANTED, 0, FUTEX_WAKE)       \
    X(getcwd, WANTED, 0, 0)               \
    X(getdents64, WANTED, -1, 0)          \
    X(geteuid, NEEDED, 0, 0)              \
    X(getpid, NEEDED, 0, 0)               \
    X(getppid, NEEDED, 0, 0)              \
    X(gettid, NEEDED, 0, 0)               \
    X(ioctl, WANTED, -1, FS_IOC_GETFLAGS) \
    X(linkat, WANTED, -1, 0)              \
    X(lseek, WANTED, -1, 0)               \
    X(madvise, WANTED, 0, 0)              \
    X(mincore, WANTED, 0, 0)              \
    X(mmap, NEEDED, 0, 0)                 \
    X(mremap, NEEDED, 0, 0)               \
    X(munmap, NEEDED, 0, 0)               \
    X(nanosleep, WANTED, 0, 0)            \
    X(newfstatat, WANTED, -1, 0)          \
    X(openat, NEEDED, -1, 0)              \
    X(ppoll, WANTED, 0, -1)               \
    X(prctl, WANTED, PR_GET_NAME, 0)      \
    X(pread64, WANTED, -1, 0)             \
    X(prlimit64, WANTED, 0, RLIMIT_STACK) \
    X(process_vm_readv, WANTED, 0, 0)     \
    X(pwrite64, WANTED, -1, 0)            \
    X(read, NEEDED, -1, 0)                \
    X(readlinkat, WANTED, -1, 0)          \
    X(rt_sigprocmask, WANTED, 0, 0)       \
    X(shmctl, WANTED, -1, IPC_STAT)       \
    X(sigaltstack, WANTED, 0, 0)          \
    X(statfs, WANTED, 0, 0)               \
    X(sysinfo, WANTED, 0, 0)              \
    X(tgkill, NEEDED, 0, 0)               \
    X(uname, WANTED, 0, 0)                \
    X(unlinkat, WANTED, -1, 0)            \
    X(write, WANTED, -1, 0)

#define SEEP_CALL_INDEX(name, need, first, second) SEEP_CALL_INDEX_##name,
enum seep_call_index { SEEP_CALLS(SEEP_CALL_INDEX) SEEP_CALL_COUNT };
#undef SEEP_CALL_INDEX
static_assert(SEEP_CALL_COUNT <= 64, "a set of them is one word");

#define SEEP_CALL_BIT(name) (UINT64_C(1) << SEEP_CALL_INDEX_##name)
#define SEEP_CALLS_ALL (UINT64_MAX >> (64 - SEEP_CALL_COUNT))

/** The set of those without which nothing is recorded. */
#define SEEP_CALLS_NEEDED_OF(name, need, first, second) \
    SEEP_CALLS_##need(name) |
#define SEEP_CALLS_NEEDED(name) SEEP_CALL_BIT(name)
#define SEEP_CALLS_WANTED(name) UINT64_C(0)
#define SEEP_CALLS_ALL_NEEDED (SEEP_CALLS(SEEP_CALLS_NEEDED_OF) UINT64_C(0))

/**
 * The set of those that are not made. Written once, by the constructor, before
 * the hooks are armed, and by `seep run`; of others it stays 0.
 */
extern uint64_t seep_calls_denied;

/** The bit of the call of that number, 0 if it is none of ours; a constant for
 * a constant. */
static inline uint64_t seep_calls_bit(long number)
{
#define SEEP_CALL_CASE(name, need, first, second) \
    case SYS_##name:                              \
        return SEEP_CALL_BIT(name);
    switch (number) {
        SEEP_CALLS(SEEP_CALL_CASE)
    default:
        return 0;
    }
#undef SEEP_CALL_CASE
}

/* How they are made. */

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
