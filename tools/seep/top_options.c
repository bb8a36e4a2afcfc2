/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line of `seep top`. Invariant: what is wrong with it is said in
 * one line, with what was meant where that can be guessed.
 */
#include "top_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "option.h"
#include "say.h"
#include "top_frame.h"
#include "units.h"

#define INTERVAL_DEFAULT_S 2
#define SITES_READ                                             \
    256 /* are named; of a live view who needs more has report \
         */

const char seep_top_help[] =
    "usage: seep top [OPTIONS] PID|RECORDING|DIR...\n\n"
    "Watch recorded processes: the verdict, memory and its limits, call sites\n"
    "by growth with their course. A folder is followed as processes come and\n"
    "go. h lists the keys; q quits. Reading does not disturb a process.\n\n"
    "  --once            print one frame as plain text, and end\n"
    "  --json            with --once: the document of `seep report --json`\n"
    "  --interval TIME   between two readings (2s); + and - change it\n"
    "  --sort KEY        growth (default), live, count or where\n"
    "  --filter TEXT     only call sites with TEXT in where, class or space\n"
    "  --sites N         with --once: at most N call sites; 0 all (10)\n"
    "  --by WHAT         line (default), function, module, stack or thread:\n"
    "                    what one row of the table is\n" SEEP_KNOWLEDGE_HELP
    "  --no-symbols      modules and offsets only\n"
    "  --color WHEN      auto, always or never\n"
    "  -h, --help        this\n\n"
    "exit status: 0 fine, 1 something could not be read or there is no\n"
    "terminal, 2 wrong usage\n";

enum { ONCE = 256, JSON, INTERVAL, SORT, FILTER, SITES, BY, NO_SYMBOLS, COLOR };

static const struct option options[] = {
    {"once", no_argument, NULL, ONCE},
    {"json", no_argument, NULL, JSON},
    {"interval", required_argument, NULL, INTERVAL},
    {"sort", required_argument, NULL, SORT},
    {"filter", required_argument, NULL, FILTER},
    {"sites", required_argument, NULL, SITES},
    {"by", required_argument, NULL, BY},
    SEEP_KNOWLEDGE_OPTIONS,
    {"no-symbols", no_argument, NULL, NO_SYMBOLS},
    {"color", required_argument, NULL, COLOR},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int refuse_name(const char *text, const char *const *names, size_t count,
                       const char *otherwise)
{
    const char *nearest = seep_nearest(text, names, count);
    char reason[96];

    if (nearest == NULL) {
        return seep_say_usage("top", text, otherwise);
    }
    snprintf(reason, sizeof(reason), "did you mean %s?", nearest);
    seep_say(text, otherwise, reason);
    return SEEP_EXIT_USAGE;
}

static int take_sort(struct seep_top_arguments *arguments)
{
    static const char *const names[] = {
#define SORT_NAME(symbol, name, key) name,
        SEEP_TOP_SORTS(SORT_NAME)
#undef SORT_NAME
    };

    return seep_top_sort_parse(optarg, &arguments->sort) == 0
               ? 0
               : refuse_name(optarg, names, sizeof(names) / sizeof(names[0]),
                             "is none of growth, live, count, where");
}

static int take_by(struct seep_top_arguments *arguments)
{
    static const char *const names[] = {
#define GROUPING_NAME(symbol, name) name,
        SEEP_GROUPINGS(GROUPING_NAME)
#undef GROUPING_NAME
    };

    return seep_grouping_parse(optarg, &arguments->report.by) == 0
               ? 0
               : refuse_name(optarg, names, sizeof(names) / sizeof(names[0]),
                             "is none of line, function, module, stack, "
                             "thread");
}

static int take_interval(struct seep_top_arguments *arguments)
{
    double interval_s;

    if (seep_units_parse_duration(optarg, &interval_s) < 0) {
        return seep_say_usage("top", optarg, "is no time like 2s or 0.5s");
    }
    if (!(interval_s >= SEEP_TOP_INTERVAL_LEAST_S &&
          interval_s <= SEEP_TOP_INTERVAL_MOST_S)) {
        return seep_say_usage("top", optarg, "is not from 0.5 s to 5 min");
    }
    arguments->interval_s = interval_s;
    return 0;
}

static int take_option(int option, struct seep_top_arguments *arguments)
{
    switch (option) {
    case ONCE:
        arguments->once = true;
        return 0;
    case JSON:
        arguments->json = true;
        return 0;
    case INTERVAL:
        return take_interval(arguments);
    case SORT:
        return take_sort(arguments);
    case FILTER:
        arguments->filter = optarg;
        return 0;
    case SITES:
        return seep_option_number("top", optarg, &arguments->row_limit);
    case BY:
        return take_by(arguments);
    case NO_SYMBOLS:
        arguments->report.symbols = false;
        return 0;
    case COLOR:
        return seep_option_color("top", optarg, &arguments->color);
    case 'h':
        arguments->help = true;
        return 0;
    default:
        return seep_knowledge_take(option, optarg, &arguments->knowledge);
    }
}

static int check(int argc, const struct seep_top_arguments *arguments)
{
    if (arguments->help) {
        return 0;
    }
    if (arguments->first == argc) {
        return seep_say_usage("top", "top",
                              "no process, recording or folder was named");
    }
    if (arguments->json && !arguments->once) {
        return seep_say_usage("top", "--json", "goes with --once");
    }
    if (strlen(arguments->filter) >= SEEP_TOP_FILTER_BYTES) {
        return seep_say_usage("top", "--filter", "is too long a text");
    }
    return 0;
}

int seep_top_options_parse(int argc, char **argv,
                           struct seep_top_arguments *ret_arguments)
{
    int option;
    int code = 0;

    *ret_arguments = (struct seep_top_arguments){
        .interval_s = INTERVAL_DEFAULT_S,
        .row_limit = SEEP_TOP_SITES_DEFAULT,
        .filter = "",
        .report = {.symbols = true,
                   .by = SEEP_BY_LINE,
                   .site_limit = SITES_READ},
        .knowledge.verb = "top",
    };
    while (code == 0 && (option = seep_option_next("top", argc, argv, ":h",
                                                   options)) != -1) {
        code = option == SEEP_OPTION_WRONG ? SEEP_EXIT_USAGE
                                           : take_option(option, ret_arguments);
    }
    ret_arguments->first = optind;
    return code == 0 ? check(argc, ret_arguments) : code;
}

void seep_top_options_fini(struct seep_top_arguments *arguments)
{
    seep_knowledge_close(&arguments->knowledge);
}
