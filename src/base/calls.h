/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Every kind of system call that the recorder makes of its own, and which of
 * them a filter (seccomp) would kill the process for.
 *
 * Invariant: what is not in this list is not made, and what is in the set of
 * denied calls is answered with -EPERM, without asking the kernel.
 */
#ifndef SEEP_BASE_CALLS_H
#define SEEP_BASE_CALLS_H

#include <assert.h>
#include <stdint.h>
#include <sys/syscall.h>

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

#endif
