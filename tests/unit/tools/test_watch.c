/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which processes are sampled, and for how long. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "format/layout.h"
#include "read/follow.h"
#include "reader/process/sample.h"
#include "seep_test.h"

#define SECOND_NS UINT64_C(1000000000)
#define CHILDREN (SEEP_WATCH_LIMIT + 3)

/* The monotonic clock of this program goes on where a test would wait: the
 * linker is told to --wrap it. */
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static time_t skipped_s;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int error = __real_clock_gettime(clock, now);

    now->tv_sec += clock == CLOCK_MONOTONIC ? skipped_s : 0;
    return error;
}

struct fixture {
    char folder[64];
    struct seep_watch *watch;
    pid_t children[CHILDREN];
    size_t count;
};

static int open_fixture(void **state)
{
    static struct fixture fixture;

    memset(&fixture, 0, sizeof(fixture));
    skipped_s = 0;
    strcpy(fixture.folder, "/tmp/seep-watch-XXXXXX");
    *state = &fixture;
    return mkdtemp(fixture.folder) == NULL ||
                   seep_watch_open(&fixture.watch) < 0
               ? -1
               : 0;
}

static void end_child(struct fixture *fixture, size_t index)
{
    kill(fixture->children[index], SIGKILL);
    waitpid(fixture->children[index], NULL, 0);
    fixture->children[index] = 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    char command[128];

    for (size_t i = 0; i < fixture->count; i++) {
        if (fixture->children[i] != 0) {
            end_child(fixture, i);
        }
    }
    seep_watch_close(fixture->watch);
    snprintf(command, sizeof(command), "rm -r %s", fixture->folder);
    return system(command);
}

static pid_t start_child(struct fixture *fixture)
{
    pid_t pid = fork();

    if (pid == 0) {
        for (;;) {
            pause();
        }
    }
    assert_true(pid > 0);
    fixture->children[fixture->count++] = pid;
    return pid;
}

static const char *path_of(const struct fixture *fixture, const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
    return path;
}

/* A recording that @pid began @age_ns ago, with all that tells it apart. */
static void describe(struct seep_rec_header *header, pid_t pid, uint64_t age_ns)
{
    struct seep_target target;
    struct timespec now;
    struct stat space;

    clock_gettime(CLOCK_MONOTONIC, &now);
    assert_int_equal(seep_target_read(pid, &target), 0);
    assert_int_equal(stat("/proc/self/ns/pid", &space), 0);
    header->pid = (uint32_t)pid;
    header->process_start_clock = target.start_clock;
    header->pid_namespace = (uint64_t)space.st_ino;
    header->start_monotonic_ns =
        (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec - age_ns;
}

static void record(const struct fixture *fixture, const char *name, pid_t pid,
                   uint64_t age_ns, uint64_t clock_off)
{
    int fd = open(path_of(fixture, name), O_RDWR | O_CREAT | O_EXCL, 0600);

    assert_int_equal(ftruncate(fd, SEEP_LAYOUT_LEAST_BYTES), 0);
    struct seep_rec_header *header =
        mmap(NULL, SEEP_LAYOUT_LEAST_BYTES, PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(header, MAP_FAILED);
    assert_int_equal(
        seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, false, false, header), 0);
    describe(header, pid, age_ns);
    header->process_start_clock += clock_off;
    header->fixed_hash = seep_layout_fixed_hash(header);
    seep_layout_start(header);
    atomic_store_explicit(&header->ready, SEEP_PUBLISHED, memory_order_relaxed);
    munmap(header, SEEP_LAYOUT_LEAST_BYTES);
    close(fd);
}

static void add(const struct fixture *fixture, const char *name)
{
    assert_int_equal(seep_watch_add(fixture->watch, path_of(fixture, name)), 0);
}

/* Let all that are due have their turn, though each is followed by a rest. */
static void attend(const struct fixture *fixture, int turns)
{
    struct timespec rest = {.tv_nsec = 1000000};

    while (turns > 0 && seep_watch_attend(fixture->watch) < SECOND_NS / 2) {
        nanosleep(&rest, NULL);
        turns--;
    }
}

static size_t sample_count(const struct fixture *fixture, const char *name)
{
    struct seep_external_samples samples = {0};
    size_t count = 0;

    if (seep_external_samples_read(path_of(fixture, name), &samples) == 0) {
        count = samples.count;
        seep_external_samples_fini(&samples);
    }
    return count;
}

static void a_recorded_process_is_looked_at(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 2 * SECOND_NS, 0);
    add(fixture, "a");
    add(fixture, "a");

    uint64_t pause_ns = seep_watch_attend(fixture->watch);

    assert_int_equal(sample_count(fixture, "a"), 1);
    assert_true(pause_ns > SECOND_NS / 2 && pause_ns < 100 * SECOND_NS);
}

static void a_young_one_is_given_a_second(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 0, 0);
    add(fixture, "a");

    uint64_t pause_ns = seep_watch_attend(fixture->watch);

    assert_true(pause_ns <= SECOND_NS);
    assert_int_equal(sample_count(fixture, "a"), 0);
}

static void another_process_of_that_number_is_not(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 2 * SECOND_NS, 1);
    add(fixture, "a");

    assert_true(seep_watch_attend(fixture->watch) == UINT64_MAX);
    assert_int_equal(sample_count(fixture, "a"), 0);
}

static void what_is_no_recording_is_given_up(void **state)
{
    struct fixture *fixture = *state;
    FILE *file = fopen(path_of(fixture, "a"), "w");

    assert_non_null(file);
    fputs("no recording\n", file);
    fclose(file);
    for (int i = 0; i < 10; i++) {
        add(fixture, "a");
    }

    assert_true(seep_watch_attend(fixture->watch) == UINT64_MAX);
}

static void one_that_was_in_the_making_is_tried_again(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a");
    record(fixture, "a", start_child(fixture), 2 * SECOND_NS, 0);
    add(fixture, "a");
    seep_watch_attend(fixture->watch);

    assert_int_equal(sample_count(fixture, "a"), 1);
}

/* An exec keeps the process; its recording is another one. */
static void of_two_images_the_later_is_looked_at(void **state)
{
    struct fixture *fixture = *state;
    pid_t pid = start_child(fixture);

    record(fixture, "new", pid, 2 * SECOND_NS, 0);
    record(fixture, "old", pid, 5 * SECOND_NS, 0);
    record(fixture, "newest", pid, 3 * SECOND_NS / 2, 0);
    add(fixture, "new");
    add(fixture, "old");
    add(fixture, "newest");
    attend(fixture, 1000);

    assert_int_equal(sample_count(fixture, "old"), 0);
    assert_int_equal(sample_count(fixture, "new"), 0);
    assert_int_equal(sample_count(fixture, "newest"), 1);
}

static void one_that_ended_keeps_its_looks(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 2 * SECOND_NS, 0);
    add(fixture, "a");
    seep_watch_attend(fixture->watch);
    end_child(fixture, 0);
    skipped_s += 2;
    attend(fixture, 1000);

    assert_true(seep_watch_attend(fixture->watch) == UINT64_MAX);
    assert_int_equal(sample_count(fixture, "a"), 1);
}

static void looks_that_are_there_are_gone_on_with(void **state)
{
    struct fixture *fixture = *state;
    struct seep_external_samples samples = {0};
    struct seep_external_sample sample = {.t_s = 0.5};

    record(fixture, "a", start_child(fixture), 2 * SECOND_NS, 0);
    assert_int_equal(seep_external_samples_add(&samples, &sample), 0);
    assert_int_equal(
        seep_external_samples_write(path_of(fixture, "a"), &samples), 0);
    seep_external_samples_fini(&samples);

    add(fixture, "a");
    seep_watch_attend(fixture->watch);

    assert_int_equal(sample_count(fixture, "a"), 2);
}

static void a_recording_that_was_removed_gets_no_looks(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 2 * SECOND_NS, 0);
    add(fixture, "a");
    assert_int_equal(unlink(path_of(fixture, "a")), 0);

    assert_true(seep_watch_attend(fixture->watch) == UINT64_MAX);
    assert_int_equal(sample_count(fixture, "a"), 0);
}

static size_t looked_at(const struct fixture *fixture)
{
    size_t count = 0;

    for (size_t i = 0; i < CHILDREN; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%zu", i);
        count += sample_count(fixture, name) > 0;
    }
    return count;
}

static void add_all(const struct fixture *fixture)
{
    for (size_t i = 0; i < CHILDREN; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%zu", i);
        add(fixture, name);
    }
}

/* A look that took long on a busy machine is followed by a rest of more than
 * half a second: those are passed by. */
static void attend_until(const struct fixture *fixture, size_t count)
{
    for (int i = 0; i < 30 && looked_at(fixture) < count; i++) {
        attend(fixture, 20000);
        skipped_s++;
    }
    attend(fixture, 20000);
}

static void more_than_the_limit_wait_for_room(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < CHILDREN; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%zu", i);
        record(fixture, name, start_child(fixture), 100 * SECOND_NS, 0);
    }
    add_all(fixture);
    attend_until(fixture, SEEP_WATCH_LIMIT);
    assert_int_equal(looked_at(fixture), SEEP_WATCH_LIMIT);

    for (size_t i = 0; i < 10; i++) {
        end_child(fixture, i);
    }
    skipped_s += 12; /* they are due, and seen to have ended */
    attend(fixture, 20000);
    add_all(fixture);
    attend_until(fixture, CHILDREN);
    assert_int_equal(looked_at(fixture), CHILDREN);
}

#define TEST(name) \
    cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_recorded_process_is_looked_at),
        TEST(a_young_one_is_given_a_second),
        TEST(another_process_of_that_number_is_not),
        TEST(what_is_no_recording_is_given_up),
        TEST(one_that_was_in_the_making_is_tried_again),
        TEST(of_two_images_the_later_is_looked_at),
        TEST(one_that_ended_keeps_its_looks),
        TEST(looks_that_are_there_are_gone_on_with),
        TEST(a_recording_that_was_removed_gets_no_looks),
        TEST(more_than_the_limit_wait_for_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
