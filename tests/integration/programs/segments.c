/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory that comes neither from malloc nor from mmap: pieces of the break, and
 * segments of shared memory.
 *
 * Invariant: what is printed is the same with us and without, and it keeps
 * BREAK_KEPT pieces and SEGMENTS_KEPT segments.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/shm.h>
#include <unistd.h>

#define PIECE_BYTES 65536
#define BREAK_TAKEN 40
#define BREAK_KEPT 25
#define SEGMENT_BYTES 300000 /* no whole pages */
#define SEGMENTS 12
#define SEGMENTS_KEPT 7

/* What a call gave, and why. */
static void tell(int result)
{
    printf("%d %d\n", result, errno);
    errno = 0;
}

static __attribute__((noinline)) int keep_of_the_break(void)
{
    return sbrk(PIECE_BYTES) == (void *)-1;
}

static __attribute__((noinline)) char *keep_segment(int id, int flags)
{
    char *start = shmat(id, NULL, flags);

    return start == (void *)-1 ? NULL : start;
}

static int use_segments(void)
{
    char *kept[SEGMENTS];
    int failed = 0;

    for (int i = 0; i < SEGMENTS; i++) {
        int id = shmget(IPC_PRIVATE, SEGMENT_BYTES, 0600);

        kept[i] = keep_segment(id, 0);
        failed += kept[i] == NULL || keep_segment(id, SHM_RDONLY) == NULL;
        shmctl(id, IPC_RMID, NULL);
        if (kept[i] != NULL) {
            memset(kept[i], i, SEGMENT_BYTES);
        }
    }
    for (int i = SEGMENTS_KEPT; i < SEGMENTS; i++) {
        failed += shmdt(kept[i]) != 0;
    }
    tell(shmdt(kept[0] + 1));
    tell(shmdt(kept[SEGMENTS - 1]));
    tell(keep_segment(-1, 0) == NULL);
    return failed;
}

int main(void)
{
    char *before = sbrk(0);
    int failed = 0;

    for (int i = 0; i < BREAK_TAKEN; i++) {
        failed += keep_of_the_break();
    }
    failed += sbrk(-(BREAK_TAKEN - BREAK_KEPT) * PIECE_BYTES) == (void *)-1;
    tell(sbrk(INTPTR_MAX) == (void *)-1);
    printf("%d\n", (char *)sbrk(0) - before >= BREAK_KEPT * PIECE_BYTES);
    return failed + use_segments();
}
