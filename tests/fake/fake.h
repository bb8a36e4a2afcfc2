/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the parts of the fake driver share: the one lock, the objects behind
 * handles and pointers, the memory that stands for the devices'.
 *
 * Invariant: everything but fake_enter is called with the lock held; nothing
 * here uses malloc or libc's mmap, so that a recorder of the host's memory sees
 * nothing of the driver's own, as with the real one's ioctls.
 */
#ifndef SEEP_TESTS_FAKE_H
#define SEEP_TESTS_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "seep_fake.h"

#define FAKE_DEVICES_MOST 16
#define FAKE_BLOCK_BYTES UINT64_C(512)
#define FAKE_GRANULARITY_BYTES (UINT64_C(2) << 20)
#define FAKE_EXPORT __attribute__((visibility("default")))

enum fake_entry {
#define FAKE_ENTRY(name, base, version, twin, parameters) FAKE_INDEX_##name,
#include "entry_points.def"
#undef FAKE_ENTRY
    FAKE_ENTRIES
};

enum fake_type {
    FAKE_FREE,
    FAKE_CONTEXT,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_DEVICE,  /* address of its own, charged */
    FAKE_MANAGED, /* address in host memory */
    FAKE_ASYNC,   /* owner: pool */
    FAKE_PINNED,  /* address in host memory */
    FAKE_REGISTERED,
    FAKE_RESERVED, /* address space */
    FAKE_PHYSICAL, /* VMM handle: refs and uses (mappings, imports) */
    FAKE_HANDLE,   /* imported VMM handle; owner: physical, if ours */
    FAKE_MAP,      /* owner: physical, handle or multicast */
    FAKE_MULTICAST,
    FAKE_POOL,
    FAKE_IPC,    /* mapping of an exported allocation, counted by refs */
    FAKE_SHARED, /* pointer imported through a pool */
    FAKE_EXTERNAL,
    FAKE_BUFFER, /* mapped from external memory */
    FAKE_ARRAY,
    FAKE_MIPMAP,
    FAKE_GRAPH,
    FAKE_NODE,   /* owner: graph; target: memory */
    FAKE_MEMORY, /* allocation of a graph; flags & 1 while it is live */
    FAKE_EXEC,   /* owner: graph */
    FAKE_MODULE,
    FAKE_LIBRARY,
    FAKE_TYPES
};

#define FAKE_BIT(type) (UINT32_C(1) << (type))
/* What cuMemFree takes. */
#define FAKE_FREED_BY_POINTER                                                \
    (FAKE_BIT(FAKE_DEVICE) | FAKE_BIT(FAKE_MANAGED) | FAKE_BIT(FAKE_ASYNC) | \
     FAKE_BIT(FAKE_SHARED) | FAKE_BIT(FAKE_BUFFER) | FAKE_BIT(FAKE_MEMORY))

struct fake_object {
    enum fake_type type;
    uint32_t generation; /* how often the slot was used */
    uint32_t refs;       /* references that callers hold */
    uint32_t uses;       /* of it by other objects */
    int device;
    uint32_t flags;
    struct fake_object *context; /* that takes it along, or NULL */
    struct fake_object *owner;
    struct fake_object *target;
    uint64_t address;
    uint64_t size_bytes;
    uint64_t charged_bytes; /* of the device */
    uint64_t offset_bytes;  /* in the memory file, or in target's memory */
    uint64_t numbers[6];    /* by type: a pool's figures, an array's form */
    int fd;                 /* of another process's memory, or -1 */
    struct fake_object *previous, *next; /* of its type */
    struct fake_object *chained;         /* same hash of address */
};

struct fake_device {
    uint64_t used_bytes;
    uint64_t graph_used_bytes, graph_used_high_bytes;
    uint64_t graph_reserved_bytes, graph_reserved_high_bytes;
    struct fake_object *primary;
    struct fake_object *pool, *default_pool;
};

struct fake_settings {
    uint64_t memory_bytes, host_bytes, context_bytes, code_bytes;
    uint64_t latency_ns;
    int devices;
    int version;
    char others[256]; /* file: what other processes hold; empty: nothing */
    bool distinct;    /* cuGetProcAddress gives other addresses than dlsym */
    bool sets_errno;  /* to the number of the entry point, at each call */
    bool host_calls;  /* mallocs inside the calls, as the real driver does */
};

extern struct fake_settings fake_settings;
extern struct fake_device fake_devices[FAKE_DEVICES_MOST];

/* fake_state.c: the lock, who may call, what is counted */
CUresult fake_enter(enum fake_entry entry, bool before_init);
CUresult fake_leave(CUresult result);
CUresult fake_start(void);
CUresult fake_fault(void); /* of an allocating call, if one is planned */
void fake_asked(void);     /* a query; counts those made in a capture */
void fake_live(enum fake_type type, int64_t bytes, int count);
int64_t fake_entry_called(enum fake_entry entry);

/* fake_object.c */
struct fake_object *fake_new(enum fake_type type, uint64_t address);
void fake_delete(struct fake_object *object);
void fake_place(struct fake_object *object, uint64_t address);
struct fake_object *fake_first(enum fake_type type);
/* NULL unless it is a live object of the type. */
struct fake_object *fake_check(const void *handle, enum fake_type type);
uint64_t fake_number(const struct fake_object *object);
struct fake_object *fake_by_number(uint64_t number, uint32_t types);
struct fake_object *fake_at(uint64_t address, uint32_t types);
struct fake_object *fake_around(uint64_t address, uint32_t types);

/* fake_memory.c: device -1 is the host */
uint64_t fake_free_bytes(int device);
bool fake_charge(int device, uint64_t bytes);
void fake_discharge(int device, uint64_t bytes);
uint64_t fake_take(int device, uint64_t bytes, uint64_t *offset);
void fake_give(int device, uint64_t offset, uint64_t bytes);
uint64_t fake_rounded(uint64_t bytes, uint64_t unit);
uint64_t fake_map_space(uint64_t bytes, uint64_t align, uint64_t hint);
void fake_unmap_space(uint64_t address, uint64_t bytes);
bool fake_map_file(uint64_t address, uint64_t bytes, int fd, uint64_t offset,
                   bool accessible);
void fake_map_nothing(uint64_t address, uint64_t bytes);
void fake_protect(uint64_t address, uint64_t bytes, CUmemAccess_flags flags);
int fake_memory_file(void);
void *fake_zeroed(uint64_t bytes); /* for the driver's own tables */

/* What a handle of this process's memory says to another. */
struct fake_name {
    uint64_t magic;
    int32_t pid;
    int32_t fd;
    uint64_t offset_bytes;
    uint64_t size_bytes;
    uint64_t number; /* of the object */
    int32_t device;
    int32_t spare;
};
/* Maps what a name says into this process; 0 when it cannot be. */
uint64_t fake_name_map(const struct fake_name *name);
void fake_name_write(void *to, const struct fake_object *object);
bool fake_name_read(const void *from, struct fake_name *name);
bool fake_name_is_ours(const struct fake_name *name);
int fake_name_open(const struct fake_name *name);
int fake_name_file(const struct fake_object *object);
bool fake_name_from_file(int fd, struct fake_name *name);

/* driver_context.c */
struct fake_object *fake_context(CUresult *why);
CUresult fake_no_context(void);
void fake_context_empty(struct fake_object *context);

/* driver_memory.c, driver_pool.c ...: how each kind ends */
CUresult fake_allocate(struct fake_object **made, enum fake_type type,
                       int device, uint64_t bytes);
void fake_end(struct fake_object *object);
void fake_release_use(struct fake_object *object);
CUresult fake_free_pointer(CUdeviceptr pointer, CUstream stream, bool async);
struct fake_object *fake_pool_default(int device);
void fake_pool_idle(int device);
bool fake_pools_trim(int device);
void fake_pool_returned(struct fake_object *allocation);
void fake_graph_returned(struct fake_object *memory);
void fake_graph_forget(struct fake_object *graph);
CUresult fake_graph_memory(struct fake_object *graph, int device,
                           uint64_t bytes, CUdeviceptr *pointer,
                           struct fake_object **made_node);
CUresult fake_graph_free_node(struct fake_object *graph, CUdeviceptr pointer,
                              struct fake_object **made_node);

/* driver_stream.c */
struct fake_stream_of {
    struct fake_object *stream; /* NULL: a default stream */
    struct fake_object *graph;  /* that it is captured into, or NULL */
    int device;
};
CUresult fake_stream(CUstream handle, struct fake_stream_of *of);
CUresult fake_capture_forbids(void);
void fake_stream_ends(struct fake_object *stream);
bool fake_capturing(void);

/*
 * One entry point: counted, its caller checked, `call` made under the lock.
 */
#define FAKE_DEFINE(name, parameters, call)                           \
    FAKE_EXPORT CUresult name parameters                              \
    {                                                                 \
        CUresult fake_entered = fake_enter(FAKE_INDEX_##name, false); \
        if (fake_entered != CUDA_SUCCESS) {                           \
            return fake_entered;                                      \
        }                                                             \
        return fake_leave(call);                                      \
    }

#endif
