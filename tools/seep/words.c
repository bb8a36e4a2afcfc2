/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Words for what a report says. Invariant: an enum value that the recording
 * made up gets a word too.
 */
#include "words.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "units.h"

/* Python 3.11: those before have no word that holds their release. */
#define SINCE_VERSION_IS_TOLD 0x030b0000U
#define LEAST_MEASURED 16 /* events, for what they cost on average */

#define LOOKUP(names, value)                                               \
    ((size_t)(value) < sizeof(names) / sizeof((names)[0]) ? (names)[value] \
                                                          : "unknown")

const char *seep_words_state_name(enum seep_process_state state)
{
    static const char *const names[] = {
        [SEEP_STATE_RUNNING] = "running", [SEEP_STATE_EXITED] = "exited",
        [SEEP_STATE_KILLED] = "killed",   [SEEP_STATE_GONE] = "gone",
        [SEEP_STATE_UNKNOWN] = "unknown",
    };

    return LOOKUP(names, state);
}

void seep_words_state(const struct seep_report *report, char *text, size_t size)
{
    if (report->has_status && WIFSIGNALED(report->status)) {
        snprintf(text, size, "killed by signal %d", WTERMSIG(report->status));
    } else if (report->has_status && WIFEXITED(report->status)) {
        snprintf(text, size, "exited with status %d",
                 WEXITSTATUS(report->status));
    } else {
        static const char *const words[] = {
            [SEEP_STATE_RUNNING] = "still running",
            [SEEP_STATE_EXITED] = "exited",
            [SEEP_STATE_KILLED] = "killed",
            [SEEP_STATE_GONE] = "gone: killed, or left by _exit",
            [SEEP_STATE_UNKNOWN] = "recorded elsewhere, maybe still running",
        };
        snprintf(text, size, "%s", LOOKUP(words, report->state));
    }
}

bool seep_words_is_brief(const struct seep_report *report)
{
    return report->verdict.class == SEEP_VERDICT_INSUFFICIENT &&
           report->inert == SEEP_INERT_NONE &&
           report->duration_s < SEEP_WORDS_BRIEF_S;
}

const char *seep_words_mode_name(const struct seep_report *report)
{
    return report->sample_bytes <= 1 ? "exact" : "sampled";
}

void seep_words_mode(const struct seep_report *report, char *text, size_t size)
{
    char mean[SEEP_UNITS_TEXT_BYTES];

    if (report->exact) {
        snprintf(text, size, "exact");
    } else if (report->sample_bytes <= 1) {
        snprintf(text, size, "exact but for the losses below");
    } else {
        snprintf(text, size, "%ssampled every %s",
                 report->began_exact ? "began exact, now " : "",
                 seep_units_bytes((double)report->sample_bytes, mean));
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

char *seep_words_command(const struct seep_report *report)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        return NULL;
    }
    if (report->argument_count == 0) {
        fputs(base_name(report->executable), file);
    }
    for (size_t i = 0; i < report->argument_count; i++) {
        const char *word = report->arguments[i];
        fprintf(file, "%s%s", i == 0 ? "" : " ",
                i == 0 ? base_name(word) : word);
    }
    fclose(file);
    return text;
}

static bool is_interpreter(const char *name)
{
    static const char *const names[] = {"python", "pypy", "node", "ruby",
                                        "perl"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

char *seep_words_program(const struct seep_report *report)
{
    const char *const *words = report->arguments;
    size_t count = report->argument_count;
    const char *name = base_name(count == 0 ? report->executable : words[0]);
    char *text = NULL;
    int length;

    if (!is_interpreter(name) || count < 2) {
        return strdup(name);
    }
    if (strcmp(words[1], "-m") == 0 && count > 2) {
        length = asprintf(&text, "%s -m %s", name, words[2]);
    } else if (*words[1] != '-') {
        length = asprintf(&text, "%s %s", name, base_name(words[1]));
    } else {
        return strdup(name);
    }
    return length < 0 ? NULL : text;
}

void seep_words_python_version(uint32_t version, char *text, size_t size)
{
    static const struct {
        unsigned level; /* as PY_VERSION_HEX has it */
        const char *name;
    } levels[] = {{0xa, "a"}, {0xb, "b"}, {0xc, "rc"}};
    const char *level = NULL;

    if (version < SINCE_VERSION_IS_TOLD) {
        snprintf(text, size, "%u.%u", (unsigned)(version >> 24),
                 (unsigned)(version >> 16 & 255));
        return;
    }
    int length = snprintf(text, size, "%u.%u.%u", (unsigned)(version >> 24),
                          (unsigned)(version >> 16 & 255),
                          (unsigned)(version >> 8 & 255));

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (levels[i].level == (version >> 4 & 15)) {
            level = levels[i].name;
        }
    }
    if (level != NULL && length > 0 && (size_t)length < size) {
        snprintf(text + length, size - (size_t)length, "%s%u", level,
                 (unsigned)(version & 15));
    }
}

bool seep_words_has_python(const struct seep_report *report)
{
    return report->python_version != 0 ||
           report->python_state != SEEP_PYTHON_NONE;
}

bool seep_words_is_without_python(const struct seep_report *report)
{
    return report->python_state != SEEP_PYTHON_NONE &&
           report->python_state != SEEP_PYTHON_ON &&
           report->python_state != SEEP_PYTHON_PROBATION;
}

const char *seep_words_rows(const struct seep_report *report, size_t count)
{
    static const char *const names[][2] = {
        [SEEP_BY_STACK] = {"call sites", "call site"},
        [SEEP_BY_LINE] = {"call sites", "call site"},
        [SEEP_BY_FUNCTION] = {"functions", "function"},
        [SEEP_BY_MODULE] = {"modules", "module"},
        [SEEP_BY_THREAD] = {"threads", "thread"},
        [SEEP_BY_LABEL] = {"call sites", "call site"},
    };

    return report->by < SEEP_GROUPING_COUNT ? names[report->by][count == 1]
                                            : "rows";
}

const char *seep_words_space(enum seep_space space)
{
    static const char *const names[] = {
#define SPACE_NAME(symbol, value, name) [value] = (name),
        SEEP_SPACES(SPACE_NAME)
#undef SPACE_NAME
    };

    return LOOKUP(names, space);
}

const char *seep_words_unwinder(enum seep_unwinder unwinder)
{
    static const char *const names[] = {
        [SEEP_UNWINDER_EH_FRAME] = "eh_frame",
        [SEEP_UNWINDER_LIBUNWIND] = "libunwind",
    };

    return LOOKUP(names, unwinder);
}

const char *seep_words_cut(enum seep_cut cut)
{
    static const char *const names[] = {
#define CUT_WORDS(symbol, value, words) [value] = (words),
        SEEP_CUTS(CUT_WORDS)
#undef CUT_WORDS
    };

    return LOOKUP(names, cut);
}

const char *seep_words_inert(enum seep_inert_reason reason)
{
    static const char *const names[] = {
#define INERT_WORDS(symbol, value, words) [value] = (words),
        SEEP_INERT_REASONS(INERT_WORDS)
#undef INERT_WORDS
    };

    return LOOKUP(names, reason);
}

uint64_t seep_words_counter(const struct seep_report *report, unsigned counter)
{
    return counter < report->counter_count ? report->counters[counter].value
                                           : 0;
}

double seep_words_cost_s(const struct seep_report *report)
{
    uint64_t measured = seep_words_counter(report, SEEP_COUNT_TIMED_EVENTS);

    return measured < LEAST_MEASURED &&
                   seep_words_counter(report, SEEP_COUNT_EVENTS) > 0
               ? NAN
               : report->cost_s;
}

uint64_t seep_words_lost_events(const struct seep_report *report)
{
    static const enum seep_counter lost[] = {
        SEEP_COUNT_DROPPED_ALLOCS, SEEP_COUNT_DROPPED_FREES,
        SEEP_COUNT_NESTED,         SEEP_COUNT_TORN,
        SEEP_COUNT_LIVE_FULL,      SEEP_COUNT_RESTORE_LOST,
        SEEP_COUNT_START_MISSED,   SEEP_COUNT_CUDA_FULL,
        SEEP_COUNT_CUDA_BUSY,      SEEP_COUNT_CUDA_SATURATED,
        SEEP_COUNT_CUDA_NEST_FULL,
    };
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        sum += seep_words_counter(report, lost[i]);
    }
    return sum;
}

char *seep_words_quote(const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789/._-+,:@%=";
    char *text = malloc(strlen(path) * 4 + 3); /* each ' becomes '\'' */
    char *out = text;

    if (text == NULL) {
        return NULL;
    }
    if (*path != '\0' && path[strspn(path, plain)] == '\0') {
        return strcpy(text, path);
    }
    *out++ = '\'';
    for (; *path != '\0'; path++) {
        if (*path == '\'') {
            out = stpcpy(out, "'\\'");
        }
        *out++ = *path;
    }
    strcpy(out, "'");
    return text;
}
