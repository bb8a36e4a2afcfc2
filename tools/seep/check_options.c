/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Options of `seep check`; see check_options.h. Invariant: a limit that is
 * spelled wrong is refused: one that is not held against anything would pass.
 */
#include "check_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "option.h"
#include "say.h"
#include "units.h"
#include "words.h"

const char seep_check_help[] =
    "usage: seep check [OPTIONS] RECORDING|DIR...\n\n"
    "Hold each recorded process against limits. What decides is the interval,\n"
    "not the point: a limit is broken if the lower bound is over it, and kept\n"
    "if the upper bound is not; else there is not enough data.\n\n"
    "  --max-growth RATE           like 1MiB/min\n"
    "  --max-growth-per-unit SIZE  for each unit of work that was told\n"
    "  --max-drift SIZE            from the end of the warm-up to the end\n"
    "  --cap SIZE                  most that may be held at any time\n"
    "  --gpu-free SIZE             least that each GPU must have free\n"
    "                    Each limit can be named more than once, and as\n"
    "                    SPACE=LIMIT (heap, python, device, ...) or, of the\n"
    "                    processes with a label, as KEY=VALUE=LIMIT\n"
    "  --warmup TIME     what happens before does not drift; or mark:NAME, a\n"
    "                    moment that the program named (\"warm-up done\" "
    "where\n"
    "                    it did, else a fifth of the run)\n"
    "  --baseline OLD    a recording or folder: only what grows beyond it "
    "fails\n"
    "  --json            one JSON document (schema seep-check/1)\n"
    "  --junit FILE      a test case for each limit\n"
    "  --sarif FILE      SARIF 2.1.0, a result for each call site\n"
    "  --github          annotations, and a table in $GITHUB_STEP_SUMMARY\n"
    "  --quiet           print nothing; the exit status "
    "tells\n" SEEP_KNOWLEDGE_HELP
    "  --no-symbols      modules and offsets only\n"
    "  --color WHEN      auto, always or never\n"
    "  -h, --help        this\n\n"
    "exit status: 0 all limits are kept, 3 one is broken, 4 not enough data,\n"
    "1 something could not be read, 2 wrong usage\n";

enum {
    MAX_GROWTH = 256,
    MAX_GROWTH_PER_UNIT,
    MAX_DRIFT,
    CAP,
    GPU_FREE,
    WARMUP,
    BASELINE,
    JSON,
    JUNIT,
    SARIF,
    GITHUB,
    QUIET,
    NO_SYMBOLS,
    COLOR
};

static const struct option options[] = {
    {"max-growth", required_argument, NULL, MAX_GROWTH},
    {"max-growth-per-unit", required_argument, NULL, MAX_GROWTH_PER_UNIT},
    {"max-drift", required_argument, NULL, MAX_DRIFT},
    {"cap", required_argument, NULL, CAP},
    {"gpu-free", required_argument, NULL, GPU_FREE},
    {"warmup", required_argument, NULL, WARMUP},
    {"baseline", required_argument, NULL, BASELINE},
    {"json", no_argument, NULL, JSON},
    {"junit", required_argument, NULL, JUNIT},
    {"sarif", required_argument, NULL, SARIF},
    {"github", no_argument, NULL, GITHUB},
    {"quiet", no_argument, NULL, QUIET},
    SEEP_KNOWLEDGE_OPTIONS,
    {"no-symbols", no_argument, NULL, NO_SYMBOLS},
    {"color", required_argument, NULL, COLOR},
    {"help", no_argument, NULL, 'h'},
    {0},
};

/* What is a space of its own: the others hold no memory. */
static const enum seep_space spaces[] = {
    SEEP_SPACE_HEAP,    SEEP_SPACE_MAPPED, SEEP_SPACE_PYTHON, SEEP_SPACE_PINNED,
    SEEP_SPACE_MANAGED, SEEP_SPACE_DEVICE, SEEP_SPACE_TENSOR,
};
#define SPACE_COUNT (sizeof(spaces) / sizeof(spaces[0]))

static int take_space(const char *verb, const char *name, int *ret_space)
{
    const char *names[SPACE_COUNT];
    const char *nearest;
    char reason[96];

    for (size_t i = 0; i < SPACE_COUNT; i++) {
        names[i] = seep_words_space(spaces[i]);
        if (strcmp(names[i], name) == 0) {
            *ret_space = (int)spaces[i];
            return 0;
        }
    }
    nearest = seep_nearest(name, names, SPACE_COUNT);
    snprintf(reason, sizeof(reason), "is no space%s%s%s",
             nearest == NULL ? " like heap, python or device"
                             : "; did you mean ",
             nearest == NULL ? "" : nearest, nearest == NULL ? "" : "?");
    return seep_say_usage(verb, name, reason);
}

static int take_value(const char *verb, const char *text,
                      struct seep_check_limit *limit)
{
    uint64_t bytes = 0;

    if (limit->kind == SEEP_CHECK_GROWTH) {
        return seep_units_parse_rate(text, &limit->value) == 0
                   ? 0
                   : seep_say_usage(verb, text, "is no rate like 1MiB/min");
    }
    if (seep_units_parse_bytes(text, &bytes) < 0) {
        return seep_say_usage(verb, text, "is no size like 512KiB or 24 MB");
    }
    limit->value = (double)bytes;
    return 0;
}

/* The last = parts limit and scope; a scope with = is a label. */
static int take_scope(const char *verb, char *text,
                      struct seep_check_limit *limit)
{
    char *equals = strrchr(text, '=');

    if (equals == NULL) {
        return take_value(verb, text, limit);
    }
    *equals = '\0';
    if (limit->kind == SEEP_CHECK_GPU_FREE && strchr(text, '=') == NULL) {
        return seep_say_usage(verb, text, "is no label like model=bert");
    }
    if (strchr(text, '=') != NULL) {
        limit->label = text;
    } else {
        int code = take_space(verb, text, &limit->space);
        if (code != 0) {
            return code;
        }
    }
    return take_value(verb, equals + 1, limit);
}

static struct seep_check_limit *
add_limit(struct seep_check_arguments *arguments, enum seep_check_kind kind)
{
    struct seep_check_limit *grown =
        reallocarray(arguments->limits, arguments->count + 1, sizeof(*grown));

    if (grown == NULL) {
        seep_say("check", "there is no memory", NULL);
        return NULL;
    }
    arguments->limits = grown;
    grown[arguments->count] =
        (struct seep_check_limit){.kind = kind, .space = SEEP_CHECK_ALL_SPACES};
    return &grown[arguments->count++];
}

static int take_limit(const char *verb, struct seep_check_arguments *arguments,
                      enum seep_check_kind kind)
{
    struct seep_check_limit *limit = add_limit(arguments, kind);
    char *text = limit == NULL ? NULL : strdup(optarg);

    if (text == NULL) {
        return SEEP_EXIT_FAILED;
    }
    limit->text = text; /* freed with it, and its label lies in it */
    return take_scope(verb, text, limit);
}

static int take_warmup(const char *verb, struct seep_check_arguments *arguments)
{
    static const char mark[] = "mark:";

    arguments->warmup_mark = NULL;
    if (strncmp(optarg, mark, strlen(mark)) == 0) {
        arguments->warmup_mark = optarg + strlen(mark);
        return *arguments->warmup_mark != '\0'
                   ? 0
                   : seep_say_usage(verb, optarg, "names no mark");
    }
    return seep_units_parse_duration(optarg, &arguments->warmup_s) == 0
               ? 0
               : seep_say_usage(verb, optarg,
                                "is no time like 90s or 5m, nor mark:NAME");
}

static int take_baseline(struct seep_check_arguments *arguments)
{
    if (arguments->baseline == NULL &&
        add_limit(arguments, SEEP_CHECK_BASELINE) == NULL) {
        return SEEP_EXIT_FAILED;
    }
    arguments->baseline = optarg;
    return 0;
}

static int take_output(const char *verb, int option,
                       struct seep_check_arguments *arguments)
{
    switch (option) {
    case JSON:
        arguments->json = true;
        return 0;
    case JUNIT:
        arguments->junit = optarg;
        return 0;
    case SARIF:
        arguments->sarif = optarg;
        return 0;
    case GITHUB:
        arguments->github = true;
        return 0;
    case QUIET:
        arguments->quiet = true;
        return 0;
    default:
        return seep_option_color(verb, optarg, &arguments->color);
    }
}

static int take_option(const char *verb, int option,
                       struct seep_check_arguments *arguments)
{
    switch (option) {
    case MAX_GROWTH:
    case MAX_GROWTH_PER_UNIT:
    case MAX_DRIFT:
    case CAP:
    case GPU_FREE:
        return take_limit(verb, arguments,
                          SEEP_CHECK_GROWTH +
                              (enum seep_check_kind)(option - MAX_GROWTH));
    case WARMUP:
        return take_warmup(verb, arguments);
    case BASELINE:
        return take_baseline(arguments);
    case NO_SYMBOLS:
        arguments->no_symbols = true;
        return 0;
    case 'h':
        arguments->help = true;
        return 0;
    default:
        return seep_knowledge_is_option(option)
                   ? seep_knowledge_take(option, optarg, &arguments->knowledge)
                   : take_output(verb, option, arguments);
    }
}

int seep_check_options_parse(const char *verb, int argc, char **argv,
                             struct seep_check_arguments *ret_arguments)
{
    int option;
    int code = 0;

    *ret_arguments = (struct seep_check_arguments){
        .warmup_s = SEEP_CHECK_WARMUP_UNTOLD, .knowledge.verb = verb};
    optind = 0; /* `seep run` has been through its own */
    while (code == 0 &&
           (option = seep_option_next(verb, argc, argv, ":h", options)) != -1) {
        code = option == SEEP_OPTION_WRONG
                   ? SEEP_EXIT_USAGE
                   : take_option(verb, option, ret_arguments);
    }
    ret_arguments->first = optind;
    if (code == 0 && ret_arguments->count == 0 && !ret_arguments->help) {
        code = seep_say_usage(verb, verb,
                              "no limit was named, like --max-growth 1MiB/min");
    }
    return code;
}

void seep_check_options_close(struct seep_check_arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++) {
        free((char *)arguments->limits[i].text);
    }
    free(arguments->limits);
    seep_knowledge_close(&arguments->knowledge);
}
