/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a command under a preloaded library and lets one system call that the
 * library itself makes fail; those of the program and of libc are let be.
 *
 *     fail_calls LOG NUMBER ERRNO LIBRARY COMMAND [ARGUMENT]...
 *
 * The NUMBERth call fails, from 1; with 0 none does. LOG gets a line for each
 * call: its number, and 1 if it was the one. Exits as COMMAND does, 128 + N
 * where signal N killed it.
 *
 * Invariant: a call is the library's if it is made by an instruction that lies
 * in a mapping of LIBRARY.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define TASKS 64
#define SYSCALL_STOP (SIGTRAP | 0x80)

struct task {
    pid_t pid;
    uint64_t start; /* of the library, 0 while it is not there */
    uint64_t end;
    bool fails;
};

static struct task tasks[TASKS];
static const char *library;
static FILE *calls;
static long wanted;
static long error;
static long count;

static struct task *task_of(pid_t pid)
{
    struct task *free_one = NULL;

    for (size_t i = 0; i < TASKS; i++) {
        if (tasks[i].pid == pid) {
            return &tasks[i];
        }
        if (tasks[i].pid == 0 && free_one == NULL) {
            free_one = &tasks[i];
        }
    }
    if (free_one == NULL) {
        exit(3);
    }
    *free_one = (struct task){.pid = pid};
    return free_one;
}

static void find_library(struct task *task)
{
    char line[4352];
    FILE *maps;

    snprintf(line, sizeof(line), "/proc/%d/maps", (int)task->pid);
    maps = fopen(line, "re");
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long long start;
        unsigned long long end;

        line[strcspn(line, "\n")] = '\0';
        if (strstr(line, library) != NULL &&
            sscanf(line, "%llx-%llx", &start, &end) == 2) {
            task->start = task->start == 0 ? start : task->start;
            task->end = end;
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

static void poke(pid_t pid, size_t offset, long value)
{
    ptrace(PTRACE_POKEUSER, pid, offset, value);
}

static void on_entry(struct task *task,
                     const struct __ptrace_syscall_info *call)
{
    uint64_t at = call->instruction_pointer;

    /* Anew each time until it is there: the loader maps it in its first calls,
     * and the whole of it before it can call. */
    if (task->start == 0) {
        find_library(task);
    }
    if (at < task->start || at >= task->end) {
        return;
    }
    task->fails = ++count == wanted;
    fprintf(calls, "%llu %d\n", (unsigned long long)call->entry.nr,
            task->fails);
    if (task->fails) {
        poke(task->pid, offsetof(struct user, regs.orig_rax), -1);
    }
}

static void on_call(struct task *task)
{
    struct __ptrace_syscall_info call;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, task->pid, sizeof(call), &call) <= 0) {
        return;
    }
    if (call.op == PTRACE_SYSCALL_INFO_ENTRY) {
        on_entry(task, &call);
    } else if (call.op == PTRACE_SYSCALL_INFO_EXIT && task->fails) {
        poke(task->pid, offsetof(struct user, regs.rax), -error);
        task->fails = false;
    }
}

/* @return the signal to hand on */
static int on_stop(struct task *task, int status)
{
    int signal = WSTOPSIG(status);
    int event = status >> 16;

    if (signal == SYSCALL_STOP) {
        on_call(task);
        return 0;
    }
    if (event == PTRACE_EVENT_EXEC) {
        task->start = 0;
        task->end = 0;
    }
    return event != 0 || signal == SIGSTOP ? 0 : signal;
}

static int follow(pid_t first)
{
    int result = 3;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        struct task *task = task_of(pid);

        if (WIFSTOPPED(status)) {
            ptrace(PTRACE_SYSCALL, pid, 0, on_stop(task, status));
            continue;
        }
        task->pid = 0;
        if (pid == first) {
            result = WIFEXITED(status) ? WEXITSTATUS(status)
                                       : 128 + WTERMSIG(status);
        }
    }
    return result;
}

int main(int argument_count, char **arguments)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                         PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    int status;
    pid_t pid;

    if (argument_count < 6) {
        return 2;
    }
    calls = fopen(arguments[1], "we");
    wanted = strtol(arguments[2], NULL, 10);
    error = strtol(arguments[3], NULL, 10);
    library = arguments[4];
    pid = calls == NULL ? -1 : fork();
    if (pid == 0) {
        setenv("LD_PRELOAD", library, 1);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execv(arguments[5], arguments + 5);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, pid, 0, options) < 0) {
        return 77;
    }
    ptrace(PTRACE_SYSCALL, pid, 0, 0);
    status = follow(pid);
    fclose(calls);
    return status;
}
