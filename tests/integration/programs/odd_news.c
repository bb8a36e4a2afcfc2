/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every operator new with every operator delete, by the names that C++ gives
 * them.
 *
 *     odd_news [RUNTIME], odd_news_cxx, odd_news_early
 *
 * Built without the C++ runtime and with it; the third tells what a library
 * saw, which is built of the same and does it in an IFUNC resolver, before what
 * is preloaded is relocated. Where nobody has the operators nothing is printed.
 * RUNTIME is loaded first, for nobody but itself; 77 if it is not there.
 *
 * Invariant: what is printed is the same with us and without; no block is left.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "odd_calls.h"

#define HUGE_BYTES (SIZE_MAX / 2 - 4096)
#define ALIGNMENT 128

#define WEAK __attribute__((weak))
void *_Znwm(size_t) WEAK;
void *_Znam(size_t) WEAK;
void *_ZnwmRKSt9nothrow_t(size_t, const void *) WEAK;
void *_ZnamRKSt9nothrow_t(size_t, const void *) WEAK;
void *_ZnwmSt11align_val_t(size_t, size_t) WEAK;
void *_ZnamSt11align_val_t(size_t, size_t) WEAK;
void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t, size_t, const void *) WEAK;
void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t, size_t, const void *) WEAK;
void _ZdlPv(void *) WEAK;
void _ZdaPv(void *) WEAK;
void _ZdlPvm(void *, size_t) WEAK;
void _ZdaPvm(void *, size_t) WEAK;
void _ZdlPvRKSt9nothrow_t(void *, const void *) WEAK;
void _ZdaPvRKSt9nothrow_t(void *, const void *) WEAK;
void _ZdlPvSt11align_val_t(void *, size_t) WEAK;
void _ZdaPvSt11align_val_t(void *, size_t) WEAK;
void _ZdlPvmSt11align_val_t(void *, size_t, size_t) WEAK;
void _ZdaPvmSt11align_val_t(void *, size_t, size_t) WEAK;
void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *, size_t, const void *) WEAK;
void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *, size_t, const void *) WEAK;

static struct odd_calls_note notes[ODD_CALLS_MOST];
static size_t count;
static volatile size_t huge = HUGE_BYTES;

static void *note(void *block, size_t alignment)
{
    notes[count].what = block == NULL                       ? '0'
                        : (uintptr_t)block % alignment != 0 ? 'm'
                                                            : '+';
    count++;
    return block;
}

static void plain(size_t size)
{
    static const char tag;

    _ZdlPv(note(_Znwm(size), 16));
    _ZdaPv(note(_Znam(size), 16));
    _ZdlPvm(note(_Znwm(size), 16), size);
    _ZdaPvm(note(_Znam(size), 16), size);
    _ZdlPvRKSt9nothrow_t(note(_ZnwmRKSt9nothrow_t(size, &tag), 16), &tag);
    _ZdaPvRKSt9nothrow_t(note(_ZnamRKSt9nothrow_t(size, &tag), 16), &tag);
    note(_ZnwmRKSt9nothrow_t(huge, &tag), 16);
    note(_ZnamRKSt9nothrow_t(huge, &tag), 16);
}

static void aligned(size_t size)
{
    static const char tag;
    const size_t to = ALIGNMENT;

    _ZdlPvSt11align_val_t(note(_ZnwmSt11align_val_t(size, to), to), to);
    _ZdaPvSt11align_val_t(note(_ZnamSt11align_val_t(size, to), to), to);
    _ZdlPvmSt11align_val_t(note(_ZnwmSt11align_val_t(size, to), to), size, to);
    _ZdaPvmSt11align_val_t(note(_ZnamSt11align_val_t(size, to), to), size, to);
    _ZdlPvSt11align_val_tRKSt9nothrow_t(
        note(_ZnwmSt11align_val_tRKSt9nothrow_t(size, to, &tag), to), to, &tag);
    _ZdaPvSt11align_val_tRKSt9nothrow_t(
        note(_ZnamSt11align_val_tRKSt9nothrow_t(size, to, &tag), to), to, &tag);
    note(_ZnwmSt11align_val_tRKSt9nothrow_t(huge, to, &tag), to);
    note(_ZnamSt11align_val_tRKSt9nothrow_t(huge, to, &tag), to);
}

/* Not in line: the site that a test looks for. */
static __attribute__((noinline)) void odd_news_site(void)
{
    if (&_Znwm != NULL && &_ZdaPvSt11align_val_tRKSt9nothrow_t != NULL) {
        plain(100);
        aligned(100);
    }
}

#ifdef ODD_CALLS_LIBRARY

static int answer(void)
{
    return 42;
}

/* Runs while this library is relocated, and nothing that is preloaded is. */
__attribute__((used)) static int (*resolve(void))(void)
{
    odd_news_site();
    return answer;
}

/* Hidden: relocated last, when all that the resolver calls is. */
int odd_calls_answer(void)
    __attribute__((ifunc("resolve"), visibility("hidden")));

size_t odd_calls_early(const struct odd_calls_note **ret_notes)
{
    *ret_notes = notes;
    return odd_calls_answer() == 42 ? count : 0;
}

#else

int main(int argc, char **argv)
{
    const struct odd_calls_note *told = notes;

    if (argc > 1 && dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == NULL) {
        return 77;
    }
#ifdef ODD_CALLS_EARLY
    (void)odd_news_site;
    count = odd_calls_early(&told);
#else
    odd_news_site();
#endif
    for (size_t i = 0; i < count; i++) {
        putchar(told[i].what);
    }
    putchar('\n');
    return 0;
}
#endif
