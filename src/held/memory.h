/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The memory of a target process, from outside: of one that lives, or of one
 * that left a core file.
 *
 * Invariant: the target process is not stopped, written to or made larger: a
 * page that is absent or in swap is not touched. All that is read is hostile:
 * an address is a guess until a read of it worked, and it ends in time.
 *
 * Units: bytes. Errors: 0 or negative errno; ret_* untouched on failure.
 * Ownership: strings live as long as the memory. Threads: one at a time.
 */
#ifndef SEEP_HELD_MEMORY_H
#define SEEP_HELD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SEEP_HELD_PAGE_BYTES 4096U
/** Above it no program of the kernel's 48 bits has anything. */
#define SEEP_HELD_ADDRESS_END (UINT64_C(1) << 47)

struct seep_held_map {
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;
    const char *path; /* "" if it has no name */
    bool is_readable;
    bool is_writable;
    bool is_code;
    bool is_shared;
    bool is_own;         /* of seep, in the target: its recording, libseep */
    uint8_t *no_word;    /* a bit a page: none of its words is an address */
    uint64_t core_bytes; /* of a core: how much of it is there, */
    uint64_t core_at;    /* and where in the file */
};

struct seep_held_thread {
    pid_t id;
    char name[32];
    uint64_t stack_pointer; /* 0: it was not to be had */
};

struct seep_held_stats {
    uint64_t read_bytes;    /* by scans */
    uint64_t absent_bytes;  /* of the last scan: no page was there, */
    uint64_t swapped_bytes; /* it is in swap, */
    uint64_t failed_bytes;  /* or it could not be read */
    uint32_t scan_count;
};

struct seep_held_memory {
    pid_t pid; /* of a core: the first thread's */
    int pagemap;
    int file;        /* /proc/PID/mem, where process_vm_readv() is refused */
    bool is_by_file; /* it is */
    struct seep_held_map *maps; /* by start */
    size_t map_count;
    struct seep_held_thread *threads;
    size_t thread_count;
    struct seep_held_stats stats;
    /* The rest is memory.c's and core.c's. */
    struct seep_held_page *pages;
    uint32_t generation;
    uint64_t present_bytes; /* of it, when it was opened: how much it is */
    double cpu_until_s;     /* reading ends then; 0: it does not */
    bool is_late;           /* it has ended */
    uint32_t read_count;    /* until the clock is looked at */
    uint64_t last_page;     /* of a core, and */
    uint32_t core_reads;    /* how often it was another */
    char *texts;
    uint8_t *window; /* what a scan reads into */
    const uint8_t *core;
    size_t core_bytes;
    uint64_t recording_inode;
    uint64_t recording_device;
};

/** What is to be read, and what of it is seep's own. */
struct seep_held_source {
    pid_t pid;
    const char *core_path; /* NULL: the process itself */
    int memory_fd; /* its /proc/PID/mem, of who could open it; 0: none */
    uint64_t recording_inode;
    uint64_t recording_device;
};

/**
 * @return 0; -EACCES, -EPERM: this user may not; -ESRCH: it is gone; -ENOEXEC:
 * no core file
 */
int seep_held_memory_open(const struct seep_held_source *source,
                          struct seep_held_memory *ret_memory);
void seep_held_memory_close(struct seep_held_memory *memory);

/** Look at mappings and threads anew, and forget what was read. */
int seep_held_memory_reload(struct seep_held_memory *memory);

/** Look at mappings anew, and keep what is known of those that are as they
 * were. Forgets what was read. */
int seep_held_memory_extend(struct seep_held_memory *memory);

/** Read for so many seconds of this process's own time; 0: without end. */
void seep_held_memory_allow(struct seep_held_memory *memory, double seconds);

/** Is the time over? Then nothing more can be read. */
bool seep_held_memory_is_late(struct seep_held_memory *memory);

/** Forget what was read: the process goes on. */
void seep_held_memory_forget(struct seep_held_memory *memory);

/** @return false: not all of it is there; then @to is undefined */
bool seep_held_read(struct seep_held_memory *memory, uint64_t address, void *to,
                    size_t bytes);

/** Of what cannot be read 0. */
uint64_t seep_held_word(struct seep_held_memory *memory, uint64_t address);
int32_t seep_held_int(struct seep_held_memory *memory, uint64_t address);

/** At most @capacity - 1 bytes up to a 0. @return false if there is none */
bool seep_held_string(struct seep_held_memory *memory, uint64_t address,
                      char *text, size_t capacity);

/** The mapping that @address lies in; NULL: none. */
struct seep_held_map *seep_held_map_at(const struct seep_held_memory *memory,
                                       uint64_t address);

/** Can blocks lie in it, or what holds them? */
bool seep_held_map_is_searched(const struct seep_held_map *map);

/** Aligned words of the target, a run of whole pages of @map. */
typedef void seep_held_visitor(void *context, struct seep_held_map *map,
                               const uint64_t *words, uint64_t address,
                               size_t word_count);

/** Show @visit all pages of @map that are there and have words. */
void seep_held_each_page(struct seep_held_memory *memory,
                         struct seep_held_map *map, seep_held_visitor *visit,
                         void *context);

/** The path under which a reader finds a file of the target's. */
void seep_held_path(const struct seep_held_memory *memory, const char *path,
                    char *text, size_t capacity);

/* core.c */

/** Mappings and threads from the file at @path. */
int seep_held_core_open(struct seep_held_memory *memory, const char *path);
/** Pages of the file that were read need not stay in memory. */
void seep_held_core_let_go(struct seep_held_memory *memory);
void seep_held_core_close(struct seep_held_memory *memory);

#endif
