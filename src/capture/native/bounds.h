/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The bounds of the stacks that are walked: of a thread's own, found once per
 * thread, and page by page of any other (a coroutine's, a signal's).
 *
 * By raw system calls only: pthread_getattr_np allocates.
 */
#ifndef SEEP_CAPTURE_NATIVE_BOUNDS_H
#define SEEP_CAPTURE_NATIVE_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/native/unwind.h"

/**
 * Fill @bounds for the thread whose stack pointer is @sp.
 *
 * What cannot be found out (no /proc, or @may_call is false) becomes bounds
 * that hold nothing, so that it is tried once only.
 */
void seep_stack_bounds_find(struct seep_stack_bounds *bounds, uintptr_t sp,
                            bool may_call);

/**
 * On a stack that is not the thread's own: go on to the page of @address.
 *
 * Each page from *@high on is proved readable first, by a system call that
 * changes nothing; so such stacks cost one for each page that is left.
 *
 * @param high  where what may be read ends; moved, if it can be
 * @return true if the word at @address may be read now
 */
bool seep_stack_bounds_widen(uintptr_t *high, uintptr_t address);

/** As above, for the page of a stack pointer; *@high is set to its end. */
bool seep_stack_bounds_enter(uintptr_t *high, uintptr_t sp);

/** Can @page, its address, be read? By a system call that changes nothing; once
 * those are not welcome, false. */
bool seep_page_is_readable(uintptr_t page);

/** No system calls from now on: nothing can be proved. */
void seep_stack_bounds_restrict(void);

/** The end of the page that @address lies in. */
static inline uintptr_t seep_stack_bounds_page_end(uintptr_t address)
{
    /* The smallest page there is: what it holds is readable or not as one. */
    return (address | 4095U) + 1;
}

/** A parser of /proc/self/maps that is fed in pieces. */
struct seep_maps_parser {
    uintptr_t wanted; /* address that is looked for */
    uintptr_t low;    /* run of writable mappings around it, 0: none yet */
    uintptr_t high;
    uintptr_t previous_end; /* end of the mapping below that run */
    uintptr_t start;        /* of the line that is being read */
    uintptr_t number;
    unsigned int field;
    bool writable;
    bool done;
};

void seep_maps_feed(struct seep_maps_parser *parser, const char *bytes,
                    size_t size);

#endif
