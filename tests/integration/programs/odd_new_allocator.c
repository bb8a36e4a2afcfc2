/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An allocator with some operators of C++ and without others: all operators
 * new (ALL_NEWS) or the plain one alone, and no delete. Who deletes frees.
 *
 * Its blocks are the C library's, by names that nothing stands before.
 */
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

EXPORTED void *malloc(size_t size)
{
    return __libc_malloc(size);
}

EXPORTED void *calloc(size_t count, size_t size)
{
    return __libc_calloc(count, size);
}

EXPORTED void *realloc(void *block, size_t size)
{
    return __libc_realloc(block, size);
}

EXPORTED void *memalign(size_t alignment, size_t size)
{
    return __libc_memalign(alignment, size);
}

EXPORTED void free(void *block)
{
    __libc_free(block);
}

EXPORTED void *_Znwm(size_t size)
{
    return __libc_malloc(size);
}

#ifdef ALL_NEWS
EXPORTED void *_Znam(size_t size)
{
    return __libc_malloc(size);
}

EXPORTED void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag)
{
    (void)tag;
    return __libc_malloc(size);
}

EXPORTED void *_ZnamRKSt9nothrow_t(size_t size, const void *tag)
{
    (void)tag;
    return __libc_malloc(size);
}

EXPORTED void *_ZnwmSt11align_val_t(size_t size, size_t alignment)
{
    return __libc_memalign(alignment, size);
}

EXPORTED void *_ZnamSt11align_val_t(size_t size, size_t alignment)
{
    return __libc_memalign(alignment, size);
}

EXPORTED void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment,
                                                  const void *tag)
{
    (void)tag;
    return __libc_memalign(alignment, size);
}

EXPORTED void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment,
                                                  const void *tag)
{
    (void)tag;
    return __libc_memalign(alignment, size);
}
#endif
