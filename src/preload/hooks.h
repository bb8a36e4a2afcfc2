/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Prototypes of the hooks, from hooks.def, and what the constructor and the
 * recording say to the files that they are in. The hooks carry the names of
 * what they stand before, so libc's own headers for those are not included
 * beside this.
 */
#ifndef SEEP_PRELOAD_HOOKS_H
#define SEEP_PRELOAD_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "format/view.h"
#include "seep/stack.h"

struct dl_phdr_info;

#define SEEP_HOOK(name, result, parameters) SEEP_EXPORT result name parameters;
#include "preload/hooks.def"
#undef SEEP_HOOK

/* The mapping hooks: what the constructor gives them. */

/** Code between @start and @end is the allocator: its mappings are its own
 * affair, what it hands out is counted by malloc's hooks. */
void seep_maps_init(const void *start, const void *end);

/** From the constructor: what dlsym() answers for functions of malloc's family
 * that libc may lack. */
void seep_malloc_answer(void);

/* operator new and delete: what the constructor decides for them. */

/** Once everything is looked up: who defines operator new? */
void seep_new_init(void);

/* Between the syscall() hook, which is a jump, and what it asks in C. */

/** @return where to go on: the real syscall() */
long (*seep_restrict_syscall(long number, long operation))(long, ...)
    __attribute__((visibility("hidden")));

/*
 * When the run ends, before the process does.
 *
 * CPython frees nearly everything when it finalises: a recording that went on
 * through that would show a program that leaked all day and holds nothing. So
 * it ends where the interpreter begins to finalise. What other programs free
 * from exit() on is recorded, and so is the moment of exit(): a reader goes
 * back to it.
 */

/** From the constructor: is this program an interpreter? */
void seep_ending_init(void);

/** Has it begun to finalise? One call and one load where there is one. */
bool seep_ending_has_begun(void);

/* From the CUDA part into the recorder: its events, its counters, and what the
 * devices have left (cuda_events.c). */

/** From the constructor, when the options are read. */
void seep_cuda_events_init(void);

/** Write the counters of the CUDA part into the recording. */
void seep_cuda_events_count(const struct seep_view *view);

/** In the child of a fork. */
void seep_cuda_events_after_fork(void);

/** System calls are no longer welcome: the driver is asked nothing more. */
void seep_cuda_events_restrict(void);

/* Python's own objects: are its allocators wrapped (preload/python/wrap.h), and
 * do the wrappers still stand where they were put? Nothing is wrapped but by
 * the constructor, in an interpreter that is there then and whose layout is
 * known.
 */

/**
 * From the constructor, after seep_stacks_init() and before there is a second
 * thread: find Python's allocators and wrap them, if that was asked for.
 */
void seep_python_objects_init(void);

/** What became of it, by a look at who is in front now. Takes no lock. */
enum seep_python_objects seep_python_objects_state(void);

#endif
