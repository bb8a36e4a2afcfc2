/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a test program knows of its own allocations, to compare a report with.
 *
 * A call site is a function that no compiler inlines, clones or leaves by a
 * tail call, so that its name stands in the frames of every block it makes.
 * Invariant: keeping and writing the truth allocates nothing.
 *
 * Units: bytes. Any thread may count. Works in C and C++.
 */
#ifndef SEEP_TEST_TRUTH_H
#define SEEP_TEST_TRUTH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__)
#define SITE_FUNCTION __attribute__((noinline, disable_tail_calls))
#else
#define SITE_FUNCTION \
    __attribute__((noipa, optimize("no-optimize-sibling-calls")))
#endif

struct truth_site {
    const char *name; /* of the function */
    const char *space;
    uint64_t allocated_bytes;
    uint64_t allocated_count;
    uint64_t freed_bytes;
    uint64_t freed_count;
};

/** One block or mapping, and who made it. */
struct truth_block {
    void *address;
    size_t bytes;
    struct truth_site *site;
};

/** @address was made by @site; a NULL address counts nothing. */
struct truth_block truth_made(struct truth_site *site, void *address,
                              size_t bytes);

/** @block is about to be freed. */
void truth_gone(const struct truth_block *block);

/** @bytes of @block are about to go, @count of its pieces with them. */
void truth_part_gone(struct truth_block *block, size_t bytes, int count);

/** Write all @sites as JSON to @path; ends the program if that fails. */
void truth_write(const char *path, struct truth_site *const *sites,
                 size_t count);

/** A small generator of one's own, so that a run can be repeated. */
uint64_t truth_random(uint64_t *state);

#ifdef __cplusplus
}
#endif

#endif
