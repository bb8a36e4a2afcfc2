/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizes of arrays by their format; see array_size.h. */
#include "cuda/array_size.h"

#include <stddef.h>

#define BLOCK_SIDE 4U

/* Of a compressed format: the bytes of a block of 4 by 4; else 0. */
static unsigned int block_bytes(int format)
{
    switch (format) {
    case SEEP_CUDA_FORMAT_BC1_UNORM:
    case SEEP_CUDA_FORMAT_BC1_UNORM_SRGB:
    case SEEP_CUDA_FORMAT_BC4_UNORM:
    case SEEP_CUDA_FORMAT_BC4_SNORM:
        return 8;
    default:
        return format >= SEEP_CUDA_FORMAT_BC2_UNORM &&
                       format <= SEEP_CUDA_FORMAT_BC7_UNORM_SRGB
                   ? 16
                   : 0;
    }
}

/* Of one channel. What is not known is taken for a byte. */
static unsigned int channel_bytes(int format)
{
    switch (format) {
    case SEEP_CUDA_FORMAT_UNSIGNED_INT16:
    case SEEP_CUDA_FORMAT_SIGNED_INT16:
    case SEEP_CUDA_FORMAT_HALF:
    case SEEP_CUDA_FORMAT_UNORM_INT16X1:
    case SEEP_CUDA_FORMAT_UNORM_INT16X2:
    case SEEP_CUDA_FORMAT_UNORM_INT16X4:
    case SEEP_CUDA_FORMAT_SNORM_INT16X1:
    case SEEP_CUDA_FORMAT_SNORM_INT16X2:
    case SEEP_CUDA_FORMAT_SNORM_INT16X4:
        return 2;
    case SEEP_CUDA_FORMAT_UNSIGNED_INT32:
    case SEEP_CUDA_FORMAT_SIGNED_INT32:
    case SEEP_CUDA_FORMAT_FLOAT:
        return 4;
    default:
        return 1;
    }
}

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t result;

    return __builtin_mul_overflow(a, b, &result) ? 0 : result;
}

static uint64_t at_least_one(uint64_t value)
{
    return value == 0 ? 1 : value;
}

static uint64_t blocks(uint64_t pixels)
{
    return pixels / BLOCK_SIDE + (pixels % BLOCK_SIDE != 0);
}

static uint64_t size_bytes(uint64_t width, uint64_t height, uint64_t depth,
                           int format, unsigned int channels_count)
{
    unsigned int block = block_bytes(format);
    uint64_t area;

    if (block != 0) {
        area = product(product(blocks(width), blocks(at_least_one(height))),
                       block);
    } else {
        area = product(width, at_least_one(height));
        if (format == SEEP_CUDA_FORMAT_NV12) {
            area += area / 2;
        } else if (format == SEEP_CUDA_FORMAT_UNORM_INT_101010_2) {
            area = product(area, 4);
        } else {
            area =
                product(area, product(channels_count, channel_bytes(format)));
        }
    }
    return product(area, at_least_one(depth));
}

uint64_t seep_cuda_array_bytes(const struct seep_cuda_array3d *array)
{
    return size_bytes(array->width, array->height, array->depth, array->format,
                      array->channels_count);
}

static uint64_t half(uint64_t size)
{
    return size > 1 ? size / 2 : size;
}

uint64_t seep_cuda_mipmap_bytes(const struct seep_cuda_array3d *array,
                                unsigned int levels_count)
{
    struct seep_cuda_array3d level = *array;
    bool is_layered =
        (array->flags & (SEEP_CUDA_ARRAY_LAYERED | SEEP_CUDA_ARRAY_CUBEMAP)) !=
        0;
    uint64_t sum = 0;

    /* After 64 halvings nothing changes. */
    for (unsigned int i = 0; i < levels_count && i < 64; i++) {
        uint64_t bytes = seep_cuda_array_bytes(&level);

        if (__builtin_add_overflow(sum, bytes, &sum)) {
            return 0;
        }
        level.width = half(level.width);
        level.height = half(level.height);
        level.depth = is_layered ? level.depth : half(level.depth);
    }
    return sum;
}

bool seep_cuda_array_has_memory(const struct seep_cuda_array3d *array)
{
    return (array->flags &
            (SEEP_CUDA_ARRAY_SPARSE | SEEP_CUDA_ARRAY_DEFERRED_MAPPING)) == 0;
}
