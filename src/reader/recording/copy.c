/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory that a recording is copied into; see snapshot.h.
 *
 * Most of what it costs to read a small recording are the pages of its copy,
 * which the system makes anew one by one; so the memory of one is that of the
 * next.
 *
 * Invariant: what a copy does not have from its file is zero, whatever
 * recording had the memory before and whoever wrote there since.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reader/recording/open.h"
#include "reader/recording/snapshot.h"
#include "reader/recording/store.h"

/* What is kept for the next: so much that was touched, and of addresses. */
#define KEPT_MOST_BYTES (UINT64_C(4) << 20)
#define KEPT_MAPPED_BYTES ((size_t)1 << 30)
#define KEPT_MOST_RANGES 256U

/* Bytes of the file that are no hole, and of its copy. */
struct range {
    uint64_t from;
    uint64_t to;
};

struct ranges {
    struct range *list; /* ascending */
    size_t count;
};

struct seep_snapshot_memory {
    void *bytes;
    size_t mapped_bytes;
    struct ranges data; /* of the recording at hand */
    struct ranges old;  /* of the one before, where not zero may be */
    bool is_whole;      /* .data is all there was in the file */
};

static _Atomic(struct seep_snapshot_memory *) spare;

static void discard(struct seep_snapshot_memory *memory)
{
    if (memory != NULL) {
        if (memory->bytes != NULL) {
            munmap(memory->bytes, memory->mapped_bytes);
        }
        free(memory->data.list);
        free(memory->old.list);
        free(memory);
    }
}

static struct seep_snapshot_memory *take_spare(size_t bytes)
{
    /* Pairs with the release in seep_snapshot_leave_copy(). */
    struct seep_snapshot_memory *memory =
        atomic_exchange_explicit(&spare, NULL, memory_order_acquire);
    struct ranges old;

    if (memory == NULL || memory->mapped_bytes < bytes) {
        discard(memory);
        return NULL;
    }
    old = memory->old;
    memory->old = memory->data;
    memory->data = (struct ranges){old.list, 0};
    memory->is_whole = false;
    memset(memory->bytes, 0, SEEP_PAGE_BYTES);
    return memory;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int open_spare(struct seep_snapshot_memory *memory, int fd,
                      uint64_t size_bytes, struct seep_refusal *ret_refusal)
{
    return seep_open_header(fd, size_bytes, ret_refusal, memory->bytes,
                            memory->mapped_bytes);
}

static int open_new(int fd, uint64_t size_bytes,
                    struct seep_refusal *ret_refusal,
                    struct seep_snapshot_memory **ret_memory)
{
    struct seep_snapshot_memory *memory = calloc(1, sizeof(*memory));
    int error;

    if (memory == NULL) {
        return seep_open_refuse_errno(ret_refusal, -ENOMEM);
    }
    error = seep_open_copy(fd, size_bytes, ret_refusal, &memory->bytes,
                           &memory->mapped_bytes);
    if (error != 0) {
        free(memory);
        return error;
    }
    *ret_memory = memory;
    return 0;
}

int seep_snapshot_open_copy(struct seep_snapshot *snapshot, int fd,
                            uint64_t size_bytes,
                            struct seep_refusal *ret_refusal)
{
    size_t bytes = (size_t)least(size_bytes, SEEP_LAYOUT_MOST_BYTES);
    struct seep_snapshot_memory *memory =
        size_bytes > 0 ? take_spare(bytes) : NULL;
    int error = memory != NULL ? open_spare(memory, fd, size_bytes, ret_refusal)
                               : open_new(fd, size_bytes, ret_refusal, &memory);

    if (error != 0) {
        discard(memory);
        return error;
    }
    snapshot->memory = memory;
    snapshot->bytes = memory->bytes;
    snapshot->mapped_bytes = memory->mapped_bytes;
    return 0;
}

static int add_range(struct ranges *ranges, uint64_t from, uint64_t to)
{
    struct range *list =
        seep_list_grow(ranges->list, ranges->count, sizeof(*list));

    if (list == NULL) {
        return -ENOMEM;
    }
    ranges->list = list;
    list[ranges->count++] = (struct range){from, to};
    return 0;
}

/*
 * The next bytes of the file that are no hole. A file system without SEEK_DATA
 * says that everything is data. @return false: there are none before @end;
 * whether the file still reaches so far is for the caller to look
 */
static bool next_data(int fd, uint64_t from, uint64_t end,
                      struct range *ret_range)
{
    off_t at = from < end ? lseek(fd, (off_t)from, SEEK_DATA) : (off_t)end;
    off_t hole;

    if (at < 0 && errno != ENXIO) {
        *ret_range = (struct range){from, end};
        return true;
    }
    if (at < 0 || (uint64_t)at >= end) {
        return false;
    }
    hole = lseek(fd, at, SEEK_HOLE);
    if (hole <= at || (uint64_t)hole > end) {
        hole = (off_t)end;
    }
    *ret_range = (struct range){(uint64_t)at, (uint64_t)hole};
    return true;
}

int seep_snapshot_read_sparse(int fd, void *to, uint64_t offset, uint64_t bytes)
{
    uint64_t end = offset + bytes;
    struct range range = {.to = offset};
    int error = 0;

    while (error == 0 && next_data(fd, range.to, end, &range)) {
        error = seep_snapshot_read(fd, (char *)to + (range.from - offset),
                                   range.from, range.to - range.from);
    }
    return error;
}

static int list_data(struct ranges *data, int fd, uint64_t from, uint64_t end)
{
    struct range range = {.to = from};
    int error = 0;

    while (error == 0 && next_data(fd, range.to, end, &range)) {
        error = add_range(data, range.from, range.to);
    }
    return error;
}

/* What of the recording before is not overwritten by this one. */
static void clear_old(struct seep_snapshot_memory *memory)
{
    const struct ranges *data = &memory->data;
    size_t next = 0;

    for (size_t i = 0; i < memory->old.count; i++) {
        struct range left = memory->old.list[i];

        while (next < data->count && data->list[next].to <= left.from) {
            next++;
        }
        for (size_t j = next; left.from < left.to; j++) {
            bool is_last = j >= data->count || data->list[j].from >= left.to;
            uint64_t to = is_last ? left.to : data->list[j].from;

            if (to > left.from) {
                memset((char *)memory->bytes + left.from, 0, to - left.from);
            }
            left.from = is_last ? left.to : data->list[j].to;
        }
    }
    memory->old.count = 0;
}

void seep_snapshot_clear_copy(struct seep_snapshot *snapshot)
{
    clear_old(snapshot->memory);
}

int seep_snapshot_copy_data(struct seep_snapshot *snapshot, int fd)
{
    struct seep_snapshot_memory *memory = snapshot->memory;
    const struct ranges *data = &memory->data;
    int error =
        list_data(&memory->data, fd, SEEP_PAGE_BYTES, snapshot->file_bytes);

    if (error != 0) {
        return error;
    }
    clear_old(memory);
    for (size_t i = 0; error == 0 && i < data->count; i++) {
        const struct range *range = &data->list[i];

        error = seep_snapshot_read(fd, (char *)memory->bytes + range->from,
                                   range->from, range->to - range->from);
    }
    memory->is_whole = error == 0;
    return error;
}

uint64_t seep_snapshot_data_end(const struct seep_snapshot *snapshot,
                                enum seep_section which)
{
    const struct seep_rec_section *section =
        &snapshot->view.header->sections[which];
    const struct ranges *data = &snapshot->memory->data;
    uint64_t end = section->offset_bytes + section->bytes;
    uint64_t last = 0;

    for (size_t i = 0; i < data->count && data->list[i].from < end; i++) {
        if (data->list[i].to > section->offset_bytes) {
            last = least(data->list[i].to, end) - section->offset_bytes;
        }
    }
    return last;
}

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Of it so little was touched that the next recording gets it. */
static bool is_kept(const struct seep_snapshot_memory *memory)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < memory->data.count; i++) {
        bytes += memory->data.list[i].to - memory->data.list[i].from;
    }
    /* Of a larger page nobody would know what of it is the header's. */
    return memory->is_whole && page_bytes() == SEEP_PAGE_BYTES &&
           bytes <= KEPT_MOST_BYTES &&
           memory->mapped_bytes <= KEPT_MAPPED_BYTES &&
           memory->data.count <= KEPT_MOST_RANGES;
}

/* @return false: the system does not take pages that are locked */
static bool give_back(void *bytes, uint64_t from, uint64_t to)
{
    uint64_t page = page_bytes();

    from = (from + page - 1) / page * page;
    to = to / page * page;
    return from >= to ||
           madvise((char *)bytes + from, to - from, MADV_DONTNEED) == 0;
}

void seep_snapshot_give_back(const struct seep_snapshot *snapshot, void *part,
                             size_t bytes)
{
    uint64_t from = (uint64_t)((char *)part - (char *)snapshot->bytes);

    if (!is_kept(snapshot->memory)) {
        (void)give_back(snapshot->bytes, from,
                        least(from + bytes, snapshot->mapped_bytes));
    }
}

static uint64_t round_up(uint64_t at)
{
    return (at + SEEP_PAGE_BYTES - 1) / SEEP_PAGE_BYTES * SEEP_PAGE_BYTES;
}

/* Whatever was written between what is of the file. In a page of both it may
 * be anywhere. @return false: it may still be there */
static bool give_gaps_back(struct seep_snapshot_memory *memory)
{
    uint64_t from = SEEP_PAGE_BYTES;
    bool done = true;

    for (size_t i = 0; i < memory->data.count; i++) {
        struct range *range = &memory->data.list[i];

        range->from = range->from / SEEP_PAGE_BYTES * SEEP_PAGE_BYTES;
        range->to = least(round_up(range->to), memory->mapped_bytes);
        done = done && give_back(memory->bytes, from, range->from);
        from = range->to;
    }
    return done &&
           give_back(memory->bytes, from, round_up(memory->mapped_bytes));
}

void seep_snapshot_leave_copy(struct seep_snapshot *snapshot)
{
    struct seep_snapshot_memory *memory = snapshot->memory;

    snapshot->memory = NULL;
    snapshot->bytes = NULL;
    if (memory != NULL && is_kept(memory) && give_gaps_back(memory)) {
        /* Pairs with the acquire in take_spare(), and with itself. */
        memory = atomic_exchange_explicit(&spare, memory, memory_order_acq_rel);
    }
    discard(memory);
}
