/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A test double of PyTorch's libc10_cuda.so: its caching allocator, in small,
 * over the CUDA driver. Blocks of 512 bytes are cut out of segments: of 2 MiB
 * for up to 1 MiB, of 20 MiB for less than 10 MiB, else of the size rounded up
 * to 2 MiB; best fit, split where enough is left, merged when freed. Every
 * block is reported, and a segment goes back by fake_torch_empty_cache() only.
 *
 * Invariant: the driver is come to as the vendor's runtime does, by one dlsym
 * and cuGetProcAddress; the report is called through the PLT. The blocks of a
 * segment are one list in the order of their addresses.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../../fake/cuda_abi.h"
#include "fake_torch.h"

#define BLOCK_BYTES UINT64_C(512)
#define SMALL_BYTES (UINT64_C(1) << 20)
#define SMALL_SEGMENT_BYTES (UINT64_C(2) << 20)
#define MIDDLE_BYTES (UINT64_C(10) << 20)
#define MIDDLE_SEGMENT_BYTES (UINT64_C(20) << 20)
#define BUCKET_COUNT 4096

struct block {
    struct block *before, *after; /* in the segment */
    struct block *next;           /* in a bucket, or in the list of free ones */
    uint64_t address, size_bytes;
    bool is_used, is_small;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *buckets[BUCKET_COUNT]; /* what is used, by address */
static struct block *unused;
static uint64_t allocated_bytes, reserved_bytes;
static uint64_t segment_count, made_count, made_bytes;

static __typeof__(cuMemAlloc_v2) *driver_allocate;
static __typeof__(cuMemFree_v2) *driver_free;
static __typeof__(cuCtxSetCurrent) *driver_enter;
static CUcontext context;

static void *ask(__typeof__(cuGetProcAddress_v2) *look_up, const char *name,
                 int version)
{
    CUdriverProcAddressQueryResult status;
    void *function = NULL;

    return look_up(name, &function, version, CU_GET_PROC_ADDRESS_DEFAULT,
                   &status) == CUDA_SUCCESS
               ? function
               : NULL;
}

int fake_torch_open(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    __typeof__(cuGetProcAddress_v2) *look_up = NULL;
    __typeof__(cuInit) *start;
    __typeof__(cuDevicePrimaryCtxRetain) *retain;
    int result;

    if (driver != NULL) {
        *(void **)(void *)&look_up = dlsym(driver, "cuGetProcAddress_v2");
    }
    if (look_up == NULL) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    *(void **)(void *)&start = ask(look_up, "cuInit", 2000);
    *(void **)(void *)&retain = ask(look_up, "cuDevicePrimaryCtxRetain", 7000);
    *(void **)(void *)&driver_enter = ask(look_up, "cuCtxSetCurrent", 4000);
    *(void **)(void *)&driver_allocate = ask(look_up, "cuMemAlloc", 3020);
    *(void **)(void *)&driver_free = ask(look_up, "cuMemFree", 3020);
    if (start == NULL || retain == NULL || driver_enter == NULL ||
        driver_allocate == NULL || driver_free == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    result = (int)start(0);
    return result != CUDA_SUCCESS ? result : (int)retain(&context, 0);
}

static struct block **bucket_of(uint64_t address)
{
    return &buckets[address / BLOCK_BYTES % BUCKET_COUNT];
}

static struct block *remove_from(struct block **list, const struct block *block)
{
    while (*list != NULL && *list != block) {
        list = &(*list)->next;
    }
    if (*list != NULL) {
        struct block *found = *list;

        *list = found->next;
        return found;
    }
    return NULL;
}

static void put_unused(struct block *block)
{
    block->is_used = false;
    block->next = unused;
    unused = block;
}

static uint64_t rounded(uint64_t size_bytes, uint64_t step_bytes)
{
    return (size_bytes + step_bytes - 1) / step_bytes * step_bytes;
}

static uint64_t segment_bytes(uint64_t size_bytes)
{
    return size_bytes <= SMALL_BYTES ? SMALL_SEGMENT_BYTES
           : size_bytes < MIDDLE_BYTES
               ? MIDDLE_SEGMENT_BYTES
               : rounded(size_bytes, SMALL_SEGMENT_BYTES);
}

/* The cache was missed: whoever comes here is charged with all of it. */
__attribute__((noinline)) static struct block *make_segment(uint64_t size_bytes)
{
    struct block *block = calloc(1, sizeof(*block));
    CUdeviceptr address = 0;

    if (block == NULL) {
        return NULL;
    }
    block->size_bytes = segment_bytes(size_bytes);
    block->is_small = size_bytes <= SMALL_BYTES;
    driver_enter(context);
    if (driver_allocate(&address, block->size_bytes) != CUDA_SUCCESS) {
        free(block);
        return NULL;
    }
    block->address = address;
    reserved_bytes += block->size_bytes;
    made_bytes += block->size_bytes;
    segment_count++;
    made_count++;
    put_unused(block);
    return block;
}

static struct block *best_fit(uint64_t size_bytes)
{
    bool is_small = size_bytes <= SMALL_BYTES;
    struct block *best = NULL;

    for (struct block *block = unused; block != NULL; block = block->next) {
        if (block->is_small == is_small && block->size_bytes >= size_bytes &&
            (best == NULL || block->size_bytes < best->size_bytes)) {
            best = block;
        }
    }
    return best;
}

static void split(struct block *block, uint64_t size_bytes)
{
    uint64_t left_bytes = block->size_bytes - size_bytes;
    struct block *rest;

    if (block->is_small ? left_bytes < BLOCK_BYTES
                        : left_bytes <= SMALL_BYTES) {
        return;
    }
    rest = calloc(1, sizeof(*rest));
    if (rest == NULL) {
        return;
    }
    *rest = (struct block){.before = block,
                           .after = block->after,
                           .address = block->address + size_bytes,
                           .size_bytes = left_bytes,
                           .is_small = block->is_small};
    if (rest->after != NULL) {
        rest->after->before = rest;
    }
    block->after = rest;
    block->size_bytes = size_bytes;
    put_unused(rest);
}

static void report(const struct block *block, int64_t size_bytes)
{
    report_memory((void *)(uintptr_t)block->address, size_bytes,
                  allocated_bytes, reserved_bytes,
                  (struct device){DEVICE_CUDA, 0});
    __asm__ volatile(""); /* so that the call is none by a jump */
}

uint64_t fake_torch_empty(uint64_t size_bytes)
{
    uint64_t wanted_bytes =
        rounded(size_bytes != 0 ? size_bytes : 1, BLOCK_BYTES);
    struct block *block;
    uint64_t address = 0;

    pthread_mutex_lock(&lock);
    block = best_fit(wanted_bytes);
    block = block != NULL ? block : make_segment(wanted_bytes);
    if (block != NULL) {
        remove_from(&unused, block);
        split(block, wanted_bytes);
        block->is_used = true;
        block->next = *bucket_of(block->address);
        *bucket_of(block->address) = block;
        allocated_bytes += block->size_bytes;
        address = block->address;
        report(block, (int64_t)block->size_bytes);
    }
    pthread_mutex_unlock(&lock);
    return address;
}

static struct block *find(uint64_t address)
{
    struct block *block = *bucket_of(address);

    while (block != NULL && block->address != address) {
        block = block->next;
    }
    return block;
}

/* The later of two free neighbours goes into the earlier. */
static struct block *merge(struct block *left, struct block *right)
{
    remove_from(&unused, right);
    left->size_bytes += right->size_bytes;
    left->after = right->after;
    if (left->after != NULL) {
        left->after->before = left;
    }
    free(right);
    return left;
}

void fake_torch_free(uint64_t tensor)
{
    struct block *block;

    pthread_mutex_lock(&lock);
    block = find(tensor);
    if (block != NULL) {
        remove_from(bucket_of(tensor), block);
        allocated_bytes -= block->size_bytes;
        report(block, -(int64_t)block->size_bytes);
        put_unused(block);
        if (block->after != NULL && !block->after->is_used) {
            merge(block, block->after);
        }
        if (block->before != NULL && !block->before->is_used) {
            merge(block->before, block);
        }
    }
    pthread_mutex_unlock(&lock);
}

void fake_torch_empty_cache(void)
{
    struct block **link = &unused;

    pthread_mutex_lock(&lock);
    driver_enter(context);
    while (*link != NULL) {
        struct block *block = *link;

        if (block->before != NULL || block->after != NULL ||
            driver_free(block->address) != CUDA_SUCCESS) {
            link = &block->next;
            continue;
        }
        *link = block->next;
        reserved_bytes -= block->size_bytes;
        segment_count--;
        free(block);
    }
    pthread_mutex_unlock(&lock);
}

uint64_t fake_torch_size(uint64_t tensor)
{
    const struct block *block;
    uint64_t size_bytes;

    pthread_mutex_lock(&lock);
    block = find(tensor);
    size_bytes = block != NULL ? block->size_bytes : 0;
    pthread_mutex_unlock(&lock);
    return size_bytes;
}

static uint64_t read_locked(const uint64_t *figure)
{
    uint64_t value;

    pthread_mutex_lock(&lock);
    value = *figure;
    pthread_mutex_unlock(&lock);
    return value;
}

uint64_t fake_torch_allocated_bytes(void)
{
    return read_locked(&allocated_bytes);
}

uint64_t fake_torch_reserved_bytes(void)
{
    return read_locked(&reserved_bytes);
}

uint64_t fake_torch_segment_count(void)
{
    return read_locked(&segment_count);
}

uint64_t fake_torch_segments_made(void)
{
    return read_locked(&made_count);
}

uint64_t fake_torch_segments_made_bytes(void)
{
    return read_locked(&made_bytes);
}
