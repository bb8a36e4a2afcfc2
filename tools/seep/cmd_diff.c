/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep diff: what grows now and did not before.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "html/html.h"
#include "options/option.h"
#include "read/gather.h"
#include "text/report.h"
#include "verbs.h"
#include "json/json.h"

#define SITES_DEFAULT 10

struct arguments {
    bool json;
    const char *html;  /* file; NULL: none */
    size_t site_limit; /* SIZE_MAX: as is usual for what is printed */
    const char *key;
    enum seep_color color;
    struct seep_report_options report;
    struct seep_knowledge knowledge;
};

/* A label of which the values are compared. */
static int take_key(const char *verb, const char *value, void *target)
{
    *(const char **)target = value;
    return *value != '\0' && strpbrk(value, "=,") == NULL
               ? 0
               : seep_say_value(verb, value,
                                "the name of a label such as version");
}

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    SEEP_OPTION("by", "LABEL", take_key, AT(key),
                "compare the runs by two values of a label, such as\n"
                "version; without values, there must be exactly two"),
    SEEP_OPTION("json", NULL, seep_option_set, AT(json),
                "one JSON document (schema seep-diff/1)"),
    SEEP_OPTION("html", "FILE", seep_option_text, AT(html),
                "write one page to look at with a browser, with flame\n"
                "graphs of the difference; - for stdout"),
    SEEP_OPTION("sites", "N", seep_option_number, AT(site_limit),
                "at most N call sites; 0 for all (text 10, JSON all)"),
    {.group = seep_knowledge_options, .offset = AT(knowledge)},
    SEEP_OPTION("no-symbols", NULL, seep_option_clear, AT(report.symbols),
                "modules and offsets only"),
    SEEP_OPTION("color", "WHEN", seep_option_color, AT(color),
                "auto, always or never"),
    {0},
};

static const struct seep_options options = {
    .verb = "diff",
    .usage =
        "usage: seep diff [OPTIONS] OLD NEW\n"
        "       seep diff [OPTIONS] --by LABEL [OLDVALUE NEWVALUE] RECORDING|DIR...\n\n"
        "Compare two runs of a program, each a recording or a folder of them: what\n"
        "is new, what grows or holds more, what is gone. Call sites are matched by\n"
        "function, even if lines have moved. The interval of the difference decides,\n"
        "not the estimate.\n",
    .table = table,
    .exits =
        "exit status: 0 nothing is worse, 3 something new or worse is a leak or more\n"
        "is held, 4 not enough data, 1 something could not be read, 2 wrong usage\n",
};

static int parse(int argc, char **argv, struct arguments *arguments)
{
    int code = seep_options_parse(&options, argc, argv, arguments);

    if (code != 0) {
        return code;
    }
    code = seep_html_check("diff", arguments->html,
                           arguments->json ? "json" : NULL);
    if (code != 0) {
        return code;
    }
    arguments->report.stacks = arguments->html != NULL;
    if (arguments->key == NULL && argc - optind != 2) {
        return seep_say_usage("diff", "expected two recordings or folders");
    }
    return argc == optind ? seep_say_usage("diff", "no recording given") : 0;
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

/* Beside the document of the set, the reports of both sides. */
static int print_html(const struct arguments *arguments,
                      const struct seep_diff_set *set,
                      const struct sides *sides, int code)
{
    int error =
        seep_html_diff(arguments->html, set, sides->before, sides->before_count,
                       sides->now, sides->now_count);

    if (error == 0) {
        return code;
    }
    seep_say(arguments->html, strerror(-error), "check that it can be written");
    return code == SEEP_EXIT_OVER_LIMIT ? code : SEEP_EXIT_FAILED;
}

static int print(const struct arguments *arguments,
                 const struct seep_diff_set *set, const struct sides *sides)
{
    int code = seep_diff_set_exit(set);
    size_t limit = arguments->site_limit != SIZE_MAX ? arguments->site_limit
                   : arguments->json                 ? 0
                                                     : SITES_DEFAULT;
    struct seep_page page;

    if (arguments->html != NULL) {
        return print_html(arguments, set, sides, code);
    }
    if (arguments->json) {
        return seep_json_diff(stdout, set, limit) == 0 ||
                       code == SEEP_EXIT_OVER_LIMIT
                   ? code
                   : SEEP_EXIT_FAILED;
    }
    seep_page_init(&page, stdout, arguments->color);
    seep_view_diff(&page, set, limit);
    return code;
}

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
               : print(arguments, &set, sides);
    seep_diff_set_close(&set);
    return code;
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
            .before = before.reports,
            .before_count = seep_gather_held(&before),
            .now = now.reports,
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
                                        gathering->reports, count, before),
            .now = now,
            .now_count = seep_diff_labels_select(
                arguments->key, now_value, gathering->reports, count, now),
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
        code = seep_diff_labels_choose(arguments->key, gathering.reports,
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
    int code = seep_knowledge_load(&arguments->knowledge, &arguments->report);

    if (code != 0) {
        return code;
    }
    return arguments->key == NULL
               ? diff_paths(arguments, argv + optind)
               : diff_labels(arguments, argv + optind, (size_t)(argc - optind));
}

int seep_cmd_diff(int argc, char **argv)
{
    struct arguments arguments = {
        .site_limit = SIZE_MAX,
        .report = {.symbols = true, .by = SEEP_BY_LINE},
    };
    int code = parse(argc, argv, &arguments);

    if (code == 0) {
        code = diff(argc, argv, &arguments);
    }
    seep_knowledge_close(&arguments.knowledge);
    return seep_options_exit(&options, code);
}
