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

/** What is asked of a file: the code at @offset, or the members of a thing. */
struct seep_wall_question {
    const struct seep_symbol_module *source;
    bool is_map; /* it is a JIT's map, and has no build-id */
    uint64_t offset;
    const struct seep_symbol_thing *thing; /* NULL: code is asked for */
};

/** Of the name of a class. */
#define SEEP_WALL_CLASS_BYTES_MAX 1024U

/** Behind the wall: the frames, which live until it ends. */
typedef int seep_wall_answer(void *context,
                             const struct seep_wall_question *question,
                             struct seep_symbol_answer *ret_answer);

/** Behind the wall: what is asked of the file at @path, or of @path as a text,
 * as bytes that live until it ends; @most at most. */
typedef int seep_wall_read(void *context, const char *path, uint32_t what,
                           uint64_t most, void **ret_bytes,
                           uint64_t *ret_count);

/** Start from an all-zero struct with .answer or .read, and .context. */
struct seep_wall {
    seep_wall_answer *answer;
    seep_wall_read *read;
    void *context;
    bool is_absent;    /* for tests that try many files: .read is called in
                          this process */
    bool asks_servers; /* it may use the network: no filter of system calls */
    pid_t child;       /* 0: none yet, or no more */
    int socket;
    uint64_t first;  /* hash of what its child was asked first */
    bool is_crowded; /* it was asked for other files, too */
    struct seep_wall_message *message;
};

/** What a file has cost so far: it has a deadline. */
struct seep_wall_spent {
    uint64_t cpu_ns;  /* of the child's */
    uint64_t wait_ns; /* of ours */
};

/**
 * Ask. A child is begun if there is none, and is gone after a failure that may
 * have hurt it; if other files were open in it, the file is tried once more in
 * one of its own.
 *
 * @param memory  what the answer is copied into
 */
int seep_wall_ask(struct seep_wall *wall,
                  const struct seep_wall_question *question,
                  struct seep_wall_spent *spent,
                  struct seep_symbol_memory *memory,
                  struct seep_symbol_answer *ret_answer);

/** What .read is asked. */
struct seep_wall_request {
    const char *path;
    uint32_t what;       /* not 0 */
    uint64_t most_bytes; /* of what it answers */
    uint64_t most_ns;    /* of the child's processor; 0: as long as others */
};

/**
 * The same for bytes.
 *
 * @param ret_bytes  to be freed; a stranger may have made them
 * @return -EFBIG: there are more
 */
int seep_wall_request(struct seep_wall *wall,
                      const struct seep_wall_request *request,
                      struct seep_wall_spent *spent, void **ret_bytes,
                      uint64_t *ret_count);

/** End the child; the next question begins another. */
void seep_wall_rest(struct seep_wall *wall);

/** End the child. */
void seep_wall_fini(struct seep_wall *wall);

/**
 * Behind the wall, of each file before it is parsed: it may be mapped whole
 * besides the memory that there is. @return 0, or -EFBIG
 */
int seep_wall_admit(uint64_t size_bytes);

#endif
