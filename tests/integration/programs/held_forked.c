/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A forked child keeps blocks on shelves, which stand in a room that a global
 * has, and waits; its heap is what it has from its parent, and what it adds.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 1200U
#define BLOCK_BYTES 20000U
#define PLACES 100U

struct shelf {
    void *places[PLACES];
};

struct shelf **room;

__attribute__((noinline)) static void *keep(void)
{
    void *block = malloc(BLOCK_BYTES);

    if (block != NULL) {
        memset(block, 1, BLOCK_BYTES);
    }
    return block;
}

int main(void)
{
    void *before = keep();
    pid_t child = fork();

    if (child != 0) {
        return child < 0 || waitpid(child, NULL, 0) != child;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (i == PLACES) {
            room = calloc(BLOCKS / PLACES, sizeof(*room));
        }
        if (i >= PLACES && i % PLACES == 0) {
            room[i / PLACES] = calloc(1, sizeof(**room));
        }
        if (i >= PLACES) {
            room[i / PLACES]->places[i % PLACES] = keep();
        } else {
            keep();
        }
    }
    printf("%d\n", (int)getpid());
    fflush(stdout);
    pause();
    free(before);
    return 0;
}
