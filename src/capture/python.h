/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Python frames of the calling thread, from inside a hook, merged with the
 * native ones. CPython 3.8 to 3.14 with the GIL; see src/README.md.
 *
 * Threads: any number at once. Nothing here allocates, locks or makes a
 * Python object; the few functions of the interpreter that are called read a
 * word each. Whatever is not as expected switches Python off for good, with a
 * reason, and stacks are native again.
 *
 * Invariant: no function and no memory of an interpreter that could have been
 * unloaded is touched: one that came by dlopen only from stacks that it is on.
 */
#ifndef SEEP_CAPTURE_PYTHON_H
#define SEEP_CAPTURE_PYTHON_H

#include "capture/python_code.h"
#include "capture/python_lines.h"
#include "capture/python_merge.h"
#include "seep/stack.h"

/** Look for an interpreter among what is loaded; from the constructor only. */
void seep_python_init(void);

/**
 * An object was seen for the first time: is it an interpreter? From inside a
 * hook, with @address on the calling thread's stack.
 */
void seep_python_consider(uintptr_t address);

enum seep_python_state seep_python_state(void);

/** Are Python frames to be had, as far as is known? */
bool seep_python_is_on(void);

/** Does Python's own allocator map an arena there, of that size? Who needs the
 * next one need not be who keeps objects in it. */
bool seep_python_is_arena(uintptr_t pc, size_t size_bytes);

/** As PY_VERSION_HEX; 0: none was found. */
uint32_t seep_python_version(void);

#define SEEP_PYTHON_FILE_BYTES 1024U
#define SEEP_PYTHON_NAME_BYTES 256U

/** One capture under way, with all that is too large for a hook's stack. */
struct seep_python_stack {
    /* Filled by the caller: a native capture. */
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t sps[SEEP_STACK_FRAMES_MAX];
    size_t native_count;
    /* A signal came to one of these: Python may be in the middle of changing
     * its chain, so that is read with care, and proves nothing. */
    bool interrupted;

    /* Filled by seep_python_stack_fill(). */
    struct seep_merged_frame merged[SEEP_STACK_FRAMES_MAX];
    size_t count;
    bool truncated; /* frames of either kind are missing */
    bool attached;  /* the thread holds the GIL */

    struct seep_python_frame frames[SEEP_STACK_FRAMES_MAX];
    struct seep_python_chain chain;
    const struct seep_python *python; /* NULL: native frames only */

    /* Filled by seep_python_stack_text(). */
    char file[SEEP_PYTHON_FILE_BYTES];
    char name[SEEP_PYTHON_NAME_BYTES];
    struct seep_python_memory memory;
    _Atomic uintptr_t owner;
};

/** Take one of a few. @return NULL if all are in use: native only */
struct seep_python_stack *seep_python_stack_take(void);
void seep_python_stack_give(struct seep_python_stack *stack);

/** Add the Python frames, if there are any, to the native ones. */
void seep_python_stack_fill(struct seep_python_stack *stack);

/** Of a Python frame in stack->merged, before the stack is given back. */
static inline bool
seep_python_stack_identify(struct seep_python_stack *stack, uintptr_t code,
                           struct seep_python_identity *ret_identity)
{
    return seep_python_identify(stack->python, &stack->memory, code,
                                ret_identity);
}

/** The file and the name of a code object, cut to what fits. */
bool seep_python_stack_text(struct seep_python_stack *stack, uintptr_t code);

/** Use an interpreter that is made up, on probation. For tests. */
void seep_python_use(const struct seep_python *python);

/** In the child of a fork: other threads hold nothing any more. */
void seep_python_after_fork(void);

/** System calls are no longer welcome (seccomp): make none from now on. */
void seep_python_restrict(void);

#endif
