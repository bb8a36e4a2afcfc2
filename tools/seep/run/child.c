/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Run a command as if we were not there. Invariant: between fork and exec the
 * child has again the mask and the dispositions that we were started with.
 *
 * The parent blocks the signals that it cares for and takes them one by one
 * with sigtimedwait(): no handler, no race between a signal and the wait.
 */
#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/syscall.h"
#include "base/thread.h"
#include "reader/process/cgroup.h"

/* Sent to us by kill(), they are meant for the command; so are those of real
 * time. */
static const int forwarded[] = {SIGTERM, SIGHUP,   SIGUSR1, SIGUSR2, SIGINT,
                                SIGQUIT, SIGWINCH, SIGALRM, SIGPWR};
/* The terminal stops the whole group; we follow when the child has stopped. */
static const int stopping[] = {SIGTSTP, SIGTTIN, SIGTTOU};
#define SECOND_NS UINT64_C(1000000000)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct inherited {
    sigset_t mask;
    struct sigaction stop[COUNT(stopping)];
    struct sigaction child;
    sigset_t awaited;
};

static bool is_forwarded(int number)
{
    for (size_t i = 0; i < COUNT(forwarded); i++) {
        if (number == forwarded[i]) {
            return true;
        }
    }
    return number >= SIGRTMIN;
}

static void take_signals(struct inherited *inherited)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    struct sigaction before;

    sigemptyset(&inherited->awaited);
    sigaddset(&inherited->awaited, SIGCHLD);
    for (int number = 1; number <= SIGRTMAX; number++) {
        /* ignored from the start (nohup, background): it stays so */
        if (is_forwarded(number) && sigaction(number, NULL, &before) == 0 &&
            before.sa_handler != SIG_IGN) {
            sigaddset(&inherited->awaited, number);
        }
    }
    sigprocmask(SIG_BLOCK, &inherited->awaited, &inherited->mask);
    for (size_t i = 0; i < COUNT(stopping); i++) {
        sigaction(stopping[i], &ignore, &inherited->stop[i]);
    }
    /* an inherited SIG_IGN would reap the child before we can */
    sigaction(SIGCHLD, &standard, &inherited->child);
}

static void give_back_signals(const struct inherited *inherited)
{
    for (size_t i = 0; i < COUNT(stopping); i++) {
        sigaction(stopping[i], &inherited->stop[i], NULL);
    }
    sigaction(SIGCHLD, &inherited->child, NULL);
    sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
}

/* What the terminal sent to the child came to us as well. If the child ended
 * of it before we took ours, we would die of it when it is let through. */
static void discard_pending(const struct inherited *inherited)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;

    for (int number = 1; number <= SIGRTMAX; number++) {
        if (is_forwarded(number) &&
            sigismember(&inherited->awaited, number) == 1) {
            sigaction(number, &ignore, &before);
            sigaction(number, &before, NULL);
        }
    }
}

/* Behind the variable that the preload reads: so it knows the command, through
 * any chain of exec, from its children. */
static char command_variable[] = "SEEP_COMMAND_PID=0000000000";

/* No heap and no lock: this is a child. Nothing, if a filter kills for it. */
static void put_own_pid(void)
{
    long pid = seep_syscall0(SYS_getpid);

    for (size_t i = sizeof(command_variable) - 1; pid > 0; pid /= 10) {
        command_variable[--i] = (char)('0' + pid % 10);
    }
}

/* The child: exec, or tell why not. Only async-signal-safe calls. */
static void become(char *const *argv, int report_fd)
{
    put_own_pid();
    execvp(argv[0], argv);
    int error = errno;
    ssize_t written = write(report_fd, &error, sizeof(error));
    _exit(written == (ssize_t)sizeof(error) ? 127 : 126);
}

/* Without a terminal nobody waits for a stopped job to continue it: we would
 * stay stopped when somebody continues the child alone. */
static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

/* Stop as the child did, so that who started us sees a stopped job. */
static void stop_with(pid_t pid, int signal)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    struct sigaction before;
    siginfo_t info = {0};

    sigaction(signal, &standard, &before);
    raise(signal);
    /* here somebody has continued us */
    sigaction(signal, &before, NULL);
    waitid(P_PID, (id_t)pid, &info, WCONTINUED | WNOHANG);
    if (info.si_pid == 0) {
        kill(pid, SIGCONT); /* only we were continued, not our group */
    }
}

/* @return whether the child has ended; it is reaped then. */
static bool follow(struct seep_child *child)
{
    siginfo_t info = {0};

    while (waitid(P_PID, (id_t)child->pid, &info,
                  WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0) {
        if (info.si_code != CLD_STOPPED && info.si_code != CLD_TRAPPED) {
            struct seep_target target = {0};
            seep_target_read(child->pid, &target);
            child->start_clock = target.start_clock;
            child->end_ns = seep_clock_ns(CLOCK_MONOTONIC);
            return waitpid(child->pid, &child->status, 0) == child->pid;
        }
        if (waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WNOHANG) == 0 &&
            info.si_pid != 0 && has_terminal()) {
            stop_with(child->pid, info.si_status);
        }
        info.si_pid = 0;
    }
    return false;
}

/* When it is to be called next; UINT64_MAX: never. */
static uint64_t pass_time(const struct seep_child_pastime *pastime)
{
    uint64_t pause_ns =
        pastime == NULL ? UINT64_MAX : pastime->call(pastime->context);
    uint64_t now = seep_clock_ns(CLOCK_MONOTONIC);

    return pause_ns < UINT64_MAX - now ? now + pause_ns : UINT64_MAX;
}

/* @return the signal; less than 0 when it is @due_ns, or was interrupted */
static int take_signal(const sigset_t *awaited, uint64_t due_ns,
                       siginfo_t *ret_info)
{
    struct timespec pause = {0};
    uint64_t now = seep_clock_ns(CLOCK_MONOTONIC);

    if (due_ns == UINT64_MAX) {
        return sigwaitinfo(awaited, ret_info);
    }
    if (due_ns > now) {
        pause.tv_sec = (time_t)((due_ns - now) / SECOND_NS);
        pause.tv_nsec = (long)((due_ns - now) % SECOND_NS);
    }
    return sigtimedwait(awaited, ret_info, &pause);
}

static void look_at_image(struct seep_child *child)
{
    struct seep_target target;
    uint64_t now = seep_clock_ns(CLOCK_MONOTONIC); /* not later than it is */

    if (seep_target_read(child->pid, &target) == 0 && target.start_stack != 0) {
        child->image_stack = target.start_stack;
        child->image_ns = now;
    }
}

static bool is_awaited_by(const struct seep_child_pastime *pastime, pid_t pid)
{
    return pastime != NULL && pastime->owns(pastime->context, pid);
}

/*
 * As the entry point of a container we are process 1, and a process that
 * outlives its parent becomes our child. Nobody else reaps it.
 *
 * @return whether a child ended that the pastime waits for: the kernel shows
 *         it first until it is reaped, and no orphan behind it
 */
static bool reap_orphans(const struct seep_child *child,
                         const struct seep_child_pastime *pastime)
{
    siginfo_t info = {0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0 && info.si_pid != child->pid) {
        if (is_awaited_by(pastime, info.si_pid)) {
            return true;
        }
        waitpid(info.si_pid, NULL, 0);
        info.si_pid = 0;
    }
    return false;
}

/* The kernel sends those of the terminal to the child as well; an alarm that
 * was set before we were executed rings here alone. */
static bool is_for_child(int signal, const siginfo_t *info)
{
    return signal != SIGCHLD && (info->si_code <= 0 || signal == SIGALRM);
}

static void attend(struct seep_child *child, const sigset_t *awaited,
                   const struct seep_child_pastime *pastime)
{
    uint64_t due_ns = 0;

    while (!follow(child)) {
        siginfo_t info;
        if (seep_clock_ns(CLOCK_MONOTONIC) >= due_ns) {
            look_at_image(child);
            due_ns = pass_time(pastime);
        }
        if (reap_orphans(child, pastime)) {
            due_ns = 0;
            continue;
        }
        int signal = take_signal(awaited, due_ns, &info);
        if (signal > 0 && is_for_child(signal, &info)) {
            kill(child->pid, signal);
        }
    }
}

/* 0 when exec went well: then the pipe closed without a word. */
static int exec_error(int fd)
{
    int error = 0;
    ssize_t length = TEMP_FAILURE_RETRY(read(fd, &error, sizeof(error)));

    close(fd);
    return length == (ssize_t)sizeof(error) ? -error : 0;
}

int seep_child_run(char *const *argv, const struct seep_child_pastime *pastime,
                   struct seep_child *ret_child)
{
    struct inherited inherited;
    struct seep_child child = {0};
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0) {
        return -errno;
    }
    putenv(command_variable);
    take_signals(&inherited);
    child.pid = fork();
    if (child.pid == 0) {
        give_back_signals(&inherited);
        become(argv, fds[1]);
    }
    int error = child.pid < 0 ? -errno : 0;
    close(fds[1]);
    if (error == 0) {
        error = exec_error(fds[0]);
        attend(&child, &inherited.awaited, pastime);
    } else {
        close(fds[0]);
    }
    discard_pending(&inherited);
    give_back_signals(&inherited);
    if (error == 0) {
        *ret_child = child;
    }
    return error;
}
