/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What was seen. Invariant: of a site that was seen to give old blocks back it
 * is never said that it may be a cache which fills.
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
 * What a process with GPUs is told besides. Invariant: each advice says what
 * was seen that it comes from; of a process without a driver nothing is said.
 */

#define OUTSIDE_LEAST_BYTES (32 << 20)
#define OUTSIDE_SHARE 0.02 /* of what is used of the device */
#define CACHE_SHARE 0.1    /* of the device, from which on a pool is told */

const struct seep_report_device *
seep_words_fragmented(const struct seep_report *report)
{
    if (report->verdict.class != SEEP_VERDICT_FRAGMENTATION) {
        return NULL;
    }
    for (size_t i = 0; i < report->device_count; i++) {
        const struct seep_report_device *device = &report->devices[i];

        if ((int)device->ordinal == report->verdict.device &&
            device->cache_fragments) {
            return device;
        }
    }
    return NULL;
}

static bool has_space(const struct seep_report *report, enum seep_space space)
{
    for (size_t i = 0; i < report->space_count; i++) {
        if (report->spaces[i].space == space) {
            return true;
        }
    }
    return false;
}

/* By a direct link there are no look-ups, but calls. */
static bool is_bypassed(const struct seep_report *report)
{
    bool called = report->device_count > 0;
    bool loaded = false;

    for (size_t i = 0; i < report->space_count; i++) {
        called = called || (report->spaces[i].space >= SEEP_SPACE_PINNED &&
                            report->spaces[i].space != SEEP_SPACE_FILE &&
                            report->spaces[i].allocated_bytes > 0);
    }
    for (size_t i = 0; i < report->module_count; i++) {
        loaded = loaded || strncmp(seep_text_base_name(report->modules[i]),
                                   "libcuda.so", strlen("libcuda.so")) == 0;
    }
    return loaded && !called &&
           seep_words_counter(report, SEEP_COUNT_CUDA_LOOKUPS) == 0;
}

/* Modules, contexts, or a neighbour: none of them is a call of the process. */
static bool grows_outside(const struct seep_report *report,
                          const struct seep_report_device *device)
{
    const struct seep_report_extent *outside = &device->unexplained;
    double least = (outside->slope_bytes_per_s - outside->slope_error) *
                   report->duration_s;

    return outside->valid && least >= OUTSIDE_LEAST_BYTES &&
           least >= OUTSIDE_SHARE * device->used.last_bytes;
}

static void tell_outside(const struct seep_report *report,
                         const struct seep_report_device *device,
                         struct seep_words_verdict *words)
{
    if (grows_outside(report, device) &&
        !seep_words_tells_others(report, (int)device->ordinal)) {
        const char *rate =
            SEEP_UNITS_RATE(device->unexplained.slope_bytes_per_s);
        seep_words_reason(
            words,
            "memory of GPU %u that was not allocated by recorded calls of this process grows by %s: other processes, or contexts and code",
            device->ordinal, rate + (*rate == '+'));
    }
}

bool seep_words_tensors_leak(const struct seep_report *report, int ordinal)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->space == SEEP_SPACE_TENSOR && site->device == ordinal &&
            site->class == SEEP_CLASS_LEAK && site->suppressed_by == NULL) {
            return true;
        }
    }
    return false;
}

/* What segments of PyTorch's cache grow by, and the tensors in them. */
struct cache_growth {
    double segments;
    double tensors;
};

static struct cache_growth growth_of_cache(const struct seep_report *report,
                                           int ordinal)
{
    struct cache_growth growth = {0, 0};

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->device != ordinal || !site->has_growth) {
            continue;
        }
        growth.segments +=
            site->backs_tensors ? site->growth_bytes_per_s.low : 0;
        growth.tensors += site->space == SEEP_SPACE_TENSOR
                              ? site->growth_bytes_per_s.high
                              : 0;
    }
    return growth;
}

/* Tensors leak, and their cache grows by so many times more. */
#define CACHE_TIMES 2.0

static void tell_idle_cache(const struct seep_report *report,
                            const struct seep_report_device *device,
                            struct seep_words_verdict *words)
{
    struct cache_growth growth = growth_of_cache(report, (int)device->ordinal);

    if (growth.tensors > 0 && growth.segments >= CACHE_TIMES * growth.tensors) {
        const char *rate = SEEP_UNITS_RATE(growth.segments);

        seep_words_reason(
            words,
            "PyTorch's cache on GPU %u grows by at least %s, more than the tensors in it: the rest is idle there, or kept for CUDA graphs, each of which has a pool of its own",
            device->ordinal, rate + (*rate == '+'));
    }
}

static void tell_cache(const struct seep_report *report,
                       const struct seep_report_device *device,
                       struct seep_words_verdict *words)
{
    if (seep_words_tensors_leak(report, (int)device->ordinal)) {
        tell_idle_cache(report, device, words);
    } else if (device->cache_fragments &&
               device != seep_words_fragmented(report)) {
        const char *rate =
            SEEP_UNITS_RATE(device->tensor_reserved.slope_bytes_per_s);
        seep_words_reason(
            words,
            "PyTorch's cache on GPU %u grows by %s, but the tensors in it do not: it is fragmenting",
            device->ordinal, rate + (*rate == '+'));
    }
}

static bool is_segment(const struct seep_report_site *site)
{
    for (size_t i = 0; i < site->frame_count; i++) {
        const struct seep_report_frame *frame = site->frames[i];

        if (!frame->python &&
            (strncmp(seep_text_base_name(frame->module), "libc10_cuda.so",
                     strlen("libc10_cuda.so")) == 0 ||
             strstr(frame->function, "CUDACachingAllocator") != NULL)) {
            return true;
        }
    }
    return false;
}

/* A segment is charged to whoever missed the cache, not to who holds it. */
static bool is_without_tensors(const struct seep_report *report)
{
    const struct seep_report_site *site = seep_words_site(report);

    return site != NULL && site->space == SEEP_SPACE_DEVICE &&
           is_segment(site) && !has_space(report, SEEP_SPACE_TENSOR);
}

/* What a process with GPUs is told besides; of one without, nothing. */
static void add_device_reasons(const struct seep_report *report,
                               struct seep_words_verdict *words)
{
    if (is_without_tensors(report)) {
        seep_words_reason(
            words,
            "it is memory of PyTorch's cache: the line missed the cache, and may not be the one that keeps its contents");
    }
    for (size_t i = 0; i < report->device_count; i++) {
        tell_outside(report, &report->devices[i], words);
        tell_cache(report, &report->devices[i], words);
    }
    if (is_bypassed(report)) {
        seep_words_reason(
            words,
            "the CUDA driver is loaded, but none of its functions was looked up where seep could see it: GPU memory is not in this report");
    }
}

/* Where segments can grow the cache has reserved address space for them. */
static void advise_cache(const struct seep_report *report,
                         const struct seep_report_device *device,
                         struct seep_words_verdict *words)
{
    double idle_bytes = device->tensor_reserved.last_bytes -
                        device->tensor_allocated.last_bytes;

    const char *idle = SEEP_UNITS_BYTES(idle_bytes);
    if (!has_space(report, SEEP_SPACE_RESERVED)) {
        seep_words_advise(
            words,
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in its environment (PyTorch 2.1 or newer): the %s idle on GPU %u are pieces of fixed-size segments, which could grow instead",
            idle, device->ordinal);
    }
    seep_words_advise(
        words,
        "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128: blocks larger than that are not split, so small tensors cannot hold them; or use few, fixed request shapes, so that freed memory fits the next request");
}

void seep_words_add_segment_advice(const struct seep_report *report,
                                   struct seep_words_verdict *words)
{
    if (is_without_tensors(report)) {
        seep_words_advise(
            words,
            "seep run --cuda tensors -- COMMAND, or SEEP_CUDA=tensors: shows PyTorch's tensors by the lines that keep them");
    }
}

static void advise_pool(const struct seep_report_device *device,
                        struct seep_words_verdict *words)
{
    const struct seep_report_extent *reserved = &device->pool_reserved;
    double idle_bytes = reserved->last_bytes - device->pool_used.last_bytes;

    if (reserved->valid && idle_bytes > 0 &&
        idle_bytes >= CACHE_SHARE * (double)device->total_bytes) {
        seep_words_advise(
            words,
            "the memory pool of GPU %u keeps %s unused: a lower cudaMemPoolAttrReleaseThreshold, or cudaMemPoolTrimTo when it is idle, gives it back",
            device->ordinal, SEEP_UNITS_BYTES(idle_bytes));
    }
}

void seep_words_add_device_advice(const struct seep_report *report,
                                  struct seep_words_verdict *words)
{
    for (size_t i = 0; i < report->device_count; i++) {
        if (report->devices[i].cache_fragments) {
            advise_cache(report, &report->devices[i], words);
        }
        advise_pool(&report->devices[i], words);
    }
    if (is_bypassed(report)) {
        seep_words_advise(
            words,
            "the program reaches the driver in a way that seep does not see (dlmopen, RTLD_DEEPBIND): turn that off to record its memory");
    }
}

/*
 * What was seen of call sites and of the process.
 */

#define ALL_OF_IT 0.995 /* the rest would be printed as 0 % */

/* "16 KiB a unit of work", or of time */
static void put_kept_rate(FILE *file, const struct seep_report_site *site)
{
    if (site->has_growth_per_unit) {
        fprintf(file, "%s per unit of work",
                SEEP_UNITS_BYTES(site->growth_bytes_per_unit.estimate));
    } else {
        fprintf(file, "%s per second",
                SEEP_UNITS_BYTES(site->growth_bytes_per_s.estimate));
    }
}

/* " throughout the run", or since when and over how much of it */
static void put_kept_time(FILE *file, const struct seep_report *report,
                          const struct seep_report_kept *kept)
{
    if (kept->share >= ALL_OF_IT) {
        fputs(report->begin.from_s > 0 ? " since the work began"
                                       : " throughout the run",
              file);
        return;
    }
    fprintf(file, " from %s into the run to its end, %s of its %s",
            SEEP_UNITS_DURATION(kept->since_s), SEEP_UNITS_SHARE(kept->share),
            report->units > 0          ? "work"
            : report->begin.from_s > 0 ? "length since the work began"
                                       : "length");
}

char *seep_words_kept(const struct seep_report *report,
                      const struct seep_report_site *site)
{
    const struct seep_report_kept *kept = &site->kept;
    struct seep_words_text words;
    FILE *file;

    if (!site->has_growth || kept->gave_back_old || kept->share <= 0) {
        return NULL;
    }
    file = seep_words_open(&words);
    if (file == NULL) {
        return NULL;
    }
    fputs(site->role == SEEP_ROLE_HEAD ? "the first line kept " : "it kept ",
          file);
    put_kept_rate(file, site);
    put_kept_time(file, report, kept);
    if (kept->oldest_death_s > 0) {
        fprintf(file, "; no block older than %s was freed",
                SEEP_UNITS_DURATION(kept->oldest_death_s));
    } else {
        fputs("; none of it was freed", file);
    }
    return seep_words_close(&words);
}

const struct seep_report_site *
seep_words_cache(const struct seep_report *report)
{
    const struct seep_report_site *site = seep_words_site(report);
    bool fills =
        site != NULL && site->has_growth && site->known_bound_bytes == 0 &&
        !site->kept.gave_back_old &&
        (site->class == SEEP_CLASS_LEAK || site->class == SEEP_CLASS_SUSPECT ||
         site->class == SEEP_CLASS_WARMING);

    return fills ? site : NULL;
}

/* Not of what may have stopped since: an LRU that is full gives back, too. */
static bool grows_past_eviction(const struct seep_report_site *site)
{
    return site->kept.gave_back_old && site->class == SEEP_CLASS_LEAK &&
           site->has_growth && site->growth_bytes_per_s.low > 0 &&
           site->growth_now_bytes_per_s > 0 && site->stopped_since_s <= 0;
}

/* "its next step, to 256 MiB, is due in some 40 s" */
static void add_step_reason(const struct seep_report *report,
                            struct seep_words_verdict *words)
{
    const struct seep_report_site *site = seep_words_site(report);
    double left_s;

    if (site == NULL || !site->in_steps || !(site->step_next_bytes > 0) ||
        !(site->step_next_s > 0)) {
        return;
    }
    left_s = site->step_next_s - report->duration_s;
    const char *to = SEEP_UNITS_BYTES(site->step_next_bytes);
    if (left_s > 1) {
        seep_words_reason(words, "its next step, to %s, is due in about %s", to,
                          SEEP_UNITS_DURATION(left_s));
    } else {
        seep_words_reason(words, "its next step, to %s, is due now", to);
    }
}

/* What the sentence does not say of the whole. */
static void add_process_reasons(const struct seep_report *report,
                                struct seep_words_verdict *words)
{
    const struct seep_report_extent *private = &report->memory.anonymous;

    if (report->verdict.class == SEEP_VERDICT_LEAK &&
        report->verdict.device < 0 && report->verdict.private_grows &&
        private->slope_bytes_per_s - private->slope_error >
            report->verdict.growth_bytes_per_s.high) {
        seep_words_reason(words,
                          "private memory grows by more than that, %s in all",
                          SEEP_UNITS_RATE(private->slope_bytes_per_s));
    }
}

/* What it costs is not what is mapped: that need not be read, and goes when
 * the kernel wants it. */
static void add_file_reason(const struct seep_report *report,
                            struct seep_words_verdict *words)
{
    const struct seep_report_memory *memory = &report->memory;

    if (!report->verdict.files ||
        report->verdict.class == SEEP_VERDICT_UNEXPLAINED) {
        return; /* of the latter no call site is known */
    }
    if (!memory->shared.valid || !memory->files.valid) {
        seep_words_reason(
            words,
            "it is address space mapped from files and never unmapped; the parts that were read are page cache");
        return;
    }
    const char *shared = SEEP_UNITS_BYTES(
        fmin(memory->shared.last_bytes, memory->files.last_bytes));
    seep_words_reason(
        words,
        "it is address space mapped from files and never unmapped: of %s, at most %s is resident so far, as page cache that the kernel can take back",
        SEEP_UNITS_BYTES(memory->files.last_bytes), shared);
}

#define RESERVED_LEAST_BYTES (16.0 * 1024 * 1024)

/* What is set aside costs no memory; who looks at the address space wonders. */
static void add_reserved_reason(const struct seep_report *report,
                                struct seep_words_verdict *words)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];
        char *where;

        if (site->class != SEEP_CLASS_MINOR || !(site->touched_bytes >= 0) ||
            (double)site->live_bytes - site->touched_bytes <
                RESERVED_LEAST_BYTES) {
            continue;
        }
        where = seep_words_where(report, site);
        if (where != NULL) {
            seep_words_reason(
                words,
                "the address space that %s %s grows, to %s, and fills no memory: %s of it are in use",
                where,
                site->space == SEEP_SPACE_MAPPED ? "reserves" : "allocates",
                SEEP_UNITS_BYTES((double)site->live_bytes),
                SEEP_UNITS_BYTES(site->touched_bytes));
        }
        free(where);
        return;
    }
}

#define WRITTEN_SHARE 0.5

/* What a row holds is more than what it takes: its growth is of the latter. */
static void add_written_reason(const struct seep_report_site *site,
                               struct seep_words_verdict *words)
{
    if (site == NULL || !seep_class_may_leak(site->class) ||
        !(site->touched_bytes >= 0) ||
        site->touched_bytes > WRITTEN_SHARE * (double)site->live_bytes ||
        (double)site->live_bytes - site->touched_bytes < RESERVED_LEAST_BYTES) {
        return;
    }
    const char *live = SEEP_UNITS_BYTES((double)site->live_bytes);
    seep_words_reason(
        words,
        "of the %s that it holds only %s were ever written to: those take memory, and are what grows",
        live, SEEP_UNITS_BYTES(site->touched_bytes));
}

/* Whoever counts his blocks comes to less. */
static void add_requested_reason(const struct seep_report_site *site,
                                 struct seep_words_verdict *words)
{
    if (site == NULL || !seep_class_may_leak(site->class) ||
        !seep_words_is_rounded(site)) {
        return;
    }
    const char *live = SEEP_UNITS_BYTES((double)site->live_bytes);
    seep_words_reason(
        words,
        "its blocks take %s, and %s of that were asked for: the rest is what the allocator adds to each of them",
        live, SEEP_UNITS_BYTES((double)site->requested.live_bytes));
}

#define ELSEWHERE_SHARE 0.25

/* The growth is real, and whoever looks at RSS does not see it. */
static void add_elsewhere_reason(const struct seep_report_site *site,
                                 struct seep_words_verdict *words)
{
    if (site == NULL || !seep_class_may_leak(site->class) ||
        site->elsewhere_bytes < RESERVED_LEAST_BYTES ||
        site->elsewhere_bytes < ELSEWHERE_SHARE * (double)site->live_bytes) {
        return;
    }
    const char *live = SEEP_UNITS_BYTES((double)site->live_bytes);
    seep_words_reason(
        words,
        "of the %s that it holds %s are shared memory that this process has not touched: that is in none of its RSS, but in the machine's memory, and in the cgroup's of who wrote it",
        live, SEEP_UNITS_BYTES(site->elsewhere_bytes));
}

/* The block that has most to be filled, and some that is. */
static const struct seep_report_site *
find_filling(const struct seep_report *report)
{
    const struct seep_report_site *found = NULL;
    double most = RESERVED_LEAST_BYTES;

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];
        double left = (double)site->live_bytes - site->touched_bytes;

        if (site->touched_bytes > 0 && left > most) {
            found = site;
            most = left;
        }
    }
    return found;
}

/* Nothing is allocated, and what was allocated before shrinks by as much as
 * was not touched of it. @return is it so? */
static bool add_filling_reason(const struct seep_report *report,
                               struct seep_words_verdict *words)
{
    const struct seep_report_site *site = find_filling(report);
    bool is_told;
    char *where;

    if (report->verdict.class != SEEP_VERDICT_UNEXPLAINED || site == NULL ||
        seep_words_site(report) != NULL || !seep_words_writes_late(report)) {
        return false;
    }
    where = seep_words_where(report, site);
    if (where != NULL) {
        const char *live = SEEP_UNITS_BYTES((double)site->live_bytes);

        seep_words_reason(
            words,
            "what was allocated before is being written to, and %s has most that was not: %s of its %s are in use",
            where, SEEP_UNITS_BYTES(site->touched_bytes), live);
    }
    is_told = where != NULL;
    free(where);
    return is_told;
}

/* The answer to where the memory is, where what grows is little of it. */
static void add_stopped_reason(const struct seep_report *report,
                               struct seep_words_verdict *words)
{
    const struct seep_report_site *site =
        seep_words_site_of(report, report->verdict.stopped_id);
    char *where = site == NULL ? NULL : seep_words_where(report, site);

    if (where != NULL) {
        seep_words_reason(
            words, "of live memory %s (%s) rose most, to %s, and has stopped",
            where, seep_words_space(site->space),
            SEEP_UNITS_BYTES((double)site->live_bytes));
        if (site->pattern != NULL) {
            seep_words_reason(words, "known: %s. %s", site->pattern->name,
                              site->pattern->cause);
        }
    }
    free(where);
}

/* Whoever fills it, the process ends with the cgroup. */
static void add_beside_reason(const struct seep_report *report,
                              struct seep_words_verdict *words)
{
    const char *each_min =
        SEEP_UNITS_BYTES(report->verdict.beside_bytes_per_s * 60);

    if (!seep_words_grows_beside(report)) {
        return;
    }
    if (report->verdict.beside_is_files) {
        seep_words_reason(
            words,
            "most of the %s/min that its cgroup grows by beside it is files in a tmpfs (/dev/shm, a volume in memory) or shared memory",
            each_min);
    } else {
        seep_words_reason(
            words,
            "most of the %s/min that its cgroup grows by beside it is its other processes, or what the kernel has for them (sockets, pipes)",
            each_min);
    }
}

#define COPIED_LEAST_BYTES (32 * 1024.0 * 1024.0)

/* Its own resident memory has those pages before and after. */
static void add_copied_reason(const struct seep_report *report,
                              struct seep_words_verdict *words)
{
    double copied = seep_words_copied(report);

    if (copied > 0) {
        const char *left = SEEP_UNITS_BYTES(report->memory.forked.last_bytes);

        seep_words_reason(
            words,
            "the cgroup and the machine grow by the copies, without an allocation, at most until all is copied: %s are not yet",
            left);
    }
    if (report->is_fork && !report->memory.has_samples &&
        report->memory.unexplained.valid &&
        report->memory.unexplained.last_bytes >= COPIED_LEAST_BYTES) {
        const char *before =
            SEEP_UNITS_BYTES(report->memory.unexplained.last_bytes);

        seep_words_reason(
            words,
            "how much of the %s from before the fork is copied, and makes the machine's memory grow, is not known: `seep run`, which looks from outside, tells",
            before);
    }
    if (copied > 0 && report->python_version != 0) {
        seep_words_reason(
            words,
            "in Python each use of an object writes its reference count, so that reading copies as well");
    }
}

static const char *const starters[] = {"pthread_create", "Thread.start",
                                       "start_new_thread"};

static bool is_starter(const struct seep_report_frame *frame)
{
    for (size_t i = 0; i < sizeof(starters) / sizeof(*starters); i++) {
        if (strstr(frame->function, starters[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool starts_threads(const struct seep_report_site *site)
{
    for (size_t i = 0; i < site->frame_count; i++) {
        if (is_starter(site->frames[i])) {
            return true;
        }
    }
    return false;
}

/* A server of Python's own library is no frame of the user's; that it calls
 * Thread.start() says nothing. */
static char *starter_of(const struct seep_report *report,
                        const struct seep_report_site *site)
{
    size_t at = site->where_frame;

    while (at + 1 < site->frame_count && is_starter(site->frames[at])) {
        at++;
    }
    return at == site->where_frame
               ? seep_words_where(report, site)
               : seep_words_frame_with_file(site->frames[at]);
}

/* Of what rows hold, the most that is allocated where threads are started. */
static const struct seep_report_site *
find_starter(const struct seep_report *report)
{
    const struct seep_report_site *found = NULL;

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->live_bytes > 0 && starts_threads(site) &&
            (found == NULL || site->live_bytes > found->live_bytes)) {
            found = site;
        }
    }
    return found;
}

/* Its stack, which no hook sees, is not all that a thread keeps. */
static void add_threads_reason(const struct seep_report *report,
                               struct seep_words_verdict *words)
{
    const struct seep_report_extent *threads = &report->memory.threads;
    const struct seep_report_site *site = find_starter(report);
    char *where = NULL;

    if (!seep_words_threads_grow(report)) {
        return;
    }
    where = site == NULL ? NULL : starter_of(report, site);
    seep_words_reason(
        words,
        "%s threads, %s at first, and %s more a minute: each that does not end keeps its stack and what it has%s%s",
        SEEP_UNITS_COUNT(threads->last_bytes),
        SEEP_UNITS_COUNT(threads->first_bytes),
        SEEP_UNITS_COUNT(threads->slope_bytes_per_s * 60),
        where == NULL ? "" : "; they are started at ",
        where == NULL ? "" : where);
    free(where);
}

static void add_pins_reasons(const struct seep_report *report,
                             struct seep_words_verdict *words)
{
    char *pins = seep_words_pins(report);
    char *held = seep_words_pins_held(report);

    if (pins != NULL) {
        seep_words_reason(words, "%s", pins);
    }
    if (held != NULL) {
        seep_words_reason(words, "%s", held);
    }
    free(pins);
    free(held);
}

void seep_words_add_reasons(const struct seep_report *report,
                            const struct seep_pattern *pattern,
                            struct seep_words_verdict *words)
{
    const struct seep_report_site *site = seep_words_site(report);
    const struct seep_report_site *cache = seep_words_cache(report);
    char *kept = cache == NULL ? NULL : seep_words_kept(report, cache);
    char *common = seep_words_common_news(report);

    if (common != NULL) {
        seep_words_reason(words, "%s", common);
        free(common);
    }
    /* It is the better reason: the other one says that nothing is known. */
    if (!add_filling_reason(report, words) && report->verdict.reason != NULL &&
        *report->verdict.reason != '\0') {
        seep_words_reason(words, "%s", report->verdict.reason);
    }
    if (report->verdict.open_reason != NULL) {
        seep_words_reason(words, "%s", report->verdict.open_reason);
        seep_words_add_python_reason(
            report, seep_words_site_of(report, report->verdict.open_id), words);
    }
    add_pins_reasons(report, words);
    add_threads_reason(report, words);
    add_copied_reason(report, words);
    if (!(seep_words_copied(report) > 0)) {
        add_beside_reason(report, words);
    }
    add_file_reason(report, words);
    add_reserved_reason(report, words);
    add_written_reason(site, words);
    add_elsewhere_reason(site, words);
    add_requested_reason(site, words);
    if (kept != NULL) {
        seep_words_reason(words, "%s", kept);
        free(kept);
    }
    if (cache != NULL && !seep_words_held_by_nothing(cache->held)) {
        seep_words_reason(
            words, "a cache that has not reached its bound yet looks the same");
    } else if (site != NULL && grows_past_eviction(site)) {
        seep_words_reason(
            words, "it was seen freeing old blocks, but grows all the same");
    }
    if (report->is_closed) {
        seep_words_reason(
            words,
            "it was recorded until a limit of its own (ulimit -v, -d) had no room for it and a recording: what came later is not in here");
    }
    add_step_reason(report, words);
    add_process_reasons(report, words);
    seep_words_add_python_reason(report, site, words);
    add_device_reasons(report, words);
    if (site != NULL && site->pattern != NULL) {
        seep_words_reason(words, "known: %s. %s", site->pattern->name,
                          site->pattern->cause);
    }
    add_stopped_reason(report, words);
    if (pattern != NULL && (site == NULL || site->pattern != pattern)) {
        seep_words_reason(words, "known: %s. %s", pattern->name,
                          pattern->cause);
    }
}
