/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace as chrome://tracing has it, in JSON, which Perfetto's viewer opens:
 * counters of each space, of RSS and of the sites that hold most, and marks.
 *
 * Invariant: the last value of a counter is what the report says.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "words/words.h"
#include "json/json.h"

#define SITES_MOST 20
#define US_PER_S 1e6

/* What a space holds changes at a time. */
struct change {
    double at_s;
    double bytes;
};

struct trace {
    struct seep_json_out out;
    size_t event_count;
};

static json_t *event_of(const char *phase, const struct seep_report *report,
                        const char *name)
{
    json_t *object = json_object();

    seep_json_put(object, "ph", phase);
    seep_json_put(object, "name", name);
    seep_json_put(object, "pid", report->pid);
    seep_json_put(object, "tid", report->pid);
    return object;
}

/* Takes @members. */
static void put_event(struct trace *trace, const char *phase,
                      const struct seep_report *report, const char *name,
                      double at_s, json_t *members)
{
    json_t *object = event_of(phase, report, name);

    seep_json_put(object, "ts", at_s * US_PER_S);
    json_object_update(object, members);
    json_decref(members);
    seep_json_out_raw(&trace->out, trace->event_count++ == 0 ? "" : ",\n");
    seep_json_out_line(&trace->out, object);
}

/* What a space holds at a time, @changes as they are printed. */
static void put_counters(struct trace *trace, const struct seep_report *report,
                         const char *name, struct change *changes, size_t count)
{
    static const struct seep_json_field fields[] = {
        SEEP_JSON_FIELD("\"ts\":", struct change, at_s),
        SEEP_JSON_FIELD(",\"args\":{\"bytes\":", struct change, bytes),
    };
    char *head = seep_json_members(event_of("C", report, name));
    const struct seep_json_rows rows = {
        .head = head,
        .fields = fields,
        .field_count = sizeof(fields) / sizeof(fields[0]),
        .tail = "}}",
        .between = ",\n",
        .row_bytes = sizeof(*changes),
    };

    if (head == NULL) {
        trace->out.error = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        changes[i].at_s *= US_PER_S;
    }
    seep_json_out_raw(&trace->out,
                      count == 0 || trace->event_count == 0 ? "" : ",\n");
    seep_json_out_rows(&trace->out, &rows, changes, count);
    trace->event_count += count;
    free(head);
}

static int compare(const void *a, const void *b)
{
    const struct change *one = a;
    const struct change *other = b;

    return (one->at_s > other->at_s) - (one->at_s < other->at_s);
}

static double end_of(const struct seep_report_point *point)
{
    return point->start_s + point->width_s;
}

/* Of a site without a series is known when it began, and what it holds. */
static void add_site(const struct seep_report_site *site,
                     struct change *changes, size_t *count)
{
    double before = 0;

    for (size_t i = 0; i < site->point_count; i++) {
        double live = (double)site->series[i].live_bytes;

        changes[(*count)++] =
            (struct change){end_of(&site->series[i]), live - before};
        before = live;
    }
    if (site->point_count == 0) {
        changes[(*count)++] =
            (struct change){site->first_s, (double)site->live_bytes};
    }
}

static void put_changes(struct trace *trace, const struct seep_report *report,
                        const char *name, struct change *changes, size_t count)
{
    double bytes = 0;
    size_t kept = 0;

    qsort(changes, count, sizeof(*changes), compare);
    for (size_t i = 0; i < count; i++) {
        bytes += changes[i].bytes;
        if (i + 1 == count || changes[i + 1].at_s > changes[i].at_s) {
            changes[kept++] = (struct change){changes[i].at_s, bytes};
        }
    }
    put_counters(trace, report, name, changes, kept);
}

static int put_space(struct trace *trace, const struct seep_report *report,
                     enum seep_space space)
{
    struct change *changes;
    size_t count = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        count += report->sites[i].space == space
                     ? report->sites[i].point_count + 1
                     : 0;
    }
    changes = calloc(count + 1, sizeof(*changes));
    if (changes == NULL) {
        return -ENOMEM;
    }
    count = 0;
    for (size_t i = 0; i < report->site_count; i++) {
        if (report->sites[i].space == space) {
            add_site(&report->sites[i], changes, &count);
        }
    }
    put_changes(trace, report, seep_words_space(space), changes, count);
    free(changes);
    return 0;
}

static int put_site(struct trace *trace, const struct seep_report *report,
                    const struct seep_report_site *site)
{
    struct change *changes = calloc(site->point_count + 1, sizeof(*changes));
    char *name = seep_words_make("%s (%.8s)", site->where, site->id);
    size_t count = 0;

    if (changes != NULL && name != NULL) {
        add_site(site, changes, &count);
        put_changes(trace, report, name, changes, count);
    } else {
        trace->out.error = -ENOMEM;
    }
    free(name);
    free(changes);
    return trace->out.error;
}

/* Where it was not sampled nothing is said. */
static int put_rss(struct trace *trace, const struct seep_report *report)
{
    size_t count = report->memory.moment_count;
    struct change *moments = calloc(count + 1, sizeof(*moments));
    size_t kept = 0;

    if (moments == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const struct seep_report_moment *moment = &report->memory.moments[i];

        if (moment->held_bytes >= 0) {
            moments[kept++] = (struct change){moment->t_s, moment->held_bytes};
        }
    }
    put_counters(trace, report, "RSS", moments, kept);
    free(moments);
    return 0;
}

int seep_trace_begin(struct seep_export *export)
{
    struct trace *trace = calloc(1, sizeof(*trace));

    if (trace == NULL) {
        return -ENOMEM;
    }
    export->state = trace;
    trace->out.file = export->file;
    seep_json_out_raw(&trace->out,
                      "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    return trace->out.error;
}

int seep_trace_add(struct seep_export *export, const struct seep_report *report)
{
    struct trace *trace = export->state;
    char *process = seep_export_process(report);
    int error;

    put_event(trace, "M", report, "process_name", 0,
              json_pack("{s:{s:o}}", "args", "name", seep_json_text(process)));
    free(process);
    for (size_t i = 0; i < report->mark_count; i++) {
        put_event(trace, "i", report, report->marks[i].name,
                  report->marks[i].at_s, json_pack("{s:s}", "s", "p"));
    }
    error = put_rss(trace, report);
    for (size_t i = 0; i < report->space_count && error == 0; i++) {
        error = put_space(trace, report, report->spaces[i].space);
    }
    for (size_t i = 0; i < report->site_count && i < SITES_MOST && error == 0;
         i++) {
        error = put_site(trace, report, &report->sites[i]);
    }
    return error != 0 ? error : trace->out.error;
}

int seep_trace_end(struct seep_export *export)
{
    struct trace *trace = export->state;
    int error;

    if (trace == NULL) {
        return 0;
    }
    seep_json_out_raw(&trace->out, "]}");
    error = seep_json_out_finish(&trace->out);
    free(trace);
    export->state = NULL;
    return error;
}
