/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep report: what grew, where, is it a leak, and now what.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "html/html.h"
#include "options/option.h"
#include "read/ask.h"
#include "read/gather.h"
#include "text/page.h"
#include "text/report.h"
#include "verbs.h"
#include "words/words.h"
#include "json/json.h"

struct arguments {
    bool json;
    bool verdict;
    const char *html; /* file; NULL: none */
    bool no_series;
    bool asks;         /* a process that lives: who holds what leaks */
    size_t site_limit; /* SIZE_MAX: as is usual for what is printed */
    enum seep_color color;
    struct seep_text_options text;
    struct seep_report_options report;
    struct seep_knowledge knowledge;
};

static int take_by(const char *verb, const char *value, void *target)
{
    static const char *const names[] = {
#define GROUPING_NAME(symbol, name) name,
        SEEP_GROUPINGS(GROUPING_NAME)
#undef GROUPING_NAME
    };
    size_t index;

    return seep_grouping_parse(value, target) == 0
               ? 0
               : seep_option_choose(verb, value, names,
                                    sizeof(names) / sizeof(names[0]), &index);
}

static int take_tree(const char *verb, const char *value, void *target)
{
    static const char *const names[] = {"down", "up"};
    enum seep_text_tree *tree = target;
    size_t index = 0;
    int code = seep_option_choose(verb, value, names,
                                  sizeof(names) / sizeof(names[0]), &index);

    *tree = index == 0 ? SEEP_TREE_DOWN : SEEP_TREE_UP;
    return code;
}

static int take_peak(const char *verb, const char *value, void *target)
{
    (void)value;
    return seep_when_take(verb, "peak", target);
}

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    SEEP_OPTION("verdict", NULL, seep_option_set, AT(verdict),
                "only the verdict, one line per process"),
    SEEP_OPTION("json", NULL, seep_option_set, AT(json),
                "one JSON document (schema seep-report/1)"),
    SEEP_OPTION("html", "FILE", seep_option_text, AT(html),
                "write one page to look at with a browser: charts, flame\n"
                "graphs, tables; needs no network; - for stdout"),
    SEEP_OPTION("sites", "N", seep_option_number, AT(site_limit),
                "at most N call sites; 0 for all (text 10, JSON and\n"
                "page all)"),
    SEEP_OPTION("processes", "N", seep_option_number, AT(text.process_limit),
                "at most N processes in full; 0 all (3)"),
    SEEP_OPTION("by", "WHAT", take_by, AT(report.by),
                "line (default), function, module, stack, thread or\n"
                "label: what a row of the table stands for"),
    SEEP_OPTION("holding", NULL, seep_option_set, AT(text.holding),
                "call sites by what they hold, whatever their class"),
    {.group = seep_when_options, .offset = AT(text.wish)},
    SEEP_OPTION("peak", NULL, take_peak, AT(text.wish.at),
                "what stood when most was live; as --at peak"),
    SEEP_OPTION(
        "tree", "WAY", take_tree, AT(text.tree),
        "down or up: all stacks as a tree, from main() down\nto what allocates, or from there up"),
    SEEP_OPTION("temporary", NULL, seep_option_set, AT(text.temporary),
                "call sites by what they freed at once"),
    SEEP_OPTION("site", "ID", seep_option_text, AT(text.site_id),
                "only this call site, by the beginning of its id"),
    SEEP_OPTION("stack", NULL, seep_option_set, AT(text.stacks),
                "show stacks, native frames between Python's folded"),
    SEEP_OPTION("whole-stack", NULL, seep_option_set, AT(text.whole_stacks),
                "show stacks with every frame"),
    SEEP_OPTION("show-suppressed", NULL, seep_option_set,
                AT(text.show_suppressed), "show suppressed call sites too"),
    {.group = seep_knowledge_options, .offset = AT(knowledge)},
    SEEP_OPTION("no-held", NULL, seep_option_clear, AT(asks),
                "do not ask a process that lives who holds what leaks"),
    SEEP_OPTION("no-series", NULL, seep_option_set, AT(no_series),
                "JSON without time series: a quarter of the size"),
    SEEP_OPTION("no-symbols", NULL, seep_option_clear, AT(report.symbols),
                "modules and offsets only"),
    SEEP_OPTION("debuginfod", NULL, seep_option_set, AT(report.use_debuginfod),
                "ask the servers of DEBUGINFOD_URLS for debug files"),
    SEEP_OPTION("debug-dir", "DIR", seep_option_text, AT(report.debug_folder),
                "look for debug files under DIR first"),
    SEEP_OPTION("sysroot", "DIR", seep_option_text, AT(report.sysroot),
                "look for programs and libraries under DIR"),
    SEEP_OPTION("color", "WHEN", seep_option_color, AT(color),
                "auto, always or never"),
    {0},
};

static const struct seep_options options = {
    .verb = "report",
    .usage =
        "usage: seep report [OPTIONS] RECORDING|DIR...\n\n"
        "Show for each recorded process what grew, where, and whether it is a\n"
        "leak, worst first. Reading does not disturb a process that is still\n"
        "running.\n",
    .table = table,
    .exits =
        "exit status: 0 fine, 1 something could not be read, 2 wrong usage\n",
};

/* What has most of a part may stand anywhere, as a site that is looked for;
 * JSON is for machines. */
static void set_limits(struct arguments *arguments)
{
    size_t limit = arguments->site_limit;

    if (limit == SIZE_MAX) {
        limit = arguments->json || arguments->html != NULL
                    ? 0
                    : SEEP_TEXT_SITES_DEFAULT;
        arguments->text.brief = !arguments->text.temporary;
    }
    arguments->site_limit = limit;
    arguments->text.site_limit = limit;
    arguments->report.site_limit =
        arguments->text.site_id != NULL || arguments->text.holding ||
                arguments->text.temporary ||
                seep_span_is_wished(&arguments->text.wish)
            ? 0
            : limit;
}

static void print_text(const struct seep_gathering *gathering,
                       const struct arguments *arguments)
{
    struct seep_page page;

    seep_page_init(&page, stdout, arguments->color);
    if (!arguments->verdict) {
        seep_view_text_reports(&page, gathering->reports, gathering->count,
                               &arguments->text);
        return;
    }
    for (size_t i = 0; i < gathering->count; i++) {
        seep_view_text_verdict(&page, gathering->reports[i]);
    }
}

static struct seep_json_options json_options(const struct arguments *arguments)
{
    return (struct seep_json_options){
        .site_limit = arguments->site_limit,
        .site_id = arguments->text.site_id,
        .no_series = arguments->no_series,
        .catalogue = arguments->knowledge.catalogue,
        .wish = arguments->text.wish,
    };
}

struct whole {
    struct seep_json_options json;
    bool is_json;
    size_t count; /* of reports so far */
    size_t let_go_count;
};

static void let_go(void *context, struct seep_report *report)
{
    struct whole *whole = context;

    if (++whole->count <= SEEP_GATHER_WHOLE_MOST) {
        return;
    }
    if (whole->is_json && whole->json.spool == NULL) {
        whole->json.spool = seep_json_spool_open(&whole->json);
    }
    if (!whole->is_json || (whole->json.spool != NULL &&
                            seep_json_spool_add(whole->json.spool, report))) {
        seep_report_let_go(report);
        if (whole->is_json) {
            seep_report_keep_rows(report, NULL);
        }
        whole->let_go_count++;
    }
}

/* @return whether all was written */
static bool print_json(const struct seep_gathering *gathering,
                       const struct arguments *arguments,
                       struct seep_json_spool *spool)
{
    struct seep_json_options json = json_options(arguments);
    int error;

    json.spool = spool;

    if (arguments->html == NULL) {
        return seep_json_reports(stdout, gathering->reports, gathering->count,
                                 gathering->refused_count, &json) == 0;
    }
    error =
        seep_html_reports(arguments->html, gathering->reports, gathering->count,
                          gathering->refused_count, &json);
    if (error < 0) {
        seep_say(arguments->html, strerror(-error),
                 "check that it can be written");
    }
    return error == 0;
}

/* Where no process has the part that was asked for there is nothing to show.
 * @return the exit code */
static int find_part(const struct seep_gathering *gathering,
                     const struct seep_span_wish *wish)
{
    char *reason;
    int first_error = 0;

    for (size_t i = 0; i < gathering->count; i++) {
        struct seep_span *span = NULL;
        int error = seep_span_open(gathering->reports[i], wish, &span);

        seep_span_close(span);
        if (error == 0) {
            return 0;
        }
        first_error = i == 0 ? error : first_error;
    }
    if (gathering->count == 0) {
        return 0;
    }
    reason = seep_words_span_refused(gathering->reports[0], wish, first_error);
    seep_say(gathering->reports[0]->path,
             reason == NULL ? "not enough memory" : reason, NULL);
    free(reason);
    return SEEP_EXIT_FAILED;
}

/* @return false: it could not be shown as was asked for */
static bool print_gathering(const struct seep_gathering *gathering,
                            struct arguments *arguments,
                            struct seep_json_spool *spool)
{
    if (seep_span_is_wished(&arguments->text.wish) &&
        find_part(gathering, &arguments->text.wish) != 0) {
        return false;
    }
    if (arguments->json || arguments->html != NULL) {
        return print_json(gathering, arguments, spool);
    }
    print_text(gathering, arguments);
    return true;
}

/* Read what is named, and print. */
static int report(char *const *paths, size_t count, struct arguments *arguments)
{
    struct seep_gathering gathering;
    struct whole whole = {.count = 0};
    struct seep_report_options by_stack;
    int code = seep_knowledge_load(&arguments->knowledge, &arguments->report);

    if (code != 0) {
        return code;
    }
    set_limits(arguments);
    arguments->text.stacks |= arguments->text.whole_stacks;
    arguments->text.catalogue = arguments->knowledge.catalogue;
    by_stack = arguments->report;
    by_stack.by = SEEP_BY_STACK;
    by_stack.site_limit = 0;
    arguments->text.by_stack = &by_stack;
    whole.json = json_options(arguments);
    whole.is_json = arguments->json;
    /* A part of a run is found in its course, and a page has all of it. */
    seep_gather_noted(paths, count, &arguments->report,
                      arguments->html == NULL &&
                              !seep_span_is_wished(&arguments->text.wish)
                          ? let_go
                          : NULL,
                      &whole, &gathering);
    code = seep_gather_exit(&gathering);
    if (whole.let_go_count > 0) {
        /* Those that are shown in full; of a document the first, to which an
         * answer may be attached yet. */
        seep_gather_read_again(
            &gathering, arguments->json ? 1 : arguments->text.process_limit,
            &arguments->report);
    }
    if (arguments->asks && gathering.count > 0) {
        seep_ask_living((struct seep_report *)(uintptr_t)gathering.reports[0],
                        &arguments->report);
    }
    if (!print_gathering(&gathering, arguments, whole.json.spool)) {
        code = SEEP_EXIT_FAILED;
    }
    seep_json_spool_close(whole.json.spool);
    seep_gather_close(&gathering);
    return code;
}

/* A page has all of a report, and nothing goes beside it. */
static int check_html(struct arguments *arguments)
{
    const char *other = arguments->json                ? "json"
                        : arguments->verdict           ? "verdict"
                        : arguments->text.holding      ? "holding"
                        : arguments->text.site_id      ? "site"
                        : arguments->text.stacks       ? "stack"
                        : arguments->text.whole_stacks ? "whole-stack"
                        : arguments->no_series         ? "no-series"
                        : arguments->text.temporary    ? "temporary"
                        : arguments->text.tree         ? "tree"
                        : arguments->text.wish.at.when ? "at"
                        : seep_span_is_wished(&arguments->text.wish) ? "since"
                                                                     : NULL;

    arguments->report.stacks = arguments->html != NULL;
    return seep_html_check("report", arguments->html, other);
}

/* What shows something else than the other; NULL ends it. */
struct pair {
    bool is_given;
    const char *name;
};

/* @return 0, or the exit code after saying that two of them were given */
static int check_pairs(const struct pair *first, const struct pair *second)
{
    for (; first->name != NULL; first++) {
        for (const struct pair *at = second; at->name != NULL; at++) {
            if (first->is_given && at->is_given) {
                return seep_say_usage("report", "%s cannot be combined with %s",
                                      first->name, at->name);
            }
        }
    }
    return 0;
}

static int check(const struct arguments *arguments)
{
    const struct seep_text_options *text = &arguments->text;
    const struct pair text_only[] = {
        {arguments->verdict, "--verdict"},
        {text->holding, "--holding"},
        {text->temporary, "--temporary"},
        {text->tree != SEEP_TREE_NONE, "--tree"},
        {false, NULL},
    };
    const struct pair json[] = {{arguments->json, "--json"}, {false, NULL}};
    const struct pair part[] = {
        {seep_span_is_wished(&text->wish),
         text->wish.at.when != SEEP_SPAN_NONE ? "--at" : "--since and --until"},
        {false, NULL},
    };
    const struct pair tree[] = {
        {text->tree != SEEP_TREE_NONE, "--tree"},
        {false, NULL},
    };
    const struct pair table_only[] = {
        {arguments->verdict, "--verdict"},
        {text->holding, "--holding"},
        {text->temporary, "--temporary"},
        {text->stacks, "--stack"},
        {false, NULL},
    };
    const struct pair whole_only[] = {
        {arguments->verdict, "--verdict"},
        {text->holding, "--holding"},
        {text->stacks || text->whole_stacks, "--stack"},
        {false, NULL},
    };
    int code = seep_when_check("report", &text->wish);

    code = code == 0 ? check_pairs(text_only, json) : code;
    code = code == 0 ? check_pairs(table_only, tree) : code;
    return code == 0 ? check_pairs(whole_only, part) : code;
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
    int code = seep_options_parse(&options, argc, argv, arguments);

    if (code == 0) {
        code = check(arguments);
    }
    code = code == 0 ? check_html(arguments) : code;
    if (code != 0) {
        return code;
    }
    return optind < argc ? 0 : seep_say_usage("report", "no recording given");
}

int seep_cmd_report(int argc, char **argv)
{
    struct arguments arguments = {
        .site_limit = SIZE_MAX,
        .asks = true,
        .text.process_limit = SEEP_TEXT_PROCESSES_DEFAULT,
        .report = {.symbols = true, .by = SEEP_BY_LINE},
    };
    int code = parse(argc, argv, &arguments);

    if (code == 0) {
        code = report(argv + optind, (size_t)(argc - optind), &arguments);
    }
    seep_knowledge_close(&arguments.knowledge);
    return seep_options_exit(&options, code);
}
