/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Allocates and frees every kind of the driver's memory by one door, from some
 * threads, frees by others than allocated, makes wrong calls in between, and
 * prints what is left by call site: the truth that a recording must tell.
 *
 *   cuda_doors DOOR [THREADS [OPERATIONS]]
 *
 * Invariant: each site is one function, named in the output, and makes the one
 * call that it is named for; what is left at the end is never freed. On the
 * fake driver the truth is compared with the driver's own account.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../fake/seep_fake.h"
#include "cuda_doors.h"

#define SLOTS 512
#define PAGE 4096
#define SITE static __attribute__((noinline))
#define READ(counter) atomic_load_explicit(&(counter), memory_order_relaxed)

/* X(symbol, the function's name, space, kind of the fake driver) */
#define SITES(X)                                                     \
    X(DEVICE, "site_device", "device", SEEP_FAKE_DEVICE)             \
    X(PITCH, "site_pitch", "device", SEEP_FAKE_DEVICE)               \
    X(MANAGED, "site_managed", "managed", SEEP_FAKE_MANAGED)         \
    X(ASYNC, "site_async", "device", SEEP_FAKE_ASYNC)                \
    X(POOL, "site_pool", "device", SEEP_FAKE_ASYNC)                  \
    X(HOST, "site_host", "pinned", SEEP_FAKE_PINNED)                 \
    X(HOST_OLD, "site_host_old", "pinned", SEEP_FAKE_PINNED)         \
    X(REGISTER, "site_register", "registered", SEEP_FAKE_REGISTERED) \
    X(RESERVE, "site_reserve", "reserved", SEEP_FAKE_RESERVED)       \
    X(CREATE, "site_create", "device", SEEP_FAKE_PHYSICAL)           \
    X(ARRAY, "site_array", "device", SEEP_FAKE_ARRAY)                \
    X(MIPMAP, "site_mipmap", "device", SEEP_FAKE_ARRAY)              \
    X(IPC, "site_ipc", "imported", SEEP_FAKE_IMPORTED)

enum site {
#define SITE_VALUE(symbol, function, space, kind) SITE_##symbol,
    SITES(SITE_VALUE)
#undef SITE_VALUE
        SITE_COUNT
};

static const struct {
    const char *function, *space, *kind_name;
    enum seep_fake_kind kind;
} sites[] = {
#define SITE_TEXT(symbol, function, space, kind) {function, space, #kind, kind},
    SITES(SITE_TEXT)
#undef SITE_TEXT
};

struct block {
    atomic_flag busy;
    enum site site;
    uint64_t bytes; /* 0: nothing is here */
    uint64_t value; /* pointer or handle */
    uint64_t more;  /* what it was made of */
    uint64_t more_bytes;
    bool mapped, held;
};

static struct {
    _Atomic int64_t live_bytes, live_count;
    _Atomic uint64_t allocated_bytes, allocated_count;
} truth[SITE_COUNT];

static struct cuda_doors cu;
static struct block blocks[SLOTS];
static char pages[SLOTS][PAGE] __attribute__((aligned(PAGE)));
static CUcontext context;
static CUmemoryPool pool;
static CUstream stream;
static size_t granularity;
static bool can_share;
static _Atomic uint64_t refused[2]; /* out of memory, unknown */
static _Atomic uint64_t unexpected;

static const CUmemAllocationProp on_device = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};

static void count(enum site site, int64_t bytes, int number)
{
    atomic_fetch_add_explicit(&truth[site].live_bytes, bytes,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&truth[site].live_count, number,
                              memory_order_relaxed);
    if (number > 0) {
        atomic_fetch_add_explicit(&truth[site].allocated_bytes, (uint64_t)bytes,
                                  memory_order_relaxed);
        atomic_fetch_add_explicit(&truth[site].allocated_count, 1,
                                  memory_order_relaxed);
    }
}

/* A call that must give this result; anything else fails the program. */
static bool expect(CUresult result, CUresult wanted)
{
    if (result != wanted) {
        atomic_fetch_add_explicit(&unexpected, 1, memory_order_relaxed);
    }
    return result == wanted;
}

SITE CUresult site_device(CUdeviceptr *pointer, size_t bytes)
{
    return cu.cuMemAlloc_v2(pointer, bytes);
}

SITE CUresult site_pitch(CUdeviceptr *pointer, size_t *bytes)
{
    size_t pitch = 0;
    CUresult result = cu.cuMemAllocPitch_v2(pointer, &pitch, *bytes, 3, 4);

    *bytes = pitch * 3;
    return result;
}

SITE CUresult site_managed(CUdeviceptr *pointer, size_t bytes)
{
    return cu.cuMemAllocManaged(pointer, bytes, CU_MEM_ATTACH_GLOBAL);
}

SITE CUresult site_async(CUdeviceptr *pointer, size_t bytes, CUstream on)
{
    return cu.cuMemAllocAsync(pointer, bytes, on);
}

SITE CUresult site_pool(CUdeviceptr *pointer, size_t bytes)
{
    return cu.cuMemAllocFromPoolAsync(pointer, bytes, pool, stream);
}

SITE CUresult site_host(void **pointer, size_t bytes)
{
    return cu.cuMemHostAlloc(pointer, bytes, 0);
}

SITE CUresult site_host_old(void **pointer, size_t bytes)
{
    return cu.cuMemAllocHost_v2(pointer, bytes);
}

SITE CUresult site_register(void *pointer, size_t bytes)
{
    return cu.cuMemHostRegister_v2(pointer, bytes, 0);
}

SITE CUresult site_reserve(CUdeviceptr *pointer, size_t bytes)
{
    return cu.cuMemAddressReserve(pointer, bytes, 0, 0, 0);
}

SITE CUresult site_create(CUmemGenericAllocationHandle *handle, size_t bytes)
{
    return cu.cuMemCreate(handle, bytes, &on_device, 0);
}

SITE CUresult site_array(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *form)
{
    return cu.cuArray3DCreate_v2(array, form);
}

SITE CUresult site_mipmap(CUmipmappedArray *array,
                          const CUDA_ARRAY3D_DESCRIPTOR *form)
{
    return cu.cuMipmappedArrayCreate(array, form, 2);
}

SITE CUresult site_ipc(CUdeviceptr *pointer, CUipcMemHandle handle)
{
    return cu.cuIpcOpenMemHandle_v2(pointer, handle, 1);
}

static bool make_pointer(struct block *block, size_t bytes, unsigned choice)
{
    CUdeviceptr pointer = 0;
    void *host = NULL;
    CUresult result = CUDA_SUCCESS;

    switch (block->site) {
    case SITE_DEVICE:
        result = site_device(&pointer, bytes);
        break;
    case SITE_PITCH:
        result = site_pitch(&pointer, &bytes);
        break;
    case SITE_MANAGED:
        result = site_managed(&pointer, bytes);
        break;
    case SITE_ASYNC:
        result = site_async(&pointer, bytes, choice % 2 ? stream : NULL);
        break;
    case SITE_POOL:
        result = site_pool(&pointer, bytes);
        break;
    case SITE_HOST:
        result = site_host(&host, bytes);
        break;
    case SITE_HOST_OLD:
        result = site_host_old(&host, bytes);
        break;
    default:
        host = pages[block - blocks];
        bytes = PAGE;
        result = site_register(host, bytes);
        break;
    }
    block->bytes = bytes;
    block->value = pointer != 0 ? pointer : (uint64_t)(uintptr_t)host;
    return expect(result, CUDA_SUCCESS);
}

/* Two levels at most: the second is a quarter of the first. */
static bool make_array(struct block *block, unsigned choice)
{
    CUDA_ARRAY3D_DESCRIPTOR form = {.Width = 32 + choice % 8 * 2,
                                    .Height = 16,
                                    .Format = CU_AD_FORMAT_FLOAT,
                                    .NumChannels = 4};
    CUarray array = NULL;
    CUmipmappedArray mipmap = NULL;

    block->bytes = form.Width * form.Height * 16;
    if (block->site == SITE_MIPMAP) {
        block->bytes += form.Width / 2 * (form.Height / 2) * 16;
        expect(site_mipmap(&mipmap, &form), CUDA_SUCCESS);
        block->value = (uint64_t)(uintptr_t)mipmap;
    } else {
        expect(site_array(&array, &form), CUDA_SUCCESS);
        block->value = (uint64_t)(uintptr_t)array;
    }
    return block->value != 0;
}

/*
 * Addresses are reserved, memory is made and mapped; its handle is released at
 * once, kept, or kept and taken once more.
 */
static bool make_physical(struct block *block, unsigned choice)
{
    CUmemAccessDesc access = {on_device.location,
                              CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUmemGenericAllocationHandle again = 0;
    CUdeviceptr address = 0;

    block->bytes = granularity * (1 + choice % 2);
    block->more_bytes = block->bytes;
    if (!expect(site_create(&handle, block->bytes), CUDA_SUCCESS)) {
        return false;
    }
    block->value = handle;
    block->held = true;
    block->mapped = false;
    if (choice % 4 == 0) {
        return true;
    }
    if (!expect(site_reserve(&address, block->bytes), CUDA_SUCCESS)) {
        return true;
    }
    count(SITE_RESERVE, (int64_t)block->bytes, 1);
    block->more = address;
    block->mapped = true;
    expect(cu.cuMemMap(address, block->bytes, 0, handle, 0), CUDA_SUCCESS);
    expect(cu.cuMemSetAccess(address, block->bytes, &access, 1), CUDA_SUCCESS);
    if (choice % 4 == 1) {
        expect(
            cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)address),
            CUDA_SUCCESS);
        expect(cu.cuMemRelease(again), CUDA_SUCCESS);
    }
    if (choice % 4 != 2) {
        expect(cu.cuMemRelease(handle), CUDA_SUCCESS);
        block->held = false;
    }
    return true;
}

static void unmake_physical(struct block *block)
{
    if (block->mapped) {
        expect(cu.cuMemUnmap(block->more, block->more_bytes), CUDA_SUCCESS);
        count(SITE_RESERVE, -(int64_t)block->more_bytes, -1);
        expect(cu.cuMemAddressFree(block->more, block->more_bytes),
               CUDA_SUCCESS);
    }
    if (block->held) {
        expect(cu.cuMemRelease(block->value), CUDA_SUCCESS);
    }
}

/* What is exported is counted at its own site, for as long as the import. */
static bool make_import(struct block *block, size_t bytes)
{
    CUipcMemHandle handle;
    CUdeviceptr mine = 0;
    CUdeviceptr shared = 0;

    if (!expect(site_device(&mine, bytes), CUDA_SUCCESS)) {
        return false;
    }
    if (!expect(cu.cuIpcGetMemHandle(&handle, mine), CUDA_SUCCESS) ||
        !expect(site_ipc(&shared, handle), CUDA_SUCCESS)) {
        expect(cu.cuMemFree_v2(mine), CUDA_SUCCESS);
        return false;
    }
    count(SITE_DEVICE, (int64_t)bytes, 1);
    block->bytes = bytes;
    block->value = shared;
    block->more = mine;
    return true;
}

static void make(struct block *block, unsigned random)
{
    size_t bytes = 1 + random % 20000;
    bool made;

    block->site = (enum site)((random >> 15) % SITE_COUNT);
    if (block->site == SITE_RESERVE ||
        (block->site == SITE_IPC && !can_share)) {
        block->site = SITE_CREATE;
    }
    made = block->site == SITE_CREATE ? make_physical(block, random >> 20)
           : block->site == SITE_ARRAY || block->site == SITE_MIPMAP
               ? make_array(block, random >> 20)
           : block->site == SITE_IPC ? make_import(block, bytes)
                                     : make_pointer(block, bytes, random >> 20);
    if (made) {
        count(block->site, (int64_t)block->bytes, 1);
    } else {
        block->bytes = 0;
    }
}

static CUresult unmake_pointer(const struct block *block, bool async)
{
    return async ? cu.cuMemFreeAsync(block->value, NULL)
                 : cu.cuMemFree_v2(block->value);
}

static void unmake(struct block *block, unsigned choice)
{
    void *host = (void *)(uintptr_t)block->value;

    switch (block->site) {
    case SITE_HOST:
    case SITE_HOST_OLD:
        expect(cu.cuMemFreeHost(host), CUDA_SUCCESS);
        break;
    case SITE_REGISTER:
        expect(cu.cuMemHostUnregister(host), CUDA_SUCCESS);
        break;
    case SITE_ARRAY:
        expect(cu.cuArrayDestroy((CUarray)host), CUDA_SUCCESS);
        break;
    case SITE_MIPMAP:
        expect(cu.cuMipmappedArrayDestroy((CUmipmappedArray)host),
               CUDA_SUCCESS);
        break;
    case SITE_CREATE:
        unmake_physical(block);
        break;
    case SITE_IPC:
        expect(cu.cuIpcCloseMemHandle(block->value), CUDA_SUCCESS);
        expect(cu.cuMemFree_v2(block->more), CUDA_SUCCESS);
        count(SITE_DEVICE, -(int64_t)block->bytes, -1);
        break;
    default:
        expect(unmake_pointer(block, (block->site == SITE_ASYNC ||
                                      block->site == SITE_POOL) &&
                                         choice % 3 != 0),
               CUDA_SUCCESS);
        break;
    }
    count(block->site, -(int64_t)block->bytes, -1);
    block->bytes = 0;
}

/* Calls that the driver must go on refusing, with its own codes. */
static void be_wrong(void)
{
    CUdeviceptr pointer = 1;
    int here = 0;

    if (expect(site_device(&pointer, (size_t)1 << 50),
               CUDA_ERROR_OUT_OF_MEMORY) &&
        pointer == 1) {
        atomic_fetch_add_explicit(&refused[0], 1, memory_order_relaxed);
    }
    if (expect(cu.cuMemFree_v2(PAGE), CUDA_ERROR_INVALID_VALUE) &&
        expect(cu.cuMemFreeHost(&here), CUDA_ERROR_INVALID_VALUE) &&
        expect(cu.cuMemHostUnregister(&here),
               CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED) &&
        expect(cu.cuMemUnmap(PAGE, granularity), CUDA_ERROR_INVALID_VALUE) &&
        expect(cu.cuMemFree_v2(0), CUDA_SUCCESS)) {
        atomic_fetch_add_explicit(&refused[1], 4, memory_order_relaxed);
    }
}

struct work {
    unsigned seed;
    long operations;
};

static void *be_busy(void *argument)
{
    struct work *work = argument;

    expect(cu.cuCtxSetCurrent(context), CUDA_SUCCESS);
    for (long i = 0; i < work->operations; i++) {
        unsigned random = (work->seed = work->seed * 1664525 + 1013904223);
        struct block *block;

        random ^= random >> 13;
        block = &blocks[random * 2654435761U >> 23];
        /* Pairs with the release below: the block is as it was left. */
        if (atomic_flag_test_and_set_explicit(&block->busy,
                                              memory_order_acquire)) {
            continue;
        }
        if (block->bytes != 0) {
            unmake(block, random);
        } else {
            make(block, random);
        }
        /* Pairs with the acquire above. */
        atomic_flag_clear_explicit(&block->busy, memory_order_release);
        if (i % 61 == 0) {
            be_wrong();
        }
    }
    return NULL;
}

/* A second free of the same: only where nobody can have been given it. */
static void free_twice(void)
{
    CUdeviceptr pointer = 0;
    CUmemGenericAllocationHandle handle = 0;

    expect(site_device(&pointer, 100), CUDA_SUCCESS);
    count(SITE_DEVICE, 100, 1);
    count(SITE_DEVICE, -100, -1);
    expect(cu.cuMemFree_v2(pointer), CUDA_SUCCESS);
    expect(cu.cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
    expect(site_create(&handle, granularity), CUDA_SUCCESS);
    count(SITE_CREATE, (int64_t)granularity, 1);
    count(SITE_CREATE, -(int64_t)granularity, -1);
    expect(cu.cuMemRelease(handle), CUDA_SUCCESS);
    expect(cu.cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
}

static void prepare(void)
{
    CUmemPoolProps how = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = on_device.location};

    expect(cu.cuInit(0), CUDA_SUCCESS);
    expect(cu.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    expect(cu.cuCtxSetCurrent(context), CUDA_SUCCESS);
    expect(cu.cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    expect(cu.cuMemPoolCreate(&pool, &how), CUDA_SUCCESS);
    expect(cu.cuMemGetAllocationGranularity(&granularity, &on_device,
                                            CU_MEM_ALLOC_GRANULARITY_MINIMUM),
           CUDA_SUCCESS);
}

/* The fake driver's account by kind; whether it is what the sites say. */
static bool print_driver(uint64_t (*live_bytes)(enum seep_fake_kind))
{
    int64_t sums[SEEP_FAKE_KINDS] = {0};
    bool agrees = true;
    const char *comma = "";

    for (int i = 0; i < SITE_COUNT; i++) {
        sums[sites[i].kind] += READ(truth[i].live_bytes);
    }
    printf(",\n \"driver\": {");
    for (int i = 0; i < SITE_COUNT; i++) {
        enum seep_fake_kind kind = sites[i].kind;

        if (i > 0 && kind == sites[i - 1].kind) {
            continue;
        }
        printf("%s\"%s\": %" PRIu64, comma, sites[i].kind_name,
               live_bytes(kind));
        comma = ", ";
        agrees = agrees && live_bytes(kind) == (uint64_t)sums[kind];
    }
    printf("},\n \"agrees\": %s", agrees ? "true" : "false");
    return agrees;
}

static bool print(const char *door, long threads,
                  uint64_t (*live_bytes)(enum seep_fake_kind))
{
    bool agrees = true;

    printf("{\"door\": \"%s\", \"threads\": %ld, \"sites\": [", door, threads);
    for (int i = 0; i < SITE_COUNT; i++) {
        printf("%s\n  {\"function\": \"%s\", \"space\": \"%s\", "
               "\"live_bytes\": %" PRId64 ", \"live_count\": %" PRId64
               ", \"allocated_bytes\": %" PRIu64
               ", \"allocated_count\": %" PRIu64 "}",
               i > 0 ? "," : "", sites[i].function, sites[i].space,
               READ(truth[i].live_bytes), READ(truth[i].live_count),
               READ(truth[i].allocated_bytes), READ(truth[i].allocated_count));
    }
    printf("],\n \"out_of_memory\": %" PRIu64 ", \"unknown\": %" PRIu64
           ", \"unexpected\": %" PRIu64,
           READ(refused[0]), READ(refused[1]), READ(unexpected));
    if (live_bytes != NULL) {
        agrees = print_driver(live_bytes);
    }
    printf("}\n");
    return agrees && READ(unexpected) == 0;
}

int main(int argc, char **argv)
{
    const char *door = argc > 1 ? argv[1] : "dlsym";
    long threads = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    long operations = argc > 3 ? strtol(argv[3], NULL, 10) : 2000;
    pthread_t running[64];
    struct work work[64];
    uint64_t (*live_bytes)(enum seep_fake_kind) = NULL;

    if (threads < 1 || threads > 64 || !cuda_doors_open(door, &cu)) {
        fprintf(stderr, "cuda_doors: no way in by '%s'\n", door);
        return 2;
    }
    *(void **)(void *)&live_bytes = dlsym(
        cu.library != NULL ? cu.library : RTLD_DEFAULT, "seep_fake_live_bytes");
    /* The real driver refuses an import by the process that exported. */
    can_share = live_bytes != NULL;
    prepare();
    free_twice();
    for (long i = 0; i < threads; i++) {
        work[i] = (struct work){(unsigned)i * 7919U + 17U, operations};
        if (pthread_create(&running[i], NULL, be_busy, &work[i]) != 0) {
            return 2;
        }
    }
    for (long i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
    }
    return print(door, threads, live_bytes) ? 0 : 1;
}
