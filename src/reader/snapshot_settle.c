/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The second look at a recording that is being written; see snapshot.h.
 *
 * Invariant: the lock word that stands in the copy was read before the rest
 * of its shard or site, so an equal word later means an unchanged copy.
 */
#include "reader/snapshot_settle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reader/snapshot_copy.h"

#define ROUNDS 24
#define PATIENCE 6 /* rounds to wait for a fold that does not move */
#define SITE_ROUNDS 8
#define FEW_SITES 1024U

struct settling {
    struct seep_snapshot *snapshot;
    int fd;
    struct seep_rec_shard *shards; /* as the file has them now */
    struct seep_rec_site *sites;
    uint32_t *known; /* the published among them */
    uint32_t known_count;
    uint32_t site_count; /* of the header, when they were listed */
};

struct looked {
    uint32_t changed;
    uint32_t held;
};

/* Read @bytes that lie at @in_copy again, into @to. */
static int read_again(const struct settling *st, const void *in_copy,
                      uint64_t bytes, void *to)
{
    uint64_t offset =
        (uint64_t)((const char *)in_copy - (const char *)st->snapshot->bytes);

    return seep_snapshot_read(st->fd, to, offset, bytes);
}

static bool shard_changed(const struct settling *st, uint32_t i)
{
    struct seep_rec_shard *copy = &st->snapshot->view.shards[i];
    struct seep_rec_shard *now = &st->shards[i];

    return seep_snapshot_load(copy->lock) != seep_snapshot_load(now->lock) ||
           seep_snapshot_load(copy->head) != seep_snapshot_load(now->head);
}

static int copy_shard(const struct settling *st, uint32_t i)
{
    const struct seep_view *view = &st->snapshot->view;
    const struct seep_rec_header *header = view->header;
    bool is_last = i + 1 == view->shard_count;
    struct seep_rec_live *live = view->live + (size_t)i * header->live_slots;
    struct seep_rec_event *ring = seep_view_ring(view, i);
    uint64_t slots = is_last ? header->range_slots : header->live_slots;
    int error = read_again(st, &view->shards[i], sizeof(view->shards[i]),
                           &view->shards[i]);

    if (error == 0) {
        error = read_again(st, live, slots * sizeof(*live), live);
    }
    if (error == 0) {
        error = read_again(st, ring, (uint64_t)view->ring_slots * sizeof(*ring),
                           ring);
    }
    return error;
}

/* @copy: whether what changed is copied again, or only counted. */
static int look_at_shards(const struct settling *st, bool copy,
                          struct looked *ret_looked)
{
    const struct seep_view *view = &st->snapshot->view;
    struct looked looked = {0, 0};
    int error =
        read_again(st, view->shards, view->shard_count * sizeof(*view->shards),
                   st->shards);

    for (uint32_t i = 0; error == 0 && i < view->shard_count; i++) {
        looked.held += seep_snapshot_load(st->shards[i].lock) % 2 != 0;
        if (shard_changed(st, i)) {
            looked.changed++;
            error = copy ? copy_shard(st, i) : 0;
        }
    }
    *ret_looked = looked;
    return error;
}

static int copy_series(const struct settling *st, struct seep_rec_site *site)
{
    const struct seep_view *view = &st->snapshot->view;
    uint32_t series = seep_snapshot_load(site->series);

    if (series == 0 || series > view->series_capacity) {
        return 0;
    }
    return read_again(st, &view->series[series - 1], sizeof(*view->series),
                      &view->series[series - 1]);
}

/* One site and its series as one; an odd lock stays in the copy otherwise. */
static int copy_site(const struct settling *st, uint32_t i)
{
    struct seep_rec_site *site = &st->snapshot->view.sites[i];
    _Atomic uint64_t lock;
    int error = 0;

    for (int round = 0; error == 0 && round < SITE_ROUNDS; round++) {
        error = read_again(st, site, sizeof(*site), site);
        if (error == 0) {
            error = copy_series(st, site);
        }
        if (error == 0) {
            error = read_again(st, &site->lock, sizeof(lock), &lock);
        }
        if (error == 0 &&
            seep_snapshot_load(lock) == seep_snapshot_load(site->lock) &&
            seep_snapshot_load(lock) % 2 == 0) {
            return 0;
        }
    }
    if (error == 0) {
        atomic_fetch_or_explicit(&site->lock, 1, memory_order_relaxed);
    }
    return error;
}

static int read_all_sites(struct settling *st)
{
    const struct seep_view *view = &st->snapshot->view;
    int error = read_again(
        st, view->sites, view->site_capacity * sizeof(*view->sites), st->sites);

    st->known_count = 0;
    for (uint32_t i = 0; error == 0 && i < view->site_capacity; i++) {
        if (i == 0 ||
            seep_snapshot_load(st->sites[i].state) == SEEP_PUBLISHED) {
            st->known[st->known_count++] = i;
        }
    }
    return error;
}

/* The table is mostly empty, and the shorter the look, the likelier that no
 * one folds meanwhile: where few are in use, only those are read. */
static int read_sites(struct settling *st)
{
    const struct seep_view *view = &st->snapshot->view;
    _Atomic uint32_t count;
    int error =
        read_again(st, &view->header->site_count, sizeof(count), &count);

    if (error == 0 && (st->known_count == 0 || st->known_count > FEW_SITES ||
                       seep_snapshot_load(count) != st->site_count)) {
        st->site_count = seep_snapshot_load(count);
        return read_all_sites(st);
    }
    for (uint32_t i = 0; error == 0 && i < st->known_count; i++) {
        error = read_again(st, &view->sites[st->known[i]], sizeof(*view->sites),
                           &st->sites[st->known[i]]);
    }
    return error;
}

static int look_at_sites(struct settling *st)
{
    const struct seep_view *view = &st->snapshot->view;
    int error = read_sites(st);

    for (uint32_t i = 0; error == 0 && i < view->site_capacity; i++) {
        uint64_t now = seep_snapshot_load(st->sites[i].lock);

        if (now % 2 != 0 || now != seep_snapshot_load(view->sites[i].lock)) {
            error = copy_site(st, i);
        }
    }
    return error;
}

/* Sites that came after their copy: events of theirs may be in the rings. Who
 * they are counts, what they hold is in those events. */
static int add_new_sites(struct settling *st)
{
    const struct seep_view *view = &st->snapshot->view;
    int error = read_sites(st);

    for (uint32_t i = 0; error == 0 && i < view->site_capacity; i++) {
        struct seep_rec_site *copy = &view->sites[i];
        struct seep_rec_site *now = &st->sites[i];

        if (seep_snapshot_load(copy->state) == SEEP_PUBLISHED ||
            seep_snapshot_load(now->state) != SEEP_PUBLISHED) {
            continue;
        }
        memset(copy, 0, sizeof(*copy));
        copy->space = now->space;
        copy->stack = now->stack;
        atomic_store_explicit(&copy->key, seep_snapshot_load(now->key),
                              memory_order_relaxed);
        atomic_store_explicit(&copy->state, SEEP_PUBLISHED,
                              memory_order_relaxed);
    }
    return error;
}

/* What never came to rest: the rings are left out, and the sites that went on
 * changing are counted as torn, being of another moment than the rest. */
static int leave_out_restless(struct settling *st)
{
    const struct seep_view *view = &st->snapshot->view;
    int error = st->snapshot->restless_shards > 0 ? read_sites(st) : 0;

    for (uint32_t i = 0; error == 0 && i < view->site_capacity; i++) {
        if (seep_snapshot_load(st->sites[i].lock) !=
            seep_snapshot_load(view->sites[i].lock)) {
            atomic_fetch_or_explicit(&view->sites[i].lock, 1,
                                     memory_order_relaxed);
        }
    }

    for (uint32_t i = 0; i < view->shard_count; i++) {
        if (shard_changed(st, i)) {
            memset(seep_view_ring(view, i), 0,
                   view->ring_slots * sizeof(struct seep_rec_event));
        }
    }
    return error;
}

static int settle(struct settling *st)
{
    const struct timespec pause = {.tv_nsec = 100000};
    struct looked looked = {1, 1};
    int error = 0;

    for (int round = 0; round < ROUNDS; round++) {
        error = look_at_shards(st, true, &looked);
        if (error != 0) {
            return error;
        }
        if (looked.changed == 0 && (looked.held == 0 || round >= PATIENCE)) {
            return 0;
        }
        error = looked.changed == 0 ? 0 : look_at_sites(st);
        if (error != 0) {
            return error;
        }
        if (looked.held > 0) {
            nanosleep(&pause, NULL);
        }
    }
    error = look_at_shards(st, false, &looked);
    st->snapshot->restless_shards = looked.changed;
    return error != 0 ? error : leave_out_restless(st);
}

int seep_snapshot_settle(struct seep_snapshot *snapshot, int fd)
{
    const struct seep_view *view = &snapshot->view;
    struct settling st = {.snapshot = snapshot, .fd = fd};
    int error = -ENOMEM;

    st.shards = calloc(view->shard_count, sizeof(*st.shards));
    st.sites = calloc(view->site_capacity, sizeof(*st.sites));
    st.known = calloc(view->site_capacity, sizeof(*st.known));
    if (st.shards != NULL && st.sites != NULL && st.known != NULL) {
        error = settle(&st);
        if (error == 0) {
            error = add_new_sites(&st);
        }
    }
    free(st.shards);
    free(st.sites);
    free(st.known);
    return error;
}
