/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The end of a life is not evidence: a process that ended is judged to the
 * moment before its memory collapsed.
 *
 * Tidy programs free what they leaked: locals of main(), static destructors,
 * pools that are torn down. So if at the end of the recording live memory has
 * fallen to where it had not been for long, the private copy is made what it
 * was at the latest edge before (struct seep_rec_era): everything that reads it
 * then judges a process that was killed there.
 *
 * Invariant: a copy is rewound as a whole or not at all; afterwards what holds
 * for every recording holds for it, nothing in it is later than the moment, and
 * a site is what it was then, but that a block that died since stands in the
 * live table with the mean size of those that died with it.
 *
 * Errors: 0 or -ENOMEM. Threads: one at a time.
 */
#ifndef SEEP_READER_RECORDING_REWIND_H
#define SEEP_READER_RECORDING_REWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "format/view.h"
#include "reader/recording/snapshot.h"
#include "reader/report/report.h"

/**
 * Find the collapse at the end of @snapshot, which nobody writes any more, and
 * undo it.
 *
 * @param end_tick      of the run
 * @param ret_end       zeroed if nothing was found
 * @param ret_end_tick  to judge to: @end_tick if nothing was undone
 * @return 0 or -ENOMEM
 */
int seep_rewind(struct seep_snapshot *snapshot, uint64_t end_tick,
                struct seep_report_end *ret_end, uint64_t *ret_end_tick);

/** Was the live block at @address put back? Nobody knows then where it was. */
bool seep_rewind_is_put_back(uint64_t address);

/* What rewind.c and rewind_sites.c share. */

/** Of a site, what of it is live at the end and was born since the moment. */
struct seep_rewind_young {
    uint64_t bytes;
    uint64_t count_q16;
    uint64_t beside_bytes; /* of it, in the bucket that the moment is in */
};

/** One rewind of one copy. */
struct seep_rewind {
    struct seep_snapshot *snapshot;
    uint32_t moment;                 /* tick: what is before it stays */
    struct seep_rewind_young *young; /* by site */
    uint32_t free_slot;              /* entries of LIVE before it are used */
    uint64_t ghost_address;          /* of the next block that is put back */
};

/** The series of the site at @index; NULL: it has none. */
struct seep_rec_series *seep_rewind_series_of(const struct seep_view *view,
                                              uint32_t index);

/** Blocks that died since: born in [from, to), they stand for @bytes and
 * @blocks. */
void seep_rewind_put_back(struct seep_rewind *rewind, uint32_t site,
                          uint32_t from_tick, uint32_t to_tick, double bytes,
                          double blocks);

/** Totals and series of every site. */
void seep_rewind_sites(struct seep_rewind *rewind);

#endif
