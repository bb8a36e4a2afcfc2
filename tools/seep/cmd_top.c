/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep top: what `seep report` says, live.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options/option.h"
#include "read/ask.h"
#include "read/follow.h"
#include "read/gather.h"
#include "top/top.h"
#include "verbs.h"
#include "words/units.h"
#include "json/json.h"

/*
 * The command line of `seep top`. Invariant: what is wrong with it is said in
 * one line, with what was meant where that can be guessed.
 */

#define INTERVAL_DEFAULT_S 2
#define SITES_READ 256 /* call sites with names; who needs more has report */

static int take_sort(const char *verb, const char *value, void *target)
{
    size_t index;
    int code = seep_option_choose(verb, value, seep_top_sort_names,
                                  SEEP_TOP_SORT_COUNT, &index);

    if (code == 0) {
        *(enum seep_top_sort *)target = (enum seep_top_sort)index;
    }
    return code;
}

static int take_by(const char *verb, const char *value, void *target)
{
    static const char *const names[] = {"line", "function", "module", "stack",
                                        "thread"};
    size_t index;

    return seep_grouping_parse(value, target) == 0
               ? 0
               : seep_option_choose(verb, value, names,
                                    sizeof(names) / sizeof(names[0]), &index);
}

static int take_interval(const char *verb, const char *value, void *target)
{
    double interval_s;

    if (seep_units_parse_duration(value, &interval_s) < 0) {
        return seep_say_value(verb, value, "a time such as 2s or 0.5s");
    }
    if (!(interval_s >= SEEP_TOP_INTERVAL_LEAST_S &&
          interval_s <= SEEP_TOP_INTERVAL_MOST_S)) {
        return seep_say_value(verb, value, "a time from 0.5s to 5m");
    }
    *(double *)target = interval_s;
    return 0;
}

#define AT(member) offsetof(struct seep_top_arguments, member)

static const struct seep_option table[] = {
    SEEP_OPTION("once", NULL, seep_option_set, AT(once),
                "print one frame as plain text, and exit"),
    SEEP_OPTION("json", NULL, seep_option_set, AT(json),
                "with --once: the document of `seep report --json`"),
    SEEP_OPTION("interval", "TIME", take_interval, AT(interval_s),
                "between updates (2s); + and - change it"),
    SEEP_OPTION("sort", "KEY", take_sort, AT(sort),
                "growth (default), live, count or where"),
    SEEP_OPTION("filter", "TEXT", seep_option_text, AT(filter),
                "only call sites with TEXT in where, class or space"),
    SEEP_OPTION("sites", "N", seep_option_number, AT(row_limit),
                "with --once: at most N call sites; 0 all (10)"),
    SEEP_OPTION("by", "WHAT", take_by, AT(report.by),
                "line (default), function, module, stack or thread:\n"
                "what a row of the table stands for"),
    SEEP_OPTION("no-held", NULL, seep_option_clear, AT(asks),
                "do not ask processes who holds what leaks"),
    {.group = seep_knowledge_options, .offset = AT(knowledge)},
    SEEP_OPTION("no-symbols", NULL, seep_option_clear, AT(report.symbols),
                "modules and offsets only"),
    SEEP_OPTION("color", "WHEN", seep_option_color, AT(color),
                "auto, always or never"),
    {0},
};

static const struct seep_options options = {
    .verb = "top",
    .usage =
        "usage: seep top [OPTIONS] PID|RECORDING|DIR...\n\n"
        "Watch recorded processes: the verdict, memory and its limits, call sites\n"
        "by growth over time. A folder is followed as processes come and\n"
        "go. h lists the keys; q quits. Reading does not disturb a process.\n",
    .table = table,
    .exits =
        "exit status: 0 fine, 1 something could not be read, or no terminal to\n"
        "draw on, 2 wrong usage\n",
};

static int check(int argc, const struct seep_top_arguments *arguments)
{
    if (optind == argc) {
        return seep_say_usage("top", "no process, recording or folder given");
    }
    if (arguments->json && !arguments->once) {
        return seep_say_usage("top", "--json requires --once");
    }
    if (strlen(arguments->filter) >= SEEP_TOP_FILTER_BYTES) {
        return seep_say_usage("top", "the text of --filter is too long");
    }
    return 0;
}

/*
 * A single frame for scripts. Invariant: what cannot be read costs a line on
 * stderr and the exit code, never what can be.
 */

/* Paths of all that is meant, a process id among them.
 * @return whether each word means something */
static bool find_all(char *const *words, size_t count,
                     struct seep_open_list *all)
{
    bool complete = true;

    for (size_t i = 0; i < count; i++) {
        struct seep_refusal refusal = {0};
        char **found = NULL;
        int error = seep_follow_find(words[i], &refusal, &found);

        if (error < 0 || *found == NULL) {
            seep_say(words[i],
                     *refusal.reason != '\0' ? refusal.reason
                                             : strerror(-error),
                     refusal.remedy);
            complete = false;
        }
        for (size_t j = 0; error == 0 && found[j] != NULL; j++) {
            seep_open_list_add(all, found[j]);
        }
        free(found); /* the texts in it are the list's now */
    }
    return complete;
}

static int print_frame(const struct seep_gathering *gathering,
                       const struct seep_top_arguments *arguments)
{
    struct seep_top_model model;
    struct seep_top_frame frame;
    struct seep_page page;

    seep_page_init(&page, stdout, arguments->color);
    const struct seep_top_size size = {.columns = page.columns,
                                       .rows = arguments->row_limit};
    seep_top_model_init(&model, arguments->interval_s);
    model.sort = arguments->sort;
    snprintf(model.filter, sizeof(model.filter), "%s", arguments->filter);
    seep_top_model_take(&model, gathering->reports, gathering->count);
    int error = seep_top_frame_make(&model, &size, &frame);
    if (error == 0) {
        seep_top_frame_print(&frame, stdout, page.color);
        seep_top_frame_fini(&frame);
    }
    seep_top_model_fini(&model);
    return error;
}

/* Of very many one is shown whole; of the others a line and their families. */
static void let_go(void *context, struct seep_report *report)
{
    size_t *count = context;

    if (++*count > SEEP_GATHER_WHOLE_MOST) {
        seep_report_let_go(report);
        seep_report_keep_rows(report, NULL);
    }
}

/* Print what @arguments ask for to stdout. @return the exit code */
static int top_once(char *const *words, size_t count,
                    const struct seep_top_arguments *arguments)
{
    const struct seep_json_options json = {
        .catalogue = arguments->knowledge.catalogue,
    };
    struct seep_report_options report = arguments->report;
    struct seep_gathering gathering;
    struct seep_open_list all = {.paths = NULL};
    bool complete = find_all(words, count, &all);
    size_t read = 0;
    int error = 0;

    if (arguments->json || arguments->row_limit == 0 ||
        arguments->row_limit > report.site_limit) {
        report.site_limit = 0;
    }
    seep_gather_noted(all.paths, all.count, &report,
                      arguments->json ? NULL : let_go, &read, &gathering);
    if (!arguments->json) {
        seep_gather_read_again(&gathering, 1, &report);
    }
    int code = complete ? seep_gather_exit(&gathering) : SEEP_EXIT_FAILED;
    if (arguments->asks && gathering.count > 0) {
        seep_ask_living((struct seep_report *)(uintptr_t)gathering.reports[0],
                        &report);
    }
    if (arguments->json) {
        error = seep_json_reports(stdout, gathering.reports, gathering.count,
                                  gathering.refused_count, &json);
    } else if (gathering.count > 0) {
        error = print_frame(&gathering, arguments);
    }
    seep_gather_close(&gathering);
    seep_report_list_free(all.paths);
    return error < 0 ? SEEP_EXIT_FAILED : code;
}

static int show(char *const *words, size_t count,
                struct seep_top_arguments *arguments)
{
    int code = seep_knowledge_load(&arguments->knowledge, &arguments->report);

    if (code != 0) {
        return code;
    }
    return arguments->once ? top_once(words, count, arguments)
                           : seep_top_live(words, count, arguments);
}

int seep_cmd_top(int argc, char **argv)
{
    struct seep_top_arguments arguments = {
        .asks = true,
        .interval_s = INTERVAL_DEFAULT_S,
        .row_limit = SEEP_TOP_SITES_DEFAULT,
        .filter = "",
        .report = {.symbols = true,
                   .by = SEEP_BY_LINE,
                   .site_limit = SITES_READ},
    };
    int code = seep_options_parse(&options, argc, argv, &arguments);

    if (code == 0) {
        code = check(argc, &arguments);
    }
    if (code == 0) {
        code = show(argv + optind, (size_t)(argc - optind), &arguments);
    }
    seep_knowledge_close(&arguments.knowledge);
    return seep_options_exit(&options, code);
}
