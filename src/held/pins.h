/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What keeps free memory apart in the heaps of glibc: the blocks in use that
 * stand between free pieces, where the pieces are larger than they are. A block
 * of 24 bytes that stays is enough for a piece of 64 KiB to be of no use to who
 * wants 64 KiB.
 *
 * Everything that is read is hostile, as in held/held.h; the process is not
 * stopped, so that only what stands there twice is told.
 *
 * Units: bytes, seconds. Errors: 0 or negative errno; ret_* untouched.
 */
#ifndef SEEP_HELD_PINS_H
#define SEEP_HELD_PINS_H

#include <stddef.h>
#include <stdint.h>

#include "held/held.h"
#include "held/memory.h"

/** Smaller pieces do not count: what comes next fits into them. */
#define SEEP_HELD_PIECE_BYTES 1024U
/** More blocks are counted, and not kept. */
#define SEEP_HELD_PINS_MOST 262144U

struct seep_held_pin {
    uint64_t address;
    uint64_t bytes;
    double apart_bytes; /* its share of the free bytes on both sides */
};

struct seep_held_pins {
    uint64_t piece_count;
    uint64_t piece_bytes;
    uint64_t pin_count; /* blocks between pieces, */
    uint64_t pin_bytes;
    double apart_bytes;          /* and what lies free beside them */
    struct seep_held_pin *items; /* by address; at most PINS_MOST */
    size_t count;
    bool was_late; /* not all of the heap was seen */
    double cpu_s;
};

/** All of @blocks, which were found. Start from an all-zero struct. @return 0
 * or -ENOMEM */
int seep_held_pins_walk(const struct seep_held_blocks *blocks,
                        struct seep_held_pins *ret_pins);

/**
 * Those of the process, or core, of @question, of which only who is asked and
 * the limit of time count: what stands there twice, a moment apart.
 *
 * @return as seep_held_ask()
 */
int seep_held_pins_find(const struct seep_held_question *question,
                        struct seep_held_pins *ret_pins);

void seep_held_pins_fini(struct seep_held_pins *pins);

/** Which of @blocks still stand there? For .still_live of a question; @context
 * is another. */
void seep_held_pins_still_live(void *context,
                               const struct seep_held_block *blocks,
                               size_t count, bool *ret_live);

#endif
