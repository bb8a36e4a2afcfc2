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
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absent.h"
#include "child.h"
#include "gather.h"
#include "harvest.h"
#include "launch.h"
#include "page.h"
#include "say.h"
#include "verbs.h"
#include "view_text.h"

static const char help[] =
    "usage: seep run [OPTIONS] -- COMMAND [ARGUMENTS]\n\n"
    "Run COMMAND, with its children, so that each process leaves a recording,\n"
    "and report at the end if stderr is a terminal. The exit status is the\n"
    "command's; 128 + N if signal N ended it.\n\n"
    "  -o PATTERN        where recordings go, a folder or a name with %p pid,\n"
    "                    %e program, %h host, %t time, %n number\n"
    "                    (default " SEEP_LAUNCH_PATTERN ")\n" SEEP_LAUNCH_HELP
    "  --report          report even if stderr is no terminal\n"
    "  --no-report       do not report\n"
    "  -h, --help        this\n";

enum { REPORT = 256, NO_REPORT };
enum when { WHEN_TERMINAL, WHEN_ALWAYS, WHEN_NEVER };

static const struct option options[] = {
    {"report", no_argument, NULL, REPORT},
    {"no-report", no_argument, NULL, NO_REPORT},
    SEEP_LAUNCH_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
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

static void print_reports(char *const *paths, size_t count)
{
    struct seep_report_options report = {.symbols = true,
                                         .site_limit = SEEP_TEXT_SITES_DEFAULT};
    struct seep_text_options text = {.site_limit = SEEP_TEXT_SITES_DEFAULT};
    struct seep_gathering gathering;
    struct seep_page page;

    seep_gather(paths, count, &report, &gathering);
    seep_page_init(&page, stderr, SEEP_COLOR_AUTO);
    if (gathering.count > 1) {
        seep_view_text_summary(
            &page, (const struct seep_report *const *)gathering.reports,
            gathering.count);
    }
    for (size_t i = 0; i < gathering.count; i++) {
        seep_page_end_line(&page);
        seep_view_text_report(&page, gathering.reports[i], &text);
    }
    print_place(&page, paths, count);
    seep_gather_close(&gathering);
}

static void finish(struct seep_harvest *harvest, const struct seep_child *child,
                   const char *command, const char *out, bool report)
{
    char **paths;
    size_t count;

    if (seep_harvest_collect(harvest, &paths, &count) < 0) {
        return;
    }
    seep_harvest_put_status(paths, count, child);
    if (report && count > 0) {
        print_reports(paths, count);
    } else if (report) {
        struct seep_absent absent = seep_absent_explain(command, out);
        seep_say(command, absent.reason, absent.remedy);
    }
}

static int refuse_command(const char *command, int error)
{
    bool missing = error == -ENOENT;

    seep_say(command, missing ? "was not found" : strerror(-error),
             missing ? "look at its name and at PATH"
                     : "see whether it is a program that you may run");
    return missing ? SEEP_EXIT_NOT_FOUND : SEEP_EXIT_CANNOT_RUN;
}

static int run(char *const *argv, const struct seep_launch *launch, bool report)
{
    struct seep_harvest *harvest = NULL;
    struct seep_child child;
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
    error = seep_child_run(argv, &child);
    if (error == 0) {
        finish(harvest, &child, argv[0], launch->out, report);
    }
    seep_harvest_close(harvest);
    if (error < 0) {
        return refuse_command(argv[0], error);
    }
    return WIFSIGNALED(child.status) ? SEEP_EXIT_SIGNAL + WTERMSIG(child.status)
                                     : WEXITSTATUS(child.status);
}

int seep_cmd_run(int argc, char **argv)
{
    struct seep_launch_options launch_options = {.verb = "run"};
    struct seep_launch launch;
    enum when when = WHEN_TERMINAL;
    int option;

    while ((option = getopt_long(argc, argv, "+o:h", options, NULL)) != -1) {
        int code = 0;
        if (option == 'h') {
            fputs(help, stdout);
            return SEEP_EXIT_FINE;
        }
        if (option == REPORT || option == NO_REPORT) {
            when = option == REPORT ? WHEN_ALWAYS : WHEN_NEVER;
        } else {
            code = seep_launch_take(option, optarg, &launch_options);
        }
        if (code != 0) {
            return code;
        }
    }
    if (optind == argc) {
        return seep_say_usage("run", "run", "no command was named");
    }
    int code = seep_launch_prepare(&launch_options, &launch);
    if (code != 0) {
        return code;
    }
    bool report =
        when == WHEN_ALWAYS || (when == WHEN_TERMINAL && isatty(STDERR_FILENO));
    code = run(argv + optind, &launch, report);
    seep_launch_close(&launch);
    return code;
}
