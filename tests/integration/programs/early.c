/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Allocations before main and after it: in an IFUNC resolver, where nothing of
 * a preloaded library may be relocated yet, in .preinit_array, in constructors
 * and destructors. Built into a program and into a library of its own.
 *
 * Invariant: what one stage made, a later stage changes and frees.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "early.h"

static void *from_resolver;
static void *from_constructor;

static int answer(void)
{
    return 42;
}

/* Runs while the object that holds it is relocated. */
__attribute__((used)) static int (*resolve(void))(void)
{
    from_resolver = malloc(100);
    if (from_resolver != NULL) {
        *(char *)from_resolver = 'r';
    }
    return answer;
}

int EARLY_ANSWER(void) __attribute__((ifunc("resolve")));

__attribute__((constructor(101))) static void construct(void)
{
    from_constructor = calloc(10, 10);
    from_resolver = realloc(from_resolver, 5000);
}

__attribute__((destructor)) static void destruct(void)
{
    free(from_constructor);
    free(from_resolver);
}

int EARLY_CHECK(void)
{
    return from_constructor != NULL && from_resolver != NULL &&
           *(char *)from_resolver == 'r' && EARLY_ANSWER() == 42;
}

#ifdef EARLY_MAIN
static void *from_preinit;

static void preinit(int argument_count, char **arguments, char **variables)
{
    (void)argument_count;
    (void)arguments;
    (void)variables;
    from_preinit = malloc(200);
}

__attribute__((section(".preinit_array"),
               used)) static void (*const preinit_entry)(int, char **,
                                                         char **) = preinit;

int main(void)
{
    int library = early_library_check();
    int program = EARLY_CHECK();

    for (int i = 0; i < 1000; i++) {
        (void)strdup("a leak");
    }
    from_preinit = realloc(from_preinit, 100000);
    printf("library %d program %d preinit %d\n", library, program,
           from_preinit != NULL);
    free(from_preinit);
    return 0;
}
#endif
