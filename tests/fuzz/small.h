/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Recordings small enough to be read a thousand times a second, and damage to
 * them that knows the layout.
 *
 * An input is not a recording but damage to one of the seeds, so that a few
 * bytes reach far: a byte that says which view of it is wanted, one that says
 * which seed and what of the layout is put right again, then patches.
 *
 * Invariant: what an input does to a seed is undone before the next.
 */
#ifndef SEEP_TESTS_FUZZ_SMALL_H
#define SEEP_TESTS_FUZZ_SMALL_H

#include <stddef.h>
#include <stdint.h>

#include "recording_builder.h"

#define SMALL_SEEDS_MAX 16
#define SMALL_PATCHES_MAX 64

/** The second byte. */
#define SMALL_SEED_MASK 15U
#define SMALL_KEEPS_LAYOUT 0x40U /* else the layout is whole again */
#define SMALL_KEEPS_HASH 0x80U   /* else the hash is that of the fixed part */

/** Section SEEP_SECTION_COUNT is the header. */
struct small_patch {
    uint8_t section;
    uint8_t how; /* log2 of the bytes, | SMALL_ADDS */
    uint8_t entry[2];
    uint8_t half_word[2]; /* where in the entry, in steps of 2 bytes */
    uint8_t value[8];
};

#define SMALL_ADDS 4U

/** A damaged seed; it stays until the next one is. */
struct small {
    const struct seep_view *view;
    void *bytes;
    size_t size_bytes;
    int fd; /* the same, as a file in memory */
    size_t seed;
    uint8_t first; /* the first byte of the input */
};

/** Seed 0 is made here; others lie in the folder $SEEP_FUZZ_SEEDS, or in that
 * of the source. @return how many there are */
size_t small_seeds(void);

/** Seed @seed as it is: what is damaged does not change it. */
const struct seep_view *small_honest(size_t seed);

/** Is the input long enough for damage? */
bool small_damage(const uint8_t *data, size_t size, struct small *ret_small);

/** The recording at @path shrunk into @to, which is made. @return false: it is
 * none, or of another format */
bool small_shrink(const char *path, struct recording_builder *to);

/** Mutate patches as patches, with values that mean something where they go. */
size_t small_mutate(uint8_t *data, size_t size, size_t most, unsigned seed);

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

#endif
