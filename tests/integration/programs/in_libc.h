/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Was the C library interrupted?
 *
 * A handler that jumps, forks or allocates does so only where it was not:
 * malloc left half way by a jump is broken for good, with or without seep.
 * Of the cache of a thread, say, a list is empty and its count is not yet 0:
 * the next malloc of that size follows NULL.
 *
 * Invariant: in_libc() only compares, so a handler may call it. Works in C and
 * C++.
 */
#ifndef SEEP_TEST_IN_LIBC_H
#define SEEP_TEST_IN_LIBC_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static uintptr_t libc_start;
static uintptr_t libc_end;

static int in_libc_look(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    if (strstr(info->dlpi_name, "libc.so") == NULL) {
        return 0;
    }
    libc_start = (uintptr_t)info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t end =
            (uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
                        info->dlpi_phdr[i].p_memsz);

        if (info->dlpi_phdr[i].p_type == PT_LOAD && end > libc_end) {
            libc_end = end;
        }
    }
    return 1;
}

/** To be called before the first signal: without it nothing may be left. */
static void in_libc_find(void)
{
    if (dl_iterate_phdr(in_libc_look, NULL) == 0) {
        abort();
    }
}

/** Of the context that a handler is given. */
static bool in_libc(const void *context)
{
    const ucontext_t *interrupted = (const ucontext_t *)context;
#if defined(__x86_64__)
    uintptr_t pc = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RIP];
#else
    uintptr_t pc = (uintptr_t)interrupted->uc_mcontext.pc;
#endif

    return pc >= libc_start && pc < libc_end;
}

#endif
