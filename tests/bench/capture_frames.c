/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that call each other in a ring, with frames of different size, some
 * of which save registers. SHAPE is how this is built: rbp or rsp.
 */
#include "capture_frames.h"

#include "base/compiler.h"

#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)

/* One of a ring: the next one is called from its middle. */
#define LINK(name, next, words)                                           \
    static SEEP_NOINLINE int name(int depth, bottom_function *f,          \
                                  void *argument)                         \
    {                                                                     \
        volatile int local[words];                                        \
        int result;                                                       \
                                                                          \
        local[0] = depth;                                                 \
        result = depth <= 1 ? f(argument) : next(depth - 1, f, argument); \
        return result + local[0];                                         \
    }

static int first(int depth, bottom_function *f, void *argument);
static int aside(int depth, bottom_function *f, void *argument);

LINK(seventh, first, 2)
LINK(sixth, seventh, 40)
LINK(fifth, sixth, 8)
LINK(fourth, fifth, 2)
LINK(third, fourth, 20)
LINK(second, third, 12)
LINK(first, second, 4)

LINK(beside, aside, 30)
LINK(aside, beside, 6)

int NAME(descend_by_, SHAPE)(int depth, bottom_function *bottom, void *argument)
{
    return first(depth - 1, bottom, argument) + 1;
}

/* Other ways down, each from a function of its own. */
#define WAY(name)                                                              \
    static int from_##name(int depth, bottom_function *bottom, void *argument) \
    {                                                                          \
        return name(depth - 1, bottom, argument) + 1;                          \
    }

WAY(third)
WAY(fifth)
WAY(seventh)
WAY(aside)
WAY(beside)

descend_function *const NAME(ways_by_, SHAPE)[BENCH_WAYS] = {
    NAME(descend_by_, SHAPE),
    from_third,
    from_fifth,
    from_seventh,
    from_aside,
    from_beside,
};
