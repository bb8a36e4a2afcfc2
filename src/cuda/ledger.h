/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What is live in the driver: every pointer, handle, mapping, array and
 * import that the program holds, and what the driver takes back by itself; and
 * the table by which the recorder is told of it.
 *
 * Invariant: a thing is live while references > 0 or maps > 0, and only then
 * the recorder knows it. It leaves before the driver is asked to take it, so
 * that whoever is given the same address next finds it free, and is put back
 * if the driver refuses. What is not known is counted and otherwise left to
 * the driver: nothing here fails, waits, allocates, or makes a system call.
 *
 * A wrapper that is not inside another one (hooks.h) does
 *
 *     result = real_allocate(...);       leave = seep_cuda_ledger_leave(...);
 *     if (result == 0)                   result = real_free(...);
 *         seep_cuda_ledger_add(...);     seep_cuda_ledger_settle(&leave,
 *                                                                result == 0);
 *
 * Threads: any number. One word of each entry holds its phase and counts, and
 * changes by compare and swap; the table is fixed and never moves an entry.
 */
#ifndef SEEP_CUDA_LEDGER_H
#define SEEP_CUDA_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "seep/recording.h"

/*
 * What the CUDA part tells the recorder: the preload fills the table once, at
 * its start; while it is empty nothing is told.
 *
 * Invariant: of one key the events come in the order of what happened: it is
 * allocated after the driver gave it, freed before the driver is asked to take
 * it, restored if the driver then refused. Keys are not addresses of the
 * process: their upper byte, never 0, says what kind of thing it is, so no two
 * kinds meet, nor any of them a block of the heap.
 */

struct seep_capture_start;
struct seep_devices_sample;

/** What freed() gives and restored() wants: the tick of the event. */
struct seep_cuda_out {
    bool recorded;
    uint32_t tick;
};

struct seep_cuda_events {
    /** @param device  ordinal, -1 if it is not known or there is none */
    void (*allocated)(const struct seep_capture_start *from,
                      enum seep_space space, int device, uint64_t key,
                      uint64_t size_bytes);
    struct seep_cuda_out (*freed)(uint64_t key);
    void (*restored)(uint64_t key, struct seep_cuda_out out);
    /** What @device has left, without what PyTorch's allocator says of itself;
     * NULL: it is not wanted, and not asked for. */
    void (*headroom)(int device, struct seep_devices_sample *sample);
    /** The driver was looked for: what it gives will soon be told, perhaps by
     * several threads at once. NULL: nobody wants to know. */
    void (*expect)(void);
};

extern _Atomic(const struct seep_cuda_events *) seep_cuda_events_table
    __attribute__((visibility("hidden")));

/** Set by the preload when its recorder is ready; NULL: tell nothing. The
 * table is never freed, and its functions never fail. */
static inline void seep_cuda_events_set(const struct seep_cuda_events *events)
{
    /* Release: whoever finds the table sees its functions; pairs with the
     * acquire in seep_cuda_events(). */
    atomic_store_explicit(&seep_cuda_events_table, events,
                          memory_order_release);
}

static inline const struct seep_cuda_events *seep_cuda_events(void)
{
    /* Acquire: pairs with the release in seep_cuda_events_set(). */
    return atomic_load_explicit(&seep_cuda_events_table, memory_order_acquire);
}

/** What the CUDA part counts, by the counters of the recording that begin with
 * CUDA_: they only rise, and nothing is decided by them. */
uint64_t seep_cuda_count(enum seep_counter counter);
void seep_cuda_count_add(enum seep_counter counter);

/* The ledger. */

struct seep_cuda_block {
    enum seep_cuda_kind kind;
    enum seep_space space;
    int device; /* ordinal, -1: not known */
    /* Known and told to nobody: what has no memory of its own (a multicast
     * object, the memory of a graph's node, a sparse array). */
    bool silent;
    uint64_t value; /* the pointer or handle */
    uint64_t size_bytes;
    /* The context that it dies with; NULL for what outlives contexts: memory
     * of cuMemCreate, of pools and of cuMemAllocAsync. */
    const void *context;
    /* What it keeps alive, its value and kind; 0: nothing. A mapping does so
     * by seep_cuda_ledger_map(), the buffer of an external memory by this. */
    uint64_t holder;
    enum seep_cuda_kind holder_kind;
};

/** Between leaving and settling; of the caller's stack, all 0 at first. */
struct seep_cuda_leave {
    uint64_t reference; /* to its entry, in one life of that; 0: not known */
    bool again;         /* another thread's free of the same is under way */
};

/** Of a range. */
struct seep_cuda_leave_range {
    uint64_t address;
    uint64_t size_bytes;
    bool known;
};

/**
 * The driver gave @block. One that was known by this value is gone: it is
 * closed first (its free was not seen), but a SEEP_CUDA_IPC counts one open
 * more.
 */
void seep_cuda_ledger_add(const struct seep_capture_start *from,
                          const struct seep_cuda_block *block);

/** The driver gave one reference more (cuMemRetainAllocationHandle). */
void seep_cuda_ledger_retain(enum seep_cuda_kind kind, uint64_t value);

/** Before the driver is asked to take one reference. NULL (0) is no thing. */
struct seep_cuda_leave seep_cuda_ledger_leave(enum seep_cuda_kind kind,
                                              uint64_t value);

/** After it: @gone, or refused. */
void seep_cuda_ledger_settle(const struct seep_cuda_leave *leave, bool gone);

/** cuMemMap succeeded: @handle lives while it is mapped. Of an imported handle
 * nobody tells the size, so its mappings are recorded, from here. */
void seep_cuda_ledger_map(const struct seep_capture_start *from,
                          uint64_t address, uint64_t size_bytes,
                          uint64_t handle);

/** Around cuMemUnmap: every mapping inside the range. */
struct seep_cuda_leave_range seep_cuda_ledger_unmap(uint64_t address,
                                                    uint64_t size_bytes);
void seep_cuda_ledger_unmap_settle(const struct seep_cuda_leave_range *range,
                                   bool gone);

/**
 * Contexts. The mark is taken before the driver is asked, the rest done when
 * it has destroyed @context: only then one knows (a primary context ends with
 * its last release), and what came after the mark is of the next context at
 * the same address. A primary context's handle is for the wrapper to know.
 */
uint32_t seep_cuda_ledger_mark(void);
void seep_cuda_ledger_context_gone(uint32_t mark, const void *context);

/** The recorder, or NULL: then nothing is told. */
const struct seep_cuda_events *seep_cuda_ledger_events(void);

/** The key of events of a thing that has no other of its value. */
uint64_t seep_cuda_ledger_key(enum seep_cuda_kind kind, uint64_t value);

/** Was anything ever added? Then the driver is in use in this process. */
bool seep_cuda_ledger_was_used(void);

/** In the child of a fork, where the driver is unusable: forget, for good. */
void seep_cuda_ledger_abandon(void);

/** What the program's calls hold of a device now, in space device: a sum that
 * is kept, of what the recorder was told. */
uint64_t seep_cuda_ledger_held_bytes(int device);

#endif
