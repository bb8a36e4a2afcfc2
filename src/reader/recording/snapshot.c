/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording in private memory: the bulk copy and its order, then a second
 * look at what changed meanwhile; see snapshot.h.
 *
 * Invariant: every offset and count that is used was checked in the copy.
 */
#include "reader/recording/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format/account.h"
#include "format/fold.h"
#include "format/live.h"
#include "format/series.h"
#include "reader/recording/open.h"
#include "reader/recording/series.h"

static uint32_t gather_live(const struct seep_view *view,
                            struct seep_rec_live *to, uint32_t most)
{
    uint32_t count = 0;

    for (uint32_t shard = 0; shard < view->shard_count; shard++) {
        struct seep_live live;
        uint32_t end =
            seep_live_init(&live, view, shard) ? seep_live_end(&live) : 0;

        for (uint32_t i = 0; i < end; i++) {
            if (seep_word_load(&live.entries[i].address) == 0) {
                continue;
            }
            if (count < most) {
                memcpy((void *)&to[count], (const void *)&live.entries[i],
                       sizeof(*to));
            }
            count++;
        }
    }
    return count;
}

/*
 * The live blocks alone, one after the other: their tables are large and
 * mostly empty, and each page of them that is looked at is one more of the
 * reader's.
 *
 * @return 0 or -ENOMEM
 */
static int snapshot_gather_live(struct seep_snapshot *snapshot)
{
    struct seep_view *view = &snapshot->view;
    uint32_t count = gather_live(view, NULL, 0);
    struct seep_rec_live *all = malloc(((size_t)count + 1) * sizeof(*all));

    if (all == NULL) {
        return -ENOMEM;
    }
    view->live_capacity = gather_live(view, all, count);
    seep_snapshot_give_back(
        snapshot, view->live,
        (size_t)view->header->sections[SEEP_SECTION_LIVE].entry_count *
            sizeof(*all));
    view->live = all;
    snapshot->live = all;
    return 0;
}

/*
 * The second look at a recording that is being written.
 *
 * Invariant: the lock word that stands in the copy was read before the rest
 * of its shard or site, so an equal word later means an unchanged copy.
 */

#define ROUNDS 24
#define PAUSE_NS 100000L
/* Pauses for a fold that does not move, each twice the last: 102 ms in all. On
 * a busy machine whoever folds may have lost its processor for as long. */
#define PATIENCE 10
#define SITE_ROUNDS 8
#define FEW_SITES 1024U
#define WORDS_AT_ONCE 64U

struct settling {
    struct seep_snapshot *snapshot;
    int fd;
    struct seep_rec_shard *shards; /* as the file has them now */
    struct seep_rec_site *sites;
    uint32_t *known; /* the published among them */
    uint32_t known_count;
    uint32_t site_count; /* of the header, when they were listed */
};

struct recheck {
    uint32_t changed;
    uint32_t held;
};

/*
 * Within one read nothing is ordered: the word that guards an entry, a lock or
 * the state of a slot, could be newer than what stands beside it. So it is read
 * first, and stays in the copy when the rest is read behind it.
 */
struct guarded {
    size_t entry_bytes;
    size_t word_at; /* in an entry */
    uint64_t count;
};

/* @entries lie in the copy and have their words already. */
static int read_behind_words(const struct seep_snapshot *s, int fd,
                             char *entries, const struct guarded *guarded)
{
    uint64_t offset = (uint64_t)(entries - (const char *)s->bytes);
    size_t step = guarded->entry_bytes;
    uint64_t words[WORDS_AT_ONCE];
    int error = 0;

    for (uint64_t i = 0; error == 0 && i < guarded->count; i += WORDS_AT_ONCE) {
        uint64_t rest = guarded->count - i;
        uint64_t count = rest < WORDS_AT_ONCE ? rest : WORDS_AT_ONCE;
        char *first = entries + i * step;
        uint64_t any = 0;

        for (uint64_t j = 0; j < count; j++) {
            memcpy(&words[j], first + j * step + guarded->word_at,
                   sizeof(words[j]));
            any |= words[j];
        }
        if (any == 0) {
            continue; /* newer than nothing */
        }
        error = seep_snapshot_read(fd, first, offset + i * step, count * step);
        for (uint64_t j = 0; j < count; j++) {
            memcpy(first + j * step + guarded->word_at, &words[j],
                   sizeof(words[j]));
        }
    }
    return error;
}

/* Read @bytes that lie at @in_copy again, into @to. */
static int read_again(const struct settling *st, const void *in_copy,
                      uint64_t bytes, void *to)
{
    uint64_t offset =
        (uint64_t)((const char *)in_copy - (const char *)st->snapshot->bytes);

    return seep_snapshot_read(st->fd, to, offset, bytes);
}

static int copy_again(const struct settling *st, void *in_copy, uint64_t bytes)
{
    return read_again(st, in_copy, bytes, in_copy);
}

/* An entry with the lock word at @lock_at in it. */
static int copy_locked(const struct settling *st, void *in_copy, size_t bytes,
                       size_t lock_at)
{
    struct guarded guarded = {bytes, lock_at, 1};
    int error = copy_again(st, (char *)in_copy + lock_at, sizeof(uint64_t));

    return error != 0
               ? error
               : read_behind_words(st->snapshot, st->fd, in_copy, &guarded);
}

static int copy_ring(const struct settling *st, uint32_t i)
{
    struct seep_rec_event *ring = seep_view_ring(&st->snapshot->view, i);
    struct guarded guarded = {sizeof(*ring),
                              offsetof(struct seep_rec_event, state),
                              st->snapshot->view.ring_slots};
    int error = copy_again(st, ring, guarded.count * sizeof(*ring));

    return error != 0 ? error
                      : read_behind_words(st->snapshot, st->fd, (char *)ring,
                                          &guarded);
}

static bool shard_changed(const struct settling *st, uint32_t i)
{
    struct seep_rec_shard *copy = &st->snapshot->view.shards[i];
    struct seep_rec_shard *now = &st->shards[i];

    return seep_word_load(&copy->lock) != seep_word_load(&now->lock) ||
           seep_word_load(&copy->head) != seep_word_load(&now->head);
}

static int copy_shard(const struct settling *st, uint32_t i)
{
    const struct seep_view *view = &st->snapshot->view;
    const struct seep_rec_header *header = view->header;
    bool is_last = i + 1 == view->shard_count;
    struct seep_rec_live *live = view->live + (size_t)i * header->live_slots;
    uint64_t slots = is_last ? header->range_slots : header->live_slots;
    int error = copy_locked(st, &view->shards[i], sizeof(view->shards[i]),
                            offsetof(struct seep_rec_shard, lock));

    error = error != 0 ? error : copy_again(st, live, slots * sizeof(*live));
    return error != 0 ? error : copy_ring(st, i);
}

/* @copy: whether what changed is copied again, or only counted. */
static int recheck_shards(const struct settling *st, bool copy,
                          struct recheck *ret_found)
{
    const struct seep_view *view = &st->snapshot->view;
    struct recheck found = {0, 0};
    int error =
        read_again(st, view->shards, view->shard_count * sizeof(*view->shards),
                   st->shards);

    for (uint32_t i = 0; error == 0 && i < view->shard_count; i++) {
        found.held += seep_word_load(&st->shards[i].lock) % 2 != 0;
        if (shard_changed(st, i)) {
            found.changed++;
            error = copy ? copy_shard(st, i) : 0;
        }
    }
    *ret_found = found;
    return error;
}

static int copy_series(const struct settling *st, struct seep_rec_site *site)
{
    const struct seep_view *view = &st->snapshot->view;
    uint32_t series = seep_word_load(&site->series);
    uint32_t brief = series & ~SEEP_SERIES_IS_BRIEF;

    if (brief != series && brief != 0 && brief <= view->brief_capacity) {
        return copy_again(st, &view->briefs[brief - 1], sizeof(*view->briefs));
    }
    return series == 0 || series > view->series_capacity
               ? 0
               : copy_again(st, &view->series[series - 1],
                            sizeof(*view->series));
}

/* One site and its series as one; an odd lock stays in the copy otherwise. */
static int copy_site(const struct settling *st, uint32_t i)
{
    struct seep_rec_site *site = &st->snapshot->view.sites[i];
    _Atomic uint64_t lock;
    int error = 0;

    for (int round = 0; error == 0 && round < SITE_ROUNDS; round++) {
        error = copy_locked(st, site, sizeof(*site),
                            offsetof(struct seep_rec_site, lock));
        if (error == 0) {
            error = copy_series(st, site);
        }
        if (error == 0) {
            error = read_again(st, &site->lock, sizeof(lock), &lock);
        }
        if (error == 0 &&
            seep_word_load(&lock) == seep_word_load(&site->lock) &&
            seep_word_load(&lock) % 2 == 0) {
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
        if (i == 0 || seep_word_load(&st->sites[i].state) == SEEP_PUBLISHED) {
            st->known[st->known_count++] = i;
        }
    }
    return error;
}

/* The table is mostly empty, and the shorter the check, the likelier that no
 * one folds meanwhile: where few are in use, only those are read. */
static int read_sites(struct settling *st)
{
    const struct seep_view *view = &st->snapshot->view;
    _Atomic uint32_t count;
    int error =
        read_again(st, &view->header->site_count, sizeof(count), &count);

    if (error == 0 && (st->known_count == 0 || st->known_count > FEW_SITES ||
                       seep_word_load(&count) != st->site_count)) {
        st->site_count = seep_word_load(&count);
        return read_all_sites(st);
    }
    for (uint32_t i = 0; error == 0 && i < st->known_count; i++) {
        error = read_again(st, &view->sites[st->known[i]], sizeof(*view->sites),
                           &st->sites[st->known[i]]);
    }
    return error;
}

static int recheck_sites(struct settling *st)
{
    const struct seep_view *view = &st->snapshot->view;
    int error = read_sites(st);

    for (uint32_t i = 0; error == 0 && i < view->site_capacity; i++) {
        uint64_t now = seep_word_load(&st->sites[i].lock);

        if (now % 2 != 0 || now != seep_word_load(&view->sites[i].lock)) {
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

        if (seep_word_load(&copy->state) == SEEP_PUBLISHED ||
            seep_word_load(&now->state) != SEEP_PUBLISHED) {
            continue;
        }
        memset(copy, 0, sizeof(*copy));
        copy->space = now->space;
        copy->stack = now->stack;
        seep_word_store(&copy->key, seep_word_load(&now->key));
        seep_word_store(&copy->state, SEEP_PUBLISHED);
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
        if (seep_word_load(&st->sites[i].lock) !=
            seep_word_load(&view->sites[i].lock)) {
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
    struct recheck found = {1, 1};
    int error = 0;

    for (int round = 0, still = 0; round < ROUNDS; round++) {
        struct timespec pause = {0, PAUSE_NS};

        error = recheck_shards(st, true, &found);
        if (error != 0) {
            return error;
        }
        if (found.changed == 0 && (found.held == 0 || still >= PATIENCE)) {
            return 0;
        }
        pause.tv_nsec <<= found.changed == 0 ? still++ : 0;
        error = found.changed == 0 ? 0 : recheck_sites(st);
        if (error != 0) {
            return error;
        }
        if (found.held > 0) {
            nanosleep(&pause, NULL);
        }
    }
    error = recheck_shards(st, false, &found);
    st->snapshot->restless_shards = found.changed;
    return error != 0 ? error : leave_out_restless(st);
}

/* @return 0; -ENODATA if the file shrank; else negative errno */
static int snapshot_settle(struct seep_snapshot *snapshot, int fd)
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

/* The words of the header that change, in an order of sections. */
#define HEADER SEEP_SECTION_COUNT

/* First what a fold changes, and the words that tell that it did. */
static const enum seep_section folded[] = {
    SEEP_SECTION_SHARDS,
    SEEP_SECTION_LIVE,
    SEEP_SECTION_RINGS,
    SEEP_SECTION_SITES,
    HEADER,
    SEEP_SECTION_BRIEFS,
    SEEP_SECTION_SERIES,
};

/* Then what those refer to, each before what it refers to itself: of what
 * was seen, the writer had written all that lies behind it. */
static const enum seep_section referred[] = {
    SEEP_SECTION_STACKS,   HEADER,
    SEEP_SECTION_FRAMES,   SEEP_SECTION_MODULES,
    SEEP_SECTION_CODES,    SEEP_SECTION_TIMELINE,
    SEEP_SECTION_DEVICES,  SEEP_SECTION_MARKS,
    SEEP_SECTION_COUNTERS, HEADER,
    SEEP_SECTION_STRINGS,
};

/* Entries of a section that are in use, as far as the header says. */
static uint64_t used_of(struct seep_rec_header *header, enum seep_section which)
{
    switch (which) {
    case SEEP_SECTION_BRIEFS:
        return seep_word_load(&header->brief_count);
    case SEEP_SECTION_SERIES:
        return seep_word_load(&header->series_count);
    case SEEP_SECTION_FRAMES:
        return seep_word_load(&header->frames_used);
    case SEEP_SECTION_STRINGS:
        return seep_word_load(&header->string_bytes_used);
    default:
        return UINT64_MAX;
    }
}

static int copy_section(struct seep_snapshot *s, int fd,
                        enum seep_section which)
{
    const struct seep_rec_section *section = &s->view.header->sections[which];
    uint64_t used = used_of(s->view.header, which);
    uint64_t bytes = used < section->entry_count ? used * section->entry_bytes
                                                 : section->bytes;

    return seep_snapshot_read_sparse(fd,
                                     (char *)s->bytes + section->offset_bytes,
                                     section->offset_bytes, bytes);
}

/* What a word guards is read once more, behind it. */
static int copy_part(struct seep_snapshot *s, int fd, enum seep_section which)
{
    const struct seep_rec_section *section = &s->view.header->sections[which];
    struct guarded guarded = {section->entry_bytes, 0, section->entry_count};
    int error = copy_section(s, fd, which);

    if (which == SEEP_SECTION_SHARDS) {
        guarded.word_at = offsetof(struct seep_rec_shard, lock);
    } else if (which == SEEP_SECTION_SITES) {
        guarded.word_at = offsetof(struct seep_rec_site, lock);
    } else if (which == SEEP_SECTION_RINGS) {
        guarded.word_at = offsetof(struct seep_rec_event, state);
    } else {
        return error;
    }
    return error != 0
               ? error
               : read_behind_words(
                     s, fd, (char *)s->bytes + section->offset_bytes, &guarded);
}

/* Never the fixed part: what was checked once stays what it was. */
static int copy_header(struct seep_snapshot *s, int fd)
{
    size_t fixed = offsetof(struct seep_rec_header, sample_log2);

    return seep_snapshot_read(fd, (char *)s->bytes + fixed, fixed,
                              SEEP_PAGE_BYTES - fixed);
}

static int copy_parts(struct seep_snapshot *s, int fd,
                      const enum seep_section *parts, size_t count)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < count; i++) {
        error = parts[i] == HEADER ? copy_header(s, fd)
                                   : copy_part(s, fd, parts[i]);
    }
    return error;
}

/* What a valid recording never overwrites, a damaged one may have. */
static void end_strings(struct seep_snapshot *s)
{
    s->view.strings[0] = '\0';
    s->view.strings[s->view.string_bytes - 1] = '\0';
}

/* Of a recording that no one writes any more: behind its last data there is
 * no site, no code and no device. Of one entry that is cut short the rest is
 * zero. */
static void end_tables(struct seep_snapshot *s)
{
    uint64_t sites =
        seep_snapshot_data_end(s, SEEP_SECTION_SITES) / sizeof(*s->view.sites) +
        1;
    uint64_t codes =
        seep_snapshot_data_end(s, SEEP_SECTION_CODES) / sizeof(*s->view.codes) +
        1;
    uint64_t device_bytes = sizeof(*s->view.devices) * SEEP_BUCKET_COUNT;
    uint64_t devices =
        (seep_snapshot_data_end(s, SEEP_SECTION_DEVICES) + device_bytes - 1) /
        device_bytes;

    if (sites < s->view.site_capacity) {
        s->view.site_capacity = (uint32_t)sites;
    }
    if (codes < s->view.code_capacity) {
        s->view.code_capacity = (uint32_t)codes;
    }
    if (devices < s->view.device_count) {
        s->view.device_count = (uint32_t)devices;
    }
}

static int copy_whole(struct seep_snapshot *s, int fd)
{
    int error = copy_header(s, fd);

    error = error == 0 ? seep_snapshot_copy_data(s, fd) : error;
    if (error == 0) {
        end_tables(s);
    }
    return error;
}

static int copy_while_written(struct seep_snapshot *s, int fd)
{
    int error;

    seep_snapshot_clear_copy(s);
    error = copy_parts(s, fd, folded, sizeof(folded) / sizeof(*folded));
    if (error == 0 && s->view.site_capacity > 0) {
        error = snapshot_settle(s, fd);
    }
    return error != 0 ? error
                      : copy_parts(s, fd, referred,
                                   sizeof(referred) / sizeof(*referred));
}

static int copy_all(struct seep_snapshot *s, int fd)
{
    struct stat status;
    int error = s->is_dead ? copy_whole(s, fd) : copy_while_written(s, fd);

    end_strings(s);
    /* A hole and a lost end look the same until one asks. */
    if (error == 0 &&
        (fstat(fd, &status) != 0 || (uint64_t)status.st_size < s->file_bytes)) {
        error = -ENODATA;
    }
    if (error == 0) {
        s->disk_bytes = (uint64_t)status.st_blocks * 512;
    }
    return error;
}

/* The copy as a reader wants it: locks noted, then what is pending folded. */
static void fold(struct seep_snapshot *s)
{
    for (uint32_t i = 0; i < s->view.site_capacity; i++) {
        if (seep_word_load(&s->view.sites[i].lock) % 2 != 0) {
            s->torn[i] = 1;
            s->torn_sites++;
        }
    }
    if (s->view.site_capacity > 0) {
        seep_fold_private_copy(&s->view, s->is_dead, &s->pending_events,
                               &s->torn_slots);
    }
}

static int make_ready(struct seep_snapshot *s)
{
    int error;

    fold(s);
    error = snapshot_gather_live(s);
    return error == 0 ? seep_snapshot_bound_series(s) : error;
}

/* As a reader wants it, or as the file has it. */
enum purpose { TO_READ, TO_KEEP };

static int fill(struct seep_snapshot *s, int fd,
                bool (*is_dead)(const struct seep_rec_header *),
                enum purpose purpose, struct seep_refusal *ret_refusal)
{
    int error;

    seep_view_init(&s->view, s->bytes);
    s->file_bytes = s->view.header->file_bytes;
    s->torn = calloc((size_t)s->view.site_capacity + 1, 1);
    if (s->torn == NULL) {
        return seep_open_refuse_errno(ret_refusal, -ENOMEM);
    }
    /* Asked before the copy: who was dead then wrote nothing since. */
    s->is_dead = is_dead(s->view.header);
    error = copy_all(s, fd);
    if (error == 0 && purpose == TO_READ) {
        error = make_ready(s);
    }
    return error == 0 ? 0 : seep_open_refuse_read(ret_refusal, error);
}

static int init(int fd, uint64_t size_bytes,
                bool (*is_dead)(const struct seep_rec_header *),
                enum purpose purpose, struct seep_refusal *ret_refusal,
                struct seep_snapshot *ret_snapshot)
{
    struct seep_snapshot snapshot = {.bytes = NULL};
    int error = seep_snapshot_open_copy(&snapshot, fd, size_bytes, ret_refusal);

    if (error == 0) {
        error = fill(&snapshot, fd, is_dead, purpose, ret_refusal);
    }
    if (error != 0) {
        seep_snapshot_fini(&snapshot);
        return error;
    }
    *ret_snapshot = snapshot;
    return 0;
}

int seep_snapshot_init(int fd, uint64_t size_bytes,
                       bool (*is_dead)(const struct seep_rec_header *),
                       struct seep_refusal *ret_refusal,
                       struct seep_snapshot *ret_snapshot)
{
    return init(fd, size_bytes, is_dead, TO_READ, ret_refusal, ret_snapshot);
}

int seep_snapshot_copy(int fd, uint64_t size_bytes,
                       bool (*is_dead)(const struct seep_rec_header *),
                       struct seep_refusal *ret_refusal,
                       struct seep_snapshot *ret_snapshot)
{
    return init(fd, size_bytes, is_dead, TO_KEEP, ret_refusal, ret_snapshot);
}

void seep_snapshot_fini(struct seep_snapshot *snapshot)
{
    seep_snapshot_leave_copy(snapshot);
    seep_snapshot_leave_series(snapshot);
    free(snapshot->live);
    free(snapshot->torn);
    free(snapshot->requested);
    snapshot->live = NULL;
    snapshot->requested = NULL;
    snapshot->torn = NULL;
}

uint64_t seep_sites_last_tick(const struct seep_snapshot *snapshot)
{
    const struct seep_view *view = &snapshot->view;
    uint64_t last = seep_sites_last_sample(view, SEEP_SITES_TICK_MAX);

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        uint32_t tick = seep_word_load(&view->sites[i].last_tick);

        if (seep_sites_is_used(&view->sites[i], i) && tick > last) {
            last = tick;
        }
    }
    return last;
}
