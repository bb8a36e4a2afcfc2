/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The JSON documents. Invariant: every key of the schema stands in every
 * document; what this version does not compute is null, never made up.
 */
#include "view_json.h"

#include <errno.h>
#include <stdlib.h>

#include "json_devices.h"
#include "json_labels.h"
#include "json_out.h"
#include "json_parts.h"
#include "json_process.h"
#include "json_site.h"
#include "json_verdict.h"
#include "view_sites.h"
#include "words.h"

static json_t *counters_of(const struct seep_report *report,
                           enum seep_counter_kind kind)
{
    json_t *object = json_object();

    for (size_t i = 0; i < report->counter_count; i++) {
        if (report->counters[i].kind == kind) {
            seep_json_put(object, report->counters[i].name,
                          seep_json_count(report->counters[i].value));
        }
    }
    return object;
}

static json_t *cost_of(const struct seep_report *report)
{
    json_t *object = counters_of(report, SEEP_KIND_COST);

    seep_json_put(object, "seep_s", seep_json_real(seep_words_cost_s(report)));
    seep_json_put(object, "own_bytes", seep_json_count(report->file_bytes));
    seep_json_put(object, "pending_events",
                  seep_json_count(report->pending_events));
    return object;
}

static json_t *losses_of(const struct seep_report *report)
{
    json_t *losses = counters_of(report, SEEP_KIND_LOSS);

    seep_json_put(losses, "torn_sites", seep_json_count(report->torn_sites));
    return losses;
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
                        const struct seep_json_options *options)
{
    size_t limit = options->site_limit > 0 ? options->site_limit : SIZE_MAX;
    size_t printed = 0;

    seep_json_out_raw(out, ",\n\"sites\": [");
    for (size_t i = 0;
         i < report->site_count && printed < limit && out->error == 0; i++) {
        if (seep_view_sites_wanted(&report->sites[i], options->site_id)) {
            seep_json_out_raw(out, printed++ == 0 ? "\n" : ",\n");
            seep_json_site_print(out, kept, &report->sites[i],
                                 !options->no_series);
        }
    }
    seep_json_out_raw(out, "]");
}

static void print_report(struct seep_json_out *out,
                         struct seep_json_frame *kept,
                         const struct seep_report *report,
                         const struct seep_json_options *options)
{
    size_t total = report->site_total > report->site_count ? report->site_total
                                                           : report->site_count;

    seep_json_out_raw(out, "{");
    print_member(out, "", "process", seep_json_process(report));
    print_member(out, ",", "verdict",
                 seep_json_verdict(report, options->catalogue));
    print_member(out, ",", "memory", seep_json_memory(report));
    print_member(out, ",", "devices", seep_json_devices(report));
    print_member(out, ",", "marks", seep_json_marks(report));
    print_member(out, ",", "by", json_string(seep_grouping_name(report->by)));
    print_sites(out, kept, report, options);
    print_member(out, ",", "site_total", seep_json_count(total));
    print_member(out, ",", "losses", losses_of(report));
    print_member(out, ",", "facts", counters_of(report, SEEP_KIND_FACT));
    print_member(out, ",", "cost", cost_of(report));
    seep_json_out_raw(out, "}");
}

static json_t *summary_of(const struct seep_report *const *reports,
                          size_t count, size_t refused_count)
{
    json_t *object = json_object();
    json_t *classes = json_object();

    for (size_t i = 0; i < count; i++) {
        const char *name = seep_verdict_name(reports[i]->verdict.class);
        json_int_t seen = json_integer_value(json_object_get(classes, name));
        seep_json_put(classes, name, json_integer(seen + 1));
    }
    seep_json_put(
        object, "class",
        json_string(seep_verdict_name(count > 0 ? reports[0]->verdict.class
                                                : SEEP_VERDICT_INSUFFICIENT)));
    seep_json_put(object, "pid",
                  count > 0 ? json_integer(reports[0]->pid) : json_null());
    seep_json_put(object, "processes", seep_json_count(count));
    seep_json_put(object, "classes", classes);
    seep_json_put(object, "refused", seep_json_count(refused_count));
    return object;
}

int seep_view_json_reports(FILE *file, const struct seep_report *const *reports,
                           size_t count, size_t refused_count,
                           const struct seep_json_options *options)
{
    struct seep_json_out out = {.file = file};
    struct seep_json_frame *kept = seep_json_site_open();

    if (kept == NULL) {
        return -ENOMEM;
    }
    seep_json_out_raw(&out, "{");
    print_member(&out, "", "schema", json_string("seep-report/1"));
    print_member(&out, ",", "summary",
                 summary_of(reports, count, refused_count));
    print_member(&out, ",", "labels", seep_json_labels(reports, count));
    seep_json_out_raw(&out, ",\n\"processes\": [");
    for (size_t i = 0; i < count; i++) {
        seep_json_out_raw(&out, i == 0 ? "\n" : ",\n");
        print_report(&out, kept, reports[i], options);
    }
    seep_json_out_raw(&out, "]}");
    seep_json_site_close(kept);
    return seep_json_out_finish(&out);
}

static json_t *fill_of(uint32_t used, uint32_t capacity)
{
    json_t *object = json_object();

    seep_json_put(object, "used", json_integer(used));
    seep_json_put(object, "capacity", json_integer(capacity));
    return object;
}

static json_t *info_of(const struct seep_report *report)
{
    json_t *object = json_object();
    json_t *tables = json_object();
    json_t *ends = json_object();

    seep_json_put(
        tables, "sites",
        fill_of(report->usage_sites.used, report->usage_sites.capacity));
    seep_json_put(
        tables, "stacks",
        fill_of(report->usage_stacks.used, report->usage_stacks.capacity));
    seep_json_put(
        tables, "series",
        fill_of(report->usage_series.used, report->usage_series.capacity));
    seep_json_put(
        tables, "modules",
        fill_of(report->usage_modules.used, report->usage_modules.capacity));
    seep_json_put(
        tables, "codes",
        fill_of(report->usage_codes.used, report->usage_codes.capacity));
    seep_json_put(
        tables, "live",
        fill_of(report->usage_live.used, report->usage_live.capacity));
    for (unsigned i = 0; i < SEEP_CUT_COUNT; i++) {
        seep_json_put(ends, seep_words_cut((enum seep_cut)i),
                      seep_json_count(seep_words_counter(
                          report, SEEP_COUNT_CUT_FIRST + i)));
    }
    seep_json_put(object, "process", seep_json_process(report));
    seep_json_put(object, "marks", seep_json_marks(report));
    seep_json_put(object, "devices", seep_json_devices(report));
    seep_json_put(object, "tables", tables);
    seep_json_put(object, "stack_ends", ends);
    seep_json_put(object, "losses", losses_of(report));
    seep_json_put(object, "facts", counters_of(report, SEEP_KIND_FACT));
    seep_json_put(object, "cost", cost_of(report));
    return object;
}

int seep_view_json_info(FILE *file, const struct seep_report *const *reports,
                        size_t count, size_t refused_count)
{
    struct seep_json_out out = {.file = file};
    json_t *document = json_object();
    json_t *recordings = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(recordings, info_of(reports[i]));
    }
    seep_json_put(document, "schema", json_string("seep-info/1"));
    seep_json_put(document, "recordings", recordings);
    seep_json_put(document, "refused", seep_json_count(refused_count));
    seep_json_out_value(&out, document);
    return seep_json_out_finish(&out);
}
