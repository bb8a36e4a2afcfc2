/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The verdict on a process: from the classes of its call sites and from what
 * grew outside of them, to one class and the growth that it is about; and when
 * memory is exhausted if all goes on as it went.
 *
 * Invariant: what a class is about is material: by at least the floor over the
 * run at call sites, by a share of resident memory outside of them. No forecast
 * is NaN; the only infinity is the upper end of an interval: it may be never.
 *
 * Sizes are bytes, times seconds. Pure; any thread.
 */
#ifndef SEEP_READER_JUDGE_VERDICT_H
#define SEEP_READER_JUDGE_VERDICT_H

#include <stddef.h>
#include <stdint.h>

#include "reader/judge/balance.h"
#include "reader/judge/sites.h"
#include "reader/report/report.h"
#include "reader/statistics/window.h"

/** Where more of the events are lost nothing is ruled out by what is left; and
 * what seems to stay may be what was freed unseen. */
#define SEEP_VERDICT_LOST_MOST 0.1

struct seep_verdict_input {
    const struct seep_site_work *works; /* .site only; the worst first */
    size_t count;
    /* By place, of all sites in spaces that hold memory. */
    uint64_t live_bytes[SEEP_PLACE_COUNT];
    double began_s; /* when the work began: what went before is start-up */
    double duration_s;
    const char *too_short; /* why nothing can be told; NULL */
    double imports_s;      /* they took most of the run; else 0 */
    double kept_bytes;     /* by all call sites, since then */
    /* Private memory and swap, beyond what is worth a word; and what is
     * resident of files and shared, beyond that and the recording itself. */
    struct seep_drift private_drift;
    struct seep_drift shared_drift;
    struct seep_drift open_files_drift; /* see seep_report_memory.open_files */
    double free_bytes; /* that the allocator keeps: a leak fills it unseen */
    double free_growth_bytes; /* of that, over the part in which private memory
                                 grows */
    double sample_bytes;      /* mean interval of sampling; 0: every block */
    double lost_share;        /* of its events: not recorded */
    bool unreachable;         /* how it ended may have hidden what was live */
    /* What calls of the process hold of each device grew by at least, or what
     * PyTorch has handed out of it. */
    double least_device_bytes[SEEP_DEVICES_MAX];
    /* What tensors can grow by, unseen by samples and by PyTorch's own sums; 0
     * where there are none. */
    double hidden_tensor_bytes_per_s;
    /* That call sites grow by in shared memory which others write to. */
    double elsewhere_bytes_per_s;
    /* That mappings which no hook saw grow by, as seen from outside. */
    double stray_bytes_per_s;
    /* Whose blocks, allocated before, are most of what grows of mappings that
     * are such blocks and little else, as seen from outside. */
    struct seep_verdict_fill {
        const struct seep_report_site *site; /* NULL: nobody's */
        double bytes_per_s;
        double used_bytes; /* at the end, of all such blocks of its, and */
        double of_bytes;   /* their size */
    } fill;
    /* What is charged to no call site grew by at most so much: many things at
     * once, of which the class says nothing. */
    double uncharged_growth_bytes;
    struct seep_balance_outside outside;
    /* That PyTorch's cache of each device grows by, where the tensors in it do
     * not; else 0. */
    struct seep_interval caches[SEEP_DEVICES_MAX];
};

/** Seconds since the work began, which rates are of. */
static inline double
seep_verdict_worked_s(const struct seep_verdict_input *input)
{
    return input->duration_s - input->began_s;
}

enum seep_forecast_basis {
    SEEP_FORECAST_UNTOLD,   /* nothing is known of the growth */
    SEEP_FORECAST_GROWS,    /* by .bytes_per_s, if above 0 */
    SEEP_FORECAST_SUSPECTED /* the same, should it be a leak, or go on */
};

/** Growth at the present rate of work, for the forecast. */
struct seep_verdict_now {
    enum seep_forecast_basis basis;
    struct seep_interval bytes_per_s; /* of memory of the host */
    double pace; /* that, over what it grew by over the run; 0: the same */
    /* Of the memory of each device: what the class is about of it. */
    struct seep_verdict_pace {
        bool is_known; /* false: nothing */
        enum seep_forecast_basis basis;
        struct seep_interval bytes_per_s;
    } devices[SEEP_DEVICES_MAX];
    bool by_private;   /* that is the most by which private memory grows: less
                          than what is allocated and kept */
    double left_bytes; /* that caches have to fill up to bounds named */
    bool ends;         /* nothing grows on when those are full */
};

/** @param ret_verdict  all but its forecast */
void seep_verdict_decide(const struct seep_verdict_input *input,
                         struct seep_report_verdict *ret_verdict,
                         struct seep_verdict_now *ret_now);

/* Call sites that the verdict takes together; what of them is in one memory. */
struct seep_verdict_part {
    size_t count;
    double estimate; /* bytes per second */
    double low;      /* sum of the lower ends */
    double now;      /* as estimate, at the present rate of work */
    double now_squares;
};

/* Several sites taken together; sites are sampled independently. */
struct seep_verdict_tally {
    size_t count;
    double estimate; /* bytes per second */
    double squares;  /* of half intervals */
    double first;    /* estimate of the first one */
    struct seep_verdict_part parts[SEEP_PLACE_COUNT];
    size_t unit_count;
    double unit_estimate;
    double unit_squares;
    const char *reason; /* of the first one */
    const char *id;     /* of the first one */
};

/* All sites by what the verdict makes of them. */
struct seep_verdict_counts {
    struct seep_verdict_tally leak;
    struct seep_verdict_tally suspect;
    /* Both of them: suspected where none is proved. One that is not may be the
     * smallest part of one leak. */
    struct seep_verdict_tally either;
    /* Of what is mapped of files, which is no memory that could be full. */
    struct seep_verdict_tally file_leak;
    struct seep_verdict_tally file_suspect;
    /* Of the leaks those whose interval is above 0. Where that of them all is
     * not, these are the leaks. */
    struct seep_verdict_tally sure_leak;
    struct seep_verdict_tally sure_file_leak;
    struct seep_verdict_tally filling;
    struct seep_verdict_tally filled; /* the one that rose most is its first */
    double filled_bytes;              /* that one rose by */
    bool filled_tested;               /* that one tested its pause */
    /* It looks as if it had stopped, and the pause is too short to tell. */
    struct seep_verdict_tally unstopped;
    bool unstopped_in_steps;
    double unstopped_gap_s; /* of its first, and how improbable that is */
    double unstopped_ln_p;
    double unstopped_next_s;          /* until its next step; 0: not foretold */
    struct seep_verdict_tally rising; /* surely so, and of no class that says */
    struct seep_verdict_tally minor;
    /* What may leak and surely grew, by less than counts: of the host. */
    struct seep_verdict_tally little;
    struct seep_verdict_tally suppressed;
    size_t known;
    size_t doubtful;             /* may leak, too little of it to count */
    size_t grew;                 /* surely so, of whatever class */
    double unknown_bytes;        /* of the host's memory */
    double possible_bytes_per_s; /* of one row of the host, at the most */
    double bound_left_bytes;     /* of what fills of the host: INFINITY if a
                                    bound is unknown */
};

void seep_verdict_count(const struct seep_verdict_input *input,
                        struct seep_verdict_counts *ret_counts);

/** The device whose cache grows most while its tensors do not; -1: none's. */
int seep_verdict_cache(const struct seep_verdict_input *input);

/** Why nothing grows, by what the rows show, which stand below it. */
const char *seep_verdict_why_steady(const struct seep_verdict_counts *counts);

/** Does it surely grow? A leak without a lower bound is none that was proved.
 */
bool seep_verdict_is_proved(const struct seep_verdict_tally *leak);

/** The least that all of @tally grows by. */
double seep_verdict_low_of(const struct seep_verdict_tally *tally);

/* What rose and has stopped, or may have, must be more to be worth a word. */
#define SEEP_VERDICT_RISE_BYTES (4 * 1024.0 * 1024.0)
#define SEEP_VERDICT_RISE_SHARE 0.05

/* Why it is not known of a row whether it leaks. */
#define SEEP_VERDICT_RISING \
    "a call site kept more than it freed, but for too little of the run to say how it goes on"

#define SEEP_VERDICT_LITTLE \
    "it grows, but by too little so far to tell whether it leaks"

/** Is growth, less than @floor_bytes over @span_s, worth a longer run? */
bool seep_verdict_is_a_little(double bytes_per_s, double span_s,
                              double floor_bytes);

/** Do rows that may leak, each too little to count, surely grow by what is
 * worth a longer run? */
bool seep_verdict_grows_a_little(const struct seep_verdict_input *input,
                                 const struct seep_verdict_counts *counts,
                                 double floor_bytes);

/** Memory rose, stays, and no block needs it, not even at times. */
bool seep_verdict_was_kept(const struct seep_balance_outside *outside);

/** Did rows that nothing is known of keep more than the floor? */
bool seep_verdict_rises(const struct seep_verdict_input *input,
                        const struct seep_verdict_counts *counts,
                        double floor_bytes);

/** And so little of what rose and has stopped that the class is about that? */
bool seep_verdict_rises_a_little(const struct seep_verdict_input *input,
                                 const struct seep_verdict_counts *counts);

/** Why it cannot be told yet whether the process, or a little of it beside what
 * the class is about, leaks; NULL: it can. */
const char *seep_verdict_open_reason(const struct seep_report_verdict *verdict);

/** What is said beside .class: .open_* and .stopped_id. All but what could hide
 * is known by then. */
void seep_verdict_add_beside(const struct seep_verdict_input *input,
                             const struct seep_verdict_counts *counts,
                             struct seep_report_verdict *verdict);

/** What could hide, and what is missing; .class is there, and .open_reason.
 * Where nothing is known of the host, tensors do not make it known. */
void seep_verdict_add_power(const struct seep_verdict_input *input,
                            const struct seep_verdict_counts *counts,
                            struct seep_report_verdict *verdict);

/** Where the rest is of what private memory grows by: .rest* of @verdict, all
 * else of which is known. */
void seep_verdict_add_rest(const struct seep_verdict_input *input,
                           const struct seep_report_memory *memory,
                           struct seep_report_verdict *verdict);

/** What is more than so much of it is most of it. */
#define SEEP_VERDICT_MOSTLY 0.5

/** Is what grows outside of call sites what one of them allocated before, and
 * uses now? @param verdict, ret_now  class, reason, site and what is left, if
 * so
 */
bool seep_verdict_fills(const struct seep_verdict_input *input,
                        struct seep_report_verdict *verdict,
                        struct seep_verdict_now *ret_now);

/** What it has in open files without a name grows, by .open_files_drift. */
struct seep_verdict_now
seep_verdict_open_files(const struct seep_verdict_input *input,
                        struct seep_report_verdict *verdict);

/** Class and reason of what nobody accounts for.
 * @param all_recorded  false: so much was lost that it may be live blocks */
void seep_verdict_unexplained(const struct seep_balance_outside *outside,
                              bool all_recorded,
                              struct seep_report_verdict *verdict);

/** The row of the host that rose most since @from_s, whatever it is called. */
const struct seep_report_site *
seep_verdict_most(const struct seep_verdict_input *input, double from_s,
                  double *ret_rise);

/** What of a row was born from @from_s on, and lives. */
double seep_verdict_rise_of(const struct seep_verdict_input *input,
                            const struct seep_site_work *work, double from_s);

/** The pool of an allocator inside a library that took most while private
 * memory grew, else the largest; NULL: there is none. */
const struct seep_site_work *
seep_verdict_pool(const struct seep_verdict_input *input);

/** Does what grows outside of call sites lie in @pool? Hooks saw where it lies
 * and not what: it is a pool's, unless mappings that no hook saw grow by most
 * of it. */
bool seep_verdict_is_in_pool(const struct seep_verdict_input *input,
                             const struct seep_site_work *pool);

/** What @pool, which may be NULL, has of the growth of private memory: all that
 * lies nowhere else, and has room in it. */
double seep_verdict_pool_rise(const struct seep_verdict_input *input,
                              const struct seep_site_work *pool);

/** Something that can be full; used may be over the limit already. */
struct seep_forecast_limit {
    const char *what;     /* "cgroup", "ram", "device" */
    uint64_t limit_bytes; /* 0: none */
    uint64_t used_bytes;
    struct seep_interval bytes_per_s; /* that it fills by, now */
};

#define SEEP_FORECAST_NONE          \
    ((struct seep_report_forecast){ \
        .answer = SEEP_FORECAST_UNKNOWN, .what = "", .device = -1})

/** Of the limit that is reached first; of those never reached, the nearest. */
void seep_forecast_make(const struct seep_forecast_limit *limits, size_t count,
                        enum seep_forecast_basis basis,
                        struct seep_report_forecast *ret_forecast);

/** Is @a reached before @b? What is known comes before what is not. */
bool seep_forecast_is_nearer(const struct seep_report_forecast *a,
                             const struct seep_report_forecast *b);

/** Of the control group and the machine. */
void seep_forecast_of_process(const struct seep_report_memory *memory,
                              const struct seep_verdict_now *now,
                              struct seep_report_forecast *ret_forecast);

/** What its cgroup grows by beside the process, and when it is full by all that
 * it grows by, if that is earlier than the forecast that is there.
 * @param elsewhere_bytes_per_s  as of the input of the verdict
 * @param verdict  .floor_bytes; .beside_* and .forecast change */
void seep_forecast_add_beside(const struct seep_report_memory *memory,
                              double elsewhere_bytes_per_s, double duration_s,
                              struct seep_report_verdict *verdict);

/**
 * What the class is about of this memory, else what the device itself showed,
 * whoever it was: a growth that can be told from none, and is clearly more
 * than what the class is about.
 *
 * @param is_followed  the driver was asked over enough of the run
 */
struct seep_report_forecast
seep_forecast_of_device(const struct seep_report_device *device,
                        bool is_followed, const struct seep_verdict_pace *pace);

#endif
