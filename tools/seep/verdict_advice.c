/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What to do next. Invariant: an experiment is advised,
 * never made; what is advised can be typed or is a sentence.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/catalogue.h"
#include "units.h"
#include "verdict_words.h"
#include "words.h"

#define ID_COLUMNS 8
#define LEAST_S 30.0 /* growth is not judged on less */
#define LEAST_UNITS 100
#define PID_BYTES 16

/* The id of another grouping would not be found. */
static char *by_option(const struct seep_report *report)
{
    char *text;

    if (report->by == SEEP_BY_LINE) {
        return strdup("");
    }
    return asprintf(&text, " --by %s", seep_grouping_name(report->by)) < 0
               ? NULL
               : text;
}

static void advise_site(const struct seep_report *report,
                        const struct seep_report_site *site,
                        struct seep_verdict_words *words)
{
    char *path = seep_words_quote(report->path);
    char *by = by_option(report);
    char *holder = seep_verdict_words_holder(report, site);

    seep_verdict_words_add_python_advice(report, site, words);
    seep_verdict_words_advise(
        words, "look who holds %s: seep report --stack --site %.*s%s %s",
        holder == NULL ? "it" : holder, ID_COLUMNS, site->id,
        by == NULL ? "" : by, path == NULL ? "RECORDING" : path);
    free(holder);
    free(by);
    free(path);
    if (site->pattern != NULL) {
        seep_verdict_words_advise(words, "%s", site->pattern->remedy);
    }
}

/* What a rule could name; only of Python is it sure to be a function's. All
 * that a program imports is in some <module>. */
static const char *function_of(const struct seep_report_site *site)
{
    const struct seep_report_frame *frame;

    if (site->where_frame >= site->frame_count) {
        return "FUNCTION";
    }
    frame = &site->frames[site->where_frame];
    return frame->python && *frame->function != '\0' && *frame->function != '<'
               ? frame->function
               : "FUNCTION";
}

static void advise_leak(const struct seep_report *report,
                        struct seep_verdict_words *words)
{
    const struct seep_report_site *site = seep_verdict_words_site(report);
    const struct seep_report_site *cache = seep_verdict_words_cache(report);

    if (site != NULL) {
        advise_site(report, site, words);
    }
    if (cache != NULL) {
        seep_verdict_words_advise(
            words,
            "if it is a cache, run it until it is full, or name its "
            "bound with --known %.*s=SIZE; if it may grow, suppress "
            "it: --suppressions FILE, a line leak:%s",
            ID_COLUMNS, cache->id, function_of(cache));
    }
}

static void advise_suspect(const struct seep_report *report,
                           struct seep_verdict_words *words)
{
    char longer[SEEP_UNITS_TEXT_BYTES];

    seep_units_duration(report->duration_s * 2, longer);
    seep_verdict_words_advise(
        words, "run it longer, under steady load: %s or more", longer);
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

static void advise_unexplained(const struct seep_report *report,
                               struct seep_verdict_words *words)
{
    const struct seep_report_memory *memory = &report->memory;
    char pid[PID_BYTES];
    bool heap = false;

    fill_pid(report, pid);
    seep_verdict_words_add_python_advice(report, NULL, words);
    for (size_t i = 0; i < memory->mapping_count; i++) {
        if (!memory->mappings[i].tracked) {
            heap = strcmp(memory->mappings[i].name, "[heap]") == 0;
            break;
        }
    }
    seep_verdict_words_advise(
        words,
        "while it runs, as root: bpftrace -e 'tracepoint:syscalls:"
        "sys_enter_%s /pid == %s/ { @[ustack] = count(); }'",
        heap ? "brk" : "mmap", pid);
    if (!memory->looked) {
        seep_verdict_words_advise(
            words, "start it with `seep run`, which looks at its "
                   "mappings from outside and names those that grow");
    }
    if (!memory->allocator_told) {
        seep_verdict_words_advise(
            words, "seep run --allocator jemalloc -- COMMAND: jemalloc tells "
                   "what it holds itself, and the rest becomes clear");
    }
}

static bool is_glibc(const struct seep_report *report)
{
    return report->memory.allocator == SEEP_ALLOCATOR_GLIBC ||
           (report->memory.allocator == SEEP_ALLOCATOR_UNKNOWN &&
            (report->allocator == NULL || *report->allocator == '\0'));
}

static void advise_retention(const struct seep_report *report,
                             struct seep_verdict_words *words)
{
    char pid[PID_BYTES];

    if (is_glibc(report)) {
        fill_pid(report, pid);
        seep_verdict_words_advise(
            words,
            "try it on a copy, never where it matters: gdb -p %s "
            "-batch -ex 'call (int)malloc_trim(0)' should give it back",
            pid);
        seep_verdict_words_advise(
            words, "MALLOC_ARENA_MAX=2 or MALLOC_TRIM_THRESHOLD_=131072 "
                   "in its environment keeps glibc from holding it");
    } else if (report->memory.allocator == SEEP_ALLOCATOR_JEMALLOC) {
        seep_verdict_words_advise(
            words, "MALLOC_CONF=background_thread:true,"
                   "dirty_decay_ms:1000,muzzy_decay_ms:0 gives it back "
                   "sooner");
    } else {
        seep_verdict_words_advise(
            words, "look how %s is told to give memory back sooner",
            seep_verdict_words_allocator(report->memory.allocator));
    }
    if (report->memory.allocator != SEEP_ALLOCATOR_JEMALLOC) {
        seep_verdict_words_advise(
            words, "seep run --allocator jemalloc -- COMMAND, and "
                   "compare its RSS");
    }
}

static void advise_fragmentation(const struct seep_report *report,
                                 struct seep_verdict_words *words)
{
    if (seep_verdict_words_fragmented(report) != NULL) {
        return; /* the host's allocator has no part in it */
    }
    if (report->memory.allocator != SEEP_ALLOCATOR_JEMALLOC) {
        seep_verdict_words_advise(
            words, "seep run --allocator jemalloc -- COMMAND, and "
                   "compare its RSS");
    }
    if (is_glibc(report)) {
        seep_verdict_words_advise(
            words, "MALLOC_ARENA_MAX=2 in its environment: fewer heaps "
                   "for threads to leave pieces in");
    }
    seep_verdict_words_advise(
        words, "keep blocks that live long and blocks that live short "
               "apart: allocate what stays before the load begins");
}

static void advise_bounded(const struct seep_report *report,
                           struct seep_verdict_words *words)
{
    const struct seep_report_site *site = seep_verdict_words_site(report);
    char longer[SEEP_UNITS_TEXT_BYTES];

    if (!report->verdict.filling) {
        return;
    }
    seep_units_duration(report->duration_s * 2, longer);
    seep_verdict_words_advise(words, "run it until it is full: %s or more",
                              longer);
    if (site != NULL && site->known_bound_bytes == 0) {
        seep_verdict_words_advise(words, "name its bound: --known %.*s=SIZE",
                                  ID_COLUMNS, site->id);
    }
    if (site != NULL && site->pattern != NULL) {
        seep_verdict_words_advise(words, "%s", site->pattern->remedy);
    }
}

/* How much would be enough: time, work, then samples. */
static void advise_insufficient(const struct seep_report *report,
                                struct seep_verdict_words *words)
{
    char mean[SEEP_UNITS_TEXT_BYTES];
    char enough[SEEP_UNITS_TEXT_BYTES];

    if (report->site_count == 0) {
        seep_verdict_words_advise(words,
                                  "nothing was sampled: run it longer, or with "
                                  "`seep run --exact`");
        return;
    }
    if (report->duration_s < LEAST_S) {
        seep_verdict_words_advise(
            words, "run it under steady load for 30 s at the least, "
                   "better five times as long as the longest request, "
                   "batch or session");
        return; /* how it is sampled matters only then */
    } else if (report->units > 0 && report->units < LEAST_UNITS) {
        seep_verdict_words_advise(words,
                                  "let it do 100 units of work at the least");
    } else {
        seep_units_duration(report->duration_s * 3, enough);
        seep_verdict_words_advise(
            words,
            "run it longer, under steady load, past its warm-up: "
            "%s or more",
            enough);
    }
    if (report->sample_bytes > 1) {
        seep_units_bytes((double)report->sample_bytes, mean);
        seep_units_bytes((double)report->sample_bytes * 12, enough);
        seep_verdict_words_advise(
            words,
            "a smaller --sample, or --exact: sampled every %s a leak "
            "shows once it has lost some %s",
            mean, enough);
    }
}

void seep_verdict_words_add_advice(const struct seep_report *report,
                                   const struct seep_pattern *pattern,
                                   struct seep_verdict_words *words)
{
    static void (*const advisers[])(const struct seep_report *,
                                    struct seep_verdict_words *) = {
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
        seep_verdict_words_advise(
            words, "record it without that, or record its parts that "
                   "do not");
        return;
    }
    /* of another allocator than glibc's the catalogue knows more */
    bool told =
        class == SEEP_VERDICT_RETENTION && pattern != NULL && !is_glibc(report);
    seep_verdict_words_add_segment_advice(report, words);
    if (class < SEEP_VERDICT_COUNT && advisers[class] != NULL && !told) {
        advisers[class](report, words);
    }
    seep_verdict_words_add_device_advice(report, words);
    if (pattern != NULL && class != SEEP_VERDICT_STEADY) {
        seep_verdict_words_advise(words, "%s", pattern->remedy);
    }
}
