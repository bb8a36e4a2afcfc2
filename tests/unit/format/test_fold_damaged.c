/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fold where tables are full, events were lost, or a copy is damaged: what
 * cannot be told is counted or left out, and what is told stays right.
 *
 * What these tests cannot catch: damage of other fields (tests/fuzz).
 */
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "format/account.h"
#include "format/fold.h"
#include "format/layout.h"
#include "format/live.h"
#include "recording_builder.h"

#define PAGE UINT64_C(4096)
#define BLOCK UINT64_C(0x1000)
#define RANGE UINT64_C(0x100000)
#define LEVEL_MOST 40U

struct fixture {
    struct recording_builder builder;
    uint32_t heap;
    uint32_t mapped;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    uint64_t frame = builder_frame(0, 0x1000);
    uint32_t stack;

    if (f == NULL) {
        return -1;
    }
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, true);
    stack = builder_stack(&f->builder, &frame, 1);
    f->heap = builder_site(&f->builder, stack, SEEP_SPACE_HEAP);
    f->mapped = builder_site(&f->builder, stack, SEEP_SPACE_MAPPED);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    builder_fini(&f->builder);
    free(f);
    return 0;
}

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t counter(const struct fixture *f, enum seep_counter which)
{
    return get(&f->builder.view.counters[which]);
}

static const struct seep_rec_site *site(struct fixture *f, uint32_t which)
{
    builder_fold(&f->builder);
    return &f->builder.view.sites[which];
}

static uint64_t live_bytes(struct fixture *f, uint32_t which)
{
    return seep_account_live_bytes(site(f, which));
}

static void push(struct fixture *f, enum seep_event_kind kind, uint64_t address,
                 uint64_t size)
{
    bool is_range = kind >= SEEP_EVENT_MAP;

    builder_push(&f->builder, kind, address, size,
                 is_range ? f->mapped : f->heap, 20);
}

/* The live table of the block at @address, or of ranges. */
static struct seep_live table_of(struct fixture *f, uint64_t address)
{
    const struct seep_view *view = &f->builder.view;
    struct seep_live live;

    builder_fold(&f->builder);
    assert_true(seep_live_init(&live, view,
                               address < RANGE
                                   ? seep_view_shard_of(view, address)
                                   : view->shard_count - 1));
    return live;
}

static bool is_live(struct fixture *f, uint64_t address)
{
    struct seep_live live = table_of(f, address);

    return seep_live_find(&live, address) != SEEP_LIVE_NONE;
}

/* What is live at @address is of a call site that there is not. */
static void lose_site(struct fixture *f, uint64_t address, uint32_t which)
{
    struct seep_live live = table_of(f, address);

    seep_word_store(&live.entries[seep_live_find(&live, address)].site, which);
}

/* The first one that there is not, and the last. */
static void no_sites(const struct fixture *f, uint32_t ret_sites[2])
{
    ret_sites[0] = f->builder.view.site_capacity;
    ret_sites[1] = UINT32_MAX;
}

/* Where the next site would lie nothing was written: there lie the briefs. */
static void assert_nobody_was_told(const struct fixture *f)
{
    static const unsigned char nothing[sizeof(struct seep_rec_site)];

    assert_memory_equal(&f->builder.view.sites[f->builder.view.site_capacity],
                        nothing, sizeof(nothing));
}

/*
 * Entries of no call site: they go, and nobody is told.
 */

static void a_block_of_no_site_goes_untold(void **state)
{
    struct fixture *f = *state;
    uint32_t none[2];

    no_sites(f, none);
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t address = BLOCK + PAGE * i;
        uint32_t which = builder_site(&f->builder, 0, SEEP_SPACE_HEAP);

        builder_alloc(&f->builder, address, 100, which, 20);
        lose_site(f, address, none[i]);
        push(f, SEEP_EVENT_FREE, address, 0);
        assert_false(is_live(f, address));
        assert_int_equal(live_bytes(f, which), 100);
        assert_nobody_was_told(f);
    }
    assert_int_equal(counter(f, SEEP_COUNT_FOREIGN_FREES), 0);
}

/* The same of an event, alone and with its free. */
static void an_event_of_no_site_goes_untold(void **state)
{
    struct fixture *f = *state;
    uint32_t none[2];

    no_sites(f, none);
    for (uint32_t i = 0; i < 2; i++) {
        builder_alloc(&f->builder, BLOCK, 100, none[i], 20);
        assert_false(is_live(f, BLOCK));
        builder_alloc(&f->builder, BLOCK, 100, none[i], 20);
        push(f, SEEP_EVENT_FREE, BLOCK, 0);
        assert_false(is_live(f, BLOCK));
        builder_push(&f->builder, SEEP_EVENT_MAP, RANGE, PAGE, none[i], 20);
        assert_false(is_live(f, RANGE));
        assert_nobody_was_told(f);
    }
    assert_int_equal(counter(f, SEEP_COUNT_FOREIGN_FREES), 2);
}

static void a_block_of_no_site_does_not_come_back(void **state)
{
    struct fixture *f = *state;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 100);
    lose_site(f, BLOCK, f->builder.view.site_capacity);
    push(f, SEEP_EVENT_REALLOC_OUT, BLOCK, 0);
    push(f, SEEP_EVENT_RESTORE, BLOCK, 0);
    assert_false(is_live(f, BLOCK));
    assert_int_equal(counter(f, SEEP_COUNT_RESTORE_LOST), 0);
    assert_nobody_was_told(f);
}

static void a_mapping_of_no_site_goes_untold(void **state)
{
    struct fixture *f = *state;
    static const uint64_t cuts[][2] = {
        {RANGE, 4 * PAGE}, {RANGE - PAGE, 6 * PAGE}, {RANGE + PAGE, PAGE}};

    push(f, SEEP_EVENT_MAP, RANGE, 4 * PAGE);
    lose_site(f, RANGE, f->builder.view.site_capacity);
    push(f, SEEP_EVENT_UNMAP, RANGE, 4 * PAGE);
    assert_false(is_live(f, RANGE));
    assert_nobody_was_told(f);
    for (uint32_t i = 0; i < 3; i++) {
        push(f, SEEP_EVENT_MAP, RANGE, 4 * PAGE);
        push(f, SEEP_EVENT_MAP, 2 * RANGE, PAGE);
        lose_site(f, RANGE, UINT32_MAX);
        push(f, SEEP_EVENT_UNMAP, cuts[i][0], cuts[i][1]);
        assert_false(is_live(f, RANGE));
        assert_true(is_live(f, 2 * RANGE));
        assert_int_equal(live_bytes(f, f->mapped), (4 * i + 9) * PAGE);
        push(f, SEEP_EVENT_UNMAP, 2 * RANGE, PAGE);
    }
}

static void a_block_of_no_site_is_thinned_away(void **state)
{
    struct fixture *f = *state;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 1 << 20);
    lose_site(f, BLOCK, f->builder.view.site_capacity);
    seep_word_store(&f->builder.view.header->sample_log2, 4);
    assert_false(is_live(f, BLOCK));
    assert_int_equal(live_bytes(f, f->heap), 1 << 20);
    assert_int_equal(counter(f, SEEP_COUNT_THINNED_BLOCKS), 0);
    assert_nobody_was_told(f);
}

/* Of the dead: what is live decides what a site that they held has freed. */
static void a_block_of_no_site_is_nobodys_in_a_copy(void **state)
{
    struct fixture *f = *state;
    uint64_t applied;
    uint64_t torn;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 100);
    push(f, SEEP_EVENT_ALLOC, BLOCK + 16, 30);
    push(f, SEEP_EVENT_ALLOC, BLOCK + 32, 1000);
    lose_site(f, BLOCK, f->builder.view.site_capacity);
    lose_site(f, BLOCK + 32, UINT32_MAX);
    seep_word_store(&f->builder.view.sites[f->heap].lock, 1);
    seep_fold_private_copy(&f->builder.view, true, &applied, &torn);
    assert_int_equal(live_bytes(f, f->heap), 30);
    assert_true(is_live(f, BLOCK));
}

/*
 * Full tables, and counts that are wrong.
 */

static void a_mapping_that_finds_its_place_taken_is_lost(void **state)
{
    struct fixture *f = *state;
    uint64_t came = 0;

    push(f, SEEP_EVENT_MAP, RANGE, 3 * PAGE);
    push(f, SEEP_EVENT_REMAP_OUT, RANGE, 3 * PAGE);
    builder_fold(&f->builder);
    while (counter(f, SEEP_COUNT_RANGES_FULL) == 0) {
        came++;
        push(f, SEEP_EVENT_MAP, RANGE + came * RANGE, PAGE);
        builder_fold(&f->builder);
    }
    push(f, SEEP_EVENT_RESTORE, RANGE, PAGE);
    assert_int_equal(live_bytes(f, f->mapped), (came - 1) * PAGE);
    assert_false(is_live(f, RANGE));
    assert_int_equal(counter(f, SEEP_COUNT_RESTORE_LOST), 1);
    /* It is asked for once. */
    push(f, SEEP_EVENT_UNMAP, 2 * RANGE, PAGE);
    push(f, SEEP_EVENT_RESTORE, RANGE, PAGE);
    assert_false(is_live(f, RANGE));
}

/* The count is damaged: the tail finds no room, and counts as the block. */
static void a_tail_that_finds_no_room_goes_with_its_block(void **state)
{
    struct fixture *f = *state;
    struct seep_live live;

    push(f, SEEP_EVENT_MAP, RANGE, 4 * PAGE);
    live = table_of(f, RANGE);
    seep_word_store(&live.shard->live_count, UINT32_MAX);
    push(f, SEEP_EVENT_UNMAP, RANGE, PAGE);
    assert_int_equal(live_bytes(f, f->mapped), 0);
    assert_int_equal(get(&site(f, f->mapped)->freed_count_q16), SEEP_COUNT_ONE);
    assert_int_equal(counter(f, SEEP_COUNT_RANGES_FULL), 1);
}

/* So many blocks of @size that three quarters of a table are full. */
static struct seep_live fill(struct fixture *f, uint64_t size)
{
    struct seep_live live = table_of(f, BLOCK);
    uint64_t slots = f->builder.view.shards[0].live_slots;
    uint64_t address = BLOCK;

    for (uint64_t count = 0; count < slots / 4 * 3 + 2; address += 16) {
        if (&f->builder.view
                 .shards[seep_view_shard_of(&f->builder.view, address)] ==
            live.shard) {
            push(f, SEEP_EVENT_ALLOC, address, size);
            count++;
        }
    }
    return live;
}

static uint32_t level(struct fixture *f)
{
    builder_fold(&f->builder);
    return seep_word_load(&f->builder.view.header->sample_log2);
}

/* Blocks as large as an event can say: however large, a mean has a bound, and
 * once it is reached nothing is thinned any more. */
static void the_mean_has_a_bound(void **state)
{
    struct fixture *f = *state;
    struct seep_live live = fill(f, UINT64_C(1) << 47);

    assert_int_equal(level(f), LEVEL_MOST);
    assert_int_equal(counter(f, SEEP_COUNT_THINNINGS), 1);
    assert_int_equal(counter(f, SEEP_COUNT_THINNED_BLOCKS), 0);
    /* Also once the table is as thin as that makes it. */
    while (seep_word_load(&live.shard->thin_level) != LEVEL_MOST) {
        builder_fold(&f->builder);
    }
    assert_int_equal(level(f), LEVEL_MOST);
    assert_int_equal(counter(f, SEEP_COUNT_THINNINGS), 1);
}

/* The first one is that of the mean block, and then it doubles, each time that
 * the table is as thin as the last one makes it and is full still: it takes two
 * folds to know. */
static void the_mean_rises_step_by_step(void **state)
{
    struct fixture *f = *state;
    uint32_t before;

    fill(f, 128);
    assert_int_equal(level(f), 7);
    assert_int_equal(tear_down((void **)&f), 0);
    assert_int_equal(set_up((void **)&f), 0);
    *state = f;
    seep_word_store(&f->builder.view.header->sample_log2, 3);
    fill(f, 1 << 20);
    before = level(f);
    assert_true(before > 3 && before < 10);
    for (uint32_t i = 0; i < 10; i++) {
        builder_fold(&f->builder);
    }
    assert_true(level(f) > before && level(f) <= before + 6);
}

/* More keys than blocks: there is nothing to thin. */
static void a_damaged_count_of_keys_raises_no_level(void **state)
{
    struct fixture *f = *state;
    struct seep_live live = table_of(f, BLOCK);

    seep_word_store(&live.shard->key_count, UINT64_MAX);
    fill(f, 100);
    assert_int_equal(level(f), 0);
    seep_word_store(&live.shard->key_count, 0);
    assert_int_equal(level(f), 7);
}

/* Thinning goes on from where it was: that is behind the last entry. */
static void a_damaged_cursor_begins_anew(void **state)
{
    struct fixture *f = *state;
    struct seep_live live;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 4096);
    live = table_of(f, BLOCK);
    seep_word_store(&live.shard->thin_cursor, live.mask);
    seep_word_store(&f->builder.view.header->sample_log2, 10);
    builder_fold(&f->builder);
    assert_int_equal(
        seep_live_get(&live, seep_live_find(&live, BLOCK)).sample_log2, 10);
}

/*
 * Events that were lost, or are none.
 */

/* The realloc that fails is another one than the fold has heard of: that block
 * has moved, and another lives there. */
static void a_restore_whose_out_was_lost_brings_nothing_back(void **state)
{
    struct fixture *f = *state;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 100);
    push(f, SEEP_EVENT_REALLOC_OUT, BLOCK, 0);
    push(f, SEEP_EVENT_ALLOC, BLOCK, 30);
    push(f, SEEP_EVENT_RESTORE, BLOCK, 0);
    assert_int_equal(live_bytes(f, f->heap), 30);
    push(f, SEEP_EVENT_FREE, BLOCK, 0);
    assert_int_equal(live_bytes(f, f->heap), 0);
    assert_false(is_live(f, BLOCK));
}

/* It was a free, and no realloc; an unmap, and no mremap. */
static void what_went_for_good_does_not_come_back(void **state)
{
    struct fixture *f = *state;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 100);
    builder_fold(&f->builder);
    push(f, SEEP_EVENT_FREE, BLOCK, 0);
    push(f, SEEP_EVENT_RESTORE, BLOCK, 0);
    assert_false(is_live(f, BLOCK));
    assert_int_equal(live_bytes(f, f->heap), 0);
    push(f, SEEP_EVENT_MAP, RANGE, 4 * PAGE);
    push(f, SEEP_EVENT_UNMAP, RANGE, 4 * PAGE);
    push(f, SEEP_EVENT_RESTORE, RANGE, PAGE);
    assert_false(is_live(f, RANGE));
    assert_int_equal(live_bytes(f, f->mapped), 0);
}

/* However large an empty entry says that it is. */
static void nothing_is_unmapped_of_an_empty_entry(void **state)
{
    struct fixture *f = *state;
    struct seep_live live;

    push(f, SEEP_EVENT_MAP, RANGE, 4 * PAGE);
    live = table_of(f, RANGE);
    for (uint32_t i = 0; i < seep_live_end(&live); i++) {
        if (seep_live_get(&live, i).address == 0) {
            seep_word_store(&live.entries[i].size_level, UINT64_C(1) << 47);
            seep_word_store(&live.entries[i].site, f->heap);
        }
    }
    push(f, SEEP_EVENT_UNMAP, RANGE + PAGE, PAGE);
    assert_int_equal(live_bytes(f, f->mapped), 3 * PAGE);
    assert_int_equal(get(&site(f, f->heap)->event_count), 0);
}

static void a_restore_of_nothing_brings_nothing_back(void **state)
{
    struct fixture *f = *state;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 100);
    push(f, SEEP_EVENT_REALLOC_OUT, BLOCK, 0);
    push(f, SEEP_EVENT_RESTORE, BLOCK, 0);
    push(f, SEEP_EVENT_FREE, BLOCK, 0);
    builder_fold(&f->builder);
    /* In the shard that has its rest in an unused place. */
    for (uint32_t i = 0; i < f->builder.view.shard_count; i++) {
        struct seep_rec_shard *shard = &f->builder.view.shards[i];

        for (uint32_t k = 0; k < SEEP_STASH_COUNT; k++) {
            seep_word_store(&shard->stash[k].live.address, BLOCK);
            seep_word_store(&shard->stash[k].live.site, f->heap);
            seep_word_store(&shard->stash[k].live.size_level, 100);
        }
    }
    push(f, SEEP_EVENT_RESTORE, 0, 0);
    assert_int_equal(live_bytes(f, f->heap), 0);
    assert_false(is_live(f, BLOCK));
}

static void a_mapping_of_no_bytes_is_none(void **state)
{
    struct fixture *f = *state;

    push(f, SEEP_EVENT_MAP, RANGE, 0);
    assert_false(is_live(f, RANGE));
    assert_int_equal(get(&site(f, f->mapped)->event_count), 0);
}

/* Two mappings at the same pages, as the first was unmapped unseen: the one is
 * cut in two, and the other, the last of the table, goes as well. */
static void a_munmap_of_a_middle_passes_no_mapping(void **state)
{
    struct fixture *f = *state;
    uint32_t tried = 0;

    for (uint64_t base = RANGE; tried < 20; base += 64 * PAGE) {
        uint64_t over = base + 3 * PAGE;
        struct seep_live live;

        push(f, SEEP_EVENT_MAP, base, 16 * PAGE);
        push(f, SEEP_EVENT_MAP, over, PAGE);
        live = table_of(f, base);
        tried += seep_live_home(&live, base) < seep_live_home(&live, over) &&
                 seep_live_home(&live, over + 2 * PAGE) <
                     seep_live_home(&live, over);
        push(f, SEEP_EVENT_UNMAP, base + 2 * PAGE, 3 * PAGE);
        assert_false(is_live(f, over));
        assert_int_equal(live_bytes(f, f->mapped), 13 * PAGE);
        push(f, SEEP_EVENT_UNMAP, base, 16 * PAGE);
        assert_int_equal(live_bytes(f, f->mapped), 0);
    }
}

/*
 * Shards whose table or ring makes no sense.
 */

static void a_shard_without_a_table_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct seep_live live = table_of(f, BLOCK);
    uint32_t shard = seep_view_shard_of(&f->builder.view, BLOCK);
    uint64_t applied;
    uint64_t torn;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 100);
    live.shard->live_slots = 3;
    seep_word_store(&live.shard->move, UINT64_C(1) << 32 | 1);
    seep_fold_repair_shard(&f->builder.fold, shard);
    assert_int_equal(get(&live.shard->move), UINT64_C(1) << 32 | 1);
    seep_word_store(&live.shard->lock, 1);
    seep_fold_private_copy(&f->builder.view, true, &applied, &torn);
    assert_int_equal(get(&live.shard->lock), 0);
    assert_int_equal(get(&live.shard->move), UINT64_C(1) << 32 | 1);
    assert_int_equal(applied, 0);
    assert_int_equal(torn, 0);
}

/* Locked, or with a move that was begun: then its counts may be wrong too. */
static void a_shard_that_was_left_half_done_is_counted_again(void **state)
{
    struct fixture *f = *state;
    struct seep_live live = table_of(f, BLOCK);
    uint64_t applied;
    uint64_t torn;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 100);
    builder_fold(&f->builder);
    for (uint32_t moves = 0; moves < 2; moves++) {
        seep_word_store(&live.shard->live_count, 7);
        seep_word_store(&live.shard->lock, moves == 0);
        seep_word_store(&live.shard->move, moves);
        seep_fold_private_copy(&f->builder.view, true, &applied, &torn);
        assert_int_equal(get(&live.shard->live_count), 1);
        assert_int_equal(get(&live.shard->lock), 0);
        assert_int_equal(get(&live.shard->move), 0);
        assert_true(is_live(f, BLOCK));
    }
}

/* What a site that the dead held has freed is told by what is live of it; of
 * another one, or of one that lives, the totals stand. */
static void only_what_the_dead_held_is_told_by_what_lives(void **state)
{
    struct fixture *f = *state;
    uint32_t other = builder_site(&f->builder, 0, SEEP_SPACE_HEAP);
    struct seep_rec_site *held = &f->builder.view.sites[f->heap];
    struct seep_rec_site *idle = &f->builder.view.sites[other];
    uint64_t applied;
    uint64_t torn;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 100);
    push(f, SEEP_EVENT_ALLOC, BLOCK + 16, 30);
    builder_alloc(&f->builder, BLOCK + 32, 1000, other, 20);
    builder_fold(&f->builder);
    push(f, SEEP_EVENT_FREE, BLOCK, 0); /* its entry is empty, and was larger */
    builder_fold(&f->builder);
    seep_word_add(&held->freed_bytes, 5);
    seep_word_add(&idle->freed_bytes, 7);
    seep_word_store(&held->lock, 1);
    seep_fold_private_copy(&f->builder.view, false, &applied, &torn);
    assert_int_equal(get(&held->lock), 0);
    assert_int_equal(get(&held->freed_bytes), 105);
    seep_word_store(&held->lock, 1);
    seep_fold_private_copy(&f->builder.view, true, &applied, &torn);
    assert_int_equal(get(&held->freed_bytes), 100);
    assert_int_equal(get(&held->freed_count_q16), SEEP_COUNT_ONE);
    assert_int_equal(get(&idle->freed_bytes), 7);
}

/* Of a damaged ring: the next lap has begun before this one was folded. */
static void a_slot_of_another_lap_is_not_passed_over(void **state)
{
    struct fixture *f = *state;
    const struct seep_view *view = &f->builder.view;
    uint32_t shard = seep_view_shard_of(view, BLOCK);
    uint64_t applied;
    uint64_t torn;

    seep_word_store(
        &seep_view_ring(view, shard)->state,
        seep_view_state(view, view->ring_slots, SEEP_SLOT_CLAIMED, 7) +
            (UINT64_C(1) << 63));
    seep_fold_private_copy(view, true, &applied, &torn);
    assert_int_equal(torn, 0);
    assert_int_equal(get(&view->shards[shard].head), 0);
}

/* Each is passed over once, whatever the others say. */
static void a_ring_of_claimed_slots_is_passed_over_once(void **state)
{
    struct fixture *f = *state;
    const struct seep_view *view = &f->builder.view;
    uint32_t shard = seep_view_shard_of(view, BLOCK);
    uint64_t applied;
    uint64_t torn;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 100);
    builder_fold(&f->builder);
    for (uint32_t i = 0; i < view->ring_slots; i++) {
        uint64_t position = 1 + i;

        seep_word_store(
            &seep_view_ring(view, shard)[position & (view->ring_slots - 1)]
                 .state,
            seep_view_state(view, position, SEEP_SLOT_CLAIMED, 7));
    }
    /* Of a process that lives they are not torn yet. */
    seep_fold_private_copy(view, false, &applied, &torn);
    assert_int_equal(torn, 0);
    assert_int_equal(get(&view->shards[shard].head), 1);
    seep_fold_private_copy(view, true, &applied, &torn);
    assert_int_equal(applied, 0);
    assert_int_equal(torn, view->ring_slots);
    assert_int_equal(get(&view->shards[shard].head), 1 + view->ring_slots);
    assert_int_equal(live_bytes(f, f->heap), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        WITH(a_block_of_no_site_goes_untold),
        WITH(an_event_of_no_site_goes_untold),
        WITH(a_block_of_no_site_does_not_come_back),
        WITH(a_mapping_of_no_site_goes_untold),
        WITH(a_block_of_no_site_is_thinned_away),
        WITH(a_block_of_no_site_is_nobodys_in_a_copy),
        WITH(a_mapping_that_finds_its_place_taken_is_lost),
        WITH(a_tail_that_finds_no_room_goes_with_its_block),
        WITH(the_mean_has_a_bound),
        WITH(the_mean_rises_step_by_step),
        WITH(a_damaged_count_of_keys_raises_no_level),
        WITH(a_damaged_cursor_begins_anew),
        WITH(a_restore_whose_out_was_lost_brings_nothing_back),
        WITH(what_went_for_good_does_not_come_back),
        WITH(nothing_is_unmapped_of_an_empty_entry),
        WITH(a_restore_of_nothing_brings_nothing_back),
        WITH(a_mapping_of_no_bytes_is_none),
        WITH(a_munmap_of_a_middle_passes_no_mapping),
        WITH(a_shard_without_a_table_is_left_alone),
        WITH(a_shard_that_was_left_half_done_is_counted_again),
        WITH(only_what_the_dead_held_is_told_by_what_lives),
        WITH(a_slot_of_another_lap_is_not_passed_over),
        WITH(a_ring_of_claimed_slots_is_passed_over_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
