/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Moments of the process; see timeline.h. */
#include "record/timeline.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "base/text.h"
#include "base/word.h"
#include "format/series.h"

#define CGROUP_EVERY_NS UINT64_C(10000000000)
#define SLOW_NS UINT64_C(1000000)
#define PATH_BYTES 512U

static _Atomic uint32_t busy; /* the thread that takes a moment; 0: none */
static _Atomic uint32_t next_tick;
static _Atomic uint32_t restricted;

/* Only touched by who holds busy. */
static volatile long open_fd = -1; /* for who has to clean up after a jump */
static uint32_t width_log2 = SEEP_FIRST_WIDTH_LOG2;
static uint64_t next_cgroup_ns;
static bool cgroup_given_up;
static char cgroup_folder[PATH_BYTES];

void seep_timeline_start(void)
{
    atomic_store_explicit(&busy, 0, memory_order_relaxed);
    atomic_store_explicit(&next_tick, 0, memory_order_relaxed);
    width_log2 = SEEP_FIRST_WIDTH_LOG2;
    next_cgroup_ns = 0;
    cgroup_given_up = false;
    cgroup_folder[0] = '\0';
}

void seep_timeline_restrict(void)
{
    atomic_store_explicit(&restricted, 1, memory_order_relaxed);
}

bool seep_timeline_due(uint32_t tick)
{
    return tick >= atomic_load_explicit(&next_tick, memory_order_relaxed);
}

/* Read a small file of /proc or /sys. @return bytes, 0 if it cannot be read */
static size_t read_file(const char *path, char *bytes, size_t size)
{
    long fd = seep_syscall4(SYS_openat, AT_FDCWD, (long)path,
                            O_RDONLY | O_CLOEXEC, 0);
    long count;

    if (fd < 0) {
        return 0;
    }
    open_fd = fd;
    count = seep_syscall3(SYS_read, fd, (long)bytes, (long)size - 1);
    open_fd = -1;
    seep_syscall1(SYS_close, fd);
    count = count < 0 ? 0 : count;
    bytes[count] = '\0';
    return (size_t)count;
}

static uint64_t read_number(const char **at)
{
    uint64_t number = 0;

    while (**at == ' ') {
        ++*at;
    }
    for (; **at >= '0' && **at <= '9'; ++*at) {
        number = number * 10 + (uint64_t)(**at - '0');
    }
    return number;
}

static void take_resident(struct seep_rec_moment *moment)
{
    char text[128];
    const char *at = text;
    uint64_t rss;

    if (read_file("/proc/self/statm", text, sizeof(text)) == 0) {
        return;
    }
    read_number(&at);
    rss = read_number(&at) * SEEP_PAGE_BYTES;
    seep_word_store(&moment->rss_bytes, rss);
    seep_word_store(&moment->shared_bytes, read_number(&at) * SEEP_PAGE_BYTES);
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

    if (read_file("/proc/self/cgroup", text, sizeof(text)) == 0) {
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
    return read_file(path, text, sizeof(text)) == 0 ? 0 : read_number(&at);
}

/* At most every 10 s, and never again once it took over a millisecond. */
static void take_cgroup(struct seep_rec_moment *moment)
{
    uint64_t before = seep_clock_ns(CLOCK_MONOTONIC);

    if (cgroup_given_up || before < next_cgroup_ns) {
        return;
    }
    next_cgroup_ns = before + CGROUP_EVERY_NS;
    if (cgroup_folder[0] == '\0') {
        find_cgroup();
    }
    if (!cgroup_given_up) {
        seep_word_store(&moment->cgroup_bytes, read_cgroup("memory.current"));
        seep_word_store(&moment->cgroup_limit_bytes, read_cgroup("memory.max"));
        cgroup_given_up = seep_word_load(&moment->cgroup_bytes) == 0 ||
                          seep_clock_ns(CLOCK_MONOTONIC) - before > SLOW_NS;
    }
}

/* Of two neighbours the later moment stays, with the lower low. */
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

void seep_timeline_recover(uint32_t thread)
{
    if (atomic_load_explicit(&busy, memory_order_relaxed) != thread) {
        return;
    }
    if (open_fd >= 0) {
        seep_syscall1(SYS_close, open_fd);
        open_fd = -1;
    }
    /* Release: pairs with the acquire in seep_timeline_take(). */
    atomic_store_explicit(&busy, 0, memory_order_release);
}

void seep_timeline_take(const struct seep_view *view, uint32_t thread,
                        uint32_t tick)
{
    struct seep_rec_moment *moment;
    uint32_t idle = 0;

    /* Acquire: the widths and folders of who took the last moment; pairs with
     * the release at the end. */
    if (!atomic_compare_exchange_strong_explicit(
            &busy, &idle, thread, memory_order_acquire, memory_order_relaxed)) {
        return;
    }
    widen(view->timeline, seep_series_width_for(tick));
    moment = &view->timeline[tick >> width_log2];
    if (atomic_load_explicit(&restricted, memory_order_relaxed) == 0) {
        take_resident(moment);
        take_cgroup(moment);
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
    /* Release: pairs with the acquire above. */
    atomic_store_explicit(&busy, 0, memory_order_release);
}
