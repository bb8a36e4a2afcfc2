/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A series for each site of a copy; see snapshot.h.
 *
 * Invariant: what a series is made in is all zeros, whatever recording had the
 * room before.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/account.h"
#include "format/series.h"
#include "reader/recording/snapshot.h"

/* A copy of the site's brief, or the one that it would have. @return false: it
 * has a series, or nothing */
static bool read_brief(const struct seep_view *view, uint32_t index,
                       struct seep_rec_brief *brief)
{
    struct seep_rec_site *site = &view->sites[index];
    uint32_t number = seep_word_load(&site->series);
    uint32_t at = number & ~SEEP_SERIES_IS_BRIEF;

    memset((void *)brief, 0, sizeof(*brief));
    if (at != number && at != 0 && at <= view->brief_capacity) {
        memcpy((void *)brief, (const void *)&view->briefs[at - 1],
               sizeof(*brief));
        return true;
    }
    if (index != 0 && number == 0 && seep_account_is_whole(site) &&
        seep_word_load(&site->state) == SEEP_PUBLISHED) {
        seep_account_tell(view, index, brief);
        return true;
    }
    return false;
}

static uint32_t count_series(const struct seep_view *view)
{
    uint32_t count = seep_word_load(&view->header->series_count);

    return count < view->series_capacity ? count : view->series_capacity;
}

void seep_snapshot_give_back(const struct seep_snapshot *snapshot, void *part,
                             size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = (size_t)((char *)part - (char *)snapshot->bytes);
    size_t from = (first + page - 1) / page * page;
    size_t to = first + bytes < snapshot->mapped_bytes
                    ? (first + bytes) / page * page
                    : snapshot->mapped_bytes;

    if (from < to) {
        madvise((char *)snapshot->bytes + from, to - from, MADV_DONTNEED);
    }
}

/*
 * A series is 16 times what the site takes of the file: of 100,000 sites they
 * were 1.4 GB, of a file of 80 MB. So no more than these are made, 270 MiB.
 */
#define EXPANDED_MOST 25000U

#define CLASS_COUNT 65U

/* 0: nothing lives there; else by powers of two. */
static unsigned class_of(struct seep_rec_site *site)
{
    uint64_t live = seep_account_live_bytes(site);

    return live == 0 ? 0 : 64 - (unsigned)__builtin_clzll(live);
}

/* Sites of a class above @class have a series, of it @room, below it none. */
struct chosen {
    unsigned class;
    uint64_t room;
    uint64_t left_out;
};

/* Which sites have a series where there is none for all: who holds most. */
static struct chosen choose(const struct seep_view *view)
{
    struct chosen chosen = {.class = CLASS_COUNT, .room = EXPANDED_MOST};
    uint64_t counts[CLASS_COUNT] = {0};
    struct seep_rec_brief brief;
    uint64_t all = 0;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (read_brief(view, i, &brief)) {
            counts[class_of(&view->sites[i])]++;
            all++;
        }
    }
    while (chosen.class -- > 0 && counts[chosen.class] <= chosen.room) {
        chosen.room -= counts[chosen.class];
    }
    chosen.left_out = all > EXPANDED_MOST ? all - EXPANDED_MOST : 0;
    return chosen;
}

static bool take(struct chosen *chosen, struct seep_rec_site *site)
{
    unsigned class = class_of(site);

    if (chosen->left_out == 0 || class != chosen->class) {
        return chosen->left_out == 0 || class > chosen->class;
    }
    return chosen->room > 0 && chosen->room-- > 0;
}

/*
 * Most of what a small recording costs are the pages of these series, which the
 * system makes anew one by one; so the room of one is that of the next.
 */
#define KEPT_MOST_BYTES ((size_t)16 << 20)

struct seep_snapshot_series {
    size_t bytes; /* with this */
    size_t used;  /* series that may have been written */
    size_t reserved[6];
    struct seep_rec_series list[];
};
static_assert(offsetof(struct seep_snapshot_series, list) == 64,
              "series begin at a line of the cache");

static _Atomic(struct seep_snapshot_series *) spare;

static void unmap(struct seep_snapshot_series *room)
{
    if (room != NULL) {
        munmap(room, room->bytes);
    }
}

static struct seep_snapshot_series *take_room(uint64_t count)
{
    size_t bytes = sizeof(struct seep_snapshot_series) +
                   (size_t)count * sizeof(struct seep_rec_series);
    /* Pairs with the release in seep_snapshot_leave_series(). */
    struct seep_snapshot_series *room =
        atomic_exchange_explicit(&spare, NULL, memory_order_acquire);

    if (room != NULL && room->bytes >= bytes) {
        return room;
    }
    unmap(room);
    room = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        return NULL;
    }
    room->bytes = bytes;
    return room;
}

void seep_snapshot_leave_series(struct seep_snapshot *snapshot)
{
    struct seep_snapshot_series *room = snapshot->series;

    snapshot->series = NULL;
    if (room != NULL &&
        room->used * sizeof(struct seep_rec_series) <= KEPT_MOST_BYTES) {
        /* Pairs with the acquire in take_room(), and with itself. */
        room = atomic_exchange_explicit(&spare, room, memory_order_acq_rel);
    }
    unmap(room);
}

static struct seep_rec_series *next_of(struct seep_snapshot_series *room,
                                       uint32_t at)
{
    if (at < room->used) {
        memset((void *)&room->list[at], 0, sizeof(room->list[at]));
    } else {
        room->used = at + 1;
    }
    return &room->list[at];
}

/* Behind the @used first. @return how many there are then */
static uint32_t expand_all(struct seep_view *view,
                           struct seep_snapshot_series *room, uint32_t used,
                           uint64_t most)
{
    struct chosen chosen = choose(view);

    for (uint32_t i = 0; i < view->site_capacity && used < most; i++) {
        struct seep_rec_brief brief;

        if (!read_brief(view, i, &brief)) {
            continue;
        }
        if (!take(&chosen, &view->sites[i])) {
            seep_word_store(&view->sites[i].series, 0);
            continue;
        }
        seep_brief_expand(&brief, next_of(room, used));
        used++;
        seep_word_store(&view->sites[i].series, used);
    }
    seep_view_count(view, SEEP_COUNT_SERIES_FULL, chosen.left_out);
    return used;
}

/*
 * Give every site of the copy that has a brief, or whose totals say all, a
 * series, so that who reads on knows of nothing else. Of those behind as many
 * as the recording could have of both the rest goes without; of more than
 * EXPANDED_MOST those that hold least, and that is counted.
 */
int seep_snapshot_expand(struct seep_snapshot *snapshot)
{
    struct seep_view *view = &snapshot->view;
    uint32_t used = count_series(view);
    uint64_t most = (uint64_t)view->series_capacity + view->brief_capacity;
    struct seep_snapshot_series *room;

    most = most < used + EXPANDED_MOST ? most : used + EXPANDED_MOST;
    room = take_room(most + 1);
    if (room == NULL) {
        return -ENOMEM;
    }
    memcpy((void *)room->list, (const void *)view->series,
           used * sizeof(*room->list));
    room->used = room->used < used ? used : room->used;
    snapshot->series = room;
    used = expand_all(view, room, used, most);
    seep_snapshot_give_back(snapshot, view->series,
                            (size_t)view->series_capacity *
                                sizeof(*room->list));
    view->series = room->list;
    view->series_capacity = used;
    return 0;
}
