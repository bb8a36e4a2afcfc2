/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Python's own objects: are its allocators wrapped (python_wrap.h), and do the
 * wrappers still stand where they were put?
 *
 * Invariant: nothing is wrapped but by the constructor, in an interpreter that
 * is there then and whose layout is known.
 */
#ifndef SEEP_PRELOAD_PYTHON_OBJECTS_H
#define SEEP_PRELOAD_PYTHON_OBJECTS_H

#include "seep/stack.h"

/**
 * From the constructor, after seep_stacks_init() and before there is a second
 * thread: find Python's allocators and wrap them, if that was asked for.
 */
void seep_python_objects_init(void);

/** What became of it, by a look at who is in front now. Takes no lock. */
enum seep_python_objects seep_python_objects_look(void);

#endif
