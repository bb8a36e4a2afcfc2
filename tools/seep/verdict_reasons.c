/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What was seen. Invariant: of a site that was seen to give old blocks back it
 * is never said that it may be a cache which fills.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "reader/catalogue.h"
#include "units.h"
#include "verdict_words.h"

#define ALL_OF_IT 0.995

/* "16 KiB a unit of work", or of time */
static void put_kept_rate(FILE *file, const struct seep_report_site *site)
{
    char text[SEEP_UNITS_TEXT_BYTES];

    if (site->has_growth_per_unit) {
        seep_units_bytes(site->growth_bytes_per_unit.estimate, text);
        fprintf(file, "%s a unit of work", text);
    } else {
        seep_units_bytes(site->growth_bytes_per_s.estimate, text);
        fprintf(file, "%s a second", text);
    }
}

/* " all the run long", or since when and over how much of it */
static void put_kept_time(FILE *file, const struct seep_report *report,
                          const struct seep_report_kept *kept)
{
    char since[SEEP_UNITS_TEXT_BYTES];
    char share[SEEP_UNITS_TEXT_BYTES];

    if (kept->share >= ALL_OF_IT) {
        fputs(" all the run long", file);
        return;
    }
    fprintf(file, " from %s into the run to its end, %s of its %s",
            seep_units_duration(kept->since_s, since),
            seep_units_share(kept->share, share),
            report->units > 0 ? "work" : "length");
}

char *seep_verdict_words_kept(const struct seep_report *report,
                              const struct seep_report_site *site)
{
    const struct seep_report_kept *kept = &site->kept;
    char text[SEEP_UNITS_TEXT_BYTES];
    char *words = NULL;
    size_t size;
    FILE *file;

    if (!site->has_growth || kept->gave_back_old || kept->share <= 0) {
        return NULL;
    }
    file = open_memstream(&words, &size);
    if (file == NULL) {
        return NULL;
    }
    fputs("it kept ", file);
    put_kept_rate(file, site);
    put_kept_time(file, report, kept);
    if (kept->oldest_death_s > 0) {
        fprintf(file, "; no block older than %s was given back",
                seep_units_duration(kept->oldest_death_s, text));
    } else {
        fputs("; nothing of it was given back", file);
    }
    if (fclose(file) != 0) {
        free(words);
        return NULL;
    }
    return words;
}

const struct seep_report_site *
seep_verdict_words_cache(const struct seep_report *report)
{
    const struct seep_report_site *site = seep_verdict_words_site(report);
    bool fills =
        site != NULL && site->has_growth && site->known_bound_bytes == 0 &&
        !site->kept.gave_back_old &&
        (site->class == SEEP_CLASS_LEAK || site->class == SEEP_CLASS_SUSPECT ||
         site->class == SEEP_CLASS_WARMING);

    return fills ? site : NULL;
}

void seep_verdict_words_add_reasons(const struct seep_report *report,
                                    const struct seep_pattern *pattern,
                                    struct seep_verdict_words *words)
{
    const struct seep_report_site *site = seep_verdict_words_site(report);
    const struct seep_report_site *cache = seep_verdict_words_cache(report);
    char *kept = cache == NULL ? NULL : seep_verdict_words_kept(report, cache);

    if (report->verdict.reason != NULL && *report->verdict.reason != '\0') {
        seep_verdict_words_reason(words, "%s", report->verdict.reason);
    }
    if (kept != NULL) {
        seep_verdict_words_reason(words, "%s", kept);
        free(kept);
    }
    if (cache != NULL) {
        seep_verdict_words_reason(
            words, "a cache that has not reached its bound yet looks "
                   "the same");
    } else if (site != NULL && site->kept.gave_back_old && site->has_growth) {
        seep_verdict_words_reason(
            words, "it was seen to give old blocks back, and grows all "
                   "the same: no cache that fills");
    }
    seep_verdict_words_add_python_reason(report, site, words);
    seep_verdict_words_add_device_reasons(report, words);
    if (site != NULL && site->pattern != NULL) {
        seep_verdict_words_reason(words, "known: %s. %s", site->pattern->name,
                                  site->pattern->cause);
    }
    if (pattern != NULL && (site == NULL || site->pattern != pattern)) {
        seep_verdict_words_reason(words, "known: %s. %s", pattern->name,
                                  pattern->cause);
    }
}
