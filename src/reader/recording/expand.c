/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A series for each site of a copy, where one is needed; see snapshot.h.
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
#include "reader/recording/series.h"
#include "reader/recording/snapshot.h"

/* What a site is told by that is neither a series nor a brief, nor its totals.
 */
#define SERIES_NONE SEEP_SERIES_IS_BRIEF

static bool is_brief(const struct seep_view *view, uint32_t index)
{
    enum seep_series_kind kind = seep_series_source_of(view, index).kind;

    return kind == SEEP_SERIES_BRIEF || kind == SEEP_SERIES_TOTALS;
}

/* A copy of the site's brief, or the one that it would have. @return false: it
 * has a series, or nothing */
static bool read_brief(const struct seep_view *view, uint32_t index,
                       struct seep_rec_brief *brief)
{
    struct seep_series_source source = seep_series_source_of(view, index);

    memset((void *)brief, 0, sizeof(*brief));
    if (source.kind == SEEP_SERIES_BRIEF) {
        memcpy((void *)brief, (const void *)source.from.brief, sizeof(*brief));
        return true;
    }
    if (source.kind == SEEP_SERIES_TOTALS) {
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
    uint64_t all = 0;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (is_brief(view, i)) {
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
            seep_word_store(&view->sites[i].series, SERIES_NONE);
            continue;
        }
        seep_brief_expand(&brief, next_of(room, used));
        used++;
        seep_word_store(&view->sites[i].series, used);
    }
    seep_view_count(view, SEEP_COUNT_SERIES_FULL, chosen.left_out);
    return used;
}

/* As many as the recording could have of both. */
static uint64_t most_of(const struct seep_view *view)
{
    const struct seep_rec_section *series =
        &view->header->sections[SEEP_SECTION_SERIES];

    return (uint64_t)series->entry_count + view->brief_capacity;
}

/* From now on nothing but series tells of a site. */
static void forget_briefs(struct seep_view *view)
{
    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (seep_word_load(&view->sites[i].series) == 0) {
            seep_word_store(&view->sites[i].series, SERIES_NONE);
        }
    }
    view->brief_capacity = 0;
}

int seep_snapshot_bound_series(struct seep_snapshot *snapshot)
{
    struct seep_view *view = &snapshot->view;
    uint64_t count = 0;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        count += is_brief(view, i);
    }
    if (count > EXPANDED_MOST || count_series(view) + count > most_of(view)) {
        return seep_snapshot_expand(snapshot);
    }
    view->series_capacity = count_series(view);
    return 0;
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
    uint64_t most = most_of(view);
    struct seep_snapshot_series *room;

    if (snapshot->series != NULL) {
        return 0;
    }

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
    forget_briefs(view);
    seep_snapshot_give_back(
        snapshot, view->series,
        (size_t)view->header->sections[SEEP_SECTION_SERIES].entry_count *
            sizeof(*room->list));
    view->series = room->list;
    view->series_capacity = used;
    return 0;
}
