/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every entry point of the driver that cuda_doors does not come to, from some
 * threads, on two devices; then, on others, contexts and pools that end.
 * Prints what is left by call site and device: the truth that a recording must
 * tell.
 *
 *   cuda_entries [THREADS [ROUNDS]]
 *
 * Invariant: each site is one function that makes the one call that it is named
 * for; what is left is never freed. Where the fake driver has a kind for it,
 * the truth is compared with the driver's own account.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_entries.h"

#define THREADS_MOST 64
#define RACED_COUNT 50
#define RACED_ROUNDS 40
#define RACED_BYTES 1000
#define READ(counter) atomic_load_explicit(&(counter), memory_order_relaxed)

static const struct {
    const char *function, *space;
    enum seep_fake_kind kind;
} sites[] = {
#define SITE_TEXT(symbol, function, space, kind) {function, space, kind},
    ENTRY_SITES(SITE_TEXT)
#undef SITE_TEXT
};

/* By device + 1. */
static struct {
    _Atomic int64_t live_bytes, live_count;
    _Atomic uint64_t allocated_bytes, allocated_count;
} truth[SITE_COUNT][DEVICE_COUNT + 1];

static _Atomic uint64_t unexpected, unknown, raced;
static CUdeviceptr raced_pointers[RACED_COUNT];
static CUcontext primary[THREAD_DEVICES];

size_t entry_unit_bytes;

#define PHYSICAL(device)                                                  \
    {                                                                     \
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,                            \
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, \
        .location = {                                                     \
            .type = CU_MEM_LOCATION_TYPE_DEVICE,                          \
            .id = device                                                  \
        }                                                                 \
    }
const CUmemAllocationProp entry_physical[DEVICE_COUNT] = {
    PHYSICAL(0), PHYSICAL(1), PHYSICAL(2), PHYSICAL(3), PHYSICAL(4)};

void entry_count(enum entry_site site, int device, uint64_t bytes, int number)
{
    int64_t change = number > 0 ? (int64_t)bytes : -(int64_t)bytes;

    atomic_fetch_add_explicit(&truth[site][device + 1].live_bytes, change,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&truth[site][device + 1].live_count, number,
                              memory_order_relaxed);
    if (number > 0) {
        atomic_fetch_add_explicit(&truth[site][device + 1].allocated_bytes,
                                  bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&truth[site][device + 1].allocated_count, 1,
                                  memory_order_relaxed);
    }
}

bool entry_expect(CUresult result, CUresult wanted, int line)
{
    bool fine = (result == wanted) == (line > 0);

    if (!fine) {
        atomic_fetch_add_explicit(&unexpected, 1, memory_order_relaxed);
        fprintf(stderr, "cuda_entries: %d at %d\n", (int)result, abs(line));
    }
    return fine;
}

void entry_unknown(CUresult result, int line)
{
    entry_expect(result, CUDA_SUCCESS, -line);
    atomic_fetch_add_explicit(&unknown, 1, memory_order_relaxed);
}

struct work {
    int device;
    unsigned rounds;
};

static void *be_busy(void *argument)
{
    const struct work *work = argument;

    DONE(cuCtxSetCurrent(primary[work->device]));
    for (unsigned round = 0; round < work->rounds; round++) {
        entry_round(work->device, round, round / 6 % 2 == 1);
    }
    return NULL;
}

/* All threads free the same pointers at once: of each one free is served. */
SITE CUresult site_raced(CUdeviceptr *pointer)
{
    return cuMemAlloc_v2(pointer, RACED_BYTES);
}

static void make_raced(void)
{
    for (int i = 0; i < RACED_COUNT; i++) {
        DONE(site_raced(&raced_pointers[i]));
        entry_count(SITE_RACED, 0, RACED_BYTES, 1);
    }
}

static void free_raced(void)
{
    for (int i = 0; i < RACED_COUNT; i++) {
        CUresult result = i % 2 == 0 ? cuMemFree_v2(raced_pointers[i])
                                     : cuMemFreeAsync(raced_pointers[i], NULL);

        if (result == CUDA_SUCCESS) {
            entry_count(SITE_RACED, 0, RACED_BYTES, -1);
        } else {
            atomic_fetch_add_explicit(&raced, 1, memory_order_relaxed);
        }
    }
}

static void *race(void *argument)
{
    DONE(cuCtxSetCurrent(primary[0]));
    for (int round = 0; round < RACED_ROUNDS; round++) {
        if (pthread_barrier_wait(argument) == PTHREAD_BARRIER_SERIAL_THREAD) {
            make_raced();
        }
        pthread_barrier_wait(argument);
        free_raced();
    }
    return NULL;
}

static bool run_threads(long threads, void *(*body)(void *), void *arguments,
                        size_t size)
{
    pthread_t running[THREADS_MOST];

    for (long i = 0; i < threads; i++) {
        if (pthread_create(&running[i], NULL, body,
                           (char *)arguments + (size_t)i * size) != 0) {
            return false;
        }
    }
    for (long i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
    }
    return true;
}

static void prepare(void)
{
    DONE(cuInit(0));
    for (int device = 0; device < THREAD_DEVICES; device++) {
        DONE(cuDevicePrimaryCtxRetain(&primary[device], device));
    }
    DONE(cuMemGetAllocationGranularity(&entry_unit_bytes, &entry_physical[0],
                                       CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

static bool agrees(void)
{
    int64_t sums[SEEP_FAKE_KINDS] = {0};
    bool is_known[SEEP_FAKE_KINDS] = {false};
    bool all = true;

    for (int i = 0; i < SITE_COUNT; i++) {
        for (int j = 0; j <= DEVICE_COUNT; j++) {
            if (sites[i].kind != SEEP_FAKE_KINDS) {
                is_known[sites[i].kind] = true;
                sums[sites[i].kind] += READ(truth[i][j].live_bytes);
            }
        }
    }
    for (int kind = 0; kind < SEEP_FAKE_KINDS; kind++) {
        uint64_t bytes = seep_fake_live_bytes((enum seep_fake_kind)kind);

        if (is_known[kind] && bytes != (uint64_t)sums[kind]) {
            fprintf(stderr, "cuda_entries: %s %" PRIu64 ", by us %" PRId64 "\n",
                    seep_fake_kind_name((enum seep_fake_kind)kind), bytes,
                    sums[kind]);
            all = false;
        }
    }
    return all;
}

static void print(void)
{
    const char *comma = "";

    printf("{\"sites\": [");
    for (int i = 0; i < SITE_COUNT; i++) {
        for (int j = 0; j <= DEVICE_COUNT; j++) {
            if (READ(truth[i][j].allocated_count) == 0 && j != 0) {
                continue;
            }
            printf("%s\n  {\"function\": \"%s\", \"space\": \"%s\", "
                   "\"device\": %d, \"live_bytes\": %" PRId64
                   ", \"live_count\": %" PRId64
                   ", \"allocated_bytes\": %" PRIu64
                   ", \"allocated_count\": %" PRIu64 "}",
                   comma, sites[i].function, sites[i].space, j - 1,
                   READ(truth[i][j].live_bytes), READ(truth[i][j].live_count),
                   READ(truth[i][j].allocated_bytes),
                   READ(truth[i][j].allocated_count));
            comma = ",";
        }
    }
    printf("],\n \"unexpected\": %" PRIu64 ", \"unknown\": %" PRIu64
           ", \"raced\": %" PRIu64 ", \"agrees\": %s}\n",
           READ(unexpected), READ(unknown), READ(raced),
           agrees() ? "true" : "false");
}

int main(int argc, char **argv)
{
    long threads = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 24;
    struct work work[THREADS_MOST];
    pthread_barrier_t barrier;

    if (threads < 1 || threads > THREADS_MOST ||
        pthread_barrier_init(&barrier, NULL, (unsigned)threads) != 0) {
        return 2;
    }
    prepare();
    DONE(cuCtxSetCurrent(primary[0]));
    entry_refuse(0);
    for (long i = 0; i < threads; i++) {
        work[i] = (struct work){(int)(i % THREAD_DEVICES), (unsigned)rounds};
    }
    if (!run_threads(threads, be_busy, work, sizeof(work[0])) ||
        !run_threads(threads, race, &barrier, 0)) {
        return 2;
    }
    entry_end(true);
    entry_end(false);
    print();
    return READ(unexpected) == 0 && agrees() ? 0 : 1;
}
