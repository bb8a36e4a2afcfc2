/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bulk copy and its order; see snapshot.h, and snapshot_settle.c. */
#include "reader/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "format/check.h"
#include "format/fold.h"
#include "format/layout.h"
#include "reader/open.h"
#include "reader/snapshot_copy.h"
#include "reader/snapshot_settle.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The first @count entries of a section. */
static int copy_section(struct seep_snapshot *s, int fd,
                        enum seep_section which, uint64_t count)
{
    const struct seep_rec_section *section = &s->view.header->sections[which];
    uint64_t bytes = section->entry_bytes * least(count, section->entry_count);

    return seep_snapshot_read_sparse(fd,
                                     (char *)s->bytes + section->offset_bytes,
                                     section->offset_bytes, bytes);
}

/* Never the fixed part: what was checked once stays what it was. */
static int copy_header(struct seep_snapshot *s, int fd)
{
    size_t fixed = offsetof(struct seep_rec_header, sample_log2);

    return seep_snapshot_read(fd, (char *)s->bytes + fixed, fixed,
                              SEEP_PAGE_BYTES - fixed);
}

/* First what a fold changes, and the words that tell that it did. */
static int copy_folded(struct seep_snapshot *s, int fd)
{
    struct seep_rec_header *header = s->view.header;
    int error = copy_section(s, fd, SEEP_SECTION_SHARDS, UINT32_MAX);

    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_LIVE, UINT32_MAX);
    }
    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_RINGS, UINT32_MAX);
    }
    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_SITES, UINT32_MAX);
    }
    if (error == 0) {
        error = copy_header(s, fd);
    }
    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_SERIES,
                             seep_snapshot_load(header->series_count));
    }
    return error;
}

/* Then what those refer to, each before what it refers to itself: of what
 * was seen, the writer had written all that lies behind it. */
static int copy_referred(struct seep_snapshot *s, int fd)
{
    struct seep_rec_header *header = s->view.header;
    int error = copy_section(s, fd, SEEP_SECTION_STACKS, UINT32_MAX);

    if (error == 0) {
        error = copy_header(s, fd);
    }
    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_FRAMES,
                             seep_snapshot_load(header->frames_used));
    }
    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_MODULES, UINT32_MAX);
    }
    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_CODES, UINT32_MAX);
    }
    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_TIMELINE, UINT32_MAX);
    }
    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_DEVICES, UINT32_MAX);
    }
    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_MARKS, UINT32_MAX);
    }
    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_COUNTERS, UINT32_MAX);
    }
    if (error == 0) {
        error = copy_header(s, fd);
    }
    if (error == 0) {
        error = copy_section(s, fd, SEEP_SECTION_STRINGS,
                             seep_snapshot_load(header->string_bytes_used));
    }
    return error;
}

/* What a valid recording never overwrites, a damaged one may have. */
static void end_strings(struct seep_snapshot *s)
{
    s->view.strings[0] = '\0';
    s->view.strings[s->view.string_bytes - 1] = '\0';
}

static int copy_all(struct seep_snapshot *s, int fd)
{
    struct stat status;
    int error = copy_folded(s, fd);

    if (error == 0 && s->view.site_capacity > 0) {
        error = seep_snapshot_settle(s, fd);
    }
    if (error == 0) {
        error = copy_referred(s, fd);
    }
    end_strings(s);
    /* A hole and a lost end look the same until one asks. */
    if (error == 0 &&
        (fstat(fd, &status) != 0 || (uint64_t)status.st_size < s->file_bytes)) {
        error = -ENODATA;
    }
    return error;
}

/* The copy as a reader wants it: locks noted, then what is pending folded. */
static void fold(struct seep_snapshot *s, bool dead)
{
    for (uint32_t i = 0; i < s->view.site_capacity; i++) {
        if (seep_snapshot_load(s->view.sites[i].lock) % 2 != 0) {
            s->torn[i] = 1;
            s->torn_sites++;
        }
    }
    if (s->view.site_capacity > 0) {
        seep_fold_private_copy(&s->view, dead, &s->pending_events,
                               &s->torn_slots);
    }
}

/* Map memory for the file and look at its first page. */
static int map_and_check(int fd, uint64_t size_bytes,
                         struct seep_refusal *ret_refusal,
                         struct seep_snapshot *s)
{
    enum seep_check_result result;
    int error;

    s->mapped_bytes = (size_t)least(size_bytes, SEEP_LAYOUT_MOST_BYTES);
    if (s->mapped_bytes < SEEP_PAGE_BYTES) {
        s->mapped_bytes = SEEP_PAGE_BYTES;
    }
    s->bytes = mmap(NULL, s->mapped_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->bytes == MAP_FAILED) {
        s->bytes = NULL;
        return seep_open_refuse_errno(ret_refusal, -errno);
    }
    error =
        seep_snapshot_read(fd, s->bytes, 0, least(size_bytes, SEEP_PAGE_BYTES));
    if (error == -ENODATA) {
        return seep_open_refuse_check(ret_refusal, SEEP_CHECK_TRUNCATED);
    }
    if (error != 0) {
        return seep_open_refuse_errno(ret_refusal, error);
    }
    result = seep_check(s->bytes, (size_t)least(size_bytes, s->mapped_bytes));
    if (result != SEEP_CHECK_VALID) {
        return seep_open_refuse_check(ret_refusal, result);
    }
    return 0;
}

static int fill(struct seep_snapshot *s, int fd,
                bool (*is_dead)(const struct seep_rec_header *),
                struct seep_refusal *ret_refusal)
{
    bool dead;
    int error;

    seep_view_init(&s->view, s->bytes);
    s->file_bytes = s->view.header->file_bytes;
    s->torn = calloc((size_t)s->view.site_capacity + 1, 1);
    if (s->torn == NULL) {
        return seep_open_refuse_errno(ret_refusal, -ENOMEM);
    }
    /* Asked before the copy: who was dead then wrote nothing since. */
    dead = is_dead(s->view.header);
    error = copy_all(s, fd);
    if (error == -ENODATA) {
        return seep_open_refuse_check(ret_refusal, SEEP_CHECK_TRUNCATED);
    }
    if (error != 0) {
        return seep_open_refuse_errno(ret_refusal, error);
    }
    fold(s, dead);
    return 0;
}

int seep_snapshot_init(int fd, uint64_t size_bytes,
                       bool (*is_dead)(const struct seep_rec_header *),
                       struct seep_refusal *ret_refusal,
                       struct seep_snapshot *ret_snapshot)
{
    struct seep_snapshot snapshot = {.bytes = NULL};
    int error;

    if (size_bytes == 0) {
        return seep_open_refuse_check(ret_refusal, SEEP_CHECK_EMPTY);
    }
    error = map_and_check(fd, size_bytes, ret_refusal, &snapshot);
    if (error == 0) {
        error = fill(&snapshot, fd, is_dead, ret_refusal);
    }
    if (error != 0) {
        seep_snapshot_fini(&snapshot);
        return error;
    }
    *ret_snapshot = snapshot;
    return 0;
}

void seep_snapshot_fini(struct seep_snapshot *snapshot)
{
    if (snapshot->bytes != NULL) {
        munmap(snapshot->bytes, snapshot->mapped_bytes);
    }
    free(snapshot->torn);
    snapshot->bytes = NULL;
    snapshot->torn = NULL;
}
