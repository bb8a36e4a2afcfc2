/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the modelled sources call of those that are not modelled: the timeline,
 * the devices, the pace and the file itself do nothing here, and a reader gets
 * the shared memory in the place of a file. */
#include <sys/mman.h>

#include "engine.h"
#include "reader/recording/open.h"
#include "reader/recording/snapshot.h"
#include "record/modules.h"
#include "record/region.h"
#include "record/sampler.h"
#include "record/sites.h"
#include "record/timeline.h"

void seep_room_attach(struct seep_view *view)
{
    (void)view;
}

void seep_room_restrict(void)
{
}

void seep_timeline_start(void)
{
}

void seep_timeline_restrict(void)
{
}

void seep_timeline_recover(const struct seep_view *view, uint32_t thread)
{
    (void)view;
    (void)thread;
}

void seep_devices_start(void)
{
}

void seep_pace_start(const struct seep_view *view)
{
    (void)view;
}

void seep_pace_drop(void)
{
}

void seep_pace_restrict(const struct seep_view *view)
{
    (void)view;
}

void seep_pace_folded(const struct seep_view *view, uint32_t shard)
{
    (void)view;
    (void)shard;
}

void seep_sites_forget(void)
{
}

void seep_codes_forget(void)
{
}

int seep_open_refuse_errno(struct seep_refusal *ret_refusal, int error)
{
    (void)ret_refusal;
    return error;
}

int seep_open_refuse_read(struct seep_refusal *ret_refusal, int error)
{
    (void)ret_refusal;
    return error;
}

int seep_snapshot_open_copy(struct seep_snapshot *snapshot, int fd,
                            uint64_t size_bytes,
                            struct seep_refusal *ret_refusal)
{
    void *bytes = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)fd;
    (void)ret_refusal;
    if (bytes == MAP_FAILED) {
        return -1;
    }
    snapshot->bytes = bytes;
    snapshot->mapped_bytes = size_bytes;
    return seep_snapshot_read(0, bytes, 0, SEEP_PAGE_BYTES);
}

/* Of a process that is dead: no step of its is between two of these reads. */
int seep_snapshot_copy_data(struct seep_snapshot *snapshot, int fd)
{
    return seep_snapshot_read(fd, (char *)snapshot->bytes + SEEP_PAGE_BYTES,
                              SEEP_PAGE_BYTES,
                              snapshot->file_bytes - SEEP_PAGE_BYTES);
}

void seep_snapshot_clear_copy(struct seep_snapshot *snapshot)
{
    (void)snapshot;
}

uint64_t seep_snapshot_data_end(const struct seep_snapshot *snapshot,
                                enum seep_section which)
{
    return snapshot->view.header->sections[which].bytes;
}

void seep_snapshot_give_back(const struct seep_snapshot *snapshot, void *part,
                             size_t bytes)
{
    (void)snapshot;
    (void)part;
    (void)bytes;
}

void seep_snapshot_leave_copy(struct seep_snapshot *snapshot)
{
    if (snapshot->bytes != NULL) {
        munmap(snapshot->bytes, snapshot->mapped_bytes);
    }
    snapshot->bytes = NULL;
}

int seep_open_read_whole(int fd, void *to, uint64_t offset, uint64_t bytes)
{
    (void)fd;
    model_read(to, offset, bytes);
    return 0;
}

int seep_snapshot_read_sparse(int fd, void *to, uint64_t offset, uint64_t bytes)
{
    return seep_snapshot_read(fd, to, offset, bytes);
}
