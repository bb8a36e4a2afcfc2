/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The set of processes that are sampled. Invariant: before each sample the
 * process is still the one that was recorded, and after it the file holds it.
 *
 * A process may be killed at any time and cannot be sampled afterwards (a
 * zombie has no mappings), so the samples come often: each when it has lived a
 * quarter longer, from one second up to ten apart.
 */
#include <errno.h>
#include <search.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/thread.h"
#include "read/ask.h"
#include "read/follow.h"
#include "reader/process/sample.h"
#include "run/run.h"

#define SECOND_NS UINT64_C(1000000000)
#define LEAST_NS SECOND_NS
#define MOST_NS (10 * SECOND_NS)
#define LIFE_SHARE 4
/* A sample is followed by so many times the processor time it took without. */
#define REST_ALL 20
#define REST_ONE 100
#define TRIES 3

enum state {
    STATE_NEW,     /* no valid recording yet, or no room to watch it */
    STATE_WATCHED, /* has samples */
    STATE_OVER     /* ended, or never to be seen */
};

struct watched {
    const char *path;
    enum state state;
    unsigned int failures;
    struct seep_target target;
    uint64_t start_ns; /* of its recording */
    uint64_t next_ns;
    uint64_t ask_ns; /* when it may be asked who holds what */
    struct seep_external_samples samples;
};

struct seep_watch {
    void *known; /* tree of struct watched, by path */
    struct watched *active[SEEP_WATCH_LIMIT];
    size_t active_count;
    uint64_t rest_until_ns;
    bool asks;
    pid_t child; /* that asks; 0: none */
    struct watched *asked;
    bool was_refused;
};

static uint64_t now_ns(void)
{
    return seep_clock_ns(CLOCK_MONOTONIC);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct watched *)a)->path,
                  ((const struct watched *)b)->path);
}

static void forget(void *node)
{
    struct watched *watched = node;

    seep_external_samples_fini(&watched->samples);
    free(watched);
}

/*
 * Who holds what: asked by a child, one at a time.
 */

/* No verdict comes before 30 s; then each when it has lived a quarter longer,
 * and the child's time is a hundredth at most. */
#define ASK_FIRST_NS (31 * SECOND_NS)
#define ASK_MOST_NS (120 * SECOND_NS)
#define ASK_REST 100

static uint64_t ask_pause_of(const struct watched *watched, uint64_t now,
                             uint64_t took_ns)
{
    uint64_t lived_ns = now > watched->start_ns ? now - watched->start_ns : 0;
    uint64_t pause_ns = lived_ns / LIFE_SHARE;

    pause_ns = pause_ns < LEAST_NS ? LEAST_NS : pause_ns;
    pause_ns = pause_ns > ASK_MOST_NS ? ASK_MOST_NS : pause_ns;
    return pause_ns > ASK_REST * took_ns ? pause_ns : ASK_REST * took_ns;
}

static uint64_t time_of(const struct rusage *usage)
{
    return ((uint64_t)usage->ru_utime.tv_sec +
            (uint64_t)usage->ru_stime.tv_sec) *
               SECOND_NS +
           ((uint64_t)usage->ru_utime.tv_usec +
            (uint64_t)usage->ru_stime.tv_usec) *
               1000;
}

/* Take the child, if it has ended, or wait for it. */
static void end_child(struct seep_watch *watch, int options)
{
    struct rusage usage;
    uint64_t now = now_ns();
    int status;
    pid_t ended;

    do {
        ended = wait4(watch->child, &status, options, &usage);
    } while (ended < 0 && errno == EINTR);
    if (ended == 0) {
        return;
    }
    watch->child = 0;
    if (ended > 0) {
        watch->was_refused |=
            WIFEXITED(status) && WEXITSTATUS(status) == SEEP_ASK_EXIT_REFUSED;
        watch->asked->ask_ns =
            now + ask_pause_of(watch->asked, now, time_of(&usage));
    }
}

/* @return when it is to be called again */
static uint64_t attend_questions(struct seep_watch *watch)
{
    struct watched *next = NULL;

    if (watch->child > 0) {
        end_child(watch, WNOHANG);
    }
    for (size_t i = 0; watch->asks && i < watch->active_count; i++) {
        if (next == NULL || watch->active[i]->ask_ns < next->ask_ns) {
            next = watch->active[i];
        }
    }
    if (next == NULL || watch->child > 0) {
        return UINT64_MAX; /* its end is a signal */
    }
    if (next->ask_ns > now_ns()) {
        return next->ask_ns;
    }
    watch->asked = next;
    watch->child = seep_ask_start(next->path, &next->target);
    if (watch->child < 0) {
        watch->child = 0;
        next->ask_ns = now_ns() + ASK_MOST_NS;
        return next->ask_ns;
    }
    return UINT64_MAX;
}

int seep_watch_open(struct seep_watch **ret_watch)
{
    struct seep_watch *watch = calloc(1, sizeof(*watch));

    if (watch == NULL) {
        return -ENOMEM;
    }
    *ret_watch = watch;
    return 0;
}

void seep_watch_ask(struct seep_watch *watch)
{
    watch->asks = true;
}

void seep_watch_stop(struct seep_watch *watch)
{
    if (watch != NULL && watch->child > 0) {
        kill(watch->child, SIGTERM);
        end_child(watch, 0);
    }
}

bool seep_watch_owns(const struct seep_watch *watch, pid_t pid)
{
    return watch->child == pid;
}

bool seep_watch_was_refused(const struct seep_watch *watch)
{
    return watch != NULL && watch->was_refused;
}

void seep_watch_close(struct seep_watch *watch)
{
    if (watch != NULL) {
        seep_watch_stop(watch);
        tdestroy(watch->known, forget);
        free(watch);
    }
}

/* The one of that name, new if there was none; NULL without memory. */
static struct watched *know(struct seep_watch *watch, const char *path)
{
    struct watched key = {.path = path};
    struct watched **found = tfind(&key, &watch->known, compare);
    size_t bytes = strlen(path) + 1;

    if (found != NULL) {
        return *found;
    }
    struct watched *watched = calloc(1, sizeof(*watched) + bytes);
    if (watched == NULL) {
        return NULL;
    }
    watched->path = memcpy(watched + 1, path, bytes);
    if (tsearch(watched, &watch->known, compare) == NULL) {
        free(watched);
        return NULL;
    }
    return watched;
}

static void end(struct seep_watch *watch, size_t index)
{
    struct watched *watched = watch->active[index];

    watched->state = STATE_OVER;
    seep_external_samples_fini(&watched->samples);
    watch->active[index] = watch->active[--watch->active_count];
}

/* One process, several recordings by exec: the last is what is there now. */
static bool is_last_image(struct seep_watch *watch,
                          const struct watched *watched)
{
    for (size_t i = watch->active_count; i-- > 0;) {
        const struct watched *other = watch->active[i];

        if (other->target.pid != watched->target.pid ||
            other->target.start_clock != watched->target.start_clock) {
            continue;
        }
        if (other->start_ns > watched->start_ns) {
            return false;
        }
        end(watch, i);
    }
    return true;
}

static void begin(struct seep_watch *watch, struct watched *watched)
{
    watched->state = STATE_OVER;
    if (!is_last_image(watch, watched)) {
        return;
    }
    watched->state = STATE_WATCHED;
    watched->next_ns = watched->start_ns + LEAST_NS;
    watched->ask_ns = watched->start_ns + ASK_FIRST_NS;
    watched->failures = 0;
    seep_external_samples_read(watched->path,
                               &watched->samples); /* none is fine */
    watch->active[watch->active_count++] = watched;
}

int seep_watch_add(struct seep_watch *watch, const char *path)
{
    struct watched *watched = know(watch, path);
    struct seep_rec_header header;

    if (watched == NULL) {
        return -ENOMEM;
    }
    if (watched->state != STATE_NEW ||
        watch->active_count == SEEP_WATCH_LIMIT) {
        return 0;
    }
    if (!seep_harvest_read_header(path, &header)) {
        /* it may be in the making */
        watched->failures++;
        watched->state = watched->failures < TRIES ? STATE_NEW : STATE_OVER;
    } else if (seep_target_find(&header, &watched->target) < 0) {
        watched->state = STATE_OVER;
    } else {
        watched->start_ns = header.start_monotonic_ns;
        begin(watch, watched);
    }
    return 0;
}

/* @return negative errno if no more can come of it */
static int sample(struct watched *watched)
{
    struct seep_external_sample taken;
    struct stat status;
    int error;

    if (!seep_target_is_there(&watched->target) ||
        stat(watched->path, &status) != 0) {
        return -ESRCH;
    }
    error = seep_external_sample_take(watched->target.pid, watched->start_ns,
                                      &taken);
    if (error == 0) {
        seep_external_sample_name_own(&taken, (uint64_t)status.st_ino);
        error = seep_external_samples_add(&watched->samples, &taken);
        seep_external_sample_fini(&taken);
    }
    if (error == 0) {
        error = seep_external_samples_write(watched->path, &watched->samples);
    }
    watched->failures = error < 0 ? watched->failures + 1 : 0;
    return error == -ESRCH || watched->failures >= TRIES ? error : 0;
}

static uint64_t pause_of(const struct watched *watched, uint64_t now,
                         uint64_t took_ns)
{
    uint64_t lived_ns = now > watched->start_ns ? now - watched->start_ns : 0;
    uint64_t pause_ns = lived_ns / LIFE_SHARE;

    pause_ns = pause_ns < LEAST_NS ? LEAST_NS : pause_ns;
    pause_ns = pause_ns > MOST_NS ? MOST_NS : pause_ns;
    return pause_ns > REST_ONE * took_ns ? pause_ns : REST_ONE * took_ns;
}

static void attend_one(struct seep_watch *watch, size_t index)
{
    struct watched *watched = watch->active[index];
    uint64_t before_ns = seep_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    int error = sample(watched);
    uint64_t took_ns = seep_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns;
    uint64_t after_ns = now_ns();

    watch->rest_until_ns = after_ns + REST_ALL * took_ns;
    watched->next_ns = after_ns + pause_of(watched, after_ns, took_ns);
    if (error < 0) {
        end(watch, index);
    }
}

static uint64_t due_ns(const struct seep_watch *watch, size_t *ret_index)
{
    uint64_t due = UINT64_MAX;

    for (size_t i = 0; i < watch->active_count; i++) {
        if (watch->active[i]->next_ns < due) {
            due = watch->active[i]->next_ns;
            *ret_index = i;
        }
    }
    return due != UINT64_MAX && due < watch->rest_until_ns
               ? watch->rest_until_ns
               : due;
}

uint64_t seep_watch_attend(struct seep_watch *watch)
{
    uint64_t ask_ns = attend_questions(watch);
    size_t index = 0;

    if (due_ns(watch, &index) <= now_ns()) {
        attend_one(watch, index);
    }
    uint64_t due = due_ns(watch, &index);
    uint64_t now = now_ns();
    due = ask_ns < due ? ask_ns : due;
    if (due == UINT64_MAX) {
        return UINT64_MAX;
    }
    return due > now ? due - now : 0;
}
