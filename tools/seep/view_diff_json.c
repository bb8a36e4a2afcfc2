/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A diff for machines; see view_diff.h. Invariant: sizes are bytes and rates
 * bytes per second, whatever people are shown.
 */
#include <stdlib.h>

#include "diff_words.h"
#include "json_out.h"
#include "json_parts.h"
#include "view_diff.h"
#include "words.h"

static json_t *reports_of(const struct seep_diff_side *side)
{
    json_t *array = json_array();

    for (size_t i = 0; i < side->count; i++) {
        const struct seep_report *report = side->reports[i];
        json_t *object = json_object();

        seep_json_put(object, "path", seep_json_text(report->path));
        seep_json_put(object, "pid", json_integer(report->pid));
        seep_json_put(object, "exe", seep_json_text(report->executable));
        seep_json_put(object, "labels", seep_json_text(report->labels));
        seep_json_put(object, "duration_s", seep_json_real(report->duration_s));
        seep_json_put(object, "verdict",
                      json_string(seep_verdict_name(report->verdict.class)));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *growth_of(const struct seep_diff_site *site, bool by_unit)
{
    return site->grows
               ? seep_json_interval(by_unit ? &site->per_unit : &site->per_s, 1)
               : json_null();
}

static json_t *side_of(const struct seep_diff_side *side)
{
    json_t *object = json_object();

    seep_json_put(object, "judged", seep_json_count(side->judged_count));
    seep_json_put(object, "reason",
                  side->reason == NULL ? json_null()
                                       : seep_json_text(side->reason));
    seep_json_put(object, "growth_bytes_per_s",
                  growth_of(&side->process, false));
    seep_json_put(object, "growth_bytes_per_unit",
                  side->units > 0 ? growth_of(&side->process, true)
                                  : json_null());
    seep_json_put(object, "private_bytes_per_s",
                  side->has_private
                      ? seep_json_interval(&side->private_per_s, 1)
                      : json_null());
    seep_json_put(object, "rss_bytes", seep_json_real(side->rss_bytes));
    seep_json_put(object, "live_bytes", seep_json_real(side->live_bytes));
    seep_json_put(object, "units_per_s",
                  side->units > 0 ? seep_json_real(side->units_per_s)
                                  : json_null());
    seep_json_put(object, "processes", reports_of(side));
    return object;
}

static json_t *site_of(const struct seep_diff_side *side,
                       const struct seep_diff_site *site)
{
    json_t *object;

    if (site->site == NULL) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "id", seep_json_text(site->site->id));
    seep_json_put(object, "class", json_string(seep_class_name(site->class)));
    seep_json_put(object, "where", seep_json_text(site->site->where));
    seep_json_put(object, "path", seep_json_text(site->report->path));
    seep_json_put(object, "processes", seep_json_count(site->process_count));
    seep_json_put(object, "live_bytes", seep_json_real(site->live_bytes));
    seep_json_put(object, "growth_bytes_per_s", growth_of(site, false));
    seep_json_put(object, "growth_bytes_per_unit",
                  side->units > 0 ? growth_of(site, true) : json_null());
    return object;
}

static const char *answer_name(enum seep_diff_answer answer)
{
    return answer == SEEP_DIFF_LEAKS          ? "fail"
           : answer == SEEP_DIFF_INSUFFICIENT ? "not-enough-data"
                                              : "pass";
}

static json_t *row_of(const struct seep_diff *diff,
                      const struct seep_diff_row *row)
{
    const struct seep_diff_site *any =
        row->now.site != NULL ? &row->now : &row->before;
    json_t *object = json_object();
    char *where = seep_diff_where(row);

    seep_json_put(object, "outcome", json_string(seep_diff_name(row->outcome)));
    seep_json_put(object, "answer",
                  json_string(answer_name(seep_diff_row_answer(row))));
    seep_json_put(object, "where", seep_json_text_or_null(where));
    seep_json_put(object, "space",
                  any->site == NULL
                      ? json_null()
                      : json_string(seep_words_space(any->site->space)));
    seep_json_put(object, "device",
                  any->site == NULL || any->site->device < 0
                      ? json_null()
                      : json_integer(any->site->device));
    seep_json_put(object, "change", seep_json_interval(&row->change, 1));
    seep_json_put(object, "before", site_of(&diff->before, &row->before));
    seep_json_put(object, "now", site_of(&diff->now, &row->now));
    free(where);
    return object;
}

static json_t *pair_of(const struct seep_diff_pair *pair, size_t limit)
{
    const struct seep_diff *diff = &pair->diff;
    json_t *object = json_object();
    json_t *sites = json_array();

    for (size_t i = 0; i < diff->row_count && (limit == 0 || i < limit); i++) {
        json_array_append_new(sites, row_of(diff, &diff->rows[i]));
    }
    seep_json_put(object, "program", seep_json_text(pair->program));
    seep_json_put(object, "answer",
                  json_string(answer_name(seep_diff_answer_of(diff))));
    seep_json_put(
        object, "change_unit",
        json_string(diff->by_unit ? "bytes_per_unit" : "bytes_per_s"));
    seep_json_put(object, "before", side_of(&diff->before));
    seep_json_put(object, "now", side_of(&diff->now));
    seep_json_put(object, "change",
                  seep_json_interval(&diff->process.change, 1));
    seep_json_put(object, "sites", sites);
    seep_json_put(object, "site_total", seep_json_count(diff->row_count));
    seep_json_put(object, "still", seep_json_count(diff->still_count));
    return object;
}

int seep_view_diff_json(FILE *file, const struct seep_diff_set *set,
                        size_t site_limit)
{
    struct seep_json_out out = {.file = file};
    json_t *document = json_object();
    json_t *programs = json_array();
    char *headline = seep_diff_headline(set);

    for (size_t i = 0; i < set->count; i++) {
        json_array_append_new(programs, pair_of(&set->pairs[i], site_limit));
    }
    seep_json_put(document, "schema", json_string("seep-diff/1"));
    seep_json_put(document, "outcome", json_string(seep_diff_set_name(set)));
    seep_json_put(document, "sentence", seep_json_text_or_null(headline));
    seep_json_put(document, "label",
                  set->key == NULL ? json_null() : seep_json_text(set->key));
    seep_json_put(document, "before", seep_json_text(set->before_name));
    seep_json_put(document, "now", seep_json_text(set->now_name));
    seep_json_put(document, "refused", seep_json_count(set->refused_count));
    seep_json_put(document, "programs", programs);
    seep_json_out_value(&out, document);
    free(headline);
    return seep_json_out_finish(&out);
}
