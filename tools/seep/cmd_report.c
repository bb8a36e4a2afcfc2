/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep report: what grew, where, is it a leak, and now what.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"
#include "knowledge.h"
#include "option.h"
#include "page.h"
#include "say.h"
#include "verbs.h"
#include "view_json.h"
#include "view_text.h"

static const char help[] =
    "usage: seep report [OPTIONS] RECORDING|DIR...\n\n"
    "Say of each recorded process what grew and where, and whether it is a\n"
    "leak; several together, worst first. Reading does not disturb a process\n"
    "that still runs.\n\n"
    "  --verdict         the verdict alone, one line a process\n"
    "  --json            one JSON document (schema seep-report/1)\n"
    "  --sites N         at most N call sites; 0 all (text 10, JSON all)\n"
    "  --processes N     at most N processes in full; 0 all (3)\n"
    "  --by WHAT         line (default), function, module, stack, thread or\n"
    "                    label: what one row of the table is\n"
    "  --site ID         only this call site; a beginning of its id will do\n"
    "  --stack           stacks, native frames between Python's folded\n"
    "  --whole-stack     stacks with every frame\n"
    "  --show-suppressed suppressed call sites too\n" SEEP_KNOWLEDGE_HELP
    "  --no-series       JSON without figures over time: a quarter of the "
    "size\n"
    "  --no-symbols      modules and offsets only\n"
    "  --debuginfod      ask the servers of DEBUGINFOD_URLS for debug files\n"
    "  --sysroot DIR     look for programs and libraries below DIR\n"
    "  --color WHEN      auto, always or never\n"
    "  -h, --help        this\n\n"
    "exit status: 0 fine, 1 something could not be read, 2 wrong usage\n";

struct arguments {
    bool json;
    bool verdict;
    bool help;
    bool has_limit;
    bool no_series;
    size_t site_limit;
    enum seep_color color;
    struct seep_text_options text;
    struct seep_report_options report;
    struct seep_knowledge knowledge;
};

enum {
    JSON = 256,
    VERDICT,
    SITES,
    PROCESSES,
    BY,
    SITE,
    STACK,
    WHOLE_STACK,
    SHOW_SUPPRESSED,
    NO_SERIES,
    NO_SYMBOLS,
    DEBUGINFOD,
    SYSROOT,
    COLOR
};

static const struct option options[] = {
    {"json", no_argument, NULL, JSON},
    {"verdict", no_argument, NULL, VERDICT},
    {"sites", required_argument, NULL, SITES},
    {"processes", required_argument, NULL, PROCESSES},
    {"by", required_argument, NULL, BY},
    {"site", required_argument, NULL, SITE},
    {"stack", no_argument, NULL, STACK},
    {"whole-stack", no_argument, NULL, WHOLE_STACK},
    {"show-suppressed", no_argument, NULL, SHOW_SUPPRESSED},
    SEEP_KNOWLEDGE_OPTIONS,
    {"no-series", no_argument, NULL, NO_SERIES},
    {"no-symbols", no_argument, NULL, NO_SYMBOLS},
    {"debuginfod", no_argument, NULL, DEBUGINFOD},
    {"sysroot", required_argument, NULL, SYSROOT},
    {"color", required_argument, NULL, COLOR},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int parse_by(const char *text, enum seep_grouping *ret_by)
{
    static const char *const names[] = {
#define GROUPING_NAME(symbol, name) name,
        SEEP_GROUPINGS(GROUPING_NAME)
#undef GROUPING_NAME
    };
    size_t index;

    if (seep_grouping_parse(text, ret_by) == 0) {
        return 0;
    }
    return seep_option_choose("report", text, names,
                              sizeof(names) / sizeof(names[0]), &index);
}

static int take_option(int option, struct arguments *arguments)
{
    switch (option) {
    case JSON:
        arguments->json = true;
        return 0;
    case VERDICT:
        arguments->verdict = true;
        return 0;
    case SITES:
        arguments->has_limit = true;
        return seep_option_number("report", optarg, &arguments->site_limit);
    case PROCESSES:
        return seep_option_number("report", optarg,
                                  &arguments->text.process_limit);
    case BY:
        return parse_by(optarg, &arguments->report.by);
    case SITE:
        arguments->text.site_id = optarg;
        return 0;
    case STACK:
        arguments->text.stacks = true;
        return 0;
    case WHOLE_STACK:
        arguments->text.stacks = true;
        arguments->text.whole_stacks = true;
        return 0;
    case SHOW_SUPPRESSED:
        arguments->text.show_suppressed = true;
        return 0;
    case NO_SERIES:
        arguments->no_series = true;
        return 0;
    case NO_SYMBOLS:
        arguments->report.symbols = false;
        return 0;
    case DEBUGINFOD:
        arguments->report.use_debuginfod = true;
        return 0;
    case SYSROOT:
        arguments->report.sysroot = optarg;
        return 0;
    case COLOR:
        return seep_option_color("report", optarg, &arguments->color);
    case 'h':
        arguments->help = true;
        return 0;
    default:
        return seep_knowledge_is_option(option)
                   ? seep_knowledge_take(option, optarg, &arguments->knowledge)
                   : SEEP_EXIT_USAGE; /* SEEP_OPTION_WRONG */
    }
}

/* A site that is looked for may stand anywhere; JSON is for machines. */
static void set_limits(struct arguments *arguments)
{
    size_t limit = arguments->site_limit;

    if (!arguments->has_limit) {
        limit = arguments->json ? 0 : SEEP_TEXT_SITES_DEFAULT;
        arguments->text.brief = true;
    }
    arguments->site_limit = limit;
    arguments->text.site_limit = limit;
    arguments->report.site_limit = arguments->text.site_id != NULL ? 0 : limit;
}

static void print_verdicts(struct seep_page *page,
                           const struct seep_gathering *gathering)
{
    for (size_t i = 0; i < gathering->count; i++) {
        seep_view_text_verdict(page, gathering->reports[i]);
    }
}

static void print_text(const struct seep_gathering *gathering,
                       const struct arguments *arguments)
{
    struct seep_page page;

    seep_page_init(&page, stdout, arguments->color);
    if (arguments->verdict) {
        print_verdicts(&page, gathering);
        return;
    }
    seep_view_text_reports(
        &page, (const struct seep_report *const *)gathering->reports,
        gathering->count, &arguments->text);
}

static int print_json(const struct seep_gathering *gathering,
                      const struct arguments *arguments)
{
    struct seep_json_options json = {
        .site_limit = arguments->site_limit,
        .site_id = arguments->text.site_id,
        .no_series = arguments->no_series,
        .catalogue = arguments->knowledge.catalogue,
    };

    return seep_view_json_reports(
        stdout, (const struct seep_report *const *)gathering->reports,
        gathering->count, gathering->refused_count, &json);
}

/* Read what is named, and print. */
static int report(char *const *paths, size_t count, struct arguments *arguments)
{
    struct seep_gathering gathering;
    int code = seep_knowledge_load(&arguments->knowledge);

    if (code != 0) {
        return code;
    }
    set_limits(arguments);
    arguments->report.catalogue = arguments->knowledge.catalogue;
    arguments->report.suppressions = arguments->knowledge.suppressions;
    arguments->report.known = arguments->knowledge.known;
    arguments->text.catalogue = arguments->knowledge.catalogue;
    seep_gather(paths, count, &arguments->report, &gathering);
    code = seep_gather_exit(&gathering);
    if (!arguments->json) {
        print_text(&gathering, arguments);
    } else if (print_json(&gathering, arguments) < 0) {
        code = SEEP_EXIT_FAILED;
    }
    seep_gather_close(&gathering);
    return code;
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
    int option;

    while ((option = seep_option_next("report", argc, argv, ":h", options)) !=
           -1) {
        int code = take_option(option, arguments);
        if (code != 0) {
            return code;
        }
    }
    if (arguments->json && arguments->verdict) {
        return seep_say_usage("report", "--verdict",
                              "prints text, and --json a document");
    }
    if (optind == argc && !arguments->help) {
        return seep_say_usage("report", "report", "no recording was named");
    }
    return 0;
}

int seep_cmd_report(int argc, char **argv)
{
    struct arguments arguments = {.report.symbols = true,
                                  .report.by = SEEP_BY_LINE,
                                  .text.process_limit =
                                      SEEP_TEXT_PROCESSES_DEFAULT,
                                  .knowledge.verb = "report"};
    int code = parse(argc, argv, &arguments);

    if (code == 0 && arguments.help) {
        fputs(help, stdout);
    } else if (code == 0) {
        code = report(argv + optind, (size_t)(argc - optind), &arguments);
    }
    seep_knowledge_close(&arguments.knowledge);
    return code;
}
