/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep run: a command under seep, and the report when it has ended.
 *
 * Nothing of ours is on stdout; on stderr what cannot work, what was recorded,
 * or why nothing was, and the report that a person at a terminal, or --report,
 * asked for. The exit status is the command's.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/syscall.h"
#include "base/thread.h"
#include "cmd_check.h"
#include "options/option.h"
#include "read/follow.h"
#include "read/gather.h"
#include "run/launch.h"
#include "run/run.h"
#include "text/page.h"
#include "text/report.h"
#include "verbs.h"
#include "words/held.h"

#define SCAN_EVERY_NS UINT64_C(1000000000)
/* A scan that took long (a folder of thousands) rests so many times as long. */
#define SCAN_REST 50

struct arguments {
    uint64_t denied_calls; /* a filter kills for them: base/syscall.h */
    bool samples;          /* external ones are taken */
    bool asks;             /* who holds what leaks */
    bool was_refused;      /* and may not */
    bool quiet;
    bool report;
    const char *limits; /* text of --check; NULL: none */
    char **limit_words; /* and its words */
    struct seep_check_arguments check;
    struct seep_launch_options launch;
    struct seep_report_options reading; /* for the report */
    struct seep_knowledge knowledge;
};

static void print_reports(char *const *paths, size_t count,
                          const struct seep_report_options *reading)
{
    struct seep_text_options text = {
        .site_limit = SEEP_TEXT_SITES_DEFAULT,
        .process_limit = SEEP_TEXT_PROCESSES_DEFAULT,
        .brief = true,
        .catalogue = reading->catalogue,
    };
    struct seep_gathering gathering;
    struct seep_page page;

    seep_gather(paths, count, reading, &gathering);
    seep_page_init(&page, stderr, SEEP_COLOR_AUTO);
    seep_page_end_line(&page);
    seep_view_text_reports(&page, gathering.reports, gathering.count, &text);
    seep_gather_close(&gathering);
}

/* @return of the check, if there is one */
static int finish(struct seep_harvest *harvest, const struct seep_child *child,
                  const char *command, const char *out,
                  struct arguments *arguments)
{
    char **paths;
    size_t count;

    if (seep_harvest_collect(harvest, &paths, &count) < 0) {
        return arguments->limits != NULL ? SEEP_EXIT_FAILED : SEEP_EXIT_FINE;
    }
    seep_harvest_put_status(paths, count, child);
    if (arguments->report && count > 0) {
        print_reports(paths, count, &arguments->reading);
    }
    if (!arguments->quiet && arguments->was_refused) {
        seep_say(command, seep_words_held_refused(),
                 seep_words_held_refused_remedy());
    }
    if (!arguments->quiet) {
        seep_notice_after(paths, count, command, out, child, arguments->report);
    }
    return arguments->limits != NULL
               ? seep_gate(paths, count, &arguments->check, stderr)
               : SEEP_EXIT_FINE;
}

struct sampling {
    const struct seep_harvest *harvest;
    struct seep_watch *watch;
    uint64_t scan_ns; /* when new recordings are looked for */
};

static void add_recording(void *context, const char *path)
{
    seep_watch_add(context, path);
}

/* Target processes may start at any time. */
static void scan(struct sampling *sampling)
{
    uint64_t before_ns = seep_clock_ns(CLOCK_MONOTONIC);

    seep_harvest_visit(sampling->harvest, add_recording, sampling->watch);
    uint64_t after_ns = seep_clock_ns(CLOCK_MONOTONIC);
    uint64_t rest_ns = SCAN_REST * (after_ns - before_ns);
    sampling->scan_ns =
        after_ns + (rest_ns > SCAN_EVERY_NS ? rest_ns : SCAN_EVERY_NS);
}

static uint64_t sample(void *context)
{
    struct sampling *sampling = context;

    if (seep_clock_ns(CLOCK_MONOTONIC) >= sampling->scan_ns) {
        scan(sampling);
    }
    uint64_t pause_ns = seep_watch_attend(sampling->watch);
    uint64_t now = seep_clock_ns(CLOCK_MONOTONIC);
    uint64_t scan_pause_ns =
        sampling->scan_ns > now ? sampling->scan_ns - now : 0;
    return pause_ns < scan_pause_ns ? pause_ns : scan_pause_ns;
}

static bool owns(void *context, pid_t pid)
{
    const struct sampling *sampling = context;

    return seep_watch_owns(sampling->watch, pid);
}

/* Without memory for external samples it runs without them. */
static int run_child(char *const *argv, const struct seep_harvest *harvest,
                     struct arguments *arguments, struct seep_child *ret_child)
{
    struct sampling sampling = {.harvest = harvest};
    struct seep_child_pastime pastime = {sample, owns, &sampling};
    bool samples = arguments->samples && seep_watch_open(&sampling.watch) == 0;

    if (samples && arguments->asks) {
        seep_watch_ask(sampling.watch);
    }
    int error = seep_child_run(argv, samples ? &pastime : NULL, ret_child);
    seep_watch_stop(sampling.watch);
    arguments->was_refused = seep_watch_was_refused(sampling.watch);
    seep_watch_close(sampling.watch);
    return error;
}

static int refuse_command(const char *command, int error)
{
    bool missing = error == -ENOENT;

    seep_say(command, missing ? "command not found" : strerror(-error),
             missing ? "check its name and PATH"
                     : "check whether you may execute it");
    return missing ? SEEP_EXIT_NOT_FOUND : SEEP_EXIT_CANNOT_RUN;
}

static int exit_of(const struct seep_child *child)
{
    return WIFSIGNALED(child->status)
               ? SEEP_EXIT_SIGNAL + WTERMSIG(child->status)
               : WEXITSTATUS(child->status);
}

/* System calls that this program makes itself, before the command is run. */
#define OWN_CALLS                                                              \
    (SEEP_CALL_BIT(faccessat) | SEEP_CALL_BIT(fcntl) | SEEP_CALL_BIT(futex) |  \
     SEEP_CALL_BIT(getcwd) | SEEP_CALL_BIT(getdents64) |                       \
     SEEP_CALL_BIT(geteuid) | SEEP_CALL_BIT(ioctl) | SEEP_CALL_BIT(pwrite64) | \
     SEEP_CALL_BIT(rt_sigprocmask) | SEEP_CALL_BIT(statfs) |                   \
     SEEP_CALL_BIT(write))

static bool prevents_a_recording(uint64_t denied)
{
    return (denied & (SEEP_CALLS_ALL_NEEDED | OWN_CALLS)) != 0;
}

/* A filter that kills is told before the command has run. */
static void tell_filter(uint64_t denied)
{
    bool prevents = prevents_a_recording(denied);
    char reason[512];
    char names[384];

    if (denied == 0 || (denied & SEEP_CALL_BIT(write)) != 0) {
        return;
    }
    seep_launch_name_calls(
        prevents ? denied & (SEEP_CALLS_ALL_NEEDED | OWN_CALLS) : denied, names,
        sizeof(names));
    snprintf(reason, sizeof(reason), "kills for %s: %s", names,
             prevents ? "nothing will be recorded"
                      : "recording goes on without");
    seep_say("seccomp filter", reason,
             "allow these system calls in it, or let it return an error");
}

/* The command alone, in our place: we would not live to see its end. Limits
 * that nothing is held against are not kept. */
static int stand_aside(char *const *argv, const struct arguments *arguments)
{
    if (!arguments->quiet || arguments->limits != NULL) {
        tell_filter(arguments->denied_calls);
    }
    if (arguments->limits != NULL) {
        return SEEP_EXIT_FAILED;
    }
    execvp(argv[0], argv);
    return refuse_command(argv[0], -errno);
}

/* A command that failed did: what was measured of it comes after that. */
static int run(char *const *argv, struct seep_launch *launch,
               struct arguments *arguments)
{
    struct seep_harvest *harvest = NULL;
    struct seep_child child;
    int checked = SEEP_EXIT_FINE;
    int folder_error = seep_launch_make_folders(launch);
    int error;

    error = seep_harvest_open(launch->out, &harvest);
    if (error == 0) {
        error = seep_launch_apply(launch);
    }
    if (error < 0) {
        seep_harvest_close(harvest);
        seep_launch_drop_folders(launch);
        seep_say("run", strerror(-error), NULL);
        return SEEP_EXIT_FAILED;
    }
    if (!arguments->quiet) {
        tell_filter(arguments->denied_calls);
        seep_notice_before(argv[0], launch->out, folder_error);
    }
    /* why there is none is told already */
    arguments->quiet |= prevents_a_recording(arguments->denied_calls);
    error = run_child(argv, harvest, arguments, &child);
    if (error == 0) {
        checked = finish(harvest, &child, argv[0], launch->out, arguments);
    }
    seep_harvest_close(harvest);
    seep_launch_drop_folders(launch);
    if (error < 0) {
        return refuse_command(argv[0], error);
    }
    return exit_of(&child) != SEEP_EXIT_FINE ? exit_of(&child) : checked;
}

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    SEEP_OPTION_OUT(AT(launch.out),
                    "where recordings go: a folder, or a name with %p pid,\n"
                    "%e program, %h host, %t time, %n number\n"
                    "(default " SEEP_LAUNCH_PATTERN ")"),
    {.group = seep_launch_options, .offset = AT(launch)},
    SEEP_OPTION("report", NULL, seep_option_set, AT(report),
                "report even if stderr is not a terminal"),
    SEEP_OPTION("no-report", NULL, seep_option_clear, AT(report),
                "do not print a report"),
    SEEP_OPTION("quiet", NULL, seep_option_set, AT(quiet),
                "do not even say what was recorded, or why not"),
    SEEP_OPTION("check", "OPTIONS", seep_option_text, AT(limits),
                "check the run against limits, as `seep check OPTIONS`\n"
                "would; if the command succeeds, this sets the exit\n"
                "status; its output goes to stderr"),
    SEEP_OPTION("no-looks", NULL, seep_option_clear, AT(samples),
                "do not sample the processes' mappings from outside"),
    SEEP_OPTION("no-held", NULL, seep_option_clear, AT(asks),
                "do not look who holds what leaks"),
    {.group = seep_knowledge_options, .offset = AT(knowledge)},
    {0},
};

static const struct seep_options options = {
    .verb = "run",
    .leads = true,
    .usage =
        "usage: seep run [OPTIONS] -- COMMAND [ARGUMENTS]\n\n"
        "Run COMMAND and its children so that each process leaves a recording, and\n"
        "print a report at the end if stderr is a terminal.\n",
    .table = table,
    .exits =
        "exit status: the command's, 128 + N if signal N ended it, 127 if it was\n"
        "not found, 126 if it could not be executed; 1 nothing was started, 2\n"
        "wrong usage; with --check, if the command succeeds: 3 a limit is violated,\n"
        "4 not enough data\n",
};

/* What is wrong with limits is said before the command has run. */
static int take_limits(struct arguments *arguments)
{
    int count;
    int code;

    if (seep_check_options_split(arguments->limits, &arguments->limit_words,
                                 &count) < 0) {
        return seep_say_usage("run", "unclosed quote in \"%s\"",
                              arguments->limits);
    }
    code = seep_check_options_parse(count, arguments->limit_words,
                                    &arguments->check);
    if (code == SEEP_OPTIONS_HELP) {
        code = seep_say_usage("run", "no limit given to --check");
    }
    if (code == 0 && arguments->check.first < count) {
        code = seep_say_usage(
            "run", "--check takes options only, not \"%s\": it checks this run",
            arguments->limit_words[arguments->check.first]);
    }
    return code;
}

/* A file that the report needs is missed before the command has run. */
static int prepare_and_run(char *const *argv, struct arguments *arguments)
{
    struct seep_launch launch;
    int code = 0;

    if (arguments->report) {
        code = seep_knowledge_load(&arguments->knowledge, &arguments->reading);
    }
    if (code == 0) {
        code = seep_launch_prepare(&arguments->launch, &launch);
    }
    if (code != 0) {
        return code;
    }
    code = run(argv, &launch, arguments);
    seep_launch_close(&launch);
    return code;
}

int seep_cmd_run(int argc, char **argv)
{
    struct arguments arguments = {
        .samples = true,
        .asks = true,
        .reading = {.symbols = true,
                    .by = SEEP_BY_LINE,
                    .site_limit = SEEP_TEXT_SITES_DEFAULT},
    };
    int code = seep_launch_put_filter(&arguments.denied_calls);

    if (code < 0) {
        seep_say("run", strerror(-code), NULL);
        return SEEP_EXIT_FAILED;
    }
    arguments.report = (arguments.denied_calls & SEEP_CALL_BIT(ioctl)) == 0 &&
                       isatty(STDERR_FILENO);
    code = seep_options_parse(&options, argc, argv, &arguments);
    if (code == 0 && optind == argc) {
        code = seep_say_usage("run", "no command given");
    }
    argv += optind;
    if (code == 0 && arguments.limits != NULL) {
        code = take_limits(&arguments);
    }
    if (code == 0) {
        code = (arguments.denied_calls & OWN_CALLS) != 0
                   ? stand_aside(argv, &arguments)
                   : prepare_and_run(argv, &arguments);
    }
    seep_check_options_close(&arguments.check);
    free(arguments.limit_words);
    seep_knowledge_close(&arguments.knowledge);
    return seep_options_exit(&options, code);
}
