/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The memory of an interpreter, made up for every version that is known: a
 * thread of six frames, run by three calls of the evaluator (by six to 3.10).
 *
 * Invariant: everything lies in one arena, which is filled with garbage first.
 */
#ifndef SEEP_TESTS_PYTHON_WORLD_H
#define SEEP_TESTS_PYTHON_WORLD_H

#include "capture/python/interpreter.h"

#define WORLD_FRAMES 6U
#define WORLD_NATIVE_MAX 16U
#define WORLD_FILE "/srv/w\xc3\xb6rk/serve.py"
#define WORLD_FIRST_LINE 100
#define WORLD_DEBUG_WORDS 112U

struct python_world {
    unsigned int minor;
    struct seep_python python;
    uintptr_t pcs[WORLD_NATIVE_MAX];
    uintptr_t sps[WORLD_NATIVE_MAX];
    size_t native_count;
    uintptr_t state;                /* PyThreadState */
    uintptr_t frames[WORLD_FRAMES]; /* innermost first */
    uintptr_t codes[WORLD_FRAMES];
    uintptr_t runtime;
    uintptr_t version;
    const char *missing; /* a name that is not exported */
    const char *extra;   /* one that is */
    /* What the interpreter's functions answer. */
    uintptr_t own;
    uintptr_t now;
    bool finalizing;
    int finalizing_after; /* so many times more it says no; 0: see above */
    bool initialized;
};

extern struct python_world world;

/** Make the world of 3.@minor, and find the interpreter in it. */
void python_world_make(unsigned int minor, unsigned int seed);

/** The look-up of its names: a seep_python_lookup. */
uintptr_t python_world_lookup(const void *data, const char *name,
                              size_t *ret_bytes);

/** What _Py_DebugOffsets says, which is there from 3.13 on. @return number of
 * words */
size_t python_world_debug_words(unsigned int minor, uint64_t *words);

/** The line of a frame's instruction, and what is called there. */
int python_world_line(unsigned int frame);
const char *python_world_name(unsigned int frame);

uint64_t *python_world_word(uintptr_t address);

#endif
