/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recording that grows on a disk that is full: refused, counted, unharmed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/place.h"
#include "base/thread.h"
#include "empty_recording.h"
#include "format/layout.h"
#include "own_mounts.h"
#include "record/region.h"
#include "record/ring.h"

#define DISK_KIB 1024

static char folder[64];

static bool is_wanted(void)
{
    return true;
}

static void complete(void *mapping)
{
    (void)mapping;
}

static bool mount_tmpfs(uint64_t kib)
{
    char options[32];

    snprintf(options, sizeof(options), "size=%lluk", (unsigned long long)kib);
    return mount("seep-test", folder, "tmpfs", 0, options) == 0;
}

/* A small disk of our own. @return false: this user may not have one */
static bool mount_disk(void)
{
    return own_mounts_begin() && mount_tmpfs(DISK_KIB);
}

/* For who wants no time to pass but what it says. */
static uint64_t now_ns;

static int read_clock(clockid_t clock, struct timespec *ret_now)
{
    (void)clock;
    ret_now->tv_sec = (time_t)(now_ns / 1000000000);
    ret_now->tv_nsec = (long)(now_ns % 1000000000);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/seep-room-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder);
}

static uint64_t size_bytes = SEEP_LAYOUT_DEFAULT_BYTES;

static void *create_at(const char *pattern, bool exact)
{
    static struct seep_rec_header header;
    struct seep_region_options options = {
        .pattern = pattern, .complete = complete, .is_wanted = is_wanted};
    void *mapping = NULL;

    memset((void *)&header, 0, sizeof(header));
    if (seep_layout_make(size_bytes, exact, false, &header) != 0 ||
        seep_region_create(&options, &header, &mapping) != 0) {
        return NULL;
    }
    return mapping;
}

static const char *path(void)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/x.seep", folder);
    return path;
}

static void *create(bool exact)
{
    return create_at(path(), exact);
}

static uint64_t counter(const struct seep_view *view, enum seep_counter which)
{
    return atomic_load_explicit(&view->counters[which], memory_order_relaxed);
}

static uint64_t blocks_on_disk(void)
{
    struct stat status;

    return stat(path(), &status) == 0 ? (uint64_t)status.st_blocks * 512 : 0;
}

/* Reserve and write series until there is no room. @return how many */
static uint32_t fill(const struct seep_view *view, uint32_t first)
{
    uint32_t i = first;

    for (; i < view->series_capacity &&
           seep_view_reserve_entry(view, SEEP_SECTION_SERIES, i);
         i++) {
        memset((void *)&view->series[i], 1, sizeof(view->series[i]));
    }
    return i - first;
}

/* In a child, for its name space. What fails is told by its status. */
static int in_child(int (*body)(enum seep_room_way), enum seep_room_way way)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        _exit(mount_disk() ? body(way) : 77);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_true(WIFEXITED(status)); /* not by SIGBUS */
    return WEXITSTATUS(status);
}

static int fill_the_disk(enum seep_room_way way)
{
    struct seep_view view;
    void *mapping;
    uint32_t count;

    seep_place_floor.given = true; /* of 0 % */
    mapping = create(false);
    if (mapping == NULL) {
        return 1;
    }
    seep_room_set_way(way);
    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    count = fill(&view, 0);
    /* All of the disk was had, and not one entry more. */
    if (count < 40 || blocks_on_disk() < (DISK_KIB - 32) << 10) {
        return 2;
    }
    if (counter(&view, SEEP_COUNT_ROOM_REFUSED) != 1) {
        return 3;
    }
    /* While it is known that there is none nobody is asked. */
    if (fill(&view, count) != 0 ||
        counter(&view, SEEP_COUNT_ROOM_REFUSED) != 1) {
        return 4;
    }
    return seep_view_string(&view, 0)[0] == '\0' ? 0 : 5;
}

static void a_full_disk_is_a_refusal(void **state)
{
    (void)state;
    assert_int_equal(in_child(fill_the_disk, SEEP_ROOM_POPULATE), 0);
}

static void a_full_disk_is_a_refusal_where_pages_are_touched(void **state)
{
    (void)state;
    assert_int_equal(in_child(fill_the_disk, SEEP_ROOM_TOUCH), 0);
}

/* Who waits for it to be folded waits for nothing. */
static int lack_a_ring(enum seep_room_way way)
{
    struct seep_view view;
    void *mapping;
    struct seep_rec_event *ring;

    (void)way;
    seep_place_floor.given = true;
    mapping = create(true);
    if (mapping == NULL) {
        return 1;
    }
    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    ring = seep_view_ring(&view, 1);
    if (!seep_view_reserve(&view, ring, sizeof(*ring), ring, sizeof(*ring)) ||
        seep_ring_is_short(&view, 1)) {
        return 2;
    }
    fill(&view, 0);
    if (!seep_ring_is_short(&view, 2)) {
        return 3;
    }
    /* In its second lap it has all that it needs. */
    atomic_store(&view.shards[2].tail_hint, view.ring_slots);
    return seep_ring_is_short(&view, 2) ? 4 : 0;
}

static void a_ring_without_a_page_is_not_waited_for(void **state)
{
    (void)state;
    assert_int_equal(in_child(lack_a_ring, SEEP_ROOM_POPULATE), 0);
}

static int leave_a_floor(enum seep_room_way way)
{
    struct seep_view view;
    void *mapping;

    (void)way;
    mapping = create(false); /* a quarter of a tmpfs is for others */
    if (mapping == NULL) {
        return 1;
    }
    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    fill(&view, 0);
    if (blocks_on_disk() > DISK_KIB * 3 / 4 << 10 ||
        blocks_on_disk() < DISK_KIB * 5 / 8 << 10) {
        return 2;
    }
    return counter(&view, SEEP_COUNT_ROOM_REFUSED) == 1 ? 0 : 3;
}

static void a_part_of_the_disk_is_left_to_others(void **state)
{
    (void)state;
    assert_int_equal(in_child(leave_a_floor, SEEP_ROOM_POPULATE), 0);
}

static int grow_again(enum seep_room_way way)
{
    char other[256];
    char zeros[4096] = "";
    struct seep_view view;
    void *mapping;
    uint32_t count;
    int fd;

    (void)way;
    seep_place_floor.given = true;
    seep_clock_gettime = read_clock;
    now_ns = 1;
    snprintf(other, sizeof(other), "%s/other", folder);
    mapping = create(false);
    fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (mapping == NULL || fd < 0) {
        return 1;
    }
    for (int i = 0; i < 100 && write(fd, zeros, sizeof(zeros)) > 0; i++) {
    }
    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    count = fill(&view, 0);
    close(fd);
    unlink(other);
    now_ns += 1000000000;
    return fill(&view, count) > 20 ? 0 : 2;
}

static void a_disk_that_has_room_again_is_used_again(void **state)
{
    (void)state;
    assert_int_equal(in_child(grow_again, SEEP_ROOM_POPULATE), 0);
}

/* After each refusal twice as long nobody is asked, up to a minute or so. */
static int refuse_again(enum seep_room_way way)
{
    static const uint64_t patience_s[] = {1, 2, 4, 8, 16, 32, 64, 64, 64};
    struct seep_view view;
    void *mapping;
    uint32_t count;

    (void)way;
    seep_clock_gettime = read_clock;
    now_ns = 1;
    seep_place_floor.given = true;
    mapping = create(false);
    if (mapping == NULL) {
        return 1;
    }
    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    count = fill(&view, 0);
    for (size_t i = 0; i < sizeof(patience_s) / sizeof(patience_s[0]); i++) {
        now_ns += patience_s[i] * 1000000000 - 1;
        if (fill(&view, count) != 0 ||
            counter(&view, SEEP_COUNT_ROOM_REFUSED) != i + 1) {
            return 2;
        }
        now_ns++;
        if (fill(&view, count) != 0 ||
            counter(&view, SEEP_COUNT_ROOM_REFUSED) != i + 2) {
            return 3;
        }
    }
    return 0;
}

static void a_disk_that_stays_full_is_asked_ever_more_rarely(void **state)
{
    (void)state;
    assert_int_equal(in_child(refuse_again, SEEP_ROOM_POPULATE), 0);
}

/* A disk that is full in the middle of a start: from that which is too small
 * for what every file begins with, page by page to the first that is not. */
static int start_on_ever_larger_disks(enum seep_room_way way)
{
    struct seep_rec_header header = {0};
    void *mapping = NULL;
    uint64_t start_kib;
    uint64_t kib;

    (void)way;
    seep_place_floor.given = true;
    if (seep_layout_make(SEEP_LAYOUT_DEFAULT_BYTES, false, false, &header) !=
        0) {
        return 1;
    }
    start_kib = seep_layout_start_bytes(&header) / 1024;
    for (kib = start_kib - 4; mapping == NULL && kib < 16384; kib += 4) {
        if (umount(folder) != 0 || !mount_tmpfs(kib)) {
            return 77;
        }
        mapping = create(false);
        if ((access(path(), F_OK) == 0) != (mapping != NULL)) {
            return 2;
        }
    }
    /* Its tables and rings are there at once. */
    return mapping != NULL && kib > start_kib + 16 ? 0 : 3;
}

static void a_start_has_all_that_it_needs_or_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(in_child(start_on_ever_larger_disks, SEEP_ROOM_POPULATE),
                     0);
}

/* Fill the disk of the recording behind @fd, of which a part is for others if
 * anybody asks. @return was that not asked, and all of it had? */
static bool has_all_of_the_disk(void *mapping, int fd)
{
    struct seep_view view;
    struct stat status;

    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    fill(&view, 0);
    return fstat(fd, &status) == 0 && status.st_blocks * 512 > (DISK_KIB - 64)
                                                                   << 10;
}

/* Another disk is mounted where the recording was made; what is left there
 * says nothing. */
static int cover(const char *type, const char *options)
{
    void *mapping = create(false);
    int fd = open(path(), O_RDONLY | O_CLOEXEC);
    struct statfs before;
    struct statfs after;

    if (mapping == NULL || fd < 0) {
        return 1;
    }
    if (statfs(folder, &before) != 0 ||
        mount("seep-test", folder, type, 0, options) != 0 ||
        statfs(folder, &after) != 0 ||
        (before.f_type == after.f_type &&
         memcmp(&before.f_fsid, &after.f_fsid, sizeof(after.f_fsid)) == 0)) {
        return 77; /* Linux before 5.14 does not tell tmpfs apart */
    }
    return has_all_of_the_disk(mapping, fd) ? 0 : 2;
}

static int cover_by_tmpfs(enum seep_room_way way)
{
    (void)way;
    return cover("tmpfs", "size=4k");
}

static int cover_by_ramfs(enum seep_room_way way)
{
    (void)way;
    return cover("ramfs", NULL);
}

static void another_disk_at_the_same_path_is_not_asked(void **state)
{
    (void)state;
    assert_int_equal(in_child(cover_by_ramfs, SEEP_ROOM_POPULATE), 0);
    assert_int_equal(in_child(cover_by_tmpfs, SEEP_ROOM_POPULATE), 0);
}

/* The path of the folder has 1030 characters, of which the last 30 are in the
 * pattern. */
static int record_deep(enum seep_room_way way)
{
    char name[] = "ddddddddddddddddddddddddddddd/x.seep";
    char step[101] = "";
    char cut[sizeof(name)] = "";
    char at[1100];
    void *mapping;

    (void)way;
    memset(step, 'd', sizeof(step) - 1);
    if (chdir(folder) != 0) {
        return 1;
    }
    while (getcwd(at, sizeof(at)) != NULL && strlen(at) < 1000) {
        step[strlen(at) < 899 ? 99 : 999 - strlen(at)] = '\0';
        if (mkdir(step, 0700) != 0 || chdir(step) != 0) {
            return 2;
        }
    }
    *strchr(name, '/') = '\0';
    /* What is left of it where it is cut is there, too. */
    memcpy(cut, name, 1023 - 1001);
    if (strlen(at) != 1000 || mkdir(name, 0700) != 0 || mkdir(cut, 0700) != 0) {
        return 3;
    }
    name[strlen(name)] = '/';
    mapping = create_at(name, false);
    return mapping == NULL                                                  ? 4
           : has_all_of_the_disk(mapping, open(name, O_RDONLY | O_CLOEXEC)) ? 0
                                                                            : 5;
}

static void where_the_folder_has_too_long_a_path_no_floor_is_asked(void **state)
{
    (void)state;
    assert_int_equal(in_child(record_deep, SEEP_ROOM_POPULATE), 0);
}

/* It has the name of what is abandoned and its number, on another disk. */
static int abandon_beside_a_twin(enum seep_room_way way)
{
    struct stat ours;
    struct stat other = {0};

    (void)way;
    if (create(false) == NULL || stat(path(), &ours) != 0 ||
        !mount_tmpfs(DISK_KIB)) {
        return 1;
    }
    for (ino_t i = 0; i <= ours.st_ino && other.st_ino != ours.st_ino; i++) {
        unlink(path());
        close(open(path(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        stat(path(), &other);
    }
    if (other.st_ino != ours.st_ino) {
        return 77; /* Linux before 5.9 numbers the files of all tmpfs */
    }
    seep_region_abandon();
    return access(path(), F_OK) == 0 ? 0 : 2;
}

static void a_file_of_another_disk_is_not_what_is_abandoned(void **state)
{
    (void)state;
    assert_int_equal(in_child(abandon_beside_a_twin, SEEP_ROOM_POPULATE), 0);
}

static void before_a_filter_rings_are_made_whole_and_then_nothing(void **state)
{
    struct seep_view view;
    void *mapping;
    uint64_t steps;
    uint32_t last;

    (void)state;
    seep_place_floor.given = true;
    size_bytes = SEEP_LAYOUT_EXACT_BYTES / 4; /* not all is reserved */
    mapping = create(true);
    size_bytes = SEEP_LAYOUT_DEFAULT_BYTES;
    assert_non_null(mapping);
    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    last = view.series_capacity - 1;
    assert_false(seep_view_has(
        &view, view.rings, view.header->sections[SEEP_SECTION_RINGS].bytes));
    seep_room_restrict();
    assert_true(seep_view_has(&view, view.rings,
                              view.header->sections[SEEP_SECTION_RINGS].bytes));
    assert_true(seep_view_has(&view, &view.series[0], sizeof(view.series[0])));
    steps = counter(&view, SEEP_COUNT_ROOM_STEPS);
    assert_false(seep_view_reserve_entry(&view, SEEP_SECTION_SERIES, last));
    seep_room_restrict(); /* once is enough */
    assert_int_equal(counter(&view, SEEP_COUNT_ROOM_STEPS), steps);
    assert_int_equal(counter(&view, SEEP_COUNT_ROOM_REFUSED), 0);
    seep_region_drop(mapping, view.header->file_bytes);
    assert_int_equal(unlink(path()), 0);
}

/* As a hook does that a signal handler has left in a child: it was about to
 * ask for a page, and goes on. */
static void of_a_recording_that_is_gone_no_page_is_made(void **state)
{
    struct seep_view view;
    const struct seep_view_room *room;
    void *mapping;
    uint64_t bytes;
    uint64_t from;

    (void)state;
    seep_place_floor.given = true;
    mapping = create(false);
    assert_non_null(mapping);
    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    room = view.room;
    bytes = view.header->file_bytes;
    from = bytes - SEEP_PAGE_BYTES;
    assert_false(seep_view_has(&view, (char *)mapping + from, 1));
    assert_true(seep_region_replace(mapping, bytes));
    assert_false(room->reserve(&view, from, bytes, bytes));
    assert_false(seep_view_has(&view, (char *)mapping + from, 1));
    seep_region_drop(mapping, bytes);
    assert_false(room->reserve(&view, from, bytes, bytes));
    assert_int_equal(unlink(path()), 0);
}

static void what_lies_in_the_recording_is_known_by_its_address(void **state)
{
    struct seep_view other;
    char *mapping;
    uint64_t bytes;
    char *start = NULL;
    char *end = NULL;

    (void)state;
    seep_place_floor.given = true;
    mapping = create(false);
    assert_non_null(mapping);
    bytes = ((struct seep_rec_header *)mapping)->file_bytes;
    assert_false(seep_room_is_in(mapping - 8, 8, &start, &end));
    assert_false(seep_room_is_in(mapping + bytes, 8, &start, &end));
    assert_true(seep_room_is_in(mapping - 8, 9, &start, &end));
    assert_ptr_equal(start, mapping);
    assert_ptr_equal(end, mapping + bytes);
    assert_true(seep_room_is_in(mapping + bytes - 1, 8, &start, &end));
    /* What is in memory as a whole has no room to ask for. */
    assert_int_equal(empty_recording_make(&other), 0);
    seep_room_attach(&other);
    assert_null(other.room);
    empty_recording_free(&other);
    seep_region_drop(mapping, bytes);
    assert_false(seep_room_is_in(mapping, 8, &start, &end));
    assert_int_equal(unlink(path()), 0);
}

static void what_is_there_stays_as_it_is(void **state)
{
    struct seep_view view;
    void *mapping;

    (void)state;
    seep_place_floor.given = true;
    mapping = create(true);
    assert_non_null(mapping);
    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    seep_room_set_way(SEEP_ROOM_TOUCH);
    assert_true(seep_view_reserve_entry(&view, SEEP_SECTION_LIVE, 0));
    memset((void *)&view.live[0], 0x5a, sizeof(view.live[0]));
    assert_false(seep_view_has(&view, &view.live[1000], 1));
    assert_true(seep_view_reserve(&view, view.live, 1 << 20, view.live,
                                  sizeof(view.live[0]) * 1000));
    assert_int_equal(
        atomic_load_explicit(&view.live[0].address, memory_order_relaxed),
        UINT64_C(0x5a5a5a5a5a5a5a5a));
    seep_room_set_way(SEEP_ROOM_POPULATE);
    seep_region_drop(mapping, view.header->file_bytes);
    assert_int_equal(unlink(path()), 0);
}

static uint64_t pages_in_memory(void *mapping, uint64_t bytes)
{
    size_t count = bytes / SEEP_PAGE_BYTES;
    unsigned char *pages = calloc(count, 1);
    uint64_t found = 0;

    assert_non_null(pages);
    assert_int_equal(mincore(mapping, bytes, pages), 0);
    for (size_t i = 0; i < count; i++) {
        found += pages[i] & 1;
    }
    free(pages);
    return found;
}

/* On a disk; a tmpfs reads nothing. */
static void check_nothing_is_read_ahead(enum seep_room_way way)
{
    struct seep_view view;
    uint64_t bytes;
    void *mapping;

    seep_place_floor.given = true;
    seep_room_set_way(way);
    mapping = create(false);
    assert_non_null(mapping);
    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    bytes = view.header->file_bytes;
    assert_true(seep_view_reserve_entry(&view, SEEP_SECTION_STACKS, 0));
    assert_true(seep_view_reserve_entry(&view, SEEP_SECTION_LIVE, 0));
    memset((void *)&view.live[0], 1, sizeof(view.live[0]));
    assert_true(pages_in_memory(mapping, bytes) * SEEP_PAGE_BYTES <=
                blocks_on_disk());
    seep_room_set_way(SEEP_ROOM_POPULATE);
    seep_region_drop(mapping, bytes);
    assert_int_equal(unlink(path()), 0);
}

static void what_lies_around_a_new_page_is_not_read(void **state)
{
    (void)state;
    check_nothing_is_read_ahead(SEEP_ROOM_POPULATE);
    check_nothing_is_read_ahead(SEEP_ROOM_TOUCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        TEST(a_full_disk_is_a_refusal),
        TEST(a_full_disk_is_a_refusal_where_pages_are_touched),
        TEST(a_ring_without_a_page_is_not_waited_for),
        TEST(a_part_of_the_disk_is_left_to_others),
        TEST(a_disk_that_has_room_again_is_used_again),
        TEST(a_disk_that_stays_full_is_asked_ever_more_rarely),
        TEST(a_start_has_all_that_it_needs_or_leaves_nothing),
        TEST(another_disk_at_the_same_path_is_not_asked),
        TEST(where_the_folder_has_too_long_a_path_no_floor_is_asked),
        TEST(a_file_of_another_disk_is_not_what_is_abandoned),
        TEST(before_a_filter_rings_are_made_whole_and_then_nothing),
        TEST(of_a_recording_that_is_gone_no_page_is_made),
        TEST(what_lies_in_the_recording_is_known_by_its_address),
        TEST(what_is_there_stays_as_it_is),
        TEST(what_lies_around_a_new_page_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
