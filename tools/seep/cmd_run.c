/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep run: a command under seep, and the report when it has ended.
 *
 * Nothing of ours is on stdout, and on stderr only what a person at a
 * terminal, or --report, asked for; the exit status is the command's.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "absent.h"
#include "base/clock.h"
#include "child.h"
#include "gate.h"
#include "gather.h"
#include "harvest.h"
#include "knowledge.h"
#include "launch.h"
#include "option.h"
#include "page.h"
#include "say.h"
#include "verbs.h"
#include "view_text.h"
#include "watch.h"

#define SCAN_EVERY_NS UINT64_C(1000000000)
/* A scan that took long (a folder of thousands) rests so many times as long. */
#define SCAN_REST 50

static const char help[] =
    "usage: seep run [OPTIONS] -- COMMAND [ARGUMENTS]\n\n"
    "Run COMMAND, with its children, so that each process leaves a recording,\n"
    "and report at the end if stderr is a terminal.\n\n"
    "  -o, --out PATTERN where recordings go, a folder or a name with %p pid,\n"
    "                    %e program, %h host, %t time, %n number\n"
    "                    (default " SEEP_LAUNCH_PATTERN ")\n" SEEP_LAUNCH_HELP
    "  --report          report even if stderr is no terminal\n"
    "  --no-report       do not report\n"
    "  --check OPTIONS   hold the run against limits, as `seep check OPTIONS`\n"
    "                    would: if the command succeeds, its status is the\n"
    "                    exit status; what it prints is on stderr\n"
    "  --no-looks        do not look at the processes' mappings while they "
    "run\n" SEEP_KNOWLEDGE_HELP "  -h, --help        this\n\n"
    "exit status: the command's, 128 + N if signal N ended it, 127 if it was\n"
    "not found, 126 if it could not be executed; 1 nothing was started, 2\n"
    "wrong usage; --check where the command succeeds: 3 a limit is broken,\n"
    "4 not enough data\n";

enum { REPORT = 256, NO_REPORT, NO_LOOKS, CHECK };
enum when { WHEN_TERMINAL, WHEN_ALWAYS, WHEN_NEVER };

static const struct option options[] = {
    {"out", required_argument, NULL, SEEP_LAUNCH_OUT},
    {"report", no_argument, NULL, REPORT},
    {"no-report", no_argument, NULL, NO_REPORT},
    {"no-looks", no_argument, NULL, NO_LOOKS},
    {"check", required_argument, NULL, CHECK},
    SEEP_KNOWLEDGE_OPTIONS,
    SEEP_LAUNCH_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

struct arguments {
    enum when when;
    bool looks;
    bool report;        /* worked out from .when */
    const char *limits; /* text of --check; NULL: none */
    char **limit_words; /* and its words */
    struct seep_check_arguments check;
    struct seep_launch_options launch;
    struct seep_knowledge knowledge;
};

static void print_place(struct seep_page *page, char *const *paths,
                        size_t count)
{
    if (count == 1) {
        seep_page_paragraph(page, SEEP_INK_STRONG, "file", 8, "%s", paths[0]);
        return;
    }
    const char *slash = strrchr(paths[0], '/');
    seep_page_paragraph(page, SEEP_INK_STRONG, "files", 8,
                        "%zu recordings in %.*s", count,
                        (int)(slash - paths[0] + 1), paths[0]);
}

static void print_reports(char *const *paths, size_t count,
                          const struct seep_knowledge *knowledge)
{
    struct seep_report_options report = {
        .by = SEEP_BY_LINE,
        .symbols = true,
        .site_limit = SEEP_TEXT_SITES_DEFAULT,
        .catalogue = knowledge->catalogue,
        .suppressions = knowledge->suppressions,
        .known = knowledge->known,
    };
    struct seep_text_options text = {
        .site_limit = SEEP_TEXT_SITES_DEFAULT,
        .process_limit = SEEP_TEXT_PROCESSES_DEFAULT,
        .brief = true,
        .catalogue = knowledge->catalogue,
    };
    struct seep_gathering gathering;
    struct seep_page page;

    seep_gather(paths, count, &report, &gathering);
    seep_page_init(&page, stderr, SEEP_COLOR_AUTO);
    seep_page_end_line(&page);
    seep_view_text_reports(&page,
                           (const struct seep_report *const *)gathering.reports,
                           gathering.count, &text);
    print_place(&page, paths, count);
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
        print_reports(paths, count, &arguments->knowledge);
    } else if (arguments->report) {
        struct seep_absent absent = seep_absent_explain(command, out);
        seep_say(command, absent.reason, absent.remedy);
    }
    return arguments->limits != NULL
               ? seep_gate(paths, count, &arguments->check, stderr)
               : SEEP_EXIT_FINE;
}

struct looking {
    const struct seep_harvest *harvest;
    struct seep_watch *watch;
    uint64_t scan_ns; /* when new recordings are looked for */
};

static uint64_t now_ns(void)
{
    return seep_clock_ns(CLOCK_MONOTONIC);
}

static void add_recording(void *context, const char *path)
{
    seep_watch_add(context, path);
}

/* Workers may start at any time. */
static void scan(struct looking *looking)
{
    uint64_t before_ns = now_ns();

    seep_harvest_visit(looking->harvest, add_recording, looking->watch);
    uint64_t after_ns = now_ns();
    uint64_t rest_ns = SCAN_REST * (after_ns - before_ns);
    looking->scan_ns =
        after_ns + (rest_ns > SCAN_EVERY_NS ? rest_ns : SCAN_EVERY_NS);
}

static uint64_t look(void *context)
{
    struct looking *looking = context;

    if (now_ns() >= looking->scan_ns) {
        scan(looking);
    }
    uint64_t pause_ns = seep_watch_attend(looking->watch);
    uint64_t now = now_ns();
    uint64_t scan_pause_ns =
        looking->scan_ns > now ? looking->scan_ns - now : 0;
    return pause_ns < scan_pause_ns ? pause_ns : scan_pause_ns;
}

/* Without memory for looks it runs without them. */
static int run_child(char *const *argv, const struct seep_harvest *harvest,
                     bool looks, struct seep_child *ret_child)
{
    struct looking looking = {.harvest = harvest};
    struct seep_child_pastime pastime = {look, &looking};

    looks = looks && seep_watch_open(&looking.watch) == 0;
    int error = seep_child_run(argv, looks ? &pastime : NULL, ret_child);
    seep_watch_close(looking.watch);
    return error;
}

static int refuse_command(const char *command, int error)
{
    bool missing = error == -ENOENT;

    seep_say(command, missing ? "was not found" : strerror(-error),
             missing ? "look at its name and at PATH"
                     : "see whether it is a program that you may run");
    return missing ? SEEP_EXIT_NOT_FOUND : SEEP_EXIT_CANNOT_RUN;
}

static int exit_of(const struct seep_child *child)
{
    return WIFSIGNALED(child->status)
               ? SEEP_EXIT_SIGNAL + WTERMSIG(child->status)
               : WEXITSTATUS(child->status);
}

/* A command that failed did: what was measured of it comes after that. */
static int run(char *const *argv, const struct seep_launch *launch,
               struct arguments *arguments)
{
    struct seep_harvest *harvest = NULL;
    struct seep_child child;
    int checked = SEEP_EXIT_FINE;
    int error = seep_launch_make_folders(launch);

    if (error < 0) {
        seep_say(launch->out, strerror(-error), "name another place with -o");
        return SEEP_EXIT_FAILED;
    }
    error = seep_harvest_open(launch->out, &harvest);
    if (error == 0) {
        error = seep_launch_apply(launch);
    }
    if (error < 0) {
        seep_harvest_close(harvest);
        seep_say("run", strerror(-error), NULL);
        return SEEP_EXIT_FAILED;
    }
    error = run_child(argv, harvest, arguments->looks, &child);
    if (error == 0) {
        checked = finish(harvest, &child, argv[0], launch->out, arguments);
    }
    seep_harvest_close(harvest);
    if (error < 0) {
        return refuse_command(argv[0], error);
    }
    return exit_of(&child) != SEEP_EXIT_FINE ? exit_of(&child) : checked;
}

static int take_option(int option, struct arguments *arguments)
{
    switch (option) {
    case REPORT:
        arguments->when = WHEN_ALWAYS;
        return 0;
    case NO_REPORT:
        arguments->when = WHEN_NEVER;
        return 0;
    case NO_LOOKS:
        arguments->looks = false;
        return 0;
    case CHECK:
        arguments->limits = optarg;
        return 0;
    default:
        return seep_knowledge_is_option(option)
                   ? seep_knowledge_take(option, optarg, &arguments->knowledge)
                   : seep_launch_take(option, optarg, &arguments->launch);
    }
}

/* What is wrong with limits is said before the command has run. */
static int take_limits(struct arguments *arguments)
{
    int count;
    int code;

    if (seep_check_options_split(arguments->limits, &arguments->limit_words,
                                 &count) < 0) {
        return seep_say_usage("run", arguments->limits,
                              "has a quote that is not closed");
    }
    code = seep_check_options_parse("check", count, arguments->limit_words,
                                    &arguments->check);
    if (code == 0 && arguments->check.help) {
        code = seep_say_usage("run", "--check", "needs limits");
    }
    if (code == 0 && arguments->check.first < count) {
        code = seep_say_usage("run",
                              arguments->limit_words[arguments->check.first],
                              "is no option of `seep check`; what is checked "
                              "is this run");
    }
    return code;
}

/* A file that the report needs is missed before the command has run. */
static int prepare_and_run(char *const *argv, struct arguments *arguments)
{
    struct seep_launch launch;
    int code = 0;

    arguments->report =
        arguments->when == WHEN_ALWAYS ||
        (arguments->when == WHEN_TERMINAL && isatty(STDERR_FILENO));
    if (arguments->report) {
        code = seep_knowledge_load(&arguments->knowledge);
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
        .looks = true, .launch.verb = "run", .knowledge.verb = "run"};
    int code = 0;
    int option;

    while (code == 0 && (option = seep_option_next("run", argc, argv, "+:o:h",
                                                   options)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            seep_knowledge_close(&arguments.knowledge);
            return SEEP_EXIT_FINE;
        }
        code = take_option(option, &arguments);
    }
    if (code == 0 && optind == argc) {
        code = seep_say_usage("run", "run", "no command was named");
    }
    argv += optind;
    if (code == 0 && arguments.limits != NULL) {
        code = take_limits(&arguments);
    }
    if (code == 0) {
        code = prepare_and_run(argv, &arguments);
    }
    seep_check_options_close(&arguments.check);
    free(arguments.limit_words);
    seep_knowledge_close(&arguments.knowledge);
    return code;
}
