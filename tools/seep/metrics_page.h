/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The last figures that were computed, in both formats: what a scrape is
 * served with, however long the next ones take.
 *
 * Threads: one puts, any number take.
 */
#ifndef SEEP_TOOL_METRICS_PAGE_H
#define SEEP_TOOL_METRICS_PAGE_H

#include "metrics_text.h"

struct seep_metrics_page;

int seep_metrics_page_open(struct seep_metrics_page **ret_page);
void seep_metrics_page_close(struct seep_metrics_page *page);

/** What is in @texts, one a format, is the page's from now on. */
void seep_metrics_page_put(struct seep_metrics_page *page,
                           struct seep_metrics_text texts[2]);

/**
 * A copy of the last text, to be freed.
 *
 * @return -EAGAIN: there is none yet; -ENOMEM
 */
int seep_metrics_page_take(struct seep_metrics_page *page,
                           enum seep_metrics_format format, char **ret_text,
                           size_t *ret_length);

#endif
