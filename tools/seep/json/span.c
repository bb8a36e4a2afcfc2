/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A part of a run as JSON. Invariant: what is not known is null, and never 0.
 */
#include "json/json.h"

#include <math.h>

#include "words/words.h"

static json_t *sum_of(const struct seep_span_sum *sum)
{
    json_t *object = json_object();

    SEEP_JSON_COPY(object, sum, live_bytes, before_bytes, growth_bytes);
    SEEP_JSON_COPY(object, sum, allocated_bytes, freed_bytes);
    SEEP_JSON_COPY(object, sum, unknown_count, unknown_bytes);
    SEEP_JSON_COPY(object, sum, untold_count, untold_bytes);
    return object;
}

static json_t *spaces_of(const struct seep_span *span)
{
    json_t *spaces = json_object();

    for (size_t i = 0; i < span->report->space_count; i++) {
        enum seep_space space = span->report->spaces[i].space;

        seep_json_put(spaces, seep_words_space(space),
                      sum_of(&span->spaces[space]));
    }
    return spaces;
}

static json_t *peak_of(const struct seep_span_peak *peak)
{
    json_t *object = json_object();

    SEEP_JSON_COPY(object, peak, at_s, bytes, most_bytes);
    return object;
}

json_t *seep_json_span(const struct seep_span *span)
{
    json_t *object = span == NULL ? NULL : json_object();

    if (object == NULL) {
        return json_null();
    }
    seep_json_put(object, "moment", span->is_moment);
    SEEP_JSON_COPY(object, span, from_s, to_s);
    SEEP_JSON_COPY(object, span, asked_from_s, asked_to_s);
    seep_json_put(object, "bucket_s", span->report->bucket_s);
    seep_json_put(object, "peak", peak_of(&span->peak));
    seep_json_put(object, "total", sum_of(&span->total));
    seep_json_put(object, "spaces", spaces_of(span));
    return object;
}

static double known(bool is_known, double value)
{
    return is_known ? value : NAN;
}

json_t *seep_json_span_row(const struct seep_span *span, size_t i)
{
    const struct seep_span_row *row = span == NULL ? NULL : &span->rows[i];
    json_t *object = row == NULL ? NULL : json_object();
    bool knows;

    if (object == NULL) {
        return json_null();
    }
    knows = row->knows_live && row->knows_before;
    seep_json_put(object, "live_bytes",
                  known(row->knows_live, row->live_bytes));
    SEEP_JSON_COPY(object, row, live_bytes_error);
    seep_json_put(object, "live_count",
                  known(row->knows_live, row->live_count));
    SEEP_JSON_COPY(object, row, live_count_is_estimate);
    seep_json_put(object, "before_bytes",
                  known(row->knows_before, row->before_bytes));
    seep_json_put(object, "growth_bytes", known(knows, row->growth_bytes));
    seep_json_put(object, "growth_bytes_per_s",
                  known(knows, seep_span_rate(span, row)));
    SEEP_JSON_COPY(object, row, allocated_bytes, allocated_count, freed_bytes);
    SEEP_JSON_COPY(object, row, freed_count, freed_count_is_estimate,
                   untold_bytes);
    seep_json_put(object, "temporary_bytes",
                  known(row->temporary_bytes >= 0, row->temporary_bytes));
    return object;
}
