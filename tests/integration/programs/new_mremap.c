/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mremap() as glibc has it since 2.39: the fifth argument counts with
 * MREMAP_DONTUNMAP, too. To be preloaded. */
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    void *place = NULL;
    va_list arguments;

    if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) {
        va_start(arguments, flags);
        place = va_arg(arguments, void *);
        va_end(arguments);
    }
    return (void *)syscall(SYS_mremap, old, old_size, size, flags, place);
}
