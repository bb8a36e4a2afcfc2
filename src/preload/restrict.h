/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** Between the syscall() hook, which is a jump, and what it asks in C. */
#ifndef SEEP_PRELOAD_RESTRICT_H
#define SEEP_PRELOAD_RESTRICT_H

/** @return where to go on: the real syscall() */
long (*seep_restrict_syscall(long number, long operation))(long, ...)
    __attribute__((visibility("hidden")));

#endif
