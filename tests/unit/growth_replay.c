/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Judges sites from outside: JSON lines in on stdin, one verdict a line out
 * on stdout, so that a simulator or a reference can be compared with the
 * reader by the thousand.
 *
 * A site is an object: "birth" and "weight" arrays of equal length, "variance"
 * the same or absent (exact), "bucket_end", "live" and "low" arrays of equal
 * length, "died_old", "live_old", "live_count", "allocations" numbers. "id"
 * may be anything and comes back. Whatever else it has is ignored.
 *
 * A line that is not such a site ends the run: exit 1, its number on stderr.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/growth_parts.h"

struct replay {
    struct seep_survivor *survivors;
    double *series[4]; /* bucket ends, live, low, allocations */
};

static double *numbers(const json_t *array)
{
    size_t count = json_array_size(array);
    double *values = calloc(count + 1, sizeof(*values));

    for (size_t i = 0; values != NULL && i < count; i++) {
        values[i] = json_number_value(json_array_get(array, i));
    }
    return values;
}

static bool read_survivors(const json_t *site, struct replay *replay,
                           struct seep_growth_input *input)
{
    const json_t *births = json_object_get(site, "birth");
    const json_t *weights = json_object_get(site, "weight");
    const json_t *variances = json_object_get(site, "variance");
    size_t count = json_array_size(births);

    replay->survivors = calloc(count + 1, sizeof(*replay->survivors));
    if (replay->survivors == NULL || !json_is_array(births) ||
        json_array_size(weights) != count ||
        (variances != NULL && json_array_size(variances) != count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        replay->survivors[i] = (struct seep_survivor){
            .birth = json_number_value(json_array_get(births, i)),
            .weight = json_number_value(json_array_get(weights, i)),
            .variance = json_number_value(json_array_get(variances, i)),
        };
    }
    input->survivors = replay->survivors;
    input->survivor_count = count;
    return true;
}

static bool read_series(const json_t *site, struct replay *replay,
                        struct seep_growth_input *input)
{
    static const char *const names[] = {"bucket_end", "live", "low"};
    size_t count = json_array_size(json_object_get(site, names[0]));

    for (size_t i = 0; i < 3; i++) {
        const json_t *array = json_object_get(site, names[i]);
        if (!json_is_array(array) || json_array_size(array) != count) {
            return false;
        }
        replay->series[i] = numbers(array);
    }
    replay->series[3] = calloc(count + 1, sizeof(double));
    for (size_t i = 0; i < 4; i++) {
        if (replay->series[i] == NULL) {
            return false;
        }
    }
    if (count > 0) { /* only the last is looked at */
        replay->series[3][count - 1] =
            json_number_value(json_object_get(site, "allocations"));
    }
    input->bucket_end = replay->series[0];
    input->live_bytes = replay->series[1];
    input->low_bytes = replay->series[2];
    input->allocations = replay->series[3];
    input->bucket_count = count;
    return true;
}

static bool read_site(const json_t *site, struct replay *replay,
                      struct seep_growth_input *input)
{
    input->died_old = json_number_value(json_object_get(site, "died_old"));
    input->live_old = json_number_value(json_object_get(site, "live_old"));
    input->live_count = json_number_value(json_object_get(site, "live_count"));
    return read_survivors(site, replay, input) &&
           read_series(site, replay, input);
}

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

static bool judge(const json_t *site)
{
    struct replay replay = {0};
    struct seep_growth_input input = {0};
    struct seep_growth growth;
    struct seep_growth_detail detail;
    json_t *verdict = NULL;
    bool done = false;

    if (read_site(site, &replay, &input)) {
        seep_growth_explain(&input, &growth, &detail);
        verdict = pack_verdict(&growth);
        json_object_set(verdict, "id", json_object_get(site, "id"));
        json_object_set_new(verdict, "detail", pack_detail(&detail));
        done = json_dumpf(verdict, stdout,
                          JSON_COMPACT | JSON_SORT_KEYS |
                              JSON_REAL_PRECISION(17)) == 0 &&
               putchar('\n') != EOF;
    }
    json_decref(verdict);
    free(replay.survivors);
    for (size_t i = 0; i < 4; i++) {
        free(replay.series[i]);
    }
    return done;
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
