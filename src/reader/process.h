/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Does the process that a recording is of still run?
 *
 * Asked of /proc/PID/stat alone, and only where the recorded boot and pid
 * namespace are ours: elsewhere the same number is another process.
 */
#ifndef SEEP_READER_PROCESS_H
#define SEEP_READER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "reader/report.h"
#include "seep/recording.h"

enum seep_process_presence {
    SEEP_PRESENCE_UNKNOWN,
    SEEP_PRESENCE_HERE,
    SEEP_PRESENCE_AWAY,
};

enum seep_process_presence
seep_process_presence_of(const struct seep_rec_header *header);

/** The same, and whether it was stopped (SIGSTOP, a debugger). */
enum seep_process_presence
seep_process_look(const struct seep_rec_header *header, bool *ret_stopped);

/** Was it recorded since this machine was booted? Then clocks agree. */
bool seep_process_is_our_boot(const struct seep_rec_header *header);

/** What the header's changing part and @presence say together. */
enum seep_process_state
seep_process_state_of(struct seep_rec_header *header,
                      enum seep_process_presence presence);

/** Ticks since the start of the recording, by this machine's clock. */
uint64_t seep_process_now_tick(const struct seep_rec_header *header);

#endif
