/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See process.h. */
#include "reader/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "reader/proc_text.h"

#define START_TIME_FIELD 22

bool seep_process_is_our_boot(const struct seep_rec_header *header)
{
    char text[64];
    char recorded[sizeof(header->boot_id) + 1] = "";

    if (seep_proc_text("/proc/sys/kernel/random/boot_id", text, sizeof(text)) <=
        0) {
        return false;
    }
    text[strcspn(text, "\n")] = '\0';
    memcpy(recorded, header->boot_id, sizeof(header->boot_id));
    return recorded[0] != '\0' && strcmp(text, recorded) == 0;
}

static bool is_our_namespace(const struct seep_rec_header *header)
{
    struct stat status;

    return stat("/proc/self/ns/pid", &status) == 0 &&
           header->pid_namespace == (uint64_t)status.st_ino;
}

/* State letter and start time; the name before them may hold anything. */
static bool parse_stat(const char *text, char *ret_state, uint64_t *ret_start)
{
    const char *at = strrchr(text, ')');

    if (at == NULL || at[1] != ' ' || at[2] == '\0') {
        return false;
    }
    at += 2;
    *ret_state = *at;
    for (int field = 3; field < START_TIME_FIELD; field++) {
        at = strchr(at, ' ');
        if (at == NULL) {
            return false;
        }
        at++;
    }
    *ret_start = strtoull(at, NULL, 10);
    return true;
}

enum seep_process_presence
seep_process_look(const struct seep_rec_header *header, bool *ret_stopped)
{
    char path[48];
    char text[1024];
    char state = 'X';
    uint64_t start = 0;
    ssize_t got;

    if (header->pid == 0 || header->process_start_clock == 0 ||
        !seep_process_is_our_boot(header) || !is_our_namespace(header)) {
        return SEEP_PRESENCE_UNKNOWN;
    }
    snprintf(path, sizeof(path), "/proc/%u/stat", header->pid);
    got = seep_proc_text(path, text, sizeof(text));
    if (got == -ENOENT || got == -ESRCH) {
        return SEEP_PRESENCE_AWAY;
    }
    if (got <= 0 || !parse_stat(text, &state, &start)) {
        return SEEP_PRESENCE_UNKNOWN;
    }
    if (start != header->process_start_clock || state == 'Z' || state == 'X') {
        return SEEP_PRESENCE_AWAY;
    }
    *ret_stopped = state == 'T' || state == 't';
    return SEEP_PRESENCE_HERE;
}

enum seep_process_presence
seep_process_presence_of(const struct seep_rec_header *header)
{
    bool stopped;

    return seep_process_look(header, &stopped);
}

enum seep_process_state
seep_process_state_of(struct seep_rec_header *header,
                      enum seep_process_presence presence)
{
    if (atomic_load_explicit(&header->has_status, memory_order_relaxed) != 0) {
        int status =
            (int)atomic_load_explicit(&header->status, memory_order_relaxed);

        return WIFSIGNALED(status) ? SEEP_STATE_KILLED : SEEP_STATE_EXITED;
    }
    if (atomic_load_explicit(&header->exited, memory_order_relaxed) != 0) {
        return SEEP_STATE_EXITED;
    }
    switch (presence) {
    case SEEP_PRESENCE_HERE:
        return SEEP_STATE_RUNNING;
    case SEEP_PRESENCE_AWAY:
        return SEEP_STATE_GONE;
    case SEEP_PRESENCE_UNKNOWN:
        break;
    }
    return SEEP_STATE_UNKNOWN;
}

uint64_t seep_process_now_tick(const struct seep_rec_header *header)
{
    uint64_t now_ns = seep_clock_ns(CLOCK_MONOTONIC);

    return now_ns > header->start_monotonic_ns
               ? (now_ns - header->start_monotonic_ns) >> SEEP_TICK_LOG2_NS
               : 0;
}
