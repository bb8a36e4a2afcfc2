/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A check for machines; see view_check.h. Invariant: sizes are bytes and rates
 * bytes per second, whatever people are shown.
 */
#include <stdlib.h>

#include "json_out.h"
#include "json_parts.h"
#include "json_process.h"
#include "say.h"
#include "view_check.h"
#include "words.h"

static const char *unit_of(enum seep_check_kind kind)
{
    return kind == SEEP_CHECK_GROWTH || kind == SEEP_CHECK_BASELINE
               ? "bytes_per_s"
           : kind == SEEP_CHECK_GROWTH_PER_UNIT ? "bytes_per_unit"
                                                : "bytes";
}

static json_t *process_of(const struct seep_report *report)
{
    json_t *object;

    if (report == NULL) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "path", seep_json_text(report->path));
    seep_json_put(object, "pid", json_integer(report->pid));
    seep_json_put(object, "exe", seep_json_text(report->executable));
    seep_json_put(object, "labels", seep_json_text(report->labels));
    seep_json_put(object, "duration_s", seep_json_real(report->duration_s));
    seep_json_put(object, "verdict",
                  json_string(seep_verdict_name(report->verdict.class)));
    return object;
}

static json_t *site_of(const struct seep_report_site *site)
{
    json_t *object = json_object();
    unsigned line = 0;
    const char *file = seep_check_file(site, &line);

    seep_json_put(object, "id", seep_json_text(site->id));
    seep_json_put(object, "space", json_string(seep_words_space(site->space)));
    seep_json_put(object, "class", json_string(seep_class_name(site->class)));
    seep_json_put(object, "where", seep_json_text(site->where));
    seep_json_put(object, "file", seep_json_text_or_null(file));
    seep_json_put(object, "line", line == 0 ? json_null() : json_integer(line));
    seep_json_put(object, "growth_bytes_per_s",
                  seep_json_interval(&site->growth_bytes_per_s, 1));
    return object;
}

static json_t *sites_of(const struct seep_check_result *result)
{
    json_t *array = json_array();

    for (size_t i = 0; i < result->site_count; i++) {
        json_array_append_new(array, site_of(result->sites[i]));
    }
    return array;
}

static json_t *result_of(const struct seep_check_result *result)
{
    const struct seep_check_limit *limit = result->limit;
    const struct seep_check_measure *measure = &result->measure;
    json_t *object = json_object();

    seep_json_put(object, "limit", json_string(seep_check_name(limit->kind)));
    seep_json_put(
        object, "space",
        limit->space == SEEP_CHECK_ALL_SPACES
            ? json_null()
            : json_string(seep_words_space((enum seep_space)limit->space)));
    seep_json_put(object, "label", seep_json_text_or_null(limit->label));
    seep_json_put(object, "unit", json_string(unit_of(limit->kind)));
    seep_json_put(object, "bound",
                  limit->kind == SEEP_CHECK_BASELINE
                      ? json_null()
                      : seep_json_real(limit->value));
    seep_json_put(object, "outcome",
                  json_string(seep_check_outcome_name(result->outcome)));
    seep_json_put(object, "forgiven", json_boolean(result->forgiven));
    seep_json_put(object, "reason", seep_json_text_or_null(measure->reason));
    seep_json_put(object, "measured",
                  measure->valid ? seep_json_interval(&measure->value, 1)
                                 : json_null());
    seep_json_put(object, "device",
                  measure->device < 0 ? json_null()
                                      : json_integer(measure->device));
    seep_json_put(object, "process", process_of(result->report));
    seep_json_put(object, "sites", sites_of(result));
    seep_json_put(object, "site_total", seep_json_count(result->site_total));
    return object;
}

static json_t *baseline_of(const struct seep_check_set *set)
{
    json_t *array = json_array();

    for (size_t i = 0; i < set->baseline_count; i++) {
        json_t *object = process_of(set->baseline[i]);

        seep_json_put(object, "started", seep_json_started(set->baseline[i]));
        json_array_append_new(array, object);
    }
    return array;
}

static const char *outcome_of(const struct seep_check_set *set)
{
    switch (seep_check_exit(set)) {
    case SEEP_EXIT_FINE:
        return "pass";
    case SEEP_EXIT_OVER_LIMIT:
        return "fail";
    case SEEP_EXIT_INSUFFICIENT:
        return "not-enough-data";
    default:
        return "failed-to-read";
    }
}

int seep_view_check_json(FILE *file, const struct seep_check_set *set)
{
    struct seep_json_out out = {.file = file};
    json_t *document = json_object();
    json_t *results = json_array();
    char *headline = seep_check_headline(set);

    for (size_t i = 0; i < set->count; i++) {
        json_array_append_new(results, result_of(&set->results[i]));
    }
    seep_json_put(document, "schema", json_string("seep-check/1"));
    seep_json_put(document, "outcome", json_string(outcome_of(set)));
    seep_json_put(document, "sentence", seep_json_text_or_null(headline));
    seep_json_put(document, "warmup_s",
                  set->warmup_s < 0 ? json_null()
                                    : seep_json_real(set->warmup_s));
    seep_json_put(document, "warmup_mark",
                  set->warmup_mark == NULL ? json_null()
                                           : seep_json_text(set->warmup_mark));
    seep_json_put(document, "processes", seep_json_count(set->report_count));
    seep_json_put(document, "refused", seep_json_count(set->refused_count));
    seep_json_put(document, "baseline", baseline_of(set));
    seep_json_put(document, "limits", results);
    seep_json_out_value(&out, document);
    free(headline);
    return seep_json_out_finish(&out);
}
