/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recording that grows on a disk that is full: refused, counted, unharmed. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/place.h"
#include "format/layout.h"
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

/* A small disk of our own, in a name space of our own. @return false: this
 * user may not have one */
static bool mount_disk(void)
{
    char options[32];

    if (unshare(CLONE_NEWNS) != 0 &&
        unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        return false;
    }
    snprintf(options, sizeof(options), "size=%dk", DISK_KIB);
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("seep-test", folder, "tmpfs", 0, options) == 0;
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

static void *create(bool exact)
{
    static char pattern[256];
    static struct seep_rec_header header;
    struct seep_region_options options = {
        .pattern = pattern, .complete = complete, .is_wanted = is_wanted};
    void *mapping = NULL;

    memset((void *)&header, 0, sizeof(header));
    snprintf(pattern, sizeof(pattern), "%s/x.seep", folder);
    if (seep_layout_make(SEEP_LAYOUT_DEFAULT_BYTES, exact, false, &header) !=
            0 ||
        seep_region_create(&options, &header, &mapping) != 0) {
        return NULL;
    }
    return mapping;
}

static uint64_t counter(const struct seep_view *view, enum seep_counter which)
{
    return atomic_load_explicit(&view->counters[which], memory_order_relaxed);
}

static uint64_t blocks_on_disk(void)
{
    char path[256];
    struct stat status;

    snprintf(path, sizeof(path), "%s/x.seep", folder);
    return stat(path, &status) == 0 ? (uint64_t)status.st_blocks * 512 : 0;
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
    const struct timespec patience = {1, 200000000};
    char path[256];
    char zeros[4096] = "";
    struct seep_view view;
    void *mapping;
    uint32_t count;
    int fd;

    (void)way;
    seep_place_floor.given = true;
    snprintf(path, sizeof(path), "%s/other", folder);
    mapping = create(false);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (mapping == NULL || fd < 0) {
        return 1;
    }
    for (int i = 0; i < 100 && write(fd, zeros, sizeof(zeros)) > 0; i++) {
    }
    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    count = fill(&view, 0);
    close(fd);
    unlink(path);
    nanosleep(&patience, NULL);
    return fill(&view, count) > 20 ? 0 : 2;
}

static void a_disk_that_has_room_again_is_used_again(void **state)
{
    (void)state;
    assert_int_equal(in_child(grow_again, SEEP_ROOM_POPULATE), 0);
}

static void what_is_there_stays_as_it_is(void **state)
{
    char path[256];
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
    snprintf(path, sizeof(path), "%s/x.seep", folder);
    assert_int_equal(unlink(path), 0);
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
        TEST(what_is_there_stays_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
