/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which mappings are the pools of allocators inside of libraries.
 *
 * Such an allocator is known by its name, or by what it does: one place in a
 * library maps whole MiB for several callers. Of a program's own code that is
 * no reason: who maps what there is known by its stack.
 *
 * Invariant: nothing is asked of the file system but names, so that what a row
 * is does not depend on which symbols could be had, but for allocators that
 * only symbols name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "reader/report/build.h"
#include "reader/symbols/where.h"

#define RUN_MAX 12U    /* frames from an allocator's mmap to its caller */
#define FRAMES_MAX 64U /* the same, with those inlined */
#define NAME_BYTES 256U

/* Several callers of one place, and several mappings of whole MiB. */
#define CALLERS_MIN 2
#define MAPS_MIN 4.0
#define UNIT_BYTES (UINT64_C(1) << 20)

/* A site that maps memory, by the place that asks the kernel for it. */
struct asker {
    uint64_t word;
    uint32_t site;
};

struct pools {
    struct seep_report_build *build;
    const char **names; /* by index in SITES */
    struct asker *askers;
    size_t asker_count;
};

/* Path of the object of a word of machine code; "" of none. */
static const char *module_of(const struct pools *pools, uint64_t word)
{
    return (word & SEEP_FRAME_IS_CODE) != 0
               ? ""
               : seep_names_module(pools->build->names, word);
}

/* Names are dear: they are asked for of the innermost object's frames only,
 * libc's left out. */
static size_t name_run(const struct pools *pools,
                       const struct seep_names_stack *stack,
                       const struct seep_report_frame *frames[FRAMES_MAX])
{
    const char *module = "";
    size_t count = 0;
    uint32_t first = 0;

    while (first < stack->count &&
           *(module = module_of(pools, stack->words[first])) != '\0' &&
           seep_where_is_plumbing(module)) {
        first++;
    }
    for (uint32_t i = first;
         *module != '\0' && i < stack->count && i - first < RUN_MAX &&
         count < FRAMES_MAX &&
         strcmp(module_of(pools, stack->words[i]), module) == 0;
         i++) {
        count += seep_names_frames(pools->build, stack->words[i],
                                   &frames[count], FRAMES_MAX - count);
    }
    return count;
}

/* May an allocator that is not known be there? */
static bool may_be_pool(const struct pools *pools, uint64_t word)
{
    const char *module = module_of(pools, word);

    return module[0] != '\0' && !seep_where_is_plumbing(module) &&
           strcmp(module, pools->build->report.executable) != 0;
}

static bool is_in_units(const struct seep_rec_site *site)
{
    uint64_t bytes = seep_word_load(&site->allocated_bytes);

    return bytes > 0 && bytes % UNIT_BYTES == 0;
}

static int name_pool(struct pools *pools, uint32_t site, const char *library,
                     const char *allocator)
{
    size_t length = strlen(library);
    char text[NAME_BYTES];

    snprintf(text, sizeof(text), "%s'%s own %s", library,
             length > 0 && library[length - 1] == 's' ? "" : "s", allocator);
    pools->names[site] = seep_store_text(&pools->build->store, text);
    return pools->names[site] != NULL ? 0 : -ENOMEM;
}

/* By its name, or keep it for later. */
static int look_at(struct pools *pools, uint32_t site)
{
    const struct seep_report_frame *frames[FRAMES_MAX];
    struct seep_where_pool pool;
    struct seep_names_stack stack;

    seep_names_stack(pools->build, site, &stack);
    if (stack.count == 0) {
        return 0;
    }
    if (seep_where_is_pool(frames, name_run(pools, &stack, frames), &pool)) {
        return name_pool(pools, site, pool.library, pool.allocator);
    }
    if (may_be_pool(pools, stack.words[0])) {
        pools->askers[pools->asker_count++] =
            (struct asker){stack.words[0], site};
    }
    return 0;
}

static int compare_askers(const void *a, const void *b)
{
    const struct asker *left = a;
    const struct asker *right = b;

    return left->word != right->word
               ? (left->word > right->word) - (left->word < right->word)
               : (left->site > right->site) - (left->site < right->site);
}

/* @askers of one place. @return are they the callers of an allocator? */
static bool is_pool(const struct seep_view *view, const struct asker *askers,
                    size_t count)
{
    double maps = 0;

    for (size_t i = 0; i < count; i++) {
        struct seep_rec_site *site = &view->sites[askers[i].site];

        if (!is_in_units(site)) {
            return false;
        }
        maps += (double)seep_word_load(&site->allocated_count_q16) /
                (double)SEEP_COUNT_ONE;
    }
    return count >= CALLERS_MIN && maps >= MAPS_MIN;
}

static int look_at_askers(struct pools *pools)
{
    const struct asker *askers = pools->askers;
    size_t end;
    int error = 0;

    qsort(pools->askers, pools->asker_count, sizeof(*askers), compare_askers);
    for (size_t i = 0; error == 0 && i < pools->asker_count; i = end) {
        const char *module =
            seep_names_module(pools->build->names, askers[i].word);

        end = i;
        while (end < pools->asker_count && askers[end].word == askers[i].word) {
            end++;
        }
        if (is_pool(&pools->build->snapshot.view, &askers[i], end - i)) {
            for (size_t j = i; error == 0 && j < end; j++) {
                error = name_pool(pools, askers[j].site,
                                  seep_text_base_name(module), "allocator");
            }
        }
    }
    return error;
}

int seep_report_find_pools(struct seep_report_build *build,
                           const char ***ret_names)
{
    const struct seep_view *view = &build->snapshot.view;
    size_t capacity = (size_t)view->site_capacity + 1;
    struct pools pools = {
        .build = build,
        .names = calloc(capacity, sizeof(*pools.names)),
        .askers = calloc(capacity, sizeof(*pools.askers)),
    };
    int error = pools.names == NULL || pools.askers == NULL ? -ENOMEM : 0;

    for (uint32_t i = 1; error == 0 && i < view->site_capacity; i++) {
        if (seep_sites_is_used(&view->sites[i], i) &&
            view->sites[i].space == SEEP_SPACE_MAPPED) {
            error = look_at(&pools, i);
        }
    }
    error = error == 0 ? look_at_askers(&pools) : error;
    free(pools.askers);
    if (error != 0) {
        free(pools.names);
        return error;
    }
    *ret_names = pools.names;
    return 0;
}
