/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What programs say of themselves and ask of us (seep/seep.h).
 *
 * Invariant: as with any hook, nothing of the program's changes by a call, in
 * a signal handler and in the child of a fork either; what is said where
 * nothing is recorded is forgotten. Who says something of the run wants it
 * recorded: the recording is begun if there is none.
 */
#define SEEP_NO_CALLS
#include "seep/seep.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/word.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "record/program.h"
#include "record/recorder.h"

#define SEEP_HOOK(name, result, parameters)
#define SEEP_CALL(name, result, parameters) SEEP_EXPORT result name parameters;
#include "preload/hooks.def"
#undef SEEP_CALL
#undef SEEP_HOOK

/* Told while another thread created the recording, or this one below us. */
static _Atomic uint64_t early_units;

static void add_units(const struct seep_view *view, uint64_t units)
{
    if (seep_unlikely(seep_word_load(&early_units) != 0)) {
        units += seep_word_exchange(&early_units, 0);
    }
    seep_word_fetch_add(&view->header->progress_units, units);
}

void seep_mark(const char *name)
{
    struct seep_thread *thread;
    const struct seep_view *view;

    if (name == NULL) {
        return;
    }
    view = seep_guard_enter_recording(SEEP_GUARD_FRAME, &thread);
    if (view != NULL) {
        add_units(view, 0);
        seep_marks_moment(view, seep_recorder_tick(), name);
        seep_guard_leave(thread);
    }
}

void seep_label(const char *key, const char *value)
{
    struct seep_thread *thread;
    const struct seep_view *view;

    if (key == NULL || value == NULL) {
        return;
    }
    view = seep_guard_enter_recording(SEEP_GUARD_FRAME, &thread);
    if (view != NULL) {
        seep_marks_label(view, seep_recorder_tick(), key, value);
        seep_guard_leave(thread);
    }
}

/* No guard where the recording is there and ours. In this order: whose process
 * this is may not be asked before there is one; and in a child the view is the
 * parent's, and gone at any moment, until it is ours. */
static bool add_at_once(uint64_t units)
{
    const struct seep_view *view;

    if (seep_life_state() != SEEP_LIFE_ON || !seep_identity_is_ours()) {
        return false;
    }
    view = seep_recorder_view();
    if (view == NULL) {
        return false;
    }
    add_units(view, units);
    return true;
}

/* Called for every request. */
void seep_progress(uint64_t units)
{
    const struct seep_view *view;
    struct seep_thread *thread;

    if (add_at_once(units)) {
        return;
    }
    view = seep_guard_enter_recording(SEEP_GUARD_FRAME, &thread);
    if (view != NULL) {
        add_units(view, units);
        seep_guard_leave(thread);
    } else if (seep_life_is_open()) {
        seep_word_fetch_add(&early_units, units);
    }
}

static void fill(const struct seep_stats_figures *figures,
                 struct seep_stats *ret_stats)
{
    uint64_t limit = figures->cgroup_limit_bytes;
    uint64_t used = figures->cgroup_bytes;

    ret_stats->live_bytes = figures->live_bytes;
    ret_stats->growth_bytes_per_s =
        figures->has_growth ? figures->growth_bytes_per_s : __builtin_nan("");
    ret_stats->units = figures->units;
    ret_stats->rss_bytes =
        figures->rss_bytes != 0 ? figures->rss_bytes : SEEP_UNKNOWN;
    ret_stats->headroom_bytes = SEEP_UNKNOWN;
    if (limit != 0 && used != 0) {
        ret_stats->headroom_bytes = limit > used ? limit - used : 0;
    }
    ret_stats->device_free_bytes = SEEP_UNKNOWN;
    ret_stats->device_total_bytes = SEEP_UNKNOWN;
    if (figures->device_total_bytes != 0) {
        ret_stats->device_free_bytes = figures->device_free_bytes;
        ret_stats->device_total_bytes = figures->device_total_bytes;
    }
}

/* A program that was built with an older struct has a shorter one, one with a
 * newer a longer, whose rest it is told is not there. */
int seep_stats(struct seep_stats *ret_stats)
{
    struct seep_stats_figures figures;
    struct seep_stats stats;
    struct seep_thread *thread;
    const struct seep_view *view;
    uint64_t size_bytes;

    if (ret_stats == NULL || ret_stats->size_bytes < sizeof(uint64_t)) {
        return -1;
    }
    view = seep_guard_enter_recording(SEEP_GUARD_FRAME, &thread);
    if (view == NULL) {
        return -1;
    }
    add_units(view, 0);
    seep_recorder_settle(thread);
    seep_stats_take(view, seep_recorder_tick(), &figures);
    seep_guard_leave(thread);
    fill(&figures, &stats);
    size_bytes = ret_stats->size_bytes;
    stats.size_bytes = size_bytes < sizeof(stats) ? size_bytes : sizeof(stats);
    memcpy(ret_stats, &stats, stats.size_bytes);
    return 0;
}
