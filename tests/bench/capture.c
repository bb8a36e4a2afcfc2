/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a capture costs by depth, cached, and what libunwind needs for the same
 * stack in the same run. Prints a table; judges nothing.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "base/compiler.h"
#include "capture/libunwind_walk.h"
#include "capture/native.h"
#include "capture/objects.h"

#define ROUNDS 15U

static struct seep_stack_bounds bounds;
static uint64_t best_ns[2];
static size_t frame_count;

/* libunwind looks the objects up by the name of the preload's hook. */
SEEP_EXPORT int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t,
                                                void *),
                                void *data)
{
    return seep_objects_iterate(callback, data);
}

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static size_t capture(const struct seep_capture_start *start, int backend)
{
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    struct seep_capture_end end;

    if (backend == 0) {
        return seep_native_capture(start, &bounds, pcs, SEEP_STACK_FRAMES_MAX,
                                   &end);
    }
    return seep_libunwind_walk(start, pcs, SEEP_STACK_FRAMES_MAX, &end);
}

/* The least of many rounds: the others were disturbed. */
static SEEP_NOINLINE void measure(void)
{
    struct seep_capture_start start = SEEP_CAPTURE_START();

    for (int backend = 0; backend < 2; backend++) {
        unsigned int calls = backend == 0 ? 20000 : 500;

        best_ns[backend] = UINT64_MAX;
        for (unsigned int round = 0; round < ROUNDS; round++) {
            uint64_t begin = now_ns();
            uint64_t spent;

            for (unsigned int i = 0; i < calls; i++) {
                frame_count = capture(&start, backend);
            }
            spent = (now_ns() - begin) * 10 / calls;
            best_ns[backend] =
                spent < best_ns[backend] ? spent : best_ns[backend];
        }
    }
}

static SEEP_NOINLINE int descend(int depth)
{
    if (depth <= 0) {
        measure();
        return 1;
    }
    return descend(depth - 1) + 1;
}

int main(void)
{
    static const int depths[] = {5, 15, 40, 95};

    seep_objects_init();
    if (seep_native_init(SEEP_UNWINDER_EH_FRAME) != 0) {
        return 77;
    }
    printf("frames  walker ns  ns a frame  libunwind ns  ratio\n");
    if (seep_libunwind_init() != 0) {
        printf("libunwind is not to be had: no ratio\n");
    }
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        /* measure, main, __libc_start_call_main and two below it */
        descend(depths[i] - 5);
        printf("%6zu  %9.1f  %10.1f  %12.1f  %5.1f\n", frame_count,
               (double)best_ns[0] / 10,
               (double)best_ns[0] / 10 / (double)frame_count,
               (double)best_ns[1] / 10,
               (double)best_ns[1] / (double)best_ns[0]);
    }
    return 0;
}
