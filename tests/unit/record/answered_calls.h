/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * System calls of this process that a test answers in the kernel's place: a
 * file system that no test has, a call that is interrupted.
 *
 * Invariant: what is begun stays, so it is begun in a child. The answer may
 * make no call of the two that it answers.
 */
#ifndef SEEP_TESTS_ANSWERED_CALLS_H
#define SEEP_TESTS_ANSWERED_CALLS_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

/** @return what the call returns to who made it: a negative errno, or not */
typedef long answered_calls_answer(long number, const long arguments[4]);

static answered_calls_answer *answered_calls_given;

static inline void answered_calls_trap(int signal, siginfo_t *info,
                                       void *context)
{
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
#if defined(__x86_64__)
    greg_t *registers = machine->gregs;
    long arguments[4] = {registers[REG_RDI], registers[REG_RSI],
                         registers[REG_RDX], registers[REG_R10]};

    registers[REG_RAX] = answered_calls_given(info->si_syscall, arguments);
#else
    long arguments[4];

    memcpy(arguments, machine->regs, sizeof(arguments));
    machine->regs[0] =
        (unsigned long long)answered_calls_given(info->si_syscall, arguments);
#endif
    (void)signal;
}

/** Answer the calls of these two numbers. @return false: that is not to be had
 */
static inline bool answered_calls_begin(long first, long second,
                                        answered_calls_answer *answer)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
                                 .filter = filter};
    struct sigaction action = {.sa_sigaction = answered_calls_trap,
                               .sa_flags = SA_SIGINFO};

    answered_calls_given = answer;
    return sigaction(SIGSYS, &action, NULL) == 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#endif
