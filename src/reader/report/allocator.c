/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The allocator of the process: which it is, which mappings are its, and how
 * much of them it can need for live blocks or have free.
 *
 * Invariant: what is said of it errs towards the allocator: what is not its is
 * memory that nobody explains, and never the other way round.
 */
#include <math.h>
#include <string.h>

#include "reader/judge/balance.h"
#include "reader/report/build.h"

enum seep_allocator_kind seep_report_allocator_of(const char *path)
{
    static const struct {
        const char *part;
        enum seep_allocator_kind kind;
    } kinds[] = {
        {"jemalloc", SEEP_ALLOCATOR_JEMALLOC},
        {"tcmalloc", SEEP_ALLOCATOR_TCMALLOC},
        {"mimalloc", SEEP_ALLOCATOR_MIMALLOC},
        {"/libc.so", SEEP_ALLOCATOR_GLIBC},
        {"/libc-2", SEEP_ALLOCATOR_GLIBC},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (strstr(path, kinds[i].part) != NULL) {
            return kinds[i].kind;
        }
    }
    return SEEP_ALLOCATOR_UNKNOWN;
}

/* glibc's arenas but the first lie in heaps so aligned (HEAP_MAX_SIZE). */
#define GLIBC_HEAP_BYTES (UINT64_C(64) << 20)

static bool is_aligned(const struct seep_external_mapping *mapping)
{
    return mapping->name[0] == '\0' && mapping->start % GLIBC_HEAP_BYTES == 0;
}

/* A heap never begins anywhere else: a mapping that grows downwards passes
 * such an address, and an earlier or later sample shows it inside of it. Two
 * heaps side by side are one mapping, which is aligned itself. */
static bool is_passed(const struct seep_external_samples *samples,
                      uint64_t address)
{
    for (size_t i = 0; i < samples->count; i++) {
        for (size_t j = 0; j < samples->samples[i].mapping_count; j++) {
            const struct seep_external_mapping *at =
                &samples->samples[i].mappings[j];

            if (at->start < address && address < at->end && !is_aligned(at)) {
                return true;
            }
        }
    }
    return false;
}

bool seep_report_is_allocator(const struct seep_external_mapping *mapping,
                              const struct seep_external_samples *samples,
                              bool glibc)
{
    if (strcmp(mapping->name, "[heap]") == 0) {
        return true;
    }
    return glibc && is_aligned(mapping) && !is_passed(samples, mapping->start);
}

/* A chunk has a header and a multiple of 16; size classes are a fifth apart,
 * and large blocks are whole pages. */
#define HEADER_BYTES 32.0
#define CLASS_SHARE 0.3
/* Of what was freed a sample tells within so much, and blocks of before the
 * first sample are freed as well. */
#define FREED_TIMES 2.0

/* Of Python's objects the small ones lie in mappings: the bounds are wider for
 * that. */
static bool is_malloced(const struct seep_report_site *site)
{
    return site->space == SEEP_SPACE_HEAP || site->space == SEEP_SPACE_PYTHON;
}

void seep_report_bound_heap(const struct seep_report_build *build,
                            struct seep_balance_input *input)
{
    const struct seep_sites *sites = &build->sites;
    double freed_bytes = 0;
    double live_bytes = 0;
    double count = 0;

    for (size_t i = 0; i < sites->count; i++) {
        const struct seep_report_site *site = &sites->works[i].site;

        if (is_malloced(site)) {
            freed_bytes += (double)site->freed_bytes;
            live_bytes += (double)site->live_bytes;
            count += site->live_count;
        }
    }
    input->headers_share =
        CLASS_SHARE + (live_bytes > 0 ? HEADER_BYTES * count / live_bytes : 0);
    /* Of before a fork, and of what was lost, nobody knows what was freed. */
    input->free_most_bytes =
        build->report.is_fork || seep_report_has_lost(&build->snapshot)
            ? INFINITY
            : FREED_TIMES * freed_bytes;
}
