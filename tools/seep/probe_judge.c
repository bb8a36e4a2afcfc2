/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Vitals against limits; see probe.h. Invariant: what was not measured is
 * neither ready nor not ready; of an interval the lower bound decides.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "probe.h"
#include "say.h"

static const struct {
    const char *name;
    int code;
} kinds[] = {
#define KIND(symbol, name, code) [SEEP_PROBE_##symbol] = {(name), (code)},
    SEEP_PROBE_KINDS(KIND)
#undef KIND
};

const char *seep_probe_kind_name(enum seep_probe_kind kind)
{
    return kinds[kind].name;
}

const char *seep_probe_outcome_name(enum seep_probe_outcome outcome)
{
    static const char *const names[] = {
        [SEEP_PROBE_READY] = "ready",
        [SEEP_PROBE_CANNOT_TELL] = "cannot-tell",
        [SEEP_PROBE_NOT_READY] = "not-ready",
    };

    return names[outcome];
}

static void add(struct seep_probe_answer *answer,
                struct seep_probe_finding finding)
{
    if (answer->finding_count < SEEP_PROBE_FINDINGS) {
        answer->findings[answer->finding_count++] = finding;
    }
}

static void add_unknown(struct seep_probe_answer *answer,
                        enum seep_probe_kind kind, int process,
                        const char *reason)
{
    add(answer, (struct seep_probe_finding){
                    .kind = kind,
                    .outcome = SEEP_PROBE_CANNOT_TELL,
                    .process = process,
                    .device = -1,
                    .limit = NAN,
                    .value = {NAN, NAN, NAN},
                    .reason = reason,
                });
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

            if (device->told) {
                told++;
                hold(answer, SEEP_PROBE_GPU_FREE, (int)i, j,
                     exactly((double)device->free_bytes),
                     answer->arguments->gpu_free_bytes);
            }
        }
    }
    if (told == 0) {
        add_unknown(answer, SEEP_PROBE_GPU_FREE, -1,
                    "the driver told of no GPU yet");
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

static void judge_growth(struct seep_probe_answer *answer, int index)
{
    const struct seep_vitals *vitals = &answer->set->processes[index].vitals;
    double limit = answer->arguments->growth_bytes_per_s;

    if (!vitals->host_growth.known) {
        add_unknown(answer, SEEP_PROBE_GROWTH, index, "too short a run");
        return;
    }
    hold(answer, SEEP_PROBE_GROWTH, index, -1, vitals->host_growth.bytes_per_s,
         limit);
    for (int i = 0; i < (int)SEEP_DEVICES_MAX; i++) {
        const struct seep_vitals_device *device = &vitals->devices[i];

        if (device->growth.known && (device->told || device->live_bytes > 0)) {
            hold(answer, SEEP_PROBE_GROWTH, index, i,
                 device->growth.bytes_per_s, limit);
        }
    }
}

static void judge_process(struct seep_probe_answer *answer, int index)
{
    const struct seep_probe_process *process = &answer->set->processes[index];

    if (process->refusal.error != 0) {
        add_unknown(answer, SEEP_PROBE_READ, index, process->refusal.reason);
        return;
    }
    if (!process->replaced && process->vitals.inert != SEEP_INERT_NONE) {
        add_unknown(answer, SEEP_PROBE_READ, index, "records nothing");
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
 * another took? Where pids of the worker are not ours a killed one would be
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
    uint32_t left_out =
        atomic_load_explicit(&answer->set->left_out, memory_order_relaxed);
    uint32_t ended =
        atomic_load_explicit(&answer->set->ended, memory_order_relaxed);
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
            answer->code = kinds[first].code;
        }
    }
    if (answer->outcome == SEEP_PROBE_CANNOT_TELL &&
        answer->arguments->strict) {
        answer->code = SEEP_EXIT_INSUFFICIENT;
    }
}

void seep_probe_judge(struct seep_probe_answer *answer)
{
    /* Acquire: the entries below it are whole; pairs with the release in
     * probe_gather.c, add(). */
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
