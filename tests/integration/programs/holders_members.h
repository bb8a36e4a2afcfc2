/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What programs that keep blocks in members tell of themselves: a line for each
 * keeper, as holders.cc has it.
 */
#ifndef HOLDERS_MEMBERS_H
#define HOLDERS_MEMBERS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES 4000

struct keeper {
    const char *name;
    int line;
    const char *holder;
    void (*keep)(int i);
};

static inline char *fill(void *block)
{
    return (char *)memset(block, 1, BLOCK_BYTES);
}

/* The body is one line, so that its blocks are known by it. */
#define KEEPER(name, holder, body)                    \
    enum { name##_line = __LINE__ };                  \
    static const char *const name##_holder = holder;  \
    static __attribute__((noinline)) void name(int i) \
    {                                                 \
        (void)i;                                      \
        body;                                         \
    }

static inline void go_on(const struct keeper *keepers, size_t count,
                         char **arguments)
{
    int first = atoi(arguments[2]);
    char temporary[4096];

    for (int i = 0; i < first; i++) {
        for (size_t k = 0; k < count; k++) {
            keepers[k].keep(i);
        }
    }
    snprintf(temporary, sizeof(temporary), "%s.new", arguments[1]);
    FILE *file = fopen(temporary, "w");
    for (size_t k = 0; k < count; k++) {
        fprintf(file, "%s %d held 0 %s\n", keepers[k].name, keepers[k].line,
                keepers[k].holder);
    }
    fclose(file);
    rename(temporary, arguments[1]);
    for (int i = first;; i++) {
        usleep(100000);
        for (size_t k = 0; k < count; k++) {
            keepers[k].keep(i);
        }
    }
}

#endif
