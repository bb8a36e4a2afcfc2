/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What one thing holds of several rows: a dict that many call sites fill grows
 * by the sum of them, while each row looks small.
 *
 * Rows are put together where the same thing was found above the blocks of
 * each: of one address, or, where it was asked at several times, by the same
 * words as well, or at one place of one variable. What is not clear, has no
 * root that has a name, or is a namespace (a module, a stack) is nobody's
 * together.
 *
 * Errors: 0 or -ENOMEM. Threads: any. A text is to be freed; NULL without
 * memory.
 */
#ifndef SEEP_TOOL_WORDS_COMMON_H
#define SEEP_TOOL_WORDS_COMMON_H

#include "held/held.h"
#include "reader/report/report.h"

struct seep_words_common {
    struct seep_held_group held_by;        /* as of a row that has it next */
    const struct seep_report_site **sites; /* that grow, at least two */
    size_t site_count;
    size_t leak_count; /* of these, the others are suspects */
    struct seep_interval growth_bytes_per_s;
    uint64_t live_bytes;
    uint64_t asked_live_bytes; /* when it was asked */
};

struct seep_words_commons {
    struct seep_words_common *list; /* by growth, the most first */
    size_t count;
    size_t
        asked_count; /* rows of which it is known, or known not to be clear */
    size_t wanted_count; /* that grow, asked or not */
};

int seep_words_commons_make(const struct seep_report *report,
                            struct seep_words_commons *ret_commons);
void seep_words_commons_fini(struct seep_words_commons *commons);

/** Is it a good deal more than what the row grows by that speaks for the
 * process? Then who reads of that row alone is misled. */
bool seep_words_common_is_news(const struct seep_report *report,
                               const struct seep_words_common *common);

/** "12 of 16 call sites that leak or may leak are held by app.CACHE, a dict of
 * 12,411 items: together they grow by 18.5 MiB/min (17.9 to 19.1)". */
char *seep_words_common_line(const struct seep_report *report,
                             const struct seep_words_commons *commons,
                             const struct seep_words_common *common);

/** The same of the one that is news and has most; NULL: none is. */
char *seep_words_common_news(const struct seep_report *report);

/** What to do about that, where it does not hold @site, which has an advice of
 * its own; NULL: nothing. */
char *seep_words_common_advice(const struct seep_report *report,
                               const struct seep_report_site *site);

#endif
