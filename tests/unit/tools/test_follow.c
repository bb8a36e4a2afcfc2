/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which recordings are followed, read anew, kept and forgotten. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/word.h"
#include "format/layout.h"
#include "read/follow.h"
#include "reader/process/cgroup.h"
#include "seep_test.h"

#define SECOND_NS UINT64_C(1000000000)
#define CHILDREN 8

/* The clock of this program goes on where a test would wait: the linker is told
 * to --wrap it. */
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static time_t skipped_s;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int error = __real_clock_gettime(clock, now);

    now->tv_sec += clock == CLOCK_REALTIME ? skipped_s : 0;
    return error;
}

struct fixture {
    char folder[64];
    char *words[2];
    struct seep_follow *follow;
    pid_t children[CHILDREN];
    size_t count;
};

static int open_fixture(void **state)
{
    static struct fixture fixture;

    memset(&fixture, 0, sizeof(fixture));
    skipped_s = 0;
    strcpy(fixture.folder, "/tmp/seep-follow-XXXXXX");
    fixture.words[0] = fixture.folder;
    *state = &fixture;
    return mkdtemp(fixture.folder) == NULL ? -1 : 0;
}

static void end_child(struct fixture *fixture, size_t index)
{
    if (fixture->children[index] != 0) {
        kill(fixture->children[index], SIGKILL);
        waitpid(fixture->children[index], NULL, 0);
        fixture->children[index] = 0;
    }
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    char command[128];

    seep_follow_close(fixture->follow);
    for (size_t i = 0; i < fixture->count; i++) {
        end_child(fixture, i);
    }
    snprintf(command, sizeof(command), "rm -r %s", fixture->folder);
    return system(command);
}

static void follow(struct fixture *fixture, size_t limit, double keep_s)
{
    struct seep_follow_options options = {.limit = limit, .keep_s = keep_s};

    assert_int_equal(
        seep_follow_open(fixture->words, 1, &options, &fixture->follow), 0);
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

    snprintf(path, sizeof(path), "%s/%s.seep", fixture->folder, name);
    return path;
}

static uint64_t realtime_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* What tells the process @pid apart; 0: one that is no more. */
static void describe(struct seep_rec_header *header, pid_t pid)
{
    struct seep_target target = {.start_clock = 1};
    struct stat space;
    char boot[64];

    assert_true(seep_proc_text("/proc/sys/kernel/random/boot_id", boot,
                               sizeof(boot)) > 0);
    boot[strcspn(boot, "\n")] = '\0';
    memcpy(header->boot_id, boot, strlen(boot) + 1);
    if (pid != 0) {
        assert_int_equal(seep_target_read(pid, &target), 0);
    }
    assert_int_equal(stat("/proc/self/ns/pid", &space), 0);
    header->pid = pid != 0 ? (uint32_t)pid : 1;
    header->process_start_clock = target.start_clock + (pid == 0);
    header->pid_namespace = (uint64_t)space.st_ino;
}

/* The recording that @pid began @age_s ago. */
static void record(const struct fixture *fixture, const char *name, pid_t pid,
                   int age_s)
{
    int fd = open(path_of(fixture, name), O_RDWR | O_CREAT | O_EXCL, 0600);

    assert_int_equal(ftruncate(fd, SEEP_LAYOUT_LEAST_BYTES), 0);
    struct seep_rec_header *header =
        mmap(NULL, SEEP_LAYOUT_LEAST_BYTES, PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(header, MAP_FAILED);
    assert_int_equal(
        seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, false, false, header), 0);
    describe(header, pid);
    header->start_realtime_ns =
        realtime_ns() - (uint64_t)(int64_t)age_s * SECOND_NS;
    header->fixed_hash = seep_layout_fixed_hash(header);
    seep_layout_start(header);
    atomic_store_explicit(&header->ready, SEEP_PUBLISHED, memory_order_relaxed);
    munmap(header, SEEP_LAYOUT_LEAST_BYTES);
    close(fd);
}

static void forget_file(const struct fixture *fixture, const char *name)
{
    assert_int_equal(unlink(path_of(fixture, name)), 0);
}

static size_t refresh(const struct fixture *fixture)
{
    size_t count;

    assert_int_equal(seep_follow_refresh(fixture->follow, NULL, NULL), 0);
    seep_follow_list(fixture->follow, &count);
    return count;
}

static struct seep_follow_counts counts_of(const struct fixture *fixture)
{
    struct seep_follow_counts counts;

    seep_follow_counts(fixture->follow, &counts);
    return counts;
}

static const struct seep_followed *shown(const struct fixture *fixture,
                                         size_t index)
{
    size_t count;
    const struct seep_followed *const *list =
        seep_follow_list(fixture->follow, &count);

    assert_true(index < count);
    return list[index];
}

static void a_folder_may_be_empty_and_fill(void **state)
{
    struct fixture *fixture = *state;

    follow(fixture, 0, 60);
    assert_int_equal(refresh(fixture), 0);
    record(fixture, "a", start_child(fixture), 5);

    assert_int_equal(refresh(fixture), 1);
    assert_string_equal(shown(fixture, 0)->path, path_of(fixture, "a"));
    assert_false(shown(fixture, 0)->ended);
    assert_int_equal(shown(fixture, 0)->report->pid, fixture->children[0]);
}

static void one_that_lives_is_read_at_each_refresh(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 5);
    follow(fixture, 0, 60);
    for (int i = 0; i < 3; i++) {
        refresh(fixture);
    }

    assert_int_equal(counts_of(fixture).readings_ever, 3);
    assert_int_equal(counts_of(fixture).live, 1);
}

static void one_that_ended_is_read_once_more(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 5);
    follow(fixture, 0, 60);
    refresh(fixture);
    end_child(fixture, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(refresh(fixture), 1);
    }

    assert_int_equal(counts_of(fixture).readings_ever, 2);
    assert_true(shown(fixture, 0)->ended);
    assert_int_equal(shown(fixture, 0)->report->state, SEEP_STATE_GONE);
}

/* As `seep run` does when it has waited for it. */
static void put_status(const struct fixture *fixture, const char *name,
                       int status)
{
    int fd = open(path_of(fixture, name), O_RDWR);
    struct seep_rec_header *header =
        mmap(NULL, sizeof(*header), PROT_WRITE, MAP_SHARED, fd, 0);

    assert_ptr_not_equal(header, MAP_FAILED);
    seep_word_store(&header->status, (uint32_t)status);
    seep_word_store(&header->has_status, 1);
    munmap(header, sizeof(*header));
    close(fd);
}

static void how_one_ended_is_read_once_it_is_known(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 5);
    follow(fixture, 0, 60);
    end_child(fixture, 0);
    refresh(fixture);
    assert_false(shown(fixture, 0)->report->has_status);
    put_status(fixture, "a", SIGKILL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(refresh(fixture), 1);
    }

    assert_int_equal(counts_of(fixture).readings_ever, 2);
    assert_int_equal(shown(fixture, 0)->report->state, SEEP_STATE_KILLED);
    assert_int_equal(shown(fixture, 0)->report->status, SIGKILL);
}

static void one_that_ended_long_ago_is_forgotten(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 5);
    follow(fixture, 0, 0);
    assert_int_equal(refresh(fixture), 1);
    end_child(fixture, 0);
    refresh(fixture);

    assert_int_equal(refresh(fixture), 0);
    assert_int_equal(counts_of(fixture).forgotten_ever, 1);
}

static void one_that_ended_before_is_not_read_at_all(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", 0, 500);
    follow(fixture, 0, 60);

    assert_int_equal(refresh(fixture), 0);
    assert_int_equal(counts_of(fixture).readings_ever, 0);
}

static void one_that_claims_to_end_in_the_future_ended_now(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", 0, -500);
    follow(fixture, 0, 1);
    assert_int_equal(refresh(fixture), 1);
    skipped_s += 2;

    assert_int_equal(refresh(fixture), 0);
}

static void one_that_was_named_is_kept_for_ever(void **state)
{
    struct fixture *fixture = *state;
    char path[128];

    record(fixture, "a", 0, 500);
    strcpy(path, path_of(fixture, "a"));
    fixture->words[0] = path;
    follow(fixture, 0, 60);

    assert_int_equal(refresh(fixture), 1);
    assert_int_equal(refresh(fixture), 1);
    assert_int_equal(counts_of(fixture).readings_ever, 1);
    fixture->words[0] = fixture->folder;
}

static void a_file_that_was_replaced_is_another_recording(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 5);
    follow(fixture, 0, 60);
    refresh(fixture);
    uint64_t inode = shown(fixture, 0)->inode;
    record(fixture, "b", start_child(fixture), 1);
    char from[128];
    strcpy(from, path_of(fixture, "b"));
    assert_int_equal(rename(from, path_of(fixture, "a")), 0);

    assert_int_equal(refresh(fixture), 1);
    assert_int_equal(shown(fixture, 0)->report->pid, fixture->children[1]);
    assert_true(shown(fixture, 0)->inode != inode);
    assert_int_equal(counts_of(fixture).forgotten_ever, 1);
}

static void a_file_that_was_removed_is_let_go(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 5);
    follow(fixture, 0, INFINITY);
    refresh(fixture);
    forget_file(fixture, "a");

    assert_int_equal(refresh(fixture), 0);
    assert_int_equal(counts_of(fixture).live, 0);
}

static void of_too_many_those_that_live_and_are_young_are_kept(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "dead", 0, 1);
    record(fixture, "old", start_child(fixture), 50);
    record(fixture, "older", start_child(fixture), 500);
    record(fixture, "young", start_child(fixture), 5);
    follow(fixture, 2, 60);

    assert_int_equal(refresh(fixture), 2);
    assert_string_equal(shown(fixture, 0)->path, path_of(fixture, "young"));
    assert_string_equal(shown(fixture, 1)->path, path_of(fixture, "old"));
    assert_int_equal(counts_of(fixture).left_out, 2);
    end_child(fixture, 2);
    refresh(fixture);
    assert_string_equal(shown(fixture, 0)->path, path_of(fixture, "old"));
    assert_string_equal(shown(fixture, 1)->path, path_of(fixture, "older"));
}

static void what_is_no_recording_costs_no_other(void **state)
{
    struct fixture *fixture = *state;
    FILE *file = fopen(path_of(fixture, "b"), "w");

    assert_non_null(file);
    fputs("no recording\n", file);
    fclose(file);
    record(fixture, "a", start_child(fixture), 5);
    follow(fixture, 0, 60);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(refresh(fixture), 1);
    }

    assert_int_equal(counts_of(fixture).refused, 1);
}

static unsigned lasting_count;

static void count_told(const char *path, const struct seep_refusal *refusal)
{
    assert_non_null(path);
    assert_string_equal(refusal->reason, "is not a seep recording");
    lasting_count++;
}

static unsigned told(const struct fixture *fixture)
{
    lasting_count = 0;
    assert_int_equal(seep_follow_visit_refused(fixture->follow, count_told), 0);
    return lasting_count;
}

static void
a_refusal_counts_from_the_first_look_on_and_is_told_once(void **state)
{
    struct fixture *fixture = *state;
    FILE *file = fopen(path_of(fixture, "a"), "w");

    assert_non_null(file);
    fputs("no recording\n", file);
    fclose(file);
    follow(fixture, 0, 60);
    refresh(fixture);
    assert_int_equal(counts_of(fixture).refused, 1);
    assert_int_equal(told(fixture), 1);
    for (int i = 0; i < 5; i++) {
        refresh(fixture);
        assert_int_equal(counts_of(fixture).refused, 1);
        assert_int_equal(told(fixture), 0);
    }
}

static void what_ended_before_what_is_kept_is_counted(void **state)
{
    struct fixture *fixture = *state;

    record(fixture, "a", start_child(fixture), 5);
    follow(fixture, 0, 0);
    assert_int_equal(refresh(fixture), 1);
    assert_int_equal(counts_of(fixture).past, 0);
    end_child(fixture, 0);
    refresh(fixture);
    usleep(2000);
    assert_int_equal(refresh(fixture), 0);
    assert_int_equal(counts_of(fixture).past, 1);
}

static void one_in_the_making_is_tried_again(void **state)
{
    struct fixture *fixture = *state;
    FILE *file = fopen(path_of(fixture, "a"), "w");

    assert_non_null(file);
    fclose(file);
    follow(fixture, 0, 60);
    assert_int_equal(refresh(fixture), 0);
    forget_file(fixture, "a");
    record(fixture, "a", start_child(fixture), 1);

    assert_int_equal(refresh(fixture), 1);
}

static void a_word_that_means_nothing_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct seep_refusal refusal = {0};
    char missing[] = "/no/such/folder";
    const char *path = NULL;

    fixture->words[0] = missing;
    follow(fixture, 0, 60);

    assert_int_equal(seep_follow_refresh(fixture->follow, &refusal, &path),
                     -ENOENT);
    assert_string_equal(path, missing);
    assert_string_not_equal(refusal.reason, "");
    fixture->words[0] = fixture->folder;
}

/* A child with SEEP_OUT in its environment, as the kernel tells it. */
static pid_t start_recorded(struct fixture *fixture)
{
    char out[128];
    char *argv[] = {(char *)"sleep", (char *)"60", NULL};
    char *environment[] = {out, NULL};
    int ready[2];
    char byte;

    snprintf(out, sizeof(out), "SEEP_OUT=%s/x.%%p.seep", fixture->folder);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        execve("/bin/sleep", argv, environment);
        _exit(127);
    }
    close(ready[1]); /* the other end is closed by exec */
    assert_int_equal(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    fixture->children[fixture->count++] = pid;
    return pid;
}

static void a_process_is_found_by_its_number(void **state)
{
    struct fixture *fixture = *state;
    pid_t pid = start_recorded(fixture);
    char word[16];

    snprintf(word, sizeof(word), "%d", (int)pid);
    record(fixture, "x.1", pid, 5);
    record(fixture, "x.2", start_child(fixture), 5);
    record(fixture, "x.3", 0, 5);
    fixture->words[0] = word;
    follow(fixture, 0, 0);

    assert_int_equal(refresh(fixture), 1);
    assert_string_equal(shown(fixture, 0)->path, path_of(fixture, "x.1"));
    end_child(fixture, 0);
    assert_int_equal(seep_follow_refresh(fixture->follow, NULL, NULL), -ESRCH);
    assert_true(shown(fixture, 0)->ended);
    fixture->words[0] = fixture->folder;
}

static size_t descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;

    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static void hundreds_that_come_and_go_leave_nothing(void **state)
{
    struct fixture *fixture = *state;
    char name[16];

    follow(fixture, 4, 60);
    refresh(fixture);
    size_t before = descriptors();
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "%d", i);
        record(fixture, name, 0, 1);
        if (i >= 10) {
            snprintf(name, sizeof(name), "%d", i - 10);
            forget_file(fixture, name);
        }
        assert_true(refresh(fixture) <= 4);
    }

    assert_int_equal(descriptors(), before);
    assert_int_equal(counts_of(fixture).left_out, 6);
    assert_true(counts_of(fixture).readings_ever <= 300);
}

#define TEST(name) \
    cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_folder_may_be_empty_and_fill),
        TEST(one_that_lives_is_read_at_each_refresh),
        TEST(one_that_ended_is_read_once_more),
        TEST(how_one_ended_is_read_once_it_is_known),
        TEST(one_that_ended_long_ago_is_forgotten),
        TEST(one_that_ended_before_is_not_read_at_all),
        TEST(one_that_claims_to_end_in_the_future_ended_now),
        TEST(one_that_was_named_is_kept_for_ever),
        TEST(a_file_that_was_replaced_is_another_recording),
        TEST(a_file_that_was_removed_is_let_go),
        TEST(of_too_many_those_that_live_and_are_young_are_kept),
        TEST(what_is_no_recording_costs_no_other),
        TEST(a_refusal_counts_from_the_first_look_on_and_is_told_once),
        TEST(what_ended_before_what_is_kept_is_counted),
        TEST(one_in_the_making_is_tried_again),
        TEST(a_word_that_means_nothing_is_told),
        TEST(a_process_is_found_by_its_number),
        TEST(hundreds_that_come_and_go_leave_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
