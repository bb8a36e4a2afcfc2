/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Services that leak, or only look as if they did: what main and kinds share.
 *
 * A run is so many ticks of 5 ms, each of so many requests. What a run does
 * depends on its kind, its seconds and its seed only, never on the clock: a
 * tick that is late is made up for.
 *
 * Units: bytes. One thread, but where a kind says so.
 */
#ifndef SEEP_TEST_VERDICT_H
#define SEEP_TEST_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "truth.h"

#define TICKS_PER_SECOND 200
#define REQUESTS_PER_TICK 50

struct verdict_run {
    unsigned tick;
    unsigned tick_count;
    uint64_t random;
    uint64_t requests;
    uint64_t leaked_bytes;
    double leaked_from; /* share of the run at which the leak began */
};

/** A kind: what it does beside serving; each function may be NULL. */
struct verdict_kind {
    const char *name;
    void (*begin)(struct verdict_run *run);
    unsigned (*load)(const struct verdict_run *run); /* requests in a tick */
    void (*request)(struct verdict_run *run);
    void (*tick)(struct verdict_run *run);
    void (*end)(struct verdict_run *run);
};

/** Of the process's memory rather than of a site's; NULL-named at the end. */
extern const struct verdict_kind verdict_page_kinds[];
/** Of what is mapped of files. */
extern const struct verdict_kind verdict_file_kinds[];
extern const struct verdict_kind verdict_leak_kinds[];
extern const struct verdict_kind verdict_clean_kinds[];

/** Write to every page, so that it is resident; NULL ends the program. */
void *verdict_touch(void *address, size_t bytes);

/** Has this share of the run gone by? */
bool verdict_past(const struct verdict_run *run, double share);

#endif
