/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Numbers for people, and back: the one place where a byte count becomes
 * "562 MiB" and "24 MB" becomes a byte count.
 *
 * Threads: any; nothing is kept. Formatters fill the caller's buffer and
 * return it. Non-finite numbers come out as "?".
 */
#ifndef SEEP_TOOL_UNITS_H
#define SEEP_TOOL_UNITS_H

#include <stdint.h>

#include "reader/growth.h"

#define SEEP_UNITS_TEXT_BYTES 64

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

/**
 * "10MiB", "24 MB", "512K", "1.5G", "4096": K, M, G, T and KiB.. are powers of
 * 1024, KB.. are powers of 1000; case does not matter.
 *
 * @return 0; -EINVAL if it is no size; -ERANGE if it does not fit
 */
int seep_units_parse_bytes(const char *text, uint64_t *ret_bytes);

/** "1MiB/min": a size by s, min, h or d. @return as above */
int seep_units_parse_rate(const char *text, double *ret_bytes_per_s);

/** "90", "90s", "800ms", "5m", "5 min", "1.5h", "2d". @return as above */
int seep_units_parse_duration(const char *text, double *ret_seconds);

#endif
