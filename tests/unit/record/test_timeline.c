/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may take a moment, on a recording in memory. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/proc.h"
#include "base/thread.h"
#include "format/layout.h"
#include "format/live.h"
#include "format/view.h"
#include "record/timeline.h"

static struct seep_rec_header *recording;
static struct seep_view view;
static jmp_buf out;
static sigjmp_buf out_of_read;

static int set_up(void **state)
{
    struct seep_rec_header header = {0};

    (void)state;
    if (seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, true, false, &header) != 0) {
        return -1;
    }
    recording = calloc(1, header.file_bytes);
    if (recording == NULL) {
        return -1;
    }
    header.start_monotonic_ns = seep_clock_monotonic_ns();
    header.pid = (uint32_t)getpid();
    memcpy((void *)recording, (void *)&header, sizeof(header));
    seep_layout_start(recording);
    seep_view_init(&view, recording);
    seep_timeline_start();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    seep_timeline_set_allocator(NULL);
    free(recording);
    return 0;
}

static uint32_t own_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

static void *tell_id(void *argument)
{
    *(uint32_t *)argument = own_id();
    return NULL;
}

/* The number of a thread that is gone. */
static uint32_t gone_id(void)
{
    pthread_t thread;
    uint32_t id = 0;

    assert_int_equal(pthread_create(&thread, NULL, tell_id, &id), 0);
    pthread_join(thread, NULL);
    while (syscall(SYS_tgkill, getpid(), id, 0) == 0) {
        usleep(100);
    }
    return id;
}

static int jump_out(struct seep_timeline_figures *ret_figures)
{
    (void)ret_figures;
    longjmp(out, 1);
}

/* The moment of tick 1 is taken, and @id stays in it. */
static void stay_in_a_moment(uint32_t id)
{
    seep_timeline_set_allocator(jump_out);
    seep_timeline_take(&view, own_id(), 1);
    assert_true(seep_timeline_wants_allocator());
    if (setjmp(out) == 0) {
        seep_timeline_ask_allocator(&view, id, 1);
        fail();
    }
}

static bool takes_a_moment(uint32_t id, uint32_t tick)
{
    uint32_t index = tick >> SEEP_FIRST_WIDTH_LOG2;

    seep_timeline_take(&view, id, tick);
    return atomic_load_explicit(&view.timeline[index].tick,
                                memory_order_relaxed) != 0;
}

static void the_moments_go_on_when_a_thread_is_gone(void **state)
{
    (void)state;
    stay_in_a_moment(gone_id());
    assert_true(takes_a_moment(own_id(), 100));
    assert_false(seep_timeline_wants_allocator());
}

/* Its number may have been given to the next that comes. */
static void the_moments_go_on_with_the_number_of_one_gone(void **state)
{
    uint32_t id = own_id();

    (void)state;
    stay_in_a_moment(id);
    assert_true(takes_a_moment(id, 200));
}

static void a_moment_of_a_living_thread_is_its_own(void **state)
{
    (void)state;
    stay_in_a_moment(own_id());
    assert_false(takes_a_moment(own_id() + 1, 300));
    seep_timeline_recover(&view, own_id());
    assert_true(takes_a_moment(own_id() + 1, 301));
}

/* In a child: nobody gives its rights back. */
static void who_is_restricted_asks_no_allocator(void **state)
{
    pid_t child;
    int status;

    (void)state;
    seep_timeline_set_allocator(jump_out);
    seep_timeline_take(&view, own_id(), 1);
    assert_true(seep_timeline_wants_allocator());
    child = fork();
    if (child == 0) {
        seep_timeline_restrict();
        _exit(seep_timeline_wants_allocator() ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_process_that_is_restricted_asks_for_nobody(void **state)
{
    (void)state;
    stay_in_a_moment(gone_id());
    seep_timeline_restrict();
    assert_false(takes_a_moment(own_id(), 400));
}

static struct seep_rec_live *put_mapping(void *address, uint64_t size)
{
    struct seep_live live;
    struct seep_block block = {
        .address = (uintptr_t)address, .size = size, .site = 1};

    assert_true(seep_live_init(&live, &view, view.shard_count - 1));
    assert_true(seep_live_insert(&live, &block));
    return &live.entries[seep_live_find(&live, block.address)];
}

/* So much later that it is asked again, also where the machine was so busy that
 * asking was slow: then 16 times as late. */
static uint32_t much_later(uint32_t tick)
{
    return 2 * tick + 20000;
}

/* A small mapping is read whole, a large one in parts. */
static void a_mapping_is_as_large_as_what_was_touched_of_it(void **state)
{
    const size_t sizes[] = {1 << 20, (size_t)4 << 30};
    uint32_t tick = 2000;

    (void)state;
    view.sites[1].space = SEEP_SPACE_MAPPED;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        char *address =
            mmap(NULL, sizes[i], PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        struct seep_rec_live *entry;

        assert_ptr_not_equal(address, MAP_FAILED);
        madvise(address, sizes[i], MADV_NOHUGEPAGE);
        entry = put_mapping(address, sizes[i]);
        assert_true(seep_live_touched(entry->size_level) < 0);
        seep_timeline_take(&view, own_id(), tick);
        assert_true(seep_live_touched(entry->size_level) == 0);
        for (size_t at = 0; at < (1 << 20) / 4; at += 4096) {
            address[at] = 1;
        }
        seep_timeline_take(&view, own_id(), tick = much_later(tick));
        assert_true(fabs(seep_live_touched(entry->size_level) -
                         (i == 0 ? .25 : 0)) < .01);
        assert_int_equal(entry->size_level & SEEP_SIZE_MASK, sizes[i]);
        madvise(address, sizes[i], MADV_DONTNEED);
        seep_timeline_take(&view, own_id(), tick = much_later(tick));
        assert_true(seep_live_touched(entry->size_level) == 0);
        tick = much_later(tick);
        assert_int_equal(munmap(address, sizes[i]), 0);
    }
}

/* One that malloc() has mapped, of which nothing was written to: looked at once
 * it is a quarter of a second old, and a smaller one never. */
static void a_large_block_is_as_large_as_what_was_written_of_it(void **state)
{
    uint32_t tick = 1U << 20;
    char *address = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct seep_block large = {.address = (uintptr_t)address + 16,
                               .size = (1 << 20) - 4096,
                               .site = 2,
                               .birth_tick = tick - 100};
    struct seep_block small = {.address = 4096, .size = 4096, .site = 2};
    struct seep_rec_live *entry;
    struct seep_live live;

    (void)state;
    view.sites[2].space = SEEP_SPACE_HEAP;
    assert_ptr_not_equal(address, MAP_FAILED);
    madvise(address, 1 << 20, MADV_NOHUGEPAGE);
    assert_true(seep_live_init(&live, &view, 0));
    assert_true(seep_live_insert(&live, &large));
    assert_true(seep_live_insert(&live, &small));
    seep_timeline_take(&view, own_id(), tick);
    entry = &live.entries[seep_live_find(&live, large.address)];
    assert_true(seep_live_touched(entry->size_level) < 0);
    memset(address, 1, 1 << 18);
    seep_timeline_take(&view, own_id(), tick = much_later(tick));
    assert_true(fabs(seep_live_touched(entry->size_level) - .25) < .01);
    assert_int_equal(entry->size_level & SEEP_SIZE_MASK, large.size);
    entry = &live.entries[seep_live_find(&live, small.address)];
    assert_true(seep_live_touched(entry->size_level) < 0);
    assert_int_equal(munmap(address, 1 << 20), 0);
}

static void on_alarm(int number)
{
    (void)number;
    siglongjmp(out_of_read, 1);
}

/* Left in the read of @path by a jump. @return the descriptor that it had */
static int stay_in_a_read(const char *path)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval soon = {{0, 0}, {0, 20000}};
    char byte[2];
    int next = dup(0);

    close(next);
    sigaction(SIGALRM, &action, NULL);
    if (sigsetjmp(out_of_read, 1) == 0) {
        setitimer(ITIMER_REAL, &soon, NULL);
        seep_proc_read(path, byte, sizeof(byte));
        fail();
    }
    return next;
}

static void
a_number_that_the_program_was_given_again_stays_its_own(void **state)
{
    char path[] = "/tmp/seep-test-timeline-XXXXXX";
    int ours;
    int left;

    (void)state;
    assert_non_null(mkdtemp(path));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    ours = open(path, O_RDWR | O_CLOEXEC); /* so that a reader waits */
    assert_int_not_equal(ours, -1);
    left = stay_in_a_read(path);
    assert_int_equal(dup2(ours, left), left);
    seep_proc_close();
    assert_int_not_equal(fcntl(left, F_GETFD), -1);
    close(left);
    close(ours);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(the_moments_go_on_when_a_thread_is_gone),
        TEST(the_moments_go_on_with_the_number_of_one_gone),
        TEST(a_moment_of_a_living_thread_is_its_own),
        TEST(a_number_that_the_program_was_given_again_stays_its_own),
        TEST(who_is_restricted_asks_no_allocator),
        TEST(a_large_block_is_as_large_as_what_was_written_of_it),
        TEST(a_mapping_is_as_large_as_what_was_touched_of_it), /* for good: last
                                                                */
        TEST(a_process_that_is_restricted_asks_for_nobody), /* for good: last */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
