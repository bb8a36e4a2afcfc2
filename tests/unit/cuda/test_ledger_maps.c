/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cuda/ledger: physical memory and its mappings, imports, contexts. */
#include "cuda_ledger_test.h"

static int context_a;
static int context_b;

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
    uint64_t unknown = seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN);

    (void)state;
    create(handle);
    seep_cuda_ledger_map(NULL, address, 2 * MIB, handle);
    drop(SEEP_CUDA_HANDLE, handle);
    drop(SEEP_CUDA_HANDLE, handle);
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN), unknown + 1);
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
    uint64_t unknown = seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN);

    (void)state;
    seep_cuda_ledger_map(NULL, address, MIB, fresh());
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN), unknown + 1);
    unmap(address, MIB, true);
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN), unknown + 1);
    unmap(address, MIB, true);
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN), unknown + 2);
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

/* The driver may have taken the last one already: what is opened at that
 * address now is another thing, of another size. */
static void an_import_behind_the_last_close_is_a_new_one(void **state)
{
    uint64_t p = fresh();
    struct seep_cuda_leave leave;

    (void)state;
    add(SEEP_CUDA_IPC, SEEP_SPACE_IMPORTED, p, MIB, &context_a);
    leave = seep_cuda_ledger_leave(SEEP_CUDA_IPC, p);
    add(SEEP_CUDA_IPC, SEEP_SPACE_IMPORTED, p, 3 * MIB, &context_a);
    seep_cuda_ledger_settle(&leave, true);
    assert_int_equal(imported_bytes(), 3 * MIB);
    assert_int_equal(cuda_recorder_allocations(), 2);
    assert_int_equal(cuda_recorder_restores(), 0);
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

/* After all of the above: also what is OUT would be found here. */
static void no_slot_is_left_in_use(void **state)
{
    (void)state;
    assert_int_equal(used_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        TEST(an_import_behind_the_last_close_is_a_new_one),
        TEST(external_memory_lives_while_a_buffer_is_mapped),
        TEST(a_context_takes_its_own_and_nothing_else),
        TEST(a_context_at_the_same_address_keeps_what_came_later),
        TEST(a_context_that_was_not_destroyed_takes_nothing),
        TEST(a_context_takes_all_references_at_once),
        TEST(no_slot_is_left_in_use),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
