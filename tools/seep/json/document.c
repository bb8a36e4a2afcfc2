/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The JSON documents: checks, diffs, reports, infos, digests. Invariant: every
 * key of the schema stands in every document; what this version does not
 * compute is null, never made up. Sizes are bytes and rates bytes per second,
 * whatever people are shown.
 */
#include "json/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "reader/compare/diff.h"
#include "reader/compare/patterns.h"
#include "words/compare.h"
#include "words/verdict.h"
#include "words/words.h"

/*
 * Checks.
 */

static const char *unit_of(enum seep_check_kind kind)
{
    return kind == SEEP_CHECK_GROWTH || kind == SEEP_CHECK_GROWTH_TOTAL ||
                   kind == SEEP_CHECK_BASELINE
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
    SEEP_JSON_COPY(object, report, path, pid);
    seep_json_put(object, "exe", report->executable);
    SEEP_JSON_COPY(object, report, labels, duration_s);
    seep_json_put(object, "verdict", seep_verdict_name(report->verdict.class));
    seep_json_put(object, "unread", seep_json_unread(report));
    return object;
}

static json_t *family_of(const struct seep_family *family)
{
    json_t *object;
    char *name;

    if (family == NULL) {
        return json_null();
    }
    object = json_object();
    name = seep_words_family_name(family);
    SEEP_JSON_COPY(object, family, id);
    seep_json_put(object, "name", name == NULL ? "" : name);
    seep_json_put(object, "processes", family->count);
    seep_json_put(object, "together", family->together_count);
    free(name);
    return object;
}

static json_t *site_of(const struct seep_report_site *site)
{
    json_t *object = json_object();
    unsigned line = 0;
    const char *file = seep_check_file(site, &line);

    SEEP_JSON_COPY(object, site, id);
    seep_json_put(object, "space", seep_words_space(site->space));
    seep_json_put(object, "class", seep_class_name(site->class));
    SEEP_JSON_COPY(object, site, where);
    seep_json_put_text_or_null(object, "file", file);
    seep_json_put_known(object, "line", line);
    seep_json_put(object, "growth_bytes_per_s", &site->growth_bytes_per_s);
    seep_json_put(object, "held", seep_json_kept(site));
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

    seep_json_put(object, "limit", seep_check_name(limit->kind));
    seep_json_put(object, "space",
                  limit->space == SEEP_CHECK_ALL_SPACES
                      ? NULL
                      : seep_words_space((enum seep_space)limit->space));
    seep_json_put_text_or_null(object, "label", limit->label);
    seep_json_put(object, "unit", unit_of(limit->kind));
    seep_json_put(object, "bound",
                  limit->kind == SEEP_CHECK_BASELINE ? NAN : limit->value);
    seep_json_put(object, "outcome", seep_check_outcome_name(result->outcome));
    SEEP_JSON_COPY(object, result, forgiven);
    seep_json_put_text_or_null(object, "reason", measure->reason);
    seep_json_put(object, "measured", measure->valid ? &measure->value : NULL);
    seep_json_put_device(object, "device", measure->device);
    seep_json_put(object, "process",
                  process_of(result->family == NULL ? result->report : NULL));
    seep_json_put(object, "family", family_of(result->family));
    seep_json_put(object, "sites", sites_of(result));
    SEEP_JSON_COPY(object, result, site_total);
    seep_json_put(object, "held_together",
                  seep_check_has_common(result)
                      ? seep_json_held_together(result->report)
                      : json_array());
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

int seep_json_check(FILE *file, const struct seep_check_set *set)
{
    json_t *document = json_object();
    json_t *results = json_array();
    char *headline = seep_check_headline(set);

    for (size_t i = 0; i < set->count; i++) {
        json_array_append_new(results, result_of(&set->results[i]));
    }
    seep_json_put(document, "schema", "seep-check/1");
    seep_json_put(document, "outcome", seep_check_set_name(set));
    seep_json_put_text_or_null(document, "sentence", headline);
    seep_json_put(document, "warmup_s",
                  set->warmup_s < 0 ? NAN : set->warmup_s);
    SEEP_JSON_COPY(document, set, warmup_mark);
    seep_json_put(document, "processes", set->report_count);
    seep_json_put(document, "refused", set->refused_count);
    seep_json_put(document, "baseline", baseline_of(set));
    seep_json_put(document, "limits", results);
    free(headline);
    return seep_json_print(file, document);
}

/*
 * Diffs.
 */

static json_t *reports_of(const struct seep_diff_side *side)
{
    json_t *array = json_array();

    for (size_t i = 0; i < side->count; i++) {
        json_array_append_new(array, process_of(side->reports[i]));
    }
    return array;
}

static void put_growth(json_t *object, const struct seep_diff_side *side,
                       const struct seep_diff_site *site)
{
    seep_json_put(object, "growth_bytes_per_s",
                  site->grows ? &site->per_s : NULL);
    seep_json_put(object, "growth_bytes_per_unit",
                  site->grows && side->units > 0 ? &site->per_unit : NULL);
}

static json_t *side_of(const struct seep_diff_side *side)
{
    json_t *object = json_object();

    seep_json_put(object, "judged", side->judged_count);
    SEEP_JSON_COPY(object, side, reason);
    put_growth(object, side, &side->process);
    seep_json_put(object, "private_bytes_per_s",
                  side->has_private ? &side->private_per_s : NULL);
    SEEP_JSON_COPY(object, side, rss_bytes, live_bytes);
    seep_json_put(object, "units_per_s",
                  side->units > 0 ? side->units_per_s : NAN);
    seep_json_put(object, "processes", reports_of(side));
    return object;
}

static json_t *compared_of(const struct seep_diff_side *side,
                           const struct seep_diff_site *site)
{
    json_t *object;

    if (site->site == NULL) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "id", site->site->id);
    seep_json_put(object, "class", seep_class_name(site->class));
    seep_json_put(object, "where", site->site->where);
    seep_json_put(object, "path", site->report->path);
    seep_json_put(object, "processes", site->process_count);
    SEEP_JSON_COPY(object, site, live_bytes);
    put_growth(object, side, site);
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

    seep_json_put(object, "outcome", seep_diff_name(row->outcome));
    seep_json_put(object, "answer", answer_name(seep_diff_row_answer(row)));
    seep_json_put_text_or_null(object, "where", where);
    seep_json_put(object, "space",
                  any->site == NULL ? NULL
                                    : seep_words_space(any->site->space));
    seep_json_put_device(object, "device",
                         any->site == NULL ? -1 : any->site->device);
    seep_json_put(object, "change", &row->change);
    seep_json_put(object, "before", compared_of(&diff->before, &row->before));
    seep_json_put(object, "now", compared_of(&diff->now, &row->now));
    free(where);
    return object;
}

static json_t *held_of(const struct seep_diff_held *held)
{
    json_t *object = json_object();

    seep_json_put(object, "holder", seep_diff_holder_name(held->holder));
    seep_json_put(object, "outcome", seep_diff_name(held->outcome));
    SEEP_JSON_COPY(object, held, at_peak);
    seep_json_put(object, "where",
                  held->site == NULL ? NULL : held->site->where);
    seep_json_put(object, "id", held->site == NULL ? NULL : held->site->id);
    seep_json_put(object, "pattern",
                  held->pattern == NULL ? NULL : held->pattern->id);
    SEEP_JSON_COPY(object, held, before_bytes, now_bytes);
    SEEP_JSON_COPY(object, held, before_peak_bytes, now_peak_bytes);
    seep_json_put(object, "change", &held->change);
    seep_json_put(object, "peak_change", &held->peak_change);
    return object;
}

static json_t *helds_of(const struct seep_diff *diff)
{
    json_t *array = json_array();

    for (size_t i = 0; i < diff->held_count; i++) {
        json_array_append_new(array, held_of(&diff->held[i]));
    }
    return array;
}

static json_t *pair_of(const struct seep_diff_pair *pair, size_t limit)
{
    const struct seep_diff *diff = &pair->diff;
    json_t *object = json_object();
    json_t *sites = json_array();

    for (size_t i = 0; i < diff->row_count && (limit == 0 || i < limit); i++) {
        json_array_append_new(sites, row_of(diff, &diff->rows[i]));
    }
    SEEP_JSON_COPY(object, pair, program);
    seep_json_put(object, "answer", answer_name(seep_diff_answer_of(diff)));
    seep_json_put(object, "change_unit",
                  diff->by_unit ? "bytes_per_unit" : "bytes_per_s");
    seep_json_put(object, "before", side_of(&diff->before));
    seep_json_put(object, "now", side_of(&diff->now));
    seep_json_put(object, "change", &diff->process.change);
    seep_json_put(object, "sites", sites);
    seep_json_put(object, "site_total", diff->row_count);
    seep_json_put(object, "still", diff->still_count);
    seep_json_put(object, "pace", diff->pace > 0 ? diff->pace : NAN);
    seep_json_put(object, "held_outcome",
                  seep_diff_name(seep_diff_held_outcome(diff)));
    seep_json_put(object, "held_at_s", diff->age_s > 0 ? diff->age_s : NAN);
    seep_json_put(object, "held", helds_of(diff));
    return object;
}

int seep_json_diff(FILE *file, const struct seep_diff_set *set,
                   size_t site_limit)
{
    json_t *document = json_object();
    json_t *programs = json_array();
    char *headline = seep_diff_headline(set);

    for (size_t i = 0; i < set->count; i++) {
        json_array_append_new(programs, pair_of(&set->pairs[i], site_limit));
    }
    seep_json_put(document, "schema", "seep-diff/1");
    seep_json_put(document, "outcome", seep_diff_set_name(set));
    seep_json_put_text_or_null(document, "sentence", headline);
    seep_json_put(document, "label", set->key);
    seep_json_put(document, "before", set->before_name);
    seep_json_put(document, "now", set->now_name);
    seep_json_put(document, "refused", set->refused_count);
    seep_json_put(document, "programs", programs);
    free(headline);
    return seep_json_print(file, document);
}

/*
 * Reports and infos.
 */

static json_t *counters_of(const struct seep_report *report,
                           enum seep_counter_kind kind)
{
    json_t *object = json_object();

    for (size_t i = 0; i < report->counter_count; i++) {
        if (report->counters[i].kind == kind) {
            seep_json_put(object, report->counters[i].name,
                          report->counters[i].value);
        }
    }
    return object;
}

static json_t *cost_of(const struct seep_report *report)
{
    json_t *object = counters_of(report, SEEP_KIND_COST);

    seep_json_put(object, "seep_s", report->cost_s);
    seep_json_put(object, "seep_s_at_most", report->cost_at_most);
    seep_json_put(object, "budget",
                  report->budget > 0 ? json_real(report->budget) : NULL);
    seep_json_put(object, "own_bytes", report->file_bytes);
    SEEP_JSON_COPY(object, report, pending_events);
    return object;
}

static json_t *losses_of(const struct seep_report *report)
{
    json_t *losses = counters_of(report, SEEP_KIND_LOSS);

    SEEP_JSON_COPY(losses, report, torn_sites);
    return losses;
}

static json_t *nameless_of(const struct seep_report *report)
{
    json_t *list = json_array();

    for (size_t i = 0; i < report->nameless_count; i++) {
        json_t *file = json_object();

        seep_json_put(file, "path", report->nameless[i].path);
        seep_json_put(file, "reason",
                      seep_nameless_reason(report->nameless[i].error));
        json_array_append_new(list, file);
    }
    return list;
}

/* Every counter that is not 0, in words. */
static json_t *counters_in_words(const struct seep_report *report)
{
    static const char *const kinds[] = {
        [SEEP_KIND_LOSS] = "loss",
        [SEEP_KIND_FACT] = "fact",
        [SEEP_KIND_COST] = "cost",
    };
    json_t *array = json_array();

    for (size_t i = 0; i < report->counter_count; i++) {
        const struct seep_report_counter *counter = &report->counters[i];
        json_t *object;

        if (counter->value == 0) {
            continue;
        }
        object = json_object();
        seep_json_put(object, "kind", kinds[counter->kind]);
        SEEP_JSON_COPY(object, counter, name, words, value);
        json_array_append_new(array, object);
    }
    return array;
}

/* What a page says as the text does. */
static json_t *words_of(const struct seep_report *report)
{
    json_t *object = json_object();
    char *command = seep_words_command(report);
    char *forecast = seep_words_forecast(report);
    char cost[SEEP_WORDS_COST_BYTES];
    char text[128];

    seep_json_put(object, "command", command);
    seep_json_put(object, "forecast", forecast);
    seep_words_state(report, text, sizeof(text));
    seep_json_put(object, "state", (const char *)text);
    seep_words_mode(report, text, sizeof(text));
    seep_json_put(object, "mode", (const char *)text);
    seep_words_cost(report, true, cost, sizeof(cost));
    seep_json_put(object, "cost", (const char *)cost);
    seep_json_put(object, "lost_events", seep_words_lost_events(report));
    free(forecast);
    free(command);
    return object;
}

static void print_member(struct seep_json_out *out, const char *separator,
                         const char *key, json_t *value)
{
    seep_json_out_raw(out, separator);
    seep_json_out_raw(out, "\n\"");
    seep_json_out_raw(out, key);
    seep_json_out_raw(out, "\": ");
    seep_json_out_value(out, value);
}

/* One after the other: a recording can hold more sites than memory would. */
static void print_sites(struct seep_json_out *out, struct seep_json_frame *kept,
                        const struct seep_report *report,
                        const struct seep_span *span,
                        const struct seep_json_options *options)
{
    size_t limit = options->site_limit > 0 ? options->site_limit : SIZE_MAX;
    size_t printed = 0;

    seep_json_out_raw(out, ",\n\"sites\": [");
    for (size_t i = 0;
         i < report->site_count && printed < limit && out->error == 0; i++) {
        if (seep_words_is_wanted(&report->sites[i], options->site_id)) {
            seep_json_out_raw(out, printed++ == 0 ? "\n" : ",\n");
            seep_json_site_print(out, options->for_page ? NULL : kept,
                                 &report->sites[i],
                                 !options->no_series && !options->for_page,
                                 seep_json_span_row(span, i));
        }
    }
    seep_json_out_raw(out, "]");
}

void seep_json_report_print(struct seep_json_out *out,
                            struct seep_json_frame *kept,
                            const struct seep_report *report,
                            const struct seep_json_options *options)
{
    struct seep_span *span = NULL;

    /* Where it has no such part the answer is null. */
    if (seep_span_is_wished(&options->wish)) {
        (void)seep_span_open(report, &options->wish, &span);
    }
    seep_json_out_raw(out, "{");
    print_member(out, "", "process", seep_json_process(report));
    print_member(out, ",", "verdict",
                 seep_json_verdict(report, options->catalogue));
    print_member(out, ",", "memory", seep_json_memory(report));
    if (!options->no_series) {
        seep_json_out_raw(out, ",\n\"timeline\": ");
        seep_json_timeline_print(out, report);
    }
    print_member(out, ",", "devices", seep_json_devices(report));
    print_member(out, ",", "marks", seep_json_marks(report));
    print_member(out, ",", "by", json_string(seep_grouping_name(report->by)));
    print_member(out, ",", "bucket_s", seep_json_real(report->bucket_s));
    print_member(out, ",", "window", seep_json_span(span));
    print_sites(out, kept, report, span, options);
    if (options->for_page) {
        seep_json_stacks_print(out, report);
        print_member(out, ",", "counters", counters_in_words(report));
        print_member(out, ",", "words", words_of(report));
    }
    print_member(out, ",", "held_together", seep_json_held_together(report));
    print_member(out, ",", "pins", seep_json_pins(report));
    print_member(out, ",", "site_total",
                 seep_json_count(seep_words_site_total(report)));
    print_member(out, ",", "losses", losses_of(report));
    if (report->nameless_count > 0) {
        print_member(out, ",", "nameless", nameless_of(report));
    }
    print_member(out, ",", "facts", counters_of(report, SEEP_KIND_FACT));
    print_member(out, ",", "cost", cost_of(report));
    seep_json_out_raw(out, "}");
    seep_span_close(span);
}

static json_t *summary_of(const struct seep_report *const *reports,
                          size_t count, size_t refused_count,
                          const struct seep_families *families)
{
    json_t *object = json_object();
    json_t *classes = json_object();

    for (size_t i = 0; i < count; i++) {
        const char *name = seep_verdict_name(reports[i]->verdict.class);
        json_int_t seen = json_integer_value(json_object_get(classes, name));
        seep_json_put(classes, name, json_integer(seen + 1));
    }
    seep_json_put(object, "class",
                  seep_verdict_name(seep_families_class(families)));
    seep_json_put(
        object, "pid",
        count > 0 ? json_integer(seep_families_first(families, reports[0])->pid)
                  : NULL);
    seep_json_put(object, "processes", count);
    seep_json_put(object, "families", families->count);
    seep_json_put(object, "classes", classes);
    seep_json_put(object, "refused", refused_count);
    return object;
}

int seep_json_reports(FILE *file, const struct seep_report *const *reports,
                      size_t count, size_t refused_count,
                      const struct seep_json_options *options)
{
    struct seep_json_out out = {.file = file};
    struct seep_json_frame *kept = seep_json_site_open();
    struct seep_families families;

    if (kept == NULL || seep_families_make(reports, count, &families) < 0) {
        seep_json_site_close(kept);
        return -ENOMEM;
    }
    seep_json_out_raw(&out, "{");
    print_member(&out, "", "schema", json_string("seep-report/1"));
    print_member(&out, ",", "summary",
                 summary_of(reports, count, refused_count, &families));
    print_member(&out, ",", "families",
                 seep_json_families(&families, reports, count));
    print_member(&out, ",", "labels", seep_json_labels(reports, count));
    seep_json_out_raw(&out, ",\n\"processes\": [");
    for (size_t i = 0; i < count; i++) {
        seep_json_out_raw(&out, i == 0 ? "\n" : ",\n");
        if (options->spool == NULL ||
            !seep_json_spool_print(options->spool, reports[i], &out)) {
            seep_json_report_print(&out, kept, reports[i], options);
        }
    }
    seep_json_out_raw(&out, "]}");
    seep_families_fini(&families);
    seep_json_site_close(kept);
    return seep_json_out_finish(&out);
}

static json_t *usage_of(const struct seep_report_usage *usage)
{
    json_t *object = json_object();

    SEEP_JSON_COPY(object, usage, used, capacity);
    return object;
}

static json_t *tables_of(const struct seep_report *report)
{
    json_t *tables = json_object();

    seep_json_put(tables, "sites", usage_of(&report->usage_sites));
    seep_json_put(tables, "stacks", usage_of(&report->usage_stacks));
    seep_json_put(tables, "series", usage_of(&report->usage_series));
    seep_json_put(tables, "modules", usage_of(&report->usage_modules));
    seep_json_put(tables, "codes", usage_of(&report->usage_codes));
    seep_json_put(tables, "live", usage_of(&report->usage_live));
    seep_json_put(tables, "ranges", usage_of(&report->usage_ranges));
    return tables;
}

static json_t *info_of(const struct seep_report *report)
{
    json_t *object = json_object();
    json_t *ends = json_object();

    for (unsigned i = 0; i < SEEP_CUT_COUNT; i++) {
        seep_json_put(ends, seep_words_cut((enum seep_cut)i),
                      seep_words_counter(report, SEEP_COUNT_CUT_FIRST + i));
    }
    seep_json_put(object, "process", seep_json_process(report));
    seep_json_put(object, "marks", seep_json_marks(report));
    seep_json_put(object, "devices", seep_json_devices(report));
    seep_json_put(object, "tables", tables_of(report));
    seep_json_put(object, "stack_ends", ends);
    seep_json_put(object, "losses", losses_of(report));
    seep_json_put(object, "facts", counters_of(report, SEEP_KIND_FACT));
    seep_json_put(object, "cost", cost_of(report));
    return object;
}

int seep_json_info(FILE *file, const struct seep_report *const *reports,
                   size_t count, size_t refused_count)
{
    json_t *document = json_object();
    json_t *recordings = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(recordings, info_of(reports[i]));
    }
    seep_json_put(document, "schema", "seep-info/1");
    seep_json_put(document, "recordings", recordings);
    seep_json_put(document, "refused", refused_count);
    return seep_json_print(file, document);
}

/*
 * A digest: what a fleet needs to know of one process, one line a call site
 * that grows.
 *
 * Invariant: a process has at least one line, and every line every key, so that
 * who counts lines without a site counts processes in which none grows, and a
 * table of them has the same columns wherever it comes from.
 */

/* Of the normal distribution: 95 % lie within so many standard errors. */
#define NORMAL_975 1.959963984540054

/* Half of the interval is so many errors, also where it is Student's: then the
 * variance is larger than that of the windows, as their number wants it. */
static json_t *measured(const struct seep_interval *interval)
{
    json_t *object = seep_json_interval(interval);

    if (interval != NULL) {
        double error = (interval->high - interval->low) / 2 / NORMAL_975;

        seep_json_put(object, "variance", error * error);
    }
    return object;
}

static bool is_told(const struct seep_report_site *site)
{
    return seep_class_grows(site->class);
}

static size_t count_told(const struct seep_report *report)
{
    size_t count = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        count += is_told(&report->sites[i]);
    }
    return count;
}

/* "gpu-7/4242/2026-11-25T21:26:43.204Z" */
static json_t *digest_key_of(const struct seep_report *report, json_t *process)
{
    const char *host = json_string_value(json_object_get(process, "host"));
    const char *started =
        json_string_value(json_object_get(process, "started"));
    char *text = seep_words_make("%s/%" PRIu32 "/%s", host == NULL ? "" : host,
                                 report->pid, started == NULL ? "" : started);
    json_t *value = seep_json_text(text);

    free(text);
    return value;
}

/* As `seep report --json` has it. */
static void copy_process(json_t *line, const struct seep_report *report)
{
    static const char *const keys[] = {
        "host",         "pid",          "exe",        "labels",
        "started",      "state",        "duration_s", "mode",
        "exact",        "sample_bytes", "inert",      "first_sample_bytes",
        "seep_version", "recording",
    };
    json_t *process = seep_json_process(report);
    char *program = seep_words_program(report);

    seep_json_put(line, "process", digest_key_of(report, process));
    seep_json_put(line, "program", program);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_object_set(line, keys[i], json_object_get(process, keys[i]));
    }
    free(program);
    json_decref(process);
}

static void put_digest_process(json_t *line, const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    double over_s = report->duration_s - report->begin.from_s;

    copy_process(line, report);
    seep_json_put(line, "lost_events", seep_words_lost_events(report));
    seep_json_put(line, "over_s", fmax(0, over_s));
    seep_json_put_known(line, "units", report->begin.units);
    seep_json_put(line, "rss_bytes",
                  report->memory.rss.valid ? report->memory.rss.last_bytes
                                           : NAN);
    seep_json_put(line, "verdict", seep_verdict_name(verdict->class));
    SEEP_JSON_COPY(line, verdict, reassures);
    seep_json_put(line, "hidden_bytes_per_s",
                  verdict->hidden_bytes_per_s > 0 ? verdict->hidden_bytes_per_s
                                                  : NAN);
    seep_json_put(
        line, "process_growth_bytes_per_s",
        measured(verdict->has_growth ? &verdict->growth_bytes_per_s : NULL));
    seep_json_put(line, "growing_sites", count_told(report));
}

/* NULL: none grows. */
static void put_digest_site(json_t *line, const struct seep_report_site *site)
{
    static const struct seep_report_site none = {.device = -1};
    const struct seep_report_site *of = site == NULL ? &none : site;
    char function_id[20];

    snprintf(function_id, sizeof(function_id), "%016" PRIx64,
             seep_diff_function(of));
    seep_json_put_text_or_null(line, "site", of->id);
    seep_json_put(line, "function_id", site == NULL ? NULL : function_id);
    seep_json_put(line, "space",
                  site == NULL ? NULL : seep_words_space(of->space));
    seep_json_put_device(line, "device", of->device);
    seep_json_put(line, "where", site == NULL ? NULL : of->where);
    seep_json_put(line, "class",
                  site == NULL ? NULL : seep_class_name(of->class));
    seep_json_put(line, "live_bytes",
                  site == NULL ? NULL : seep_json_count(of->live_bytes));
    seep_json_put(line, "live_count", site == NULL ? NAN : of->live_count);
    seep_json_put(line, "peak_bytes",
                  site == NULL ? NULL : seep_json_count(of->peak_bytes));
    seep_json_put(line, "growth_bytes_per_s",
                  measured(of->has_growth ? &of->growth_bytes_per_s : NULL));
    seep_json_put(
        line, "growth_bytes_per_unit",
        measured(of->has_growth_per_unit ? &of->growth_bytes_per_unit : NULL));
    seep_json_put(line, "confidence", of->has_growth ? of->confidence : NAN);
    seep_json_put(line, "pattern",
                  of->pattern == NULL ? NULL : of->pattern->id);
    seep_json_put(line, "suppressed", (bool)(of->suppressed_by != NULL));
}

static void print_line(struct seep_json_out *out, json_t *line)
{
    seep_json_out_line(out, json_incref(line));
    seep_json_out_raw(out, "\n");
}

int seep_json_digest(FILE *file, const struct seep_report *report)
{
    struct seep_json_out out = {.file = file};
    json_t *line = json_object();
    size_t printed = 0;

    seep_json_put(line, "schema", "seep-digest/1");
    put_digest_process(line, report);
    for (size_t i = 0; i < report->site_count && out.error == 0; i++) {
        if (is_told(&report->sites[i])) {
            put_digest_site(line, &report->sites[i]);
            print_line(&out, line);
            printed++;
        }
    }
    if (printed == 0) {
        put_digest_site(line, NULL);
        print_line(&out, line);
    }
    json_decref(line);
    return out.error;
}
