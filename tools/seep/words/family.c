/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A family of processes in sentences. Invariant: "no leak" is said only
 * where each member, or the test of children, said so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words/units.h"
#include "words/verdict.h"
#include "words/words.h"

#define LEAST_SHARE 0.001
#define REASONS_MOST 4
#define LINES_MOST 2    /* the others stand with their processes */
#define MOSTLY_SAME 1.1 /* lengths that are told as one */

char *seep_words_family_name(const struct seep_family *family)
{
    char *name = seep_words_program(family->worst);

    if (name != NULL && *name == '\0') {
        free(name);
        name = strdup("?");
    }
    return name;
}

bool seep_words_family_is_reported(const struct seep_family *family)
{
    return family->lasting_count > 1 || family->children.count > 0;
}

/* " at serve.py:31 handle, in 3 of 4 processes" */
static void put_first(FILE *file, const struct seep_family *family)
{
    const struct seep_family_site *first = family->sites;
    char *where;

    if (family->site_count == 0 || first->leak_count == 0) {
        return;
    }
    where = seep_words_where(first->report, first->site);
    fprintf(file, ", most at %s, in %zu of %zu", where == NULL ? "?" : where,
            first->leak_count, family->lasting_count);
    free(where);
}

static void put_who(FILE *file, const struct seep_family *family, size_t count,
                    size_t of, const char *name)
{
    if (count < of) {
        fprintf(file, "%zu of %zu", count, of);
    } else {
        fprintf(file, "%zu", of);
    }
    fprintf(file, " process%s of %s", of == 1 ? "" : "es", name);
    if (of < family->lasting_count) {
        fprintf(file, " that %s together (of %zu in all)",
                family->running_count > 0 ? "run" : "ran",
                family->lasting_count);
    }
}

static void put_growing(FILE *file, const struct seep_family *family,
                        const char *name)
{
    bool is_suspect = family->class == SEEP_VERDICT_SUSPECT;
    const char *s = family->growing_count == 1 ? "s" : "";

    put_who(file, family, family->growing_count, family->together_count, name);
    fputs(is_suspect ? " may leak:" : "", file);
    if (family->growing_count > 1) {
        fputs(" together", file);
    }
    fprintf(file, " grow%s by ", is_suspect ? "ing" : s);
    seep_words_put_growth(file, &family->growth_bytes_per_s);
    if (family->on_devices) {
        fputs(" of GPU memory", file);
    }
    put_first(file, family);
}

/* "12 processes of 3.0 s to 6.1 s each" */
static void put_children(FILE *file, const struct seep_family *family)
{
    const struct seep_family_children *children = &family->children;

    fprintf(file, "%zu processes ", children->count);
    if (children->most_s < MOSTLY_SAME * children->least_s) {
        fprintf(file, "of %s each", SEEP_UNITS_DURATION(children->mean_s));
    } else {
        fprintf(file, "of %s to %s", SEEP_UNITS_DURATION(children->least_s),
                SEEP_UNITS_DURATION(children->most_s));
    }
}

static void put_slope(FILE *file, const struct seep_family *family,
                      const struct seep_family_kept *kept)
{
    fprintf(file, "%s for each %s (%s to %s)",
            SEEP_UNITS_BYTES(kept->slope.estimate),
            family->children.by_units ? "unit of work" : "second of its run",
            SEEP_UNITS_BYTES(kept->slope.low),
            SEEP_UNITS_BYTES(kept->slope.high));
}

/* The line that speaks for the children; NULL: none does. */
static const struct seep_family_site *line_of(const struct seep_family *family)
{
    const struct seep_family_site *line = NULL;

    for (size_t i = 0; i < family->site_count; i++) {
        const struct seep_family_site *site = &family->sites[i];

        if (site->kept.count > 0 &&
            (line == NULL || site->kept.trend < line->kept.trend ||
             (site->kept.trend == line->kept.trend &&
              site->kept.bytes > line->kept.bytes))) {
            line = site;
        }
    }
    return line;
}

/* How much of what they keep could still be by their length. */
static void put_rest(FILE *file, const struct seep_family *family,
                     const struct seep_family_kept *kept)
{
    const struct seep_family_children *children = &family->children;
    double length =
        children->by_units ? children->mean_units : children->mean_s;
    double share =
        kept->slope.high * length * (double)kept->count / kept->bytes;

    if (share >= LEAST_SHARE) {
        fprintf(file, ", all but at most %s of it", SEEP_UNITS_SHARE(share));
    }
}

/* ", more the older it gets: 53 MiB/min (51 to 55) in 5 of 5: a leak" */
static void put_age(FILE *file, const struct seep_family_age *age)
{
    fputs(", more the older it gets: ", file);
    seep_words_put_growth(file, &age->rate);
    fprintf(file, " in %zu of %zu%s", age->rising, age->count,
            age->trend == SEEP_FAMILY_GROWS
                ? ": a leak"
                : "; a leak, or a cache that fills: let a process live longer");
}

static void put_trend(FILE *file, const struct seep_family *family,
                      const struct seep_family_kept *kept)
{
    enum seep_family_trend trend = family->children.trend;

    if (trend < SEEP_FAMILY_UNTOLD && kept->age.trend == trend &&
        kept->age.count > 0) {
        put_age(file, &kept->age);
    } else if (trend < SEEP_FAMILY_UNTOLD) {
        fputs(", more the longer it runs: ", file);
        put_slope(file, family, kept);
        fputs(trend == SEEP_FAMILY_GROWS
                  ? ", over many units in each: a leak"
                  : "; a leak, or what a larger job needs",
              file);
    } else if (trend == SEEP_FAMILY_ONCE) {
        fputs(", and no more in longer runs: kept once per process", file);
        put_rest(file, family, kept);
    } else if (kept->age.flattens) {
        fputs(
            ", ever less of it the older it gets, as a cache that fills: to be sure, let a process live longer",
            file);
    } else {
        fputs(
            "; too short, or too similar in length, to tell a leak from a working set",
            file);
    }
}

static void put_kept(FILE *file, const struct seep_family *family)
{
    const struct seep_family_children *children = &family->children;
    const struct seep_family_site *line = line_of(family);
    const struct seep_family_kept *kept =
        line == NULL || children->held.trend < line->kept.trend
            ? &children->held
            : &line->kept;
    char *where = kept == &children->held
                      ? NULL
                      : seep_words_where(line->report, line->site);
    const char *which = kept->count == children->count ? "each" : "most";

    if (kept->count == 0) {
        fputs(": nothing that they keep was seen", file);
        free(where);
        return;
    }
    if (where != NULL) {
        fprintf(file, ": %s keeps", where);
    } else {
        fputs(": in all they keep", file);
    }
    fprintf(file, " %s in %s",
            SEEP_UNITS_BYTES(kept->bytes / (double)kept->count), which);
    if (*which == 'm') {
        fprintf(file, " (%zu of %zu)", kept->count, children->count);
    }
    put_trend(file, family, kept);
    free(where);
}

static bool is_about_children(const struct seep_family *family)
{
    return family->children.count > 0 &&
           (family->worst->verdict.class == SEEP_VERDICT_INSUFFICIENT ||
            family->class != family->worst->verdict.class);
}

/* Was it tested of each of them? */
static bool reassures(const struct seep_family *family)
{
    for (size_t i = 0; i < family->count; i++) {
        const struct seep_report *report = family->members[i];

        if (!seep_family_is_brief(report) && !report->verdict.reassures) {
            return false;
        }
    }
    return true;
}

static void put_quiet(FILE *file, const struct seep_family *family,
                      const char *name)
{
    bool is_open = family->class == SEEP_VERDICT_INSUFFICIENT;

    if (is_open) {
        fprintf(file, "cannot tell yet for %zu of %zu processes of %s: ",
                family->by_class[SEEP_VERDICT_INSUFFICIENT],
                family->lasting_count, name);
    } else {
        fprintf(file, "%s%zu process%s of %s: ",
                reassures(family) ? "no leak in " : "", family->lasting_count,
                family->lasting_count == 1 ? "" : "es", name);
    }
    seep_words_put_classes(file, family->by_class);
}

static void put_sentence(FILE *file, const struct seep_family *family)
{
    char *name = seep_words_family_name(family);
    const char *known = name == NULL ? "?" : name;

    if (is_about_children(family)) {
        fprintf(file, "%s, ", known);
        put_children(file, family);
        put_kept(file, family);
    } else if (family->has_growth) {
        put_growing(file, family, known);
    } else {
        put_quiet(file, family, known);
    }
    fputc('.', file);
    free(name);
}

static char *make(void (*put)(FILE *, const struct seep_family *),
                  const struct seep_family *family)
{
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return NULL;
    }
    put(file, family);
    return seep_words_close(&text);
}

char *seep_words_family_site(const struct seep_family *family,
                             const struct seep_family_site *site)
{
    char *where = seep_words_where(site->report, site->site);
    char *text;

    if (site->has_growth) {
        const char *growth = SEEP_UNITS_INTERVAL(&site->growth_bytes_per_s, 60);
        text = seep_words_make("%s grows by %s/min in %zu of %zu processes",
                               where == NULL ? "?" : where, growth,
                               site->leak_count, family->lasting_count);
    } else {
        text = seep_words_make("%s is in %zu of %zu processes",
                               where == NULL ? "?" : where, site->process_count,
                               family->lasting_count);
    }
    free(where);
    return text;
}

static void put_tally_sentence(FILE *file, const struct seep_family *family)
{
    fputs("one by one: ", file);
    seep_words_put_classes(file, family->by_class);
}

static void put_children_sentence(FILE *file, const struct seep_family *family)
{
    put_children(file, family);
    put_kept(file, family);
}

static_assert(REASONS_MOST <= SEEP_WORDS_REASONS_MAX, "room");

static void add(struct seep_words_verdict *words, char *text)
{
    if (text != NULL && words->reason_count < REASONS_MOST) {
        words->reasons[words->reason_count++] = text;
    } else {
        free(text);
    }
}

static void put_open_sentence(FILE *file, const struct seep_family *family)
{
    fprintf(file, "%zu more process%s too little data to judge",
            family->open_count, family->open_count == 1 ? " has" : "es have");
}

/* Where one line is all that grows, the sentence has said so. */
static void add_lines(const struct seep_family *family,
                      struct seep_words_verdict *words)
{
    size_t count = 0;

    while (count < family->site_count && family->sites[count].leak_count > 0 &&
           family->sites[count].has_growth) {
        count++;
    }
    for (size_t i = 0; count > 1 && i < count && i < LINES_MOST; i++) {
        add(words, seep_words_family_site(family, &family->sites[i]));
    }
}

static void add_reasons(const struct seep_family *family,
                        struct seep_words_verdict *words)
{
    add_lines(family, words);
    if (family->children.count > 0 && !is_about_children(family)) {
        add(words, make(put_children_sentence, family));
    }
    if (family->children.count > 0 && family->open_count > 0) {
        add(words, make(put_open_sentence, family));
    }
    if (family->has_growth) {
        add(words, make(put_tally_sentence, family));
    }
}

/* The words of a process, of which it is the sum. */
static char *forecast_of(const struct seep_family *family)
{
    struct seep_report sum = {.path = ""};

    if (!family->has_growth && !family->forecast.by_others) {
        return NULL;
    }
    sum.verdict.class = family->worst->verdict.class;
    sum.verdict.has_growth = family->has_growth;
    sum.verdict.device = family->forecast.device;
    sum.verdict.forecast = family->forecast;
    return seep_words_forecast(&sum);
}

void seep_words_family(const struct seep_family *family,
                       struct seep_words_verdict *ret_words)
{
    struct seep_words_verdict words = {.reason_count = 0};

    seep_words_label(seep_verdict_name(family->class), words.label);
    words.sentence = make(put_sentence, family);
    words.forecast = forecast_of(family);
    add_reasons(family, &words);
    *ret_words = words;
}
