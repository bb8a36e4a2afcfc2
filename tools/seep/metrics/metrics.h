/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Between the files of `seep metrics`, in the order of the work: samples as
 * text (make.c), of processes (emit.c), given out by HTTP (http.c, listen.c) or
 * a file, again and again (run.c).
 *
 * Errors: 0 or negative errno.
 */
#ifndef SEEP_TOOL_METRICS_METRICS_H
#define SEEP_TOOL_METRICS_METRICS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "read/follow.h"
#include "reader/judge/family.h"

enum seep_metric_type {
    SEEP_METRIC_GAUGE,
    SEEP_METRIC_COUNTER,
    SEEP_METRIC_INFO,
};

struct seep_metric {
    enum seep_metric_type type;
    const char *name; /* without seep_ and without _total or _info */
    const char *unit; /* "" if none is said */
    const char *help;
};

/*
 * Metrics as text: Prometheus' own format 0.0.4, or OpenMetrics 1.0.
 *
 * Label values are hostile: they come out as valid UTF-8 without control
 * characters, escaped, cut at SEEP_METRICS_VALUE_BYTES. What is not a number is
 * not written. Without memory the whole text is: .failed.
 */

#define SEEP_METRICS_VALUE_BYTES 200

enum seep_metrics_format {
    SEEP_METRICS_PROMETHEUS,
    SEEP_METRICS_OPENMETRICS,
};

/** Zero it, set .format, and free .text at the end. */
struct seep_metrics_text {
    enum seep_metrics_format format;
    FILE *file; /* from the first sample to the end */
    char *text; /* NUL-terminated, from the end on; NULL if it is empty */
    size_t length;
    bool failed;
    const struct seep_metric *family; /* of the last sample */
};

struct seep_metrics_label {
    const char *name; /* valid already, see seep_metrics_text_name() */
    const char *value;
};

/** One sample, with its family's description before the first: the samples of a
 * metric come one after the other. Labels without a value are left out. */
void seep_metrics_text_sample(struct seep_metrics_text *text,
                              const struct seep_metric *metric,
                              const struct seep_metrics_label *labels,
                              size_t count, double value);

/** After the last sample. */
void seep_metrics_text_end(struct seep_metrics_text *text);

/**
 * The name of a label that somebody else gave, made valid: never empty, and
 * none of those that Prometheus keeps for itself.
 */
void seep_metrics_text_name(const char *given, size_t length, char *name,
                            size_t size);

/*
 * What counters were reported as, so that they never go back.
 *
 * An estimate can: thinning corrects what was allocated, and a copy made while
 * its process writes can be a ring older than the one before. To Prometheus a
 * counter that is lower than before has begun anew, and its rate leaps.
 *
 * One entry a recording; those that were not asked for between two calls of
 * seep_metrics_totals_prune() are forgotten.
 */

enum seep_metrics_total {
    SEEP_METRICS_TOTAL_ALLOCATED, /* these two by space and device */
    SEEP_METRICS_TOTAL_FREED,
    SEEP_METRICS_TOTAL_LOST,
    SEEP_METRICS_TOTAL_UNITS,
    SEEP_METRICS_TOTAL_COUNT,
};

/** Start from an all-zero struct. */
struct seep_metrics_totals {
    struct seep_metrics_totals_entry *entries;
    size_t count;
};

/**
 * The most that this counter of @followed ever was, @value included.
 *
 * @param at  of holdings seep_metrics_totals_at(), else 0
 */
double seep_metrics_totals_raise(struct seep_metrics_totals *totals,
                                 const struct seep_followed *followed,
                                 enum seep_metrics_total total, size_t at,
                                 double value);

/** Number of a holding's space and device. */
size_t seep_metrics_totals_at(const struct seep_report_holding *holding);

void seep_metrics_totals_prune(struct seep_metrics_totals *totals);
void seep_metrics_totals_fini(struct seep_metrics_totals *totals);

/*
 * From recordings that are followed to one text of metrics.
 *
 * Bounded: a process has at most .site_limit call sites, and of processes
 * there are at most as many as are followed. A process that has ended keeps
 * its series as long as it is followed; then they end, as they do for any
 * target that is gone, and sums of rates stay right.
 */

/** What a follower has: its list and its counts. */
struct seep_metrics_input {
    const struct seep_followed *const *list;
    size_t count;
    struct seep_follow_counts counts;
    size_t site_limit; /* of each process */
    double refresh_s;  /* what it took to read them */
};

/** Of processes and families. @return 0 or -ENOMEM */
int seep_metrics_emit(const struct seep_metrics_input *input,
                      struct seep_metrics_totals *totals,
                      struct seep_metrics_text *text);

/**
 * Write all that is known into @text, which is empty and has its format.
 *
 * @return 0 or -ENOMEM
 */
int seep_metrics_make(const struct seep_metrics_input *input,
                      struct seep_metrics_totals *totals,
                      struct seep_metrics_text *text);

/* Which format a scraper asks for. */

/**
 * By the header Accept of a request; NULL if it has none. OpenMetrics only if
 * it is named, and not less wanted than Prometheus' format.
 */
enum seep_metrics_format seep_metrics_accept(const char *header);

/*
 * The last figures that were computed, in both formats: what a scrape is
 * served with, however long the next ones take.
 *
 * Threads: one puts, any number take.
 */

/** .lock is PTHREAD_MUTEX_INITIALIZER at first, the rest zero. */
struct seep_metrics_page {
    pthread_mutex_t lock;
    struct seep_metrics_text texts[2];
};

void seep_metrics_page_close(struct seep_metrics_page *page);

/** What is in @texts, one a format, is the page's from now on. */
void seep_metrics_page_put(struct seep_metrics_page *page,
                           struct seep_metrics_text texts[2]);

/*
 * Metrics by HTTP: GET and HEAD of /metrics, /healthz and /-/ready.
 *
 * A request is answered from the page at once. Connections are bounded in
 * number, time and memory.
 */

struct seep_metrics_http;

/**
 * Serve @page on the listening socket @fd, which is the server's from now on,
 * from a thread of its own. Signals that the caller blocks are blocked in it.
 *
 * @return -ENOSYS: seep was built without libmicrohttpd
 */
int seep_metrics_http_open(int fd, struct seep_metrics_page *page,
                           struct seep_metrics_http **ret_http);
/** End connections whose request takes too long; to be called now and then. */
void seep_metrics_http_sweep(struct seep_metrics_http *http);

void seep_metrics_http_close(struct seep_metrics_http *http);

/*
 * The socket that scrapers connect to: "127.0.0.1:9464", ":0" (loopback, a port
 * that the system chooses), "[::1]:9464", "name:9464", "unix:/path".
 */

struct seep_metrics_socket {
    int fd;
    char *path; /* of a unix socket; else NULL */
    ino_t inode;
    bool is_loopback; /* nobody else can reach it */
    char url[160];    /* "http://127.0.0.1:9464/metrics" */
};

/**
 * @param ret_reason  what is wrong, in words; static
 * @return 0; -EINVAL if @address is none; negative errno
 */
int seep_metrics_listen(const char *address, const char **ret_reason,
                        struct seep_metrics_socket *ret_socket);

/** Remove a unix socket, if it is still ours. Does not close .fd. */
void seep_metrics_unlink(struct seep_metrics_socket *socket);

/* The file for node_exporter's textfile collector. */

/**
 * Replace the file at @path at once: who reads it sees the old text or the new
 * one. Its mode is 0644 less the umask.
 *
 * @return 0 or negative errno; then the old file stands, and nothing beside it
 */
int seep_metrics_file_write(const char *path, const char *text, size_t length);

/*
 * All of it: read, compute, give out, until told to end. Recordings are read by
 * a thread of its own, so that neither a scrape nor the end waits for a file
 * system that does not answer.
 */

struct seep_metrics_arguments {
    char *const *paths;
    size_t path_count;
    struct seep_follow_options follow;
    size_t site_limit;
    double interval_s;
    bool once;
    const char *textfile; /* NULL: none */
    const char *address;  /* NULL: none */
};

/** @return the exit code */
int seep_metrics_run(const struct seep_metrics_arguments *arguments);

#endif
