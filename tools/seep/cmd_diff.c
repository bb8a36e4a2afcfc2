/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep diff: what grows now and did not before.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diff_labels.h"
#include "diff_set.h"
#include "gather.h"
#include "knowledge.h"
#include "option.h"
#include "say.h"
#include "verbs.h"
#include "view_diff.h"

static const char help[] =
    "usage: seep diff [OPTIONS] OLD NEW\n"
    "       seep diff [OPTIONS] --by LABEL [OLDVALUE NEWVALUE] "
    "RECORDING|DIR...\n\n"
    "Compare two runs of a program, each a recording or a folder of them: "
    "what\n"
    "grows now and did not, what grows more, what is gone. Call sites are "
    "known\n"
    "again by function, also where lines have moved. What decides is the\n"
    "interval of the difference, not the point.\n\n"
    "  --by LABEL        the two runs are those with two values of a label, "
    "like\n"
    "                    version; without values, the only two that there are\n"
    "  --json            one JSON document (schema seep-diff/1)\n"
    "  --sites N         at most N call sites; 0 all (text 10, JSON "
    "all)\n" SEEP_KNOWLEDGE_HELP
    "  --no-symbols      modules and offsets only\n"
    "  --color WHEN      auto, always or never\n"
    "  -h, --help        this\n\n"
    "exit status: 0 nothing is worse, 3 something new or worse is a leak, 4 "
    "not\n"
    "enough data, 1 something could not be read, 2 wrong usage\n";

struct arguments {
    bool json;
    bool help;
    bool has_limit;
    size_t site_limit;
    const char *key;
    enum seep_color color;
    struct seep_report_options report;
    struct seep_knowledge knowledge;
};

enum { JSON = 256, SITES, BY, NO_SYMBOLS, COLOR };

static const struct option options[] = {
    {"json", no_argument, NULL, JSON},
    {"sites", required_argument, NULL, SITES},
    {"by", required_argument, NULL, BY},
    SEEP_KNOWLEDGE_OPTIONS,
    {"no-symbols", no_argument, NULL, NO_SYMBOLS},
    {"color", required_argument, NULL, COLOR},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int take_option(int option, struct arguments *arguments)
{
    switch (option) {
    case JSON:
        arguments->json = true;
        return 0;
    case SITES:
        arguments->has_limit = true;
        return seep_option_number("diff", optarg, &arguments->site_limit);
    case BY:
        arguments->key = optarg;
        return *optarg != '\0' && strpbrk(optarg, "=,") == NULL
                   ? 0
                   : seep_say_usage("diff", optarg,
                                    "is no name of a label like version");
    case NO_SYMBOLS:
        arguments->report.symbols = false;
        return 0;
    case COLOR:
        return seep_option_color("diff", optarg, &arguments->color);
    case 'h':
        arguments->help = true;
        return 0;
    default:
        return seep_knowledge_take(option, optarg, &arguments->knowledge);
    }
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
    int option;
    int code = 0;

    while (code == 0 && (option = seep_option_next("diff", argc, argv, ":h",
                                                   options)) != -1) {
        code = option == SEEP_OPTION_WRONG ? SEEP_EXIT_USAGE
                                           : take_option(option, arguments);
    }
    if (code != 0 || arguments->help) {
        return code;
    }
    if (arguments->key == NULL && argc - optind != 2) {
        return seep_say_usage("diff", "diff",
                              argc - optind < 2
                                  ? "two recordings or folders are compared"
                                  : "more than two recordings were named");
    }
    return argc == optind
               ? seep_say_usage("diff", "diff", "no recording was named")
               : 0;
}

static int print(const struct arguments *arguments,
                 const struct seep_diff_set *set)
{
    int code = seep_diff_set_exit(set);
    size_t limit = arguments->has_limit || arguments->json
                       ? arguments->site_limit
                       : SEEP_DIFF_SITES_DEFAULT;
    struct seep_page page;

    if (arguments->json) {
        return seep_view_diff_json(stdout, set, limit) == 0 ||
                       code == SEEP_EXIT_OVER_LIMIT
                   ? code
                   : SEEP_EXIT_FAILED;
    }
    seep_page_init(&page, stdout, arguments->color);
    seep_view_diff(&page, set, limit);
    return code;
}

/* The two sides of a set, which has their names. */
struct sides {
    const struct seep_report *const *before;
    size_t before_count;
    const struct seep_report *const *now;
    size_t now_count;
    size_t refused_count;
    const char *key;
};

static int compare(const struct arguments *arguments, const struct sides *sides,
                   const char *before_name, const char *now_name)
{
    struct seep_diff_set set;
    int error = seep_diff_set_make(sides->before, sides->before_count,
                                   sides->now, sides->now_count, &set);
    int code;

    if (error < 0) {
        seep_say("diff", strerror(-error), NULL);
        return SEEP_EXIT_FAILED;
    }
    set.key = sides->key;
    set.refused_count = sides->refused_count;
    set.before_name = strdup(before_name);
    set.now_name = strdup(now_name);
    code = set.before_name == NULL || set.now_name == NULL
               ? SEEP_EXIT_FAILED
               : print(arguments, &set);
    seep_diff_set_close(&set);
    return code;
}

static const struct seep_report *const *
reports_of(const struct seep_gathering *gathering)
{
    return (const struct seep_report *const *)gathering->reports;
}

/* Two paths. What cannot be read at all is not compared. */
static int diff_paths(const struct arguments *arguments, char *const *paths)
{
    struct seep_gathering before;
    struct seep_gathering now;
    int code = SEEP_EXIT_FAILED;

    seep_gather(paths, 1, &arguments->report, &before);
    seep_gather(paths + 1, 1, &arguments->report, &now);
    if (before.count > 0 && now.count > 0) {
        struct sides sides = {
            .before = reports_of(&before),
            .before_count = seep_gather_held(&before),
            .now = reports_of(&now),
            .now_count = seep_gather_held(&now),
            .refused_count = before.refused_count + now.refused_count,
        };

        code = compare(arguments, &sides, paths[0], paths[1]);
    }
    seep_gather_close(&before);
    seep_gather_close(&now);
    return code;
}

static int diff_values(const struct arguments *arguments,
                       const struct seep_gathering *gathering,
                       const char *before_value, const char *now_value)
{
    size_t count = seep_gather_held(gathering);
    const struct seep_report **before = calloc(count + 1, sizeof(*before));
    const struct seep_report **now = calloc(count + 1, sizeof(*now));
    int code = SEEP_EXIT_FAILED;

    if (before != NULL && now != NULL) {
        struct sides sides = {
            .before = before,
            .before_count =
                seep_diff_labels_select(arguments->key, before_value,
                                        reports_of(gathering), count, before),
            .now = now,
            .now_count = seep_diff_labels_select(
                arguments->key, now_value, reports_of(gathering), count, now),
            .refused_count = gathering->refused_count,
            .key = arguments->key,
        };

        code = compare(arguments, &sides, before_value, now_value);
    }
    free(before);
    free(now);
    return code;
}

/* What is no file, before what is one, is a value. */
static bool has_values(char *const *words, size_t count)
{
    return count > 2 && access(words[0], F_OK) != 0;
}

static int diff_labels(const struct arguments *arguments, char *const *words,
                       size_t count)
{
    bool named = has_values(words, count);
    char *before = named ? strdup(words[0]) : NULL;
    char *now = named ? strdup(words[1]) : NULL;
    size_t skipped = named ? 2 : 0;
    struct seep_gathering gathering;
    int code = SEEP_EXIT_FAILED;

    seep_gather(words + skipped, count - skipped, &arguments->report,
                &gathering);
    if (gathering.count > 0 && (!named || (before != NULL && now != NULL))) {
        code = seep_diff_labels_choose(arguments->key, reports_of(&gathering),
                                       seep_gather_held(&gathering), &before,
                                       &now);
    }
    if (gathering.count > 0 && code == 0) {
        code = diff_values(arguments, &gathering, before, now);
    }
    seep_gather_close(&gathering);
    free(before);
    free(now);
    return code;
}

static int diff(int argc, char **argv, struct arguments *arguments)
{
    int code = seep_knowledge_load(&arguments->knowledge);

    if (code != 0) {
        return code;
    }
    arguments->report.catalogue = arguments->knowledge.catalogue;
    arguments->report.suppressions = arguments->knowledge.suppressions;
    arguments->report.known = arguments->knowledge.known;
    return arguments->key == NULL
               ? diff_paths(arguments, argv + optind)
               : diff_labels(arguments, argv + optind, (size_t)(argc - optind));
}

int seep_cmd_diff(int argc, char **argv)
{
    struct arguments arguments = {.report.symbols = true,
                                  .report.by = SEEP_BY_LINE,
                                  .knowledge.verb = "diff"};
    int code = parse(argc, argv, &arguments);

    if (code == 0 && arguments.help) {
        fputs(help, stdout);
    } else if (code == 0) {
        code = diff(argc, argv, &arguments);
    }
    seep_knowledge_close(&arguments.knowledge);
    return code;
}
