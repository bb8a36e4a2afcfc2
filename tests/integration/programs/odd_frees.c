/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ends of blocks that few know: cfree(), free_sized() and
 * free_aligned_sized(), where anybody has them; and what becomes of blocks that
 * a library was given in an IFUNC resolver, before what is preloaded is
 * relocated.
 *
 * Built a third time as a library to be preloaded, which has the two names of
 * C23 and counts how often they are called with what they were made with.
 *
 * Invariant: what is printed is the same with us and without but for the
 * number of those calls; no block is left.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 100
#define ALIGNMENT 64
#define KEPT 8
#define ROUNDS 10

#define WEAK __attribute__((weak))
void cfree(void *) WEAK;
void free_sized(void *, size_t) WEAK;
void free_aligned_sized(void *, size_t, size_t) WEAK;
extern int odd_frees_count WEAK;
void *odd_frees_kept(int i);

#ifdef ODD_FREES_ALLOCATOR

void __libc_free(void *);

int odd_frees_count;

void free_sized(void *block, size_t size)
{
    odd_frees_count += size == BYTES;
    __libc_free(block);
}

void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    odd_frees_count += alignment == ALIGNMENT && size == BYTES;
    __libc_free(block);
}

#else

static void give_back(int how, void *block)
{
    if (how == 0 && &cfree != NULL) {
        cfree(block);
    } else if (how == 1 && &free_sized != NULL) {
        free_sized(block, BYTES);
    } else if (how == 2 && &free_aligned_sized != NULL) {
        free_aligned_sized(block, ALIGNMENT, BYTES);
    } else {
        free(block);
    }
}

/* Not in line: the site that a test looks for. */
static __attribute__((noinline)) void odd_frees_site(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        give_back(0, malloc(BYTES));
        give_back(1, malloc(BYTES));
        give_back(2, aligned_alloc(ALIGNMENT, BYTES));
    }
}

#ifdef ODD_CALLS_LIBRARY

static void *kept[KEPT];

static int answer(void)
{
    return 42;
}

/* Runs while this library is relocated, and nothing that is preloaded is. */
__attribute__((used)) static int (*resolve(void))(void)
{
    for (int i = 0; i < KEPT; i++) {
        kept[i] = memalign(ALIGNMENT, BYTES);
        *(char *)kept[i] = (char)i;
    }
    odd_frees_site();
    return answer;
}

int odd_calls_answer(void)
    __attribute__((ifunc("resolve"), visibility("hidden")));

void *odd_frees_kept(int i)
{
    return odd_calls_answer() == 42 ? kept[i] : NULL;
}

#else

/* Each of the kept ones goes another way. @return how many were as they should
 */
static int end_kept(void)
{
    static volatile size_t most = SIZE_MAX;
    int good = 0;
    char *moved;

    for (int i = 0; i < 4; i++) {
        give_back(i, odd_frees_kept(i));
    }
    moved = realloc(odd_frees_kept(4), 10 * BYTES);
    good += *moved == 4;
    free(moved);
    moved = reallocarray(odd_frees_kept(5), 1, 2);
    good += *moved == 5;
    free(moved);
    moved = odd_frees_kept(6);
    good += realloc(moved, most) == NULL && errno == ENOMEM && *moved == 6;
    free(moved);
    moved = odd_frees_kept(7);
    good += malloc_usable_size(moved) >= BYTES && *moved == 7;
    free(moved);
    return good;
}

int main(void)
{
    int good = end_kept();

    odd_frees_site();
    printf("%d %d\n", good, &odd_frees_count != NULL ? odd_frees_count : -1);
    return 0;
}
#endif
#endif
