/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The call sites of a report as text: one line each, or whole stacks.
 */
#ifndef SEEP_TOOL_VIEW_SITES_H
#define SEEP_TOOL_VIEW_SITES_H

#include "table.h"
#include "units.h"
#include "view_text.h"

/**
 * Which sites are shown: as many as asked for; of those that do not grow only
 * the first ones, where others do. Go through all of them in order.
 */
struct seep_view_choice {
    size_t left;
    size_t quiet_left;
    size_t segments_left; /* of PyTorch's cache: quiet rows of their own */
};
struct seep_view_choice
seep_view_sites_start(const struct seep_report *report,
                      const struct seep_text_options *options);
bool seep_view_sites_choose(struct seep_view_choice *choice,
                            const struct seep_report_site *site,
                            const struct seep_text_options *options);

/** How loud a class is. */
enum seep_ink seep_view_sites_ink(enum seep_class class);

/** The cell that says what a site is, in its ink. */
void seep_view_sites_class(struct seep_table *table, size_t column,
                           const struct seep_report_site *site);

/** "+40.1 ±1.1 MiB" a minute; "?" was not to be told, "-" is no growth. */
const char *seep_view_sites_growth(const struct seep_report_site *site,
                                   char text[SEEP_UNITS_TEXT_BYTES]);
/** The same a unit of work. */
const char *seep_view_sites_growth_per_unit(const struct seep_report_site *site,
                                            char text[SEEP_UNITS_TEXT_BYTES]);

void seep_view_sites_table(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_text_options *options);

/** "serve.py:31 handle > json.loads > libpython3.11 < main", to be freed; NULL
 * without memory. */
char *seep_view_sites_chain(const struct seep_report *report,
                            const struct seep_report_site *site);

/** How many sites are not among the @shown rows, and why. */
void seep_view_sites_left_out(struct seep_page *page,
                              const struct seep_report *report,
                              const struct seep_text_options *options,
                              size_t shown);

void seep_view_sites_stacks(struct seep_page *page,
                            const struct seep_report *report,
                            const struct seep_text_options *options);

/** Is @site one that the options ask for, apart from their number? A stack is
 * asked for by the id of its line, too. */
bool seep_view_sites_wanted(const struct seep_report_site *site,
                            const char *site_id);

#endif
