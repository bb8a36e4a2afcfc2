/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep probe: readiness in one line, before the deadline.
 *
 * Invariant: nothing that may wait for ever is done by this process itself,
 * neither to read nor to write; children do, and are left behind when
 * their time is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "deadline.h"
#include "probe.h"
#include "say.h"
#include "verbs.h"

/* Of the deadline, what is kept for the answer, and then for the end. */
#define ANSWER_SHARE 0.1
#define ANSWER_MOST_S 0.05
#define END_SHARE 0.25 /* of that */

struct probe {
    struct seep_probe_arguments arguments;
    struct seep_probe_answer answer;
    char *const *paths;
    size_t path_count;
    uint64_t started_ns;
    char line[SEEP_PROBE_LINE_BYTES];
    char *text; /* for stdout */
    size_t text_bytes;
    bool printed;      /* by this process itself */
    _Atomic int *said; /* shared: 1 when stdout has it, else negative errno */
};

static void *share(size_t bytes)
{
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return shared == MAP_FAILED ? NULL : shared;
}

static void gather(void *context)
{
    struct probe *probe = context;

    seep_deadline_let_go();
    seep_probe_gather(probe->paths, probe->path_count, probe->answer.set);
}

static int write_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t wrote = write(fd, text, bytes);

        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return wrote < 0 ? -errno : -EIO;
        }
        text += wrote;
        bytes -= (size_t)wrote;
    }
    return 0;
}

/* In place: what is mounted into a container cannot be renamed over. */
static void tell(const char *path, const char *line)
{
    int fd = open(
        path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
        0644);

    if (fd >= 0) {
        write_all(fd, line, strlen(line));
        close(fd);
    }
}

static void print(struct probe *probe)
{
    int error = write_all(STDOUT_FILENO, probe->text, probe->text_bytes);

    atomic_store_explicit(probe->said, error == 0 ? 1 : error,
                          memory_order_relaxed);
}

/* A pipe with room takes so much at once, and who starts a probe reads its
 * answer by a pipe: that saves a child. */
static bool has_room(size_t bytes)
{
    struct pollfd poll_fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
    struct stat status;

    return bytes <= PIPE_BUF && fstat(STDOUT_FILENO, &status) == 0 &&
           S_ISFIFO(status.st_mode) && poll(&poll_fd, 1, 0) == 1 &&
           poll_fd.revents == POLLOUT;
}

static void say(void *context)
{
    struct probe *probe = context;

    if (!probe->printed) {
        print(probe);
    }
    seep_deadline_let_go();
    if (probe->arguments.tell != NULL) {
        strcat(probe->line, "\n");
        tell(probe->arguments.tell, probe->line);
    }
}

/* When to be done, with @share of what is kept for the answer left. */
static uint64_t before_deadline(const struct probe *probe, double share)
{
    double deadline_s = probe->arguments.deadline_s;
    double kept_s = ANSWER_SHARE * deadline_s;

    kept_s = kept_s < ANSWER_MOST_S ? kept_s : ANSWER_MOST_S;
    return probe->started_ns + (uint64_t)((deadline_s - share * kept_s) * 1e9);
}

/* @return 0, or negative errno where no child could be made */
static int judge(struct probe *probe)
{
    int result = seep_deadline_run(gather, probe, before_deadline(probe, 1),
                                   &probe->answer.signal);

    if (result < 0) {
        return result;
    }
    probe->answer.late = result == SEEP_DEADLINE_LATE;
    if (result != SEEP_DEADLINE_DIED) {
        probe->answer.signal = 0;
    }
    probe->answer.elapsed_s =
        (double)(seep_clock_ns(CLOCK_MONOTONIC) - probe->started_ns) / 1e9;
    seep_probe_judge(&probe->answer);
    seep_probe_line(&probe->answer, probe->line);
    return 0;
}

static int compose(struct probe *probe)
{
    FILE *file = open_memstream(&probe->text, &probe->text_bytes);

    if (file == NULL) {
        return -ENOMEM;
    }
    if (probe->arguments.json) {
        seep_probe_json(&probe->answer, probe->line, file);
    } else {
        fprintf(file, "%s\n", probe->line);
    }
    return fclose(file) == 0 ? 0 : -ENOMEM;
}

/* @return as seep_deadline_run() */
static int answer(struct probe *probe)
{
    signal(SIGPIPE, SIG_IGN);
    if (has_room(probe->text_bytes)) {
        print(probe);
        probe->printed = true;
    }
    return probe->printed && probe->arguments.tell == NULL
               ? SEEP_DEADLINE_DONE
               : seep_deadline_run(say, probe,
                                   before_deadline(probe, END_SHARE), NULL);
}

static int run(struct probe *probe)
{
    int said;
    int error = judge(probe);

    if (error == 0) {
        error = compose(probe);
    }
    if (error == 0) {
        error = answer(probe);
    }
    if (error < 0) {
        seep_say("probe", strerror(-error), "see whether processes can start");
        return SEEP_EXIT_FAILED;
    }
    said = atomic_load_explicit(probe->said, memory_order_relaxed);
    free(probe->text);
    if (said < 0 && probe->answer.code == SEEP_EXIT_FINE) {
        seep_say("stdout", strerror(-said),
                 "look at the disk or the pipe that it goes to");
        return SEEP_EXIT_FAILED;
    }
    return probe->answer.code;
}

int seep_cmd_probe(int argc, char **argv)
{
    struct probe *probe = calloc(1, sizeof(*probe));
    uint64_t started_ns = seep_clock_ns(CLOCK_MONOTONIC);
    int code = SEEP_EXIT_FAILED;

    if (probe != NULL) {
        code = seep_probe_options_parse(argc, argv, &probe->arguments);
    }
    if (code == 0 && probe->arguments.help) {
        fputs(seep_probe_help, stdout);
    } else if (code == 0) {
        probe->started_ns = started_ns;
        probe->paths = argv + probe->arguments.first;
        probe->path_count = (size_t)(argc - probe->arguments.first);
        probe->answer.arguments = &probe->arguments;
        probe->answer.set = share(sizeof(*probe->answer.set));
        probe->said = share(sizeof(*probe->said));
        if (probe->answer.set == NULL || probe->said == NULL) {
            seep_say("probe", strerror(ENOMEM), NULL);
            code = SEEP_EXIT_FAILED;
        } else {
            code = run(probe);
        }
    }
    free(probe);
    return code;
}
