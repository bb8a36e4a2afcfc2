/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kinds of services that map files: weights at each reload that nobody unmaps,
 * and what only looks like that.
 *
 * Invariant: files lie in the working folder and are gone from it at once;
 * they have holes for contents, so that they cost no disk.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verdict.h"

#define WEIGHTS_BYTES ((size_t)64 << 20)
#define READ_BYTES ((size_t)1 << 20) /* of the weights, at each reload */
#define RELOAD_TICKS (TICKS_PER_SECOND / 2)
#define LOG_STEP ((size_t)256 << 10)
#define LOG_WINDOW ((size_t)4 << 20)
#define LOG_TICKS 10

static int make_file(size_t bytes)
{
    char name[] = "weights-XXXXXX";
    int fd = mkstemp(name);

    if (fd < 0 || unlink(name) != 0 || ftruncate(fd, (off_t)bytes) != 0) {
        abort();
    }
    return fd;
}

static void *checked(void *address)
{
    if (address == MAP_FAILED) {
        abort();
    }
    return address;
}

/* As a loader of safetensors does: the descriptor is closed, the mapping is
 * what stays. */
SITE_FUNCTION static void *map_weights(int protection, int flags)
{
    int fd = make_file(WEIGHTS_BYTES);
    volatile char *weights =
        checked(mmap(NULL, WEIGHTS_BYTES, protection, flags, fd, (off_t)0));

    close(fd);
    for (size_t i = 0; i < READ_BYTES; i += 4096) {
        (void)weights[i];
    }
    return (void *)weights;
}

static bool is_reload(const struct verdict_run *run)
{
    return run->tick % RELOAD_TICKS == 0;
}

static void leak_shared(struct verdict_run *run)
{
    if (is_reload(run)) {
        map_weights(PROT_READ, MAP_SHARED);
        run->leaked_bytes += WEIGHTS_BYTES;
    }
}

static void leak_private(struct verdict_run *run)
{
    if (is_reload(run)) {
        map_weights(PROT_READ | PROT_WRITE, MAP_PRIVATE);
        run->leaked_bytes += WEIGHTS_BYTES;
    }
}

/* The weights of before go when those of now are there. */
static void replace(struct verdict_run *run)
{
    static void *weights;

    if (is_reload(run)) {
        void *old = weights;

        weights = map_weights(PROT_READ, MAP_PRIVATE);
        if (old != NULL) {
            munmap(old, WEIGHTS_BYTES);
        }
    }
}

static void map_once(struct verdict_run *run)
{
    if (run->tick == run->tick_count / 3) {
        for (int i = 0; i < 4; i++) {
            map_weights(PROT_READ, MAP_SHARED);
        }
    }
}

/* A log that grows, read through a window: as it goes on what was mapped
 * first is unmapped. */
SITE_FUNCTION static void map_log(struct verdict_run *run)
{
    static int fd = -1;
    static char *window[LOG_WINDOW / LOG_STEP];
    static size_t steps;
    char **slot = &window[steps % (LOG_WINDOW / LOG_STEP)];

    if (run->tick % LOG_TICKS != 0) {
        return;
    }
    fd = fd < 0 ? make_file(0) : fd;
    if (ftruncate(fd, (off_t)((steps + 1) * LOG_STEP)) != 0) {
        abort();
    }
    if (*slot != NULL) {
        munmap(*slot, LOG_STEP);
    }
    *slot = checked(mmap(NULL, LOG_STEP, PROT_READ, MAP_SHARED, fd,
                         (off_t)(steps * LOG_STEP)));
    steps++;
}

static void reload_plugin(struct verdict_run *run)
{
    if (run->tick % LOG_TICKS == 0) {
        void *plugin = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);

        if (plugin == NULL) {
            abort();
        }
        dlclose(plugin);
    }
}

const struct verdict_kind verdict_file_kinds[] = {
    {.name = "file-leak-shared", .tick = leak_shared},
    {.name = "file-leak-private", .tick = leak_private},
    {.name = "file-replaced", .tick = replace},
    {.name = "file-once", .tick = map_once},
    {.name = "file-window", .tick = map_log},
    {.name = "file-plugin", .tick = reload_plugin},
    {.name = NULL},
};
