/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The other backend: libunwind, loaded on demand and never linked.
 *
 * It is slower and does what the walker must not do (system calls, locks,
 * 5 KiB of stack); it is here to be compared with.
 */
#ifndef SEEP_CAPTURE_LIBUNWIND_WALK_H
#define SEEP_CAPTURE_LIBUNWIND_WALK_H

#include "capture/native.h"

/** Load the library. @return 0 or -ENOTSUP */
int seep_libunwind_init(void);

/** As seep_native_capture(), without bounds. */
size_t seep_libunwind_walk(const struct seep_capture_start *start,
                           uintptr_t *pcs, size_t capacity,
                           struct seep_capture_end *ret_end);

#endif
