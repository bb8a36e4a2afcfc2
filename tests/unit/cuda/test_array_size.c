/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cuda/array_size: bytes by extents, format, flags and levels. */
#include "seep_test.h"

#include "cuda/hooks.h"

static uint64_t bytes_of(size_t width, size_t height, size_t depth, int format,
                         unsigned int channels_count)
{
    return seep_cuda_array_bytes(&(struct seep_cuda_array3d){
        .width = width,
        .height = height,
        .depth = depth,
        .format = format,
        .channels_count = channels_count,
    });
}

static void an_array_is_its_extents_by_its_channels(void **state)
{
    (void)state;
    assert_int_equal(bytes_of(100, 0, 0, SEEP_CUDA_FORMAT_FLOAT, 1), 400);
    assert_int_equal(bytes_of(100, 10, 0, SEEP_CUDA_FORMAT_HALF, 4), 8000);
    assert_int_equal(bytes_of(10, 10, 10, SEEP_CUDA_FORMAT_SIGNED_INT8, 2),
                     2000);
    assert_int_equal(bytes_of(10, 0, 6, SEEP_CUDA_FORMAT_UNSIGNED_INT32, 1),
                     240);
    assert_int_equal(bytes_of(10, 10, 0, SEEP_CUDA_FORMAT_UNORM_INT16X4, 4),
                     800);
    assert_int_equal(
        bytes_of(10, 10, 0, SEEP_CUDA_FORMAT_UNORM_INT_101010_2, 4), 400);
    assert_int_equal(bytes_of(16, 16, 0, SEEP_CUDA_FORMAT_NV12, 3), 384);
}

static void a_compressed_array_is_whole_blocks(void **state)
{
    (void)state;
    assert_int_equal(bytes_of(16, 16, 0, SEEP_CUDA_FORMAT_BC1_UNORM, 4), 128);
    assert_int_equal(bytes_of(17, 16, 0, SEEP_CUDA_FORMAT_BC1_UNORM, 4), 160);
    assert_int_equal(bytes_of(16, 16, 0, SEEP_CUDA_FORMAT_BC7_UNORM, 4), 256);
    assert_int_equal(bytes_of(16, 16, 2, SEEP_CUDA_FORMAT_BC4_SNORM, 1), 256);
}

static void what_no_memory_can_hold_is_nothing(void **state)
{
    (void)state;
    assert_int_equal(bytes_of(SIZE_MAX, SIZE_MAX, 2, SEEP_CUDA_FORMAT_FLOAT, 4),
                     0);
    assert_int_equal(bytes_of(SIZE_MAX, 1, 1, SEEP_CUDA_FORMAT_FLOAT, 4), 0);
}

static void a_mipmap_is_the_sum_of_its_levels(void **state)
{
    struct seep_cuda_array3d array = {.width = 8,
                                      .height = 4,
                                      .depth = 2,
                                      .format = SEEP_CUDA_FORMAT_FLOAT,
                                      .channels_count = 1};

    (void)state;
    assert_int_equal(seep_cuda_mipmap_bytes(&array, 0), 0);
    assert_int_equal(seep_cuda_mipmap_bytes(&array, 1), 256);
    assert_int_equal(seep_cuda_mipmap_bytes(&array, 2), 256 + 32);
    assert_int_equal(seep_cuda_mipmap_bytes(&array, 4), 256 + 32 + 8 + 4);
    array.flags = SEEP_CUDA_ARRAY_LAYERED;
    assert_int_equal(seep_cuda_mipmap_bytes(&array, 3), 256 + 64 + 16);
    array.height = 0;
    assert_int_equal(seep_cuda_mipmap_bytes(&array, 2), 64 + 32);
}

static void a_sparse_array_has_no_memory_of_its_own(void **state)
{
    struct seep_cuda_array3d array = {.flags = SEEP_CUDA_ARRAY_LAYERED};

    (void)state;
    assert_true(seep_cuda_array_has_memory(&array));
    array.flags = SEEP_CUDA_ARRAY_SPARSE;
    assert_false(seep_cuda_array_has_memory(&array));
    array.flags = SEEP_CUDA_ARRAY_DEFERRED_MAPPING;
    assert_false(seep_cuda_array_has_memory(&array));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_is_its_extents_by_its_channels),
        cmocka_unit_test(a_compressed_array_is_whole_blocks),
        cmocka_unit_test(what_no_memory_can_hold_is_nothing),
        cmocka_unit_test(a_mipmap_is_the_sum_of_its_levels),
        cmocka_unit_test(a_sparse_array_has_no_memory_of_its_own),
    };

    return cmocka_run_group_tests_name("cuda array_size", tests, NULL, NULL);
}
