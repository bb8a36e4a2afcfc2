/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * How large each section of a recording may become, from the bytes that all
 * may have; and whether some bytes are a recording.
 */
#ifndef SEEP_FORMAT_LAYOUT_H
#define SEEP_FORMAT_LAYOUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "seep/recording.h"

#define SEEP_LAYOUT_DEFAULT_BYTES (UINT64_C(16) << 20)
/** For a mean interval of SEEP_LAYOUT_DENSE_LOG2 and less: many more stacks. */
#define SEEP_LAYOUT_DENSE_BYTES (UINT64_C(64) << 20)

#define SEEP_LAYOUT_EXACT_BYTES (UINT64_C(256) << 20)
#define SEEP_LAYOUT_LEAST_BYTES (UINT64_C(2) << 20)
#define SEEP_LAYOUT_MOST_BYTES (UINT64_C(1) << 36)
/** A mean interval that nobody asked for: it begins dense. */
#define SEEP_LAYOUT_PACED UINT_MAX

extern const uint32_t seep_layout_entry_bytes[SEEP_SECTION_COUNT]
    __attribute__((visibility("hidden")));

/** The size of a recording where none is given: what it may grow to.
 * @param sample_log2  of the mean interval, or SEEP_LAYOUT_PACED */
uint64_t seep_layout_default_bytes(unsigned sample_log2);

/**
 * Divide @size_bytes among the sections. Fills the layout fields of
 * @ret_header (magic to sections, file_bytes, shard and slot counts) and
 * leaves the rest.
 *
 * @param inert  only header, counters and strings: a recording that says why
 *               there is none
 * @return 0; -EINVAL if size_bytes is outside the limits above
 */
int seep_layout_make(uint64_t size_bytes, bool exact, bool inert,
                     struct seep_rec_header *ret_header);

/**
 * What nothing can be recorded without lies at the start of the file: header,
 * counters, shards and timeline. @return where that ends
 */
uint64_t seep_layout_start_bytes(const struct seep_rec_header *header);

/** Hash of the fixed part, as fixed_hash holds it. */
uint64_t seep_layout_fixed_hash(const struct seep_rec_header *header);

/** Write what a new, zeroed file must hold besides the header's fixed part. */
void seep_layout_start(struct seep_rec_header *header);

/*
 * Is this a recording? Pure: bytes in, valid or the reason out.
 *
 * After SEEP_CHECK_VALID no pointer of a seep_view of these bytes leaves them.
 * It says nothing of the changing part: indices and counts found there are
 * checked where they are used.
 */

/** X(SYMBOL, "reason", "remedy") */
#define SEEP_RECORDING_CHECKS(X)                                            \
    X(VALID, "is a recording", "")                                          \
    X(EMPTY, "is empty",                                                    \
      "give the file that SEEP_OUT names; an empty one was never written")  \
    X(NOT_A_RECORDING, "is not a seep recording",                           \
      "give a .seep file written by `seep run` or SEEP_OUT")                \
    X(BYTE_ORDER, "was written on a machine with the other byte order",     \
      "read it on a machine of the same kind")                              \
    X(NEWER, "has a newer format than this seep reads",                     \
      "read it with the seep that wrote it, or a newer one")                \
    X(OLDER, "has an older format than this seep reads",                    \
      "read it with the seep that wrote it, or record it again")            \
    X(TRUNCATED, "is truncated",                                            \
      "copy it again: a recording has its full size from the start")        \
    X(DAMAGED, "is damaged: its header contradicts itself",                 \
      "copy it again from where it was recorded")                           \
    X(UNFINISHED, "was never finished: the process died while creating it", \
      "nothing was recorded; run the program again")

enum seep_recording_check {
#define SEEP_CHECK_VALUE(symbol, reason, remedy) SEEP_CHECK_##symbol,
    SEEP_RECORDING_CHECKS(SEEP_CHECK_VALUE)
#undef SEEP_CHECK_VALUE
};

/** Check @size bytes at @bytes (aligned to 8), of which all can be read. */
enum seep_recording_check seep_check(const void *bytes, size_t size);

/** Words for @result, and what to do. Static strings. */
const char *seep_check_reason(enum seep_recording_check result);
const char *seep_check_remedy(enum seep_recording_check result);

#endif
