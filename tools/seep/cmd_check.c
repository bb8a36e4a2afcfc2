/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep check: recordings against limits, for CI: its options, also as one text
 * of `seep run`, and the check itself, which both share. Invariant: what is
 * asked for is held or said to be wrong, never left out.
 */
#include "cmd_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "ci/ci.h"
#include "options/option.h"
#include "read/gather.h"
#include "reader/judge/family.h"
#include "text/report.h"
#include "verbs.h"
#include "words/units.h"
#include "words/words.h"
#include "json/json.h"

/*
 * The command line. Invariant: a limit that is spelled wrong is refused: one
 * that is not held against anything would pass.
 */

/* What is a space of its own, or grows like one: the others hold no memory. */
static const enum seep_space spaces[] = {
    SEEP_SPACE_HEAP,    SEEP_SPACE_MAPPED, SEEP_SPACE_PYTHON, SEEP_SPACE_PINNED,
    SEEP_SPACE_MANAGED, SEEP_SPACE_DEVICE, SEEP_SPACE_TENSOR, SEEP_SPACE_FILE,
};
#define SPACE_COUNT (sizeof(spaces) / sizeof(spaces[0]))

static int take_space(const char *verb, const char *name, int *ret_space)
{
    const char *names[SPACE_COUNT];
    size_t index;
    int code;

    for (size_t i = 0; i < SPACE_COUNT; i++) {
        names[i] = seep_words_space(spaces[i]);
    }
    code = seep_option_choose(verb, name, names, SPACE_COUNT, &index);
    if (code == 0) {
        *ret_space = (int)spaces[index];
    }
    return code;
}

static int take_value(const char *verb, const char *text,
                      struct seep_check_limit *limit)
{
    uint64_t bytes = 0;

    if (limit->kind == SEEP_CHECK_GROWTH ||
        limit->kind == SEEP_CHECK_GROWTH_TOTAL) {
        return seep_units_parse_rate(text, &limit->value) == 0
                   ? 0
                   : seep_say_value(verb, text, "a rate such as 1MiB/min");
    }
    if (seep_size_parse(text, &bytes) < 0) {
        return seep_say_value(verb, text, "a size such as 512KiB or 24 MB");
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
        return seep_say_value(verb, text, "a label such as model=bert");
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
        seep_say("check", strerror(ENOMEM), NULL);
        return NULL;
    }
    arguments->limits = grown;
    grown[arguments->count] =
        (struct seep_check_limit){.kind = kind, .space = SEEP_CHECK_ALL_SPACES};
    return &grown[arguments->count++];
}

static int take_limit(const char *verb, const char *value,
                      struct seep_check_arguments *arguments,
                      enum seep_check_kind kind)
{
    struct seep_check_limit *limit = add_limit(arguments, kind);
    char *text = limit == NULL ? NULL : strdup(value);

    if (text == NULL) {
        return SEEP_EXIT_FAILED;
    }
    limit->text = text; /* freed with it, and its label lies in it */
    return take_scope(verb, text, limit);
}

#define TAKE_LIMIT(taker, kind)                                         \
    static int taker(const char *verb, const char *value, void *target) \
    {                                                                   \
        return take_limit(verb, value, target, kind);                   \
    }

TAKE_LIMIT(take_growth, SEEP_CHECK_GROWTH)
TAKE_LIMIT(take_growth_per_unit, SEEP_CHECK_GROWTH_PER_UNIT)
TAKE_LIMIT(take_drift, SEEP_CHECK_DRIFT)
TAKE_LIMIT(take_cap, SEEP_CHECK_CAP)
TAKE_LIMIT(take_gpu_free, SEEP_CHECK_GPU_FREE)
TAKE_LIMIT(take_growth_total, SEEP_CHECK_GROWTH_TOTAL)

/* A mark that is not called one may be a slip in a time, which must not pass
 * for a warm-up that never ended. */
static int take_warmup(const char *verb, const char *value, void *target)
{
    struct seep_check_arguments *arguments = target;
    struct seep_span_time time = {.when = SEEP_SPAN_NONE};
    int error = seep_when_parse(value, &time);
    bool is_mark = time.when == SEEP_SPAN_MARK && time.mark != value;

    if (error != 0 || (time.when != SEEP_SPAN_TIME && !is_mark)) {
        return seep_say_value(verb, value,
                              "a time such as 90s or 5m, or mark:NAME");
    }
    arguments->warmup_mark = time.mark;
    arguments->warmup_s = is_mark ? arguments->warmup_s : time.seconds;
    return 0;
}

static int take_baseline(const char *verb, const char *value, void *target)
{
    struct seep_check_arguments *arguments = target;

    (void)verb;
    if (arguments->baseline == NULL &&
        add_limit(arguments, SEEP_CHECK_BASELINE) == NULL) {
        return SEEP_EXIT_FAILED;
    }
    arguments->baseline = value;
    return 0;
}

#define AT(member) offsetof(struct seep_check_arguments, member)

/* The first texts begin further on, behind the longest name. */
static const struct seep_option table[] = {
    SEEP_OPTION("max-growth", "RATE", take_growth, 0,
                "          at most, such as 1MiB/min"),
    SEEP_OPTION("max-growth-per-unit", "SIZE", take_growth_per_unit, 0,
                " per reported unit of work"),
    SEEP_OPTION("max-drift", "SIZE", take_drift, 0,
                "          from the end of the warm-up to the end"),
    SEEP_OPTION("cap", "SIZE", take_cap, 0,
                "          most that may be in use at any time"),
    SEEP_OPTION("gpu-free", "SIZE", take_gpu_free, 0,
                "          least that must stay free on each GPU"),
    SEEP_OPTION("max-growth-total", "RATE", take_growth_total, 0,
                "    all processes of a service together, that is\n"
                "one program, with the same labels except replica,\n"
                "rank and worker, on one host\n"
                "Each limit may be given more than once, also as\n"
                "SPACE=LIMIT (heap, python, device, ...) or, for\n"
                "processes with a label, as KEY=VALUE=LIMIT"),
    SEEP_OPTION("warmup", "TIME", take_warmup, 0,
                "do not count drift before; or mark:NAME, a mark\n"
                "set by the program (default \"warm-up done\" if it\n"
                "was set, else a fifth of the run)"),
    SEEP_OPTION("baseline", "OLD", take_baseline, 0,
                "a recording or folder: fail only what is worse"),
    SEEP_OPTION("json", NULL, seep_option_set, AT(json),
                "one JSON document (schema seep-check/1)"),
    SEEP_OPTION("junit", "FILE", seep_option_text, AT(junit),
                "a test case for each limit"),
    SEEP_OPTION("sarif", "FILE", seep_option_text, AT(sarif),
                "SARIF 2.1.0, a result for each call site"),
    SEEP_OPTION("github", NULL, seep_option_set, AT(github),
                "annotations, and a table in $GITHUB_STEP_SUMMARY"),
    SEEP_OPTION("quiet", NULL, seep_option_set, AT(quiet),
                "print nothing; only set the exit status"),
    {.group = seep_knowledge_options, .offset = AT(knowledge)},
    SEEP_OPTION("no-symbols", NULL, seep_option_set, AT(no_symbols),
                "modules and offsets only"),
    SEEP_OPTION("color", "WHEN", seep_option_color, AT(color),
                "auto, always or never"),
    {0},
};

static const struct seep_options options = {
    .verb = "check",
    .usage =
        "usage: seep check [OPTIONS] RECORDING|DIR...\n\n"
        "Check each recorded process against limits. The interval decides, not the\n"
        "estimate: a limit is violated if the lower bound exceeds it, and holds if\n"
        "the upper bound does not; otherwise there is not enough data.\n",
    .table = table,
    .exits =
        "exit status: 0 all limits hold, 3 one is violated, 4 not enough data,\n"
        "1 something could not be read, 2 wrong usage\n",
};

int seep_check_options_parse(int argc, char **argv,
                             struct seep_check_arguments *ret_arguments)
{
    *ret_arguments =
        (struct seep_check_arguments){.warmup_s = SEEP_CHECK_WARMUP_UNKNOWN};
    int code = seep_options_parse(&options, argc, argv, ret_arguments);

    ret_arguments->first = optind;
    return code != 0 || ret_arguments->count > 0
               ? code
               : seep_say_usage(
                     "check", "no limit given, such as --max-growth 1MiB/min");
}

void seep_check_options_close(struct seep_check_arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++) {
        free((char *)arguments->limits[i].text);
    }
    free(arguments->limits);
    seep_knowledge_close(&arguments->knowledge);
}

/*
 * A text in words. Invariant: words never need more room
 * than the text and an end for each.
 */

static const char program[] = "seep";

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n';
}

/* One word from *text on. @return its end in @out, NULL if it has none */
static char *take_word(const char **text, char *out)
{
    const char *at = *text;
    char quote = '\0';

    for (; *at != '\0' && (quote != '\0' || !is_blank(*at)); at++) {
        if (quote == '\0' && (*at == '\'' || *at == '"')) {
            quote = *at;
        } else if (quote != '\0' && *at == quote) {
            quote = '\0';
        } else if (*at == '\\' && quote != '\'' && at[1] != '\0') {
            *out++ = *++at;
        } else {
            *out++ = *at;
        }
    }
    *text = at;
    *out++ = '\0';
    return quote == '\0' ? out : NULL;
}

int seep_check_options_split(const char *text, char ***ret_words,
                             int *ret_count)
{
    /* A word takes a blank at least: half of the bytes, and three more. */
    size_t most = strlen(text) / 2 + 3;
    size_t bytes = strlen(text) + most + sizeof(program);
    char **words = malloc(most * sizeof(*words) + bytes);
    char *out = (char *)(words + most);
    int count = 0;

    if (words == NULL) {
        return -ENOMEM;
    }
    words[count++] = memcpy(out, program, sizeof(program));
    out += sizeof(program);
    for (;;) {
        text += strspn(text, " \t\n");
        if (*text == '\0') {
            break;
        }
        words[count++] = out;
        out = take_word(&text, out);
        if (out == NULL) {
            free(words);
            return -EINVAL;
        }
    }
    words[count] = NULL;
    *ret_words = words;
    *ret_count = count;
    return 0;
}

/*
 * From recordings to an exit code. Invariant: what was asked for and could not
 * be written is no pass.
 */

static void say_failed(const char *path, int error)
{
    if (error == -ENOTSUP) {
        seep_say(path, "this seep was built without libxml2",
                 "build it with -Djunit=enabled");
    } else {
        seep_say(path, strerror(-error), "check that it can be written");
    }
}

/* Of what is one document nothing else is on the stream.
 * @return whether all was written */
static bool write_files(const struct seep_check_arguments *arguments,
                        const struct seep_check_set *set, FILE *file)
{
    const char *summary = getenv("GITHUB_STEP_SUMMARY");
    int junit =
        arguments->junit == NULL ? 0 : seep_ci_junit(arguments->junit, set);
    int sarif =
        arguments->sarif == NULL ? 0 : seep_ci_sarif(arguments->sarif, set);
    int github =
        arguments->github
            ? seep_ci_github(arguments->json ? stderr : file, summary, set)
            : 0;

    if (junit < 0) {
        say_failed(arguments->junit, junit);
    }
    if (sarif < 0) {
        say_failed(arguments->sarif, sarif);
    }
    if (github < 0) {
        say_failed(summary == NULL ? "stdout" : summary, github);
    }
    return junit == 0 && sarif == 0 && github == 0;
}

static int print(const struct seep_check_arguments *arguments,
                 const struct seep_check_set *set, FILE *file)
{
    struct seep_page page;
    int code = seep_check_exit(set);
    bool written = true;

    if (arguments->json) {
        written = seep_json_check(file, set) == 0;
    } else if (!arguments->quiet) {
        seep_page_init(&page, file, arguments->color);
        seep_view_check(&page, set);
    }
    written &= write_files(arguments, set, file);
    return !written && code != SEEP_EXIT_OVER_LIMIT ? SEEP_EXIT_FAILED : code;
}

static struct seep_check_options
options_of(const struct seep_check_arguments *arguments,
           const struct seep_gathering *baseline)
{
    return (struct seep_check_options){
        .limits = arguments->limits,
        .count = arguments->count,
        .warmup_s = arguments->warmup_s,
        .warmup_mark = arguments->warmup_mark,
        .baseline = baseline->reports,
        .baseline_count = baseline->count,
    };
}

static int hold(const struct seep_gathering *gathering,
                const struct seep_gathering *baseline,
                const struct seep_check_arguments *arguments, FILE *file)
{
    const struct seep_report *const *reports = gathering->reports;
    size_t count = seep_gather_held(gathering);
    struct seep_check_options checking = options_of(arguments, baseline);
    struct seep_families families;
    struct seep_check_result *results;
    struct seep_check_set set = {
        .reports = reports,
        .report_count = count,
        .baseline = checking.baseline,
        .baseline_count = checking.baseline_count,
        .refused_count = gathering->refused_count + baseline->refused_count,
        .warmup_s = arguments->warmup_s,
        .warmup_mark = arguments->warmup_mark,
    };
    int error = seep_families_make(reports, count, &families);

    if (error == 0) {
        checking.families = &families;
        error = seep_check_run(&checking, reports, count, &results, &set.count);
        if (error < 0) {
            seep_families_fini(&families);
        }
    }
    if (error < 0) {
        seep_say("check", strerror(-error), NULL);
        return SEEP_EXIT_FAILED;
    }
    set.results = results;
    int code = print(arguments, &set, file);
    free(results);
    seep_families_fini(&families);
    return code;
}

/* Of so many reports all is kept; of more what may be at a limit, and rows for
 * the family. */
#define WHOLE_MOST 64U

struct whole {
    struct seep_check_options checking;
    bool compares; /* with a baseline */
    size_t count;  /* of reports so far */
};

static bool may_be_at_a_limit(const struct seep_report_site *site)
{
    return seep_check_counts(site, (int)site->space);
}

static void let_go(void *context, struct seep_report *report)
{
    struct whole *whole = context;

    if (++whole->count > WHOLE_MOST &&
        seep_check_measure_all(&whole->checking, report)) {
        seep_report_let_go(report);
        /* A baseline excuses call sites one by one, whatever they are. */
        if (!whole->compares) {
            seep_report_keep_rows(report, may_be_at_a_limit);
        }
    }
}

int seep_gate(char *const *paths, size_t count,
              struct seep_check_arguments *arguments, FILE *file)
{
    struct seep_report_options reading = {.by = SEEP_BY_LINE,
                                          .symbols = !arguments->no_symbols};
    char *old[] = {(char *)arguments->baseline};
    struct seep_gathering gathering;
    struct seep_gathering baseline = {.count = 0};
    struct whole whole = {.checking = options_of(arguments, &baseline),
                          .compares = arguments->baseline != NULL};
    int code = seep_knowledge_load(&arguments->knowledge, &reading);

    if (code != 0) {
        return code;
    }
    seep_gather_noted(paths, count, &reading, let_go, &whole, &gathering);
    seep_gather_noted(old, arguments->baseline != NULL, &reading, let_go,
                      &whole, &baseline);
    code = hold(&gathering, &baseline, arguments, file);
    seep_gather_close(&baseline);
    seep_gather_close(&gathering);
    return code;
}

int seep_cmd_check(int argc, char **argv)
{
    struct seep_check_arguments arguments;
    int code = seep_check_options_parse(argc, argv, &arguments);

    if (code == 0 && arguments.first == argc) {
        code = seep_say_usage("check", "no recording given");
    } else if (code == 0) {
        code = seep_gate(argv + arguments.first,
                         (size_t)(argc - arguments.first), &arguments, stdout);
    }
    seep_check_options_close(&arguments);
    return seep_options_exit(&options, code);
}
