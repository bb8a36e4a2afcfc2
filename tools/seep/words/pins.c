/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What keeps free memory apart, in words.
 *
 * Invariant: a call site is named of the blocks that were recorded, and how
 * many these are is said with it; of the others it is said who holds them.
 */
#include <stdlib.h>
#include <string.h>

#include "words/held.h"
#include "words/units.h"
#include "words/words.h"

/* Of fewer samples one call site is not said to have most of them. */
#define SAMPLES_LEAST 5U
/* A rest of a larger block is so much smaller than what it keeps apart. */
#define REST_TIMES 16.0
/* There is more of it by now. */
#define LONG_AGO_TIMES 1.25

bool seep_words_is_glibc(const struct seep_report *report)
{
    return report->memory.allocator == SEEP_ALLOCATOR_GLIBC ||
           (report->memory.allocator == SEEP_ALLOCATOR_UNKNOWN &&
            (report->allocator == NULL || *report->allocator == '\0'));
}

bool seep_words_pins_are_wanted(const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;

    return (verdict->class == SEEP_VERDICT_FRAGMENTATION ||
            verdict->class == SEEP_VERDICT_RETENTION) &&
           verdict->has_growth && verdict->device < 0 &&
           seep_words_is_glibc(report);
}

/* What they keep apart has to be most of what is free: the rest may lie behind
 * the last block, or be large enough for all. */
static const struct seep_held_kept_pins *
pins_of(const struct seep_report *report)
{
    const struct seep_held_kept_pins *pins = report->pins;

    return seep_words_pins_are_wanted(report) && pins != NULL &&
                   pins->pin_count > 0 &&
                   2 * pins->apart_bytes >= (double)pins->free_bytes
               ? pins
               : NULL;
}

/* As the report names it now, which may be by function, or redacted. */
static char *where_of(const struct seep_report *report,
                      const struct seep_held_pin_site *pin_site)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (strcmp(site->id, pin_site->site_id) == 0) {
            return seep_words_where(report, site);
        }
    }
    return *pin_site->where != '\0'
               ? strdup(pin_site->where)
               : seep_words_make("call site %.8s", pin_site->site_id);
}

/* The call site that most of what lies free is beside, as far as known. */
static const struct seep_held_pin_site *
first_of(const struct seep_held_kept_pins *pins)
{
    return pins->site_count > 0 &&
                   pins->sites[0].apart_bytes >=
                       SEEP_WORDS_HELD_CLEAR * pins->known_apart_bytes
               ? &pins->sites[0]
               : NULL;
}

#define ALL_OF_IT 0.995 /* it would be printed as 100 % */

/* In the caller's words: a text of units lasts as long as its block. */
#define SHARE_OF(share) ((share) >= ALL_OF_IT ? "all" : SEEP_UNITS_SHARE(share))

/* Are most of them known, and not as samples of some? */
static bool are_known(const struct seep_held_kept_pins *pins)
{
    return 2 * pins->known_count >= pins->pin_count;
}

char *seep_words_pins_where(const struct seep_report *report)
{
    const struct seep_held_kept_pins *pins = pins_of(report);

    return pins != NULL && first_of(pins) != NULL &&
                   (are_known(pins) || pins->known_count >= SAMPLES_LEAST)
               ? where_of(report, first_of(pins))
               : NULL;
}

/* ", 2 of which were sampled, all of these allocated at serve.py:31 handle" */
static void put_sampled(FILE *file, const struct seep_report *report,
                        const struct seep_held_kept_pins *pins)
{
    const struct seep_held_pin_site *first = first_of(pins);
    char *where = first == NULL ? NULL : where_of(report, first);

    if (pins->known_count == 0) {
        fputs(", none of which was sampled", file);
    } else if (where == NULL) {
        fprintf(file, ", %s of which were sampled, at many call sites",
                SEEP_UNITS_COUNT((double)pins->known_count));
    } else if (pins->known_count == 1) {
        fprintf(file, ", one of which was sampled, allocated at %s", where);
    } else if (first->pin_count == pins->known_count) {
        fprintf(file, ", %s of which were sampled, all allocated at %s",
                SEEP_UNITS_COUNT((double)pins->known_count), where);
    } else {
        fprintf(file, ", %s of which were sampled, %s of these allocated at %s",
                SEEP_UNITS_COUNT((double)pins->known_count),
                SEEP_UNITS_COUNT((double)first->pin_count), where);
    }
    free(where);
}

char *seep_words_pins(const struct seep_report *report)
{
    const struct seep_held_kept_pins *pins = pins_of(report);
    struct seep_words_text words;
    FILE *file = pins == NULL ? NULL : seep_words_open(&words);

    if (file == NULL) {
        return NULL;
    }
    fprintf(file, "between %s free pieces, %s",
            SEEP_UNITS_COUNT((double)pins->piece_count),
            SEEP_UNITS_BYTES((double)pins->piece_bytes));
    if (LONG_AGO_TIMES * pins->asked_s < report->life_s) {
        fprintf(file, " %s into the run", SEEP_UNITS_DURATION(pins->asked_s));
    }
    fprintf(file, ", stand %s blocks of %s in all",
            SEEP_UNITS_COUNT((double)pins->pin_count),
            SEEP_UNITS_BYTES((double)pins->pin_bytes));
    if (!are_known(pins)) {
        put_sampled(file, report, pins);
    } else if (first_of(pins) != NULL) {
        char *where = where_of(report, first_of(pins));

        fprintf(file, "; %s of that memory lies beside blocks allocated at %s",
                SHARE_OF(first_of(pins)->apart_bytes / pins->known_apart_bytes),
                where == NULL ? "?" : where);
        free(where);
    } else {
        fputs("; they were allocated at many call sites", file);
    }
    return seep_words_close(&words);
}

char *seep_words_pins_held(const struct seep_report *report)
{
    const struct seep_held_kept_pins *pins = pins_of(report);
    const struct seep_held_answer *answer = pins == NULL ? NULL : pins->answer;
    char *held;
    char *text = NULL;

    if (answer == NULL || answer->asked_count < SEEP_WORDS_HELD_LEAST ||
        answer->group_count == 0 ||
        seep_words_held_share(answer) < SEEP_WORDS_HELD_CLEAR) {
        return NULL;
    }
    if (answer->groups[0].end == SEEP_HELD_END_LOST) {
        return seep_words_make(
            "no pointer was found to %s of these blocks, or to what holds them: lost, or it is hidden",
            seep_words_held_share(answer) >= ALL_OF_IT
                ? "any"
                : SEEP_UNITS_SHARE(seep_words_held_share(answer)));
    }
    held = seep_words_held(&answer->groups[0]);
    if (held != NULL && answer->groups[0].end == SEEP_HELD_END_HELD) {
        text = seep_words_make("%s of these blocks are held by %s",
                               SHARE_OF(seep_words_held_share(answer)), held);
    }
    free(held);
    return text;
}

char *seep_words_pins_advice(const struct seep_report *report)
{
    const struct seep_held_kept_pins *pins = pins_of(report);
    const struct seep_held_pin_site *first =
        pins == NULL ? NULL : first_of(pins);
    double apart;
    char *where;
    char *text;

    if (pins == NULL || (first == NULL && report->exact)) {
        return NULL;
    }
    if (first == NULL) {
        return strdup(
            "seep run --exact -- COMMAND tells where the blocks between free pieces are allocated");
    }
    apart = pins->apart_bytes / (double)pins->pin_count;
    where = where_of(report, first);
    text = seep_words_make(
        apart >= REST_TIMES * (double)pins->pin_bytes / (double)pins->pin_count
            ? "%s: free what it keeps, or copy it: a small rest of a large buffer (realloc, del, a short read) stays where that was, and keeps %s of free memory apart"
            : "%s: free what it keeps, or allocate it before the load begins: each block keeps %s of free memory apart",
        where == NULL ? "?" : where, SEEP_UNITS_BYTES(apart));
    free(where);
    return text;
}
