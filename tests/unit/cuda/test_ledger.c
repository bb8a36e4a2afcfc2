/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cuda/ledger: what comes, what goes, and what the driver refuses. */
#include "cuda_ledger_test.h"

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
    uint64_t unknown = seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN);

    (void)state;
    drop(SEEP_CUDA_POINTER, fresh());
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN), unknown + 1);
    assert_int_equal(cuda_recorder_frees(), 0);
}

static void a_free_of_nothing_is_not_even_counted(void **state)
{
    uint64_t unknown = seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN);

    (void)state;
    drop(SEEP_CUDA_POINTER, 0);
    add_pointer(0, 10);
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN), unknown);
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

static void an_old_free_does_not_end_a_new_life(void **state)
{
    uint64_t p = fresh();
    struct seep_cuda_leave old;
    struct seep_cuda_leave refused;

    (void)state;
    add_pointer(p, 1000);
    old = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, p);
    add_pointer(p, 10);
    refused = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, p);
    seep_cuda_ledger_settle(&old, true);
    seep_cuda_ledger_settle(&refused, false);
    assert_int_equal(device_bytes(), 10);
    drop(SEEP_CUDA_POINTER, p);
}

/* What another thread does while this one puts an entry back. */
static uint64_t contested;
static struct seep_cuda_leave taken;

static void settle_taken(void)
{
    seep_cuda_ledger_settle(&taken, true);
}

static void settle_taken_and_add(void)
{
    settle_taken();
    add_pointer(contested, 10);
}

static void what_goes_while_it_is_put_back_is_gone(void **state)
{
    struct seep_cuda_leave refused;

    (void)state;
    contested = fresh();
    add_pointer(contested, 1000);
    refused = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, contested);
    taken = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, contested);
    cuda_recorder_during_restore(settle_taken);
    seep_cuda_ledger_settle(&refused, false);
    assert_int_equal(device_bytes(), 0);
    assert_int_equal(used_count(), 0);
}

static void what_comes_while_the_old_is_put_back_is_another(void **state)
{
    struct seep_cuda_leave refused;

    (void)state;
    contested = fresh();
    add_pointer(contested, 1000);
    refused = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, contested);
    taken = seep_cuda_ledger_leave(SEEP_CUDA_POINTER, contested);
    cuda_recorder_during_restore(settle_taken_and_add);
    seep_cuda_ledger_settle(&refused, false);
    assert_int_equal(device_bytes(), 10);
    assert_int_equal(cuda_recorder_faults(), 0);
    drop(SEEP_CUDA_POINTER, contested);
    assert_int_equal(device_bytes(), 0);
}

static void an_address_given_out_again_closes_what_was_there(void **state)
{
    uint64_t p = fresh();
    uint64_t replaced = seep_cuda_count(SEEP_COUNT_CUDA_REPLACED);

    (void)state;
    add_pointer(p, 1000);
    add_pointer(p, 10);
    assert_int_equal(device_bytes(), 10);
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_REPLACED), replaced + 1);
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
    assert_int_equal(cuda_recorder_bytes(SEEP_SPACE_MANAGED, -1), 200);
    drop(SEEP_CUDA_POINTER, p);
    drop(SEEP_CUDA_POINTER, p + 256);
}

static void what_has_no_memory_is_known_and_told_to_nobody(void **state)
{
    uint64_t unknown = seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN);
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
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN), unknown);
}

static void what_does_not_fit_is_counted_and_not_told(void **state)
{
    uint64_t full = seep_cuda_count(SEEP_COUNT_CUDA_FULL);
    uint64_t first = fresh();
    uint64_t added = 0;

    (void)state;
    while (seep_cuda_count(SEEP_COUNT_CUDA_FULL) == full) {
        add_pointer(first + added++ * 512, 1);
    }
    /* Not full before it is nearly full. */
    assert_true(added > (UINT64_C(1) << 17) * 8 / 10);
    assert_int_equal(device_bytes(), added - 1);
    assert_int_equal(used_count(), added - 1);
    for (uint64_t i = 0; i < added; i++) {
        drop(SEEP_CUDA_POINTER, first + i * 512);
    }
    assert_int_equal(cuda_recorder_count(), 0);
    add_pointer(first, 1);
    assert_int_equal(device_bytes(), 1);
    drop(SEEP_CUDA_POINTER, first);
    assert_int_equal(used_count(), 0);
}

static void nothing_is_kept_before_the_recorder_is_ready(void **state)
{
    uint64_t p = fresh();
    uint64_t unknown = seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN);

    (void)state;
    seep_cuda_events_set(NULL);
    add_pointer(p, 1);
    drop(SEEP_CUDA_POINTER, p);
    seep_cuda_ledger_map(NULL, p, MIB, p);
    unmap(p, MIB, true);
    assert_int_equal(used_count(), 0);
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN), unknown);
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
        TEST(an_old_free_does_not_end_a_new_life),
        TEST(what_goes_while_it_is_put_back_is_gone),
        TEST(what_comes_while_the_old_is_put_back_is_another),
        TEST(an_address_given_out_again_closes_what_was_there),
        TEST(one_address_is_many_kinds),
        TEST(a_block_is_of_its_device),
        TEST(what_has_no_memory_is_known_and_told_to_nobody),
        TEST(what_does_not_fit_is_counted_and_not_told),
        TEST(nothing_is_kept_before_the_recorder_is_ready),
        TEST(a_forked_child_forgets_for_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
