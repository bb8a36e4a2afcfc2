/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The same allocations in every run, so that what differs between two runs'
 * estimates is the sampler alone.
 *
 *     sampled MEBIBYTES OUT.json
 *
 * Invariant: what is live at the end, by call site, depends on the argument
 * only.
 */
#include "truth.h"

#include <stdlib.h>

#define MEBIBYTE ((size_t)1 << 20)

#define SITES(X)    \
    X(site_tiny)    \
    X(site_page)    \
    X(site_mixed)   \
    X(site_large)   \
    X(site_halved)  \
    X(site_regrown) \
    X(site_gone)

#define DEFINE_SITE(function)                                             \
    static struct truth_site truth_of_##function = {#function, "heap", 0, \
                                                    0,         0,      0};
SITES(DEFINE_SITE)

#define HEAP_SITE(function)                                            \
    SITE_FUNCTION static struct truth_block function(size_t bytes)     \
    {                                                                  \
        return truth_made(&truth_of_##function, malloc(bytes), bytes); \
    }

HEAP_SITE(site_tiny)
HEAP_SITE(site_page)
HEAP_SITE(site_mixed)
HEAP_SITE(site_large)
HEAP_SITE(site_halved)
HEAP_SITE(site_gone)

SITE_FUNCTION static struct truth_block site_regrown(struct truth_block old,
                                                     size_t bytes)
{
    truth_gone(&old);
    return truth_made(&truth_of_site_regrown, realloc(old.address, bytes),
                      bytes);
}

static void release(struct truth_block block)
{
    truth_gone(&block);
    free(block.address);
}

static void leak(size_t budget_bytes)
{
    uint64_t random = 88172645463325252ULL;

    for (size_t done = 0; done < budget_bytes / 4; done += 200) {
        (void)site_tiny(200);
    }
    for (size_t done = 0; done < budget_bytes; done += 4000) {
        (void)site_page(4000);
    }
    for (size_t done = 0; done < budget_bytes;) {
        size_t bytes = (size_t)16 << truth_random(&random) % 14;

        bytes += truth_random(&random) % bytes;
        (void)site_mixed(bytes);
        done += bytes;
    }
    for (size_t done = 0; done < 2 * budget_bytes; done += MEBIBYTE) {
        (void)site_large(MEBIBYTE - 16);
    }
}

static void turn_over(size_t budget_bytes)
{
    uint64_t random = 362436069362436069ULL;
    unsigned index = 0;

    for (size_t done = 0; done < 2 * budget_bytes; index++) {
        size_t bytes = 1000 + truth_random(&random) % 3000;
        struct truth_block block = site_halved(bytes);

        if (index % 2 == 0) {
            release(block);
        }
        release(site_gone(bytes));
        done += bytes;
    }
    for (size_t done = 0; done < budget_bytes; done += 6000) {
        (void)site_regrown(site_gone(2000), 6000);
    }
}

int main(int argument_count, char **arguments)
{
    static struct truth_site *sites[16];
    size_t count = 0;

    if (argument_count != 3) {
        return 2;
    }
    leak((size_t)atoi(arguments[1]) * MEBIBYTE);
    turn_over((size_t)atoi(arguments[1]) * MEBIBYTE);
#define LIST_SITE(function) sites[count++] = &truth_of_##function;
    SITES(LIST_SITE)
#undef LIST_SITE
    truth_write(arguments[2], sites, count);
    return 0;
}
