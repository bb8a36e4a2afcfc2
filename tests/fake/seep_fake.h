/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a test may ask of the fake driver and do to it. Exported by the library
 * beside the driver's own names; a test gets at it by linking or by dlsym.
 *
 * Invariant: nothing here counts as a call of the driver.
 */
#ifndef SEEP_TESTS_SEEP_FAKE_H
#define SEEP_TESTS_SEEP_FAKE_H

#include <stdint.h>

/* What holds memory, as the driver knows it. */
enum seep_fake_kind {
    SEEP_FAKE_DEVICE,     /* cuMemAlloc, cuMemAllocPitch */
    SEEP_FAKE_MANAGED,    /* cuMemAllocManaged */
    SEEP_FAKE_ASYNC,      /* cuMemAllocAsync, cuMemAllocFromPoolAsync */
    SEEP_FAKE_PHYSICAL,   /* cuMemCreate, while handles or mappings live */
    SEEP_FAKE_PINNED,     /* cuMemHostAlloc, cuMemAllocHost */
    SEEP_FAKE_REGISTERED, /* cuMemHostRegister: no memory of its own */
    SEEP_FAKE_RESERVED,   /* cuMemAddressReserve: no memory */
    SEEP_FAKE_MAPPED,     /* cuMemMap: no memory of its own */
    SEEP_FAKE_IMPORTED,   /* IPC, imported handles and pool pointers */
    SEEP_FAKE_EXTERNAL,   /* cuImportExternalMemory and its buffers */
    SEEP_FAKE_ARRAY,      /* arrays and mipmapped arrays */
    SEEP_FAKE_GRAPH,      /* allocations of graphs, while they are live */
    SEEP_FAKE_MULTICAST,  /* cuMulticastCreate: no memory */
    SEEP_FAKE_CODE,       /* modules and libraries */
    SEEP_FAKE_CONTEXT,    /* contexts */
    SEEP_FAKE_OTHER,      /* streams, events, pools, graphs: no memory */
    SEEP_FAKE_KINDS
};

/* Bytes as they were asked for; pitch and arrays as they are laid out. */
uint64_t seep_fake_live_bytes(enum seep_fake_kind kind);
uint64_t seep_fake_live_count(enum seep_fake_kind kind);
const char *seep_fake_kind_name(enum seep_fake_kind kind);

/* What cuMemGetInfo takes for used: rounded bytes, pools, contexts, code. */
uint64_t seep_fake_device_used(int device);

/* Calls of an exported name, such as "cuMemFreeAsync_ptsz"; of all for NULL. */
uint64_t seep_fake_calls(const char *exported_name);
/* Calls that ended in this result; in any but success for -1. */
uint64_t seep_fake_results(int result);
/* cuMemGetInfo and attribute queries made while a capture ran. */
uint64_t seep_fake_asked_in_capture(void);

/* The count-th allocating call from now fails with result; 0 turns it off. */
void seep_fake_fail(uint64_t count, int result);
/* Every call takes at least this long. */
void seep_fake_latency(uint64_t latency_ns);

#endif
