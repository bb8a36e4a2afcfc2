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
#ifndef SEEP_READER_REPORT_REPORT_H
#define SEEP_READER_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/statistics/growth.h"
#include "seep/recording.h"

struct seep_catalogue;
struct seep_rules;
struct seep_pattern;
struct seep_symbol_memory;
struct seep_store;
struct seep_held_kept;
struct seep_held_kept_pins;

/** Why a file is not read: a reason and a remedy, each one line. */
struct seep_refusal {
    int error;        /* negative errno */
    char reason[192]; /* "is not a seep recording" */
    char remedy[192]; /* "give a .seep file that `seep run` wrote" */
};

/**
 * What is one row of a report, and is judged as one: X(SYMBOL, "name").
 * STACK, the first, is 0: what was recorded, each stack by itself.
 * LINE: the user's line, or the stack where no line is known.
 * LABEL: in a process as LINE; over processes see seep_labels_group().
 */
#define SEEP_GROUPINGS(X)   \
    X(STACK, "stack")       \
    X(LINE, "line")         \
    X(FUNCTION, "function") \
    X(MODULE, "module")     \
    X(THREAD, "thread")     \
    X(LABEL, "label")

enum seep_grouping {
#define SEEP_GROUPING_VALUE(symbol, name) SEEP_BY_##symbol,
    SEEP_GROUPINGS(SEEP_GROUPING_VALUE)
#undef SEEP_GROUPING_VALUE
        SEEP_GROUPING_COUNT
};

struct seep_report_options {
    enum seep_grouping by;
    const char *sysroot;
    const char *debug_folder; /* debug files are looked for there first */
    bool use_debuginfod;
    bool symbols;       /* false: modules and offsets only */
    size_t site_limit;  /* symbolise at most so many sites; 0: all. Sites that
                           may be leaks are symbolised in any case, and all
                           where there are suppressions or known bounds. */
    size_t block_limit; /* of each row, its blocks that live, at most; 0 */
    /* Each may be NULL, and must live until the report is closed. */
    const struct seep_catalogue *catalogue;
    const struct seep_rules *suppressions;
    const struct seep_rules *known;
    struct seep_symbol_memory *memory; /* of names, while a report is made:
                                          shared by those of one thread */
    bool stacks;       /* each by itself, too: .stacks of the report */
    bool as_requested; /* bytes are what was asked for, not what blocks take:
                          for who compares them with what a program did */
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
    const char *function; /* "" if unknown; of Python the qualified name */
    const char *file;     /* "" if unknown */
    uint32_t line;        /* 0 if unknown */
    const char *module;   /* path; "" for code of no module, and Python's */
    const char *build_id; /* hexadecimal; "" if unknown */
    uint64_t offset;      /* in the module */
    const char *source;   /* what stands in that line; NULL if unknown */
};

/** A time that the program named (seep_mark). */
struct seep_report_mark {
    double at_s; /* since the start of the recording */
    const char *name;
    uint64_t units; /* of work, told by then */
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

/** How it is known when the work began: X(SYMBOL, "name in JSON", "words"). */
#define SEEP_BEGINNINGS(X)                             \
    X(START, "start", "start of the process")          \
    X(IMPORTS, "imports", "end of the imports")        \
    X(PROGRESS, "progress", "first unit of work told") \
    X(WORK, "work", "end of a wait without work")      \
    X(LOAD, "load", "end of what was loaded first")    \
    X(MARK, "mark", "mark \"warm-up done\"")

enum seep_beginning {
#define SEEP_BEGINNING_VALUE(symbol, name, words) SEEP_BEGINS_AT_##symbol,
    SEEP_BEGINNINGS(SEEP_BEGINNING_VALUE)
#undef SEEP_BEGINNING_VALUE
        SEEP_BEGINNING_COUNT
};

/** The mark of a program that says that its work begins. */
#define SEEP_MARK_WARM "warm-up done"

/** When the work began, and what was taken before that stays: start-up. */
struct seep_report_begin {
    enum seep_beginning source;
    double at_s;
    double from_s;    /* growth counts from here: that, and but for imports not
                         later than half of the run; 0 where it was soon */
    double imports_s; /* that it began with, and were over by then; 0: none */
    bool mostly_imports; /* so that the work is too little to reassure */
    double
        kept_bytes; /* of memory of the host, since imports of most of a run */
    uint64_t units; /* told since then */
    size_t site_count; /* quiet rows of imports and of the start */
    uint64_t live_bytes;
    double live_count;
};

/** What was seen of a site's blocks that stay: for the words. */
struct seep_report_kept {
    double since_s;        /* from here on every part of the run kept some */
    double share;          /* of the run's work, from there to its end */
    double bytes_per_unit; /* of those told meanwhile; 0: none were */
    double oldest_death_s; /* no block older than this was given back; 0:
                              none was given back at all */
    double died_share;     /* of the blocks that got old, that died */
    bool gave_back_old;    /* it was seen to evict: no cache that fills */
};

/** What a site is to those that grow in step with it (judge/sites.h). */
enum seep_role {
    SEEP_ROLE_NONE,   /* it grows by itself, if at all */
    SEEP_ROLE_HEAD,   /* it keeps the largest share of what it allocates */
    SEEP_ROLE_MEMBER, /* of one cause with the head */
    SEEP_ROLE_LENDER  /* what it allocated and freed, the head keeps: a class
                         BACKING where that is a leak */
};

/**
 * What of a row came and went, and is not in its series: from .from_s to .to_s
 * no series was kept of it, since the tables were full. Of what stood there
 * only the end is known. All 0: the series tells all.
 */
struct seep_report_untold {
    double from_s;
    double to_s;
    uint64_t allocated_bytes;
    uint64_t freed_bytes;
    double allocated_count;
};

/** What was asked for, of what blocks take. */
struct seep_report_requested {
    uint64_t live_bytes;
    uint64_t allocated_bytes;
    uint64_t freed_bytes;
};

struct seep_report_site {
    char id[20];      /* stable over runs of the same program */
    char line_id[20]; /* by stack: of the row that it is in by line; else "" */
    enum seep_space space;
    int device;         /* ordinal; -1: none, or not known */
    bool backs_tensors; /* segments of PyTorch's cache: what is in them is
                           counted in space tensor, by who asked for it */
    enum seep_class class;
    const char *class_reason;
    /* Whose allocator mapped it, "polars' own jemalloc": what lies in it is
     * not known. NULL: whoever asked for it has it. */
    const char *pool;
    bool torn; /* its last event may be half applied */
    /* Bytes are those that its blocks take of memory, with what the allocator
     * rounds them up to and puts before them, but for what was asked for. */
    struct seep_report_requested requested;
    uint64_t live_bytes;
    double live_bytes_error; /* 1.96 sigma of the sampling; 0 in exact mode */
    double touched_bytes;    /* of mappings and large blocks: of these, resident
                                or in swap; below 0: not known. It grows by
                                these. */
    double elsewhere_bytes;  /* of these, shared memory that others wrote to, or
                                that was written by a descriptor: not in the
                                RSS of the process */
    double live_count;
    uint64_t allocated_bytes;
    double allocated_count;
    uint64_t freed_bytes;
    double freed_count;
    uint64_t peak_bytes;
    bool is_start;   /* of imports, or all of it is from before the work */
    bool stands_out; /* holds or rose more than nearly all other rows */
    uint64_t largest_bytes;
    double first_s;
    double last_s;
    /* Born in each tenth of the time since the work began, alive; what is
     * older is in the first. */
    double window_bytes[SEEP_GROWTH_WINDOWS];
    bool has_growth; /* false: the next ones were not computed */
    struct seep_interval growth_bytes_per_s; /* the mean of the run */
    double growth_now_bytes_per_s; /* at the work rate of the last fifth */
    bool has_growth_per_unit;
    struct seep_interval growth_bytes_per_unit; /* a unit of work marked */
    double confidence;
    double keeps_share; /* of the blocks that it made, live; 0 of none */
    /* Of what it kept, of the sizes that CPython's free lists pass on to other
     * lines; 0: it does not grow. */
    double lendable_share;
    enum seep_role role;
    char group_id[20]; /* of its head; "" of none */
    /* Suspected by itself; but it grows for sure, in step with a head that is a
     * leak, and what the process leaks it is a part of. */
    bool leaks_in_step;
    /* Of a head: the sum over its sites that are not minor; else 0. */
    struct seep_interval group_growth_bytes_per_s;
    struct seep_report_kept kept;
    double stopped_since_s; /* nothing was kept since; below 0: it goes on */
    double stopped_ln_p;    /* of so long a gap at the rate it had */
    double step_next_s;     /* when its next step is due; 0: not foretold */
    double step_next_bytes; /* what it will take then */
    bool in_steps;          /* grows in steps, as a container that doubles */
    bool in_bursts;         /* grows at a few times only */
    const struct seep_pattern *pattern; /* a hint beside the class; NULL */
    const char *suppressed_by;          /* the rule; NULL: it counts */
    uint64_t known_bound_bytes;         /* named with --known; 0: none */
    /* The user's frame: "file:line function"; of a module or a thread, its
     * name. */
    const char *where;
    size_t stack_count; /* that this row is made of, at least 1 */
    /* What follows is of one of them, the one that holds the most. */
    /* Its stacks and the one that holds most, as numbers in SITES of the
     * recording: the same however rows are made. */
    const uint32_t *entries; /* .stack_count */
    uint32_t entry;
    uint64_t stack_live_bytes;
    uint64_t stack_allocated_bytes;
    double stack_allocated_count;
    const char *thread; /* name of its own; "" if it has none */
    size_t where_frame; /* index of the user's frame */
    enum seep_cut cut;
    const struct seep_report_frame **frames; /* innermost first */
    size_t frame_count;
    /* And these again are of the whole row. */
    /* A bucket that is not in it is flat: nothing was allocated or freed in it,
     * and live and low are the live bytes of the point before. */
    const struct seep_report_point *series;
    size_t point_count;
    const double *age_levels; /* where they were let go: see judge/family.h */
    bool has_totals_only; /* the recording has no series of it: points, if any,
                             are of stacks that allocated once */
    struct seep_report_untold untold;
    /* Of the blocks that died, and told of it: those that lived for less than
     * one bucket (struct seep_report, .bucket_s). */
    uint64_t died_bytes;
    uint64_t temporary_bytes;
    double temporary_count;
    /* If they were asked for: some of those that live, spread over their
     * births, without the youngest tenth. */
    const struct seep_report_block *blocks;
    size_t block_count;
    size_t block_total; /* that the recording knows */
    /* Who holds it (held/kept.h), where somebody asked and attached it. */
    const struct seep_held_kept *held;
};

/** A block that lives, of the address space of the process; of a space that a
 * driver has, by the address that it gave. */
struct seep_report_block {
    uint64_t address;
    uint64_t bytes;
};

struct seep_report_blocks {
    const struct seep_report_block *items; /* by address */
    size_t count;
};

/** Does a program have what is in @space by an address that a driver gave? */
bool seep_report_is_of_driver(enum seep_space space);

/** What of a call site is compared with that of other processes; one whose
 * growth counts, and is not suppressed. */
struct seep_report_row {
    char id[20]; /* by stack that of its line */
    enum seep_space space;
    int device;
    enum seep_class class;
    bool has_growth;
    bool is_pool; /* it is called by whose allocator it is of */
    uint64_t live_bytes;
    struct seep_interval growth_bytes_per_s;
    const char *where;
    const struct seep_report_frame *frame; /* the user's; NULL: none */
    const double *age_levels;              /* NULL: not known */
};

/** One stack by itself: what was recorded, not judged. */
struct seep_report_stack {
    struct seep_report_site site; /* figures, frames and series of it alone; no
                                     class, growth or id */
    size_t row; /* among .sites, that it is a part of; SIZE_MAX: of none that
                   was asked for */
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
    struct seep_report_requested requested;
    double live_bytes_error; /* 1.96 sigma of the sampling */
    uint64_t first_bytes;
    uint64_t allocated_bytes;
    uint64_t freed_bytes;
    double slope_bytes_per_s; /* over the settled part of the run */
    const double *live; /* at the end of each bucket: .bucket_count figures */
};

/** What of a space lies on one device, or on none. */
struct seep_report_holding {
    enum seep_space space;
    int device; /* ordinal; -1: none, or not known */
    uint64_t live_bytes;
    uint64_t allocated_bytes;
    uint64_t freed_bytes;
};

/** Something of the process from first to last. */
struct seep_report_extent {
    bool valid; /* false: not known, the rest is 0 */
    double first_bytes;
    double last_bytes;
    double slope_bytes_per_s; /* over the settled part of the run */
    double slope_error;       /* half of its 95 % interval */
};

/** One mapping as `seep run`, `top` or `metrics` saw it from outside. */
struct seep_report_mapping {
    uint64_t start;
    uint64_t end;
    const char *name;   /* path, "[heap]", "" if anonymous */
    double first_bytes; /* anonymous, resident or in swap */
    double last_bytes;
    double slope_bytes_per_s;
    bool tracked; /* blocks or ranges that seep knows lie in it */
    /* Most of it is blocks of this site, allocated before it grew: what was
     * not written to yet is. "": it is not so. */
    char filled_id[20];
    double filled_of_bytes; /* all of those blocks of the site */
};

/** The process at one time; what is not known is negative. */
struct seep_report_moment {
    double t_s;
    double held_bytes;    /* resident, and in swap */
    double private_bytes; /* of that, what is not of files or shared */
    double own_bytes;     /* of that, the recording's */
    double cgroup_bytes;
    /* And what private bytes are made of: see struct seep_report_memory. */
    double tracked_bytes;
    double allocator_overhead_bytes;
    double unexplained_bytes;
};

/** X(SYMBOL, "name in JSON"). */
#define SEEP_ALLOCATORS(X)  \
    X(UNKNOWN, "unknown")   \
    X(GLIBC, "glibc")       \
    X(JEMALLOC, "jemalloc") \
    X(TCMALLOC, "tcmalloc") \
    X(MIMALLOC, "mimalloc")

enum seep_allocator_kind {
#define SEEP_ALLOCATOR_VALUE(symbol, name) SEEP_ALLOCATOR_##symbol,
    SEEP_ALLOCATORS(SEEP_ALLOCATOR_VALUE)
#undef SEEP_ALLOCATOR_VALUE
        SEEP_ALLOCATOR_COUNT
};

/**
 * Where the memory of the process is. anonymous + shared + own = rss; tracked
 * is what seep's live blocks hold of it; allocator_overhead is what the
 * allocator holds beyond the blocks that it handed out; unexplained = anonymous
 * + swap - tracked - allocator_overhead, not below 0.
 */
struct seep_report_memory {
    bool valid; /* there is a sample, of the timeline or external */
    struct seep_report_extent rss;
    struct seep_report_extent anonymous;
    struct seep_report_extent shared;
    struct seep_report_extent own;   /* of the recording itself, if known */
    struct seep_report_extent files; /* mapped, if any ever was: what was read
                                        of it is in shared */
    struct seep_report_extent swap;
    struct seep_report_extent cgroup;
    /* Of that, without page cache that can be given back, and of that what is
     * in files of a tmpfs or shared memory; as seen from outside. */
    struct seep_report_extent cgroup_held;
    struct seep_report_extent cgroup_shmem;
    /* In memfds, and unlinked files of a tmpfs, that it has open: of no mapping
     * unless it maps them; as seen from outside. The name of the largest. */
    struct seep_report_extent open_files;
    const char *open_file;
    struct seep_report_extent tracked;
    struct seep_report_extent allocator_overhead;
    struct seep_report_extent unexplained;
    /* Of anonymous, of a fork: as it was at the fork, and the other process's
     * as well. Whoever writes to such a page first gets a copy of it. */
    struct seep_report_extent forked;
    struct seep_report_extent threads; /* how many, in place of bytes */
    uint64_t cgroup_limit_bytes;       /* 0: none or unknown */
    struct seep_report_bound {
        uint64_t limit_bytes; /* 0: none or unknown */
        uint64_t used_bytes;  /* at the last sample */
    } address_space, data;    /* RLIMIT_AS, RLIMIT_DATA */
    uint64_t machine_bytes;   /* RAM; 0 unknown */
    uint64_t available_bytes; /* of it, at the last sample; 0 unknown */
    enum seep_allocator_kind allocator;
    bool allocator_reported;            /* its own figures, the next ones */
    uint64_t allocator_allocated_bytes; /* at the last sample that has them */
    uint64_t allocator_active_bytes;
    uint64_t allocator_resident_bytes;
    uint64_t allocator_retained_bytes;
    uint64_t allocator_free_chunks;
    bool has_samples;                           /* there are external samples */
    const struct seep_report_mapping *mappings; /* that grew, most first */
    size_t mapping_count;
    const struct seep_report_moment *moments; /* by time */
    size_t moment_count;
};

/** What a process has, worst first: X(SYMBOL, "name in JSON"). */
#define SEEP_VERDICTS(X)                 \
    X(LEAK, "leak")                      \
    X(SUSPECT, "suspect")                \
    X(UNEXPLAINED, "unexplained")        \
    X(FRAGMENTATION, "fragmentation")    \
    X(RETENTION, "allocator-retention")  \
    X(BOUNDED, "bounded")                \
    X(INSUFFICIENT, "insufficient-data") \
    X(STEADY, "steady")

enum seep_verdict_class {
#define SEEP_VERDICT_VALUE(symbol, name) SEEP_VERDICT_##symbol,
    SEEP_VERDICTS(SEEP_VERDICT_VALUE)
#undef SEEP_VERDICT_VALUE
        SEEP_VERDICT_COUNT
};

enum seep_forecast_answer {
    SEEP_FORECAST_UNKNOWN, /* cannot tell: no limit, or too little seen */
    SEEP_FORECAST_NEVER,   /* nothing grows */
    SEEP_FORECAST_TIME     /* .seconds */
};

/** When the first of the limits is reached if all goes on as it went. */
struct seep_report_forecast {
    enum seep_forecast_answer answer;
    const char *what; /* "cgroup", "ram", "device", "address-space", "data"; ""
                         if UNKNOWN */
    uint64_t limit_bytes;
    uint64_t used_bytes;
    struct seep_interval seconds; /* high is INFINITY where it may be never */
    bool if_suspect;    /* only .low means something: should it be a leak,
                           or not slow down further */
    bool by_private;    /* private memory grows by .bytes_per_s at most, less
                           than what is kept: .estimate is the earliest */
    bool by_others;     /* of a device: most of what it grows by is not of calls
                           of this process; of a cgroup: it fills by what
                           grows beside this process as well */
    bool of_all;        /* what all processes of the machine use is counted */
    double bytes_per_s; /* that it is made of; 0 if not TIME */
    double pace; /* that, over what the verdict grew by over the run; 0: it is
                    not made of that */
    int device;  /* ordinal, of "device"; else -1 */
};

/**
 * One GPU from the first to the last time that the driver was asked. used =
 * total - free is of all processes; tracked is what calls of this process hold
 * of it (spaces device and managed); unexplained = used - tracked: contexts,
 * modules, other processes, calls that no hook saw.
 */
struct seep_report_device {
    uint32_t ordinal;
    uint64_t total_bytes;
    uint64_t free_bytes;     /* at the end: what the driver told last, less
                                what calls of the process took since */
    uint64_t low_free_bytes; /* the lowest of all samples */
    /* The most that calls of the process held at the end of a bucket, the first
     * time; 0 of none. */
    double peak_bytes;
    double peak_s;
    struct seep_report_extent used;
    struct seep_report_extent tracked;
    struct seep_report_extent unexplained;
    struct seep_report_extent pool_reserved; /* of the default pool */
    struct seep_report_extent pool_used;
    struct seep_report_extent graph_reserved; /* memory nodes of graphs */
    struct seep_report_extent graph_used;
    struct seep_report_extent tensor_reserved;  /* PyTorch's cache, and */
    struct seep_report_extent tensor_allocated; /* what of it is in use */
    bool cache_fragments; /* that cache grows, and what is in use does not */
    struct seep_report_forecast forecast; /* when free is 0 */
};

/** Where most of what private memory grows by lies, beyond what the class is
 * about: X(SYMBOL, "name in JSON"). */
#define SEEP_RESTS(X)          \
    X(UNKNOWN, "unknown")      \
    X(SITES, "call-sites")     \
    X(FREE, "allocator-free")  \
    X(BLOCKS, "unseen-blocks") \
    X(MAPPINGS, "unseen-mappings")

enum seep_rest {
#define SEEP_REST_VALUE(symbol, name) SEEP_REST_##symbol,
    SEEP_RESTS(SEEP_REST_VALUE)
#undef SEEP_REST_VALUE
        SEEP_REST_COUNT
};

struct seep_report_verdict {
    enum seep_verdict_class class;
    const char *reason; /* a phrase; never NULL */
    /* No leak, and it was tested: what "no leak" is printed of, and what a
     * check passes. */
    bool reassures;
    double hidden_bytes_per_s; /* the most that can grow unseen; 0: not known */
    double need_s;             /* so much longer tells; 0: nothing is missing */
    bool private_grows;        /* resident and private, or in swap */
    bool shared_grows;         /* resident, of files or shared */
    bool has_growth;
    struct seep_interval growth_bytes_per_s; /* of what the class is about */
    bool has_growth_per_unit;
    struct seep_interval growth_bytes_per_unit;
    double first_share; /* of it, at the first site and those that grow in
                           step with it; 0 if at no site */
    char first_id[20];  /* of that site, which is listed first; "": of none */
    int device; /* all of it is of the memory of this one; -1: of the host's,
                   or of more than one */
    size_t growing_count; /* sites that it is at */
    size_t suppressed_count;
    double suppressed_bytes_per_s; /* that the suppressed ones grow */
    size_t known_count;            /* sites below a bound that was named */
    size_t minor_count;            /* that grow by less than the floor */
    double minor_bytes_per_s;
    double floor_bytes; /* less than this over the run is minor */
    bool too_little; /* INSUFFICIENT: it grows by .growth_bytes_per_s, and for
                        too short to be more than the floor */
    bool filling;    /* BOUNDED: it has not reached its bound yet */
    bool in_pool;    /* SUSPECT: it grows in a pool, and that is sure; what
                        of it is kept is not */
    bool unseen;     /* UNEXPLAINED: blocks of the allocator, that no hook
                        saw */
    bool files;      /* all that grows is mapped of files: nothing need be
                        full by it */
    /* Beside the class: what it is not about, a little of the memory, and why
     * nothing can be said of that yet; it does not reassure then. NULL: nothing
     * is open. At the site that is the first of those. */
    const char *open_reason;
    struct seep_interval open_bytes_per_s;
    char open_id[20];
    char stopped_id[20]; /* LEAK and SUSPECT, of little, and RETENTION and
                            FRAGMENTATION: the site that rose most, by far more
                            or as much, and has stopped; "": none */
    /* UNEXPLAINED, of the site that is first: it allocated so much before, and
     * so much of that is used now. 0: it is not that. */
    double fills_used_bytes;
    double fills_of_bytes;
    /* Whatever the class: what its cgroup, which has a limit, grows by beside
     * it, without page cache that can be given back; 0: not by what is worth a
     * word. Half or more of it may be files in a tmpfs, or shared memory. */
    double beside_bytes_per_s;
    bool beside_is_files;
    bool open_files; /* UNEXPLAINED: it is about memory.open_files */
    /* Private memory grows by so much, which is more than what the class is
     * about by more than both intervals allow; and that is the rest, most of
     * which is there. 0: it is not so. */
    double private_bytes_per_s;
    double rest_bytes_per_s;
    enum seep_rest rest;
    struct seep_report_forecast forecast;
};

/**
 * The end of a process is not evidence: one that freed what it had is judged to
 * the moment before. Everything in the report is of then, but what says that it
 * is of the process.
 */
struct seep_report_end {
    bool judged_before; /* false: judged to its end; the rest is 0 */
    double judged_to_s;
    double freed_bytes; /* that were live then and not at the end, of sites that
                           had not been so low for long */
    double took_s;      /* from then to the end */
    bool by_exit;       /* it was the moment at which exit() was called */
    bool unreachable;   /* it had fallen by much before the first moment that
                           could be gone back to: what it freed is not known */
};

struct seep_check_measure; /* compare/limits.h */

struct seep_report {
    const char *path;
    enum seep_process_state state;
    bool has_status;
    int status; /* as wait() gives it */
    uint32_t pid;
    const char *executable;
    const char *const *arguments;
    size_t argument_count;
    const char *title;  /* what it called itself since; "": nothing else */
    const char *labels; /* SEEP_LABELS and seep_label(): of a key the last */
    const char *host;
    const char *version;
    const char *rejected; /* SEEP_ variables that it did not understand, a line
                             each: NAME=VALUE, or NAME where that is none */
    const char *allocator;
    uint32_t removed_count; /* recordings that went from its folder when it
                               began, which was over its bounds, */
    uint64_t removed_bytes; /* and what they took of the disk */
    /* Why a file beside the recording that is there was left out: negative
     * errno as of process/beside.h, else 0. */
    int looks_error; /* of .looks, what was seen from outside */
    /* What keeps free memory apart (held/kept.h), where somebody asked and
     * attached it. */
    const struct seep_held_kept_pins *pins;
    int held_error; /* of .held, who held what (read by the tool) */
    bool is_fork;
    bool redacted; /* it was packed so: what it says of paths and the like
                      stands for something else */
    enum seep_inert_reason inert;
    bool is_closed; /* its memory went back to the process, which a limit would
                       have refused some */
    uint64_t start_realtime_ns;
    double life_s;     /* until exit, death as far as known, or now */
    double duration_s; /* what is judged: that, or up to .end.judged_to_s */
    double bucket_s; /* the width of a series' point: the grid begins at 0, and
                        the last may be cut by the end */
    struct seep_report_end end;
    struct seep_report_begin begin;
    struct seep_report_failed {
        uint64_t count; /* of malloc and kin, that found no room */
        uint64_t last_bytes;
        double last_s;
        const char *where; /* the last; "": not known */
    } failed;
    struct seep_report_last {
        double span_s; /* up to the end of one that was killed or is gone; 0:
                          it was not */
        double allocated_bytes;
        double freed_bytes;
        double stayed_bytes; /* of that, at the row that kept the most */
        const char *where;   /* that row; "": none, or not shown */
    } last;
    bool freed_all;      /* at its end: what it held its peaks tell */
    double last_event_s; /* since the start: the last that was recorded */
    bool exact;          /* began exact, nothing lost, never thinned */
    bool began_exact;
    uint64_t sample_bytes;        /* mean interval now; 1 exact */
    uint64_t first_sample_bytes;  /* as it began; more often than now */
    uint64_t tensor_sample_bytes; /* as .sample_bytes, of tensors */
    double sample_rose_s; /* the last time that the mean rose; 0: not known */
    double budget;        /* SEEP_BUDGET, a share; 0: none was given */
    enum seep_unwinder unwinder;
    enum seep_grouping by; /* what a row of .sites is */
    enum seep_python_state python_state;
    uint32_t python_version; /* as PY_VERSION_HEX; 0: no Python was seen */
    enum seep_python_objects python_objects;
    uint64_t file_bytes; /* on the disk */
    uint64_t most_bytes; /* that it may grow to */
    uint64_t units;      /* of work; 0: none told */
    double units_per_s;  /* over the last fifth of the run */
    struct seep_report_verdict verdict;
    struct seep_report_memory memory;
    const struct seep_report_space *spaces;
    size_t space_count;         /* only spaces that were used */
    const double *bucket_end_s; /* of the time grid, up to the end of the run */
    size_t bucket_count;
    const struct seep_report_holding *holdings; /* the same by device */
    size_t holding_count;
    const struct seep_report_device *devices; /* that were asked */
    size_t device_count;
    const struct seep_report_site *sites; /* in reading order */
    size_t site_count;
    size_t site_total; /* with those that site_limit left without symbols */
    const struct seep_report_row *rows; /* instead of those that were let go by
                                           seep_report_keep_rows() */
    size_t row_count;
    /* What each limit is held against, by the limits of who measured before it
     * let go of the series that tell it; NULL: they are there. */
    const struct seep_check_measure *measures;
    const struct seep_report_stack *stacks; /* if they were asked for */
    size_t stack_count;
    /* If blocks were asked for: all that are known to live of the heap and of
     * Python, by address. */
    struct seep_report_blocks known_blocks;
    const uint32_t *known_rows; /* of each of them, among .sites; UINT32_MAX: of
                                   none that is there */
    /* And what the program has by addresses that a driver gave, by space. */
    struct seep_report_blocks driver_blocks[SEEP_SPACE_COUNT];
    const char *const *modules; /* paths of the objects that were recorded */
    size_t module_count;
    /* Files whose names were given up: not those that are not there, or are
     * another build by now. */
    const struct seep_report_nameless {
        const char *path;
        int error; /* as seep_nameless_reason() wants it */
    } * nameless;
    size_t nameless_count;
    const struct seep_report_mark *marks; /* in the order they were made */
    size_t mark_count;
    const struct seep_report_counter *counters; /* every one, also zero */
    size_t counter_count;
    uint64_t
        pending_events; /* pushed, not folded by the process: folded here */
    uint64_t torn_sites;
    double cost_s;     /* estimated time spent in seep, over all threads */
    bool cost_at_most; /* too little was measured: it is no more than that */
    struct seep_report_usage {
        uint32_t used;
        uint32_t capacity;
    } usage_sites, usage_stacks, usage_series, usage_modules, usage_codes,
        usage_live, usage_ranges;
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

/** Why a file gives no names: "would take more than 512 MiB", ... */
const char *seep_nameless_reason(int error);

/** Name of @class as JSON has it. */
const char *seep_verdict_name(enum seep_verdict_class class);

/** "line" and so on; of another value "stack". */
const char *seep_grouping_name(enum seep_grouping by);
/** @return -EINVAL for what is no name of one */
int seep_grouping_parse(const char *name, enum seep_grouping *ret_by);

/** What a site held: at its peak where all was freed at the end. */
static inline uint64_t
seep_report_held_bytes(const struct seep_report *report,
                       const struct seep_report_site *site)
{
    return report->freed_all ? site->peak_bytes : site->live_bytes;
}

/** The name and the words of SEEP_BEGINNINGS. */
const char *seep_beginning_name(enum seep_beginning source);
const char *seep_beginning_words(enum seep_beginning source);

/** The words of SEEP_PYTHON_STATES and SEEP_PYTHON_OBJECTS. */
const char *seep_python_state_words(enum seep_python_state state);
const char *seep_python_objects_words(enum seep_python_objects objects);

/** Memory that lives as long as @report, for what is attached to it. */
struct seep_store *seep_report_store(struct seep_report *report);

/**
 * Of many reports: what tells how things went, series, spaces and moments by
 * time, is half of one. After it they are not there.
 */
void seep_report_let_go(struct seep_report *report);

/** Is a call site left as it is? */
typedef bool seep_report_keeper(const struct seep_report_site *site);

/** The same for the call sites: of those that @keeps leaves out, or of all if
 * it is NULL, rows are left. Without memory for these nothing changes. */
void seep_report_keep_rows(struct seep_report *report,
                           seep_report_keeper *keeps);

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

/** Is the path @at of @count what lies beside another, RECORDING.looks or
 * .held? A shell's star names them as well: they are read with their recording.
 */
bool seep_report_is_beside(char *const *paths, size_t count, size_t at);

/*
 * Processes by their labels (SEEP_LABELS): which model, version or role grows,
 * over all processes that carry it.
 *
 * A label is "key=value", or a word alone, which is a key with the value "".
 * A process counts in a row for each of its labels, once; one without any
 * counts in a row of its own kind, whose key is "".
 *
 * Rows belong to the caller and point into the reports. Pure; any thread.
 */

struct seep_label_row {
    const char *key;   /* "model"; not NUL-terminated, as the value */
    const char *value; /* "bert-13" */
    size_t key_length;
    size_t value_length;
    size_t process_count;
    size_t leak_count;             /* of them, that leak */
    enum seep_verdict_class class; /* the worst of theirs */
    uint64_t live_bytes;           /* of all spaces that hold memory */
    bool has_growth;               /* at least one process grows */
    struct seep_interval growth_bytes_per_s; /* the sum of what grows */
    const struct seep_report *first;         /* the one that grows most */
};

/**
 * The rows of @reports: by key, and of each the one first that grows most.
 *
 * @param ret_rows  to be freed
 */
int seep_labels_group(const struct seep_report *const *reports, size_t count,
                      struct seep_label_row **ret_rows, size_t *ret_count);

/**
 * The value that @report has for @key of @key_length bytes; of a key that is
 * there twice the first. Not NUL-terminated.
 *
 * @return false: it has no such label
 */
bool seep_labels_value(const struct seep_report *report, const char *key,
                       size_t key_length, const char **ret_value,
                       size_t *ret_length);

#endif
