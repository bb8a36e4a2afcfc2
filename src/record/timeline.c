/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Timeline samples: what /proc and the allocator say, into the bucket of
 * the tick; and, apart from these, what the GPUs have left.
 *
 * Invariant: who takes a sample holds the word `busy`, of the GPUs
 * `devices_busy`; whoever finds it held leaves the sample out.
 */
#include "record/timeline.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/proc.h"
#include "base/syscall.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/word.h"
#include "format/account.h"
#include "format/live.h"
#include "format/series.h"
#include "record/modules.h"
#include "record/pages.h"

#define PATH_BYTES 512U
#define STATUS_BYTES 4096U
#define PAGE_IS_PRESENT (UINT64_C(1) << 63)
/* Our own part is asked for again when the run is so much longer, a hundred
 * times in a minute and two hundred in a day, and less often the larger it may
 * be: a tick later for each MiB. Where it takes long, a fifth of that. */
#define OWN_TICK_LOG2_BYTES 20U
#define OWN_SHARE 16U
#define OWN_SLOW_SHARE 4U
#define OWN_SLOW_TICKS 512U
/* Mappings are looked at when a second has passed, and the run is so much
 * longer. */
#define MAPPED_TICKS 1024U
#define MAPPED_SHARE 64U
#define MAPPED_SLOW 16U
/* A title is looked for when the run is twice as long, at last every 9 s. Text
 * is only ever added to a recording: who has a title for each request has the
 * first few. */
#define TITLE_BYTES 128U
#define TITLE_MOST 8U
#define TITLE_TICKS 8192U

static _Atomic uint32_t busy; /* the thread that takes a sample; 0: none */
static _Atomic uint32_t next_tick;
static _Atomic uint32_t next_mapped_tick;
static _Atomic uint32_t restricted;
static _Atomic uint32_t allocator_wanted;
static _Atomic uint32_t allocator_given_up;
static seep_timeline_ask *_Atomic allocator;

/* Only touched by who holds busy. */
static uint32_t width_log2 = SEEP_FIRST_WIDTH_LOG2;
static uint64_t next_dear_ns;
static bool swap_given_up;
static uint64_t swap_bytes; /* as last read */
static uint32_t next_own_tick;
static uint64_t own_bytes;    /* as last told */
static uint64_t mapped_bytes; /* as last told */
static bool cgroup_given_up;
static char cgroup_folder[PATH_BYTES];
static uint32_t next_title_tick;
static uint32_t title_count;
static union {
    char text[STATUS_BYTES];
    uint64_t words[STATUS_BYTES / 8];
} status;

void seep_timeline_start(void)
{
    seep_word_store(&busy, 0);
    seep_word_store(&next_tick, 0);
    width_log2 = SEEP_FIRST_WIDTH_LOG2;
    next_dear_ns = 0;
    swap_given_up = false;
    swap_bytes = 0;
    next_own_tick = 0;
    own_bytes = 0;
    seep_word_store(&next_mapped_tick, MAPPED_TICKS);
    mapped_bytes = 0;
    seep_pages_start();
    cgroup_given_up = false;
    cgroup_folder[0] = '\0';
    next_title_tick = 0;
    title_count = 0;
    seep_word_store(&allocator_wanted, 0);
    seep_word_store(&allocator_given_up, 0);
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
    seep_word_store(&restricted, 1);
}

bool seep_timeline_due(uint32_t tick)
{
    return tick >= seep_word_load(&next_tick);
}

/* Asked each time: a program may set it, or another for it. */
static void take_bound(struct seep_rec_bound *bound, long which, uint64_t pages)
{
    struct {
        uint64_t soft;
        uint64_t hard;
    } limit;

    if (seep_syscall4(SYS_prlimit64, 0, which, 0, (long)&limit) == 0) {
        seep_word_store(&bound->limit_bytes,
                        limit.soft == UINT64_MAX ? 0 : limit.soft);
        seep_word_store(&bound->used_bytes, pages * SEEP_PAGE_BYTES);
    }
}

/* The last field but one of statm counts what RLIMIT_DATA does, and stacks. */
static void take_resident(struct seep_rec_header *header,
                          struct seep_rec_moment *moment)
{
    char text[128];
    const char *at = text;
    uint64_t rss;

    if (seep_proc_read("/proc/self/statm", text, sizeof(text)) == 0) {
        return;
    }
    take_bound(&header->address_space, RLIMIT_AS, seep_proc_number(&at));
    rss = seep_proc_number(&at) * SEEP_PAGE_BYTES;
    seep_word_store(&moment->rss_bytes, rss);
    seep_word_store(&moment->shared_bytes,
                    seep_proc_number(&at) * SEEP_PAGE_BYTES);
    if (seep_word_load(&moment->low_rss_bytes) == 0 ||
        rss < seep_word_load(&moment->low_rss_bytes)) {
        seep_word_store(&moment->low_rss_bytes, rss);
    }
    seep_proc_number(&at); /* code, libraries */
    seep_proc_number(&at);
    take_bound(&header->data, RLIMIT_DATA, seep_proc_number(&at));
}

/* The unified hierarchy's folder of this process, once. */
static void find_cgroup(void)
{
    char text[PATH_BYTES];
    const char *line = text;
    struct seep_text folder;

    text[0] = '\0';
    seep_proc_read("/proc/self/cgroup", text, sizeof(text));
    while (line != NULL && strncmp(line, "0::", 3) != 0) {
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    if (line == NULL) {
        cgroup_given_up = true;
        return;
    }
    seep_text_init(&folder, cgroup_folder, sizeof(cgroup_folder));
    seep_text_add(&folder, "/sys/fs/cgroup");
    for (line += 3; *line != '\0' && *line != '\n'; line++) {
        seep_text_add_char(&folder, *line);
    }
    cgroup_given_up = folder.cut;
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
    line = seep_proc_read("/proc/self/status", status.text,
                          sizeof(status.text)) == 0
               ? NULL /* there is what was read before */
               : strstr(status.text, "\nVmSwap:");
    swap_given_up = line == NULL || seep_proc_was_slow(&watch);
    if (line != NULL) {
        line += sizeof("\nVmSwap:") - 1;
        line += *line == '\t';
        swap_bytes = seep_proc_number(&line) << 10;
    }
}

/*
 * Bytes of the recording that are in this process's page tables, for the kernel
 * counts them as the program's: 18 us for 16 MiB, 80 for 64, 1.2 ms for 256.
 * mincore() would tell what of the file is in the page cache: on ext4 that is
 * all that was reserved. @return 0 where the kernel does not tell
 */
static uint64_t count_own(const struct seep_view *view)
{
    const size_t count = sizeof(status.words) / sizeof(status.words[0]);
    uint64_t page = (uintptr_t)view->header / SEEP_PAGE_BYTES;
    uint64_t end = page + view->header->file_bytes / SEEP_PAGE_BYTES;
    uint64_t present = 0;
    long fd = seep_proc_open("/proc/self/pagemap");

    while (fd >= 0 && page < end) {
        size_t most = end - page < count ? (size_t)(end - page) : count;
        size_t got =
            seep_proc_read_at(fd, status.words, most * sizeof(uint64_t),
                              page * sizeof(uint64_t)) /
            sizeof(uint64_t);

        for (size_t i = 0; i < got; i++) {
            present += (status.words[i] & PAGE_IS_PRESENT) != 0;
        }
        page = got > 0 ? page + got : end;
    }
    seep_proc_close_file(fd);
    return present * SEEP_PAGE_BYTES;
}

static void take_own(const struct seep_view *view,
                     struct seep_rec_moment *moment, uint32_t tick)
{
    uint32_t apart =
        (uint32_t)(view->header->file_bytes >> OWN_TICK_LOG2_BYTES);

    if (tick >= next_own_tick && tick >= apart) {
        struct seep_proc_watch watch = seep_proc_watch_start();

        own_bytes = count_own(view);
        next_own_tick =
            tick + apart +
            (seep_proc_was_slow(&watch) ? OWN_SLOW_TICKS + tick / OWN_SLOW_SHARE
                                        : tick / OWN_SHARE);
    }
    seep_word_store(&moment->own_bytes, own_bytes);
}

bool seep_timeline_looks_at_pages(uint32_t tick)
{
    return tick >= seep_word_load(&next_mapped_tick);
}

static void take_mapped(const struct seep_view *view,
                        struct seep_rec_moment *moment, uint32_t tick)
{
    if (seep_timeline_looks_at_pages(tick)) {
        struct seep_proc_watch watch = seep_proc_watch_start();
        uint32_t apart = MAPPED_TICKS + tick / MAPPED_SHARE;

        mapped_bytes = seep_pages_look(view, tick);
        seep_word_store(
            &next_mapped_tick,
            tick + (seep_proc_was_slow(&watch) ? MAPPED_SLOW * apart : apart));
    }
    seep_word_store(&moment->mapped_bytes, mapped_bytes);
}

/* At most every 10 s, and each never again once it took over a millisecond. */
static void take_dear(struct seep_rec_moment *moment)
{
    uint64_t now = seep_clock_ns(CLOCK_MONOTONIC);

    if (now >= next_dear_ns) {
        next_dear_ns = now + SEEP_TIMELINE_EVERY_NS;
        take_cgroup(moment);
        take_swap();
        seep_word_store(&allocator_wanted, 1);
    }
    seep_word_store(&moment->swap_bytes, swap_bytes);
}

/* In .text what the process calls itself, as one line. @return its bytes */
static size_t read_title(void)
{
    struct seep_proc_watch watch = seep_proc_watch_start();
    size_t length =
        seep_proc_read("/proc/self/cmdline", status.text, TITLE_BYTES);

    if (seep_proc_was_slow(&watch)) {
        title_count = TITLE_MOST;
    }
    while (length > 0 && (status.text[length - 1] == '\0' ||
                          status.text[length - 1] == ' ')) {
        length--;
    }
    status.text[length] = '\0';
    return length;
}

/* What a program writes over its arguments: ps shows it in their place. */
static void take_title(const struct seep_view *view, uint32_t tick)
{
    struct seep_rec_header *header = view->header;
    uint32_t known = seep_word_load(&header->title);
    size_t length;

    if (tick < next_title_tick || title_count == TITLE_MOST ||
        header->arguments == 0) {
        return;
    }
    next_title_tick = tick + 1 + (tick < TITLE_TICKS ? tick : TITLE_TICKS);
    length = read_title();
    if (length == 0 || header->arguments + length > view->string_bytes ||
        memcmp(view->strings + header->arguments, status.text, length) == 0) {
        return;
    }
    for (size_t i = 0; i < length; i++) {
        status.text[i] = status.text[i] == '\0' ? ' ' : status.text[i];
    }
    if (known == 0 || strcmp(view->strings + known, status.text) != 0) {
        title_count++;
        seep_word_store(&header->title, seep_modules_string(view, status.text));
    }
}

/* Of struct seep_timeline_figures, and with "allocator_" of a sample. */
#define FIGURES(X)     \
    X(allocated_bytes) \
    X(active_bytes) X(resident_bytes) X(retained_bytes) X(free_chunks)

static void keep_figures(struct seep_rec_moment *into,
                         const struct seep_rec_moment *from)
{
#define KEEP(name) \
    seep_word_copy(&into->allocator_##name, &from->allocator_##name);
    FIGURES(KEEP)
#undef KEEP
}

/* Of two neighbours the later sample stays, with the lower low, and with what
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
        seep_word_copy(&copy.cgroup_bytes, &left->cgroup_bytes);
        seep_word_copy(&copy.cgroup_limit_bytes, &left->cgroup_limit_bytes);
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
    if (seep_word_exchange(&allocator_given_up, 1) == 0 &&
        seep_word_load(&allocator) != NULL) {
        seep_view_count(view, SEEP_COUNT_ALLOCATOR_GIVEN_UP, 1);
    }
}

static void leave(void)
{
    /* Release: pairs with the acquire in try_enter(). */
    atomic_store_explicit(&busy, 0, memory_order_release);
}

void seep_timeline_recover(const struct seep_view *view, uint32_t thread)
{
    give_up_allocator(view);
    if (seep_word_load(&busy) != thread) {
        return;
    }
    seep_proc_close();
    leave();
}

/*
 * Is @owner, who takes a sample, never to leave it? A thread that was cancelled
 * there; or this one, which is in none now, and was given the number of such a
 * thread. Asks the kernel, so at most once a tick.
 */
static bool is_gone(const struct seep_view *view, uint32_t owner,
                    uint32_t thread, uint32_t tick)
{
    static _Atomic uint32_t last_tick;

    if (seep_word_load(&restricted) != 0 ||
        seep_word_exchange(&last_tick, tick + 1) == tick + 1) {
        return false;
    }
    return owner == thread ||
           seep_syscall3(SYS_tgkill, view->header->pid, owner, 0) == -ESRCH;
}

static bool try_enter(const struct seep_view *view, uint32_t thread,
                      uint32_t tick)
{
    uint32_t owner = 0;

    /* Acquire: the widths and folders of who took the last sample; pairs with
     * the release in leave(). */
    if (atomic_compare_exchange_strong_explicit(&busy, &owner, thread,
                                                memory_order_acquire,
                                                memory_order_relaxed)) {
        return true;
    }
    /* Acquire: as above, it pairs with the release in leave().
     * Not tested: another thread takes its place at the same moment. */
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

bool seep_timeline_wants_allocator(void)
{
    /* Acquire: pairs with the release in seep_timeline_set_allocator(). */
    return seep_word_load(&allocator_wanted) != 0 &&
           seep_word_load(&restricted) == 0 &&
           atomic_load_explicit(&allocator, memory_order_acquire) != NULL &&
           seep_word_load(&allocator_given_up) == 0;
}

static void ask(const struct seep_view *view, struct seep_rec_moment *moment)
{
    struct seep_timeline_figures figures = {0};
    struct seep_proc_watch watch = seep_proc_watch_start();
    int result = seep_word_load(&allocator)(&figures);

    if (result == -EAGAIN) {
        return;
    }
    seep_word_store(&allocator_wanted, 0);
    if (result < 0 || seep_proc_was_slow(&watch)) {
        give_up_allocator(view);
    }
    if (result == 0) {
        seep_view_count(view, SEEP_COUNT_ALLOCATOR_ASKED, 1);
#define TELL(name) seep_word_store(&moment->allocator_##name, figures.name);
        FIGURES(TELL)
#undef TELL
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
    if (seep_word_load(&restricted) == 0) {
        take_resident(view->header, moment);
        take_own(view, moment, tick);
        take_mapped(view, moment, tick);
        take_dear(moment);
        take_title(view, tick);
        seep_word_store(&view->header->processor_ns,
                        seep_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    }
    seep_word_copy(&moment->progress_units, &view->header->progress_units);
    seep_word_copy(&moment->sample_log2, &view->header->sample_log2);
    seep_word_store(&moment->tick, tick == 0 ? 1 : tick);
    if (!seep_clock_forbidden) {
        seep_word_store(&view->header->last_cycles, seep_clock_cycles());
        seep_word_store(&view->header->last_ns, seep_clock_monotonic_ns());
    }
    seep_word_store(&next_tick, ((tick >> width_log2) + 1) << width_log2);
    leave();
}

/*
 * What the GPUs have left, one sample a bucket and device; when the last bucket
 * is passed neighbours are merged, those of all devices at once.
 */

/* Who writes for so long is gone, by a jump or a cancellation. */
#define GONE_TICKS 4096U

static _Atomic uint32_t devices_busy; /* tick + 1 of who writes; 0: nobody */

/* Only touched by who holds devices_busy. */
static uint32_t devices_width_log2 = SEEP_FIRST_WIDTH_LOG2;

void seep_devices_start(void)
{
    seep_word_store(&devices_busy, 0);
    devices_width_log2 = SEEP_FIRST_WIDTH_LOG2;
}

static bool enter_devices(uint32_t tick)
{
    uint32_t since = seep_word_load(&devices_busy);

    if (since != 0 && tick < since + GONE_TICKS) {
        return false;
    }
    /* Acquire: the width of who wrote last; pairs with the release at the end
     * of seep_devices_take(). */
    return atomic_compare_exchange_strong_explicit(
        &devices_busy, &since, tick + 1, memory_order_acquire,
        memory_order_relaxed);
}

/* Of two neighbours the later sample stays, with the lower low. */
static void merge_device(struct seep_rec_device *into,
                         const struct seep_rec_device *left,
                         const struct seep_rec_device *right)
{
    bool has_right = seep_word_load(&right->tick) != 0;
    uint64_t low = seep_word_load(&left->low_free_bytes);
    struct seep_rec_device copy;

    memcpy((void *)&copy, (const void *)(has_right ? right : left),
           sizeof(copy));
    if (has_right && seep_word_load(&left->tick) != 0 &&
        low < seep_word_load(&copy.low_free_bytes)) {
        seep_word_store(&copy.low_free_bytes, low);
    }
    memcpy((void *)into, (const void *)&copy, sizeof(copy));
}

static void widen_device(struct seep_rec_device *moments)
{
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT / 2; i++) {
        merge_device(&moments[i], &moments[2 * i], &moments[2 * i + 1]);
    }
    memset((void *)&moments[SEEP_BUCKET_COUNT / 2], 0,
           SEEP_BUCKET_COUNT / 2 * sizeof(moments[0]));
}

/* Of a device that was never told of there is nothing, nor may be touched. */
static bool is_there(const struct seep_view *view, uint32_t ordinal)
{
    const struct seep_rec_device *first =
        &view->devices[(size_t)ordinal * SEEP_BUCKET_COUNT];

    return seep_view_has(view, first, SEEP_BUCKET_COUNT * sizeof(*first));
}

static void widen_all(const struct seep_view *view, uint32_t width)
{
    for (; devices_width_log2 < width; devices_width_log2++) {
        for (uint32_t i = 0; i < view->device_count; i++) {
            if (is_there(view, i)) {
                widen_device(&view->devices[(size_t)i * SEEP_BUCKET_COUNT]);
            }
        }
    }
}

/* Who was kept waiting on the way has seen a low, and no last. */
static void put_device(struct seep_rec_device *entry, uint32_t tick,
                       const struct seep_devices_sample *sample)
{
    uint64_t low = seep_word_load(&entry->low_free_bytes);
    uint64_t last = seep_word_load(&entry->tick);

    if (last == 0 || sample->free_bytes < low) {
        seep_word_store(&entry->low_free_bytes, sample->free_bytes);
    }
    if (tick < last) {
        return;
    }
    seep_word_store(&entry->free_bytes, sample->free_bytes);
    seep_word_store(&entry->total_bytes, sample->total_bytes);
    seep_word_store(&entry->pool_reserved_bytes, sample->pool_reserved_bytes);
    seep_word_store(&entry->pool_used_bytes, sample->pool_used_bytes);
    seep_word_store(&entry->graph_reserved_bytes, sample->graph_reserved_bytes);
    seep_word_store(&entry->graph_used_bytes, sample->graph_used_bytes);
    seep_word_store(&entry->tensor_reserved_bytes,
                    sample->tensor_reserved_bytes);
    seep_word_store(&entry->tensor_allocated_bytes,
                    sample->tensor_allocated_bytes);
    seep_word_store(&entry->held_bytes, sample->held_bytes);
    seep_word_store(&entry->tick, tick == 0 ? 1 : tick);
}

static bool reserve_device(const struct seep_view *view, uint32_t ordinal)
{
    const struct seep_rec_device *first =
        &view->devices[(size_t)ordinal * SEEP_BUCKET_COUNT];
    size_t bytes = SEEP_BUCKET_COUNT * sizeof(*first);

    return seep_view_reserve(view, first, bytes, first, bytes);
}

void seep_devices_take(const struct seep_view *view, uint32_t ordinal,
                       uint32_t tick, const struct seep_devices_sample *sample)
{
    uint32_t bucket;

    if (ordinal >= view->device_count || !reserve_device(view, ordinal)) {
        seep_view_count(view, SEEP_COUNT_DEVICES_FULL, 1);
        return;
    }
    if (!enter_devices(tick)) {
        return;
    }
    widen_all(view, seep_series_width_for(tick));
    bucket = tick >> devices_width_log2;
    put_device(&view->devices[(size_t)ordinal * SEEP_BUCKET_COUNT + bucket],
               tick, sample);
    /* Release: the width; pairs with the acquire in enter_devices(). */
    atomic_store_explicit(&devices_busy, 0, memory_order_release);
}
