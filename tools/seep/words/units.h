/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Numbers for people, the one place where a byte count becomes "562 MiB"; and
 * rates and times back. Sizes are read by base/text.h.
 *
 * Threads: any; nothing is kept. Formatters fill the caller's buffer and
 * return it. Non-finite numbers come out as "?".
 */
#ifndef SEEP_TOOL_WORDS_UNITS_H
#define SEEP_TOOL_WORDS_UNITS_H

#include <stdint.h>

#include "reader/statistics/growth.h"

#define SEEP_UNITS_TEXT_BYTES 64

/** The same with room of their own, which lives as long as the block. */
#define SEEP_UNITS_TEXT ((char[SEEP_UNITS_TEXT_BYTES]){""})
#define SEEP_UNITS_BYTES(bytes) seep_units_bytes(bytes, SEEP_UNITS_TEXT)
#define SEEP_UNITS_CHANGE(bytes) seep_units_change(bytes, SEEP_UNITS_TEXT)
#define SEEP_UNITS_RATE(rate) seep_units_rate(rate, SEEP_UNITS_TEXT)
#define SEEP_UNITS_INTERVAL(interval, scale) \
    seep_units_interval(interval, scale, SEEP_UNITS_TEXT)
#define SEEP_UNITS_BOUNDS(interval, scale) \
    seep_units_bounds(interval, scale, SEEP_UNITS_TEXT)
#define SEEP_UNITS_DURATION(seconds) \
    seep_units_duration(seconds, SEEP_UNITS_TEXT)
#define SEEP_UNITS_COUNT(count) seep_units_count(count, SEEP_UNITS_TEXT)
#define SEEP_UNITS_SHARE(share) seep_units_share(share, SEEP_UNITS_TEXT)

/** "874 B", "14 MiB", "1.4 GiB". */
const char *seep_units_bytes(double bytes, char text[SEEP_UNITS_TEXT_BYTES]);

/** The same with its sign: "+41.3 MiB", "-12 B", "0 B". */
const char *seep_units_change(double bytes, char text[SEEP_UNITS_TEXT_BYTES]);

/** Bytes a second as "+41.3 MiB/min". */
const char *seep_units_rate(double bytes_per_s,
                            char text[SEEP_UNITS_TEXT_BYTES]);

/** "+40.1 ±1.1 MiB", each number in the unit of the larger; of @scale x it. */
const char *seep_units_interval(const struct seep_interval *interval,
                                double scale, char text[SEEP_UNITS_TEXT_BYTES]);

/** "40.1 to 42.5", in the unit that the estimate prints in. */
const char *seep_units_bounds(const struct seep_interval *interval,
                              double scale, char text[SEEP_UNITS_TEXT_BYTES]);

/** "480 ms", "12.4 s", "14 min 02 s", "2 h 51 min", "3 d 04 h". */
const char *seep_units_duration(double seconds,
                                char text[SEEP_UNITS_TEXT_BYTES]);

/** "48,112". */
const char *seep_units_count(double count, char text[SEEP_UNITS_TEXT_BYTES]);

/** A share of 1 as "97 %", "0.3 %", "< 0.1 %". */
const char *seep_units_share(double share, char text[SEEP_UNITS_TEXT_BYTES]);

/** "1MiB/min": a size of base/text.h by s, min, h or d. @return as there */
int seep_units_parse_rate(const char *text, double *ret_bytes_per_s);

/** "90", "90s", "800ms", "5m", "5 min", "1.5h", "2d", "1h30m".
 * @return 0 or -EINVAL */
int seep_units_parse_duration(const char *text, double *ret_seconds);

#endif
