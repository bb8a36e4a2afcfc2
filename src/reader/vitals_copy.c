/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of a recording that vitals are made of; see vitals_parts.h.
 *
 * Invariant: what is looked at was read once, into memory of our own, and its
 * header checked there: nobody can change it between a check and a use.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/check.h"
#include "format/layout.h"
#include "reader/open.h"
#include "reader/snapshot_copy.h"
#include "reader/vitals_parts.h"

static const enum seep_section wanted[] = {
    SEEP_SECTION_TIMELINE,
    SEEP_SECTION_DEVICES,
    SEEP_SECTION_COUNTERS,
    SEEP_SECTION_SHARDS,
};

static int copy_section(const struct seep_vitals_copy *copy,
                        enum seep_section which)
{
    const struct seep_rec_section *section =
        &copy->view.header->sections[which];

    return seep_snapshot_read(copy->fd,
                              (char *)copy->bytes + section->offset_bytes,
                              section->offset_bytes, section->bytes);
}

/* Of STRINGS nothing but the name of the program. */
static int copy_name(const struct seep_vitals_copy *copy)
{
    const struct seep_rec_header *header = copy->view.header;
    const struct seep_rec_section *strings =
        &header->sections[SEEP_SECTION_STRINGS];
    uint64_t bytes = SEEP_VITALS_NAME_BYTES;

    if (header->executable >= strings->bytes) {
        return 0;
    }
    if (bytes > strings->bytes - header->executable) {
        bytes = strings->bytes - header->executable;
    }
    return seep_snapshot_read(
        copy->fd,
        (char *)copy->bytes + strings->offset_bytes + header->executable,
        strings->offset_bytes + header->executable, bytes);
}

int seep_vitals_copy_refuse(struct seep_refusal *ret_refusal, int error)
{
    return error == -ENODATA
               ? seep_open_refuse_check(ret_refusal, SEEP_CHECK_TRUNCATED)
               : seep_open_refuse_errno(ret_refusal, error);
}

/* Map memory for the file and look at its first page. */
static int map_and_check(struct seep_vitals_copy *copy, uint64_t size_bytes,
                         struct seep_refusal *ret_refusal)
{
    enum seep_check_result result;
    uint64_t first =
        size_bytes < SEEP_PAGE_BYTES ? size_bytes : SEEP_PAGE_BYTES;
    int error;

    copy->mapped_bytes = SEEP_LAYOUT_MOST_BYTES;
    if (size_bytes < copy->mapped_bytes) {
        copy->mapped_bytes =
            size_bytes < SEEP_PAGE_BYTES ? SEEP_PAGE_BYTES : (size_t)size_bytes;
    }
    copy->bytes = mmap(NULL, copy->mapped_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy->bytes == MAP_FAILED) {
        copy->bytes = NULL;
        return seep_open_refuse_errno(ret_refusal, -errno);
    }
    error = seep_snapshot_read(copy->fd, copy->bytes, 0, first);
    if (error != 0) {
        return seep_vitals_copy_refuse(ret_refusal, error);
    }
    result = seep_check(copy->bytes, size_bytes < copy->mapped_bytes
                                         ? (size_t)size_bytes
                                         : copy->mapped_bytes);
    return result == SEEP_CHECK_VALID
               ? 0
               : seep_open_refuse_check(ret_refusal, result);
}

int seep_vitals_copy_init(int fd, uint64_t size_bytes,
                          struct seep_refusal *ret_refusal,
                          struct seep_vitals_copy *ret_copy)
{
    struct seep_vitals_copy copy = {.fd = fd};
    int error;

    if (size_bytes == 0) {
        return seep_open_refuse_check(ret_refusal, SEEP_CHECK_EMPTY);
    }
    error = map_and_check(&copy, size_bytes, ret_refusal);
    if (error == 0) {
        seep_view_init(&copy.view, copy.bytes);
        error = copy_name(&copy);
        error = error == 0 ? 0 : seep_vitals_copy_refuse(ret_refusal, error);
    }
    if (error != 0) {
        seep_vitals_copy_fini(&copy);
        return error;
    }
    *ret_copy = copy;
    return 0;
}

int seep_vitals_copy_fill(struct seep_vitals_copy *copy)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < sizeof(wanted) / sizeof(wanted[0]);
         i++) {
        error = copy_section(copy, wanted[i]);
    }
    return error;
}

void seep_vitals_copy_fini(struct seep_vitals_copy *copy)
{
    if (copy->bytes != NULL) {
        munmap(copy->bytes, copy->mapped_bytes);
        copy->bytes = NULL;
    }
    free(copy->others);
    copy->others = NULL;
}

bool seep_vitals_copy_series(const struct seep_vitals_copy *copy,
                             uint32_t index)
{
    const struct seep_rec_section *section =
        &copy->view.header->sections[SEEP_SECTION_SERIES];
    uint64_t offset = section->offset_bytes +
                      (uint64_t)index * sizeof(struct seep_rec_series);

    return index < copy->view.series_capacity &&
           seep_snapshot_read(copy->fd, (char *)copy->bytes + offset, offset,
                              sizeof(struct seep_rec_series)) == 0;
}
