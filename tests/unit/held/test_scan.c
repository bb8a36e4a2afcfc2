/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What passes over the memory of a process read, and what they find.
 *
 * Invariant: the process is a child of ours with the same addresses, which
 * changes nothing but when it is told to.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held/memory.h"
#include "seep_test.h"

#define PAGES 40960U /* 160 MiB: of less nothing is noted */
#define PAGE_WORDS (SEEP_HELD_PAGE_BYTES / sizeof(uint64_t))
#define KEEPER 5000U /* the page that points to the last one, */
#define OTHER 9000U  /* and one that will */
#define LAST (PAGES - 1)

struct fixture {
    uint64_t (*pages)[PAGE_WORDS];
    int pipe[2];
    int back[2];
    pid_t child;
    struct seep_held_memory memory;
    struct seep_held_scan scan;
};

static uint64_t address_of(const struct fixture *f, size_t page)
{
    return (uintptr_t)f->pages[page];
}

/* All words of a page point to the page. */
static void fill(struct fixture *f)
{
    for (size_t i = 0; i < PAGES; i++) {
        for (size_t k = 0; k < PAGE_WORDS; k++) {
            f->pages[i][k] = address_of(f, i) + k;
        }
    }
    f->pages[KEEPER][7] = address_of(f, LAST);
    memset(f->pages[LAST], 0, SEEP_HELD_PAGE_BYTES);
}

static void *map(void *at, size_t pages, int flags)
{
    return mmap(at, pages * SEEP_HELD_PAGE_BYTES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

static void live(struct fixture *f)
{
    char told;

    munmap(f->pages[PAGES], SEEP_HELD_PAGE_BYTES);
    fill(f);
    while (write(f->back[1], "r", 1) == 1 && read(f->pipe[0], &told, 1) == 1) {
        if (told == 'g') {
            map(f->pages[PAGES], 1, MAP_FIXED);
        } else {
            f->pages[OTHER][3] = address_of(f, LAST);
        }
    }
    _exit(0);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct seep_held_source source = {0};
    char ready;

    assert_non_null(f);
    /* And one to grow by. */
    f->pages = map(NULL, PAGES + 1, 0);
    assert_true((void *)f->pages != MAP_FAILED);
    assert_int_equal(pipe2(f->pipe, O_CLOEXEC), 0);
    assert_int_equal(pipe2(f->back, O_CLOEXEC), 0);
    f->child = fork();
    assert_true(f->child >= 0);
    if (f->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        live(f);
    }
    assert_int_equal(read(f->back[0], &ready, 1), 1);
    source.pid = f->child;
    assert_int_equal(seep_held_memory_open(&source, &f->memory), 0);
    f->scan.may_pass_over = true;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    seep_held_scan_fini(&f->scan);
    seep_held_memory_close(&f->memory);
    if (waitpid(f->child, NULL, WNOHANG) == 0) {
        kill(f->child, SIGKILL);
        waitpid(f->child, NULL, 0);
    }
    munmap(f->pages, (size_t)(PAGES + 1) * SEEP_HELD_PAGE_BYTES);
    for (size_t i = 0; i < 2; i++) {
        close(f->pipe[i]);
        close(f->back[i]);
    }
    free(f);
    return 0;
}

static void tell(struct fixture *f, const char *what)
{
    char ready;

    assert_int_equal(write(f->pipe[1], what, 1), 1);
    assert_int_equal(read(f->back[0], &ready, 1), 1);
}

static void change(struct fixture *f)
{
    tell(f, "c");
}

/* Look for [start, end). @return bytes that were read for it */
static uint64_t look_for(struct fixture *f, uint64_t start, uint64_t end)
{
    uint64_t before = f->memory.stats.read_bytes;

    seep_held_scan_clear(&f->scan);
    assert_int_equal(seep_held_scan_add(&f->scan, start, end, 0), 0);
    assert_int_equal(seep_held_scan_run(&f->scan, &f->memory), 0);
    return f->memory.stats.read_bytes - before;
}

static uint64_t look_for_page(struct fixture *f, size_t page)
{
    return look_for(f, address_of(f, page),
                    address_of(f, page) + SEEP_HELD_PAGE_BYTES);
}

static size_t count_between(const struct fixture *f, size_t page, size_t end)
{
    size_t count = 0;

    for (size_t i = 0; i < f->scan.hit_count; i++) {
        uint64_t at = f->scan.hits[i].at;

        count += at >= address_of(f, page) && at < address_of(f, end);
    }
    return count;
}

static bool is_found_in(const struct fixture *f, size_t page)
{
    return count_between(f, page, page + 1) > 0;
}

/* In the pages alone: the child's heap is a copy of ours, which has words of
 * the test before about pages that were at the same place. */
static size_t count_hits(const struct fixture *f)
{
    return count_between(f, 0, PAGES);
}

static void a_pass_reads_pages_that_may_point_there(void **state)
{
    struct fixture *f = *state;
    uint64_t all = look_for_page(f, LAST);
    uint64_t some;

    assert_true(all > (uint64_t)(PAGES - 2) * SEEP_HELD_PAGE_BYTES);
    assert_int_equal(count_hits(f), 1);
    assert_false(f->scan.has_passed_over);

    some = look_for_page(f, LAST);
    assert_true(some < all / 16);
    assert_true(f->scan.has_passed_over);
    assert_int_equal(count_hits(f), 1);
    assert_true(is_found_in(f, KEEPER));

    some = look_for_page(f, 100);
    assert_true(some < all / 16);
    assert_int_equal(count_hits(f), PAGE_WORDS);
}

static void all_pages_are_read_where_it_is_not_said(void **state)
{
    struct fixture *f = *state;
    uint64_t all = look_for_page(f, LAST);

    change(f);
    look_for_page(f, LAST);
    assert_false(is_found_in(f, OTHER));

    f->scan.may_pass_over = false;
    assert_true(look_for_page(f, LAST) > all / 2);
    assert_int_equal(count_hits(f), 2);
    assert_true(is_found_in(f, OTHER));
}

static void what_is_looked_for_in_many_places_is_read_all(void **state)
{
    struct fixture *f = *state;
    uint64_t all = look_for_page(f, LAST);

    assert_true(look_for(f, address_of(f, 0), address_of(f, PAGES)) > all / 2);
    assert_false(f->scan.has_passed_over);
    assert_true(count_hits(f) > PAGES);
}

static void what_is_known_of_pages_ends_with_their_mapping(void **state)
{
    struct fixture *f = *state;
    uint64_t all = look_for_page(f, LAST);

    assert_true(f->memory.points_bytes > 0);
    assert_int_equal(seep_held_memory_extend(&f->memory), 0);
    assert_true(f->memory.points_bytes > 0);
    assert_true(look_for_page(f, LAST) < all / 16);

    assert_int_equal(seep_held_memory_reload(&f->memory), 0);
    assert_int_equal(f->memory.points_bytes, 0);
    f->scan.has_passed_over = false;
    assert_true(look_for_page(f, LAST) > all / 2);
    assert_false(f->scan.has_passed_over);
    assert_true(is_found_in(f, KEEPER));
}

/* A heap grows while it is looked at, and is most of what there is. */
static void what_is_known_of_pages_stays_if_their_mapping_grows(void **state)
{
    struct fixture *f = *state;
    uint64_t all = look_for_page(f, LAST);

    tell(f, "g");
    assert_int_equal(seep_held_memory_extend(&f->memory), 0);
    assert_non_null(seep_held_map_at(&f->memory, address_of(f, PAGES)));
    assert_ptr_equal(seep_held_map_at(&f->memory, address_of(f, PAGES)),
                     seep_held_map_at(&f->memory, address_of(f, 0)));
    assert_true(look_for_page(f, LAST) < all / 16);
    assert_true(is_found_in(f, KEEPER));
    assert_int_equal(seep_held_memory_reload(&f->memory), 0);
    assert_int_equal(f->memory.points_bytes, 0);
}

/* What nobody can say of a page is not that it is empty: then nobody would hold
 * anything. */
static void of_who_is_gone_no_page_is_empty(void **state)
{
    struct fixture *f = *state;
    uint64_t at = address_of(f, LAST);
    uint64_t word = 1;

    assert_int_equal(kill(f->child, SIGKILL), 0);
    assert_int_equal(waitpid(f->child, NULL, 0), f->child);
    assert_false(seep_held_read(&f->memory, at, &word, sizeof(word)));
    assert_int_equal(word, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pass_reads_pages_that_may_point_there,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_who_is_gone_no_page_is_empty, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(all_pages_are_read_where_it_is_not_said,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_looked_for_in_many_places_is_read_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_known_of_pages_ends_with_their_mapping, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_known_of_pages_stays_if_their_mapping_grows, set_up,
            tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
