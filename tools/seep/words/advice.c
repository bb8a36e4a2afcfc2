/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What to do next, and when memory will be full. Invariant: an experiment is
 * advised, never made; what is advised can be typed or is a sentence.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "reader/compare/patterns.h"
#include "reader/symbols/where.h"
#include "words/common.h"
#include "words/held.h"
#include "words/units.h"
#include "words/verdict.h"
#include "words/words.h"

/*
 * What a verdict on a Python process says besides: which line to look at, why
 * there is none, and what its own allocator hides. Invariant: of a process
 * without Python nothing is said.
 */

static bool is_interpreter(const char *path)
{
    const char *name = seep_text_base_name(path);

    return strncmp(name, "python", 6) == 0 ||
           strncmp(name, "libpython", 9) == 0;
}

/* It is told by hand that no frames are wanted: then no version is known. */
static bool is_turned_off(const struct seep_report *report)
{
    return report->python_state == SEEP_PYTHON_NONE &&
           is_interpreter(report->executable);
}

static bool has_python(const struct seep_report *report)
{
    return seep_words_has_python(report) || is_turned_off(report);
}

/* Who holds what lies in an arena is not who needed the arena. */
static bool may_be_arena(const struct seep_report *report,
                         const struct seep_report_site *site)
{
    return site->space == SEEP_SPACE_MAPPED && has_python(report) &&
           report->python_objects != SEEP_PYTHON_OBJECTS_ON &&
           site->frame_count > 0 && !site->frames[0]->python &&
           is_interpreter(site->frames[0]->module);
}

/* "the memory allocated at serve.py:31", to be freed; NULL: it is no line of
 * Python, or none that keeps it. */
static char *holder_of(const struct seep_report *report,
                       const struct seep_report_site *site)
{
    const struct seep_report_frame *frame;

    if (site->where_frame >= site->frame_count) {
        return NULL;
    }
    frame = site->frames[site->where_frame];
    if (!frame->python || frame->line == 0 || may_be_arena(report, site)) {
        return NULL;
    }
    return seep_words_make("the memory allocated at %s:%u",
                           seep_text_base_name(frame->file), frame->line);
}

void seep_words_add_python_reason(const struct seep_report *report,
                                  const struct seep_report_site *site,
                                  struct seep_words_verdict *words)
{
    if (site != NULL && may_be_arena(report, site)) {
        seep_words_reason(
            words,
            "it is an arena of Python's small-object allocator: record Python's objects to see which lines keep them");
    }
    if (site != NULL && seep_words_may_lend(site)) {
        seep_words_reason(
            words,
            "Python reuses freed dicts, lists, tuples and floats: this line freed %s of its blocks, and another may keep the rest",
            SEEP_UNITS_SHARE(1 - site->keeps_share));
    }
}

static void add_python_advice(const struct seep_report *report,
                              const struct seep_report_site *site,
                              struct seep_words_verdict *words)
{
    bool hidden =
        site == NULL ? has_python(report) : may_be_arena(report, site);

    if (hidden && report->python_objects == SEEP_PYTHON_OBJECTS_OFF) {
        seep_words_advise(
            words,
            "seep run --python objects -- COMMAND, or SEEP_PYTHON=objects: shows Python's own objects by the lines that made them");
        return; /* with its lines */
    }
    if (site == NULL || seep_fold_has_python(site)) {
        return;
    }
    if (seep_words_is_without_python(report)) {
        seep_words_advise(
            words,
            "use a release build of Python 3.8 to 3.15: with this one frames are %s",
            seep_python_state_words(report->python_state));
    } else if (is_turned_off(report)) {
        seep_words_advise(
            words,
            "seep run --python frames -- COMMAND, or SEEP_PYTHON=frames: shows the lines of Python");
    }
}

/*
 * When memory will be full. Invariant: an open end is said to be one, and
 * "never" and "cannot be told" are answers.
 */

#define YEAR_S (365.25 * 86400)
/* Over the mean of the run: what is not between them is another rate. */
#define PACE_SLOWER 0.75
#define PACE_FASTER 1.33

/* Of a device that is full, the share that may be left in small pieces. */
#define DEVICE_LEFT_SHARE 0.001

/* Sooner than that is now: the process may be dead of it. */
#define NO_TIME_S 1.0
#define FULL_SHARE 0.99

static bool is_of(const struct seep_report_forecast *forecast, const char *what)
{
    return strcmp(forecast->what, what) == 0;
}

/* "the cgroup's 8 GiB", "GPU 0's 79 GiB", "RLIMIT_AS's 4 GiB" */
static void put_limit(FILE *file, const struct seep_report_forecast *forecast)
{
    char gpu[SEEP_WORDS_GPU_BYTES] = "the device";
    const char *owner = is_of(forecast, "cgroup")          ? "the cgroup"
                        : is_of(forecast, "ram")           ? "the machine"
                        : is_of(forecast, "address-space") ? "RLIMIT_AS"
                        : is_of(forecast, "data")          ? "RLIMIT_DATA"
                                                           : gpu;

    if (forecast->device >= 0) {
        seep_words_gpu(forecast->device, gpu);
    }
    fprintf(file, "%s's %s", owner,
            SEEP_UNITS_BYTES((double)forecast->limit_bytes));
}

/* What is so far away is no forecast any more. */
static const char *far_duration(double seconds,
                                char text[SEEP_UNITS_TEXT_BYTES])
{
    if (seconds > 10 * YEAR_S) {
        return strcpy(text, "over ten years");
    }
    return seep_units_duration(seconds, text);
}

/* "in 2 h 51 min (2 h 44 min to 2 h 59 min)" */
static void put_span(FILE *file, const struct seep_report_forecast *forecast)
{
    const struct seep_interval *seconds = &forecast->seconds;
    const char *low = far_duration(seconds->low, SEEP_UNITS_TEXT);

    if (forecast->if_suspect || forecast->by_private ||
        !isfinite(seconds->estimate)) {
        fprintf(file, "in %s at the earliest", low);
        return;
    }
    fprintf(file, "in %s", far_duration(seconds->estimate, SEEP_UNITS_TEXT));
    if (seconds->low > 10 * YEAR_S) {
        return;
    }
    if (!isfinite(seconds->high)) {
        fprintf(file, " (%s at the earliest, or never)", low);
    } else {
        fprintf(file, " (%s to %s)", low,
                far_duration(seconds->high, SEEP_UNITS_TEXT));
    }
}

/* What the verdict is about need not be what is full first. */
static const char *lead_of(const struct seep_report *report)
{
    const struct seep_report_forecast *forecast = &report->verdict.forecast;
    enum seep_verdict_class class = report->verdict.class;

    if (forecast->device != report->verdict.device || forecast->by_others) {
        return "At its current rate, ";
    }
    if (!forecast->if_suspect) {
        return "At this rate ";
    }
    return class == SEEP_VERDICT_RETENTION ||
                   class == SEEP_VERDICT_FRAGMENTATION
               ? "If it goes on, "
               : "If it is a leak, ";
}

/* What the sentence says is the mean of the run. */
static void put_pace(FILE *file, const struct seep_report_forecast *forecast)
{
    if (forecast->by_private && forecast->bytes_per_s > 0) {
        fputs("Private memory grows by at most ", file);
        seep_words_put_rate(file, forecast->bytes_per_s);
        fputs(". ", file);
    } else if (forecast->pace > 0 && forecast->bytes_per_s > 0 &&
               !(forecast->pace > PACE_SLOWER &&
                 forecast->pace < PACE_FASTER)) {
        fprintf(file, "It has %s to ",
                forecast->pace < 1 ? "slowed" : "sped up");
        seep_words_put_rate(file, forecast->bytes_per_s);
        fputs(". ", file);
    }
}

/* Less than a forecast can know: what is killed at its limit was seen so. */
static bool is_reached(const struct seep_report_forecast *forecast)
{
    double full_bytes = FULL_SHARE * (double)forecast->limit_bytes;

    return forecast->used_bytes >= forecast->limit_bytes ||
           (forecast->device < 0 && !forecast->if_suspect &&
            (double)forecast->used_bytes >= full_bytes &&
            forecast->seconds.estimate < NO_TIME_S);
}

/* Of what setrlimit() allows there was less left than the last allocation that
 * failed asked for. A device is full while some pieces of it are free. */
static bool is_used_up(const struct seep_report *report)
{
    const struct seep_report_forecast *forecast = &report->verdict.forecast;
    bool bound = is_of(forecast, "address-space") || is_of(forecast, "data");
    double wanted = bound && report->failed.count > 0
                        ? (double)report->failed.last_bytes
                        : 0;

    if (forecast->device >= 0) {
        wanted = DEVICE_LEFT_SHARE * (double)forecast->limit_bytes;
    }
    return is_reached(forecast) || (double)forecast->used_bytes + wanted >=
                                       (double)forecast->limit_bytes;
}

bool seep_words_tells_others(const struct seep_report *report, int ordinal)
{
    const struct seep_report_forecast *forecast = &report->verdict.forecast;

    return forecast->answer == SEEP_FORECAST_TIME && forecast->by_others &&
           forecast->device == ordinal && !is_used_up(report);
}

static void put_others(FILE *file, const struct seep_report_forecast *forecast)
{
    char filled[SEEP_WORDS_GPU_BYTES] = "The cgroup";

    if (forecast->device >= 0) {
        seep_words_gpu(forecast->device, filled);
    }
    fprintf(file, "%s fills by ", filled);
    seep_words_put_rate(file, forecast->bytes_per_s);
    fputs(forecast->device >= 0
              ? ", most of it by other processes, contexts or code. "
              : " in all. ",
          file);
}

static void put_time(FILE *file, const struct seep_report *report)
{
    const struct seep_report_forecast *forecast = &report->verdict.forecast;

    if (is_used_up(report)) {
        put_limit(file, forecast);
        fputs(
            is_of(forecast, "cgroup") && !forecast->by_others
                ? " are used up already, counting page cache that the kernel can drop"
                : " are used up already",
            file);
        return;
    }
    if (forecast->by_others) {
        put_others(file, forecast);
    } else {
        put_pace(file, forecast);
    }
    fputs(lead_of(report), file);
    put_limit(file, forecast);
    fputs(forecast->device >= 0 ? " will be full " : " will be reached ", file);
    put_span(file, forecast);
    if (forecast->of_all) {
        fprintf(file, ", with the %s that all processes use now",
                SEEP_UNITS_BYTES((double)forecast->used_bytes));
    }
}

static void put_when(FILE *file, const struct seep_report_forecast *forecast)
{
    if (forecast->answer == SEEP_FORECAST_NEVER) {
        fputs("never at this rate: it is not growing", file);
    } else if (forecast->answer == SEEP_FORECAST_UNKNOWN) {
        fputs("unknown: too little data", file);
    } else if (is_reached(forecast)) {
        fputs("already", file);
    } else {
        put_span(file, forecast);
        fputs(forecast->if_suspect ? ", if it goes on" : "", file);
    }
}

char *seep_words_when(const struct seep_report_forecast *forecast)
{
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return NULL;
    }
    put_when(file, forecast);
    return seep_words_close(&text);
}

static bool grows(enum seep_verdict_class class)
{
    return class != SEEP_VERDICT_STEADY && class != SEEP_VERDICT_INSUFFICIENT &&
           class != SEEP_VERDICT_BOUNDED;
}

/* What leaks fills what was free, or is not touched. */
static bool does_not_fill(const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;

    return report->verdict.has_growth && !report->verdict.private_grows &&
           memory->machine_bytes > 0 && memory->anonymous.valid &&
           memory->anonymous.slope_bytes_per_s <= memory->anonymous.slope_error;
}

char *seep_words_forecast(const struct seep_report *report)
{
    const struct seep_report_forecast *forecast = &report->verdict.forecast;
    struct seep_words_text text;
    char *sentence;
    FILE *file;

    if (forecast->answer != SEEP_FORECAST_TIME &&
        (!grows(report->verdict.class) || !report->verdict.has_growth)) {
        return NULL; /* nobody asks when what does not grow will be full */
    }
    if (forecast->answer != SEEP_FORECAST_TIME &&
        (report->verdict.files || forecast->device != report->verdict.device)) {
        return NULL; /* nor about another place than what does */
    }
    file = seep_words_open(&text);
    if (file == NULL) {
        return NULL;
    }
    if (forecast->answer == SEEP_FORECAST_TIME) {
        put_time(file, report);
    } else if (forecast->answer == SEEP_FORECAST_NEVER) {
        fputs("It is not growing now, so ", file);
        put_limit(file, forecast);
        fprintf(file, " would not be reached; %s are in use",
                SEEP_UNITS_BYTES((double)forecast->used_bytes));
    } else if (report->verdict.fills_of_bytes > 0 &&
               forecast->limit_bytes == 0 && report->memory.machine_bytes > 0) {
        fputs("When it is full it ends, and memory has room for all of it",
              file);
    } else {
        fputs("Cannot tell when memory will be full: ", file);
        fputs(does_not_fill(report)        ? "private memory does not grow yet"
              : forecast->limit_bytes == 0 ? "its limit is unknown"
                                           : "too little data",
              file);
    }
    fputc('.', file);
    sentence = seep_words_close(&text);
    if (sentence != NULL && *sentence == 't') { /* "the cgroup's .." */
        *sentence = 'T';
    }
    return sentence;
}

/*
 * What to do next, by class.
 */

#define LEAST_S 30.0 /* growth is not judged on less */
#define LEAST_UNITS 100
#define PID_BYTES 16

/* @site may be NULL */
static void advise_remedy(const struct seep_report_site *site,
                          struct seep_words_verdict *words)
{
    if (site != NULL && site->pattern != NULL) {
        seep_words_advise(words, "%s", site->pattern->remedy);
    }
}

/* What rose most is more than what the class is about. */
static void advise_stopped(const struct seep_report *report,
                           struct seep_words_verdict *words)
{
    advise_remedy(seep_words_site_of(report, report->verdict.stopped_id),
                  words);
}

/* What holds more than the row that speaks is the place to begin. */
static void advise_common(const struct seep_report *report,
                          const struct seep_report_site *site,
                          struct seep_words_verdict *words)
{
    char *advice = seep_words_common_advice(report, site);

    if (advice != NULL) {
        seep_words_advise(words, "%s", advice);
        free(advice);
    }
}

static void advise_site(const struct seep_report *report,
                        const struct seep_report_site *site,
                        struct seep_words_verdict *words)
{
    char *command = seep_words_stack_command(report, site);
    char *holder = holder_of(report, site);
    char *held = seep_words_held_advice(site->held);

    advise_common(report, site, words);
    if (held != NULL) {
        seep_words_advise(words, "%s", held);
    }
    if (site->pool == NULL && held != NULL) {
        seep_words_advise(words, "see where it is allocated: %s",
                          command == NULL ? "seep report" : command);
    } else if (site->pool == NULL) {
        add_python_advice(report, site, words);
        seep_words_advise(words, "find what holds %s: %s",
                          holder == NULL ? "it" : holder,
                          command == NULL ? "seep report" : command);
    } else if (site->pattern == NULL) {
        seep_words_advise(
            words,
            "which lines keep it is not known: look for a setting by which the library uses malloc, or ask it what it has");
    }
    free(held);
    free(holder);
    free(command);
    advise_remedy(site, words);
}

/* What a rule can name: a function, up to its arguments. NULL: all that a
 * program has is in what is there, <module> or main(), or it has no name. */
static char *rule_of(const struct seep_report_site *site)
{
    const struct seep_report_frame *frame;
    const char *function;
    size_t length;

    if (site->where_frame >= site->frame_count) {
        return NULL;
    }
    frame = site->frames[site->where_frame];
    function = frame->python ? frame->function
                             : seep_where_function_name(frame->function);
    length = frame->python ? strlen(function) : strcspn(function, "(<[ ");
    return length == 0 || *function == '<' || strcmp(function, "main") == 0 ||
                   strstr(function, "operator") != NULL ||
                   function[length - 1] == ':' ||
                   strcspn(function, "*^$") < length
               ? NULL
               : strndup(function, length);
}

/* What nothing points to is no cache. */
static void advise_cache(const struct seep_report_site *cache,
                         struct seep_words_verdict *words)
{
    char *rule;

    if (cache == NULL || seep_words_held_by_nothing(cache->held)) {
        return;
    }
    rule = rule_of(cache);
    seep_words_advise(
        words,
        "if it is a cache, run it until it is full, or give its bound with --known %.*s=SIZE%s%s",
        SEEP_WORDS_ID_COLUMNS, cache->id,
        rule == NULL
            ? ""
            : "; if it may grow, suppress it: --suppressions FILE with a line leak:",
        rule == NULL ? "" : rule);
    free(rule);
}

static void advise_leak(const struct seep_report *report,
                        struct seep_words_verdict *words)
{
    const struct seep_report_site *site = seep_words_site(report);

    if (site != NULL) {
        advise_site(report, site, words);
    }
    advise_stopped(report, words);
    advise_cache(seep_words_cache(report), words);
}

static void advise_suspect(const struct seep_report *report,
                           struct seep_words_verdict *words)
{
    const char *longer = SEEP_UNITS_DURATION(report->duration_s * 2);
    seep_words_advise(words, "run it longer under steady load: %s or more",
                      longer);
    advise_leak(report, words);
}

/* A command for a process that is gone names the next one's. */
static void fill_pid(const struct seep_report *report, char text[PID_BYTES])
{
    if (report->state == SEEP_STATE_RUNNING) {
        snprintf(text, PID_BYTES, "%u", report->pid);
    } else {
        snprintf(text, PID_BYTES, "PID");
    }
}

static void advise_threads(const struct seep_report *report,
                           struct seep_words_verdict *words)
{
    char pid[PID_BYTES];

    if (seep_words_threads_grow(report)) {
        fill_pid(report, pid);
        seep_words_advise(
            words,
            "see for what its threads wait: %s %s; a pool of threads has a bound",
            report->python_version != 0 ? "py-spy dump --pid" : "eu-stack -p",
            pid);
    }
}

/* Which calls take memory is worth to know where none of ours saw it. */
static void advise_tracing(const char *pid, struct seep_words_verdict *words)
{
    seep_words_advise(
        words,
        "while it runs, as root: bpftrace -e 'tracepoint:syscalls:sys_enter_mmap,tracepoint:syscalls:sys_enter_brk,tracepoint:syscalls:sys_enter_shmat /pid == %s/ { @[probe, ustack] = count(); }'",
        pid);
}

static void advise_unexplained(const struct seep_report *report,
                               struct seep_words_verdict *words)
{
    const struct seep_report_memory *memory = &report->memory;
    bool fills = report->verdict.fills_of_bytes > 0;
    char pid[PID_BYTES];

    fill_pid(report, pid);
    if (report->verdict.open_files) {
        seep_words_advise(
            words,
            "while it runs: ls -lL /proc/%s/fd shows how large each is, strace -f -p %s -e trace=memfd_create,write,pwrite64,ftruncate,close who makes and fills them",
            pid, pid);
        return;
    }
    if (report->verdict.unseen) {
        seep_words_advise(
            words,
            "if a library is loaded with RTLD_DEEPBIND, a flag of dlopen(), load it without: then its blocks are recorded");
    }
    if (fills || seep_words_writes_late(report)) {
        seep_words_advise(
            words,
            "who writes to it first, while it runs: perf record -e page-faults -g -p %s -- sleep 30",
            pid);
    } else if (seep_words_site(report) == NULL) {
        add_python_advice(report, NULL, words);
        advise_tracing(pid, words);
    }
    if (fills) {
        seep_words_advise(
            words,
            "if it is meant to fill, run it until it is full: what grows then is something else");
    }
    if (seep_words_site(report) != NULL) {
        advise_site(report, seep_words_site(report), words);
        return;
    }
    if (!memory->has_samples) {
        seep_words_advise(
            words,
            "start it with `seep run`, which samples its mappings from outside and names those that grow");
    }
    if (!memory->allocator_reported) {
        seep_words_advise(
            words,
            "seep run --allocator jemalloc -- COMMAND: jemalloc reports what it holds itself, which narrows down the rest");
    }
}

static void advise_pins(const struct seep_report *report,
                        struct seep_words_verdict *words)
{
    char *text = seep_words_pins_advice(report);

    if (text != NULL) {
        seep_words_advise(words, "%s", text);
        free(text);
    }
}

static void advise_retention(const struct seep_report *report,
                             struct seep_words_verdict *words)
{
    char pid[PID_BYTES];

    advise_stopped(report, words);
    advise_pins(report, words);
    if (seep_words_is_glibc(report)) {
        fill_pid(report, pid);
        seep_words_advise(
            words,
            "on a copy, never in production: gdb -p %s -batch -ex 'call (int)malloc_trim(0)' should give it back",
            pid);
        seep_words_advise(
            words,
            "MALLOC_ARENA_MAX=2 or MALLOC_TRIM_THRESHOLD_=131072 in its environment keeps glibc from holding on to it");
    } else if (report->memory.allocator == SEEP_ALLOCATOR_JEMALLOC) {
        seep_words_advise(
            words,
            "MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0 gives it back sooner");
    } else {
        seep_words_advise(words,
                          "see how %s can be told to give memory back sooner",
                          seep_words_allocator(report->memory.allocator));
    }
    if (report->memory.allocator != SEEP_ALLOCATOR_JEMALLOC) {
        seep_words_advise(
            words,
            "seep run --allocator jemalloc -- COMMAND, and compare its RSS");
    }
}

static void advise_fragmentation(const struct seep_report *report,
                                 struct seep_words_verdict *words)
{
    if (seep_words_fragmented(report) != NULL) {
        return; /* the host's allocator has no part in it */
    }
    advise_stopped(report, words);
    advise_pins(report, words);
    if (report->memory.allocator != SEEP_ALLOCATOR_JEMALLOC) {
        seep_words_advise(
            words,
            "seep run --allocator jemalloc -- COMMAND, and compare its RSS");
    }
    if (seep_words_is_glibc(report)) {
        seep_words_advise(
            words,
            "MALLOC_ARENA_MAX=2 in its environment: fewer heaps for threads to fragment");
    }
    seep_words_advise(
        words,
        "keep long-lived and short-lived blocks apart: allocate whatever stays before the load begins");
}

static void advise_bounded(const struct seep_report *report,
                           struct seep_words_verdict *words)
{
    const struct seep_report_site *site = seep_words_site(report);

    if (!report->verdict.filling) {
        advise_remedy(site, words);
        return;
    }
    const char *longer = SEEP_UNITS_DURATION(report->duration_s * 2);
    seep_words_advise(words, "run it until it is full: %s or more", longer);
    if (site != NULL && site->known_bound_bytes == 0) {
        seep_words_advise(words, "give its bound: --known %.*s=SIZE",
                          SEEP_WORDS_ID_COLUMNS, site->id);
    }
    advise_remedy(site, words);
}

/* A denser sample would fill them the sooner. @return are they full? */
static bool advise_size(const struct seep_report *report,
                        struct seep_words_verdict *words)
{
    uint64_t refused = seep_words_counter(report, SEEP_COUNT_SITES_FULL);
    uint64_t cut = seep_words_counter(report, SEEP_COUNT_STACKS_FULL) +
                   seep_words_counter(report, SEEP_COUNT_STACKS_SHORT);

    if (refused > 0) {
        seep_words_advise(
            words,
            "record it with --size %lluMiB: the table of call sites was full, %s events belong to none",
            seep_words_larger_mib(report), SEEP_UNITS_COUNT((double)refused));
    } else if (cut > 0) {
        seep_words_advise(
            words,
            "record it with --size %lluMiB: the table of call sites was filling up, and %s of them lost frames",
            seep_words_larger_mib(report), SEEP_UNITS_COUNT((double)cut));
    }
    return refused > 0 || cut > 0;
}

/* How much would be enough: time, work, then samples. */
static void advise_longer(const struct seep_report *report, bool full,
                          struct seep_words_verdict *words)
{
    double more_s = report->verdict.need_s > 0 ? report->verdict.need_s
                                               : report->duration_s * 2;

    if (report->units > 0 && report->units < LEAST_UNITS) {
        seep_words_advise(words, "let it do at least 100 units of work");
    } else {
        seep_words_advise(
            words, "run it for another %s under steady load, past its warm-up",
            SEEP_UNITS_DURATION(more_s));
    }
    if (!full && report->sample_bytes > 1) {
        seep_words_advise(
            words,
            "use a smaller --sample, or --exact: sampled every %s, a leak shows only after it has lost some %s",
            SEEP_UNITS_BYTES((double)report->sample_bytes),
            SEEP_UNITS_BYTES((double)report->sample_bytes * 12));
    }
}

static void advise_insufficient(const struct seep_report *report,
                                struct seep_words_verdict *words)
{
    bool full;

    if (seep_words_counter(report, SEEP_COUNT_ROOM_REFUSED) > 0 &&
        seep_words_lost_events(report) > 0) {
        seep_words_advise(
            words,
            "free space on its disk, or choose another folder with -o: the recording could not grow (SEEP_FLOOR)");
        return; /* however long it runs, it will not */
    }
    full = advise_size(report, words);
    if (report->site_count == 0) {
        seep_words_advise(
            words,
            "nothing was sampled: run it longer, or with `seep run --exact`");
        return;
    }
    if (report->duration_s < LEAST_S) {
        seep_words_advise(
            words,
            "run it under steady load for at least 30 s, better five times as long as the longest request, batch or session");
        return; /* how it is sampled matters only then */
    }
    advise_longer(report, full, words);
    advise_remedy(seep_words_site(report), words);
}

void seep_words_add_advice(const struct seep_report *report,
                           const struct seep_pattern *pattern,
                           struct seep_words_verdict *words)
{
    static void (*const advisers[])(const struct seep_report *,
                                    struct seep_words_verdict *) = {
        [SEEP_VERDICT_LEAK] = advise_leak,
        [SEEP_VERDICT_SUSPECT] = advise_suspect,
        [SEEP_VERDICT_UNEXPLAINED] = advise_unexplained,
        [SEEP_VERDICT_FRAGMENTATION] = advise_fragmentation,
        [SEEP_VERDICT_RETENTION] = advise_retention,
        [SEEP_VERDICT_BOUNDED] = advise_bounded,
        [SEEP_VERDICT_INSUFFICIENT] = advise_insufficient,
        [SEEP_VERDICT_STEADY] = NULL,
    };
    enum seep_verdict_class class = report->verdict.class;

    if (report->inert != SEEP_INERT_NONE) {
        seep_words_advise(
            words,
            "record it without that, or record only its other processes");
        return;
    }
    /* of another allocator than glibc's the catalogue knows more */
    bool told = class == SEEP_VERDICT_RETENTION && pattern != NULL &&
                !seep_words_is_glibc(report);
    advise_threads(report, words);
    seep_words_add_segment_advice(report, words);
    if (class < SEEP_VERDICT_COUNT && advisers[class] != NULL && !told) {
        advisers[class](report, words);
    }
    if (class != SEEP_VERDICT_INSUFFICIENT) {
        bool full = advise_size(report, words);

        if (report->verdict.open_reason != NULL) {
            advise_longer(report, full, words);
        }
    }
    if (seep_words_grows_beside(report)) {
        seep_words_advise(
            words,
            "see what grows in its cgroup: memory.stat there (shmem, sock, kernel), du -sh /dev/shm, and its other processes");
    }
    if (seep_words_copied(report) > 0) {
        seep_words_advise(
            words, "%s",
            report->python_version != 0
                ? "fewer copies: gc.freeze() before the fork, arrays (numpy, Arrow) in place of many objects, or workers that are not forks (spawn)"
                : "fewer copies: keep what the workers only read on other pages than what they write");
    }
    seep_words_add_device_advice(report, words);
    if (pattern != NULL && class != SEEP_VERDICT_STEADY) {
        seep_words_advise(words, "%s", pattern->remedy);
    }
}
