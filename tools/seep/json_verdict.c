/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verdict and the balance as JSON. Invariant: what the reader did not
 * compute is null, and so is a bound that is open.
 */
#include "json_verdict.h"

#include "json_parts.h"
#include "reader/catalogue.h"
#include "verdict_words.h"
#include "view_balance.h"
#include "words.h"

json_t *seep_json_pattern(const struct seep_pattern *pattern)
{
    json_t *object;

    if (pattern == NULL) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "id", seep_json_text(pattern->id));
    seep_json_put(object, "name", seep_json_text(pattern->name));
    seep_json_put(object, "cause", seep_json_text(pattern->cause));
    seep_json_put(object, "remedy", seep_json_text(pattern->remedy));
    seep_json_put(object, "source", seep_json_text(pattern->source));
    return object;
}

static json_t *texts_of(char *const *texts, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, seep_json_text(texts[i]));
    }
    return array;
}

static void put_counts(json_t *object,
                       const struct seep_report_verdict *verdict)
{
    seep_json_put(object, "first_share", seep_json_real(verdict->first_share));
    seep_json_put(object, "growing_count",
                  seep_json_count(verdict->growing_count));
    seep_json_put(object, "suppressed_count",
                  seep_json_count(verdict->suppressed_count));
    seep_json_put(object, "suppressed_bytes_per_s",
                  seep_json_real(verdict->suppressed_bytes_per_s));
    seep_json_put(object, "known_count", seep_json_count(verdict->known_count));
    seep_json_put(object, "minor_count", seep_json_count(verdict->minor_count));
    seep_json_put(object, "minor_bytes_per_s",
                  seep_json_real(verdict->minor_bytes_per_s));
    seep_json_put(object, "floor_bytes", seep_json_real(verdict->floor_bytes));
    seep_json_put(object, "filling", json_boolean(verdict->filling));
}

json_t *seep_json_verdict(const struct seep_report *report,
                          const struct seep_catalogue *catalogue)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    const struct seep_pattern *pattern =
        seep_verdict_words_pattern(report, catalogue);
    json_t *object = json_object();
    struct seep_verdict_words words;

    seep_verdict_words_make(report, pattern, &words);
    seep_json_put(object, "class",
                  json_string(seep_verdict_name(verdict->class)));
    seep_json_put(object, "device",
                  verdict->device < 0 ? json_null()
                                      : json_integer(verdict->device));
    seep_json_put(object, "sentence", seep_json_text_or_null(words.sentence));
    seep_json_put(object, "reasons",
                  texts_of(words.reasons, words.reason_count));
    seep_json_put(object, "advice", texts_of(words.advice, words.advice_count));
    seep_json_put(object, "growth_bytes_per_s",
                  verdict->has_growth
                      ? seep_json_interval(&verdict->growth_bytes_per_s, 1)
                      : json_null());
    seep_json_put(object, "growth_bytes_per_unit",
                  verdict->has_growth_per_unit
                      ? seep_json_interval(&verdict->growth_bytes_per_unit, 1)
                      : json_null());
    put_counts(object, verdict);
    seep_json_put(object, "pattern", seep_json_pattern(pattern));
    seep_json_put(object, "forecast", seep_json_forecast(&verdict->forecast));
    seep_verdict_words_fini(&words);
    return object;
}

static json_t *spaces_of(const struct seep_report *report)
{
    json_t *spaces = json_object();

    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];
        json_t *object = json_object();

        seep_json_put(object, "first_bytes",
                      seep_json_count(space->first_bytes));
        seep_json_put(object, "last_bytes", seep_json_count(space->live_bytes));
        seep_json_put(object, "slope_bytes_per_s",
                      seep_json_real(space->slope_bytes_per_s));
        seep_json_put(object, "live_bytes_error",
                      seep_json_real(space->live_bytes_error));
        seep_json_put(object, "allocated_bytes",
                      seep_json_count(space->allocated_bytes));
        seep_json_put(object, "freed_bytes",
                      seep_json_count(space->freed_bytes));
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
        seep_json_put(object, "name", seep_json_text(mapping->name));
        seep_json_put(object, "first_bytes",
                      seep_json_real(mapping->first_bytes));
        seep_json_put(object, "last_bytes",
                      seep_json_real(mapping->last_bytes));
        seep_json_put(object, "slope_bytes_per_s",
                      seep_json_real(mapping->slope_bytes_per_s));
        seep_json_put(object, "tracked", json_boolean(mapping->tracked));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *unexplained_of(const struct seep_report_memory *memory)
{
    json_t *object = seep_json_extent(&memory->unexplained);

    if (json_is_object(object)) {
        seep_json_put(object, "mappings",
                      memory->looked ? mappings_of(memory) : json_null());
    }
    return object;
}

static json_t *allocator_of(const struct seep_report_memory *memory)
{
    static const char *const kinds[] = {
        [SEEP_ALLOCATOR_UNKNOWN] = "unknown",
        [SEEP_ALLOCATOR_GLIBC] = "glibc",
        [SEEP_ALLOCATOR_JEMALLOC] = "jemalloc",
        [SEEP_ALLOCATOR_TCMALLOC] = "tcmalloc",
        [SEEP_ALLOCATOR_MIMALLOC] = "mimalloc",
    };
    json_t *object;

    if (!memory->allocator_told) {
        return json_null();
    }
    object = json_object();
    seep_json_put(
        object, "kind",
        json_string(memory->allocator < sizeof(kinds) / sizeof(kinds[0])
                        ? kinds[memory->allocator]
                        : "unknown"));
    seep_json_put(object, "allocated_bytes",
                  seep_json_count(memory->allocator_allocated_bytes));
    seep_json_put(object, "active_bytes",
                  seep_json_count(memory->allocator_active_bytes));
    seep_json_put(object, "resident_bytes",
                  seep_json_count(memory->allocator_resident_bytes));
    seep_json_put(object, "retained_bytes",
                  seep_json_count(memory->allocator_retained_bytes));
    seep_json_put(object, "free_chunks",
                  seep_json_count(memory->allocator_free_chunks));
    return object;
}

static json_t *known_bytes(uint64_t bytes)
{
    return bytes == 0 ? json_null() : seep_json_count(bytes);
}

json_t *seep_json_memory(const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_report_extent tracked = seep_view_balance_tracked(report);
    json_t *object = json_object();

    seep_json_put(object, "rss", seep_json_extent(&memory->rss));
    seep_json_put(object, "anonymous", seep_json_extent(&memory->anonymous));
    seep_json_put(object, "shared", seep_json_extent(&memory->shared));
    seep_json_put(object, "swap", seep_json_extent(&memory->swap));
    seep_json_put(object, "cgroup", seep_json_extent(&memory->cgroup));
    seep_json_put(object, "tracked", seep_json_extent(&tracked));
    seep_json_put(object, "allocator_overhead",
                  seep_json_extent(&memory->allocator_overhead));
    seep_json_put(object, "unexplained", unexplained_of(memory));
    seep_json_put(object, "allocator", allocator_of(memory));
    seep_json_put(object, "spaces", spaces_of(report));
    seep_json_put(object, "cgroup_limit_bytes",
                  known_bytes(memory->cgroup_limit_bytes));
    seep_json_put(object, "machine_bytes", known_bytes(memory->machine_bytes));
    seep_json_put(object, "available_bytes",
                  known_bytes(memory->available_bytes));
    return object;
}
