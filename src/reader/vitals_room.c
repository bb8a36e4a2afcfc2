/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a process has left; see vitals_parts.h. Invariant: what belongs to
 * another machine or another control group is never taken for its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/word.h"
#include "reader/look_cgroup.h"
#include "reader/proc_text.h"
#include "reader/vitals_parts.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define TEXT_BYTES 8192
#define AVAILABLE "\nMemAvailable:"
#define TOTAL "MemTotal:"

static void offer(struct seep_vitals_room *room,
                  enum seep_vitals_room_kind kind, uint64_t left_bytes,
                  uint64_t limit_bytes, bool recorded)
{
    if (limit_bytes != 0 &&
        (room->kind == SEEP_ROOM_UNKNOWN || left_bytes < room->left_bytes)) {
        *room =
            (struct seep_vitals_room){kind, left_bytes, limit_bytes, recorded};
    }
}

static void offer_cgroup(uint32_t pid, struct seep_vitals_room *room)
{
    char path[48];
    char text[TEXT_BYTES];
    uint64_t left;
    uint64_t limit;

    snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
    if (seep_proc_text(path, text, sizeof(text)) > 0) {
        seep_look_cgroup_room(text, CGROUP_ROOT, &left, &limit);
        offer(room, SEEP_ROOM_CGROUP, left, limit, false);
    }
}

/* "MemAvailable:   12 kB" */
static void offer_machine(struct seep_vitals_room *room)
{
    char text[TEXT_BYTES];
    const char *available;
    const char *total;

    if (seep_proc_text("/proc/meminfo", text, sizeof(text)) <= 0) {
        return;
    }
    available = strstr(text, AVAILABLE);
    total = strstr(text, TOTAL);
    if (available != NULL && total != NULL) {
        offer(room, SEEP_ROOM_MACHINE,
              strtoull(available + strlen(AVAILABLE), NULL, 10) * 1024,
              strtoull(total + strlen(TOTAL), NULL, 10) * 1024, false);
    }
}

/* The last that it was told of its group. */
static void offer_recorded(const struct seep_view *view,
                           struct seep_vitals_room *room)
{
    uint32_t capacity =
        view->header->sections[SEEP_SECTION_TIMELINE].entry_count;
    const struct seep_rec_moment *last = NULL;

    for (uint32_t i = 0; i < capacity; i++) {
        const struct seep_rec_moment *moment = &view->timeline[i];

        if (seep_word_load(&moment->cgroup_bytes) != 0 &&
            (last == NULL ||
             seep_word_load(&moment->tick) >= seep_word_load(&last->tick))) {
            last = moment;
        }
    }
    if (last != NULL) {
        uint64_t bytes = seep_word_load(&last->cgroup_bytes);
        uint64_t limit = seep_word_load(&last->cgroup_limit_bytes);

        offer(room, SEEP_ROOM_CGROUP, limit > bytes ? limit - bytes : 0, limit,
              true);
    }
}

void seep_vitals_add_room(const struct seep_vitals_copy *copy,
                          enum seep_process_presence presence,
                          struct seep_vitals *vitals)
{
    if (presence == SEEP_PRESENCE_HERE) {
        offer_cgroup(vitals->pid, &vitals->room);
    } else {
        offer_recorded(&copy->view, &vitals->room);
    }
    if (seep_process_is_our_boot(copy->view.header)) {
        offer_machine(&vitals->room);
    }
}
