/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Work that may hang. Invariant: the parent waits for nothing
 * but a pipe with a time limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "probe/probe.h"

#define PIPE_FD 0 /* the child's end of it: it reads nothing from there */
#define DONE 'd'
#define REAP_STEP_NS 200000L
#define REAP_NS UINT64_C(10000000) /* for a child that is dying */

void seep_deadline_let_go(void)
{
    closefrom(PIPE_FD + 1);
}

__attribute__((noreturn)) static void live(void (*work)(void *context),
                                           void *context, const int ends[2],
                                           pid_t parent)
{
    const char done = DONE;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(ends[1], PIPE_FD) < 0) {
        _exit(1);
    }
    closefrom(STDERR_FILENO + 1);
    work(context);
    _exit(write(PIPE_FD, &done, 1) == 1 ? 0 : 1);
}

static uint64_t left_ns(uint64_t until_ns)
{
    uint64_t now_ns = seep_clock_ns(CLOCK_MONOTONIC);

    return until_ns > now_ns ? until_ns - now_ns : 0;
}

/* @return 1 when the child said that it was done, 0 when it ended without,
 * -ETIME */
static int listen_to(int fd, uint64_t until_ns)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    for (;;) {
        uint64_t ns = left_ns(until_ns);
        struct timespec left = {(time_t)(ns / UINT64_C(1000000000)),
                                (long)(ns % UINT64_C(1000000000))};
        char byte;
        int ready = ppoll(&poll_fd, 1, &left, NULL);

        if (ready > 0) {
            ssize_t got = read(fd, &byte, 1);
            if (got >= 0 || errno != EINTR) {
                return got == 1;
            }
        } else if (ready == 0) {
            return -ETIME;
        } else if (errno != EINTR) {
            return -errno;
        }
    }
}

/* So that no zombie is left, where that takes no waiting. @return its signal */
static int reap(pid_t child, uint64_t until_ns)
{
    const struct timespec step = {0, REAP_STEP_NS};
    int status = 0;
    pid_t got;

    while ((got = waitpid(child, &status, WNOHANG)) == 0 &&
           left_ns(until_ns) > 0) {
        nanosleep(&step, NULL);
    }
    return got == child && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void close_pipe(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* Who started us may have closed any of the first three: then a pipe must not
 * take their place. */
static int make_pipe(int ends[2])
{
    int made[2];

    if (pipe(made) != 0) {
        return -errno;
    }
    ends[0] = fcntl(made[0], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ends[1] = fcntl(made[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close_pipe(made);
    if (ends[0] < 0 || ends[1] < 0) {
        int error = -errno;

        close_pipe(ends);
        return error;
    }
    return 0;
}

int seep_deadline_run(void (*work)(void *context), void *context,
                      uint64_t until_ns, int *ret_signal)
{
    pid_t parent = getpid();
    int ends[2] = {-1, -1};
    pid_t child;
    int said;
    int died;
    int error = make_pipe(ends);

    if (error != 0) {
        return error;
    }
    child = fork();
    if (child == 0) {
        live(work, context, ends, parent);
    }
    if (child < 0) {
        error = -errno;
        close_pipe(ends);
        return error;
    }
    close(ends[1]);
    said = listen_to(ends[0], until_ns);
    close(ends[0]);
    if (said != 1) {
        kill(child, SIGKILL);
    }
    died = reap(child, seep_clock_ns(CLOCK_MONOTONIC) + REAP_NS);
    if (ret_signal != NULL) {
        *ret_signal = died;
    }
    return said == 1   ? SEEP_DEADLINE_DONE
           : said == 0 ? SEEP_DEADLINE_DIED
                       : SEEP_DEADLINE_LATE;
}
