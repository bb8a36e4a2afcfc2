/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cuda/ledger: every rule of what is live, one thread at a time. */
#include "seep_test.h"

#include "cuda/ledger.h"
#include "cuda_recorder.h"

#define MIB (UINT64_C(1) << 20)

static int context_a;
static int context_b;

/* Whatever a test leaves live is no matter of the next: each takes its own
 * addresses. */
static uint64_t fresh(void)
{
    static uint64_t next = UINT64_C(0x7f0000000000);

    next += 64 * MIB;
    return next;
}

static int start(void **state)
{
    (void)state;
    cuda_recorder_start();
    return 0;
}

static int check(void **state)
{
    (void)state;
    return cuda_recorder_faults() == 0 ? 0 : -1;
}

static void add(enum seep_cuda_kind kind, enum seep_space space, uint64_t value,
                uint64_t size_bytes, const void *context)
{
    seep_cuda_ledger_add(NULL,
                         &(struct seep_cuda_block){.kind = kind,
                                                   .space = space,
                                                   .device = 0,
                                                   .value = value,
                                                   .size_bytes = size_bytes,
                                                   .context = context});
}

static void add_pointer(uint64_t value, uint64_t size_bytes)
{
    add(SEEP_CUDA_POINTER, SEEP_SPACE_DEVICE, value, size_bytes, NULL);
}

static void drop(enum seep_cuda_kind kind, uint64_t value)
{
    struct seep_cuda_leave leave = seep_cuda_ledger_leave(kind, value);

    seep_cuda_ledger_settle(&leave, true);
}

static uint64_t device_bytes(void)
{
    return cuda_recorder_bytes(SEEP_SPACE_DEVICE, -1);
}

static uint64_t imported_bytes(void)
{
    return cuda_recorder_bytes(SEEP_SPACE_IMPORTED, -1);
}

static void a_block_is_live_until_it_is_freed(void **state)
{
    uint64_t p = fresh();

    (void)state;
    add_pointer(p, 1000);
    assert_int_equal(device_bytes(), 1000);
    drop(SEEP_CUDA_POINTER, p);
    assert_int_equal(device_bytes(), 0);
    assert_int_equal(cuda_recorder_count(), 0);
}

static void a_block_leaves_before_the_driver_is_asked(void **state)
{
    uint64_t p = fresh();
    struct seep_cuda_leave leave;

    (void)state;
    add_pointer(p, 1000);
    leave = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, p);
    assert_int_equal(device_bytes(), 0);
    seep_cuda_ledger_settle(&leave, true);
}

static void a_refused_free_is_taken_back(void **state)
{
    uint64_t p = fresh();
    struct seep_cuda_leave leave;

    (void)state;
    add_pointer(p, 1000);
    leave = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, p);
    seep_cuda_ledger_settle(&leave, false);
    assert_int_equal(device_bytes(), 1000);
    assert_int_equal(cuda_recorder_restores(), 1);
    drop(SEEP_CUDA_POINTER, p);
    assert_int_equal(device_bytes(), 0);
}

static void a_free_of_what_is_not_known_is_only_counted(void **state)
{
    uint64_t unknown = seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN);

    (void)state;
    drop(SEEP_CUDA_POINTER, fresh());
    assert_int_equal(seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN), unknown + 1);
    assert_int_equal(cuda_recorder_frees(), 0);
}

static void a_free_of_nothing_is_not_even_counted(void **state)
{
    uint64_t unknown = seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN);

    (void)state;
    drop(SEEP_CUDA_POINTER, 0);
    add_pointer(0, 10);
    assert_int_equal(seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN), unknown);
    assert_int_equal(cuda_recorder_allocations(), 0);
}

static void a_second_free_changes_nothing(void **state)
{
    uint64_t p = fresh();
    struct seep_cuda_leave leave;

    (void)state;
    add_pointer(p, 1000);
    drop(SEEP_CUDA_POINTER, p);
    leave = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, p);
    seep_cuda_ledger_settle(&leave, false);
    assert_int_equal(device_bytes(), 0);
    assert_int_equal(cuda_recorder_frees(), 1);
}

static void of_two_frees_at_once_the_one_the_driver_took_counts(void **state)
{
    struct seep_cuda_leave first;
    struct seep_cuda_leave second;

    (void)state;
    for (unsigned order = 0; order < 4; order++) {
        uint64_t p = fresh();
        bool first_is_taken = (order & 1) != 0;

        add_pointer(p, 1000);
        first = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, p);
        second = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, p);
        if ((order & 2) != 0) {
            seep_cuda_ledger_settle(&first, first_is_taken);
            seep_cuda_ledger_settle(&second, !first_is_taken);
        } else {
            seep_cuda_ledger_settle(&second, !first_is_taken);
            seep_cuda_ledger_settle(&first, first_is_taken);
        }
        assert_int_equal(device_bytes(), 0);
        add_pointer(p, 10);
        assert_int_equal(device_bytes(), 10);
        drop(SEEP_CUDA_POINTER, p);
    }
}

static void an_address_given_out_while_its_free_returns_is_new(void **state)
{
    uint64_t p = fresh();
    struct seep_cuda_leave leave;

    (void)state;
    add_pointer(p, 1000);
    leave = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, p);
    add_pointer(p, 10);
    seep_cuda_ledger_settle(&leave, true);
    assert_int_equal(device_bytes(), 10);
    drop(SEEP_CUDA_POINTER, p);
    assert_int_equal(device_bytes(), 0);
}

static void an_address_given_out_again_closes_what_was_there(void **state)
{
    uint64_t p = fresh();
    uint64_t replaced = seep_cuda_count_get(SEEP_CUDA_COUNT_REPLACED);

    (void)state;
    add_pointer(p, 1000);
    add_pointer(p, 10);
    assert_int_equal(device_bytes(), 10);
    assert_int_equal(seep_cuda_count_get(SEEP_CUDA_COUNT_REPLACED),
                     replaced + 1);
    drop(SEEP_CUDA_POINTER, p);
}

static void one_address_is_many_kinds(void **state)
{
    uint64_t p = fresh();

    (void)state;
    add_pointer(p, 1);
    add(SEEP_CUDA_HOST, SEEP_SPACE_PINNED, p, 2, NULL);
    add(SEEP_CUDA_REGISTERED, SEEP_SPACE_REGISTERED, p, 4, NULL);
    add(SEEP_CUDA_ARRAY, SEEP_SPACE_DEVICE, p, 8, NULL);
    add(SEEP_CUDA_MIPMAP, SEEP_SPACE_DEVICE, p, 16, NULL);
    add(SEEP_CUDA_HANDLE, SEEP_SPACE_DEVICE, p, 32, NULL);
    add(SEEP_CUDA_RESERVED, SEEP_SPACE_RESERVED, p, 64, NULL);
    assert_int_equal(device_bytes(), 1 + 8 + 16 + 32);
    drop(SEEP_CUDA_REGISTERED, p);
    drop(SEEP_CUDA_ARRAY, p);
    assert_int_equal(device_bytes(), 1 + 16 + 32);
    assert_int_equal(cuda_recorder_bytes(SEEP_SPACE_PINNED, -1), 2);
    assert_int_equal(cuda_recorder_bytes(SEEP_SPACE_REGISTERED, -1), 0);
    assert_int_equal(cuda_recorder_bytes(SEEP_SPACE_RESERVED, -1), 64);
    drop(SEEP_CUDA_POINTER, p);
    drop(SEEP_CUDA_HOST, p);
    drop(SEEP_CUDA_MIPMAP, p);
    drop(SEEP_CUDA_HANDLE, p);
    drop(SEEP_CUDA_RESERVED, p);
    assert_int_equal(cuda_recorder_count(), 0);
}

static void a_block_is_of_its_device(void **state)
{
    uint64_t p = fresh();
    struct seep_cuda_block block = {.kind = SEEP_CUDA_POINTER,
                                    .space = SEEP_SPACE_MANAGED,
                                    .device = 7,
                                    .value = p,
                                    .size_bytes = 100};

    (void)state;
    seep_cuda_ledger_add(NULL, &block);
    block.device = -1;
    block.value = p + 256;
    seep_cuda_ledger_add(NULL, &block);
    assert_int_equal(cuda_recorder_bytes(SEEP_SPACE_MANAGED, 7), 100);
    assert_int_equal(seep_cuda_ledger_live_bytes(SEEP_SPACE_MANAGED, 7), 100);
    assert_int_equal(seep_cuda_ledger_live_bytes(SEEP_SPACE_MANAGED, -1), 200);
    drop(SEEP_CUDA_POINTER, p);
    drop(SEEP_CUDA_POINTER, p + 256);
}

static void what_has_no_memory_is_known_and_told_to_nobody(void **state)
{
    uint64_t unknown = seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN);
    struct seep_cuda_block multicast = {.kind = SEEP_CUDA_HANDLE,
                                        .space = SEEP_SPACE_DEVICE,
                                        .silent = true,
                                        .value = fresh(),
                                        .size_bytes = MIB};
    struct seep_cuda_leave leave;

    (void)state;
    seep_cuda_ledger_add(NULL, &multicast);
    leave = seep_cuda_ledger_leave(SEEP_CUDA_HANDLE, multicast.value);
    seep_cuda_ledger_settle(&leave, false);
    drop(SEEP_CUDA_HANDLE, multicast.value);
    assert_int_equal(cuda_recorder_allocations(), 0);
    assert_int_equal(cuda_recorder_frees(), 0);
    assert_int_equal(cuda_recorder_restores(), 0);
    assert_int_equal(seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN), unknown);
}

static void unmap(uint64_t address, uint64_t size_bytes, bool gone)
{
    struct seep_cuda_leave_range range =
        seep_cuda_ledger_unmap(address, size_bytes);

    seep_cuda_ledger_unmap_settle(&range, gone);
}

static void create(uint64_t handle)
{
    add(SEEP_CUDA_HANDLE, SEEP_SPACE_DEVICE, handle, 2 * MIB, NULL);
}

static void memory_lives_while_it_is_mapped(void **state)
{
    uint64_t handle = fresh();
    uint64_t address = fresh();

    (void)state;
    create(handle);
    seep_cuda_ledger_map(NULL, address, 2 * MIB, handle);
    assert_int_equal(device_bytes(), 2 * MIB);
    drop(SEEP_CUDA_HANDLE, handle);
    assert_int_equal(device_bytes(), 2 * MIB);
    unmap(address, 2 * MIB, true);
    assert_int_equal(device_bytes(), 0);
    assert_int_equal(seep_cuda_ledger_live_bytes(SEEP_SPACE_DEVICE, -1), 0);
}

static void memory_lives_while_it_has_a_handle(void **state)
{
    uint64_t handle = fresh();
    uint64_t address = fresh();

    (void)state;
    create(handle);
    seep_cuda_ledger_map(NULL, address, 2 * MIB, handle);
    unmap(address, 2 * MIB, true);
    assert_int_equal(device_bytes(), 2 * MIB);
    seep_cuda_ledger_retain(SEEP_CUDA_HANDLE, handle);
    drop(SEEP_CUDA_HANDLE, handle);
    assert_int_equal(device_bytes(), 2 * MIB);
    drop(SEEP_CUDA_HANDLE, handle);
    assert_int_equal(device_bytes(), 0);
}

static void a_released_handle_is_retained_through_its_mapping(void **state)
{
    uint64_t handle = fresh();
    uint64_t address = fresh();

    (void)state;
    create(handle);
    seep_cuda_ledger_map(NULL, address, 2 * MIB, handle);
    drop(SEEP_CUDA_HANDLE, handle);
    seep_cuda_ledger_retain(SEEP_CUDA_HANDLE, handle);
    unmap(address, 2 * MIB, true);
    assert_int_equal(device_bytes(), 2 * MIB);
    drop(SEEP_CUDA_HANDLE, handle);
    assert_int_equal(device_bytes(), 0);
}

static void memory_mapped_twice_is_counted_once(void **state)
{
    uint64_t handle = fresh();
    uint64_t first = fresh();
    uint64_t second = fresh();

    (void)state;
    create(handle);
    seep_cuda_ledger_map(NULL, first, MIB, handle);
    seep_cuda_ledger_map(NULL, second, MIB, handle);
    drop(SEEP_CUDA_HANDLE, handle);
    assert_int_equal(device_bytes(), 2 * MIB);
    unmap(first, MIB, true);
    assert_int_equal(device_bytes(), 2 * MIB);
    unmap(second, MIB, true);
    assert_int_equal(device_bytes(), 0);
}

static void an_unmap_takes_all_that_lies_inside(void **state)
{
    uint64_t address = fresh();
    uint64_t handles[4];

    (void)state;
    /* 0, 1 and 2 one after the other, a gap, 3 */
    for (unsigned i = 0; i < 4; i++) {
        handles[i] = fresh();
        create(handles[i]);
        seep_cuda_ledger_map(NULL, address + (i < 3 ? i : 5) * 2 * MIB, 2 * MIB,
                             handles[i]);
        drop(SEEP_CUDA_HANDLE, handles[i]);
    }
    unmap(address, 2 * MIB, true);
    assert_int_equal(device_bytes(), 6 * MIB);
    unmap(address + 2 * MIB, 4 * MIB, true);
    assert_int_equal(device_bytes(), 2 * MIB);
    unmap(address, 64 * MIB, true);
    assert_int_equal(device_bytes(), 0);
}

static void an_unmap_takes_nothing_that_reaches_out(void **state)
{
    uint64_t address = fresh();
    uint64_t handle = fresh();

    (void)state;
    create(handle);
    seep_cuda_ledger_map(NULL, address, 2 * MIB, handle);
    drop(SEEP_CUDA_HANDLE, handle);
    unmap(address, MIB, false);
    unmap(address + MIB, 4 * MIB, false);
    unmap(address - MIB, 2 * MIB, false);
    assert_int_equal(device_bytes(), 2 * MIB);
    assert_int_equal(cuda_recorder_restores(), 0);
    unmap(address - MIB, 4 * MIB, true);
    assert_int_equal(device_bytes(), 0);
}

static void a_refused_unmap_is_taken_back(void **state)
{
    uint64_t address = fresh();
    uint64_t handle = fresh();

    (void)state;
    create(handle);
    seep_cuda_ledger_map(NULL, address, MIB, handle);
    seep_cuda_ledger_map(NULL, address + MIB, MIB, handle);
    drop(SEEP_CUDA_HANDLE, handle);
    unmap(address, 2 * MIB, false);
    assert_int_equal(device_bytes(), 2 * MIB);
    assert_int_equal(cuda_recorder_restores(), 1);
    unmap(address, 2 * MIB, true);
    assert_int_equal(device_bytes(), 0);
}

static void a_refused_release_is_taken_back(void **state)
{
    uint64_t handle = fresh();
    struct seep_cuda_leave leave;

    (void)state;
    create(handle);
    seep_cuda_ledger_retain(SEEP_CUDA_HANDLE, handle);
    leave = seep_cuda_ledger_leave(SEEP_CUDA_HANDLE, handle);
    seep_cuda_ledger_settle(&leave, false);
    assert_int_equal(cuda_recorder_restores(), 0);
    drop(SEEP_CUDA_HANDLE, handle);
    leave = seep_cuda_ledger_leave(SEEP_CUDA_HANDLE, handle);
    seep_cuda_ledger_settle(&leave, false);
    assert_int_equal(device_bytes(), 2 * MIB);
    assert_int_equal(cuda_recorder_restores(), 1);
    drop(SEEP_CUDA_HANDLE, handle);
    assert_int_equal(device_bytes(), 0);
}

static void one_release_too_many_is_not_known(void **state)
{
    uint64_t handle = fresh();
    uint64_t address = fresh();
    uint64_t unknown = seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN);

    (void)state;
    create(handle);
    seep_cuda_ledger_map(NULL, address, 2 * MIB, handle);
    drop(SEEP_CUDA_HANDLE, handle);
    drop(SEEP_CUDA_HANDLE, handle);
    assert_int_equal(seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN), unknown + 1);
    assert_int_equal(device_bytes(), 2 * MIB);
    unmap(address, 2 * MIB, true);
}

static void an_imported_handle_counts_where_it_is_mapped(void **state)
{
    uint64_t handle = fresh();
    uint64_t address = fresh();

    (void)state;
    add(SEEP_CUDA_HANDLE, SEEP_SPACE_IMPORTED, handle, 0, NULL);
    add(SEEP_CUDA_HANDLE, SEEP_SPACE_IMPORTED, handle, 0, NULL);
    seep_cuda_ledger_map(NULL, address, 4 * MIB, handle);
    assert_int_equal(imported_bytes(), 4 * MIB);
    drop(SEEP_CUDA_HANDLE, handle);
    drop(SEEP_CUDA_HANDLE, handle);
    assert_int_equal(imported_bytes(), 4 * MIB);
    unmap(address, 4 * MIB, true);
    assert_int_equal(imported_bytes(), 0);
    assert_int_equal(device_bytes(), 0);
    assert_int_equal(cuda_recorder_count(), 0);
}

static void a_mapping_of_an_unknown_handle_can_be_unmapped(void **state)
{
    uint64_t address = fresh();
    uint64_t unknown = seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN);

    (void)state;
    seep_cuda_ledger_map(NULL, address, MIB, fresh());
    assert_int_equal(seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN), unknown + 1);
    unmap(address, MIB, true);
    assert_int_equal(seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN), unknown + 1);
    unmap(address, MIB, true);
    assert_int_equal(seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN), unknown + 2);
}

static void opens_of_another_process_memory_are_counted(void **state)
{
    uint64_t p = fresh();

    (void)state;
    add(SEEP_CUDA_IPC, SEEP_SPACE_IMPORTED, p, MIB, &context_a);
    add(SEEP_CUDA_IPC, SEEP_SPACE_IMPORTED, p, MIB, &context_a);
    assert_int_equal(imported_bytes(), MIB);
    drop(SEEP_CUDA_IPC, p);
    assert_int_equal(imported_bytes(), MIB);
    drop(SEEP_CUDA_IPC, p);
    assert_int_equal(imported_bytes(), 0);
}

static void external_memory_lives_while_a_buffer_is_mapped(void **state)
{
    uint64_t external = fresh();
    struct seep_cuda_block buffer = {.kind = SEEP_CUDA_POINTER,
                                     .space = SEEP_SPACE_IMPORTED,
                                     .silent = true,
                                     .value = fresh(),
                                     .size_bytes = MIB,
                                     .holder = external,
                                     .holder_kind = SEEP_CUDA_EXTERNAL};

    (void)state;
    add(SEEP_CUDA_EXTERNAL, SEEP_SPACE_IMPORTED, external, MIB, NULL);
    seep_cuda_ledger_add(NULL, &buffer);
    drop(SEEP_CUDA_EXTERNAL, external);
    assert_int_equal(imported_bytes(), MIB);
    drop(SEEP_CUDA_POINTER, buffer.value);
    assert_int_equal(imported_bytes(), 0);
    assert_int_equal(cuda_recorder_count(), 0);
}

static void a_context_takes_its_own_and_nothing_else(void **state)
{
    uint64_t p = fresh();
    uint64_t address = fresh();
    uint32_t mark;

    (void)state;
    add(SEEP_CUDA_POINTER, SEEP_SPACE_DEVICE, p, 1, &context_a);
    add(SEEP_CUDA_POINTER, SEEP_SPACE_MANAGED, p + 256, 1, &context_a);
    add(SEEP_CUDA_HOST, SEEP_SPACE_PINNED, p, 1, &context_a);
    add(SEEP_CUDA_ARRAY, SEEP_SPACE_DEVICE, p, 1, &context_a);
    add(SEEP_CUDA_POINTER, SEEP_SPACE_DEVICE, p + 512, 10, &context_b);
    add_pointer(p + 1024, 100); /* of a pool */
    create(p);
    seep_cuda_ledger_map(NULL, address, 2 * MIB, p);
    mark = seep_cuda_ledger_mark();
    seep_cuda_ledger_context_gone(mark, &context_a);
    assert_int_equal(device_bytes(), 110 + 2 * MIB);
    assert_int_equal(cuda_recorder_bytes(SEEP_SPACE_MANAGED, -1), 0);
    assert_int_equal(cuda_recorder_bytes(SEEP_SPACE_PINNED, -1), 0);
    seep_cuda_ledger_context_gone(seep_cuda_ledger_mark(), NULL);
    assert_int_equal(device_bytes(), 110 + 2 * MIB);
    drop(SEEP_CUDA_POINTER, p + 512);
    drop(SEEP_CUDA_POINTER, p + 1024);
    drop(SEEP_CUDA_HANDLE, p);
    unmap(address, 2 * MIB, true);
    assert_int_equal(cuda_recorder_count(), 0);
}

static void a_context_at_the_same_address_keeps_what_came_later(void **state)
{
    uint64_t p = fresh();
    uint32_t mark;

    (void)state;
    add(SEEP_CUDA_POINTER, SEEP_SPACE_DEVICE, p, 1, &context_a);
    mark = seep_cuda_ledger_mark();
    add(SEEP_CUDA_POINTER, SEEP_SPACE_DEVICE, p + 256, 10, &context_a);
    seep_cuda_ledger_context_gone(mark, &context_a);
    assert_int_equal(device_bytes(), 10);
    drop(SEEP_CUDA_POINTER, p + 256);
}

static void a_context_that_was_not_destroyed_takes_nothing(void **state)
{
    uint64_t p = fresh();

    (void)state;
    add(SEEP_CUDA_POINTER, SEEP_SPACE_DEVICE, p, 1, &context_a);
    seep_cuda_ledger_mark();
    assert_int_equal(device_bytes(), 1);
    drop(SEEP_CUDA_POINTER, p);
}

static void a_context_takes_all_references_at_once(void **state)
{
    uint64_t p = fresh();

    (void)state;
    add(SEEP_CUDA_IPC, SEEP_SPACE_IMPORTED, p, MIB, &context_a);
    add(SEEP_CUDA_IPC, SEEP_SPACE_IMPORTED, p, MIB, &context_a);
    seep_cuda_ledger_context_gone(seep_cuda_ledger_mark(), &context_a);
    assert_int_equal(imported_bytes(), 0);
    add(SEEP_CUDA_IPC, SEEP_SPACE_IMPORTED, p, MIB, &context_a);
    drop(SEEP_CUDA_IPC, p);
    assert_int_equal(imported_bytes(), 0);
}

static void what_does_not_fit_is_counted_and_not_told(void **state)
{
    uint64_t full = seep_cuda_count_get(SEEP_CUDA_COUNT_FULL);
    uint64_t first = fresh();
    uint64_t added = 0;

    (void)state;
    while (seep_cuda_count_get(SEEP_CUDA_COUNT_FULL) == full) {
        add_pointer(first + added++ * 512, 1);
    }
    /* Not full before it is nearly full. */
    assert_true(added > (UINT64_C(1) << 17) * 8 / 10);
    assert_int_equal(device_bytes(), added - 1);
    assert_int_equal(seep_cuda_ledger_live_count(), added - 1);
    for (uint64_t i = 0; i < added; i++) {
        drop(SEEP_CUDA_POINTER, first + i * 512);
    }
    assert_int_equal(cuda_recorder_count(), 0);
    add_pointer(first, 1);
    assert_int_equal(device_bytes(), 1);
    drop(SEEP_CUDA_POINTER, first);
    assert_int_equal(seep_cuda_ledger_live_count(), 0);
}

static void nothing_is_kept_before_the_recorder_is_ready(void **state)
{
    uint64_t p = fresh();
    uint64_t unknown = seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN);

    (void)state;
    seep_cuda_events_set(NULL);
    add_pointer(p, 1);
    drop(SEEP_CUDA_POINTER, p);
    seep_cuda_ledger_map(NULL, p, MIB, p);
    unmap(p, MIB, true);
    assert_int_equal(seep_cuda_ledger_live_count(), 0);
    assert_int_equal(seep_cuda_count_get(SEEP_CUDA_COUNT_UNKNOWN), unknown);
}

/* The last of all: there is no way back. */
static void a_forked_child_forgets_for_good(void **state)
{
    uint64_t p = fresh();

    (void)state;
    add_pointer(p, 1);
    seep_cuda_ledger_abandon();
    drop(SEEP_CUDA_POINTER, p);
    add_pointer(p + 256, 1);
    assert_int_equal(cuda_recorder_frees(), 0);
    assert_int_equal(cuda_recorder_allocations(), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, check)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_block_is_live_until_it_is_freed),
        TEST(a_block_leaves_before_the_driver_is_asked),
        TEST(a_refused_free_is_taken_back),
        TEST(a_free_of_what_is_not_known_is_only_counted),
        TEST(a_free_of_nothing_is_not_even_counted),
        TEST(a_second_free_changes_nothing),
        TEST(of_two_frees_at_once_the_one_the_driver_took_counts),
        TEST(an_address_given_out_while_its_free_returns_is_new),
        TEST(an_address_given_out_again_closes_what_was_there),
        TEST(one_address_is_many_kinds),
        TEST(a_block_is_of_its_device),
        TEST(what_has_no_memory_is_known_and_told_to_nobody),
        TEST(memory_lives_while_it_is_mapped),
        TEST(memory_lives_while_it_has_a_handle),
        TEST(a_released_handle_is_retained_through_its_mapping),
        TEST(memory_mapped_twice_is_counted_once),
        TEST(an_unmap_takes_all_that_lies_inside),
        TEST(an_unmap_takes_nothing_that_reaches_out),
        TEST(a_refused_unmap_is_taken_back),
        TEST(a_refused_release_is_taken_back),
        TEST(one_release_too_many_is_not_known),
        TEST(an_imported_handle_counts_where_it_is_mapped),
        TEST(a_mapping_of_an_unknown_handle_can_be_unmapped),
        TEST(opens_of_another_process_memory_are_counted),
        TEST(external_memory_lives_while_a_buffer_is_mapped),
        TEST(a_context_takes_its_own_and_nothing_else),
        TEST(a_context_at_the_same_address_keeps_what_came_later),
        TEST(a_context_that_was_not_destroyed_takes_nothing),
        TEST(a_context_takes_all_references_at_once),
        TEST(what_does_not_fit_is_counted_and_not_told),
        TEST(nothing_is_kept_before_the_recorder_is_ready),
        TEST(a_forked_child_forgets_for_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
