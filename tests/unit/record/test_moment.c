/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a moment says where the kernel's files say this and that: they are made
 * up here (but for pagemap), as is whether it took long to read them.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/proc.h"
#include "base/syscall.h"
#include "base/thread.h"
#include "base/word.h"
#include "empty_recording.h"
#include "format/live.h"
#include "record/timeline.h"

#define THREAD 7U
#define BUCKET_TICKS (1U << SEEP_FIRST_WIDTH_LOG2)
#define FILES 8U

static struct seep_view view;

static struct file {
    const char *path;
    const char *text;
    uint32_t read_count;
} files[FILES];

static bool is_slow;
static uint32_t unknown_count; /* reads of others, which are not there */
static void (*meanwhile)(void);
static uint64_t later_ns;

size_t __wrap_seep_proc_read(const char *path, char *bytes, size_t size);
bool __wrap_seep_proc_was_slow(const struct seep_proc_watch *watch);
size_t __real_seep_proc_read_at(long fd, void *bytes, size_t size,
                                uint64_t offset);
size_t __wrap_seep_proc_read_at(long fd, void *bytes, size_t size,
                                uint64_t offset);

size_t __wrap_seep_proc_read(const char *path, char *bytes, size_t size)
{
    for (uint32_t i = 0; i < FILES; i++) {
        if (files[i].path != NULL && strcmp(files[i].path, path) == 0) {
            size_t length = strlen(files[i].text);

            length = length < size - 1 ? length : size - 1;
            for (size_t at = 0; at < length; at++) {
                bytes[at] = files[i].text[at] == '|' ? '\0' : files[i].text[at];
            }
            bytes[length] = '\0';
            files[i].read_count++;
            return length;
        }
    }
    unknown_count++;
    return 0;
}

bool __wrap_seep_proc_was_slow(const struct seep_proc_watch *watch)
{
    (void)watch;
    return is_slow;
}

size_t __wrap_seep_proc_read_at(long fd, void *bytes, size_t size,
                                uint64_t offset)
{
    if (meanwhile != NULL) {
        meanwhile();
    }
    return __real_seep_proc_read_at(fd, bytes, size, offset);
}

/* '|' in @text: '\0'. NULL: it is not there any more. */
static void say(const char *path, const char *text)
{
    for (uint32_t i = 0; i < FILES; i++) {
        if (files[i].path == NULL || strcmp(files[i].path, path) == 0) {
            files[i].path = text == NULL ? "" : path;
            files[i].text = text;
            return;
        }
    }
    fail();
}

static uint32_t reads_of(const char *path)
{
    for (uint32_t i = 0; i < FILES; i++) {
        if (files[i].path != NULL && strcmp(files[i].path, path) == 0) {
            return files[i].read_count;
        }
    }
    return 0;
}

static int tell_time(clockid_t clock, struct timespec *ret_time)
{
    int result = clock_gettime(clock, ret_time);

    ret_time->tv_sec += (time_t)(later_ns / 1000000000);
    return result;
}

static int set_up(void **state)
{
    (void)state;
    if (empty_recording_make(&view) != 0) {
        return -1;
    }
    memset(files, 0, sizeof(files));
    is_slow = false;
    unknown_count = 0;
    meanwhile = NULL;
    later_ns = 0;
    seep_clock_gettime = tell_time;
    seep_timeline_start();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    seep_timeline_set_allocator(NULL);
    empty_recording_free(&view);
    return 0;
}

static const struct seep_rec_moment *take(uint32_t tick)
{
    seep_timeline_take(&view, THREAD, tick);
    return &view.timeline[tick / BUCKET_TICKS];
}

/* When all that is dear is asked for again. */
static const struct seep_rec_moment *take_later(uint32_t tick)
{
    later_ns += UINT64_C(3600000000000);
    return take(tick);
}

static void the_lowest_of_a_bucket_stays(void **state)
{
    const struct seep_rec_moment *moment;

    (void)state;
    say("/proc/self/statm", "1000 500 100 1 0 300 0\n");
    take(1);
    say("/proc/self/statm", "1000 400 100 1 0 300 0\n");
    take(2);
    say("/proc/self/statm", "1000 600 100 1 0 300 0\n");
    moment = take(3);
    assert_int_equal(moment->rss_bytes, 600 * SEEP_PAGE_BYTES);
    assert_int_equal(moment->low_rss_bytes, 400 * SEEP_PAGE_BYTES);
    assert_int_equal(moment->shared_bytes, 100 * SEEP_PAGE_BYTES);
    assert_int_equal(view.header->data.used_bytes, 300 * SEEP_PAGE_BYTES);
}

static void bounds_that_may_not_be_asked_for_stay_untold(void **state)
{
    (void)state;
    say("/proc/self/statm", "1000 500 100 1 0 300 0\n");
    seep_calls_denied = SEEP_CALL_BIT(prlimit64);
    take(1);
    seep_calls_denied = 0;
    assert_int_equal(view.header->data.limit_bytes, 0);
    assert_int_equal(view.header->data.used_bytes, 0);
    assert_int_equal(view.header->address_space.used_bytes, 0);
}

static void the_cgroup_is_that_of_the_unified_hierarchy(void **state)
{
    const struct seep_rec_moment *moment;

    (void)state;
    say("/proc/self/cgroup", "4:memory:/x\n1:name=systemd:/y\n0::/a/b\n");
    say("/sys/fs/cgroup/a/b/memory.current", "5000\n");
    say("/sys/fs/cgroup/a/b/memory.max", "9000\n");
    moment = take(1);
    assert_int_equal(moment->cgroup_bytes, 5000);
    assert_int_equal(moment->cgroup_limit_bytes, 9000);
    /* Which folder it is is asked once. */
    say("/sys/fs/cgroup/a/b/memory.current", "6000\n");
    say("/sys/fs/cgroup/a/b/memory.max", "max\n");
    moment = take_later(2 * BUCKET_TICKS);
    assert_int_equal(moment->cgroup_bytes, 6000);
    assert_int_equal(moment->cgroup_limit_bytes, 0);
    assert_int_equal(reads_of("/proc/self/cgroup"), 1);
}

/* The later of two moments has its own; one that did not ask, the other's. */
static void a_wider_grid_keeps_what_the_later_was_told(void **state)
{
    (void)state;
    say("/proc/self/cgroup", "0::/a\n");
    say("/sys/fs/cgroup/a/memory.current", "5000");
    say("/sys/fs/cgroup/a/memory.max", "9000");
    take(1);
    say("/sys/fs/cgroup/a/memory.current", "6000");
    take_later(BUCKET_TICKS);
    say("/sys/fs/cgroup/a/memory.current", "7000");
    take_later(2 * BUCKET_TICKS);
    take(3 * BUCKET_TICKS);
    take(SEEP_BUCKET_COUNT * BUCKET_TICKS);
    assert_int_equal(view.timeline[0].tick, BUCKET_TICKS);
    assert_int_equal(view.timeline[0].cgroup_bytes, 6000);
    assert_int_equal(view.timeline[1].tick, 3 * BUCKET_TICKS);
    assert_int_equal(view.timeline[1].cgroup_bytes, 7000);
    assert_int_equal(view.timeline[1].cgroup_limit_bytes, 9000);
}

static void without_the_unified_hierarchy_no_cgroup_is_read(void **state)
{
    (void)state;
    say("/proc/self/cgroup", "4:memory:/x\n1:name=systemd:/y\n");
    say("/sys/fs/cgroup/memory.current", "5000");
    assert_int_equal(take(1)->cgroup_bytes, 0);
    assert_int_equal(take_later(2)->cgroup_bytes, 0);
    assert_int_equal(reads_of("/proc/self/cgroup"), 1);
    assert_int_equal(reads_of("/sys/fs/cgroup/memory.current"), 0);
}

/* Half of a name may be another's. */
static void a_cgroup_of_too_long_a_name_is_not_read(void **state)
{
    char text[600] = "0::/";
    uint32_t others;

    (void)state;
    memset(text + 4, 'x', sizeof(text) - 5);
    say("/proc/self/cgroup", text);
    say("/proc/self/status", "VmSwap: 0");
    take(1);
    others = unknown_count; /* statm and the title */
    take_later(2);
    assert_int_equal(unknown_count, others + 1);
    assert_int_equal(reads_of("/proc/self/cgroup"), 1);
}

static void what_took_long_is_kept_and_not_asked_for_again(void **state)
{
    const struct seep_rec_moment *moment;

    (void)state;
    say("/proc/self/cgroup", "0::/a\n");
    say("/sys/fs/cgroup/a/memory.current", "5000");
    say("/proc/self/status", "Name:\tx\nVmSwap:\t     12 kB\n");
    is_slow = true;
    moment = take(1);
    assert_int_equal(moment->cgroup_bytes, 5000);
    assert_int_equal(moment->swap_bytes, 12 << 10);
    moment = take_later(2 * BUCKET_TICKS);
    assert_int_equal(moment->cgroup_bytes, 0);
    assert_int_equal(moment->swap_bytes, 12 << 10);
    assert_int_equal(reads_of("/sys/fs/cgroup/a/memory.current"), 1);
    assert_int_equal(reads_of("/proc/self/status"), 1);
}

static void swap_is_told_as_it_is_now(void **state)
{
    (void)state;
    say("/proc/self/status", "Name:\tx\nVmSwap:\t     12 kB\n");
    assert_int_equal(take(1)->swap_bytes, 12 << 10);
    say("/proc/self/status", "Name:\tx\nVmSwap:\t     13 kB\n");
    assert_int_equal(take(2)->swap_bytes, 12 << 10); /* too early */
    assert_int_equal(take_later(3)->swap_bytes, 13 << 10);
}

/* It is read to where other files were read before. */
static void a_status_that_cannot_be_read_tells_no_swap(void **state)
{
    (void)state;
    view.header->arguments = 1;
    say("/proc/self/status", "Name:\tx\nVmSwap:\t     12 kB\n");
    say("/proc/self/cmdline", "x\nVmSwap:\t99 kB");
    assert_int_equal(take(1)->swap_bytes, 12 << 10);
    say("/proc/self/status", NULL);
    assert_int_equal(take_later(1)->swap_bytes, 12 << 10);
}

static const char *title(void)
{
    return view.strings + view.header->title;
}

/* What a program writes over its arguments ends in what is left of them. */
static void a_title_is_one_line_without_its_end(void **state)
{
    (void)state;
    view.header->arguments = 1; /* none are told here, so all are others */
    say("/proc/self/cmdline", "");
    take(1);
    assert_int_equal(view.header->title, 0);
    say("/proc/self/cmdline", "   ");
    take(100);
    assert_int_equal(view.header->title, 0);
    say("/proc/self/cmdline", "worker: idle  ");
    take(300);
    assert_string_equal(title(), "worker: idle");
    say("/proc/self/cmdline", "python3|-m|worker||");
    take(700);
    assert_string_equal(title(), "python3 -m worker");
}

static void arguments_at_the_end_of_the_strings_are_not_looked_at(void **state)
{
    (void)state;
    view.header->arguments = view.string_bytes - 4;
    say("/proc/self/cmdline", "worker: idle");
    take(1);
    assert_int_equal(view.header->title, 0);
}

static uint32_t asked_count;

static int count_asks(struct seep_timeline_figures *ret_figures)
{
    ret_figures->resident_bytes = 5000;
    asked_count++;
    return 0;
}

static void
an_allocator_is_asked_only_where_a_moment_has_been_taken(void **state)
{
    (void)state;
    seep_timeline_set_allocator(count_asks);
    take(1);
    seep_timeline_ask_allocator(&view, THREAD, BUCKET_TICKS);
    assert_int_equal(asked_count, 0);
    /* Its bucket is not there before the grid is wider. */
    seep_timeline_ask_allocator(&view, THREAD, UINT32_MAX / 2);
    assert_int_equal(asked_count, 0);
    seep_timeline_ask_allocator(&view, THREAD, 1);
    assert_int_equal(asked_count, 1);
    assert_int_equal(view.timeline[0].allocator_resident_bytes, 5000);
}

/*
 * What is looked at of the pages of blocks.
 */

#define LOOK_TICK 2000U /* when it is time */

static struct seep_rec_live *put(uint32_t shard, uint64_t address,
                                 uint64_t size, uint32_t site)
{
    struct seep_live live;
    struct seep_block block = {.address = address, .size = size, .site = site};

    assert_true(seep_live_init(&live, &view, shard));
    assert_true(seep_live_insert(&live, &block));
    return &live.entries[seep_live_find(&live, address)];
}

static struct seep_rec_live *put_mapping(uint64_t address, uint64_t size,
                                         uint32_t site)
{
    return put(view.shard_count - 1, address, size, site);
}

static bool is_looked_at(const struct seep_rec_live *entry)
{
    return seep_live_touched(entry->size_level) >= 0;
}

/* Not of this process's address space: nothing is known of it, nor told. */
static void a_mapping_without_pages_is_not_told(void **state)
{
    struct seep_rec_live *entry = put_mapping(UINT64_C(1) << 55, 1 << 20, 1);

    (void)state;
    view.sites[1].space = SEEP_SPACE_MAPPED;
    view.sites[1].series = 1;
    assert_int_equal(take(LOOK_TICK)->mapped_bytes, 0);
    assert_false(is_looked_at(entry));
    assert_int_equal(view.series[0].looked_bytes, 0);
}

static void blocks_of_sites_that_are_none_are_not_looked_at(void **state)
{
    struct seep_rec_live *mapping = put_mapping(4096, 1 << 20, 1);
    struct seep_rec_live *block = put(0, 4096, 1 << 20, 1);

    (void)state;
    mapping->site = UINT32_MAX;
    block->site = UINT32_MAX;
    take(LOOK_TICK);
    assert_false(is_looked_at(mapping));
    assert_false(is_looked_at(block));
}

static void a_series_that_is_none_is_told_nothing(void **state)
{
    struct seep_rec_live *mapping = put_mapping(4096, 1 << 20, 1);

    (void)state;
    view.sites[1].space = SEEP_SPACE_MAPPED;
    view.sites[1].series = UINT32_MAX;
    take(LOOK_TICK);
    assert_true(is_looked_at(mapping));
}

/* Half of it was written, by nobody who has it mapped. */
static void shared_memory_that_others_wrote_is_there_and_not_here(void **state)
{
    static const char words[SEEP_PAGE_BYTES];
    const size_t bytes = 1 << 20;
    int fd = memfd_create("shared", MFD_CLOEXEC);
    char *address;
    struct seep_rec_live *entry;

    (void)state;
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(address != MAP_FAILED);
    entry = put_mapping((uintptr_t)address, bytes, 1);
    for (size_t at = 0; at < bytes / 2; at += sizeof(words)) {
        assert_int_equal(pwrite(fd, words, sizeof(words), (off_t)at),
                         sizeof(words));
    }
    close(fd);
    view.sites[1].space = SEEP_SPACE_MAPPED;
    view.sites[1].series = 1;
    assert_int_equal(take(LOOK_TICK)->mapped_bytes, 0);
    assert_true(seep_live_touched(entry->size_level) == .5);
    assert_in_range(view.series[0].looked_bytes, 1, bytes);
    assert_int_equal(2 * view.series[0].elsewhere_bytes,
                     view.series[0].looked_bytes);
    assert_true(view.series[0].touched_bytes > 0);
    munmap(address, bytes);
}

static struct seep_rec_live *looked_at;

/* Each time its pages are read, to and fro. */
static void move_it(void)
{
    looked_at->address ^= UINT64_C(1) << 30;
}

static void resize_it(void)
{
    looked_at->size_level ^= UINT64_C(1) << 18;
}

/* Another thread folds meanwhile: what is there now was not looked at. */
static void an_entry_that_changes_meanwhile_is_not_marked(void **state)
{
    void (*const ways[])(void) = {move_it, resize_it};

    (void)state;
    view.sites[1].space = SEEP_SPACE_MAPPED;
    looked_at = put_mapping(4096, 1 << 20, 1);
    for (uint32_t i = 0; i < 2; i++) {
        meanwhile = ways[i];
        take((i + 1) * LOOK_TICK);
        assert_false(is_looked_at(looked_at));
    }
    meanwhile = NULL;
    take(4 * LOOK_TICK);
    assert_true(is_looked_at(looked_at));
}

/* So large that two of them are all that is looked at in one moment. */
static void many_mappings_are_looked_at_in_turns(void **state)
{
    struct seep_rec_live *entries[3];
    uint32_t looked = 0;

    (void)state;
    view.sites[1].space = SEEP_SPACE_MAPPED;
    for (uint32_t i = 0; i < 3; i++) {
        entries[i] = put_mapping((uint64_t)(i + 1) << 41, UINT64_C(1) << 40, 1);
    }
    take(LOOK_TICK);
    for (uint32_t i = 0; i < 3; i++) {
        looked += is_looked_at(entries[i]);
    }
    assert_int_equal(looked, 2);
    take(2 * LOOK_TICK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(is_looked_at(entries[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(the_lowest_of_a_bucket_stays),
        TEST(bounds_that_may_not_be_asked_for_stay_untold),
        TEST(the_cgroup_is_that_of_the_unified_hierarchy),
        TEST(a_wider_grid_keeps_what_the_later_was_told),
        TEST(without_the_unified_hierarchy_no_cgroup_is_read),
        TEST(a_cgroup_of_too_long_a_name_is_not_read),
        TEST(what_took_long_is_kept_and_not_asked_for_again),
        TEST(swap_is_told_as_it_is_now),
        TEST(a_status_that_cannot_be_read_tells_no_swap),
        TEST(a_title_is_one_line_without_its_end),
        TEST(arguments_at_the_end_of_the_strings_are_not_looked_at),
        TEST(an_allocator_is_asked_only_where_a_moment_has_been_taken),
        TEST(a_mapping_without_pages_is_not_told),
        TEST(blocks_of_sites_that_are_none_are_not_looked_at),
        TEST(a_series_that_is_none_is_told_nothing),
        TEST(an_entry_that_changes_meanwhile_is_not_marked),
        TEST(shared_memory_that_others_wrote_is_there_and_not_here),
        TEST(many_mappings_are_looked_at_in_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
