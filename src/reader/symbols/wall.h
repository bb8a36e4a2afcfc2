/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The wall: files that a stranger may have written are parsed in a child.
 *
 * The child is forked from the reader and has all that it knows, but little
 * memory and time, no rights, and no way out but its answers. What hurts it
 * costs the names of one module, nothing else.
 *
 * Errors: negative errno of one module, never of the reader:
 * -ECHILD it ended the child, -ETIMEDOUT it took too long, -ENOMEM too much,
 * -EFBIG it would, -EBADMSG its answer is none, -EAGAIN there is no child.
 * Threads: one at a time.
 */
#ifndef SEEP_READER_SYMBOLS_WALL_H
#define SEEP_READER_SYMBOLS_WALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "reader/symbols/names.h"

/** Of one answer: more than a chain of inlined calls has. */
#define SEEP_WALL_FRAMES_MAX 64

/** What a file may become when it is inflated, all of its sections. */
#define SEEP_WALL_INFLATED_MAX (UINT64_C(512) << 20)

/** Behind the wall: the frames of @offset, which live until it ends. */
typedef int seep_wall_answer(void *context, size_t module, uint64_t offset,
                             struct seep_symbol_answer *ret_answer);

/** Start from an all-zero struct with .answer and .context. */
struct seep_wall {
    seep_wall_answer *answer;
    void *context;
    bool asks_servers; /* it may use the network: no filter of system calls */
    pid_t child;       /* 0: none yet, or no more */
    int socket;
    struct seep_wall_message *message;
};

/**
 * Ask for @offset of @module. A child is begun if there is none, and is gone
 * after a failure that may have hurt it.
 *
 * @param spent_ns    of this module so far: it has a deadline
 * @param memory      what the answer is copied into
 */
int seep_wall_ask(struct seep_wall *wall, size_t module, uint64_t offset,
                  uint64_t *spent_ns, struct seep_symbol_memory *memory,
                  struct seep_symbol_answer *ret_answer);

/** End the child. */
void seep_wall_fini(struct seep_wall *wall);

/**
 * Behind the wall, of each file before it is parsed: it may be mapped whole
 * besides the memory that there is. @return 0, or -EFBIG
 */
int seep_wall_admit(uint64_t size_bytes);

#endif
