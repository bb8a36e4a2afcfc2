/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the rows of a report are made of, for who asks for it: their stacks,
 * each by itself, which flame graphs are made of, and some of their live
 * blocks, where who holds them begins to look.
 *
 * Invariant: the stacks of a row are its members, so that their sums are the
 * row's figures; the blocks of a row are its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/word.h"
#include "format/live.h"
#include "reader/report/build.h"

/* Stacks. */

/* The place among the report's rows of each site of the recording, by its
 * index in SITES, + 1; 0: it is in none of them. */
static size_t *rows_by_entry(const struct seep_report_build *build)
{
    const struct seep_sites *sites = &build->sites;
    uint32_t capacity = build->snapshot.view.site_capacity;
    size_t *row_of = calloc((size_t)capacity + 1, sizeof(*row_of));

    for (size_t i = 0; row_of != NULL && i < build->report.site_count; i++) {
        row_of[build->report.sites[i].entry] = i + 1;
    }
    for (size_t i = 0; row_of != NULL && i < sites->count; i++) {
        const struct seep_site_work *work = &sites->works[i];
        size_t row = row_of[work->index];

        for (size_t j = 0; j < work->member_count; j++) {
            row_of[sites->members[work->member_first + j].index] = row;
        }
    }
    return row_of;
}

#define NAMED_AT_ONCE 1024 /* a second copy of all would be much */

static int name_some(struct seep_report_build *build,
                     const struct seep_site_work *works,
                     struct seep_report_stack *stacks, size_t count)
{
    struct seep_report_site *named = calloc(count + 1, sizeof(*named));
    int error = named == NULL ? -ENOMEM : 0;

    for (size_t i = 0; error == 0 && i < count; i++) {
        named[i] = works[i].site;
        named[i].entry = works[i].index;
        error = seep_report_add_points(build, &works[i], &named[i]);
    }
    if (error == 0) {
        error = seep_report_name_sites(build, works, named, count);
    }
    for (size_t i = 0; error == 0 && i < count; i++) {
        stacks[i].site = named[i];
    }
    free(named);
    return error;
}

/* The rows of @build are some of the stacks, now. */
static int name_stacks(struct seep_report_build *build,
                       struct seep_report_stack *stacks)
{
    const struct seep_sites *sites = &build->sites;
    int error = 0;

    for (size_t i = 0; error == 0 && i < sites->count; i += NAMED_AT_ONCE) {
        size_t left = sites->count - i;

        error = name_some(build, &sites->works[i], &stacks[i],
                          left < NAMED_AT_ONCE ? left : NAMED_AT_ONCE);
    }
    return error;
}

static size_t count_stacks(const struct seep_view *view)
{
    size_t count = 0;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        count += seep_sites_is_used(&view->sites[i], i);
    }
    return count;
}

static int add_stacks(struct seep_report_build *build, const size_t *row_of)
{
    const struct seep_view *view = &build->snapshot.view;
    size_t most = count_stacks(view);
    struct seep_report_stack *stacks =
        seep_store_take(&build->store, most, sizeof(*stacks));
    size_t count = 0;
    int error = stacks == NULL ? -ENOMEM : 0;

    for (uint32_t first = 0;
         error == 0 && first < view->site_capacity && count < most;
         first += SEEP_SITES_AT_ONCE) {
        seep_sites_fini(&build->sites);
        error = seep_sites_sum(&build->snapshot, &build->clock, first,
                               &build->sites);
        error = error == 0 ? name_stacks(build, &stacks[count]) : error;
        count += build->sites.count;
    }
    if (error != 0) {
        return error;
    }
    for (size_t i = 0; i < count; i++) {
        size_t row = row_of[stacks[i].site.entry];

        stacks[i].row = row == 0 ? SIZE_MAX : row - 1;
    }
    build->report.stacks = stacks;
    build->report.stack_count = count;
    return 0;
}

/* What was judged is in the report: its rows make room for the stacks. */
int seep_report_add_stacks(struct seep_report_build *build)
{
    size_t *row_of;
    int error;

    if (build->options == NULL || !build->options->stacks) {
        return 0;
    }
    row_of = rows_by_entry(build);
    if (row_of == NULL) {
        return -ENOMEM;
    }
    error = add_stacks(build, row_of);
    free(row_of);
    return error;
}

/*
 * Live blocks.
 *
 * Invariant: the blocks of a row are spread over their births, and the youngest
 * tenth is left out: a request that is still at work holds what it has just
 * made, whoever keeps it later.
 */

#define NO_ROW UINT32_MAX

/* Whose blocks it is one of. */
enum list {
    IN_MEMORY, /* the process's own, by address */
    IN_NONE,   /* a mapping, with whatever lies in it */
    OF_DRIVER  /* and of its space all that follow */
};

struct born {
    struct seep_report_block block;
    uint32_t row;
    uint32_t birth_tick;
    enum list list;
};

/* Rows that are shown, by their id and space. */
struct shown {
    struct seep_store store;
    struct seep_store_table table;
};

static struct seep_store_entry *entry_of(struct shown *shown,
                                         const struct seep_report_site *site)
{
    char key[sizeof(site->id) + 1] = {0};

    memcpy(key, site->id, sizeof(site->id));
    key[sizeof(site->id)] = (char)site->space;
    return seep_store_find(&shown->store, &shown->table, key, sizeof(key));
}

static void set_rows(const struct seep_report_build *build,
                     const struct seep_site_work *work, uint32_t row,
                     uint32_t *rows)
{
    for (size_t k = 0; k < work->member_count; k++) {
        rows[build->sites.members[work->member_first + k].index] = row;
    }
    if (work->member_count == 0) {
        rows[work->index] = row;
    }
}

/* Which row each site of the recording is in, of those that are shown. */
static uint32_t *rows_by_id(const struct seep_report_build *build)
{
    size_t capacity = (size_t)build->snapshot.view.site_capacity + 1;
    uint32_t *rows = malloc(capacity * sizeof(*rows));
    struct shown shown = {0};

    if (rows == NULL) {
        return NULL;
    }
    memset(rows, 0xff, capacity * sizeof(*rows));
    for (size_t i = 0; i < build->report.site_count; i++) {
        struct seep_store_entry *entry =
            entry_of(&shown, &build->report.sites[i]);

        if (entry != NULL) {
            entry->value = &build->report.sites[i];
        }
    }
    for (size_t i = 0; i < build->sites.count; i++) {
        const struct seep_site_work *work = &build->sites.works[i];
        const struct seep_store_entry *entry = entry_of(&shown, &work->site);

        if (entry != NULL && entry->value != NULL) {
            const struct seep_report_site *site = entry->value;

            set_rows(build, work, (uint32_t)(site - build->report.sites), rows);
        }
    }
    seep_store_table_fini(&shown.table);
    seep_store_fini(&shown.store);
    return rows;
}

static int compare_born(const void *one, const void *other)
{
    const struct born *a = one;
    const struct born *b = other;

    if (a->row != b->row) {
        return a->row < b->row ? -1 : 1;
    }
    if (a->birth_tick != b->birth_tick) {
        return a->birth_tick < b->birth_tick ? -1 : 1;
    }
    return (a->block.address > b->block.address) -
           (a->block.address < b->block.address);
}

static int compare_addresses(const void *one, const void *other)
{
    const struct born *a = *(const struct born *const *)one;
    const struct born *b = *(const struct born *const *)other;

    return (a->block.address > b->block.address) -
           (a->block.address < b->block.address);
}

bool seep_report_is_of_driver(enum seep_space space)
{
    return space == SEEP_SPACE_PINNED || space == SEEP_SPACE_MANAGED ||
           space == SEEP_SPACE_DEVICE || space == SEEP_SPACE_TENSOR;
}

/* What lies in the address space, and is no file's; and what the program has by
 * an address that a driver gave. @return 0: the rest, which has none */
static uint64_t address_of(uint64_t address, enum seep_space space)
{
    if (!SEEP_ADDRESS_IS_KEY(address)) {
        return space == SEEP_SPACE_HEAP || space == SEEP_SPACE_PYTHON ||
                       space == SEEP_SPACE_MAPPED ||
                       space == SEEP_SPACE_PINNED || space == SEEP_SPACE_TENSOR
                   ? address
                   : 0;
    }
    switch ((uint32_t)(address >> SEEP_KEY_KIND_SHIFT)) {
    case SEEP_CUDA_POINTER:
    case SEEP_CUDA_HOST:
    case SEEP_CUDA_TENSOR:
        return seep_report_is_of_driver(space) ? address & SEEP_KEY_VALUE_MASK
                                               : 0;
    default:
        return 0;
    }
}

static enum list list_of(uint64_t address, enum seep_space space)
{
    return SEEP_ADDRESS_IS_KEY(address) || space == SEEP_SPACE_TENSOR
               ? (enum list)(OF_DRIVER + (int)space)
           : space == SEEP_SPACE_MAPPED || space == SEEP_SPACE_PINNED
               ? IN_NONE
               : IN_MEMORY;
}

static size_t collect(const struct seep_report_build *build,
                      const uint32_t *rows, struct born *born)
{
    const struct seep_view *view = &build->snapshot.view;
    size_t count = 0;

    for (uint32_t i = 0; i < view->live_capacity; i++) {
        struct seep_block block = seep_live_read(&view->live[i]);
        enum seep_space space;
        uint64_t address;

        if (block.address == 0 || block.site >= view->site_capacity ||
            block.size == 0) {
            continue;
        }
        space = (enum seep_space)view->sites[block.site].space;
        address = address_of(block.address, space);
        if (address != 0) {
            born[count++] = (struct born){
                .block = {address, block.size},
                .row = rows[block.site],
                .birth_tick = block.birth_tick,
                .list = list_of(block.address, space),
            };
        }
    }
    return count;
}

/* Of @count, from the oldest on, as many as are wanted. */
static int take_row(struct seep_report_build *build,
                    struct seep_report_site *site, const struct born *born,
                    size_t count)
{
    size_t old = count - count / 10;
    size_t wanted = build->options->block_limit;
    struct seep_report_block *blocks;

    wanted = old < wanted ? old : wanted;
    blocks = seep_store_take(&build->store, wanted + 1, sizeof(*blocks));
    if (blocks == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < wanted; i++) {
        blocks[i] = born[wanted > 1 ? i * (old - 1) / (wanted - 1) : 0].block;
    }
    site->blocks = blocks;
    site->block_count = wanted;
    site->block_total = count;
    return 0;
}

/* Those of @list, by address. @param ret_rows  of each; may be NULL */
static int take_list(struct seep_report_build *build, const struct born *born,
                     size_t count, enum list list,
                     struct seep_report_blocks *ret_blocks,
                     const uint32_t **ret_rows)
{
    const struct born **some = malloc((count + 1) * sizeof(*some));
    struct seep_report_block *items;
    uint32_t *rows;
    size_t used = 0;

    for (size_t i = 0; some != NULL && i < count; i++) {
        if (born[i].list == list) {
            some[used++] = &born[i];
        }
    }
    items = seep_store_take(&build->store, used + 1, sizeof(*items));
    rows = seep_store_take(&build->store, ret_rows == NULL ? 1 : used + 1,
                           sizeof(*rows));
    if (some == NULL || items == NULL || rows == NULL) {
        free(some);
        return -ENOMEM;
    }
    qsort(some, used, sizeof(*some), compare_addresses);
    for (size_t i = 0; i < used; i++) {
        items[i] = some[i]->block;
        if (ret_rows != NULL) {
            rows[i] = some[i]->row;
        }
    }
    free(some);
    *ret_blocks = (struct seep_report_blocks){items, used};
    if (ret_rows != NULL) {
        *ret_rows = rows;
    }
    return 0;
}

static int take_known(struct seep_report_build *build, const struct born *born,
                      size_t count)
{
    struct seep_report *report = &build->report;
    int error = take_list(build, born, count, IN_MEMORY, &report->known_blocks,
                          &report->known_rows);

    for (int space = 0; error == 0 && space < SEEP_SPACE_COUNT; space++) {
        if (seep_report_is_of_driver((enum seep_space)space)) {
            error =
                take_list(build, born, count, (enum list)(OF_DRIVER + space),
                          &report->driver_blocks[space], NULL);
        }
    }
    return error;
}

int seep_report_add_blocks(struct seep_report_build *build)
{
    struct seep_report_site *sites =
        (struct seep_report_site *)(uintptr_t)build->report.sites;
    uint32_t *rows;
    struct born *born;
    size_t count = 0;
    int error = 0;

    if (build->options == NULL || build->options->block_limit == 0) {
        return 0;
    }
    rows = rows_by_id(build);
    born = malloc(((size_t)build->snapshot.view.live_capacity + 1) *
                  sizeof(*born));
    if (rows == NULL || born == NULL) {
        error = -ENOMEM;
    } else {
        count = collect(build, rows, born);
        error = take_known(build, born, count);
        qsort(born, count, sizeof(*born), compare_born);
    }
    for (size_t i = 0; error == 0 && i < count;) {
        size_t end = i;

        while (end < count && born[end].row == born[i].row) {
            end++;
        }
        if (born[i].row != NO_ROW) {
            error = take_row(build, &sites[born[i].row], &born[i], end - i);
        }
        i = end;
    }
    free(rows);
    free(born);
    return error;
}
