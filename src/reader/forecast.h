/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * When is memory exhausted if all goes on as it went?
 *
 * Sizes are bytes, times seconds. Pure; any thread. No answer is NaN; the only
 * infinity is the upper end of an interval: it may be never.
 */
#ifndef SEEP_READER_FORECAST_H
#define SEEP_READER_FORECAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/report.h"

/** Something that can be full; used may be over the limit already. */
struct seep_forecast_limit {
    const char *what;     /* "cgroup", "ram", "device" */
    uint64_t limit_bytes; /* 0: none */
    uint64_t used_bytes;
    struct seep_interval bytes_per_s; /* that it fills by, now */
};

enum seep_forecast_basis {
    SEEP_FORECAST_UNTOLD,   /* nothing is known of the growth */
    SEEP_FORECAST_GROWS,    /* by .bytes_per_s, if above 0 */
    SEEP_FORECAST_SUSPECTED /* the same, should the suspect be a leak */
};

/** Of the limit that is reached first; of those never reached, the nearest. */
void seep_forecast_make(const struct seep_forecast_limit *limits, size_t count,
                        enum seep_forecast_basis basis,
                        struct seep_report_forecast *ret_forecast);

/** Is @a reached before @b? What is known comes before what is not. */
bool seep_forecast_is_nearer(const struct seep_report_forecast *a,
                             const struct seep_report_forecast *b);

#endif
