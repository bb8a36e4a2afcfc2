/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verdict, the balance, a call site and who holds what it keeps as JSON.
 * Invariant: what the reader did not compute is null, and so is a bound that is
 * open. What is kept of frames is bounded; which of them are kept shows in the
 * time only.
 */
#include "json/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "held/kept.h"
#include "reader/compare/patterns.h"
#include "words/common.h"
#include "words/held.h"
#include "words/verdict.h"
#include "words/words.h"

/*
 * The verdict and the balance.
 */

/* null if @pattern is NULL. */
static json_t *pattern_of(const struct seep_pattern *pattern)
{
    json_t *object;

    if (pattern == NULL) {
        return json_null();
    }
    object = json_object();
    SEEP_JSON_COPY(object, pattern, id, name, cause);
    SEEP_JSON_COPY(object, pattern, remedy, source);
    return object;
}

/* What is 0 where it is not known. */
static double known(double value)
{
    return value > 0 ? value : NAN;
}

static void put_counts(json_t *object,
                       const struct seep_report_verdict *verdict)
{
    SEEP_JSON_COPY(object, verdict, first_share, growing_count,
                   suppressed_count);
    SEEP_JSON_COPY(object, verdict, suppressed_bytes_per_s, known_count,
                   minor_count);
    SEEP_JSON_COPY(object, verdict, minor_bytes_per_s, floor_bytes, filling);
    SEEP_JSON_COPY(object, verdict, reassures, too_little);
    seep_json_put(object, "hidden_bytes_per_s",
                  known(verdict->hidden_bytes_per_s));
    seep_json_put(object, "need_s", known(verdict->need_s));
    SEEP_JSON_COPY(object, verdict, private_grows, shared_grows);
    seep_json_put(object, "fills_used_bytes",
                  verdict->fills_of_bytes > 0 ? verdict->fills_used_bytes
                                              : NAN);
    seep_json_put(object, "fills_of_bytes", known(verdict->fills_of_bytes));
    SEEP_JSON_COPY(object, verdict, beside_bytes_per_s, beside_is_files);
    SEEP_JSON_COPY(object, verdict, open_files);
}

/* What cannot be told beside the class. */
static json_t *open_of(const struct seep_report_verdict *verdict)
{
    json_t *object;

    if (verdict->open_reason == NULL) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "id", (const char *)verdict->open_id);
    seep_json_put(object, "reason", verdict->open_reason);
    seep_json_put(object, "growth_bytes_per_s", &verdict->open_bytes_per_s);
    return object;
}

static json_t *rest_of(const struct seep_report_verdict *verdict)
{
    static const char *const names[] = {SEEP_RESTS(SEEP_NAME_ALONE)};
    json_t *object = verdict->rest_bytes_per_s > 0 ? json_object() : NULL;

    SEEP_JSON_COPY(object, verdict, private_bytes_per_s);
    seep_json_put(object, "bytes_per_s", verdict->rest_bytes_per_s);
    seep_json_put(object, "place", names[verdict->rest]);
    return object;
}

json_t *seep_json_verdict(const struct seep_report *report,
                          const struct seep_catalogue *catalogue)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    const struct seep_pattern *pattern = seep_words_pattern(report, catalogue);
    json_t *object = json_object();
    struct seep_words_verdict words;

    seep_words_verdict(report, pattern, &words);
    seep_json_put(object, "class", seep_verdict_name(verdict->class));
    seep_json_put_device(object, "device", verdict->device);
    seep_json_put_text_or_null(object, "sentence", words.sentence);
    seep_json_put(object, "reasons",
                  seep_json_texts(words.reasons, words.reason_count));
    seep_json_put(object, "advice",
                  seep_json_texts(words.advice, words.advice_count));
    seep_json_put(object, "growth_bytes_per_s",
                  verdict->has_growth ? &verdict->growth_bytes_per_s : NULL);
    seep_json_put(object, "growth_bytes_per_unit",
                  verdict->has_growth_per_unit ? &verdict->growth_bytes_per_unit
                                               : NULL);
    put_counts(object, verdict);
    seep_json_put(object, "open", open_of(verdict));
    seep_json_put(object, "rest", rest_of(verdict));
    seep_json_put(object, "stopped",
                  *verdict->stopped_id == '\0' ? NULL : verdict->stopped_id);
    seep_json_put(object, "pattern", pattern_of(pattern));
    seep_json_put(object, "forecast", seep_json_forecast(&verdict->forecast));
    seep_words_verdict_fini(&words);
    return object;
}

static json_t *requested_of(const struct seep_report_requested *requested)
{
    json_t *object = json_object();

    SEEP_JSON_COPY(object, requested, live_bytes, allocated_bytes, freed_bytes);
    return object;
}

static json_t *spaces_of(const struct seep_report *report)
{
    json_t *spaces = json_object();

    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];
        json_t *object = json_object();

        SEEP_JSON_COPY(object, space, first_bytes);
        seep_json_put(object, "last_bytes", space->live_bytes);
        seep_json_put(object, "requested", requested_of(&space->requested));
        SEEP_JSON_COPY(object, space, slope_bytes_per_s, live_bytes_error,
                       allocated_bytes);
        SEEP_JSON_COPY(object, space, freed_bytes);
        seep_json_put(spaces, seep_words_space(space->space), object);
    }
    return spaces;
}

static json_t *mappings_of(const struct seep_report_memory *memory)
{
    json_t *array = json_array();

    for (size_t i = 0; i < memory->mapping_count; i++) {
        const struct seep_report_mapping *mapping = &memory->mappings[i];
        json_t *object = json_object();

        seep_json_put(object, "start", seep_json_address(mapping->start));
        seep_json_put(object, "end", seep_json_address(mapping->end));
        SEEP_JSON_COPY(object, mapping, name, first_bytes, last_bytes);
        SEEP_JSON_COPY(object, mapping, slope_bytes_per_s, tracked);
        seep_json_put(object, "filled_id",
                      *mapping->filled_id == '\0' ? (const char *)NULL
                                                  : mapping->filled_id);
        seep_json_put(object, "filled_of_bytes",
                      known(mapping->filled_of_bytes));
        json_array_append_new(array, object);
    }
    return array;
}

/* How many, and not bytes. */
static json_t *threads_of(const struct seep_report_extent *threads)
{
    json_t *object = threads->valid ? json_object() : NULL;

    seep_json_put(object, "first", threads->first_bytes);
    seep_json_put(object, "last", threads->last_bytes);
    seep_json_put(object, "slope_per_s", threads->slope_bytes_per_s);
    seep_json_put(object, "slope_error_per_s", threads->slope_error);
    return object;
}

static json_t *unexplained_of(const struct seep_report_memory *memory)
{
    json_t *object = seep_json_extent(&memory->unexplained);

    seep_json_put(object, "mappings",
                  memory->has_samples ? mappings_of(memory) : NULL);
    return object;
}

static json_t *allocator_of(const struct seep_report_memory *memory)
{
    static const char *const kinds[] = {
#define ALLOCATOR_NAME(symbol, name) (name),
        SEEP_ALLOCATORS(ALLOCATOR_NAME)
#undef ALLOCATOR_NAME
    };
    json_t *object = memory->allocator_reported ? json_object() : NULL;

    seep_json_put(object, "kind", kinds[memory->allocator]);
    seep_json_put(object, "allocated_bytes", memory->allocator_allocated_bytes);
    seep_json_put(object, "active_bytes", memory->allocator_active_bytes);
    seep_json_put(object, "resident_bytes", memory->allocator_resident_bytes);
    seep_json_put(object, "retained_bytes", memory->allocator_retained_bytes);
    seep_json_put(object, "free_chunks", memory->allocator_free_chunks);
    return object;
}

static json_t *bound_of(const struct seep_report_bound *bound)
{
    json_t *object = bound->limit_bytes > 0 ? json_object() : NULL;

    SEEP_JSON_COPY(object, bound, limit_bytes, used_bytes);
    return object;
}

json_t *seep_json_memory(const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_report_extent tracked = seep_words_tracked(report);
    struct seep_report_extent surplus = seep_words_surplus(report);
    json_t *object = json_object();

    seep_json_put(object, "rss", seep_json_extent(&memory->rss));
    seep_json_put(object, "anonymous", seep_json_extent(&memory->anonymous));
    seep_json_put(object, "shared", seep_json_extent(&memory->shared));
    seep_json_put(object, "own", seep_json_extent(&memory->own));
    seep_json_put(object, "forked", seep_json_extent(&memory->forked));
    seep_json_put(object, "threads", threads_of(&memory->threads));
    seep_json_put(object, "files", seep_json_extent(&memory->files));
    seep_json_put(object, "swap", seep_json_extent(&memory->swap));
    seep_json_put(object, "cgroup", seep_json_extent(&memory->cgroup));
    seep_json_put(object, "cgroup_held",
                  seep_json_extent(&memory->cgroup_held));
    seep_json_put(object, "cgroup_shmem",
                  seep_json_extent(&memory->cgroup_shmem));
    seep_json_put(object, "open_files", seep_json_extent(&memory->open_files));
    seep_json_put_text_or_null(object, "open_file",
                               memory->open_files.valid ? memory->open_file
                                                        : NULL);
    seep_json_put(object, "tracked", seep_json_extent(&tracked));
    seep_json_put(object, "allocator_overhead",
                  seep_json_extent(&memory->allocator_overhead));
    seep_json_put(object, "unexplained", unexplained_of(memory));
    seep_json_put(object, "surplus", seep_json_extent(&surplus));
    seep_json_put(object, "allocator", allocator_of(memory));
    seep_json_put(object, "spaces", spaces_of(report));
    seep_json_put_known(object, "cgroup_limit_bytes",
                        memory->cgroup_limit_bytes);
    seep_json_put(object, "address_space", bound_of(&memory->address_space));
    seep_json_put(object, "data", bound_of(&memory->data));
    seep_json_put_known(object, "machine_bytes", memory->machine_bytes);
    seep_json_put_known(object, "available_bytes", memory->available_bytes);
    return object;
}

static void print_moments(struct seep_json_out *out,
                          const struct seep_report_memory *memory)
{
#define TOLD(name)                                    \
    {                                                 \
        ",\"" #name "\":", SEEP_JSON_TOLD,            \
            offsetof(struct seep_report_moment, name) \
    }
    static const struct seep_json_field fields[] = {
        SEEP_JSON_FIELD("\"t_s\":", struct seep_report_moment, t_s),
        TOLD(held_bytes),
        TOLD(private_bytes),
        TOLD(own_bytes),
        TOLD(cgroup_bytes),
        TOLD(tracked_bytes),
        TOLD(allocator_overhead_bytes),
        TOLD(unexplained_bytes),
    };
#undef TOLD
    static const struct seep_json_rows rows = {
        .head = "{",
        .fields = fields,
        .field_count = sizeof(fields) / sizeof(fields[0]),
        .tail = "}",
        .between = ",\n",
        .row_bytes = sizeof(struct seep_report_moment),
    };

    seep_json_out_rows(out, &rows, memory->moments, memory->moment_count);
}

static void print_reals(struct seep_json_out *out, const double *values,
                        size_t count)
{
    static const struct seep_json_field field = {"", SEEP_JSON_REAL, 0};
    static const struct seep_json_rows rows = {.head = "",
                                               .fields = &field,
                                               .field_count = 1,
                                               .tail = "",
                                               .between = ",",
                                               .row_bytes = sizeof(double)};

    seep_json_out_raw(out, "[");
    seep_json_out_rows(out, &rows, values, count);
    seep_json_out_raw(out, "]");
}

void seep_json_timeline_print(struct seep_json_out *out,
                              const struct seep_report *report)
{
    seep_json_out_raw(out, "{\"end_s\":");
    print_reals(out, report->bucket_end_s, report->bucket_count);
    seep_json_out_raw(out, ",\n\"spaces\":{");
    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];

        seep_json_out_raw(out, i == 0 ? "\n\"" : ",\n\"");
        seep_json_out_raw(out, seep_words_space(space->space));
        seep_json_out_raw(out, "\":");
        print_reals(out, space->live,
                    space->live == NULL ? 0 : report->bucket_count);
    }
    seep_json_out_raw(out, "},\n\"moments\":[\n");
    print_moments(out, &report->memory);
    seep_json_out_raw(out, "]}");
}

/*
 * Call sites.
 */

/* Stacks share their frames: of 760,000 in a report of 20,000 call sites there
 * were 40 different ones. */
#define FRAMES_KEPT 4096U /* a power of two */

struct frame {
    struct seep_report_frame frame;
    char *text;
};

struct seep_json_frame {
    struct frame *kept[FRAMES_KEPT]; /* NULL: empty */
};

json_t *seep_json_frame_of(const struct seep_report_frame *frame)
{
    json_t *object = json_object();

    seep_json_put(object, "kind", frame->python ? "python" : "native");
    seep_json_put_text_or_null(object, "function", frame->function);
    seep_json_put_text_or_null(object, "file", frame->file);
    seep_json_put_known(object, "line", frame->line);
    if (frame->source != NULL) {
        seep_json_put(object, "source", frame->source);
    }
    seep_json_put_text_or_null(object, "module", frame->module);
    seep_json_put_text_or_null(object, "build_id", frame->build_id);
    seep_json_put(object, "offset",
                  frame->python ? NULL : seep_json_address(frame->offset));
    SEEP_JSON_COPY(object, frame, inlined);
    return object;
}

static json_t *untold_of(const struct seep_report_site *site)
{
    const struct seep_report_untold *untold = &site->untold;
    json_t *object = untold->to_s > 0 ? json_object() : NULL;

    SEEP_JSON_COPY(object, untold, from_s, to_s);
    SEEP_JSON_COPY(object, untold, allocated_bytes, allocated_count,
                   freed_bytes);
    return object;
}

static void put_totals(json_t *object, const struct seep_report_site *site)
{
    json_t *windows = json_array();

    SEEP_JSON_COPY(object, site, live_bytes, live_bytes_error, live_count);
    seep_json_put(object, "requested", requested_of(&site->requested));
    seep_json_put(object, "touched_bytes",
                  site->touched_bytes >= 0 ? site->touched_bytes : NAN);
    SEEP_JSON_COPY(object, site, elsewhere_bytes);
    SEEP_JSON_COPY(object, site, allocated_bytes, allocated_count, freed_bytes);
    SEEP_JSON_COPY(object, site, freed_count, peak_bytes, largest_bytes);
    SEEP_JSON_COPY(object, site, died_bytes, temporary_bytes, temporary_count);
    seep_json_put(object, "untold", untold_of(site));
    SEEP_JSON_COPY(object, site, first_s, last_s);
    seep_json_put(object, "start_up", site->is_start);
    for (size_t i = 0; i < SEEP_GROWTH_WINDOWS; i++) {
        json_array_append_new(windows, seep_json_real(site->window_bytes[i]));
    }
    seep_json_put(object, "born_alive_by_tenth_bytes", windows);
}

static void put_growth(json_t *object, const struct seep_report_site *site)
{
    seep_json_put(object, "growth_bytes_per_s",
                  site->has_growth ? &site->growth_bytes_per_s : NULL);
    seep_json_put(object, "growth_now_bytes_per_s",
                  site->has_growth ? site->growth_now_bytes_per_s : NAN);
    seep_json_put(object, "growth_bytes_per_unit",
                  site->has_growth_per_unit ? &site->growth_bytes_per_unit
                                            : NULL);
    seep_json_put(object, "confidence",
                  site->has_growth ? site->confidence : NAN);
}

static void put_group(json_t *object, const struct seep_report_site *site)
{
    static const char *const roles[] = {
        [SEEP_ROLE_HEAD] = "head",
        [SEEP_ROLE_MEMBER] = "member",
        [SEEP_ROLE_LENDER] = "lender",
    };

    SEEP_JSON_COPY(object, site, keeps_share);
    seep_json_put_text_or_null(object, "group", site->group_id);
    seep_json_put(object, "role", roles[site->role]);
    SEEP_JSON_COPY(object, site, leaks_in_step);
    seep_json_put(object, "group_growth_bytes_per_s",
                  site->role == SEEP_ROLE_HEAD ? &site->group_growth_bytes_per_s
                                               : NULL);
}

/* What of how it grows was tested, and what follows from it; null: nothing. */
static void put_course(json_t *object, const struct seep_report_site *site)
{
    bool has_stopped = site->stopped_ln_p < 0 && site->stopped_since_s >= 0;
    json_t *stopped = has_stopped ? json_object() : NULL;
    json_t *steps = site->in_steps ? json_object() : NULL;

    seep_json_put(stopped, "since_s", site->stopped_since_s);
    seep_json_put(stopped, "chance", exp(site->stopped_ln_p));
    seep_json_put(steps, "next_s", known(site->step_next_s));
    seep_json_put(steps, "next_bytes", known(site->step_next_bytes));
    seep_json_put(object, "stopped", stopped);
    seep_json_put(object, "steps", steps);
    SEEP_JSON_COPY(object, site, in_bursts);
}

static json_t *kept_of(const struct seep_report_site *site)
{
    json_t *object = site->has_growth ? json_object() : NULL;

    SEEP_JSON_COPY(object, &site->kept, since_s, share);
    seep_json_put(object, "oldest_death_s", known(site->kept.oldest_death_s));
    SEEP_JSON_COPY(object, &site->kept, died_share, gave_back_old);
    return object;
}

/* As the file has it. */
static json_t *rule_of(const struct seep_report_site *site)
{
    char *rule;
    json_t *value;

    if (site->suppressed_by == NULL ||
        asprintf(&rule, "leak:%s", site->suppressed_by) < 0) {
        return NULL;
    }
    value = seep_json_text(rule);
    free(rule);
    return value;
}

static json_t *members_of(const struct seep_report_site *site)
{
    json_t *object = json_object();

    SEEP_JSON_COPY(object, site, id);
    seep_json_put_text_or_null(object, "line_id", site->line_id);
    seep_json_put(object, "space", seep_words_space(site->space));
    seep_json_put_device(object, "device", site->device);
    seep_json_put_text_or_null(object, "pool", site->pool);
    SEEP_JSON_COPY(object, site, backs_tensors);
    seep_json_put(object, "class", seep_class_name(site->class));
    seep_json_put_text_or_null(object, "reason", site->class_reason);
    SEEP_JSON_COPY(object, site, torn);
    put_totals(object, site);
    put_growth(object, site);
    put_course(object, site);
    put_group(object, site);
    seep_json_put(object, "kept", kept_of(site));
    seep_json_put(object, "held", seep_json_kept(site));
    seep_json_put(object, "pattern", pattern_of(site->pattern));
    seep_json_put(object, "suppressed_by", rule_of(site));
    seep_json_put_known(object, "known_bound_bytes", site->known_bound_bytes);
    SEEP_JSON_COPY(object, site, where);
    seep_json_put(object, "stacks", site->stack_count);
    SEEP_JSON_COPY(object, site, stack_live_bytes);
    seep_json_put_text_or_null(object, "thread", site->thread);
    seep_json_put(object, "stack_end", seep_words_cut(site->cut));
    return object;
}

/* Strings by their addresses: a reader keeps each once. Two that only look
 * different are made twice, and that is all. */
bool seep_json_frame_is(const struct seep_report_frame *a,
                        const struct seep_report_frame *b)
{
    return a->offset == b->offset && a->line == b->line &&
           a->function == b->function && a->file == b->file &&
           a->module == b->module && a->build_id == b->build_id &&
           a->python == b->python && a->inlined == b->inlined;
}

uint64_t seep_json_frame_hash(const struct seep_report_frame *frame)
{
    const uint64_t words[] = {frame->offset, frame->line,
                              (uintptr_t)frame->function,
                              (uintptr_t)frame->module};

    return seep_hash_words(0, words, sizeof(words) / sizeof(words[0]));
}

static void frame_free(struct frame *frame)
{
    if (frame != NULL) {
        free(frame->text);
        free(frame);
    }
}

/* The text lives until the next call. NULL: no memory. */
static const char *text_of(struct seep_json_frame *kept,
                           const struct seep_report_frame *frame)
{
    struct frame **at = &kept->kept[seep_json_frame_hash(frame) % FRAMES_KEPT];

    if (*at == NULL || !seep_json_frame_is(&(*at)->frame, frame)) {
        struct frame *made = malloc(sizeof(*made));

        frame_free(*at);
        *at = made;
        if (made == NULL) {
            return NULL;
        }
        made->frame = *frame;
        made->text = seep_json_line(seep_json_frame_of(frame));
    }
    return (*at)->text;
}

static void print_frames(struct seep_json_out *out,
                         struct seep_json_frame *kept,
                         const struct seep_report_site *site)
{
    seep_json_out_raw(out, ",\n\"frames\":[");
    for (size_t i = 0; i < site->frame_count && out->error == 0; i++) {
        const char *text = text_of(kept, site->frames[i]);

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
    static const struct seep_json_field fields[] = {
        SEEP_JSON_FIELD("\"t_s\":", struct seep_report_point, start_s),
#define FIELD(name) \
    SEEP_JSON_FIELD(",\"" #name "\":", struct seep_report_point, name)
        FIELD(width_s),
        FIELD(live_bytes),
        FIELD(low_bytes),
        FIELD(allocated_bytes),
        FIELD(freed_bytes),
        FIELD(born_freed_bytes),
#undef FIELD
    };
    static const struct seep_json_rows rows = {
        .head = "{",
        .fields = fields,
        .field_count = sizeof(fields) / sizeof(fields[0]),
        .tail = "}",
        .between = ",\n",
        .row_bytes = sizeof(struct seep_report_point),
    };

    seep_json_out_raw(out, ",\n\"series\":[");
    seep_json_out_raw(out, site->point_count > 0 ? "\n" : "");
    seep_json_out_rows(out, &rows, site->series, site->point_count);
    seep_json_out_raw(out, "]");
}

struct seep_json_frame *seep_json_site_open(void)
{
    return calloc(1, sizeof(struct seep_json_frame));
}

void seep_json_site_close(struct seep_json_frame *kept)
{
    for (size_t i = 0; kept != NULL && i < FRAMES_KEPT; i++) {
        frame_free(kept->kept[i]);
    }
    free(kept);
}

void seep_json_site_print(struct seep_json_out *out,
                          struct seep_json_frame *kept,
                          const struct seep_report_site *site, bool series,
                          json_t *window)
{
    json_t *members = members_of(site);

    seep_json_put(members, "window", window);
    seep_json_out_raw(out, "{");
    seep_json_out_members(out, members);
    if (series) {
        print_series(out, site);
    }
    if (kept != NULL) {
        print_frames(out, kept, site);
    }
    seep_json_out_raw(out, "}");
}

/*
 * Who holds what, as a document. Invariant: as in words/held.c, no key of a
 * dict that is data.
 */

static void put_freed(json_t *object, const char *key, char *text)
{
    seep_json_put_text_or_null(object, key, text == NULL ? "" : text);
    free(text);
}

static json_t *held_step_of(const struct seep_held_step *step)
{
    json_t *object = json_object();
    seep_json_put(object, "by", seep_held_edge_name(step->edge));
    seep_json_put_text_or_null(object, "by_name",
                               seep_held_is_data(step) ? "" : step->edge_name);
    seep_json_put_text_or_null(object, "by_function", step->edge_function);
    seep_json_put(object, "offset_bytes", (double)step->offset_bytes);
    seep_json_put(object, "kind", seep_held_kind_name(step->kind));
    seep_json_put_text_or_null(object, "name", step->name);
    seep_json_put_text_or_null(object, "function", step->function);
    seep_json_put_text_or_null(object, "file", step->file);
    seep_json_put(object, "address", seep_json_address(step->address));
    seep_json_put(object, "bytes", step->bytes);
    if (step->has_items) {
        seep_json_put(object, "items", step->items);
    } else {
        seep_json_put(object, "items", json_null());
    }
    return object;
}

static json_t *held_group_of(const struct seep_held_group *group,
                             size_t asked_count)
{
    json_t *object = json_object();
    json_t *steps = json_array();

    seep_json_put(object, "end", seep_held_end_name(group->end));
    seep_json_put(object, "blocks", group->block_count);
    seep_json_put(object, "share",
                  (double)group->block_count / (double)asked_count);
    put_freed(object, "sentence", seep_words_held(group));
    put_freed(object, "holder", seep_words_holder(group));
    put_freed(object, "chain", seep_words_held_chain(group));
    seep_json_put_text_or_null(object, "remedy", seep_words_held_remedy(group));
    for (size_t i = 0; i < group->step_count; i++) {
        json_array_append_new(steps, held_step_of(&group->steps[i]));
    }
    seep_json_put(object, "steps", steps);
    if (group->holder < group->step_count) {
        seep_json_put(object, "holder_step", group->holder);
    } else {
        seep_json_put(object, "holder_step", json_null());
    }
    if (group->call_count > 1) {
        seep_json_put(object, "calls", group->call_count);
    } else {
        seep_json_put(object, "calls", json_null());
    }
    return object;
}

/* A file whose names are missing in what is said. */
static json_t *nameless_of(const struct seep_held_answer *answer)
{
    json_t *object;

    if (answer->nameless_path == NULL) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "path", answer->nameless_path);
    seep_json_put(object, "reason",
                  seep_nameless_reason(answer->nameless_error));
    return object;
}

json_t *seep_json_held(const struct seep_held_answer *answer)
{
    json_t *object;
    json_t *groups;

    if (answer == NULL) {
        return json_null();
    }
    object = json_object();
    groups = json_array();
    seep_json_put(object, "asked", answer->asked_count);
    for (size_t i = 0; i < answer->group_count; i++) {
        json_array_append_new(
            groups, held_group_of(&answer->groups[i], answer->asked_count));
    }
    seep_json_put(object, "groups", groups);
    seep_json_put(object, "levels", answer->level_count);
    seep_json_put(object, "tries", answer->try_count);
    seep_json_put(object, "level_bytes", answer->level_bytes);
    seep_json_put(object, "swapped_bytes", answer->swapped_bytes);
    seep_json_put(object, "failed_bytes", answer->failed_bytes);
    seep_json_put(object, "elapsed_s", answer->elapsed_s);
    seep_json_put(object, "cpu_s", answer->cpu_s);
    seep_json_put(object, "frozen_s", answer->frozen_s);
    seep_json_put(object, "cpu_limit_s", answer->cpu_limit_s);
    seep_json_put(object, "cut_short", answer->was_cut_short);
    seep_json_put(object, "out_of_time", answer->was_late);
    seep_json_put(object, "missing_bytes", answer->missing_bytes);
    put_freed(object, "other_file",
              answer->other_file == NULL ? NULL : strdup(answer->other_file));
    seep_json_put(object, "nameless", nameless_of(answer));
    return object;
}

json_t *seep_json_kept(const struct seep_report_site *site)
{
    const struct seep_held_kept *kept = site->held;
    json_t *object;

    if (kept == NULL) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "outcome", seep_held_outcome_name(kept->outcome));
    put_freed(object, "line", seep_words_held_line(kept, site->live_bytes));
    seep_json_put(object, "asked_s", kept->asked_s);
    seep_json_put(object, "asked_live_bytes", kept->live_bytes);
    seep_json_put(object, "answer", seep_json_held(kept->answer));
    return object;
}

static json_t *common_of(const struct seep_report *report,
                         const struct seep_words_commons *commons,
                         const struct seep_words_common *common)
{
    json_t *object = json_object();
    json_t *ids = json_array();

    for (size_t i = 0; i < common->site_count; i++) {
        json_array_append_new(ids, seep_json_text(common->sites[i]->id));
    }
    put_freed(object, "sentence",
              seep_words_common_line(report, commons, common));
    put_freed(object, "held_by", seep_words_held(&common->held_by));
    put_freed(object, "holder", seep_words_holder(&common->held_by));
    seep_json_put_text_or_null(object, "remedy",
                               seep_words_held_remedy(&common->held_by));
    seep_json_put(object, "sites", ids);
    seep_json_put(object, "count", common->site_count);
    seep_json_put(object, "leaks", common->leak_count);
    seep_json_put(object, "asked", commons->asked_count);
    seep_json_put(object, "growing", commons->wanted_count);
    SEEP_JSON_COPY(object, common, live_bytes, asked_live_bytes);
    seep_json_put(object, "growth_bytes_per_s", &common->growth_bytes_per_s);
    seep_json_put(object, "more_than_first",
                  seep_words_common_is_news(report, common));
    return object;
}

json_t *seep_json_held_together(const struct seep_report *report)
{
    json_t *array = json_array();
    struct seep_words_commons commons;

    if (seep_words_commons_make(report, &commons) < 0) {
        return array;
    }
    for (size_t i = 0; i < commons.count; i++) {
        json_array_append_new(array,
                              common_of(report, &commons, &commons.list[i]));
    }
    seep_words_commons_fini(&commons);
    return array;
}

static json_t *pin_sites_of(const struct seep_held_kept_pins *pins)
{
    json_t *array = json_array();

    for (size_t i = 0; i < pins->site_count; i++) {
        const struct seep_held_pin_site *site = &pins->sites[i];
        json_t *object = json_object();

        seep_json_put(object, "id", site->site_id);
        seep_json_put_text_or_null(object, "where", site->where);
        seep_json_put(object, "blocks", site->pin_count);
        seep_json_put(object, "apart_bytes", site->apart_bytes);
        json_array_append_new(array, object);
    }
    return array;
}

json_t *seep_json_pins(const struct seep_report *report)
{
    const struct seep_held_kept_pins *pins = report->pins;
    json_t *object;

    if (pins == NULL) {
        return json_null();
    }
    object = json_object();
    SEEP_JSON_COPY(object, pins, asked_s, piece_count, piece_bytes);
    SEEP_JSON_COPY(object, pins, pin_count, pin_bytes, apart_bytes);
    SEEP_JSON_COPY(object, pins, known_count, known_apart_bytes);
    put_freed(object, "where", seep_words_pins_where(report));
    put_freed(object, "sentence", seep_words_pins(report));
    put_freed(object, "held_by", seep_words_pins_held(report));
    put_freed(object, "remedy", seep_words_pins_advice(report));
    seep_json_put(object, "sites", pin_sites_of(pins));
    seep_json_put(object, "held",
                  pins->answer == NULL || pins->answer->group_count == 0
                      ? json_null()
                      : seep_json_held(pins->answer));
    return object;
}

int seep_json_held_rows(FILE *file, const struct seep_report *report,
                        const struct seep_json_held_row *rows, size_t count)
{
    json_t *document = json_object();
    json_t *sites = json_array();
    char version[32];

    for (size_t i = 0; i < count; i++) {
        const struct seep_report_site *site = rows[i].site;
        json_t *object = json_object();

        SEEP_JSON_COPY(object, site, id, where, live_bytes);
        seep_json_put(object, "space", seep_words_space(site->space));
        seep_json_put(object, "class", seep_class_name(site->class));
        seep_json_put(object, "blocks_known", site->block_total);
        seep_json_put(object, "held", seep_json_held(rows[i].answer));
        json_array_append_new(sites, object);
    }
    seep_json_put(document, "schema", "seep-held/1");
    seep_json_put(document, "pid", report->pid);
    seep_json_put(document, "recording", report->path);
    seep_words_python_version(report->python_version, version, sizeof(version));
    seep_json_put(document, "python_version",
                  report->python_version == 0 ? NULL : version);
    seep_json_put(document, "python_known",
                  seep_held_knows_python(report->python_version));
    seep_json_put(document, "sites", sites);
    seep_json_put(document, "pins", seep_json_pins(report));
    return seep_json_print(file, document);
}
