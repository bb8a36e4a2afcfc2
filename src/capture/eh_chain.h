/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Code without unwind information, passed by its frame pointers.
 *
 * What is compiled at run time mostly keeps them (V8, interpreters and stubs
 * of HotSpot); so does some code in objects that has no rules.
 *
 * Invariant: a step is made only if the frame records ascend on the stack and
 * lead back, in a few steps, into code of a loaded object; else the stack
 * ends here, as it would without.
 */
#ifndef SEEP_CAPTURE_EH_CHAIN_H
#define SEEP_CAPTURE_EH_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

/** A frame that was left by a call, and what of its stack may be read. */
struct seep_chain {
    uintptr_t pc; /* inside the calling instruction */
    uintptr_t sp; /* all of [sp, high) is readable */
    uintptr_t high;
    uintptr_t fp;
};

/**
 * Does chain->fp hold the record of this very frame?
 *
 * @return true if the caller's fp lies at chain->fp, and the return address
 *         behind it
 */
bool seep_chain_is_sound(const struct seep_chain *chain);

#endif
