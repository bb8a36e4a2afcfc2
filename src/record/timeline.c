/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Moments of the process; see timeline.h. */
#include "record/timeline.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "base/text.h"
#include "base/word.h"
#include "format/series.h"
#include "record/proc.h"

#define PATH_BYTES 512U
#define STATUS_BYTES 4096U

static _Atomic uint32_t busy; /* the thread that takes a moment; 0: none */
static _Atomic uint32_t next_tick;
static _Atomic uint32_t restricted;
static _Atomic uint32_t allocator_wanted;
static _Atomic uint32_t allocator_given_up;
static seep_timeline_ask *_Atomic allocator;

/* Only touched by who holds busy. */
static uint32_t width_log2 = SEEP_FIRST_WIDTH_LOG2;
static uint64_t next_dear_ns;
static bool swap_given_up;
static uint64_t swap_bytes; /* as last read */
static bool cgroup_given_up;
static char cgroup_folder[PATH_BYTES];
static char status[STATUS_BYTES];

void seep_timeline_start(void)
{
    atomic_store_explicit(&busy, 0, memory_order_relaxed);
    atomic_store_explicit(&next_tick, 0, memory_order_relaxed);
    width_log2 = SEEP_FIRST_WIDTH_LOG2;
    next_dear_ns = 0;
    swap_given_up = false;
    swap_bytes = 0;
    cgroup_given_up = false;
    cgroup_folder[0] = '\0';
    atomic_store_explicit(&allocator_wanted, 0, memory_order_relaxed);
    atomic_store_explicit(&allocator_given_up, 0, memory_order_relaxed);
}

void seep_timeline_set_allocator(seep_timeline_ask *ask)
{
    /* Release: what it needs to be asked; pairs with the acquire in
     * seep_timeline_wants_allocator(), by a thread that another library began
     * before the constructor of ours. */
    atomic_store_explicit(&allocator, ask, memory_order_release);
}

void seep_timeline_restrict(void)
{
    atomic_store_explicit(&restricted, 1, memory_order_relaxed);
}

bool seep_timeline_due(uint32_t tick)
{
    return tick >= atomic_load_explicit(&next_tick, memory_order_relaxed);
}

static void take_resident(struct seep_rec_moment *moment)
{
    char text[128];
    const char *at = text;
    uint64_t rss;

    if (seep_proc_read("/proc/self/statm", text, sizeof(text)) == 0) {
        return;
    }
    seep_proc_number(&at);
    rss = seep_proc_number(&at) * SEEP_PAGE_BYTES;
    seep_word_store(&moment->rss_bytes, rss);
    seep_word_store(&moment->shared_bytes,
                    seep_proc_number(&at) * SEEP_PAGE_BYTES);
    if (seep_word_load(&moment->low_rss_bytes) == 0 ||
        rss < seep_word_load(&moment->low_rss_bytes)) {
        seep_word_store(&moment->low_rss_bytes, rss);
    }
}

/* The unified hierarchy's folder of this process, once. */
static void find_cgroup(void)
{
    char text[PATH_BYTES];
    const char *line = text;
    struct seep_text folder;

    if (seep_proc_read("/proc/self/cgroup", text, sizeof(text)) == 0) {
        cgroup_given_up = true;
        return;
    }
    while (line != NULL && strncmp(line, "0::", 3) != 0) {
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    seep_text_init(&folder, cgroup_folder, sizeof(cgroup_folder));
    seep_text_add(&folder, "/sys/fs/cgroup");
    for (line = line == NULL ? "" : line + 3; *line != '\0' && *line != '\n';
         line++) {
        seep_text_add_char(&folder, *line);
    }
    if (folder.cut) {
        cgroup_given_up = true;
    }
}

static uint64_t read_cgroup(const char *name)
{
    char path[PATH_BYTES + 32];
    char text[64];
    const char *at = text;
    struct seep_text full;

    seep_text_init(&full, path, sizeof(path));
    seep_text_add(&full, cgroup_folder);
    seep_text_add_char(&full, '/');
    seep_text_add(&full, name);
    return seep_proc_read(path, text, sizeof(text)) == 0
               ? 0
               : seep_proc_number(&at);
}

static void take_cgroup(struct seep_rec_moment *moment)
{
    struct seep_proc_watch watch;

    if (cgroup_given_up) {
        return;
    }
    watch = seep_proc_watch_start();
    if (cgroup_folder[0] == '\0') {
        find_cgroup();
    }
    if (!cgroup_given_up) {
        seep_word_store(&moment->cgroup_bytes, read_cgroup("memory.current"));
        seep_word_store(&moment->cgroup_limit_bytes, read_cgroup("memory.max"));
        cgroup_given_up = seep_word_load(&moment->cgroup_bytes) == 0 ||
                          seep_proc_was_slow(&watch);
    }
}

static void take_swap(void)
{
    struct seep_proc_watch watch;
    const char *line;

    if (swap_given_up) {
        return;
    }
    watch = seep_proc_watch_start();
    seep_proc_read("/proc/self/status", status, sizeof(status));
    line = strstr(status, "\nVmSwap:");
    swap_given_up = line == NULL || seep_proc_was_slow(&watch);
    if (line != NULL) {
        line += sizeof("\nVmSwap:") - 1;
        line += *line == '\t';
        swap_bytes = seep_proc_number(&line) << 10;
    }
}

/* At most every 10 s, and each never again once it took over a millisecond. */
static void take_dear(struct seep_rec_moment *moment)
{
    uint64_t now = seep_clock_ns(CLOCK_MONOTONIC);

    if (now >= next_dear_ns) {
        next_dear_ns = now + SEEP_TIMELINE_EVERY_NS;
        take_cgroup(moment);
        take_swap();
        atomic_store_explicit(&allocator_wanted, 1, memory_order_relaxed);
    }
    seep_word_store(&moment->swap_bytes, swap_bytes);
}

static void keep_figures(struct seep_rec_moment *into,
                         const struct seep_rec_moment *from)
{
    seep_word_store(&into->allocator_allocated_bytes,
                    seep_word_load(&from->allocator_allocated_bytes));
    seep_word_store(&into->allocator_active_bytes,
                    seep_word_load(&from->allocator_active_bytes));
    seep_word_store(&into->allocator_resident_bytes,
                    seep_word_load(&from->allocator_resident_bytes));
    seep_word_store(&into->allocator_retained_bytes,
                    seep_word_load(&from->allocator_retained_bytes));
    seep_word_store(&into->allocator_free_chunks,
                    seep_word_load(&from->allocator_free_chunks));
}

/* Of two neighbours the later moment stays, with the lower low, and with what
 * was not asked again since the earlier. */
static void merge(struct seep_rec_moment *into,
                  const struct seep_rec_moment *left,
                  const struct seep_rec_moment *right)
{
    const struct seep_rec_moment *later =
        seep_word_load(&right->tick) ? right : left;
    uint64_t low = seep_word_load(&later->low_rss_bytes);
    struct seep_rec_moment copy;

    if (later == right && seep_word_load(&left->tick) != 0 &&
        seep_word_load(&left->low_rss_bytes) < low) {
        low = seep_word_load(&left->low_rss_bytes);
    }
    memcpy((void *)&copy, (const void *)later, sizeof(copy));
    if (seep_word_load(&copy.cgroup_bytes) == 0) {
        seep_word_store(&copy.cgroup_bytes,
                        seep_word_load(&left->cgroup_bytes));
        seep_word_store(&copy.cgroup_limit_bytes,
                        seep_word_load(&left->cgroup_limit_bytes));
    }
    if (seep_word_load(&copy.allocator_resident_bytes) == 0) {
        keep_figures(&copy, left);
    }
    seep_word_store(&copy.low_rss_bytes, low);
    memcpy((void *)into, (const void *)&copy, sizeof(copy));
}

static void widen(struct seep_rec_moment *timeline, uint32_t width)
{
    for (; width_log2 < width; width_log2++) {
        for (uint32_t i = 0; i < SEEP_BUCKET_COUNT / 2; i++) {
            merge(&timeline[i], &timeline[2 * i], &timeline[2 * i + 1]);
        }
        memset((void *)&timeline[SEEP_BUCKET_COUNT / 2], 0,
               SEEP_BUCKET_COUNT / 2 * sizeof(timeline[0]));
    }
}

static void give_up_allocator(const struct seep_view *view)
{
    if (atomic_exchange_explicit(&allocator_given_up, 1,
                                 memory_order_relaxed) == 0 &&
        atomic_load_explicit(&allocator, memory_order_relaxed) != NULL) {
        seep_view_count(view, SEEP_COUNT_ALLOCATOR_GIVEN_UP, 1);
    }
}

void seep_timeline_recover(const struct seep_view *view, uint32_t thread)
{
    give_up_allocator(view);
    if (atomic_load_explicit(&busy, memory_order_relaxed) != thread) {
        return;
    }
    seep_proc_close();
    /* Release: pairs with the acquire in try_enter(). */
    atomic_store_explicit(&busy, 0, memory_order_release);
}

/*
 * Is @owner, who is in a moment, never to leave it? A thread that was cancelled
 * there; or this one, which is in none now, and was given the number of such a
 * thread. Asks the kernel, so at most once a tick.
 */
static bool is_gone(const struct seep_view *view, uint32_t owner,
                    uint32_t thread, uint32_t tick)
{
    static _Atomic uint32_t last_tick;

    if (atomic_load_explicit(&restricted, memory_order_relaxed) != 0 ||
        atomic_exchange_explicit(&last_tick, tick + 1, memory_order_relaxed) ==
            tick + 1) {
        return false;
    }
    return owner == thread ||
           seep_syscall3(SYS_tgkill, view->header->pid, owner, 0) == -ESRCH;
}

static bool try_enter(const struct seep_view *view, uint32_t thread,
                      uint32_t tick)
{
    uint32_t owner = 0;

    /* Acquire: the widths and folders of who took the last moment; pairs with
     * the release in leave(). */
    if (atomic_compare_exchange_strong_explicit(&busy, &owner, thread,
                                                memory_order_acquire,
                                                memory_order_relaxed)) {
        return true;
    }
    /* Acquire: as above, it pairs with the release in leave(). */
    if (!is_gone(view, owner, thread, tick) ||
        !atomic_compare_exchange_strong_explicit(&busy, &owner, thread,
                                                 memory_order_acquire,
                                                 memory_order_relaxed)) {
        return false;
    }
    /* Who goes so out of a hook may have gone out of the allocator. */
    give_up_allocator(view);
    seep_proc_close();
    return true;
}

static void leave(void)
{
    /* Release: pairs with the acquire in try_enter(). */
    atomic_store_explicit(&busy, 0, memory_order_release);
}

bool seep_timeline_wants_allocator(void)
{
    /* Acquire: pairs with the release in seep_timeline_set_allocator(). */
    return atomic_load_explicit(&allocator_wanted, memory_order_relaxed) != 0 &&
           atomic_load_explicit(&restricted, memory_order_relaxed) == 0 &&
           atomic_load_explicit(&allocator, memory_order_acquire) != NULL &&
           atomic_load_explicit(&allocator_given_up, memory_order_relaxed) == 0;
}

static void ask(const struct seep_view *view, struct seep_rec_moment *moment)
{
    struct seep_timeline_figures figures = {0};
    struct seep_proc_watch watch = seep_proc_watch_start();
    int result =
        atomic_load_explicit(&allocator, memory_order_relaxed)(&figures);

    if (result == -EAGAIN) {
        return;
    }
    atomic_store_explicit(&allocator_wanted, 0, memory_order_relaxed);
    if (result < 0 || seep_proc_was_slow(&watch)) {
        give_up_allocator(view);
    }
    if (result == 0) {
        seep_view_count(view, SEEP_COUNT_ALLOCATOR_ASKED, 1);
        seep_word_store(&moment->allocator_allocated_bytes,
                        figures.allocated_bytes);
        seep_word_store(&moment->allocator_active_bytes, figures.active_bytes);
        seep_word_store(&moment->allocator_resident_bytes,
                        figures.resident_bytes);
        seep_word_store(&moment->allocator_retained_bytes,
                        figures.retained_bytes);
        seep_word_store(&moment->allocator_free_chunks, figures.free_chunks);
    }
}

void seep_timeline_ask_allocator(const struct seep_view *view, uint32_t thread,
                                 uint32_t tick)
{
    uint32_t bucket;

    if (!try_enter(view, thread, tick)) {
        return;
    }
    bucket = tick >> width_log2;
    /* Another thread may have asked since, or be in a later bucket already. */
    if (seep_timeline_wants_allocator() && bucket < SEEP_BUCKET_COUNT &&
        seep_word_load(&view->timeline[bucket].tick) != 0) {
        ask(view, &view->timeline[bucket]);
    }
    leave();
}

void seep_timeline_take(const struct seep_view *view, uint32_t thread,
                        uint32_t tick)
{
    struct seep_rec_moment *moment;

    if (!try_enter(view, thread, tick)) {
        return;
    }
    widen(view->timeline, seep_series_width_for(tick));
    moment = &view->timeline[tick >> width_log2];
    if (atomic_load_explicit(&restricted, memory_order_relaxed) == 0) {
        take_resident(moment);
        take_dear(moment);
    }
    seep_word_store(&moment->progress_units,
                    seep_word_load(&view->header->progress_units));
    seep_word_store(
        &moment->sample_log2,
        atomic_load_explicit(&view->header->sample_log2, memory_order_relaxed));
    seep_word_store(&moment->tick, tick == 0 ? 1 : tick);
    if (!seep_clock_forbidden) {
        seep_word_store(&view->header->last_cycles, seep_clock_cycles());
        seep_word_store(&view->header->last_ns, seep_clock_monotonic_ns());
    }
    atomic_store_explicit(&next_tick, ((tick >> width_log2) + 1) << width_log2,
                          memory_order_relaxed);
    leave();
}
