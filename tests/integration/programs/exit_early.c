/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exit() in an IFUNC resolver of a library, before what is preloaded is
 * relocated: there is nothing yet to end but the process.
 */
#include <stdlib.h>

int exit_early_answer(void);

#ifdef EXIT_EARLY_LIBRARY

static int answer(void)
{
    return 42;
}

__attribute__((used)) static int (*resolve(void))(void)
{
    exit(5);
    return answer;
}

/* Hidden: relocated last, when all that the resolver calls is. */
int exit_early_resolved(void)
    __attribute__((ifunc("resolve"), visibility("hidden")));

int exit_early_answer(void)
{
    return exit_early_resolved();
}

#else

int main(void)
{
    return exit_early_answer();
}
#endif
