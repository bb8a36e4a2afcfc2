/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a report says of one recording: computed once, printed by views.
 *
 * Units: bytes, seconds, bytes per second; growth is signed. Strings are as
 * the recording has them (hostile: a view escapes control bytes and makes them
 * valid UTF-8). Everything belongs to the report and lives as long.
 *
 * Errors: 0 or negative errno; ret_* untouched on failure. Nothing prints.
 * Threads: one at a time.
 */
#ifndef SEEP_READER_REPORT_H
#define SEEP_READER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/growth.h"
#include "seep/recording.h"

/** Why a file is not read: a reason and a remedy, each one line. */
struct seep_refusal {
    int error;        /* negative errno */
    char reason[192]; /* "is not a seep recording" */
    char remedy[192]; /* "give a .seep file that `seep run` wrote" */
};

struct seep_report_options {
    const char *sysroot;
    bool use_debuginfod;
    bool symbols;      /* false: modules and offsets only */
    size_t site_limit; /* symbolise at most so many sites; 0: all */
};

enum seep_process_state {
    SEEP_STATE_RUNNING,
    SEEP_STATE_EXITED, /* its exit destructor ran */
    SEEP_STATE_KILLED, /* `seep run` reaped it and a signal ended it */
    SEEP_STATE_GONE,   /* no longer there, and no word of how it went */
    SEEP_STATE_UNKNOWN /* recorded on another machine or pid namespace */
};

struct seep_report_frame {
    bool python; /* false: native */
    bool inlined;
    const char *function; /* "" if unknown */
    const char *file;     /* "" if unknown */
    uint32_t line;        /* 0 if unknown */
    const char *module;   /* path; "" for code of no module */
    const char *build_id; /* hexadecimal; "" if unknown */
    uint64_t offset;      /* in the module */
};

struct seep_report_point {
    double start_s; /* since the start of the recording */
    double width_s;
    uint64_t live_bytes; /* at the end of the bucket */
    uint64_t low_bytes;
    uint64_t allocated_bytes;
    uint64_t freed_bytes;
    uint64_t born_freed_bytes;
    double born_count;
    double born_freed_count;
};

struct seep_report_site {
    char id[20]; /* stable over runs of the same program */
    enum seep_space space;
    enum seep_class class;
    const char *class_reason;
    bool torn; /* its last event may be half applied */
    uint64_t live_bytes;
    double live_bytes_error; /* 1.96 sigma of the sampling; 0 in exact mode */
    double live_count;
    uint64_t allocated_bytes;
    double allocated_count;
    uint64_t freed_bytes;
    double freed_count;
    uint64_t peak_bytes;
    uint64_t largest_bytes;
    double first_s;
    double last_s;
    double window_bytes[SEEP_GROWTH_WINDOWS]; /* born in each tenth, alive */
    bool has_growth; /* false: the next one was not computed */
    struct seep_interval growth_bytes_per_s;
    double confidence;
    const char *where;  /* "file:line function" of the user's frame */
    size_t where_frame; /* its index */
    enum seep_cut cut;
    const struct seep_report_frame *frames; /* innermost first */
    size_t frame_count;
    /* A bucket that is not in it is flat: nothing was allocated or freed in it,
     * and live and low are the live bytes of the point before. */
    const struct seep_report_point *series;
    size_t point_count;
};

struct seep_report_counter {
    const char *name;
    const char *words;
    enum seep_counter_kind kind;
    uint64_t value;
};

struct seep_report_space {
    enum seep_space space;
    uint64_t live_bytes;
    double live_bytes_error; /* 1.96 sigma of the sampling */
    uint64_t first_bytes;
    uint64_t allocated_bytes;
    uint64_t freed_bytes;
    double slope_bytes_per_s; /* least squares; a description, not a verdict */
};

struct seep_report_memory { /* of the process, from the timeline */
    bool valid;
    uint64_t first_rss_bytes;
    uint64_t last_rss_bytes;
    double rss_slope_bytes_per_s;
    uint64_t last_shared_bytes;
    uint64_t cgroup_bytes;
    uint64_t cgroup_limit_bytes; /* 0: none or unknown */
    uint64_t machine_bytes;      /* RAM; 0 unknown */
};

struct seep_report {
    const char *path;
    enum seep_process_state state;
    bool has_status;
    int status; /* as wait() gives it */
    uint32_t pid;
    const char *executable;
    const char *const *arguments;
    size_t argument_count;
    const char *labels;
    const char *host;
    const char *version;
    const char *allocator;
    bool is_fork;
    enum seep_inert_reason inert;
    uint64_t start_realtime_ns;
    double duration_s; /* until exit, death as far as known, or now */
    bool exact;        /* began exact, nothing lost, never thinned */
    bool began_exact;
    uint64_t sample_bytes; /* mean interval now; 1 exact */
    enum seep_unwinder unwinder;
    uint64_t file_bytes;
    uint64_t units;        /* of work; 0: none told */
    enum seep_class class; /* of the process: the first site's that counts */
    const char *reason;
    struct seep_report_memory memory;
    const struct seep_report_space *spaces;
    size_t space_count;                   /* only spaces that were used */
    const struct seep_report_site *sites; /* in reading order */
    size_t site_count;
    size_t site_total; /* with those that site_limit left without symbols */
    const struct seep_report_counter *counters; /* every one, also zero */
    size_t counter_count;
    uint64_t pending_events; /* pushed, not folded by the worker: folded here */
    uint64_t torn_sites;
    double cost_s; /* estimated time spent in seep, over all threads */
    struct {
        uint32_t used;
        uint32_t capacity;
    } usage_sites, usage_stacks, usage_series, usage_modules, usage_live;
};

/**
 * Read, check, snapshot, fold, symbolise and judge the recording at @path.
 *
 * @param ret_refusal  filled on failure only; may be NULL
 * @param ret_report   give it to seep_report_close()
 */
int seep_report_open(const char *path,
                     const struct seep_report_options *options,
                     struct seep_refusal *ret_refusal,
                     struct seep_report **ret_report);

/** NULL is fine. */
void seep_report_close(struct seep_report *report);

/**
 * The recordings that @path means: itself if a file, its *.seep files, sorted
 * by name, if a folder (not looking into folders inside).
 *
 * @param ret_paths  NULL-terminated; give it to seep_report_list_free()
 * @return 0; -ENOENT if a folder holds none, with @ret_refusal filled
 */
int seep_report_list(const char *path, struct seep_refusal *ret_refusal,
                     char ***ret_paths);
void seep_report_list_free(char **paths);

#endif
