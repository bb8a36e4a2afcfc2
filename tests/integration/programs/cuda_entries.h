/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** What the parts of cuda_entries keep books in. */
#ifndef SEEP_TESTS_CUDA_ENTRIES_H
#define SEEP_TESTS_CUDA_ENTRIES_H

#include <stdbool.h>
#include <stdint.h>

#include "../../fake/cuda_abi.h"
#include "../../fake/seep_fake.h"

#define SITE __attribute__((noinline)) static
#define NO_DEVICE (-1)
/* Of threads, of contexts that end, and of two that are reset. */
#define THREAD_DEVICES 2
#define LAST_DEVICE 2
#define RESET_DEVICE 3
#define DEVICE_COUNT 5
#define TOO_MANY ((size_t)1 << 50)

/*
 * X(symbol, the function's name, space, kind of the fake driver). Those of
 * SEEP_FAKE_KINDS have no one kind there.
 */
#define ENTRY_SITES(X)                                                       \
    X(ARRAY_2D, "site_array_2d", "device", SEEP_FAKE_ARRAY)                  \
    X(ARRAY_3D, "site_array_3d", "device", SEEP_FAKE_ARRAY)                  \
    X(ARRAY_SPARSE, "site_array_sparse", "device", SEEP_FAKE_KINDS)          \
    X(MIPMAP_3D, "site_mipmap_3d", "device", SEEP_FAKE_ARRAY)                \
    X(EXPORTED, "site_exported", "device", SEEP_FAKE_DEVICE)                 \
    X(IPC_OLD, "site_ipc_old", "imported", SEEP_FAKE_IMPORTED)               \
    X(EXTERNAL, "site_external", "imported", SEEP_FAKE_KINDS)                \
    X(EXTERNAL_PART, "site_external_part", "imported", SEEP_FAKE_KINDS)      \
    X(EXTERNAL_MIPMAP, "site_external_mipmap", "imported", SEEP_FAKE_KINDS)  \
    X(NODE, "site_node", "device", SEEP_FAKE_KINDS)                          \
    X(NODE_GENERAL, "site_node_general", "device", SEEP_FAKE_KINDS)          \
    X(NODE_EDGES, "site_node_edges", "device", SEEP_FAKE_KINDS)              \
    X(NODE_CAPTURED, "site_node_captured", "device", SEEP_FAKE_KINDS)        \
    X(POOL_TWIN, "site_pool_twin", "device", SEEP_FAKE_ASYNC)                \
    X(ASYNC_TWIN, "site_async_twin", "device", SEEP_FAKE_ASYNC)              \
    X(POOL_IMPORT, "site_pool_import", "imported", SEEP_FAKE_IMPORTED)       \
    X(CREATE, "site_create", "device", SEEP_FAKE_PHYSICAL)                   \
    X(CREATE_HOST, "site_create_host", "pinned", SEEP_FAKE_PHYSICAL)         \
    X(RESERVE, "site_reserve", "reserved", SEEP_FAKE_RESERVED)               \
    X(MAP_IMPORT, "site_map_import", "imported", SEEP_FAKE_IMPORTED)         \
    X(REGISTER_OLD, "site_register_old", "registered", SEEP_FAKE_REGISTERED) \
    X(MULTICAST, "site_multicast", "device", SEEP_FAKE_KINDS)                \
    X(IN_DEVICE, "site_in_device", "device", SEEP_FAKE_DEVICE)               \
    X(IN_PITCH, "site_in_pitch", "device", SEEP_FAKE_DEVICE)                 \
    X(IN_MANAGED, "site_in_managed", "managed", SEEP_FAKE_MANAGED)           \
    X(IN_HOST, "site_in_host", "pinned", SEEP_FAKE_PINNED)                   \
    X(IN_ARRAY, "site_in_array", "device", SEEP_FAKE_ARRAY)                  \
    X(OUT_ASYNC, "site_out_async", "device", SEEP_FAKE_ASYNC)                \
    X(OUT_CREATE, "site_out_create", "device", SEEP_FAKE_PHYSICAL)           \
    X(RACED, "site_raced", "device", SEEP_FAKE_DEVICE)

enum entry_site {
#define ENTRY_SITE_VALUE(symbol, function, space, kind) SITE_##symbol,
    ENTRY_SITES(ENTRY_SITE_VALUE)
#undef ENTRY_SITE_VALUE
        SITE_COUNT
};

extern size_t entry_unit_bytes; /* of physical memory */
extern const CUmemAllocationProp entry_physical[DEVICE_COUNT];

/** A thing came (@number 1, @bytes) or went (-1, -@bytes). */
void entry_count(enum entry_site site, int device, uint64_t bytes, int number);

/** A call that must give this; anything else fails the program. */
bool entry_expect(CUresult result, CUresult wanted, int line);
void entry_unknown(CUresult result, int line);
#define DONE(call) entry_expect(call, CUDA_SUCCESS, __LINE__)
#define REFUSED(call) entry_expect(call, CUDA_SUCCESS, -__LINE__)
/** Likewise, and it would have freed what is not there. */
#define UNKNOWN(call) entry_unknown(call, __LINE__)

/** One round of a thread on @device, whose context is current. @leave: what is
 * made stays. */
void entry_round(int device, unsigned round, bool leave);

/** Of it, physical memory. */
void entry_vmm(int device, unsigned round, bool leave);

/** Two frees of one thing, calls that are refused: nobody else is there. */
void entry_refuse(int device);

/** What ends with contexts and pools, and what does not; @old: by the first
 * names of these entry points. */
void entry_end(bool old);

#endif
