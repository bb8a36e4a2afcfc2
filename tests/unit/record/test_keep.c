/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a folder of recordings may hold: what goes, and what never does. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/thread.h"
#include "empty_recording.h"
#include "keep_folder.h"
#include "record/keep.h"

/* By so much each answer of the clock lies behind the one before. */
static time_t leap_s;
/* What another process does in the middle of a cleaning, when that looks at
 * the clock for the so manieth time; then it is NULL. */
static void (*change)(void);
static int change_at;

int __real_clock_gettime(clockid_t clock, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    static time_t leapt_s;
    int result = __real_clock_gettime(clock, ret_now);

    leapt_s += leap_s;
    ret_now->tv_sec += leapt_s;
    if (change != NULL && --change_at == 0) {
        change();
        change = NULL;
    }
    return result;
}

static void what_is_within_the_bounds_stays(void **state)
{
    (void)state;
    put_ended("a.seep", true, 1);
    put_ended("b.seep", false, 2);
    clean(2);
    assert_int_equal(count_files(), 2);
    clean(0);
    assert_int_equal(count_files(), 2);
}

static void minor_ones_go_first_and_then_the_oldest(void **state)
{
    (void)state;
    put_ended("old.seep", false, 1);
    put_ended("older.seep", false, 0);
    put_ended("minor.seep", true, 5);
    put_ended("new.seep", false, 9);
    clean(3);
    assert_false(is_there("minor.seep"));
    assert_int_equal(count_files(), 3);
    clean(1);
    assert_int_equal(count_files(), 1);
    assert_true(is_there("new.seep"));
}

static void write_beside(const char *name)
{
    FILE *file = fopen(below(name), "w");

    assert_non_null(file);
    fclose(file);
}

static void what_lies_beside_goes_with_it(void **state)
{
    (void)state;
    put_ended("old.seep", false, 1);
    put_ended("new.seep", false, 9);
    write_beside("old.seep.looks");
    write_beside("old.seep.held");
    write_beside("new.seep.held");
    clean(1);
    assert_int_equal(count_files(), 2);
    assert_true(is_there("new.seep"));
    assert_true(is_there("new.seep.held"));
}

static void bytes_are_bounded_too(void **state)
{
    const struct seep_place_keep limits = {0, 20000};
    char name[16];

    (void)state;
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "%d.seep", i);
        put_ended(name, false, i);
    }
    seep_keep_clean(below("x.seep"), &limits);
    assert_int_equal(count_files(), 2); /* of 8 KiB each */
    assert_true(is_there("9.seep"));
}

/* Over the bound by all of them, and nothing may go. */
static void what_may_be_missed_never_goes(void **state)
{
    struct seep_rec_header header = make_header();
    char other[256];
    int fd;

    (void)state;
    header.start_monotonic_ns = 1000;
    atomic_store(&header.last_ns, 1000 + SEEP_KEEP_TELLING_NS);
    put("killed.seep", &header, 0); /* or left by _exit */
    atomic_store(&header.exited, 1);
    atomic_store(&header.has_status, 1);
    atomic_store(&header.status, SIGSEGV);
    put("signal.seep", &header, 1);
    header = make_header();
    header.format_major++;
    atomic_store(&header.exited, 1);
    put("other-version.seep", &header, 3);
    fd = open(below("foreign.seep"), O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, "precious", 8), 8);
    close(fd);
    put_ended("two-names.seep", true, 4);
    strcpy(other, below("two-names"));
    assert_int_equal(link(below("two-names.seep"), other), 0);
    put_ended("no-suffix", true, 5);
    assert_int_equal(symlink("/etc/passwd", below("link.seep")), 0);
    assert_int_equal(mkdir(below("folder.seep"), 0700), 0);
    clean(1);
    assert_int_equal(count_files(), 9); /* with the link */
}

/* Each with one thing that is otherwise in what we write. */
static void what_has_another_form_than_ours_stays(void **state)
{
    struct seep_rec_header ours = make_header();
    struct seep_rec_header header;
    int fd;

    (void)state;
    atomic_store(&ours.exited, 1);
    header = ours;
    header.byte_order = ~header.byte_order;
    put("byte-order.seep", &header, 0);
    header = ours;
    header.header_bytes++;
    put("header.seep", &header, 1);
    header = ours;
    header.fixed_bytes++;
    put("fixed.seep", &header, 2);
    header = ours;
    header.magic[7] ^= 1;
    put("magic.seep", &header, 3);
    put("damaged.seep", &ours, 4);
    fd = open(below("damaged.seep"), O_WRONLY);
    header = ours;
    header.pid ^= 1; /* and the hash is that of before */
    assert_int_equal(pwrite(fd, (void *)&header, sizeof(header), 0),
                     sizeof(header));
    close(fd);
    header = ours;
    header.process_start_clock = 0; /* whose that is nobody can tell */
    put("no-clock.seep", &header, 5);
    put("ours.seep", &ours, 6);
    clean(1);
    assert_int_equal(count_files(), 6);
    assert_false(is_there("ours.seep"));
}

static void while_another_holds_the_folder_all_stay(void **state)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY);

    (void)state;
    put_ended("a.seep", true, 0);
    put_ended("b.seep", true, 1);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    clean(1);
    assert_int_equal(count_files(), 2);
    close(fd);
    clean(1);
    assert_int_equal(count_files(), 1);
}

/* More than there is room for names: those that there is room for go. */
static void of_more_than_can_be_named_some_go(void **state)
{
    char name[32];

    (void)state;
    for (int i = 0; i < 4200; i++) {
        snprintf(name, sizeof(name), "%d.seep", i);
        put_ended(name, true, i);
    }
    for (int i = 0; i < 200 && count_files() == 4200; i++) {
        clean(1); /* among so many one start in a few looks at all */
    }
    assert_true(count_files() < 4200);
}

static void put_killed(const char *name, uint64_t life_ns, int age_rank)
{
    struct seep_rec_header header = make_header();

    header.start_monotonic_ns = 1000;
    atomic_store(&header.last_ns, 1000 + life_ns);
    put(name, &header, age_rank);
}

/* By a time-out of a probe, or _exit: there is no end to them. */
static void
what_was_killed_goes_last_and_the_short_before_the_long(void **state)
{
    char name[16];

    (void)state;
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof(name), "long%d.seep", i);
        put_killed(name, SEEP_KEEP_TELLING_NS, i);
        snprintf(name, sizeof(name), "short%d.seep", i);
        put_killed(name, SEEP_KEEP_TELLING_NS - 1, 10 + i);
    }
    put_ended("ended.seep", false, 99);
    clean(12);
    assert_int_equal(count_files(), 12);
    assert_false(is_there("ended.seep"));
    clean(8);
    assert_int_equal(count_files(), 8);
    assert_false(is_there("short3.seep"));
    assert_true(is_there("short4.seep"));
    assert_true(is_there("long0.seep"));
    clean(5);
    assert_false(is_there("short5.seep"));
    assert_false(is_there("long0.seep"));
    assert_true(is_there("long1.seep"));
    clean(1);
    assert_int_equal(count_files(), SEEP_KEEP_TELLING_FILES);
    assert_true(is_there("long2.seep"));
}

static void what_went_is_counted_once(void **state)
{
    struct seep_keep_removed removed;

    (void)state;
    put_ended("a.seep", true, 1);
    put_ended("b.seep", false, 2);
    put_ended("c.seep", false, 3);
    seep_keep_take_removed();
    clean(1);
    removed = seep_keep_take_removed();
    assert_int_equal(removed.file_count, 2);
    assert_int_equal(removed.bytes, 16384);
    removed = seep_keep_take_removed();
    assert_int_equal(removed.file_count + removed.bytes, 0);
}

static void an_end_that_seep_run_saw_counts(void **state)
{
    struct seep_rec_header header = make_header();

    (void)state;
    atomic_store(&header.has_status, 1);
    atomic_store(&header.status, 3 << 8);
    put("left-by-_exit.seep", &header, 0);
    put_ended("b.seep", false, 1);
    clean(1);
    assert_false(is_there("left-by-_exit.seep"));
}

/* Of hundreds that cannot go, and one that can: some cleaning finds it. */
static void what_cannot_go_does_not_hide_what_can(void **state)
{
    struct seep_rec_header header = make_header();
    char name[32];

    (void)state;
    header.format_major++;
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "newer-%d.seep", i);
        put(name, &header, i);
    }
    put_ended("minor.seep", true, 1000);
    for (int i = 0; i < 2000 && is_there("minor.seep"); i++) {
        clean(10);
    }
    assert_false(is_there("minor.seep"));
    assert_int_equal(count_files(), 300);
}

static void twenty_at_once_remove_no_more_than_is_over(void **state)
{
    char name[32];

    (void)state;
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "%d.seep", i);
        put_ended(name, i % 2 == 0, i);
    }
    for (int i = 0; i < 20; i++) {
        if (fork() == 0) {
            for (int j = 0; j < 20; j++) {
                clean(150);
            }
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
    clean(150);
    assert_in_range(count_files(), 132, 150);
}

/* Of few the bytes are asked for where the bound is small. */
static void bytes_of_few_are_bounded_too(void **state)
{
    const struct seep_place_keep limits = {0, 20000};

    (void)state;
    put_ended("a.seep", false, 0);
    put_ended("b.seep", false, 1);
    put_ended("c.seep", false, 2);
    seep_keep_clean(below("x.seep"), &limits);
    assert_int_equal(count_files(), 2);
    assert_false(is_there("a.seep"));
}

/* What is written there is not what is counted there. */
static void who_writes_other_names_removes_nothing(void **state)
{
    const struct seep_place_keep limits = {1, 0};

    (void)state;
    put_ended("a.seep", true, 0);
    put_ended("b.seep", true, 1);
    seep_keep_clean(below("%p.bin"), &limits);
    seep_keep_clean(below(""), &limits);
    assert_int_equal(count_files(), 2);
    clean(1);
    assert_int_equal(count_files(), 1);
}

/* The first 1023 characters of the path are those of the one above. */
static void
who_writes_at_too_long_a_path_removes_nothing_elsewhere(void **state)
{
    const struct seep_place_keep limits = {1, 0};
    char pattern[1100];
    size_t length;

    (void)state;
    put_ended("a.seep", true, 0);
    put_ended("b.seep", true, 1);
    strcpy(pattern, below(""));
    for (length = strlen(pattern); length < 1040; length += 2) {
        strcpy(pattern + length, "./");
    }
    strcpy(pattern + length, "below/x.seep");
    seep_keep_clean(pattern, &limits);
    assert_int_equal(count_files(), 2);
}

/* It is used to begin at another file each time. */
static void who_may_not_read_the_counter_cleans_as_well(void **state)
{
    char name[16];

    (void)state;
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "%02d.seep", i);
        put_ended(name, true, i);
    }
    seep_clock_forbidden = true;
    clean(4);
    seep_clock_forbidden = false;
    assert_int_equal(count_files(), 4);
    assert_true(is_there("39.seep"));
}

/* Not every process that starts there is to clean. */
static void a_folder_of_many_gets_room_for_more(void **state)
{
    char name[32];

    (void)state;
    for (int i = 0; i < 81; i++) {
        snprintf(name, sizeof(name), "%d.seep", i);
        put_ended(name, false, i);
    }
    clean(80);
    assert_int_equal(count_files(), 70);
    assert_false(is_there("10.seep"));
    assert_true(is_there("11.seep"));
}

/* The bytes of many are asked for by one in eight. */
static void bytes_of_many_are_bounded_in_the_end(void **state)
{
    const struct seep_place_keep limits = {0, 400000};
    char name[32];

    (void)state;
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "%d.seep", i);
        put_ended(name, true, i);
    }
    for (int i = 0; i < 2000 && count_files() > 48; i++) {
        seep_keep_clean(below("x.seep"), &limits);
    }
    assert_int_equal(count_files(), 48); /* of 8 KiB each */
}

/* A machine on which the time of a cleaning is over before it began. */
static void a_start_removes_more_than_it_adds_however_late(void **state)
{
    int before;
    int after;

    (void)state;
    for (int i = 0; i < 100; i++) {
        char name[32];

        snprintf(name, sizeof(name), "a%03d.seep", i);
        put_ended(name, i % 2 != 0, i);
    }
    leap_s = 1;
    for (before = 100, after = 0; before > 20; before = after) {
        clean(20);
        after = count_files();
        assert_true(after <= before - 2 || after <= 20);
    }
    leap_s = 0;
}

/* Neither does it remove what tells of a kill while there is something else
 * that there was no time to look at. */
static void who_is_late_looks_past_what_was_killed(void **state)
{
    char name[16];

    (void)state;
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "long%d.seep", i);
        put_killed(name, SEEP_KEEP_TELLING_NS, i);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "ended%d.seep", i);
        put_ended(name, false, 10 + i);
    }
    leap_s = 1;
    clean(3);
    assert_int_equal(count_files(), 10);
    assert_true(is_there("long0.seep"));
    assert_false(is_there("ended1.seep"));
    clean(3);
    leap_s = 0;
    assert_int_equal(count_files(), SEEP_KEEP_TELLING_FILES);
    assert_true(is_there("long7.seep"));
}

#define MANY_FILES 400

/* So long that twice what is read of a folder at once are 292 of them. */
static const char *long_name(int i)
{
    static char name[256];

    snprintf(name, sizeof(name), "%0200d.seep", i);
    return name;
}

static void put_many(void)
{
    for (int i = 0; i < MANY_FILES; i++) {
        put_ended(long_name(i), false, i);
    }
}

static void who_is_late_does_not_read_a_large_folder_to_its_end(void **state)
{
    (void)state;
    put_many();
    leap_s = 1;
    clean(350);
    leap_s = 0;
    assert_int_equal(count_files(), MANY_FILES);
    for (int i = 0; i < 200 && count_files() == MANY_FILES; i++) {
        clean(350); /* unless it is late of itself */
    }
    assert_true(count_files() < MANY_FILES);
}

static void put_links_in_the_place_of_100(void)
{
    for (int i = 0; i < MANY_FILES; i += 4) {
        unlink(below(long_name(i)));
        if (symlink("nowhere", below(long_name(i))) != 0) {
            fail();
        }
    }
}

/* The clock is looked at behind each part of the folder but the first, of three
 * that are read twice. What was said to be a file by then is none any more, and
 * of those that are there are not too many. */
static void what_is_no_file_any_more_does_not_count(void **state)
{
    (void)state;
    for (int moment = 1; moment <= 5; moment++) {
        put_many();
        change = put_links_in_the_place_of_100;
        change_at = moment;
        clean(350);
        assert_null(change);
        assert_int_equal(count_files(), MANY_FILES);
        for (int i = 0; i < MANY_FILES; i++) {
            unlink(below(long_name(i)));
        }
    }
}

static void remove_the_oldest(void)
{
    unlink(below("a.seep"));
}

static void put_the_oldest_aside(void)
{
    char aside[256];

    strcpy(aside, below("aside"));
    if (link(below("a.seep"), aside) != 0) {
        fail();
    }
}

static void replace_the_oldest(void)
{
    int fd = open(below("new"), O_CREAT | O_EXCL | O_WRONLY, 0600);
    char other[256];

    strcpy(other, below("new"));
    if (write(fd, "precious", 8) != 8 || rename(other, below("a.seep")) != 0) {
        fail();
    }
    close(fd);
}

/* At each moment at which a cleaning asks what time it is, from the first to
 * the last: before it has looked at the file, and between that and the end. */
static void what_changes_while_it_is_looked_at_stays(void **state)
{
    static void (*const changes[])(void) = {
        remove_the_oldest, put_the_oldest_aside, replace_the_oldest};
    static const char *const names[] = {"a.seep", "b.seep", "c.seep"};
    bool is_over = false;

    (void)state;
    for (int i = 0; !is_over; i++) {
        uint64_t gone = 0;

        for (int j = 0; j < 3; j++) {
            put_ended(names[j], false, j);
        }
        seep_keep_take_removed();
        change = changes[i % 3];
        change_at = i / 3 + 1;
        clean(1);
        is_over = change != NULL;
        change = NULL;
        assert_int_equal(is_there("a.seep"), !is_over && i % 3 != 0);
        for (int j = 0; j < 3; j++) {
            gone += unlink(below(names[j])) != 0;
        }
        gone -= !is_over && i % 3 == 0; /* not by the cleaning */
        assert_int_equal(seep_keep_take_removed().file_count, gone);
        unlink(below("aside"));
        assert_int_equal(count_files(), 0);
    }
}

static void bounds_are_files_or_bytes_or_both(void **state)
{
    static const char *const wrong[] = {"",      ",",       "0",        "1,",
                                        ",1G",   "none",    "-1",       "5,0",
                                        "1,2,3", "5 files", "1GiB,500x"};
    struct seep_place_keep limits = {77, 78};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(seep_place_keep_parse(wrong[i], &limits));
        assert_int_equal(limits.file_count, 77);
    }
    assert_true(seep_place_keep_parse("500", &limits));
    assert_int_equal(limits.file_count, 500);
    assert_int_equal(limits.bytes, 0);
    assert_true(seep_place_keep_parse("2GiB", &limits));
    assert_int_equal(limits.file_count, 0);
    assert_int_equal(limits.bytes, UINT64_C(2) << 30);
    assert_true(seep_place_keep_parse("100,1GiB", &limits));
    assert_int_equal(limits.file_count, 100);
    assert_int_equal(limits.bytes, UINT64_C(1) << 30);
    assert_true(seep_place_keep_parse("all", &limits));
    assert_int_equal(limits.file_count + limits.bytes, 0);
}

static void what_holds_a_mebibyte_is_not_minor(void **state)
{
    struct seep_view view;

    (void)state;
    assert_int_equal(empty_recording_make(&view), 0);
    view.header->start_monotonic_ns = seep_clock_monotonic_ns();
    assert_true(seep_keep_is_minor(&view));
    atomic_store(&view.header->site_count, 1);
    atomic_store(&view.sites[3].state, SEEP_PUBLISHED);
    atomic_store(&view.sites[3].allocated_bytes, 9 << 20);
    atomic_store(&view.sites[3].freed_bytes, (8 << 20) + 1);
    assert_true(seep_keep_is_minor(&view));
    atomic_store(&view.sites[3].freed_bytes, 8 << 20);
    assert_false(seep_keep_is_minor(&view));
    atomic_store(&view.sites[3].freed_bytes, 9 << 20);
    view.header->start_monotonic_ns -= 2 * SEEP_KEEP_MINOR_NS;
    assert_false(seep_keep_is_minor(&view));
    empty_recording_free(&view);
}

/* Of a table that grows sites are looked at as far as there are any: not
 * behind what is on the disk, and not behind its end. */
static void what_is_no_site_does_not_count(void **state)
{
    static _Atomic uint64_t no_pages[64];
    const struct seep_view_room none = {no_pages, NULL};
    struct seep_view view;
    struct seep_rec_site *behind;

    (void)state;
    assert_int_equal(empty_recording_make(&view), 0);
    assert_true(view.header->file_bytes / SEEP_PAGE_BYTES <= 64 * 64);
    view.header->start_monotonic_ns = seep_clock_monotonic_ns();
    behind = &view.sites[view.site_capacity];
    atomic_store(&behind->state, SEEP_PUBLISHED);
    atomic_store(&behind->allocated_bytes, 1 << 20);
    atomic_store(&view.header->site_count, view.site_capacity); /* damaged */
    assert_true(seep_keep_is_minor(&view));
    atomic_store(&view.sites[1].allocated_bytes, 1 << 20);
    assert_false(seep_keep_is_minor(&view));
    view.room = &none;
    assert_true(seep_keep_is_minor(&view));
    empty_recording_free(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(what_is_within_the_bounds_stays),
        TEST(minor_ones_go_first_and_then_the_oldest),
        TEST(what_lies_beside_goes_with_it),
        TEST(bytes_are_bounded_too),
        TEST(what_may_be_missed_never_goes),
        TEST(what_has_another_form_than_ours_stays),
        TEST(while_another_holds_the_folder_all_stay),
        TEST(of_more_than_can_be_named_some_go),
        TEST(what_was_killed_goes_last_and_the_short_before_the_long),
        TEST(what_went_is_counted_once),
        TEST(an_end_that_seep_run_saw_counts),
        TEST(what_cannot_go_does_not_hide_what_can),
        TEST(twenty_at_once_remove_no_more_than_is_over),
        TEST(a_folder_of_many_gets_room_for_more),
        TEST(bytes_of_few_are_bounded_too),
        TEST(who_writes_other_names_removes_nothing),
        TEST(who_writes_at_too_long_a_path_removes_nothing_elsewhere),
        TEST(who_may_not_read_the_counter_cleans_as_well),
        TEST(bytes_of_many_are_bounded_in_the_end),
        TEST(a_start_removes_more_than_it_adds_however_late),
        TEST(who_is_late_looks_past_what_was_killed),
        TEST(who_is_late_does_not_read_a_large_folder_to_its_end),
        TEST(what_is_no_file_any_more_does_not_count),
        TEST(what_changes_while_it_is_looked_at_stays),
        TEST(bounds_are_files_or_bytes_or_both),
        TEST(what_holds_a_mebibyte_is_not_minor),
        TEST(what_is_no_site_does_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
