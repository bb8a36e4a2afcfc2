/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The thread that reads. Invariant: a report belongs to the follower, or to
 * the list of those that it let go, which goes with a shot and is closed when
 * a later shot has been taken: nobody looks at it then.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/thread.h"
#include "read/ask.h"
#include "read/follow.h"
#include "read/gather.h"
#include "top/top.h"

#define SECOND_NS UINT64_C(1000000000)
/* A reading is followed by so many times as long without, so that at most a
 * third of a processor goes into it. */
#define REST 2
#define END_WAIT_NS (SECOND_NS / 2)

/* Reports that are no longer in the list of the follower. */
struct gone {
    struct seep_report **reports;
    size_t count;
    size_t capacity;
};

struct shot {
    struct seep_top_shot shot;
    struct gone gone; /* may be closed once this shot has been taken */
};

struct seep_top_source {
    struct seep_follow *follow;
    struct seep_ask_memory answers;
    struct gone gone; /* of the reading that goes on */
    struct shot *taken;
    int fd;
    pthread_t thread;
    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t changed;
    struct shot *latest; /* not taken yet; NULL: none */
    double interval_s;
    bool paused;
    bool now;
    bool ends;
};

static void close_gone(struct gone *gone)
{
    for (size_t i = 0; i < gone->count; i++) {
        seep_report_close(gone->reports[i]);
    }
    free(gone->reports);
    *gone = (struct gone){0};
}

/* Without memory to remember it, it is never closed: it may be looked at. */
static void keep_gone(void *context, struct seep_report *report)
{
    struct gone *gone = context;

    if (gone->count == gone->capacity) {
        size_t capacity = gone->capacity * 2 + 16;
        struct seep_report **grown =
            reallocarray(gone->reports, capacity, sizeof(*grown));
        if (grown == NULL) {
            return;
        }
        gone->reports = grown;
        gone->capacity = capacity;
    }
    gone->reports[gone->count++] = report;
}

static void free_shot(struct shot *shot)
{
    if (shot != NULL) {
        close_gone(&shot->gone);
        free(shot->shot.reports);
        free(shot);
    }
}

/* The most important of what is to be said. */
static void note(const struct seep_follow *follow, int error,
                 const struct seep_refusal *refusal, const char *word,
                 struct seep_top_shot *shot)
{
    struct seep_follow_counts counts;
    size_t count;
    const struct seep_followed *const *list = seep_follow_list(follow, &count);

    seep_follow_counts(follow, &counts);
    for (size_t i = 0; i < count; i++) {
        if (list[i]->error < 0) {
            snprintf(shot->notice, sizeof(shot->notice),
                     "%s: %s; its figures are older",
                     seep_text_base_name(list[i]->path),
                     list[i]->refusal.reason);
            return;
        }
    }
    if (error < 0 && count == 0) {
        snprintf(shot->notice, sizeof(shot->notice), "%s: %s; %s",
                 word == NULL ? "?" : word, refusal->reason, refusal->remedy);
    } else if (counts.left_out > 0) {
        snprintf(shot->notice, sizeof(shot->notice),
                 "%zu more processes are not shown: `seep report` reads all",
                 counts.left_out);
    } else if (counts.refused > 0) {
        snprintf(shot->notice, sizeof(shot->notice),
                 "%zu file%s cannot be read: `seep report` says why",
                 counts.refused, counts.refused == 1 ? "" : "s");
    }
}

/* Where nothing else is to be said. */
static void note_nameless(const struct seep_follow *follow,
                          struct seep_top_shot *shot)
{
    size_t count;
    const struct seep_followed *const *list = seep_follow_list(follow, &count);

    for (size_t i = 0; i < count && shot->notice[0] == '\0'; i++) {
        if (list[i]->report->nameless_count > 0) {
            const struct seep_report_nameless *first =
                &list[i]->report->nameless[0];

            snprintf(shot->notice, sizeof(shot->notice), "%s %s; %s",
                     seep_text_base_name(first->path),
                     seep_nameless_reason(first->error), SEEP_NAMELESS_MEANS);
        }
    }
}

static struct shot *read_shot(struct seep_top_source *source)
{
    struct shot *shot = calloc(1, sizeof(*shot));
    struct seep_refusal refusal = {0};
    const char *word = NULL;
    size_t count;
    int error = seep_follow_refresh(source->follow, &refusal, &word);
    const struct seep_followed *const *list =
        seep_follow_list(source->follow, &count);

    if (shot == NULL) {
        return NULL;
    }
    shot->shot.reports = calloc(count + 1, sizeof(*shot->shot.reports));
    for (size_t i = 0; shot->shot.reports != NULL && i < count; i++) {
        shot->shot.reports[shot->shot.count++] = list[i]->report;
    }
    seep_gather_sort(shot->shot.reports, shot->shot.count);
    note(source->follow, error, &refusal, word, &shot->shot);
    note_nameless(source->follow, &shot->shot);
    shot->gone = source->gone;
    source->gone = (struct gone){0};
    return shot;
}

/* One that nobody took goes; what it let go goes with the new one. */
static void hand_over(struct seep_top_source *source, struct shot *shot)
{
    const uint64_t one = 1;
    struct shot *missed;

    pthread_mutex_lock(&source->mutex);
    missed = source->latest;
    source->latest = shot;
    if (missed != NULL) {
        for (size_t i = 0; i < missed->gone.count; i++) {
            keep_gone(&shot->gone, missed->gone.reports[i]);
        }
        missed->gone.count = 0;
    }
    pthread_mutex_unlock(&source->mutex);
    free_shot(missed);
    if (write(source->fd, &one, sizeof(one)) < 0) {
        /* its counter is full: readable it is in any case */
    }
}

static struct timespec at_ns(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / SECOND_NS),
                             .tv_nsec = (long)(ns % SECOND_NS)};
}

/* @return false if it is to end */
static bool wait_for_next(struct seep_top_source *source, uint64_t start_ns)
{
    uint64_t end_ns = seep_clock_ns(CLOCK_MONOTONIC);
    uint64_t least_ns = end_ns + REST * (end_ns - start_ns);

    pthread_mutex_lock(&source->mutex);
    for (;;) {
        uint64_t due_ns =
            start_ns + (uint64_t)(source->interval_s * (double)SECOND_NS);
        struct timespec due = at_ns(due_ns > least_ns ? due_ns : least_ns);

        if (source->ends || source->now) {
            break;
        }
        if (source->paused) {
            pthread_cond_wait(&source->changed, &source->mutex);
        } else if (pthread_cond_clockwait(&source->changed, &source->mutex,
                                          CLOCK_MONOTONIC, &due) == ETIMEDOUT) {
            break;
        }
    }
    source->now = false;
    bool goes_on = !source->ends;
    pthread_mutex_unlock(&source->mutex);
    return goes_on;
}

static void *read_on(void *context)
{
    struct seep_top_source *source = context;
    uint64_t start_ns;

    do {
        start_ns = seep_clock_ns(CLOCK_MONOTONIC);
        struct shot *shot = read_shot(source);
        if (shot != NULL) {
            hand_over(source, shot);
        }
    } while (wait_for_next(source, start_ns));
    return NULL;
}

int seep_top_source_open(char *const *words, size_t count,
                         const struct seep_report_options *options, bool asks,
                         double interval_s, struct seep_top_source **ret_source)
{
    struct seep_top_source *source = calloc(1, sizeof(*source));
    int error;

    if (source == NULL) {
        return -ENOMEM;
    }
    const struct seep_follow_options follow = {
        .report = *options,
        .answers = asks ? &source->answers : NULL,
        .keep_s = INFINITY,
        .let_go = keep_gone,
        .context = &source->gone};
    source->interval_s = interval_s;
    source->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    error = source->fd < 0 ? -errno : 0;
    if (error == 0) {
        error = seep_follow_open(words, count, &follow, &source->follow);
    }
    if (error == 0) {
        pthread_mutex_init(&source->mutex, NULL);
        pthread_cond_init(&source->changed, NULL);
        error = -pthread_create(&source->thread, NULL, read_on, source);
    }
    if (error < 0) {
        seep_follow_close(source->follow);
        if (source->fd >= 0) {
            close(source->fd);
        }
        free(source);
        return error;
    }
    *ret_source = source;
    return 0;
}

int seep_top_source_fd(const struct seep_top_source *source)
{
    return source->fd;
}

const struct seep_top_shot *seep_top_source_take(struct seep_top_source *source)
{
    uint64_t times;
    struct shot *shot;

    if (read(source->fd, &times, sizeof(times)) < 0) {
        /* nothing was to be read: there may be a shot all the same */
    }
    pthread_mutex_lock(&source->mutex);
    shot = source->latest;
    source->latest = NULL;
    pthread_mutex_unlock(&source->mutex);
    if (shot == NULL) {
        return NULL;
    }
    free_shot(source->taken);
    source->taken = shot;
    return &shot->shot;
}

void seep_top_source_set(struct seep_top_source *source, double interval_s,
                         bool paused, bool now)
{
    pthread_mutex_lock(&source->mutex);
    source->interval_s = interval_s;
    source->paused = paused;
    source->now = source->now || now;
    pthread_cond_signal(&source->changed);
    pthread_mutex_unlock(&source->mutex);
}

int seep_top_source_close(struct seep_top_source *source)
{
    struct timespec until;

    pthread_mutex_lock(&source->mutex);
    source->ends = true;
    pthread_cond_signal(&source->changed);
    pthread_mutex_unlock(&source->mutex);
    /* Not the join by the monotonic clock, which ThreadSanitizer does not know
     * yet. */
    until = at_ns(seep_clock_ns(CLOCK_REALTIME) + END_WAIT_NS);
    if (pthread_timedjoin_np(source->thread, NULL, &until) != 0) {
        return -EBUSY;
    }
    seep_follow_close(source->follow); /* lets go of all that it has */
    seep_ask_memory_fini(&source->answers);
    close_gone(&source->gone);
    free_shot(source->latest);
    free_shot(source->taken);
    pthread_cond_destroy(&source->changed);
    pthread_mutex_destroy(&source->mutex);
    close(source->fd);
    free(source);
    return 0;
}
