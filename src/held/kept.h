/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Who held what, kept for after the death of the process: RECORDING.held, as
 * reader/process/beside.h has it, a line a call site.
 *
 * No key of a dict that is data is written, nor taken. The file is hostile
 * input: what is given out is bounded in number and length, and consistent.
 *
 * Units: bytes, seconds since the start of the recording. Errors: 0 or negative
 * errno; ret_* untouched on failure. Ownership: all is the store's. Threads:
 * one at a time.
 */
#ifndef SEEP_HELD_KEPT_H
#define SEEP_HELD_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "held/held.h"
#include "reader/recording/store.h"
#include "seep/recording.h"

/** Call sites that are kept of a recording: the last that were asked about. */
#define SEEP_HELD_KEPT_MOST 64U

struct seep_packed;

/** What came of a question: X(SYMBOL, "name in JSON"). */
#define SEEP_HELD_OUTCOMES(X)                                                \
    X(ANSWERED, "answered")                                                  \
    X(NOT_PERMITTED, "not-permitted") /* its memory may not be read          \
                                       */                                    \
    X(NO_ROOM, "no-room") /* its cgroup was too full to be asked */          \
    X(UNCLEAR, "unclear") /* asked with others, and by itself it may tell */ \
    X(FAILED, "failed")

enum seep_held_outcome {
#define SEEP_HELD_OUTCOME_VALUE(symbol, name) SEEP_HELD_OUTCOME_##symbol,
    SEEP_HELD_OUTCOMES(SEEP_HELD_OUTCOME_VALUE)
#undef SEEP_HELD_OUTCOME_VALUE
        SEEP_HELD_OUTCOME_COUNT
};

/** What is known of a call site. */
struct seep_held_kept {
    const char *site_id;
    uint32_t stack;      /* of it the one that held most, as the recording has
                            it; 0: not known */
    double asked_s;      /* since the start of the recording; < 0: just now */
    uint64_t live_bytes; /* of the site, then */
    enum seep_held_outcome outcome;
    const struct seep_held_answer *answer; /* NULL: there is none */
};

#define SEEP_HELD_PIN_SITES_MOST 8U

/** A call site of blocks that keep free memory apart. */
struct seep_held_pin_site {
    const char *site_id;
    const char *where;  /* "": not known here */
    uint64_t pin_count; /* of its blocks that are known, */
    double apart_bytes; /* and what lies free beside them */
};

/** What keeps free memory of glibc's malloc apart: see held/pins.h. */
struct seep_held_kept_pins {
    double asked_s;      /* since the start of the recording */
    uint64_t free_bytes; /* of the allocator, then */
    uint64_t piece_count;
    uint64_t piece_bytes;
    uint64_t pin_count;
    uint64_t pin_bytes;
    double apart_bytes;
    uint64_t known_count;     /* of the pins, that were recorded, */
    double known_apart_bytes; /* and what lies free beside these */
    const struct seep_held_pin_site *sites; /* most of that first */
    size_t site_count;
    /* Who holds those that were not recorded; NULL: it was not asked. */
    const struct seep_held_answer *answer;
};

struct seep_held_book {
    const struct seep_held_kept *entries; /* as they were asked */
    size_t count;
    const struct seep_held_kept_pins *pins; /* NULL: not known */
};

/** Names as JSON has them. */
const char *seep_held_edge_name(enum seep_held_edge edge);
const char *seep_held_kind_name(enum seep_held_kind thing);
const char *seep_held_end_name(enum seep_held_end end);
const char *seep_held_outcome_name(enum seep_held_outcome outcome);

/** Is the name of this step a key of a dict that is data? */
static inline bool seep_held_is_data(const struct seep_held_step *step)
{
    return step->edge == SEEP_HELD_EDGE_KEY &&
           step->kind != SEEP_HELD_KIND_MODULE;
}

/** The entry of @site_id; NULL: there is none. */
const struct seep_held_kept *
seep_held_book_find(const struct seep_held_book *book, const char *site_id);

/** The entry that was asked of one of @stacks; NULL: there is none. */
const struct seep_held_kept *
seep_held_book_find_stack(const struct seep_held_book *book,
                          const uint32_t *stacks, size_t stack_count);

/** Put @kept in the place of what is known of that site, or behind all. What it
 * points to must live as long as @store. */
int seep_held_book_put(struct seep_held_book *book,
                       const struct seep_held_kept *kept,
                       struct seep_store *store);

/** The file of the recording, or of the pack that it is in. -ENOENT: there is
 * none, or it is another recording's. */
int seep_held_book_read(const char *recording_path, struct seep_store *store,
                        struct seep_held_book *ret_book);
int seep_held_book_read_of(const char *recording_path,
                           const struct seep_packed *packed,
                           struct seep_store *store,
                           struct seep_held_book *ret_book);
int seep_held_book_parse(const char *bytes, size_t length,
                         const char *recording_path, struct seep_store *store,
                         struct seep_held_book *ret_book);

int seep_held_book_write(const char *recording_path,
                         const struct seep_held_book *book);
int seep_held_book_print(FILE *file, const char *recording_path,
                         const struct seep_held_book *book);

#endif
