/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For a Python program to load by ctypes: what the project says of its stack,
 * as text, one frame a line, innermost first.
 *
 * Invariant: the calling thread is in python_frames_capture() for the whole
 * of a capture, with the GIL (PyDLL) or without it (CDLL).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/native/elf.h"
#include "capture/native/unwind.h"
#include "capture/python/interpreter.h"

#define EXPORT __attribute__((visibility("default")))
#define FILE_BYTES 512
#define NAME_BYTES 256

EXPORT int python_frames_open(int late, const void *address);
EXPORT int python_frames_state(void);
EXPORT unsigned int python_frames_version(void);
EXPORT const char *python_frames_words(int state);
EXPORT void python_frames_after_fork(void);
EXPORT int python_frames_capture(char *buffer, size_t size);
EXPORT long python_frames_spin(double seconds);
EXPORT int python_frames_time(int count, double *ret_ns);

static _Thread_local struct seep_stack_bounds bounds;

EXPORT int python_frames_open(int late, const void *address)
{
    seep_objects_init();
    if (seep_native_init(SEEP_UNWINDER_EH_FRAME) != 0) {
        return -1;
    }
    if (late) {
        seep_python_consider((uintptr_t)address);
    } else {
        seep_python_init();
    }
    return (int)seep_python_state();
}

EXPORT int python_frames_state(void)
{
    return (int)seep_python_state();
}

EXPORT unsigned int python_frames_version(void)
{
    return seep_python_version();
}

EXPORT const char *python_frames_words(int state)
{
    static const char *const words[] = {
#define WORDS(symbol, value, text) [value] = (text),
        SEEP_PYTHON_STATES(WORDS)
#undef WORDS
    };

    return state >= 0 && state < SEEP_PYTHON_STATE_COUNT ? words[state] : "?";
}

EXPORT void python_frames_after_fork(void)
{
    seep_native_after_fork();
    seep_python_after_fork();
}

/* "P file\tline\tname"; what cannot be read is "?". */
static int put_python(struct seep_python_stack *stack,
                      const struct seep_merged_frame *frame, char *buffer,
                      size_t size)
{
    struct seep_python_identity identity;
    char file[FILE_BYTES];
    char name[NAME_BYTES];
    int32_t line = -1;
    int32_t cached = -1;
    size_t bytes;

    if (!seep_python_identify(stack->python, &stack->memory, frame->address,
                              &identity) ||
        !seep_python_text(stack->python, &stack->memory, frame->address,
                          SEEP_PYTHON_FILE, file, sizeof(file), &bytes) ||
        !seep_python_text(stack->python, &stack->memory, frame->address,
                          SEEP_PYTHON_NAME, name, sizeof(name), &bytes) ||
        !seep_python_line(stack->python, &stack->memory, &identity,
                          frame->instruction, &line) ||
        !seep_python_line_cached(stack->python, &stack->memory, &identity,
                                 frame->instruction, &cached) ||
        cached != line) {
        return snprintf(buffer, size, "?\n");
    }
    return snprintf(buffer, size, "P %s\t%d\t%s\n", file, (int)line, name);
}

/* "E pc" in the evaluator, "N pc" elsewhere. */
static int put_native(const struct seep_python_stack *stack, uintptr_t pc,
                      char *buffer, size_t size)
{
    const struct seep_python *python = stack->python;

    return snprintf(buffer, size, "%c %lx\n",
                    python != NULL && pc >= python->evaluate_low &&
                            pc < python->evaluate_high
                        ? 'E'
                        : 'N',
                    (unsigned long)pc);
}

static size_t write_stack(struct seep_python_stack *stack, char *buffer,
                          size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < stack->count; i++) {
        const struct seep_merged_frame *frame = &stack->merged[i];
        int more =
            frame->is_python
                ? put_python(stack, frame, buffer + used, size - used)
                : put_native(stack, frame->address, buffer + used, size - used);

        if (more < 0 || (size_t)more >= size - used) {
            break;
        }
        used += (size_t)more;
    }
    return used;
}

/*
 * Capture and write. @return -1: not at all; else bit 0: with the GIL, bit 1:
 * truncated, bit 2: there are Python frames, and above that the cut.
 */
EXPORT int python_frames_capture(char *buffer, size_t size)
{
    struct seep_capture_start start = SEEP_CAPTURE_START();
    struct seep_python_stack *stack = seep_python_stack_take();
    struct seep_capture_end end;
    int result;
    int saved = errno;

    buffer[0] = '\0';
    if (stack == NULL) {
        return -1;
    }
    start.sps = stack->sps;
    stack->native_count = seep_native_capture(&start, &bounds, stack->pcs,
                                              SEEP_STACK_FRAMES_MAX, &end);
    seep_python_stack_own(stack, start.sp, bounds.low, bounds.high);
    errno = 12345;
    seep_python_stack_fill(stack);
    result = errno != 12345
                 ? -2
                 : stack->attached | stack->truncated << 1 |
                       (stack->python != NULL) << 2 | (int)end.cut << 3;
    write_stack(stack, buffer, size);
    seep_python_stack_give(stack);
    errno = saved;
    return result;
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Capture until the time is over, which may be after the interpreter's end.
 * @return how many there were */
EXPORT long python_frames_spin(double seconds)
{
    char buffer[1 << 14];
    double end = now_ns() + seconds * 1e9;
    long count = 0;

    while (now_ns() < end) {
        python_frames_capture(buffer, sizeof(buffer));
        count++;
    }
    return count;
}

static void take_native(struct seep_python_stack *stack,
                        const struct seep_capture_start *from)
{
    struct seep_capture_start start = *from;
    struct seep_capture_end end;

    start.sps = stack->sps;
    stack->native_count = seep_native_capture(&start, &bounds, stack->pcs,
                                              SEEP_STACK_FRAMES_MAX, &end);
    seep_python_stack_own(stack, start.sp, bounds.low, bounds.high);
}

static void take_python(struct seep_python_stack *stack,
                        const struct seep_capture_start *from)
{
    (void)from;
    seep_python_stack_fill(stack);
    if (stack->memory.pages != NULL) {
        seep_python_pages_give(stack->memory.pages);
        stack->memory.pages = NULL;
    }
}

static void take_lines(struct seep_python_stack *stack,
                       const struct seep_capture_start *from)
{
    struct seep_python_identity identity;
    int32_t line;

    (void)from;
    for (size_t i = 0; i < stack->count; i++) {
        if (stack->merged[i].is_python &&
            seep_python_identify(stack->python, &stack->memory,
                                 stack->merged[i].address, &identity)) {
            seep_python_line_cached(stack->python, &stack->memory, &identity,
                                    stack->merged[i].instruction, &line);
        }
    }
}

/*
 * The native walk, Python's with the merge, and the lines: ns of each, the
 * best of many short rounds. @return the number of Python frames
 */
EXPORT int python_frames_time(int count, double *ret_ns)
{
    static void (*const parts[])(struct seep_python_stack *,
                                 const struct seep_capture_start *) = {
        take_native, take_python, take_lines};
    struct seep_capture_start start = SEEP_CAPTURE_START();
    struct seep_python_stack *stack = seep_python_stack_take();

    if (stack == NULL) {
        return -1;
    }
    for (int part = 0; part < 3; part++) {
        ret_ns[part] = 1e12;
        for (int round = 0; round < count; round++) {
            double began = now_ns();

            for (int i = 0; i < 100; i++) {
                parts[part](stack, &start);
            }
            began = (now_ns() - began) / 100;
            ret_ns[part] = began < ret_ns[part] ? began : ret_ns[part];
        }
    }
    count = (int)stack->chain.count;
    seep_python_stack_give(stack);
    return count;
}
