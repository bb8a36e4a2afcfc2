/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recording as typed pointers: where its parts are, what of it may be
 * touched, and the weights of sampled blocks. Nothing here changes it. */
#include "format/view.h"

#include "base/hash.h"
#include "base/math.h"
#include "base/word.h"
#include "seep/recording.h"

/* What grows is reserved an eighth of what it has ahead: few system calls, and
 * never much for nothing. */
#define STEP_SHARE 8U

void seep_view_init(struct seep_view *ret_view, void *recording)
{
    struct seep_rec_header *header = recording;
    const struct seep_rec_section *sections = header->sections;

    ret_view->header = header;
    ret_view->room = NULL;
#define FIND(symbol, type, pointer, size) \
    ret_view->pointer =                   \
        (void *)((char *)recording +      \
                 sections[SEEP_SECTION_##symbol].offset_bytes);
    SEEP_VIEW_SECTIONS(FIND, FIND)
#undef FIND
#define COUNT(symbol, type, pointer, count) \
    ret_view->count = sections[SEEP_SECTION_##symbol].entry_count;
    SEEP_VIEW_SECTIONS(COUNT, SEEP_VIEW_NONE)
#undef COUNT
    ret_view->device_count =
        sections[SEEP_SECTION_DEVICES].entry_count / SEEP_BUCKET_COUNT;
    ret_view->ring_slots = header->ring_slots;
}

bool seep_view_reserve(const struct seep_view *view,
                       const volatile void *extent, uint64_t extent_bytes,
                       const volatile void *at, size_t bytes)
{
    const volatile char *file = (const volatile char *)view->header;
    uint64_t from = (uint64_t)((const volatile char *)at - file);
    uint64_t start = (uint64_t)((const volatile char *)extent - file);

    uint64_t most = from + (from - start) / STEP_SHARE;

    most = most < start + extent_bytes ? most : start + extent_bytes;
    return seep_view_has(view, at, bytes) ||
           view->room->reserve(view, from, from + bytes, most);
}

bool seep_view_reserve_entry(const struct seep_view *view,
                             enum seep_section which, uint64_t index)
{
    const struct seep_rec_section *section = &view->header->sections[which];
    const char *extent = (const char *)view->header + section->offset_bytes;

    return seep_view_reserve(view, extent, section->bytes,
                             extent + index * section->entry_bytes,
                             section->entry_bytes);
}

bool seep_view_take(const struct seep_view *view, enum seep_section which,
                    _Atomic uint32_t *used, uint32_t most, uint32_t *ret_index)
{
    uint32_t index = seep_word_load(used);

    do {
        if (index >= most || !seep_view_reserve_entry(view, which, index)) {
            return false;
        }
    } while (!seep_word_replace(used, &index, index + 1));
    *ret_index = index;
    return true;
}

/* The own frames of @stack at @from of the whole, as far as they go.
 * @return false: it is damaged */
static bool take_own(const struct seep_view *view,
                     const struct seep_rec_stack *stack, uint32_t count,
                     uint32_t from, uint64_t *frames)
{
    uint32_t own = count - stack->shared_count;

    if (stack->first_frame > view->frame_capacity ||
        own > view->frame_capacity - stack->first_frame) {
        return false;
    }
    for (uint32_t i = from; i < own; i++) {
        frames[i - from] =
            seep_word_load(&view->frames[stack->first_frame + i]);
    }
    return true;
}

uint32_t seep_view_frames(const struct seep_view *view, uint32_t stack,
                          uint64_t *ret_frames)
{
    uint32_t wanted = 0; /* the outermost so many are still to come */
    uint32_t all = 0;

    /* Each gives one at least, so a chain that is longer is damaged. */
    for (uint32_t hop = 0; hop <= SEEP_STACK_FRAMES_MAX; hop++) {
        const struct seep_rec_stack *at = &view->stacks[stack];
        /* Acquire: its fields and frames; pairs with the release of who
         * published it (record/sites.c). */
        uint32_t count =
            stack < view->stack_capacity
                ? atomic_load_explicit(&at->frame_count, memory_order_acquire)
                : 0;

        if (hop == 0) {
            wanted = all = count;
        }
        if (count == 0 || count > SEEP_STACK_FRAMES_MAX || count < wanted ||
            at->shared_count >= count ||
            !take_own(view, at, count, count - wanted,
                      ret_frames + (all - wanted))) {
            return 0;
        }
        wanted = wanted < at->shared_count ? wanted : at->shared_count;
        if (wanted == 0) {
            return all;
        }
        stack = at->shared_stack;
    }
    return 0;
}

const char *seep_view_string(const struct seep_view *view, seep_string string)
{
    /* The last byte of the section is 0 in every valid recording: it is never
     * written. A damaged one is made so by who copies it. */
    return string < view->string_bytes ? view->strings + string : "";
}

bool seep_view_is_on_host(uint32_t space)
{
    return space == SEEP_SPACE_HEAP || space == SEEP_SPACE_MAPPED ||
           space == SEEP_SPACE_PYTHON || space == SEEP_SPACE_PINNED ||
           space == SEEP_SPACE_MANAGED;
}

bool seep_view_is_sampled(uint32_t space)
{
    return space == SEEP_SPACE_HEAP || space == SEEP_SPACE_PYTHON ||
           space == SEEP_SPACE_TENSOR;
}

uint32_t seep_view_shard_of(const struct seep_view *view, uint64_t address)
{
    return (uint32_t)(seep_hash_mix(address >> 12) >> 32) &
           (view->header->shard_count - 1);
}

double seep_weight_probability(uint64_t size_bytes, unsigned sample_log2)
{
    if (sample_log2 == 0) {
        return 1.0;
    }
    /* A block of no bytes is never sampled by itself, yet can be recorded:
     * exact mode keeps it. It is treated as one byte. */
    if (size_bytes == 0) {
        size_bytes = 1;
    }
    return seep_math_one_minus_exp((double)size_bytes /
                                   (double)(UINT64_C(1) << sample_log2));
}

/* Of a damaged recording the figures may be of any size. */
static uint64_t rounded(double value)
{
    return value < 0x1p63 ? (uint64_t)(value + 0.5) : UINT64_C(1) << 63;
}

struct seep_weight seep_weight_of(uint64_t size_bytes, unsigned sample_log2)
{
    struct seep_weight weight = {size_bytes, SEEP_COUNT_ONE};
    double p;

    if (sample_log2 == 0) {
        return weight;
    }
    p = seep_weight_probability(size_bytes, sample_log2);
    weight.bytes = rounded((double)size_bytes / p);
    weight.count_q16 = rounded((double)SEEP_COUNT_ONE / p);
    return weight;
}
