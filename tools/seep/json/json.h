/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Documents for machines, and the pieces that they are made of.
 *
 * Sizes are bytes, times seconds; an interval is {estimate, low, high} and an
 * open bound null; what was not computed is null. Strings are valid UTF-8.
 *
 * Errors: a document is printed whole, or the answer is -ENOMEM, or -EIO if the
 * stream took less. Values are new references; one that could not be made
 * becomes null.
 */
#ifndef SEEP_TOOL_JSON_JSON_H
#define SEEP_TOOL_JSON_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "held/held.h"
#include "reader/judge/family.h"
#include "reader/report/report.h"
#include "reader/report/span.h"
#include "words/compare.h"

struct seep_json_options {
    size_t site_limit;   /* 0: all */
    const char *site_id; /* only this site; NULL: all */
    bool no_series;      /* sites without their series */
    bool for_page;       /* what a page shows: stacks, each by itself, with the
                            frames once, instead of frames and series of sites */
    const struct seep_catalogue *catalogue; /* NULL: none */
    struct seep_span_wish wish;             /* a part of the run beside */
    struct seep_json_spool *spool;          /* NULL: none */
};

/**
 * Processes of a document that were printed when their report was there: of
 * very many not all reports can be kept whole.
 */
struct seep_json_spool;
struct seep_json_out;
struct seep_json_frame;

/** NULL: no memory, or no file could be made in TMPDIR (/tmp). */
struct seep_json_spool *
seep_json_spool_open(const struct seep_json_options *options);
void seep_json_spool_close(struct seep_json_spool *spool);

/** Print @report as seep_json_reports() would.
 * @return false: it was not, and none after it will be */
bool seep_json_spool_add(struct seep_json_spool *spool,
                         const struct seep_report *report);

/** What was printed of @report goes to @out. @return false: nothing was */
bool seep_json_spool_print(struct seep_json_spool *spool,
                           const struct seep_report *report,
                           struct seep_json_out *out);

/** One process of the document. @kept: see seep_json_site_open() */
void seep_json_report_print(struct seep_json_out *out,
                            struct seep_json_frame *kept,
                            const struct seep_report *report,
                            const struct seep_json_options *options);

/** Before any other: memory comes from the program's own malloc, of which it
 * knows what failed. */
void seep_json_init(void);

/** "seep-report/1": the reports, worst first, and how many were refused. */
int seep_json_reports(FILE *file, const struct seep_report *const *reports,
                      size_t count, size_t refused_count,
                      const struct seep_json_options *options);

/** "seep-info/1": the same without sites, with the fill of the tables. */
int seep_json_info(FILE *file, const struct seep_report *const *reports,
                   size_t count, size_t refused_count);

/** "seep-check/1" */
int seep_json_check(FILE *file, const struct seep_check_set *set);

/** What keeps free memory apart, as of seep-report/1 and seep-held/1; null:
 * nobody asked. */
json_t *seep_json_pins(const struct seep_report *report);

/** A row that was asked about, and what came out; see seep_json_held(). */
struct seep_json_held_row {
    const struct seep_report_site *site;
    const struct seep_held_answer *answer; /* NULL: nothing */
};

/** "seep-held/1": who holds the blocks of call sites of one process. */
int seep_json_held_rows(FILE *file, const struct seep_report *report,
                        const struct seep_json_held_row *rows, size_t count);

/** "seep-diff/1" */
int seep_json_diff(FILE *file, const struct seep_diff_set *set,
                   size_t site_limit);

/** "seep-digest/1": lines of one report, each a document. */
int seep_json_digest(FILE *file, const struct seep_report *report);

/*
 * Values: null for what is not known or not finite.
 */

/** Made valid UTF-8; null if NULL. */
json_t *seep_json_text(const char *text);
json_t *seep_json_real(double value);
json_t *seep_json_count(uint64_t value);
json_t *seep_json_flag(bool value);
/** A string like "0x1234": a number of 64 bits is no number of JSON's. */
json_t *seep_json_address(uint64_t value);
/** null if NULL. */
json_t *seep_json_interval(const struct seep_interval *interval);
json_t *seep_json_extent(const struct seep_report_extent *extent);
json_t *seep_json_forecast(const struct seep_report_forecast *forecast);
/** @value itself; null if NULL. */
json_t *seep_json_value(json_t *value);
/** An array. */
json_t *seep_json_texts(char *const *texts, size_t count);

/* clang-format off */
/** One of the above by the type of @value; of what is not named a count. It
 * takes a json_t. */
#define SEEP_JSON(value)                                 \
    _Generic((value),                                    \
             json_t *: seep_json_value,                  \
             char *: seep_json_text,                     \
             const char *: seep_json_text,               \
             double: seep_json_real,                     \
             bool: seep_json_flag,                       \
             struct seep_interval *: seep_json_interval, \
             const struct seep_interval *: seep_json_interval, \
             default: seep_json_count)(value)
/* clang-format on */

/** Put a SEEP_JSON() value into @object; where that is NULL, nowhere. The key
 * is valid UTF-8. */
#define seep_json_put(object, key, value) \
    json_object_set_new_nocheck(object, key, SEEP_JSON(value))
/** Up to three fields of @from, each under its own name. */
#define SEEP_JSON_COPY(object, from, ...)                         \
    SEEP_JSON_PICK(__VA_ARGS__, SEEP_JSON_COPY3, SEEP_JSON_COPY2, \
                   SEEP_JSON_COPY1, )                             \
    (object, from, __VA_ARGS__)
#define SEEP_JSON_PICK(first, second, third, copy, ...) copy
#define SEEP_JSON_COPY1(object, from, field) \
    seep_json_put(object, #field, (from)->field)
#define SEEP_JSON_COPY2(object, from, field, second) \
    (SEEP_JSON_COPY1(object, from, field),           \
     SEEP_JSON_COPY1(object, from, second))
#define SEEP_JSON_COPY3(object, from, field, second, third) \
    (SEEP_JSON_COPY2(object, from, field, second),          \
     SEEP_JSON_COPY1(object, from, third))

/** null if empty or NULL. */
void seep_json_put_text_or_null(json_t *object, const char *key,
                                const char *text);
/** null if 0. */
void seep_json_put_known(json_t *object, const char *key, uint64_t value);
/** An ordinal; null below 0: of the host. */
void seep_json_put_device(json_t *object, const char *key, int device);

/*
 * A JSON document that is printed piece by piece, so that its size is no
 * matter of memory: what lies between the pieces is the caller's to write.
 *
 * The first error stays and stops everything after it.
 */

struct seep_json_out {
    FILE *file;
    int error; /* 0; -ENOMEM; -EIO if the stream took less */
};

/** As it is: brackets, commas, keys. */
void seep_json_out_raw(struct seep_json_out *out, const char *text);
/** Takes @value, on one line. */
void seep_json_out_line(struct seep_json_out *out, json_t *value);
/** The same without its own brackets: members of an object begun by hand. */
void seep_json_out_members(struct seep_json_out *out, json_t *object);
/** Takes @value, indented. */
void seep_json_out_value(struct seep_json_out *out, json_t *value);

/** How a figure is printed, by the type of its field. */
enum seep_json_figure {
    SEEP_JSON_COUNT, /* uint64_t; what is more than INT64_MAX is that */
    SEEP_JSON_REAL,  /* double; null where it is not finite */
    SEEP_JSON_TOLD,  /* double; null below 0, too */
};

/** A figure of a row, and what stands before it. */
struct seep_json_field {
    const char *before; /* as it is */
    enum seep_json_figure kind;
    size_t offset_bytes;
};

/** @name of a struct @type, which is a uint64_t or a double, and no other. */
#define SEEP_JSON_FIELD(before, type, name)               \
    {                                                     \
        before,                                           \
            _Generic(((const type *)NULL)->name, uint64_t \
                     : SEEP_JSON_COUNT, double            \
                     : SEEP_JSON_REAL),                   \
            offsetof(type, name)                          \
    }

/** Rows of figures that are not made into values before they are printed: of a
 * course a document has a hundred thousand. */
struct seep_json_rows {
    const char *head; /* each begins with it, as it is */
    const struct seep_json_field *fields;
    size_t field_count;
    const char *tail;
    const char *between;
    size_t row_bytes;
};

void seep_json_out_rows(struct seep_json_out *out,
                        const struct seep_json_rows *rows, const void *first,
                        size_t count);

/** Takes @object. @return it on one line, to be freed; NULL: no memory */
char *seep_json_line(json_t *object);
/** Takes @object, which has members. @return what rows with more of them begin
 * with: "{...,"; to be freed; NULL: no memory */
char *seep_json_members(json_t *object);

/** The last line end. @return .error */
int seep_json_out_finish(struct seep_json_out *out);

/** Takes @document, which is all there is. */
int seep_json_print(FILE *file, json_t *document);

/*
 * Parts of a report. A process: who it was, how it went, how it was recorded.
 */

/** What the program said when: [{"t_s", "name", "units"}]. */
json_t *seep_json_marks(const struct seep_report *report);

/** "2026-11-21T09:12:31.204Z"; null where the clock told nothing. */
json_t *seep_json_started(const struct seep_report *report);

json_t *seep_json_process(const struct seep_report *report);
/** Files beside its recording that are there and were left out. */
json_t *seep_json_unread(const struct seep_report *report);

/** One object a device that the driver was asked about; empty without any. */
json_t *seep_json_devices(const struct seep_report *report);

/** Processes by their labels, an array of rows; null unless that is what was
 * asked for. */
json_t *seep_json_labels(const struct seep_report *const *reports,
                         size_t count);

/** Families, an array; "members" are indices of @reports, which they were made
 * of. */
json_t *seep_json_families(const struct seep_families *families,
                           const struct seep_report *const *reports,
                           size_t count);

/** Groups of blocks by who holds them; null if NULL. */
json_t *seep_json_held(const struct seep_held_answer *answer);

/** What is known of who holds what @site keeps; null: nothing was asked. */
json_t *seep_json_kept(const struct seep_report_site *site);

/** What one thing holds of several sites, by growth, the most first. */
json_t *seep_json_held_together(const struct seep_report *report);

/** @param catalogue  may be NULL */
json_t *seep_json_verdict(const struct seep_report *report,
                          const struct seep_catalogue *catalogue);
json_t *seep_json_memory(const struct seep_report *report);

/** The same over time: of the time grid what was live, and the samples. */
void seep_json_timeline_print(struct seep_json_out *out,
                              const struct seep_report *report);

/*
 * A call site of the document "seep-report/1", printed at once.
 */

/** Frames printed before; all reports printed with it must stay open. */
struct seep_json_frame;

/** NULL: no memory. */
struct seep_json_frame *seep_json_site_open(void);
/** NULL is fine. */
void seep_json_site_close(struct seep_json_frame *kept);

/** With its figures over time if @series; frames if @kept is not NULL. Takes
 * @window: of the part of the run that was asked for. */
void seep_json_site_print(struct seep_json_out *out,
                          struct seep_json_frame *kept,
                          const struct seep_report_site *site, bool series,
                          json_t *window);

/*
 * A part of a run; of NULL null.
 */

json_t *seep_json_span(const struct seep_span *span);
/** Of row @i of its report. */
json_t *seep_json_span_row(const struct seep_span *span, size_t i);

/** The members "frames" and "stacks" of a process in a page. */
void seep_json_stacks_print(struct seep_json_out *out,
                            const struct seep_report *report);

json_t *seep_json_frame_of(const struct seep_report_frame *frame);

/** Do they print alike? Strings are compared by their addresses: a reader keeps
 * each once. */
bool seep_json_frame_is(const struct seep_report_frame *a,
                        const struct seep_report_frame *b);
uint64_t seep_json_frame_hash(const struct seep_report_frame *frame);

#endif
