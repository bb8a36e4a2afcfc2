/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values of the JSON documents, and the call site. Invariant: every string is
 * valid UTF-8 and every number finite, so that every parser takes it.
 */
#include "json_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "clean.h"
#include "words.h"

void seep_json_put(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value == NULL ? json_null() : value);
}

json_t *seep_json_text(const char *text)
{
    char *clean = seep_clean_for_json(text);
    json_t *value = clean == NULL ? NULL : json_string(clean);

    free(clean);
    return value;
}

json_t *seep_json_text_or_null(const char *text)
{
    return text == NULL || *text == '\0' ? json_null() : seep_json_text(text);
}

json_t *seep_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *seep_json_count(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *seep_json_interval(const struct seep_interval *interval, double scale)
{
    json_t *object = json_object();

    seep_json_put(object, "estimate",
                  seep_json_real(interval->estimate * scale));
    seep_json_put(object, "low", seep_json_real(interval->low * scale));
    seep_json_put(object, "high", seep_json_real(interval->high * scale));
    return object;
}

static json_t *offset_of(uint64_t offset)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%llx", (unsigned long long)offset);
    return json_string(text);
}

static json_t *frame_of(const struct seep_report_frame *frame)
{
    json_t *object = json_object();

    seep_json_put(object, "kind",
                  json_string(frame->python ? "python" : "native"));
    seep_json_put(object, "function", seep_json_text_or_null(frame->function));
    seep_json_put(object, "file", seep_json_text_or_null(frame->file));
    seep_json_put(object, "line",
                  frame->line == 0 ? json_null() : json_integer(frame->line));
    seep_json_put(object, "module", seep_json_text_or_null(frame->module));
    seep_json_put(object, "build_id", seep_json_text_or_null(frame->build_id));
    seep_json_put(object, "offset",
                  frame->python ? json_null() : offset_of(frame->offset));
    seep_json_put(object, "inlined", json_boolean(frame->inlined));
    return object;
}

static json_t *point_of(const struct seep_report_point *point)
{
    json_t *object = json_object();

    seep_json_put(object, "t_s", seep_json_real(point->start_s));
    seep_json_put(object, "width_s", seep_json_real(point->width_s));
    seep_json_put(object, "live_bytes", seep_json_count(point->live_bytes));
    seep_json_put(object, "low_bytes", seep_json_count(point->low_bytes));
    seep_json_put(object, "allocated_bytes",
                  seep_json_count(point->allocated_bytes));
    seep_json_put(object, "freed_bytes", seep_json_count(point->freed_bytes));
    seep_json_put(object, "born_freed_bytes",
                  seep_json_count(point->born_freed_bytes));
    return object;
}

static void put_totals(json_t *object, const struct seep_report_site *site)
{
    json_t *windows = json_array();

    seep_json_put(object, "live_bytes", seep_json_count(site->live_bytes));
    seep_json_put(object, "live_bytes_error",
                  seep_json_real(site->live_bytes_error));
    seep_json_put(object, "live_count", seep_json_real(site->live_count));
    seep_json_put(object, "allocated_bytes",
                  seep_json_count(site->allocated_bytes));
    seep_json_put(object, "allocated_count",
                  seep_json_real(site->allocated_count));
    seep_json_put(object, "freed_bytes", seep_json_count(site->freed_bytes));
    seep_json_put(object, "freed_count", seep_json_real(site->freed_count));
    seep_json_put(object, "peak_bytes", seep_json_count(site->peak_bytes));
    seep_json_put(object, "largest_bytes",
                  seep_json_count(site->largest_bytes));
    seep_json_put(object, "first_s", seep_json_real(site->first_s));
    seep_json_put(object, "last_s", seep_json_real(site->last_s));
    for (size_t i = 0; i < SEEP_GROWTH_WINDOWS; i++) {
        json_array_append_new(windows, seep_json_real(site->window_bytes[i]));
    }
    seep_json_put(object, "born_alive_by_tenth_bytes", windows);
}

static void put_growth(json_t *object, const struct seep_report *report,
                       const struct seep_report_site *site)
{
    bool per_unit = site->has_growth && report->units > 0;
    double scale = per_unit ? report->duration_s / (double)report->units : 0;

    seep_json_put(object, "growth_bytes_per_s",
                  site->has_growth
                      ? seep_json_interval(&site->growth_bytes_per_s, 1)
                      : json_null());
    seep_json_put(object, "growth_bytes_per_unit",
                  per_unit
                      ? seep_json_interval(&site->growth_bytes_per_s, scale)
                      : json_null());
    seep_json_put(object, "confidence",
                  site->has_growth ? seep_json_real(site->confidence)
                                   : json_null());
    seep_json_put(object, "pattern", json_null());
}

json_t *seep_json_site(const struct seep_report *report,
                       const struct seep_report_site *site)
{
    json_t *object = json_object();
    json_t *series = json_array();
    json_t *frames = json_array();

    seep_json_put(object, "id", seep_json_text(site->id));
    seep_json_put(object, "space", json_string(seep_words_space(site->space)));
    seep_json_put(object, "class", json_string(seep_class_name(site->class)));
    seep_json_put(object, "reason", seep_json_text_or_null(site->class_reason));
    seep_json_put(object, "torn", json_boolean(site->torn));
    put_totals(object, site);
    put_growth(object, report, site);
    for (size_t i = 0; i < site->point_count; i++) {
        json_array_append_new(series, point_of(&site->series[i]));
    }
    for (size_t i = 0; i < site->frame_count; i++) {
        json_array_append_new(frames, frame_of(&site->frames[i]));
    }
    seep_json_put(object, "series", series);
    seep_json_put(object, "where", seep_json_text(site->where));
    seep_json_put(object, "frames", frames);
    seep_json_put(object, "stack_end", json_string(seep_words_cut(site->cut)));
    return object;
}
