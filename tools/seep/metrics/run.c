/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loop of `seep metrics`.
 *
 * Invariant: what follows the recordings is the reading thread's alone. It and
 * the server meet in the page only, and what goes wrong is said when it begins,
 * not at every turn.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "metrics/metrics.h"
#include "options/option.h"
#include "options/variables.h"
#include "read/gather.h"

#define NS_PER_S 1000000000.0
/* What a reading took is followed by so many times as much of rest at least. */
#define REST_SHARE 3
/* So long is waited for a reading that goes on when we are told to end. */
#define PATIENCE_S 1
/* Between two searches for clients that take too long. */
#define SWEEP_S 1

struct run {
    const struct seep_metrics_arguments *arguments;
    struct seep_follow *follow;
    struct seep_metrics_totals totals;
    struct seep_metrics_page page;
    struct seep_metrics_http *http;
    struct seep_metrics_socket socket;
    pthread_t reader;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ending; /* under the lock */
    int path_error;
    bool nothing; /* is shown */
    int file_error;
    int code;
};

static double now_s(void)
{
    return (double)seep_clock_ns(CLOCK_MONOTONIC) / NS_PER_S;
}

static void say_errno(const char *thing, int error, const char *remedy)
{
    seep_say(thing, strerror(-error), remedy);
}

static int scan(struct run *run)
{
    struct seep_refusal refusal = {0};
    const char *path = "metrics";
    int error = seep_follow_refresh(run->follow, &refusal, &path);

    if (error < 0 && run->path_error != error) {
        seep_why_refine(path, &refusal);
        if (*refusal.reason != '\0') {
            seep_say(path, refusal.reason, refusal.remedy);
        } else {
            say_errno(path, error, "check that it can be read");
        }
    }
    run->path_error = error;
    return error;
}

static void say_refusal(const char *path, const struct seep_refusal *refusal)
{
    seep_say(path, refusal->reason, refusal->remedy);
}

/* What was looked for, where nothing is shown: when that begins. */
static void say_nothing(struct run *run,
                        const struct seep_follow_counts *counts)
{
    const char *word = run->arguments->paths[0];
    char reason[96];

    if (counts->past > 0) {
        snprintf(reason, sizeof(reason),
                 "all of its recordings (%zu) ended too long ago to be shown",
                 counts->past);
        seep_say(word, reason, "raise --keep, or name a recording");
    } else {
        struct seep_refusal refusal = {
            .error = -ENOENT,
            .reason = "contains no recordings",
            .remedy = "give the one that SEEP_OUT or `seep run -o` wrote to",
        };
        seep_why_refine(word, &refusal);
        seep_say(word, refusal.reason, refusal.remedy);
    }
}

/* @return 0; -ENODATA if there is nothing that can be read */
static int say_found(struct run *run, int error)
{
    struct seep_follow_counts counts;
    char reason[48];
    size_t more = seep_follow_visit_refused(run->follow, say_refusal);

    seep_follow_visit_nameless(run->follow, seep_gather_say_nameless);
    seep_follow_counts(run->follow, &counts);
    if (more > 0) {
        snprintf(reason, sizeof(reason), "and %zu more cannot be read", more);
        seep_say(run->arguments->paths[0], reason,
                 "`seep report` says why for each");
    }
    bool nothing = counts.live + counts.ended + counts.left_out == 0;
    if (nothing && !run->nothing && error == 0 && counts.refused == 0) {
        say_nothing(run, &counts);
    }
    run->nothing = nothing;
    return nothing && counts.past == 0 ? -ENODATA : 0;
}

static int write_file(struct run *run, const struct seep_metrics_text *text)
{
    const char *path = run->arguments->textfile;
    int error = 0;

    if (path != NULL) {
        error = seep_metrics_file_write(path, text->text, text->length);
    } else if (run->arguments->address == NULL) {
        fwrite(text->text, 1, text->length, stdout);
    }
    if (error < 0 && run->file_error != error) {
        say_errno(path, error,
                  "check its folder: the text is written there and renamed");
    }
    run->file_error = error;
    return error;
}

static int make(struct run *run, double took_s,
                struct seep_metrics_text texts[2])
{
    struct seep_metrics_input input = {
        .site_limit = run->arguments->site_limit,
        .refresh_s = took_s,
    };

    input.list = seep_follow_list(run->follow, &input.count);
    seep_follow_counts(run->follow, &input.counts);
    int error = seep_metrics_make(&input, &run->totals, &texts[0]);
    return error < 0 ? error
                     : seep_metrics_make(&input, &run->totals, &texts[1]);
}

/* Read all there is and give it out. @return negative errno of the first thing
 * that went wrong; what could be done was done */
static int refresh(struct run *run)
{
    struct seep_metrics_text texts[2] = {
        {.format = SEEP_METRICS_PROMETHEUS},
        {.format = SEEP_METRICS_OPENMETRICS},
    };
    double start_s = now_s();
    int error = scan(run);
    int found = say_found(run, error);
    int made = make(run, now_s() - start_s, texts);

    seep_metrics_totals_prune(&run->totals);
    if (made < 0) {
        free(texts[0].text);
        free(texts[1].text);
        return made;
    }
    int written = write_file(run, &texts[0]);
    seep_metrics_page_put(&run->page, texts);
    return error < 0 ? error : written < 0 ? written : found;
}

/* @return false if it is time to end */
static bool rest(struct run *run, double start_s)
{
    double took_s = now_s() - start_s;
    double end_s = now_s() + fmax(run->arguments->interval_s - took_s,
                                  REST_SHARE * took_s);
    struct timespec until = {.tv_sec = (time_t)end_s,
                             .tv_nsec =
                                 (long)((end_s - floor(end_s)) * NS_PER_S)};

    pthread_mutex_lock(&run->lock);
    while (!run->ending &&
           pthread_cond_clockwait(&run->wake, &run->lock, CLOCK_MONOTONIC,
                                  &until) != ETIMEDOUT) {
    }
    bool goes_on = !run->ending;
    pthread_mutex_unlock(&run->lock);
    return goes_on;
}

static void *read_on(void *context)
{
    struct run *run = context;
    double start_s = now_s();

    refresh(run);
    if (run->file_error < 0) { /* it never worked: nobody is to wait for it */
        run->code = SEEP_EXIT_FAILED;
        kill(getpid(), SIGTERM); /* main waits for it */
        return NULL;
    }
    while (rest(run, start_s)) {
        start_s = now_s();
        refresh(run);
    }
    return NULL;
}

static int open_socket(struct run *run)
{
    const char *address = run->arguments->address;
    const char *reason;

    int error = seep_metrics_listen(address, &reason, &run->socket);
    if (error == -EINVAL) {
        return seep_say_usage("metrics", "%s %s", address, reason);
    }
    if (error < 0) {
        seep_say(address, reason, "choose another, or :0 for any free port");
        return SEEP_EXIT_FAILED;
    }
    error = seep_metrics_http_open(run->socket.fd, &run->page, &run->http);
    if (error == -ENOSYS) {
        close(run->socket.fd);
        seep_say("--listen",
                 "not available: seep was built without libmicrohttpd",
                 "use --textfile");
        return SEEP_EXIT_FAILED;
    }
    if (error < 0) {
        close(run->socket.fd);
        seep_say(address, "could not be served", NULL);
        return SEEP_EXIT_FAILED;
    }
    if (!run->socket.is_loopback) {
        seep_say(run->socket.url,
                 "can be reached from other machines, without a password",
                 "127.0.0.1 serves this machine only");
    }
    printf("serving %s\n", run->socket.url);
    fflush(stdout);
    return 0;
}

static void close_socket(struct run *run)
{
    seep_metrics_unlink(&run->socket);
    seep_metrics_http_close(run->http);
    run->http = NULL;
}

/* One that hangs in a file system is left behind. */
static bool stop_reading(struct run *run)
{
    struct timespec until;

    pthread_mutex_lock(&run->lock);
    run->ending = true;
    pthread_cond_signal(&run->wake);
    pthread_mutex_unlock(&run->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    return pthread_timedjoin_np(run->reader, NULL, &until) == 0;
}

static void wait_for_end(struct run *run, const sigset_t *ends)
{
    const struct timespec turn = {.tv_sec = SWEEP_S};

    while ((run->http == NULL ? sigwaitinfo(ends, NULL)
                              : sigtimedwait(ends, NULL, &turn)) < 0) {
        if (run->http != NULL) {
            seep_metrics_http_sweep(run->http);
        }
    }
}

static void block_signals(sigset_t *ret_ends)
{
    sigemptyset(ret_ends);
    sigaddset(ret_ends, SIGTERM);
    sigaddset(ret_ends, SIGINT);
    sigaddset(ret_ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, ret_ends, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int serve(struct run *run)
{
    sigset_t ends;

    block_signals(&ends);
    int code = run->arguments->address == NULL ? 0 : open_socket(run);
    if (code != 0) {
        seep_metrics_unlink(&run->socket);
        return code;
    }
    int error = pthread_create(&run->reader, NULL, read_on, run);
    if (error != 0) {
        say_errno("metrics", -error, NULL);
        close_socket(run);
        return SEEP_EXIT_FAILED;
    }
    wait_for_end(run, &ends);
    close_socket(run);
    if (!stop_reading(run)) {
        fflush(stdout);
        _exit(SEEP_EXIT_FINE);
    }
    return run->code;
}

int seep_metrics_run(const struct seep_metrics_arguments *arguments)
{
    struct run run = {
        .arguments = arguments,
        .page.lock = PTHREAD_MUTEX_INITIALIZER,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .wake = PTHREAD_COND_INITIALIZER,
    };
    int code = SEEP_EXIT_FAILED;
    int error = seep_follow_open(arguments->paths, arguments->path_count,
                                 &arguments->follow, &run.follow);

    if (error < 0) {
        say_errno("metrics", error, NULL);
    } else if (arguments->once) {
        code = refresh(&run) < 0 ? SEEP_EXIT_FAILED : SEEP_EXIT_FINE;
    } else {
        code = serve(&run);
    }
    seep_follow_close(run.follow);
    seep_metrics_totals_fini(&run.totals);
    seep_metrics_page_close(&run.page);
    return code;
}
