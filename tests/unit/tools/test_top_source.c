/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/top_source: reports that a thread reads, and another looks at.
 * What is freed too early or raced for, the sanitizers tell. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/layout.h"
#include "read/follow.h"
#include "reader/process/cgroup.h"
#include "seep_test.h"
#include "top/top.h"

#define LIMIT_MS 30000
#define LONG_S 300.0

struct fixture {
    char folder[64];
    char path[80];
    char *words[1];
    struct seep_top_source *source;
};

/* A recording of this very process, so that it is read again and again. */
static void record(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    struct seep_target target;
    struct stat space;
    char boot[64];

    assert_int_equal(ftruncate(fd, SEEP_LAYOUT_LEAST_BYTES), 0);
    struct seep_rec_header *header =
        mmap(NULL, SEEP_LAYOUT_LEAST_BYTES, PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(header, MAP_FAILED);
    assert_int_equal(
        seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, false, false, header), 0);
    assert_true(seep_proc_text("/proc/sys/kernel/random/boot_id", boot,
                               sizeof(boot)) > 0);
    boot[strcspn(boot, "\n")] = '\0';
    memcpy(header->boot_id, boot, strlen(boot) + 1);
    assert_int_equal(seep_target_read(getpid(), &target), 0);
    assert_int_equal(stat("/proc/self/ns/pid", &space), 0);
    header->pid = (uint32_t)getpid();
    header->process_start_clock = target.start_clock;
    header->pid_namespace = (uint64_t)space.st_ino;
    header->start_realtime_ns = 1;
    header->fixed_hash = seep_layout_fixed_hash(header);
    seep_layout_start(header);
    atomic_store_explicit(&header->ready, SEEP_PUBLISHED, memory_order_relaxed);
    munmap(header, SEEP_LAYOUT_LEAST_BYTES);
    close(fd);
}

static int open_fixture(void **state)
{
    static struct fixture fixture;
    const struct seep_report_options options = {.by = SEEP_BY_LINE};

    memset(&fixture, 0, sizeof(fixture));
    strcpy(fixture.folder, "/tmp/seep-top-XXXXXX");
    if (mkdtemp(fixture.folder) == NULL) {
        return -1;
    }
    snprintf(fixture.path, sizeof(fixture.path), "%s/a.seep", fixture.folder);
    record(fixture.path);
    fixture.words[0] = fixture.folder;
    *state = &fixture;
    return seep_top_source_open(fixture.words, 1, &options, false, LONG_S,
                                &fixture.source);
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;

    unlink(fixture->path);
    rmdir(fixture->folder);
    return 0;
}

static bool is_there(const struct fixture *fixture, int limit_ms)
{
    struct pollfd fd = {.fd = seep_top_source_fd(fixture->source),
                        .events = POLLIN};

    return poll(&fd, 1, limit_ms) == 1;
}

static const struct seep_top_shot *next(struct fixture *fixture)
{
    assert_true(is_there(fixture, LIMIT_MS));
    const struct seep_top_shot *shot = seep_top_source_take(fixture->source);
    assert_non_null(shot);
    return shot;
}

static void a_reading_is_handed_over_once(void **state)
{
    struct fixture *fixture = *state;
    const struct seep_top_shot *shot = next(fixture);

    assert_int_equal(shot->count, 1);
    assert_int_equal(shot->reports[0]->pid, getpid());
    assert_string_equal(shot->reports[0]->path, fixture->path);
    assert_string_equal(shot->notice, "");
    assert_false(is_there(fixture, 0));
    assert_null(seep_top_source_take(fixture->source));
    assert_int_equal(seep_top_source_close(fixture->source), 0);
}

static void what_was_taken_stays_while_more_is_read(void **state)
{
    struct fixture *fixture = *state;
    const struct seep_top_shot *shot = next(fixture);

    for (int i = 0; i < 3; i++) {
        seep_top_source_set(fixture->source, LONG_S, false, true);
        assert_true(is_there(fixture, LIMIT_MS));
        usleep(20000); /* one reading more or less is no matter */
        assert_string_equal(shot->reports[0]->path, fixture->path);
    }
    const struct seep_report *old = shot->reports[0];
    shot = next(fixture);
    assert_string_equal(old->path, fixture->path);
    assert_string_equal(shot->reports[0]->path, fixture->path);
    assert_int_equal(seep_top_source_close(fixture->source), 0);
}

static void what_nobody_took_is_closed_with_it(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < 3; i++) {
        seep_top_source_set(fixture->source, LONG_S, false, true);
        usleep(20000);
    }
    assert_int_equal(seep_top_source_close(fixture->source), 0);
}

static void in_a_pause_nothing_is_read_unless_asked_for(void **state)
{
    struct fixture *fixture = *state;

    next(fixture);
    seep_top_source_set(fixture->source, 0.01, true, false);
    usleep(50000);
    seep_top_source_take(fixture->source);
    assert_false(is_there(fixture, 200));
    seep_top_source_set(fixture->source, 0.01, true, true);
    next(fixture);
    assert_int_equal(seep_top_source_close(fixture->source), 0);
}

static void a_recording_that_goes_is_no_longer_among_them(void **state)
{
    struct fixture *fixture = *state;
    const struct seep_top_shot *shot = next(fixture);
    const struct seep_report *old = shot->reports[0];

    unlink(fixture->path);
    seep_top_source_set(fixture->source, LONG_S, false, true);
    shot = next(fixture);
    assert_int_equal(shot->count, 0);
    assert_string_equal(old->path, fixture->path); /* until the next one */
    assert_int_equal(seep_top_source_close(fixture->source), 0);
}

static void what_cannot_be_read_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    const struct seep_top_shot *shot = next(fixture);

    assert_int_equal(truncate(fixture->path, 4096), 0);
    seep_top_source_set(fixture->source, LONG_S, false, true);
    shot = next(fixture);
    assert_int_equal(shot->count, 1);
    assert_non_null(strstr(shot->notice, "a.seep: "));
    assert_int_equal(seep_top_source_close(fixture->source), 0);
}

#define WITH_SOURCE(test) \
    cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SOURCE(a_reading_is_handed_over_once),
        WITH_SOURCE(what_was_taken_stays_while_more_is_read),
        WITH_SOURCE(what_nobody_took_is_closed_with_it),
        WITH_SOURCE(in_a_pause_nothing_is_read_unless_asked_for),
        WITH_SOURCE(a_recording_that_goes_is_no_longer_among_them),
        WITH_SOURCE(what_cannot_be_read_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
