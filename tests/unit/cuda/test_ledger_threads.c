/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuda/ledger at 8 threads, over a driver that keeps the truth and gives out
 * again at once what was freed last: whatever the threads do, what the
 * recorder was told is what the driver has.
 */
#include "cuda_ledger_test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/hash.h"

#define THREADS 8U
#define ADDRESSES 512U
#define SHELF 64U
#define FIRST UINT64_C(0x7f0000000000)
#define STEP_BYTES UINT64_C(4096)

/* The driver: a stack of free addresses, and what is live in which context. */
static struct {
    pthread_mutex_t lock;
    uint64_t free_addresses[ADDRESSES];
    uint32_t free_count;
    uint64_t size_bytes[ADDRESSES]; /* 0: free */
    uint32_t context[ADDRESSES];
    uint32_t mappings[ADDRESSES]; /* of a handle */
    bool released[ADDRESSES];
} driver;

static uint32_t rounds;

/* Pointers that threads hand to each other. */
static _Atomic uint64_t shelf[SHELF];
static int contexts[4];

static uint32_t index_of(uint64_t address)
{
    return (uint32_t)((address - FIRST) / STEP_BYTES);
}

static uint64_t driver_allocate(uint64_t size_bytes, uint32_t context)
{
    uint64_t address = 0;

    pthread_mutex_lock(&driver.lock);
    if (driver.free_count != 0) {
        address = driver.free_addresses[--driver.free_count];
        driver.size_bytes[index_of(address)] = size_bytes;
        driver.context[index_of(address)] = context;
        driver.released[index_of(address)] = false;
    }
    pthread_mutex_unlock(&driver.lock);
    return address;
}

/* With the lock. */
static void give_back(uint32_t index)
{
    driver.size_bytes[index] = 0;
    driver.free_addresses[driver.free_count++] = FIRST + index * STEP_BYTES;
}

/* @size_bytes is who the caller believes that it frees. */
static bool driver_free(uint64_t address, uint64_t size_bytes)
{
    uint32_t index = index_of(address);
    bool taken = false;

    pthread_mutex_lock(&driver.lock);
    if (driver.size_bytes[index] == size_bytes) {
        give_back(index);
        taken = true;
    }
    pthread_mutex_unlock(&driver.lock);
    return taken;
}

static void start_driver(void)
{
    cuda_recorder_start();
    memset(&driver, 0, sizeof(driver));
    pthread_mutex_init(&driver.lock, NULL);
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        driver.free_addresses[driver.free_count++] = FIRST + i * STEP_BYTES;
    }
    memset((void *)shelf, 0, sizeof(shelf));
}

static uint64_t truth_bytes(void)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < ADDRESSES; i++) {
        bytes += driver.size_bytes[i];
    }
    return bytes;
}

static void run(void *(*body)(void *))
{
    pthread_t threads[THREADS];

    start_driver();
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, body, (void *)(i + 1)), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static uint64_t mapping_of(uint64_t handle)
{
    return handle + (UINT64_C(1) << 40);
}

/* Nothing of one test is live in the next. */
static void drain(void)
{
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        uint64_t address = FIRST + i * STEP_BYTES;

        for (unsigned kind = SEEP_CUDA_POINTER; kind <= SEEP_CUDA_HANDLE;
             kind++) {
            drop((enum seep_cuda_kind)kind, address);
        }
        unmap(mapping_of(address), STEP_BYTES, true);
    }
    assert_int_equal(used_count(), 0);
    assert_int_equal(cuda_recorder_faults(), 0);
}

static void check_truth(void)
{
    assert_int_equal(cuda_recorder_faults(), 0);
    assert_int_equal(device_bytes(), truth_bytes());
    assert_true(cuda_recorder_allocations() > THREADS * rounds / 8);
    drain();
}

/* Sizes tell allocations apart: each is another. */
static uint64_t next_size(void)
{
    static _Atomic uint64_t sizes = 1;

    return atomic_fetch_add_explicit(&sizes, 1, memory_order_relaxed);
}

static uint64_t random_of(uint64_t *state)
{
    *state += SEEP_HASH_SEED;
    return seep_hash_mix(*state);
}

/* A pointer on the shelf carries its size: address | size << 48 would do for
 * few; the index of the address and the size do for all. */
static uint64_t ticket_of(uint64_t address, uint64_t size_bytes)
{
    return size_bytes << 16 | (index_of(address) + 1);
}

static uint64_t allocate(uint32_t context)
{
    uint64_t size_bytes = next_size();
    uint64_t address = driver_allocate(size_bytes, context);

    if (address == 0) {
        return 0;
    }
    add(SEEP_CUDA_POINTER, SEEP_SPACE_DEVICE, address, size_bytes,
        context != 0 ? &contexts[context] : NULL);
    return ticket_of(address, size_bytes);
}

static void give(uint64_t ticket, bool refused)
{
    uint64_t address = FIRST + ((ticket & 0xffff) - 1) * STEP_BYTES;
    struct seep_cuda_leave leave =
        seep_cuda_ledger_leave(SEEP_CUDA_POINTER, address);
    bool gone = !refused && driver_free(address, ticket >> 16);

    seep_cuda_ledger_settle(&leave, gone);
}

/* Allocate, leave on the shelf, free what others left; some frees refused. */
static void *exchange(void *argument)
{
    uint64_t state = (uintptr_t)argument;

    for (uint32_t round = 0; round < rounds; round++) {
        uint64_t random = random_of(&state);
        uint64_t ticket = (random & 1) != 0 ? allocate(0) : 0;

        ticket = atomic_exchange_explicit(&shelf[random >> 8 & (SHELF - 1)],
                                          ticket, memory_order_acq_rel);
        if (ticket != 0) {
            if ((random >> 32 & 15) == 0) {
                give(ticket, true);
            }
            give(ticket, false);
        }
    }
    return NULL;
}

static void frees_from_other_threads_are_the_truth(void **state)
{
    (void)state;
    run(exchange);
    check_truth();
    assert_true(cuda_recorder_restores() > 0);
}

/* Every pointer is seen by two threads now and then, who both free it. */
static void *exchange_twice(void *argument)
{
    uint64_t state = (uintptr_t)argument;

    for (uint32_t round = 0; round < rounds; round++) {
        uint64_t random = random_of(&state);
        _Atomic uint64_t *place = &shelf[random >> 8 & 7];
        uint64_t ticket;

        if ((random & 1) != 0) {
            ticket = atomic_exchange_explicit(place, allocate(0),
                                              memory_order_acq_rel);
        } else {
            ticket = atomic_load_explicit(place, memory_order_acquire);
        }
        if (ticket != 0) {
            give(ticket, false);
        }
        if ((random >> 32 & 7) == 0) {
            sched_yield();
        }
    }
    return NULL;
}

/*
 * A free of what is gone may come when the address is another's: the entry of
 * that one leaves for a moment and is put back. In the end all must stand as
 * the driver has it; an entry that a free missed in such a moment is closed
 * when its address is given out again.
 */
static void double_frees_are_the_truth(void **state)
{
    (void)state;
    run(exchange_twice);
    while (driver.free_count != 0) {
        allocate(0);
    }
    check_truth();
}

static void destroy(uint32_t context)
{
    uint32_t mark = seep_cuda_ledger_mark();

    pthread_mutex_lock(&driver.lock);
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        if (driver.size_bytes[i] != 0 && driver.context[i] == context) {
            give_back(i);
        }
    }
    pthread_mutex_unlock(&driver.lock);
    seep_cuda_ledger_context_gone(mark, &contexts[context]);
}

/* Three threads have contexts of their own, and end them; the others take the
 * addresses that come free before that is known. */
static void *with_contexts(void *argument)
{
    uintptr_t id = (uintptr_t)argument;
    uint64_t state = id;
    uint32_t context = id <= 3 ? (uint32_t)id : 0;

    for (uint32_t round = 0; round < rounds / 8; round++) {
        uint64_t tickets[16];
        uint32_t count = (uint32_t)random_of(&state) & 15;

        for (uint32_t i = 0; i < count; i++) {
            tickets[i] = allocate(context);
        }
        if (context != 0) {
            if ((round & 7) == 0) {
                destroy(context);
                count = 0;
            }
        }
        for (uint32_t i = 0; i < count; i++) {
            if (tickets[i] != 0) {
                give(tickets[i], false);
            }
        }
    }
    return NULL;
}

static void contexts_that_end_are_the_truth(void **state)
{
    (void)state;
    run(with_contexts);
    check_truth();
}

/*
 * Physical memory: the address is its handle, and it is mapped at one of the
 * same number in another range. Released and unmapped in either order, the
 * two by different threads where they meet.
 */
static _Atomic uint64_t unmaps[SHELF];

static void driver_put(uint64_t handle, bool release)
{
    uint32_t index = index_of(handle);

    pthread_mutex_lock(&driver.lock);
    if (release) {
        driver.released[index] = true;
    } else {
        driver.mappings[index]--;
    }
    if (driver.released[index] && driver.mappings[index] == 0) {
        give_back(index);
    }
    pthread_mutex_unlock(&driver.lock);
}

static void put_mapping(uint64_t handle)
{
    struct seep_cuda_leave_range range =
        seep_cuda_ledger_unmap(mapping_of(handle), STEP_BYTES);

    driver_put(handle, false);
    seep_cuda_ledger_unmap_settle(&range, true);
}

static uint64_t create_and_map(void)
{
    uint64_t size_bytes = next_size();
    uint64_t handle = driver_allocate(size_bytes, 0);

    if (handle == 0) {
        return 0;
    }
    pthread_mutex_lock(&driver.lock);
    driver.mappings[index_of(handle)] = 1;
    pthread_mutex_unlock(&driver.lock);
    add(SEEP_CUDA_HANDLE, SEEP_SPACE_DEVICE, handle, size_bytes, NULL);
    seep_cuda_ledger_map(NULL, mapping_of(handle), STEP_BYTES, handle);
    return handle;
}

static void release(uint64_t handle)
{
    struct seep_cuda_leave leave =
        seep_cuda_ledger_leave(SEEP_CUDA_HANDLE, handle);

    driver_put(handle, true);
    seep_cuda_ledger_settle(&leave, true);
}

static void *with_mappings(void *argument)
{
    uint64_t state = (uintptr_t)argument;

    for (uint32_t round = 0; round < rounds; round++) {
        uint64_t random = random_of(&state);
        uint64_t handle = (random & 1) != 0 ? create_and_map() : 0;
        uint64_t other = atomic_exchange_explicit(
            &unmaps[random >> 8 & (SHELF - 1)], handle, memory_order_acq_rel);

        if (handle != 0) {
            release(handle); /* while another thread may unmap it */
        }
        if (other != 0) {
            put_mapping(other);
        }
    }
    return NULL;
}

static void memory_released_and_unmapped_at_once_is_the_truth(void **state)
{
    (void)state;
    run(with_mappings);
    check_truth();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frees_from_other_threads_are_the_truth),
        cmocka_unit_test(contexts_that_end_are_the_truth),
        cmocka_unit_test(memory_released_and_unmapped_at_once_is_the_truth),
        cmocka_unit_test(double_frees_are_the_truth),
    };

    rounds = seep_test_times(5000, 20000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
