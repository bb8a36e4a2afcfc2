/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What call sites held over time, as a table (CSV) and as lines of JSON.
 *
 * Invariant: the last row of a site holds what the report says that it holds.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "reader/compare/patterns.h"
#include "reader/judge/sites.h"
#include "reader/statistics/growth.h"
#include "words/clean.h"
#include "words/words.h"
#include "json/json.h"

/* A site of whose course nothing is known is one row, from start to end. */
static size_t count_points(const struct seep_report_site *site)
{
    return site->point_count > 0 ? site->point_count : 1;
}

static struct seep_report_point point_at(const struct seep_report *report,
                                         const struct seep_report_site *site,
                                         size_t index)
{
    if (site->point_count > 0) {
        return site->series[index];
    }
    return (struct seep_report_point){
        .width_s = report->duration_s,
        .live_bytes = site->live_bytes,
        .allocated_bytes = site->allocated_bytes,
        .freed_bytes = site->freed_bytes,
    };
}

/* CSV, as of RFC 4180. */

/* A cell in quotes; what a spreadsheet would calculate is text. */
static int put_text(FILE *file, const char *text)
{
    char *clean = seep_clean_for_terminal(text);

    if (clean == NULL) {
        return -ENOMEM;
    }
    fputs(*clean != '\0' && strchr("=+-@", *clean) != NULL ? "\"'" : "\"",
          file);
    for (const char *at = clean; *at != '\0'; at++) {
        if (*at == '"') {
            fputc('"', file);
        }
        fputc(*at, file);
    }
    fputs("\",", file);
    free(clean);
    return 0;
}

/* What the rows of a series begin with: to be freed; NULL: no memory. */
static char *head_of(const struct seep_report *report, const char *series,
                     const char *space, const char *where)
{
    char *head = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&head, &size);
    int error;

    if (file == NULL) {
        return NULL;
    }
    fprintf(file, "%" PRIu32 ",", report->pid);
    error = put_text(file, series);
    error = error == 0 ? put_text(file, space) : error;
    error = error == 0 ? put_text(file, where) : error;
    if (fclose(file) != 0 || error != 0) {
        free(head);
        return NULL;
    }
    return head;
}

static int put_site(FILE *file, const struct seep_report *report,
                    const struct seep_report_site *site)
{
    char *head =
        head_of(report, site->id, seep_words_space(site->space), site->where);

    if (head == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count_points(site); i++) {
        struct seep_report_point point = point_at(report, site, i);

        fputs(head, file);
        fprintf(file,
                "%.6f,%.6f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\r\n",
                point.start_s, point.width_s, point.live_bytes, point.low_bytes,
                point.allocated_bytes, point.freed_bytes);
    }
    free(head);
    return 0;
}

int seep_csv_begin(struct seep_export *export)
{
    fputs("pid,series,space,where,start_s,width_s,live_bytes,low_bytes,"
          "allocated_bytes,freed_bytes\r\n",
          export->file);
    return 0;
}

int seep_csv_add(struct seep_export *export, const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    char *head = head_of(report, "rss", "process", "");
    int error = head == NULL ? -ENOMEM : 0;

    for (size_t i = 0; i < memory->moment_count && error == 0; i++) {
        const struct seep_report_moment *moment = &memory->moments[i];

        if (moment->held_bytes >= 0) {
            fputs(head, export->file);
            fprintf(export->file, "%.6f,0,%.0f,,,\r\n", moment->t_s,
                    moment->held_bytes);
        }
    }
    free(head);
    for (size_t i = 0; i < report->site_count && error == 0; i++) {
        error = put_site(export->file, report, &report->sites[i]);
    }
    return error != 0 ? error : ferror(export->file) ? -EIO : 0;
}

/* Lines of JSON. */

static json_t *line_of(const char *type, const struct seep_report *report)
{
    json_t *object = json_object();

    seep_json_put(object, "type", type);
    seep_json_put(object, "pid", report->pid);
    return object;
}

/* Takes @members. */
static void put_line(struct seep_json_out *out, const char *type,
                     const struct seep_report *report, json_t *members)
{
    json_t *object = line_of(type, report);

    json_object_update(object, members);
    json_decref(members);
    seep_json_out_line(out, object);
    seep_json_out_raw(out, "\n");
}

static json_t *site_of(const struct seep_report_site *site)
{
    json_t *object = json_object();

    SEEP_JSON_COPY(object, site, id, where);
    seep_json_put(object, "space", seep_words_space(site->space));
    seep_json_put_device(object, "device", site->device);
    seep_json_put(object, "class", seep_class_name(site->class));
    SEEP_JSON_COPY(object, site, live_bytes, live_count);
    SEEP_JSON_COPY(object, site, allocated_bytes, allocated_count, freed_bytes);
    seep_json_put(object, "growth_bytes_per_s",
                  site->has_growth ? &site->growth_bytes_per_s : NULL);
    seep_json_put_text_or_null(
        object, "pattern", site->pattern == NULL ? NULL : site->pattern->id);
    seep_json_put_text_or_null(object, "suppressed_by", site->suppressed_by);
    return object;
}

/* Takes @head: what each row begins with. */
static void put_rows(struct seep_json_out *out, json_t *head,
                     struct seep_json_rows rows, const void *first,
                     size_t count)
{
    char *text = seep_json_members(head);

    rows.head = text;
    rows.tail = "}\n";
    rows.between = "";
    if (text != NULL) {
        seep_json_out_rows(out, &rows, first, count);
    } else if (out->error == 0) {
        out->error = -ENOMEM;
    }
    free(text);
}

static void put_points(struct seep_json_out *out,
                       const struct seep_report *report,
                       const struct seep_report_site *site)
{
#define FIELD(separator, name) \
    SEEP_JSON_FIELD(separator "\"" #name "\":", struct seep_report_point, name)
    static const struct seep_json_field fields[] = {
        FIELD("", start_s),          FIELD(",", width_s),
        FIELD(",", live_bytes),      FIELD(",", low_bytes),
        FIELD(",", allocated_bytes), FIELD(",", freed_bytes),
    };
#undef FIELD
    json_t *head = line_of("point", report);

    seep_json_put(head, "site", site->id);
    put_rows(out, head,
             (struct seep_json_rows){.fields = fields,
                                     .field_count =
                                         sizeof(fields) / sizeof(fields[0]),
                                     .row_bytes = sizeof(*site->series)},
             site->series, site->point_count);
}

static void put_moments(struct seep_json_out *out,
                        const struct seep_report *report)
{
    static const struct seep_json_field fields[] = {
        SEEP_JSON_FIELD("\"t_s\":", struct seep_report_moment, t_s),
        {",\"rss_bytes\":", SEEP_JSON_TOLD,
         offsetof(struct seep_report_moment, held_bytes)},
    };

    put_rows(out, line_of("memory", report),
             (struct seep_json_rows){
                 .fields = fields,
                 .field_count = sizeof(fields) / sizeof(fields[0]),
                 .row_bytes = sizeof(*report->memory.moments)},
             report->memory.moments, report->memory.moment_count);
}

int seep_jsonl_add(struct seep_export *export, const struct seep_report *report)
{
    struct seep_json_out out = {.file = export->file};
    json_t *marks = seep_json_marks(report);
    size_t index;
    json_t *mark;

    put_line(&out, "process", report, seep_json_process(report));
    put_line(&out, "verdict", report, seep_json_verdict(report, NULL));
    json_array_foreach(marks, index, mark)
    {
        put_line(&out, "mark", report, json_incref(mark));
    }
    json_decref(marks);
    put_moments(&out, report);
    for (size_t i = 0; i < report->site_count && out.error == 0; i++) {
        const struct seep_report_site *site = &report->sites[i];

        put_line(&out, "site", report, site_of(site));
        put_points(&out, report, site);
    }
    return out.error != 0 ? out.error : ferror(export->file) ? -EIO : 0;
}
