/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replies are read into a large buffer, the next of which is there already, and
 * realloc() leaves what came: small blocks between free pieces, into which no
 * buffer fits again.
 *
 *     pins KIND SECONDS
 *
 * leak: each reply is kept for ever. cache: the last so many are kept, and each
 * second a buffer of another size is used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES 65536U
#define REPLY_BYTES 24U
#define A_SECOND 20U /* replies */
#define CACHED 400U
#define LARGER_BYTES 64U

static void *cache[CACHED];

__attribute__((noinline)) static char *open_buffer(size_t bytes)
{
    char *buffer = malloc(bytes);

    if (buffer == NULL) {
        abort();
    }
    memset(buffer, 1, bytes);
    return buffer;
}

__attribute__((noinline)) static void *read_reply(size_t bytes)
{
    static char *ahead;
    char *buffer = ahead;

    ahead = open_buffer(bytes);
    return buffer == NULL ? NULL : realloc(buffer, REPLY_BYTES);
}

int main(int argc, char **argv)
{
    int is_cache = argc > 1 && strcmp(argv[1], "cache") == 0;
    unsigned replies = argc > 2 ? A_SECOND * (unsigned)atoi(argv[2]) : 0;

    for (unsigned i = 0; i < replies; i++) {
        size_t larger = is_cache ? LARGER_BYTES * (i / A_SECOND) : 0;
        void *reply = read_reply(BUFFER_BYTES + larger);

        if (is_cache) {
            free(cache[i % CACHED]);
            cache[i % CACHED] = reply;
        }
        usleep(1000000 / A_SECOND);
    }
    return 0;
}
