/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Times of a run as they are named on the command line, and the options that
 * choose a part of it by them.
 */
#ifndef SEEP_TOOL_READ_WHEN_H
#define SEEP_TOOL_READ_WHEN_H

#include "options/option.h"
#include "reader/report/span.h"

/** What is to be named, for an error. */
#define SEEP_WHEN_EXPECTED \
    "a time such as 90s, 1h30m or -5m (before the end), peak, end or a mark"

/**
 * "90s", "1h30m"; "-5m", before the end; "peak", "end"; "mark:NAME", or the
 * name of a mark where it is none of these.
 *
 * @param ret_time  points into @text
 * @return 0; -EINVAL of what is no time and can be no mark
 */
int seep_when_parse(const char *text, struct seep_span_time *ret_time);

/** --since, --until, --at: for struct seep_span_wish. */
extern const struct seep_option seep_when_options[];

/** struct seep_span_time */
seep_option_taker seep_when_take;

/** @return 0; SEEP_EXIT_USAGE after saying that they go not together */
int seep_when_check(const char *verb, const struct seep_span_wish *wish);

#endif
