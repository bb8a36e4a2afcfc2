/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A call site as JSON. Invariant: what is kept of frames is bounded; which of
 * them are kept shows in the time only.
 */
#include "json_site.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "json_parts.h"
#include "json_verdict.h"
#include "words.h"

/* Stacks share their frames: of 760,000 in a report of 20,000 call sites there
 * were 40 different ones. */
#define FRAMES_KEPT 4096U /* a power of two */

struct seep_json_frame {
    struct seep_report_frame frame;
    char *text; /* NULL: empty */
};

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
                  frame->python ? json_null()
                                : seep_json_address(frame->offset));
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

static void put_growth(json_t *object, const struct seep_report_site *site)
{
    seep_json_put(object, "growth_bytes_per_s",
                  site->has_growth
                      ? seep_json_interval(&site->growth_bytes_per_s, 1)
                      : json_null());
    seep_json_put(object, "growth_now_bytes_per_s",
                  site->has_growth
                      ? seep_json_real(site->growth_now_bytes_per_s)
                      : json_null());
    seep_json_put(object, "growth_bytes_per_unit",
                  site->has_growth_per_unit
                      ? seep_json_interval(&site->growth_bytes_per_unit, 1)
                      : json_null());
    seep_json_put(object, "confidence",
                  site->has_growth ? seep_json_real(site->confidence)
                                   : json_null());
}

static json_t *kept_of(const struct seep_report_site *site)
{
    json_t *object;

    if (!site->has_growth) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "since_s", seep_json_real(site->kept.since_s));
    seep_json_put(object, "share", seep_json_real(site->kept.share));
    seep_json_put(object, "oldest_death_s",
                  site->kept.oldest_death_s > 0
                      ? seep_json_real(site->kept.oldest_death_s)
                      : json_null());
    seep_json_put(object, "died_share", seep_json_real(site->kept.died_share));
    seep_json_put(object, "gave_back_old",
                  json_boolean(site->kept.gave_back_old));
    return object;
}

/* As the file has it. */
static json_t *rule_of(const struct seep_report_site *site)
{
    char *rule;
    json_t *value;

    if (site->suppressed_by == NULL ||
        asprintf(&rule, "leak:%s", site->suppressed_by) < 0) {
        return json_null();
    }
    value = seep_json_text(rule);
    free(rule);
    return value;
}

static void put_known(json_t *object, const struct seep_report_site *site)
{
    seep_json_put(object, "kept", kept_of(site));
    seep_json_put(object, "pattern", seep_json_pattern(site->pattern));
    seep_json_put(object, "suppressed_by", rule_of(site));
    seep_json_put(object, "known_bound_bytes",
                  site->known_bound_bytes == 0
                      ? json_null()
                      : seep_json_count(site->known_bound_bytes));
}

static json_t *members_of(const struct seep_report_site *site)
{
    json_t *object = json_object();

    seep_json_put(object, "id", seep_json_text(site->id));
    seep_json_put(object, "line_id", seep_json_text_or_null(site->line_id));
    seep_json_put(object, "space", json_string(seep_words_space(site->space)));
    seep_json_put(object, "device",
                  site->device < 0 ? json_null() : json_integer(site->device));
    seep_json_put(object, "backs_tensors", json_boolean(site->backs_tensors));
    seep_json_put(object, "class", json_string(seep_class_name(site->class)));
    seep_json_put(object, "reason", seep_json_text_or_null(site->class_reason));
    seep_json_put(object, "torn", json_boolean(site->torn));
    put_totals(object, site);
    put_growth(object, site);
    put_known(object, site);
    seep_json_put(object, "where", seep_json_text(site->where));
    seep_json_put(object, "stacks", seep_json_count(site->stack_count));
    seep_json_put(object, "stack_live_bytes",
                  seep_json_count(site->stack_live_bytes));
    seep_json_put(object, "thread", seep_json_text_or_null(site->thread));
    seep_json_put(object, "stack_end", json_string(seep_words_cut(site->cut)));
    return object;
}

/* Strings by their addresses: a reader keeps each once. Two that only look
 * different are made twice, and that is all. */
static bool is_same(const struct seep_report_frame *a,
                    const struct seep_report_frame *b)
{
    return a->offset == b->offset && a->line == b->line &&
           a->function == b->function && a->file == b->file &&
           a->module == b->module && a->build_id == b->build_id &&
           a->python == b->python && a->inlined == b->inlined;
}

static size_t place_of(const struct seep_report_frame *frame)
{
    const uint64_t words[] = {frame->offset, frame->line,
                              (uintptr_t)frame->function,
                              (uintptr_t)frame->module};

    return seep_hash_words(0, words, sizeof(words) / sizeof(words[0])) %
           FRAMES_KEPT;
}

/* The text lives until the next call. */
static const char *text_of(struct seep_json_frame *kept,
                           const struct seep_report_frame *frame)
{
    struct seep_json_frame *at = &kept[place_of(frame)];

    if (at->text == NULL || !is_same(&at->frame, frame)) {
        json_t *object = frame_of(frame);

        free(at->text);
        at->frame = *frame;
        at->text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
        json_decref(object);
    }
    return at->text;
}

static void print_frames(struct seep_json_out *out,
                         struct seep_json_frame *kept,
                         const struct seep_report_site *site)
{
    seep_json_out_raw(out, ",\n\"frames\":[");
    for (size_t i = 0; i < site->frame_count && out->error == 0; i++) {
        const char *text = text_of(kept, &site->frames[i]);

        if (text == NULL) {
            out->error = -ENOMEM;
            return;
        }
        seep_json_out_raw(out, i == 0 ? "\n" : ",\n");
        seep_json_out_raw(out, text);
    }
    seep_json_out_raw(out, "]");
}

static void print_series(struct seep_json_out *out,
                         const struct seep_report_site *site)
{
    seep_json_out_raw(out, ",\n\"series\":[");
    for (size_t i = 0; i < site->point_count && out->error == 0; i++) {
        seep_json_out_raw(out, i == 0 ? "\n" : ",\n");
        seep_json_out_line(out, point_of(&site->series[i]));
    }
    seep_json_out_raw(out, "]");
}

struct seep_json_frame *seep_json_site_open(void)
{
    return calloc(FRAMES_KEPT, sizeof(struct seep_json_frame));
}

void seep_json_site_close(struct seep_json_frame *kept)
{
    for (size_t i = 0; kept != NULL && i < FRAMES_KEPT; i++) {
        free(kept[i].text);
    }
    free(kept);
}

void seep_json_site_print(struct seep_json_out *out,
                          struct seep_json_frame *kept,
                          const struct seep_report_site *site, bool series)
{
    seep_json_out_raw(out, "{");
    seep_json_out_members(out, members_of(site));
    if (series) {
        print_series(out, site);
    }
    print_frames(out, kept, site);
    seep_json_out_raw(out, "}");
}
