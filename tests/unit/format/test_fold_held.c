/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fold where another one holds a site: an event that has to wait has
 * changed nothing, and is applied once.
 *
 * What these tests cannot catch: who waits how long (tests/model,
 * tests/storms).
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
#define OTHER_THREAD 2

enum site { HEAP, OTHER_HEAP, MAPPED, OTHER_MAPPED, SITES };

struct fixture {
    struct recording_builder builder;
    uint32_t sites[SITES];
    _Atomic uint32_t held_site;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        return -1;
    }
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, true);
    f->builder.fold.held_site = &f->held_site;
    for (uint32_t i = 0; i < SITES; i++) {
        uint64_t frame = builder_frame(0, 0x1000 * (i + 1));

        f->sites[i] =
            builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                         i < MAPPED ? SEEP_SPACE_HEAP : SEEP_SPACE_MAPPED);
    }
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

static uint64_t live_bytes(const struct fixture *f, enum site which)
{
    return seep_account_live_bytes(&f->builder.view.sites[f->sites[which]]);
}

static _Atomic uint64_t *lock_of(struct fixture *f, enum site which)
{
    return &f->builder.view.sites[f->sites[which]].lock;
}

/* @return events applied */
static uint32_t fold_once(struct fixture *f)
{
    uint32_t applied = 0;

    for (uint32_t i = 0; i < f->builder.view.shard_count; i++) {
        applied += seep_fold_shard(&f->builder.fold, i, UINT32_MAX);
    }
    return applied;
}

static void push(struct fixture *f, enum seep_event_kind kind, uint64_t address,
                 uint64_t size, enum site which)
{
    builder_push(&f->builder, kind, address, size, f->sites[which], 20);
}

/* A block and a mapping, and one of each that was taken out. */
static void prepare(struct fixture *f)
{
    push(f, SEEP_EVENT_ALLOC, BLOCK, 100, HEAP);
    push(f, SEEP_EVENT_ALLOC, 2 * BLOCK, 1000, HEAP);
    push(f, SEEP_EVENT_MAP, RANGE, 16 * PAGE, MAPPED);
    push(f, SEEP_EVENT_MAP, 2 * RANGE, PAGE, MAPPED);
    fold_once(f);
    push(f, SEEP_EVENT_REALLOC_OUT, 2 * BLOCK, 0, HEAP);
    push(f, SEEP_EVENT_REMAP_OUT, 2 * RANGE, PAGE, MAPPED);
    fold_once(f);
    assert_int_equal(live_bytes(f, HEAP), 100);
    assert_int_equal(live_bytes(f, MAPPED), 16 * PAGE);
}

struct waiting {
    enum seep_event_kind kind;
    uint64_t address;
    uint64_t size;
    enum site of;
    enum site held;
    uint64_t live; /* of the site that was held, once it is applied */
};

/* All but that an OUT was begun. */
static void assert_as_before(struct fixture *f, const char *saved)
{
    const struct seep_view *view = &f->builder.view;
    const char *now = f->builder.bytes;
    size_t begun =
        (size_t)((const char *)&view->shards[view->shard_count - 1].out_told -
                 now);

    assert_memory_equal(saved, now, begun);
    begun += sizeof(uint64_t);
    assert_memory_equal(saved + begun, now + begun,
                        f->builder.size_bytes - begun);
}

static void wait_for(const struct waiting *event)
{
    struct fixture *f;
    char *saved;

    assert_int_equal(set_up((void **)&f), 0);
    prepare(f);
    push(f, event->kind, event->address, event->size, event->of);
    assert_true(seep_fold_try_lock(lock_of(f, event->held), OTHER_THREAD));
    saved = malloc(f->builder.size_bytes);
    assert_non_null(saved);
    memcpy(saved, f->builder.bytes, f->builder.size_bytes);
    assert_int_equal(fold_once(f), 0);
    assert_int_equal(fold_once(f), 0);
    assert_int_equal(f->builder.fold.blocked_site, f->sites[event->held] + 1);
    assert_int_equal(f->held_site, 0);
    assert_as_before(f, saved);
    free(saved);
    seep_fold_unlock(lock_of(f, event->held), OTHER_THREAD);
    assert_int_equal(fold_once(f), 1);
    assert_int_equal(live_bytes(f, event->held), event->live);
    assert_int_equal(tear_down((void **)&f), 0);
}

static void an_event_that_has_to_wait_has_changed_nothing(void **state)
{
    static const struct waiting events[] = {
        {SEEP_EVENT_ALLOC, 3 * BLOCK, 7, HEAP, HEAP, 107},
        {SEEP_EVENT_ALLOC, BLOCK, 7, HEAP, HEAP, 7},
        {SEEP_EVENT_ALLOC, BLOCK, 7, OTHER_HEAP, HEAP, 0},
        {SEEP_EVENT_FREE, BLOCK, 0, HEAP, HEAP, 0},
        {SEEP_EVENT_REALLOC_OUT, BLOCK, 0, HEAP, HEAP, 0},
        {SEEP_EVENT_RESTORE, 2 * BLOCK, 0, HEAP, HEAP, 1100},
        {SEEP_EVENT_MAP, 3 * RANGE, PAGE, MAPPED, MAPPED, 17 * PAGE},
        {SEEP_EVENT_MAP, RANGE, PAGE, MAPPED, MAPPED, PAGE},
        {SEEP_EVENT_MAP, RANGE, PAGE, OTHER_MAPPED, MAPPED, 0},
        {SEEP_EVENT_UNMAP, RANGE, 16 * PAGE, MAPPED, MAPPED, 0},
        {SEEP_EVENT_UNMAP, RANGE + PAGE, PAGE, MAPPED, MAPPED, 15 * PAGE},
        {SEEP_EVENT_UNMAP, RANGE - PAGE, 18 * PAGE, MAPPED, MAPPED, 0},
        {SEEP_EVENT_REMAP_OUT, RANGE, 16 * PAGE, MAPPED, MAPPED, 0},
        {SEEP_EVENT_RESTORE, 2 * RANGE, PAGE, MAPPED, MAPPED, 17 * PAGE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        wait_for(&events[i]);
    }
}

/* A munmap of two pieces, of which one has to wait: both come back, and not
 * what an earlier one took out there, which succeeded. */
static void a_failed_munmap_that_had_to_wait_is_taken_back(void **state)
{
    struct fixture *f = *state;

    for (enum site held = MAPPED; held <= OTHER_MAPPED; held++) {
        push(f, SEEP_EVENT_MAP, RANGE, 3 * PAGE, MAPPED);
        push(f, SEEP_EVENT_REMAP_OUT, RANGE, 3 * PAGE, MAPPED);
        push(f, SEEP_EVENT_MAP, RANGE, 4 * PAGE, MAPPED);
        push(f, SEEP_EVENT_MAP, RANGE + 4 * PAGE, 5 * PAGE, OTHER_MAPPED);
        fold_once(f);
        push(f, SEEP_EVENT_REMAP_OUT, RANGE, 9 * PAGE, MAPPED);
        assert_true(seep_fold_try_lock(lock_of(f, held), OTHER_THREAD));
        assert_int_equal(fold_once(f), 0);
        assert_int_equal(fold_once(f), 0);
        seep_fold_unlock(lock_of(f, held), OTHER_THREAD);
        assert_int_equal(fold_once(f), 1);
        assert_int_equal(live_bytes(f, MAPPED), 0);
        assert_int_equal(live_bytes(f, OTHER_MAPPED), 0);
        push(f, SEEP_EVENT_RESTORE, RANGE, 9 * PAGE, MAPPED);
        assert_int_equal(fold_once(f), 1);
        assert_int_equal(live_bytes(f, MAPPED), 4 * PAGE);
        assert_int_equal(live_bytes(f, OTHER_MAPPED), 5 * PAGE);
        push(f, SEEP_EVENT_UNMAP, RANGE, 9 * PAGE, MAPPED);
        fold_once(f);
    }
}

static void a_lock_is_released_by_who_has_it(void **state)
{
    struct fixture *f = *state;
    _Atomic uint64_t *lock = lock_of(f, HEAP);
    uint64_t held;

    seep_fold_unlock(lock, 1);
    assert_int_equal(seep_word_load(lock), 0);
    assert_true(seep_fold_try_lock(lock, 1));
    held = seep_word_load(lock);
    assert_false(seep_fold_try_lock(lock, 1));
    seep_fold_unlock(lock, OTHER_THREAD);
    assert_int_equal(seep_word_load(lock), held);
    seep_fold_unlock(lock, 1);
    assert_true(seep_fold_try_lock(lock, OTHER_THREAD));
    seep_fold_unlock(lock, OTHER_THREAD);
    /* The last one who had it, and has it no more. */
    held = seep_word_load(lock);
    seep_word_store(lock, held | (uint64_t)OTHER_THREAD << 32);
    seep_fold_unlock(lock, OTHER_THREAD);
    assert_int_equal(seep_word_load(lock), held | (uint64_t)OTHER_THREAD << 32);
}

static uint32_t seen_held;

static void forget(void *context, uint64_t address)
{
    struct fixture *f = context;

    (void)address;
    seen_held = seep_word_load(&f->held_site);
}

/* So that a thread that leaves the fold by a jump knows what to release; asked
 * where the table is full, as the block is forgotten under the lock then. */
static void a_site_is_noted_while_it_is_held(void **state)
{
    struct fixture *f = *state;
    uint32_t shard = seep_view_shard_of(&f->builder.view, BLOCK);

    f->builder.fold.forget = forget;
    f->builder.fold.context = f;
    seep_word_store(&f->builder.view.shards[shard].live_count, UINT32_MAX);
    push(f, SEEP_EVENT_ALLOC, BLOCK, 100, HEAP);
    fold_once(f);
    assert_int_equal(seen_held, f->sites[HEAP] + 1);
    assert_int_equal(f->held_site, 0);
}

/* Else what comes while its site is held would be kept the less often. */
static void a_coin_is_flipped_once_for_an_event(void **state)
{
    struct fixture *f = *state;
    uint64_t random = f->builder.fold.random;

    seep_word_store(&f->builder.view.header->sample_log2, 10);
    push(f, SEEP_EVENT_ALLOC, BLOCK, 100, HEAP);
    assert_true(seep_fold_try_lock(lock_of(f, HEAP), OTHER_THREAD));
    assert_int_equal(fold_once(f), 0);
    assert_int_equal(f->builder.fold.random, random);
    seep_fold_unlock(lock_of(f, HEAP), OTHER_THREAD);
    assert_int_equal(fold_once(f), 1);
    assert_int_not_equal(f->builder.fold.random, random);
}

static void thinning_waits_for_a_site_and_goes_on(void **state)
{
    struct fixture *f = *state;
    const struct seep_view *view = &f->builder.view;
    uint32_t shard = seep_view_shard_of(view, BLOCK);
    uint32_t empty = (shard + 1) % (view->shard_count - 1);
    struct seep_live live;

    push(f, SEEP_EVENT_ALLOC, BLOCK, 4096, HEAP);
    fold_once(f);
    assert_true(seep_fold_try_lock(lock_of(f, HEAP), OTHER_THREAD));
    seep_word_store(&view->header->sample_log2, 10);
    fold_once(f);
    assert_true(seep_live_init(&live, view, shard));
    assert_int_equal(
        seep_live_get(&live, seep_live_find(&live, BLOCK)).sample_log2, 0);
    assert_int_equal(seep_word_load(&live.shard->thin_level), 0);
    /* Where there is nothing it is thin. */
    assert_int_equal(seep_word_load(&view->shards[empty].live_end), 0);
    assert_int_equal(seep_word_load(&view->shards[empty].thin_level), 10);
    seep_fold_unlock(lock_of(f, HEAP), OTHER_THREAD);
    fold_once(f);
    assert_int_equal(
        seep_live_get(&live, seep_live_find(&live, BLOCK)).sample_log2, 10);
    fold_once(f);
    assert_int_equal(seep_word_load(&live.shard->thin_level), 10);
}

static uint32_t ours_for;

static bool still_ours(void)
{
    return ours_for-- > 0;
}

/* As a handler forks in the midst of it: the child leaves the rest alone. */
static void a_fold_that_is_not_ours_any_more_ends_at_an_event(void **state)
{
    struct fixture *f = *state;
    uint32_t shard = seep_view_shard_of(&f->builder.view, BLOCK);

    for (uint64_t i = 0; i < 10; i++) {
        push(f, SEEP_EVENT_ALLOC, BLOCK + 16 * i, 100, HEAP);
    }
    f->builder.fold.still_ours = still_ours;
    ours_for = 3;
    assert_int_equal(seep_fold_shard(&f->builder.fold, shard, UINT32_MAX), 3);
    assert_int_equal(live_bytes(f, HEAP), 300);
    f->builder.fold.still_ours = NULL;
    assert_int_equal(seep_fold_shard(&f->builder.fold, shard, UINT32_MAX), 7);
    assert_int_equal(live_bytes(f, HEAP), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        cmocka_unit_test(an_event_that_has_to_wait_has_changed_nothing),
        WITH(a_failed_munmap_that_had_to_wait_is_taken_back),
        WITH(a_lock_is_released_by_who_has_it),
        WITH(a_site_is_noted_while_it_is_held),
        WITH(a_coin_is_flipped_once_for_an_event),
        WITH(thinning_waits_for_a_site_and_goes_on),
        WITH(a_fold_that_is_not_ours_any_more_ends_at_an_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
