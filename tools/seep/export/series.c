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
        fputs(*at == '"' ? "\"\"" : (char[]){*at, '\0'}, file);
    }
    fputs("\",", file);
    free(clean);
    return 0;
}

static int put_head(FILE *file, const struct seep_report *report,
                    const char *series, const char *space, const char *where)
{
    int error;

    fprintf(file, "%" PRIu32 ",", report->pid);
    error = put_text(file, series);
    error = error == 0 ? put_text(file, space) : error;
    return error == 0 ? put_text(file, where) : error;
}

static int put_site(FILE *file, const struct seep_report *report,
                    const struct seep_report_site *site)
{
    int error = 0;

    for (size_t i = 0; i < count_points(site) && error == 0; i++) {
        struct seep_report_point point = point_at(report, site, i);

        error = put_head(file, report, site->id, seep_words_space(site->space),
                         site->where);
        fprintf(file,
                "%.6f,%.6f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\r\n",
                point.start_s, point.width_s, point.live_bytes, point.low_bytes,
                point.allocated_bytes, point.freed_bytes);
    }
    return error;
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
    int error = 0;

    for (size_t i = 0; i < memory->moment_count && error == 0; i++) {
        const struct seep_report_moment *moment = &memory->moments[i];

        if (moment->held_bytes >= 0) {
            error = put_head(export->file, report, "rss", "process", "");
            fprintf(export->file, "%.6f,0,%.0f,,,\r\n", moment->t_s,
                    moment->held_bytes);
        }
    }
    for (size_t i = 0; i < report->site_count && error == 0; i++) {
        error = put_site(export->file, report, &report->sites[i]);
    }
    return error != 0 ? error : ferror(export->file) ? -EIO : 0;
}

/* Lines of JSON. */

/* Takes @members. */
static void put_line(struct seep_json_out *out, const char *type,
                     const struct seep_report *report, json_t *members)
{
    json_t *object = json_object();

    seep_json_put(object, "type", type);
    seep_json_put(object, "pid", report->pid);
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

static json_t *point_of(const struct seep_report_site *site,
                        const struct seep_report_point *point)
{
    json_t *object = json_object();

    seep_json_put(object, "site", site->id);
    SEEP_JSON_COPY(object, point, start_s, width_s);
    SEEP_JSON_COPY(object, point, live_bytes, low_bytes);
    SEEP_JSON_COPY(object, point, allocated_bytes, freed_bytes);
    return object;
}

static void put_moments(struct seep_json_out *out,
                        const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;

    for (size_t i = 0; i < memory->moment_count && out->error == 0; i++) {
        const struct seep_report_moment *moment = &memory->moments[i];
        json_t *object = json_object();

        SEEP_JSON_COPY(object, moment, t_s);
        seep_json_put(object, "rss_bytes",
                      moment->held_bytes >= 0 ? json_real(moment->held_bytes)
                                              : json_null());
        put_line(out, "memory", report, object);
    }
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
        for (size_t k = 0; k < site->point_count && out.error == 0; k++) {
            put_line(&out, "point", report, point_of(site, &site->series[k]));
        }
    }
    return out.error != 0 ? out.error : ferror(export->file) ? -EIO : 0;
}
