/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * How large each section of a recording may become, from the bytes that all
 * may have.
 */
#ifndef SEEP_FORMAT_LAYOUT_H
#define SEEP_FORMAT_LAYOUT_H

#include <limits.h>
#include <stdbool.h>
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

#endif
