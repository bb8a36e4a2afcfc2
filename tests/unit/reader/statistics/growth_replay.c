/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Judges sites from outside: JSON lines in on stdin, verdicts as lines out on
 * stdout, so that a simulator or a reference can be compared with the reader
 * by the thousand.
 *
 * A site is an object: "birth" and "weight" arrays of equal length, "variance"
 * the same or absent (exact), "bucket_end", "live" and "low" arrays of equal
 * length, "died_old", "live_old", "live_count", "allocations" numbers. Births
 * and ends are shares of the work; or, with a "clock" (see replay_input.h),
 * ticks of the run. An object with "sites" is a whole run: replay_run.h.
 * "id" may be anything and comes back. Whatever else there is is ignored.
 *
 * A line that is neither ends the run: exit 1, its number on stderr.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "reader/statistics/parts.h"
#include "replay_input.h"
#include "replay_run.h"

static json_t *pack_array(const double *values, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, json_real(values[i]));
    }
    return array;
}

static json_t *pack_verdict(const struct seep_growth *growth)
{
    return json_pack(
        "{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:b, s:b, s:f, s:f, "
        "s:o, s:o}",
        "class", seep_class_name(growth->class), "reason", growth->reason,
        "rate", growth->rate.estimate, "low", growth->rate.low, "high",
        growth->rate.high, "confidence", growth->confidence, "p", growth->p,
        "zs", growth->zs, "onset", growth->onset, "growing_block",
        growth->growing_block, "tested", growth->tested, "mature_count",
        growth->mature_count, "effective_count", growth->effective_count,
        "window_bytes", pack_array(growth->window_bytes, SEEP_GROWTH_WINDOWS),
        "window_count", pack_array(growth->window_count, SEEP_GROWTH_WINDOWS));
}

static json_t *pack_detail(const struct seep_growth_detail *detail)
{
    return json_pack(
        "{s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:f, s:f, s:f, s:o}",
        "mature_windows", detail->mature_windows, "dispersion",
        detail->dispersion, "poisson_error", detail->poisson_error,
        "between_error", detail->between_error, "exponent", detail->exponent,
        "exponent_error", detail->exponent_error, "later_exponent",
        detail->later_exponent, "later_exponent_error",
        detail->later_exponent_error, "half_ratio", detail->half_ratio,
        "net_growth", detail->net_growth, "tail_growth", detail->tail_growth,
        "guard_rate_first", detail->guard_rate[0], "guard_rate_last",
        detail->guard_rate[1], "died_share", detail->died_share, "immortal_p",
        detail->immortal_p, "swing", detail->swing, "low_bytes",
        pack_array(detail->low_bytes, SEEP_GROWTH_WINDOWS));
}

static bool print_row(const json_t *row)
{
    return json_dumpf(row, stdout,
                      JSON_COMPACT | JSON_SORT_KEYS |
                          JSON_REAL_PRECISION(17)) == 0 &&
           putchar('\n') != EOF;
}

static bool judge_site(const json_t *json)
{
    const json_t *told = json_object_get(json, "clock");
    struct replay_site site;
    struct seep_clock clock;
    struct seep_growth growth;
    struct seep_growth_detail detail;
    json_t *row = NULL;
    bool done = false;

    if (replay_read_site(json, &site) &&
        (told == NULL || replay_read_clock(told, &clock))) {
        if (told != NULL) {
            replay_apply_clock(&clock, &site);
        }
        seep_growth_explain(&site.input, &growth, &detail);
        row = pack_verdict(&growth);
        json_object_set(row, "id", json_object_get(json, "id"));
        json_object_set_new(row, "detail", pack_detail(&detail));
        if (told != NULL) {
            json_object_set_new(row, "clock",
                                json_string(replay_clock_name(&clock)));
        }
        done = print_row(row);
    }
    json_decref(row);
    replay_site_fini(&site);
    return done;
}

static bool judge_run(const json_t *run)
{
    json_t *row = replay_run(run);
    bool done = row != NULL && print_row(row);

    json_decref(row);
    return done;
}

static bool judge(const json_t *line)
{
    return json_object_get(line, "sites") != NULL ? judge_run(line)
                                                  : judge_site(line);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    size_t number = 0;
    ssize_t length;
    int status = 0;

    while (status == 0 && (length = getline(&line, &room, stdin)) > 0) {
        json_error_t error = {.text = "not a site"};
        json_t *site = json_loadb(line, (size_t)length, 0, &error);
        number++;
        if (site == NULL || !judge(site)) {
            fprintf(stderr, "growth_replay: line %zu: %s\n", number,
                    error.text[0] != '\0' ? error.text : "not a site");
            status = 1;
        }
        json_decref(site);
    }
    free(line);
    return fflush(stdout) == 0 ? status : 1;
}
