/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When memory will be full. Invariant: an open end is said to be one, and
 * "never" and "cannot be told" are answers.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"
#include "verdict_words.h"
#include "words.h"

#define YEAR_S (365.25 * 86400)

static bool is_device(const struct seep_report_forecast *forecast)
{
    return strcmp(forecast->what, "device") == 0;
}

/* "the cgroup's 8 GiB", "GPU 0's 79 GiB" */
static void put_limit(FILE *file, const struct seep_report_forecast *forecast)
{
    static const char *const owners[][2] = {
        {"cgroup", "the cgroup's"},
        {"ram", "the machine's"},
        {"device", "the device's"},
    };
    const char *owner = "the";
    char limit[SEEP_UNITS_TEXT_BYTES];
    char gpu[SEEP_WORDS_GPU_BYTES];

    seep_units_bytes((double)forecast->limit_bytes, limit);
    if (is_device(forecast) && forecast->device >= 0) {
        seep_words_gpu(forecast->device, gpu);
        fprintf(file, "%s's %s", gpu, limit);
        return;
    }

    for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
        if (strcmp(forecast->what, owners[i][0]) == 0) {
            owner = owners[i][1];
        }
    }
    fprintf(file, "%s %s", owner, limit);
}

/* What is so far away is no forecast any more. */
static const char *far_duration(double seconds,
                                char text[SEEP_UNITS_TEXT_BYTES])
{
    if (seconds > 10 * YEAR_S) {
        return strcpy(text, "over ten years");
    }
    return seep_units_duration(seconds, text);
}

static bool is_cgroup(const struct seep_report_forecast *forecast)
{
    return strcmp(forecast->what, "cgroup") == 0;
}

/* "in 2 h 51 min (2 h 44 min to 2 h 59 min)" */
static void put_span(FILE *file, const struct seep_report_forecast *forecast)
{
    const struct seep_interval *seconds = &forecast->seconds;
    char at[SEEP_UNITS_TEXT_BYTES];
    char low[SEEP_UNITS_TEXT_BYTES];
    char high[SEEP_UNITS_TEXT_BYTES];

    far_duration(seconds->low, low);
    if (forecast->if_suspect || !isfinite(seconds->estimate)) {
        fprintf(file, "in %s at the earliest", low);
        return;
    }
    fprintf(file, "in %s", far_duration(seconds->estimate, at));
    if (seconds->low > 10 * YEAR_S) {
        return;
    }
    if (!isfinite(seconds->high)) {
        fprintf(file, " (%s at the earliest, or never)", low);
    } else {
        fprintf(file, " (%s to %s)", low, far_duration(seconds->high, high));
    }
}

/* What the verdict is about need not be what is full first. */
static const char *lead_of(const struct seep_report *report)
{
    const struct seep_report_forecast *forecast = &report->verdict.forecast;

    if (forecast->device != report->verdict.device) {
        return "As it fills now, ";
    }
    return forecast->if_suspect ? "If it is a leak, " : "At this rate ";
}

static void put_time(FILE *file, const struct seep_report *report)
{
    const struct seep_report_forecast *forecast = &report->verdict.forecast;

    if (forecast->used_bytes >= forecast->limit_bytes) {
        put_limit(file, forecast);
        fputs(is_cgroup(forecast) ? " are used up already; files that the "
                                    "kernel can drop count too"
                                  : " are used up already",
              file);
        return;
    }
    fputs(lead_of(report), file);
    put_limit(file, forecast);
    fputs(forecast->device >= 0 ? " are full " : " are reached ", file);
    put_span(file, forecast);
}

static void put_when(FILE *file, const struct seep_report_forecast *forecast)
{
    if (forecast->answer == SEEP_FORECAST_NEVER) {
        fputs("never, as it goes now: it does not grow", file);
    } else if (forecast->answer == SEEP_FORECAST_UNKNOWN) {
        fputs("cannot be told: too little was seen", file);
    } else if (forecast->used_bytes >= forecast->limit_bytes) {
        fputs("already", file);
    } else {
        put_span(file, forecast);
        fputs(forecast->if_suspect ? ", if it is a leak" : "", file);
    }
}

char *seep_verdict_words_when(const struct seep_report_forecast *forecast)
{
    char *text = NULL;
    size_t size;
    FILE *file;

    file = open_memstream(&text, &size);
    if (file == NULL) {
        return NULL;
    }
    put_when(file, forecast);
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static bool grows(enum seep_verdict_class class)
{
    return class != SEEP_VERDICT_STEADY && class != SEEP_VERDICT_INSUFFICIENT &&
           class != SEEP_VERDICT_BOUNDED;
}

char *seep_verdict_words_forecast(const struct seep_report *report)
{
    const struct seep_report_forecast *forecast = &report->verdict.forecast;
    char *text = NULL;
    char used[SEEP_UNITS_TEXT_BYTES];
    size_t size;
    FILE *file;

    if (forecast->answer != SEEP_FORECAST_TIME &&
        (!grows(report->verdict.class) || !report->verdict.has_growth)) {
        return NULL; /* nobody asks when what does not grow will be full */
    }
    if (forecast->answer != SEEP_FORECAST_TIME &&
        forecast->device != report->verdict.device) {
        return NULL; /* nor about another place than what does */
    }
    file = open_memstream(&text, &size);
    if (file == NULL) {
        return NULL;
    }
    if (forecast->answer == SEEP_FORECAST_TIME) {
        put_time(file, report);
    } else if (forecast->answer == SEEP_FORECAST_NEVER) {
        fputs("It does not grow now, so ", file);
        put_limit(file, forecast);
        fprintf(file, " would not be reached; %s are used",
                seep_units_bytes((double)forecast->used_bytes, used));
    } else {
        fputs("When memory will be full cannot be told: ", file);
        fputs(forecast->limit_bytes == 0 ? "no limit of it is known"
                                         : "too little was seen",
              file);
    }
    fputc('.', file);
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    *text = *text == 't' ? 'T' : *text; /* "the cgroup's .." begins it */
    return text;
}
