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
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/thread.h"
#include "options/option.h"
#include "probe/probe.h"
#include "verbs.h"
#include "words/units.h"

/*
 * The command line. Invariant: no file is looked at here, for that is what may
 * hang.
 */

#define DEADLINE_S 0.8 /* of the second that Kubernetes gives */
#define DEADLINE_MOST_S 3600

static int take_size(const char *verb, const char *value, void *target)
{
    uint64_t bytes;

    if (seep_size_parse(value, &bytes) < 0) {
        return seep_say_value(verb, value, "a size such as 2GiB");
    }
    *(double *)target = (double)bytes;
    return 0;
}

static int take_rate(const char *verb, const char *value, void *target)
{
    return seep_units_parse_rate(value, target) == 0
               ? 0
               : seep_say_value(verb, value, "a rate such as 20MiB/min");
}

static int take_time(const char *verb, const char *value, void *target)
{
    return seep_units_parse_duration(value, target) == 0
               ? 0
               : seep_say_value(verb, value, "a time such as 30s");
}

static int take_deadline(const char *verb, const char *value, void *target)
{
    double *seconds = target;
    int code = take_time(verb, value, seconds);

    return code != 0 || (*seconds > 0 && *seconds <= DEADLINE_MOST_S)
               ? code
               : seep_say_value(verb, value, "a time such as 800ms");
}

static int take_tolerance(const char *verb, const char *value, void *target)
{
    static const char *const names[] = {"ready", "not-ready"};
    size_t index = 0;
    int code = seep_option_choose(verb, value, names, 2, &index);

    *(bool *)target = code == 0 && index == 0;
    return code;
}

#define AT(member) offsetof(struct seep_probe_arguments, member)

static const struct seep_option table[] = {
    SEEP_OPTION("gpu-free", "SIZE", take_size, AT(gpu_free_bytes),
                "that must be left on each GPU, such as 2GiB"),
    SEEP_OPTION("host-free", "SIZE", take_size, AT(host_free_bytes),
                "that must be left on the host: in its control\n"
                "group, or on the machine"),
    SEEP_OPTION("max-growth", "RATE", take_rate, AT(growth_bytes_per_s),
                "such as 20MiB/min, of its memory on the host and\n"
                "on each GPU; the lower bound decides"),
    SEEP_OPTION("max-age", "TIME", take_time, AT(age_s),
                "since the last event was recorded"),
    SEEP_OPTION("deadline", "TIME", take_deadline, AT(deadline_s),
                "for the answer (800ms)"),
    SEEP_OPTION("strict", NULL, seep_option_set, AT(strict),
                "if unknown, not ready: exit status 4"),
    SEEP_OPTION("not-configured", "W", take_tolerance, AT(tolerant),
                "ready or not-ready (default): the answer if the\n"
                "folder is missing or not readable"),
    SEEP_OPTION("tell", "FILE", seep_option_text, AT(tell),
                "write the line to this file as well"),
    SEEP_OPTION("json", NULL, seep_option_set, AT(json),
                "one JSON document (schema seep-probe/1)"),
    {0},
};

static const struct seep_options options = {
    .verb = "probe",
    .column = 22,
    .usage =
        "usage: seep probe LIMITS [OPTIONS] RECORDING|DIR...\n\n"
        "Are the recorded processes ready for requests? One line and an exit code,\n"
        "before the deadline, whatever hangs; of several processes the worst counts.\n",
    .table = table,
    .exits =
        "exit status: 0 ready, 3 too little memory left, 5 it grows too fast,\n"
        "6 stale or ended, 7 the recording is missing or not readable,\n"
        "4 unknown (0 without --strict), 2 wrong usage, 1 the probe failed\n",
};

static bool has_limit(const struct seep_probe_arguments *arguments)
{
    return arguments->gpu_free_bytes >= 0 || arguments->host_free_bytes >= 0 ||
           arguments->growth_bytes_per_s >= 0 || arguments->age_s >= 0;
}

/* @return 0; SEEP_OPTIONS_HELP; the exit code after saying what is wrong */
static int parse(int argc, char **argv,
                 struct seep_probe_arguments *ret_arguments)
{
    *ret_arguments = (struct seep_probe_arguments){
        .gpu_free_bytes = SEEP_PROBE_UNTOLD,
        .host_free_bytes = SEEP_PROBE_UNTOLD,
        .growth_bytes_per_s = SEEP_PROBE_UNTOLD,
        .age_s = SEEP_PROBE_UNTOLD,
        .deadline_s = DEADLINE_S,
    };
    int code = seep_options_parse(&options, argc, argv, ret_arguments);

    if (code != 0) {
        return code;
    }
    if (!has_limit(ret_arguments)) {
        return seep_say_usage("probe",
                              "no limit given, such as --gpu-free 2GiB");
    }
    return optind < argc ? 0 : seep_say_usage("probe", "no recording given");
}

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

    seep_word_store(probe->said, error == 0 ? 1 : error);
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
        seep_say("probe", strerror(-error),
                 "check whether processes can start");
        return SEEP_EXIT_FAILED;
    }
    said = seep_word_load(probe->said);
    free(probe->text);
    if (said < 0 && probe->answer.code == SEEP_EXIT_FINE) {
        seep_say("stdout", strerror(-said),
                 "check the disk or the pipe that it goes to");
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
        code = parse(argc, argv, &probe->arguments);
    }
    if (code == 0) {
        probe->started_ns = started_ns;
        probe->paths = argv + optind;
        probe->path_count = (size_t)(argc - optind);
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
    return seep_options_exit(&options, code);
}
