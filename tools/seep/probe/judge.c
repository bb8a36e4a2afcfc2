/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Vitals against limits. Invariant: what was not measured is
 * neither ready nor not ready; of an interval the lower bound decides.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "options/option.h"
#include "options/variables.h"
#include "probe/probe.h"
#include "reader/recording/open.h"
#include "reader/report/report.h"

/*
 * From paths to vitals, on the side that may hang. Invariant: an
 * entry of the set is whole before it counts.
 */

static struct seep_probe_process *next(struct seep_probe_set *set)
{
    uint32_t count = seep_word_load(&set->count);

    return count < SEEP_PROBE_PROCESSES ? &set->processes[count] : NULL;
}

static void gather_add(struct seep_probe_set *set)
{
    uint32_t count = seep_word_load(&set->count);

    /* Release: the entry is whole; pairs with the acquire in
     * seep_probe_judge(). */
    atomic_store_explicit(&set->count, count + 1, memory_order_release);
}

static void name(struct seep_probe_set *set, const char *path)
{
    /* The last byte stays 0, so that it is a string at any moment. */
    strncpy(set->at, path, sizeof(set->at) - 1);
}

/* @error: 0 where it was read */
static void name_entry(struct seep_probe_process *process, const char *path,
                       int error)
{
    snprintf(process->path, sizeof(process->path), "%s", path);
    process->refusal.error = error;
    if (error != 0 && *process->refusal.reason == '\0') {
        snprintf(process->refusal.reason, sizeof(process->refusal.reason), "%s",
                 strerror(-error));
    }
}

static void read_one(struct seep_probe_set *set, const char *path)
{
    struct seep_probe_process *process = next(set);
    int error;

    name(set, path);
    if (process == NULL) {
        seep_word_fetch_add(&set->left_out, 1);
        return;
    }
    error = seep_vitals_open(path, true, &process->refusal, &process->vitals);
    if (error == 0 && !seep_vitals_is_alive(process->vitals.state)) {
        seep_word_fetch_add(&set->ended, 1);
    } else {
        name_entry(process, path, error);
        gather_add(set);
    }
}

/* A recording that is not there yet, in a folder that is. */
static bool is_awaited(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = strlen(path);
    char folder[SEEP_PROBE_PATH_BYTES] = ".";

    if (slash != NULL) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path + 1), path);
    }
    return length > 5 && strcmp(path + length - 5, ".seep") == 0 &&
           seep_open_is_folder(folder);
}

/* Is it what was named that is wrong, so that no time will help? */
static bool gather_is_misplaced(const char *path, int error)
{
    switch (error) {
    case -EACCES:
    case -EPERM:
    case -ENOTDIR:
    case -ELOOP:
    case -ENAMETOOLONG:
        return true;
    case -ENOENT: /* said of a folder without recordings, too */
        return !seep_open_is_folder(path) && !is_awaited(path);
    default:
        return false;
    }
}

void seep_probe_gather(char *const *paths, size_t count,
                       struct seep_probe_set *set)
{
    for (size_t i = 0; i < count; i++) {
        struct seep_refusal refusal = {0};
        char **found;
        int error;

        if (seep_report_is_beside(paths, count, i)) {
            continue;
        }
        name(set, paths[i]);
        error = seep_report_list(paths[i], &refusal, &found);
        if (error != 0) {
            struct seep_probe_process *process = next(set);

            if (process != NULL) {
                seep_why_refine(paths[i], &refusal);
                process->refusal = refusal;
                process->misplaced = gather_is_misplaced(paths[i], error);
                name_entry(process, paths[i], error);
                gather_add(set);
            }
            continue;
        }
        for (char **path = found; *path != NULL; path++) {
            read_one(set, *path);
        }
        seep_report_list_free(found);
    }
}

static const int codes[] = {
#define CODE(symbol, name, code) [SEEP_PROBE_##symbol] = (code),
    SEEP_PROBE_KINDS(CODE)
#undef CODE
};

static void add(struct seep_probe_answer *answer,
                struct seep_probe_finding finding)
{
    if (answer->finding_count < SEEP_PROBE_FINDINGS) {
        answer->findings[answer->finding_count++] = finding;
    }
}

/* Of which no figure says what it is. */
static void add_reason(struct seep_probe_answer *answer,
                       enum seep_probe_kind kind,
                       enum seep_probe_outcome outcome, int process,
                       const char *reason)
{
    add(answer, (struct seep_probe_finding){
                    .kind = kind,
                    .outcome = outcome,
                    .process = process,
                    .device = -1,
                    .limit = NAN,
                    .value = {NAN, NAN, NAN},
                    .reason = reason,
                });
}

static void add_unknown(struct seep_probe_answer *answer,
                        enum seep_probe_kind kind, int process,
                        const char *reason)
{
    add_reason(answer, kind, SEEP_PROBE_CANNOT_TELL, process, reason);
}

static struct seep_interval exactly(double value)
{
    return (struct seep_interval){value, value, value};
}

static void hold(struct seep_probe_answer *answer, enum seep_probe_kind kind,
                 int process, int device, struct seep_interval value,
                 double limit)
{
    bool is_least = kind == SEEP_PROBE_GPU_FREE || kind == SEEP_PROBE_HOST_FREE;
    bool fails = is_least ? value.estimate < limit : value.low > limit;

    add(answer, (struct seep_probe_finding){
                    .kind = kind,
                    .outcome = fails ? SEEP_PROBE_NOT_READY : SEEP_PROBE_READY,
                    .process = process,
                    .device = device,
                    .value = value,
                    .limit = limit,
                });
}

static bool is_judged(const struct seep_probe_process *process)
{
    return process->refusal.error == 0 && !process->replaced &&
           process->vitals.inert == SEEP_INERT_NONE;
}

static bool has_judged(const struct seep_probe_answer *answer)
{
    for (uint32_t i = 0; i < answer->count; i++) {
        if (is_judged(&answer->set->processes[i])) {
            return true;
        }
    }
    return false;
}

/* Of the GPUs that any process was told of: one that has none is no fault. */
static void judge_gpus(struct seep_probe_answer *answer)
{
    size_t told = 0;

    for (uint32_t i = 0; i < answer->count; i++) {
        const struct seep_probe_process *process = &answer->set->processes[i];

        for (int j = 0; is_judged(process) && j < (int)SEEP_DEVICES_MAX; j++) {
            const struct seep_vitals_device *device =
                &process->vitals.devices[j];

            if (device->reported) {
                told++;
                hold(answer, SEEP_PROBE_GPU_FREE, (int)i, j,
                     exactly((double)device->free_bytes),
                     answer->arguments->gpu_free_bytes);
            }
        }
    }
    if (told == 0) {
        add_unknown(answer, SEEP_PROBE_GPU_FREE, -1,
                    "the driver has reported no GPU yet");
    }
}

static void judge_host(struct seep_probe_answer *answer)
{
    size_t told = 0;

    for (uint32_t i = 0; i < answer->count; i++) {
        const struct seep_probe_process *process = &answer->set->processes[i];

        if (is_judged(process) &&
            process->vitals.room.kind != SEEP_ROOM_UNKNOWN) {
            told++;
            hold(answer, SEEP_PROBE_HOST_FREE, (int)i, -1,
                 exactly((double)process->vitals.room.left_bytes),
                 answer->arguments->host_free_bytes);
        }
    }
    if (told == 0) {
        add_unknown(answer, SEEP_PROBE_HOST_FREE, -1,
                    "recorded on another machine, without a limit");
    }
}

/* Of live blocks, or of private memory, which has what no block shows: what is
 * sure to be the more. */
static struct seep_vitals_growth
host_growth_of(const struct seep_vitals *vitals)
{
    const struct seep_vitals_growth *live = &vitals->host_growth;
    const struct seep_vitals_growth *private = &vitals->private_growth;

    return private->known && (!live->known ||
                              private->bytes_per_s.low > live->bytes_per_s.low)
               ? *private
               : *live;
}

static void judge_growth(struct seep_probe_answer *answer, int index)
{
    const struct seep_vitals *vitals = &answer->set->processes[index].vitals;
    double limit = answer->arguments->growth_bytes_per_s;
    struct seep_vitals_growth host = host_growth_of(vitals);

    if (!host.known) {
        add_unknown(answer, SEEP_PROBE_GROWTH, index, "the run is too short");
        return;
    }
    hold(answer, SEEP_PROBE_GROWTH, index, -1, host.bytes_per_s, limit);
    for (int i = 0; i < (int)SEEP_DEVICES_MAX; i++) {
        const struct seep_vitals_device *device = &vitals->devices[i];

        if (device->growth.known &&
            (device->reported || device->live_bytes > 0)) {
            hold(answer, SEEP_PROBE_GROWTH, index, i,
                 device->growth.bytes_per_s, limit);
        }
    }
}

/* Nothing can be read there, now or later: what was named is not there, or all
 * that was found is another user's, or no recording that this seep reads. */
static bool is_misplaced(const struct seep_probe_answer *answer,
                         const struct seep_probe_process *process)
{
    int error = process->refusal.error;
    uint32_t ended = seep_word_load(&answer->set->ended);

    return process->misplaced ||
           ((error == -EACCES || error == -EPERM || error == -EPROTO) &&
            ended == 0 && !has_judged(answer));
}

static void refuse(struct seep_probe_answer *answer, int index)
{
    const struct seep_probe_process *process = &answer->set->processes[index];
    bool misplaced = is_misplaced(answer, process);

    add_reason(answer, misplaced ? SEEP_PROBE_CONFIGURED : SEEP_PROBE_READ,
               misplaced && !answer->arguments->tolerant
                   ? SEEP_PROBE_NOT_READY
                   : SEEP_PROBE_CANNOT_TELL,
               index, process->refusal.reason);
}

static const char *inert_reason(enum seep_inert_reason reason)
{
    static const char *const reasons[] = {
#define REASON(symbol, value, words) [value] = "records nothing: " words,
        SEEP_INERT_REASONS(REASON)
#undef REASON
    };

    return (unsigned)reason < sizeof(reasons) / sizeof(reasons[0])
               ? reasons[reason]
               : "records nothing";
}

static void judge_process(struct seep_probe_answer *answer, int index)
{
    const struct seep_probe_process *process = &answer->set->processes[index];

    if (process->refusal.error != 0) {
        refuse(answer, index);
        return;
    }
    if (!process->replaced && process->vitals.inert != SEEP_INERT_NONE) {
        add_unknown(answer, SEEP_PROBE_READ, index,
                    inert_reason(process->vitals.inert));
    }
    if (!is_judged(process)) {
        return;
    }
    if (answer->arguments->growth_bytes_per_s >= 0) {
        judge_growth(answer, index);
    }
    if (answer->arguments->age_s >= 0) {
        hold(answer, SEEP_PROBE_AGE, index, -1, exactly(process->vitals.age_s),
             answer->arguments->age_s);
    }
}

/*
 * Is @process one of which nobody can see that it has ended, and whose place
 * another took? Where its pids are not ours a killed one would be
 * stale for ever.
 */
static bool is_replaced(const struct seep_probe_set *set, uint32_t count,
                        const struct seep_probe_process *process)
{
    const struct seep_vitals *old = &process->vitals;
    double now_s = (double)seep_clock_ns(CLOCK_REALTIME) / 1e9;

    if (process->refusal.error != 0 || old->state != SEEP_STATE_UNKNOWN) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct seep_vitals *later = &set->processes[i].vitals;

        if (set->processes[i].refusal.error == 0 &&
            strcmp(later->executable, old->executable) == 0 &&
            (double)later->start_realtime_ns / 1e9 > now_s - old->age_s) {
            return true;
        }
    }
    return false;
}

/* What was read, and what kept others from it. */
static void judge_reading(struct seep_probe_answer *answer)
{
    uint32_t left_out = seep_word_load(&answer->set->left_out);
    uint32_t ended = seep_word_load(&answer->set->ended);
    uint32_t running = 0;

    for (uint32_t i = 0; i < answer->count; i++) {
        running += !answer->set->processes[i].replaced;
        ended += answer->set->processes[i].replaced;
    }
    if (answer->late) {
        add_unknown(answer, SEEP_PROBE_READ, -1, "did not answer");
    } else if (answer->signal != 0) {
        add_unknown(answer, SEEP_PROBE_READ, -1, "ended its reader");
    } else if (left_out > 0) {
        add_unknown(answer, SEEP_PROBE_READ, -1, "too many processes");
    } else if (running == 0) {
        hold(answer, SEEP_PROBE_ENDED, -1, -1, exactly(ended), 0);
    }
}

/* Who says that no configuration is ready has said what --strict is to do. */
static bool is_excused(const struct seep_probe_answer *answer)
{
    for (size_t i = 0; i < answer->finding_count; i++) {
        if (answer->findings[i].outcome == SEEP_PROBE_CANNOT_TELL &&
            answer->findings[i].kind != SEEP_PROBE_CONFIGURED) {
            return false;
        }
    }
    return true;
}

static void conclude(struct seep_probe_answer *answer)
{
    enum seep_probe_kind first = SEEP_PROBE_KIND_COUNT;

    answer->outcome = SEEP_PROBE_READY;
    answer->code = SEEP_EXIT_FINE;
    for (size_t i = 0; i < answer->finding_count; i++) {
        const struct seep_probe_finding *finding = &answer->findings[i];

        if (finding->outcome > answer->outcome) {
            answer->outcome = finding->outcome;
        }
        if (finding->outcome == SEEP_PROBE_NOT_READY && finding->kind < first) {
            first = finding->kind;
            answer->code = codes[first];
        }
    }
    if (answer->outcome == SEEP_PROBE_CANNOT_TELL &&
        answer->arguments->strict && !is_excused(answer)) {
        answer->code = SEEP_EXIT_INSUFFICIENT;
    }
}

void seep_probe_judge(struct seep_probe_answer *answer)
{
    /* Acquire: the entries below it are whole; pairs with the release in
     * gather_add(). */
    answer->count =
        atomic_load_explicit(&answer->set->count, memory_order_acquire);
    answer->finding_count = 0;
    for (uint32_t i = 0; i < answer->count; i++) {
        answer->set->processes[i].replaced =
            is_replaced(answer->set, answer->count, &answer->set->processes[i]);
    }
    judge_reading(answer);
    if (has_judged(answer)) {
        if (answer->arguments->gpu_free_bytes >= 0) {
            judge_gpus(answer);
        }
        if (answer->arguments->host_free_bytes >= 0) {
            judge_host(answer);
        }
    }
    for (uint32_t i = 0; i < answer->count; i++) {
        judge_process(answer, (int)i);
    }
    conclude(answer);
}
