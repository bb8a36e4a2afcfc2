/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stacks of a process for its page: each frame once, by its number, and
 * figures over time as columns by the number of the bucket.
 *
 * Invariant: what is printed is ASCII, and its size is that of what differs:
 * ten thousand stacks share some hundred frames.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "reader/recording/store.h"
#include "words/words.h"
#include "json/json.h"

/* Frames by their numbers, and those by what they are. */
struct frames {
    const struct seep_report_frame **list;
    uint32_t *slots;   /* number + 1; 0: free */
    size_t slot_count; /* a power of two, at least twice the count */
    size_t count;
};

static void frames_fini(struct frames *frames)
{
    free(frames->list);
    free(frames->slots);
}

/* Where @frame is, or belongs. */
static uint32_t *slot_of(const struct frames *frames,
                         const struct seep_report_frame *frame)
{
    size_t mask = frames->slot_count - 1;
    size_t slot = seep_json_frame_hash(frame) & mask;

    while (frames->slots[slot] != 0 &&
           !seep_json_frame_is(frames->list[frames->slots[slot] - 1], frame)) {
        slot = (slot + 1) & mask;
    }
    return &frames->slots[slot];
}

/* Room for one more. @return 0 or -ENOMEM */
static int frames_reserve(struct frames *frames)
{
    size_t slot_count = frames->slot_count == 0 ? 64 : frames->slot_count * 2;
    const struct seep_report_frame **list =
        seep_list_grow(frames->list, frames->count, sizeof(*list));
    uint32_t *slots;

    if (list == NULL) {
        return -ENOMEM;
    }
    frames->list = list;
    if (2 * frames->count < frames->slot_count) {
        return 0;
    }
    slots = calloc(slot_count, sizeof(*slots));
    if (slots == NULL) {
        return -ENOMEM;
    }
    free(frames->slots);
    frames->slots = slots;
    frames->slot_count = slot_count;
    for (size_t i = 0; i < frames->count; i++) {
        *slot_of(frames, frames->list[i]) = (uint32_t)i + 1;
    }
    return 0;
}

static uint32_t frames_number(struct frames *frames,
                              const struct seep_report_frame *frame, int *error)
{
    uint32_t *slot = frames->slot_count == 0 ? NULL : slot_of(frames, frame);

    if (slot != NULL && *slot != 0) {
        return *slot - 1;
    }
    if (frames_reserve(frames) != 0) {
        *error = -ENOMEM;
        return 0;
    }
    frames->list[frames->count++] = frame;
    *slot_of(frames, frame) = (uint32_t)frames->count;
    return (uint32_t)frames->count - 1;
}

static void put_number(struct seep_json_out *out, size_t index, uint64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%s%" PRIu64, index == 0 ? "" : ",", value);
    seep_json_out_raw(out, text);
}

/* Of the time grid, that in which @end_s lies. */
static size_t bucket_at(const struct seep_report *report, double end_s)
{
    size_t low = 0;
    size_t high = report->bucket_count > 0 ? report->bucket_count - 1 : 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (report->bucket_end_s[middle] < end_s - 1e-6) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void print_series(struct seep_json_out *out,
                         const struct seep_report *report,
                         const struct seep_report_site *site)
{
#define COLUMN(name)                                            \
    {                                                           \
        ",\"" #name "\":[",                                     \
            SEEP_JSON_FIELD("", struct seep_report_point, name) \
    }
    static const struct {
        const char *name;
        struct seep_json_field field;
    } columns[] = {
        COLUMN(live_bytes),
        COLUMN(allocated_bytes),
        COLUMN(freed_bytes),
    };
#undef COLUMN
    const struct seep_report_point *series = site->series;
    struct seep_json_rows rows = {.head = "",
                                  .field_count = 1,
                                  .tail = "",
                                  .between = ",",
                                  .row_bytes = sizeof(*series)};

    seep_json_out_raw(out, ",\"series\":{\"bucket\":[");
    for (size_t i = 0; i < site->point_count; i++) {
        put_number(out, i,
                   bucket_at(report, series[i].start_s + series[i].width_s));
    }
    seep_json_out_raw(out, "]");
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        rows.fields = &columns[i].field;
        seep_json_out_raw(out, columns[i].name);
        seep_json_out_rows(out, &rows, series, site->point_count);
        seep_json_out_raw(out, "]");
    }
    seep_json_out_raw(out, "}");
}

static json_t *members_of(const struct seep_report_stack *stack)
{
    const struct seep_report_site *site = &stack->site;
    json_t *object = json_object();

    seep_json_put(object, "row",
                  stack->row == SIZE_MAX ? NULL : seep_json_count(stack->row));
    seep_json_put(object, "space", seep_words_space(site->space));
    seep_json_put_device(object, "device", site->device);
    seep_json_put_text_or_null(object, "thread", site->thread);
    seep_json_put(object, "stack_end", seep_words_cut(site->cut));
    SEEP_JSON_COPY(object, site, live_bytes, live_count, peak_bytes);
    SEEP_JSON_COPY(object, site, allocated_bytes, allocated_count, freed_bytes);
    SEEP_JSON_COPY(object, site, first_s);
    return object;
}

static void print_stack(struct seep_json_out *out, struct frames *frames,
                        const struct seep_report *report,
                        const struct seep_report_stack *stack)
{
    seep_json_out_raw(out, "{");
    seep_json_out_members(out, members_of(stack));
    seep_json_out_raw(out, ",\"frames\":[");
    for (size_t i = 0; i < stack->site.frame_count; i++) {
        put_number(out, i,
                   frames_number(frames, stack->site.frames[i], &out->error));
    }
    seep_json_out_raw(out, "]");
    print_series(out, report, &stack->site);
    seep_json_out_raw(out, "}");
}

void seep_json_stacks_print(struct seep_json_out *out,
                            const struct seep_report *report)
{
    struct frames frames = {.list = NULL};

    seep_json_out_raw(out, ",\n\"stacks\":[");
    for (size_t i = 0; i < report->stack_count && out->error == 0; i++) {
        seep_json_out_raw(out, i == 0 ? "\n" : ",\n");
        print_stack(out, &frames, report, &report->stacks[i]);
    }
    seep_json_out_raw(out, "],\n\"frames\":[");
    for (size_t i = 0; i < frames.count && out->error == 0; i++) {
        seep_json_out_raw(out, i == 0 ? "\n" : ",\n");
        seep_json_out_line(out, seep_json_frame_of(frames.list[i]));
    }
    seep_json_out_raw(out, "]");
    frames_fini(&frames);
}
