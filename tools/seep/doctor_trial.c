/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trial; see doctor_trial.h. Invariant: who is waited for is ours, and a
 * child that does not end is killed with its group and reaped, or left if it
 * cannot even die.
 */
#include "doctor_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "reader/report.h"

#define STEP_MS 20
#define DEATH_LIMIT_NS UINT64_C(2000000000)
#define SECOND_NS 1e9

/* Of all launchers those that a Python is often wrapped in; seep is a launcher
 * as well, and here it is what is recorded. */
#define SKIPPED "sh:dash:bash:zsh:env"

struct run {
    pid_t pid;
    int fds[2]; /* its stdout and stderr */
    uint64_t due_ns;
};

static uint64_t now_ns(void)
{
    return seep_clock_ns(CLOCK_MONOTONIC);
}

/* In the child: the environment that `seep run` would give it. */
static void set_environment(const char *library, const char *sample,
                            const char *folder)
{
    const char *before = getenv("LD_PRELOAD");
    char *text;

    if (library == NULL ||
        asprintf(&text, "%s%s%s", library,
                 before == NULL || *before == '\0' ? "" : ":",
                 before == NULL ? "" : before) < 0) {
        return;
    }
    setenv("LD_PRELOAD", text, 1);
    if (asprintf(&text, "%s/%%n.seep", folder) >= 0) {
        setenv("SEEP_OUT", text, 1);
    }
    setenv("SEEP_OUT_ANY", "1", 1); /* a trial may lie anywhere */
    setenv("SEEP_SAMPLE", sample, 1);
    setenv("SEEP_SIZE", "4MiB", 1);
    setenv("SEEP_PYTHON", "frames", 1);
    setenv("SEEP_SKIP", SKIPPED, 1);
}

static void become(char *const *argv, const int out[2], const int error[2])
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    setpgid(0, 0);
    dup2(null < 0 ? out[0] : null, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(error[1], STDERR_FILENO);
    execv(argv[0], argv);
    _exit(127);
}

static int start(char *const *argv, const char *library, const char *sample,
                 const char *folder, struct run *run)
{
    int out[2];
    int error[2];

    if (pipe2(out, O_CLOEXEC) < 0) {
        return -errno;
    }
    if (pipe2(error, O_CLOEXEC) < 0) {
        close(out[0]);
        close(out[1]);
        return -errno;
    }
    fflush(stdout);
    run->pid = fork();
    int result = run->pid < 0 ? -errno : 0;
    if (run->pid == 0) {
        set_environment(library, sample, folder);
        become(argv, out, error);
    }
    close(out[1]);
    close(error[1]);
    run->fds[0] = out[0];
    run->fds[1] = error[0];
    return result;
}

/* What came, behind what there is; more than fits is thrown away. */
static bool take(int fd, char *text, size_t size)
{
    size_t length = strlen(text);
    char bytes[512];
    ssize_t got = read(fd, bytes, sizeof(bytes));

    for (ssize_t i = 0; i < got && length + 1 < size; i++) {
        text[length++] = bytes[i] == '\0' ? ' ' : bytes[i];
    }
    text[length] = '\0';
    return got > 0;
}

/* Read until both are at their end, or the child has gone and nothing is left
 * in them: one that it started can hold them open. */
static bool follow(struct run *run, struct seep_doctor_trial *trial)
{
    bool ended = false;

    for (;;) {
        struct pollfd polled[2] = {{run->fds[0], POLLIN, 0},
                                   {run->fds[1], POLLIN, 0}};
        bool came = poll(polled, 2, ended ? 0 : STEP_MS) > 0;
        if (came && polled[0].revents != 0 &&
            !take(run->fds[0], trial->output, sizeof(trial->output))) {
            close(run->fds[0]);
            run->fds[0] = -1;
        }
        if (came && polled[1].revents != 0 &&
            !take(run->fds[1], trial->complaint, sizeof(trial->complaint))) {
            close(run->fds[1]);
            run->fds[1] = -1;
        }
        if (ended && !came) {
            return true;
        }
        if (!ended) {
            ended = waitpid(run->pid, &trial->status, WNOHANG) == run->pid;
        }
        if (now_ns() >= run->due_ns) {
            return ended;
        }
        if (!ended && run->fds[0] < 0 && run->fds[1] < 0) {
            poll(NULL, 0, STEP_MS);
        }
    }
}

static void end(struct run *run, bool ended)
{
    struct timespec step = {0, STEP_MS * 1000000L};
    uint64_t due_ns = now_ns() + DEATH_LIMIT_NS;
    int status;

    kill(-run->pid, SIGKILL);
    while (!ended && now_ns() < due_ns) {
        ended = waitpid(run->pid, &status, WNOHANG) == run->pid;
        nanosleep(&step, NULL);
    }
    for (int i = 0; i < 2; i++) {
        if (run->fds[i] >= 0) {
            close(run->fds[i]);
        }
    }
}

static bool has_python(const struct seep_report_site *site)
{
    for (size_t i = 0; i < site->frame_count; i++) {
        if (site->frames[i].python) {
            return true;
        }
    }
    return false;
}

static void read_back(const struct seep_report *report,
                      struct seep_doctor_trial *trial)
{
    trial->recorded = true;
    trial->inert = report->inert;
    trial->unwinder = report->unwinder;
    trial->python_state = report->python_state;
    trial->event_count = report->pending_events;
    for (size_t i = 0; i < report->counter_count; i++) {
        if (strcmp(report->counters[i].name, "events") == 0) {
            trial->event_count += report->counters[i].value;
        }
    }
    trial->stack_count = report->site_count;
    trial->whole_count = 0;
    trial->python_count = 0;
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];
        trial->whole_count +=
            site->cut == SEEP_CUT_NONE || site->cut == SEEP_CUT_DEPTH;
        trial->python_count += has_python(site);
    }
}

/* Of several images (a launcher, and what it started) the last one that has a
 * Python counts, else the last. */
static void take_recording(const char *path, struct seep_doctor_trial *trial)
{
    struct seep_report_options options = {.symbols = false};
    struct seep_report *report;

    if (seep_report_open(path, &options, NULL, &report) == 0) {
        if (report->python_state != SEEP_PYTHON_NONE ||
            trial->python_state == SEEP_PYTHON_NONE) {
            read_back(report, trial);
        }
        seep_report_close(report);
    }
}

/* Read what lies in @folder and take it away. */
static void harvest(const char *folder, struct seep_doctor_trial *trial)
{
    char **paths;

    if (seep_report_list(folder, NULL, &paths) == 0) {
        for (size_t i = 0; paths[i] != NULL; i++) {
            take_recording(paths[i], trial);
            unlink(paths[i]);
        }
        seep_report_list_free(paths);
    }
    rmdir(folder);
}

static int make_folder(char folder[PATH_MAX])
{
    const char *temporary = getenv("TMPDIR");

    snprintf(folder, PATH_MAX, "%s/seep-doctor-XXXXXX",
             temporary != NULL && *temporary == '/' ? temporary : "/tmp");
    if (mkdtemp(folder) != NULL) {
        return 0;
    }
    /* a root that is read-only still has this, mostly */
    snprintf(folder, PATH_MAX, "/dev/shm/seep-doctor-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -errno;
}

void seep_doctor_try(char *const *argv, const char *library, const char *sample,
                     double limit_s, struct seep_doctor_trial *ret_trial)
{
    struct run run = {.due_ns = now_ns() + (uint64_t)(limit_s * SECOND_NS)};
    char folder[PATH_MAX];

    *ret_trial = (struct seep_doctor_trial){.error = make_folder(folder)};
    if (ret_trial->error < 0) {
        return;
    }
    ret_trial->error = start(argv, library, sample, folder, &run);
    if (ret_trial->error == 0) {
        bool ended = follow(&run, ret_trial);
        end(&run, ended);
        ret_trial->error = ended ? 0 : -ETIMEDOUT;
    }
    harvest(folder, ret_trial);
    ret_trial->complaint[strcspn(ret_trial->complaint, "\n")] = '\0';
}
