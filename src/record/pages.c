/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much of mappings and large blocks is there, some of them at a time: what
 * was only reserved is no memory.
 *
 * Invariant: no page is touched for it, and what is written is the mark of the
 * block and the sums of its call site.
 */
#include "record/pages.h"

#include "base/proc.h"
#include "base/syscall.h"
#include "base/word.h"
#include "format/account.h"
#include "format/live.h"
#include "format/series.h"

#define PAGE_IS_PRESENT (UINT64_C(1) << 63)
#define PAGE_IS_SWAPPED (UINT64_C(1) << 62)
#define PAGE_IS_HERE (PAGE_IS_PRESENT | PAGE_IS_SWAPPED)
#define PAGES_MOST 512U /* of one question */
/* So many questions at a time, of 1 us each, go round all mappings. Of what has
 * more pages than so many questions tell, these are spread over it. */
#define MAPPED_READS 512U
#define MAPPED_PARTS 256U
#define MAPPED_PART_PAGES 32U
/* Blocks of the heap that large are looked at too, once they have been there
 * for a quarter of a second: what has just been allocated is yet to be written
 * to. So many entries of the live tables are passed at a time, 24 bytes each.
 */
#define LARGE_BYTES SEEP_TOUCHED_LEAST_BYTES
#define LARGE_TICKS 256U
#define LARGE_READS 128U
#define LARGE_ENTRIES 4096U

/* Only touched by who holds the timeline. */
static uint32_t next_mapping;
static uint32_t next_large_shard;
static uint32_t next_large;
static uint64_t words[PAGES_MOST]; /* of the page map */
static unsigned char in_memory[PAGES_MOST];

struct pages {
    uint64_t here;      /* resident in this process, or in swap */
    uint64_t elsewhere; /* in memory, and not here */
    uint64_t seen;
};

struct look {
    long fd;            /* of the page map */
    bool may_be_shared; /* by others, which have pages of it there */
    uint32_t reads;
};

/* Of memory that is shared others write pages that this process never looked
 * at: a worker fills a batch, and its parent keeps it. @return how many */
static uint64_t count_elsewhere(uint64_t page, uint64_t count)
{
    uint64_t elsewhere = 0;

    if (seep_syscall3(SYS_mincore, (long)(page * SEEP_PAGE_BYTES),
                      (long)(count * SEEP_PAGE_BYTES), (long)in_memory) != 0) {
        return 0;
    }
    for (uint64_t i = 0; i < count; i++) {
        elsewhere += (in_memory[i] & 1) != 0 && (words[i] & PAGE_IS_HERE) == 0;
    }
    return elsewhere;
}

/* Pages from @page on, of one question. */
static void count_pages(const struct look *look, uint64_t page, uint64_t count,
                        struct pages *pages)
{
    uint64_t got = seep_proc_read_at(look->fd, words, count * sizeof(uint64_t),
                                     page * sizeof(uint64_t)) /
                   sizeof(uint64_t);
    uint64_t here = 0;

    for (uint64_t i = 0; i < got; i++) {
        here += (words[i] & PAGE_IS_HERE) != 0;
    }
    if (look->may_be_shared && here < got) {
        pages->elsewhere += count_elsewhere(page, got);
    }
    pages->here += here;
    pages->seen += got;
}

static struct pages look_at(struct look *look, const struct seep_block *block)
{
    uint64_t page = block->address / SEEP_PAGE_BYTES;
    uint64_t count = block->size / SEEP_PAGE_BYTES;
    uint64_t parts = count / PAGES_MOST + 1;
    struct pages pages = {0, 0, 0};

    parts = parts < MAPPED_PARTS ? parts : MAPPED_PARTS;
    look->reads += (uint32_t)parts;
    for (uint64_t i = 0; i < parts; i++) {
        uint64_t from = count * i / parts;
        uint64_t part = count * (i + 1) / parts - from;

        part = part < PAGES_MOST ? part : MAPPED_PART_PAGES;
        count_pages(look, page + from, part, &pages);
    }
    return pages;
}

/* @return as SEEP_TOUCHED_MASK has it, not shifted */
static uint64_t mark_of(const struct pages *pages)
{
    uint64_t touched = pages->here + pages->elsewhere;

    return pages->seen == 0
               ? 0
               : 1 + (touched * SEEP_TOUCHED_ALL + pages->seen / 2) /
                         pages->seen;
}

static bool is_mapping(const struct seep_view *view,
                       const struct seep_block *block)
{
    return block->address != 0 && block->site < view->site_capacity &&
           view->sites[block->site].space == SEEP_SPACE_MAPPED;
}

/* The lock is whoever's who folds: an entry that moved meanwhile is left. */
static void mark(struct seep_rec_live *entry, const struct seep_block *block,
                 uint64_t touched)
{
    uint64_t old = seep_word_load(&entry->size_level);

    if (seep_word_load(&entry->address) == block->address &&
        (old & SEEP_SIZE_MASK) == block->size) {
        atomic_compare_exchange_strong_explicit(
            &entry->size_level, &old,
            (old & ~SEEP_TOUCHED_MASK) | touched << SEEP_TOUCHED_SHIFT,
            memory_order_relaxed, memory_order_relaxed);
    }
}

/* More than so many times what lives there was looked at: the half is kept. */
#define LOOKED_TIMES 4U

static struct seep_rec_series *series_of(const struct seep_view *view,
                                         const struct seep_block *block)
{
    const struct seep_rec_site *site = &view->sites[block->site];
    uint32_t number = seep_word_load(&site->series);

    /* none, or a brief */
    return number == 0 || number > view->series_capacity
               ? NULL
               : &view->series[number - 1];
}

/* To the series of its site: at a tidy end the block goes, and its mark. Only
 * who holds the timeline writes there. */
static void tell_series(const struct seep_view *view,
                        const struct seep_block *block,
                        const struct pages *pages)
{
    struct seep_rec_series *series = series_of(view, block);
    uint64_t mark = mark_of(pages);
    uint64_t looked;
    uint64_t there;
    uint64_t elsewhere;
    unsigned halved;

    if (series == NULL || mark == 0) {
        return;
    }
    looked = seep_word_load(&series->looked_bytes) + block->size;
    there = seep_word_load(&series->touched_bytes) +
            block->size / SEEP_TOUCHED_ALL * (mark - 1);
    elsewhere = seep_word_load(&series->elsewhere_bytes) +
                block->size / pages->seen * pages->elsewhere;
    halved = looked / LOOKED_TIMES >
             seep_account_live_bytes(&view->sites[block->site]);
    seep_word_store(&series->looked_bytes, looked >> halved);
    seep_word_store(&series->touched_bytes, there >> halved);
    seep_word_store(&series->elsewhere_bytes, elsewhere >> halved);
}

static void look_and_mark(const struct seep_view *view, struct look *look,
                          struct seep_rec_live *entry,
                          const struct seep_block *block)
{
    struct pages pages = look_at(look, block);

    mark(entry, block, mark_of(&pages));
    tell_series(view, block, &pages);
}

/* What is resident here of a block of @share that is in memory: as of its
 * site. */
static double here_of(const struct seep_view *view,
                      const struct seep_block *block, double share)
{
    const struct seep_rec_series *series = series_of(view, block);
    double there =
        series == NULL ? 0 : (double)seep_word_load(&series->touched_bytes);
    double elsewhere =
        series == NULL ? 0 : (double)seep_word_load(&series->elsewhere_bytes);

    return there > elsewhere ? share * (1 - elsewhere / there)
           : there > 0       ? 0
                             : share;
}

/*
 * How much of what was mapped is there: what was only reserved is no memory.
 * mincore() alone would say of what is in swap that it is not.
 */
static uint64_t look_at_mappings(const struct seep_view *view)
{
    struct seep_live live;
    uint64_t mapped_bytes = 0;
    uint32_t end = seep_live_init(&live, view, view->shard_count - 1)
                       ? seep_live_end(&live)
                       : 0;
    uint32_t first = next_mapping < end ? next_mapping : 0;
    struct look look = {
        .fd = end > 0 ? seep_proc_open("/proc/self/pagemap") : -1,
        .may_be_shared = true,
    };

    for (uint32_t i = 0; look.fd >= 0 && i < end; i++) {
        uint32_t index = first + i < end ? first + i : first + i - end;
        struct seep_rec_live *entry = &live.entries[index];
        struct seep_block block = seep_live_read(entry);
        double share;

        if (!is_mapping(view, &block)) {
            continue;
        }
        if (look.reads < MAPPED_READS) {
            look_and_mark(view, &look, entry, &block);
            next_mapping = index + 1;
        }
        share = seep_live_touched(seep_word_load(&entry->size_level));
        mapped_bytes +=
            share > 0
                ? (uint64_t)(here_of(view, &block, share) * (double)block.size)
                : 0;
    }
    seep_proc_close_file(look.fd);
    return mapped_bytes;
}

static bool is_large(const struct seep_view *view,
                     const struct seep_block *block, uint32_t tick)
{
    uint32_t space;

    if (block->address == 0 || block->size < LARGE_BYTES ||
        block->birth_tick + LARGE_TICKS > tick ||
        block->site >= view->site_capacity) {
        return false;
    }
    space = view->sites[block->site].space;
    return space == SEEP_SPACE_HEAP || space == SEEP_SPACE_PYTHON;
}

/* A part of what is left of a shard's table, from next_large on. @return false:
 * there was none left */
static bool look_at_shard(const struct seep_view *view, uint32_t tick,
                          struct look *look, uint32_t *entries)
{
    struct seep_live live;
    uint32_t end = seep_live_init(&live, view, next_large_shard)
                       ? seep_live_end(&live)
                       : 0;
    uint32_t first = next_large;

    while (next_large < end && *entries < LARGE_ENTRIES &&
           look->reads < LARGE_READS) {
        struct seep_rec_live *entry = &live.entries[next_large++];
        struct seep_block block = seep_live_read(entry);

        *entries += 1;
        if (is_large(view, &block, tick)) {
            look_and_mark(view, look, entry, &block);
        }
    }
    return next_large > first;
}

/* How much of the large blocks is there: malloc() gives pages that nobody has,
 * and many a buffer is never filled. */
static void look_at_large(const struct seep_view *view, uint32_t tick)
{
    uint32_t shards = view->shard_count - 1;
    uint32_t entries = 0;
    struct look look = {.fd = seep_proc_open("/proc/self/pagemap")};

    for (uint32_t passed = 0; look.fd >= 0 && passed <= shards &&
                              entries < LARGE_ENTRIES &&
                              look.reads < LARGE_READS;) {
        if (!look_at_shard(view, tick, &look, &entries)) {
            next_large_shard =
                next_large_shard + 1 < shards ? next_large_shard + 1 : 0;
            next_large = 0;
            passed++;
        }
    }
    seep_proc_close_file(look.fd);
}

uint64_t seep_pages_look(const struct seep_view *view, uint32_t tick)
{
    uint64_t mapped_bytes = look_at_mappings(view);

    look_at_large(view, tick);
    return mapped_bytes;
}

void seep_pages_start(void)
{
    next_mapping = 0;
    next_large_shard = 0;
    next_large = 0;
}
