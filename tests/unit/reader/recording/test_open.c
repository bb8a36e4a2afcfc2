/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is not a recording is refused with a reason, and at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/layout.h"
#include "reader/report/report.h"
#include "recording_builder.h"

struct fixture {
    char folder[64];
    char path[96];
    struct recording_builder builder;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->folder, sizeof(f->folder), "/tmp/seep-test-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof(f->path), "%s/a.seep", f->folder);
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, false);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    builder_fini(&f->builder);
    unlink(f->path);
    rmdir(f->folder);
    free(f);
    return 0;
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

static void refused(const char *path, int error, const char *reason)
{
    struct seep_refusal refusal = {.error = 0};
    struct seep_report *report = NULL;

    assert_int_equal(seep_report_open(path, NULL, &refusal, &report), error);
    assert_null(report);
    assert_int_equal(refusal.error, error);
    assert_non_null(strstr(refusal.reason, reason));
    assert_true(refusal.remedy[0] != '\0');
    assert_int_equal(seep_report_open(path, NULL, NULL, &report), error);
}

static void what_is_missing_is_said_to_be(void **state)
{
    struct fixture *f = *state;

    refused(f->path, -ENOENT, "does not exist");
}

static void a_fifo_without_a_writer_does_not_block(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mkfifo(f->path, 0600), 0);
    refused(f->path, -ESPIPE, "FIFO");
}

static void a_directory_and_a_device_are_refused(void **state)
{
    struct fixture *f = *state;

    refused(f->folder, -EISDIR, "directory");
    refused("/dev/zero", -ENXIO, "device");
}

static void an_empty_file_is_refused(void **state)
{
    struct fixture *f = *state;

    write_bytes(f->path, "", 0);
    refused(f->path, -EBADMSG, "empty");
}

static void another_file_is_refused(void **state)
{
    struct fixture *f = *state;

    write_bytes(f->path, "#!/bin/sh\n", 10);
    refused(f->path, -EPROTO, "is not a seep recording");
    write_bytes(f->path, "x", 1);
    refused(f->path, -EPROTO, "is not a seep recording");
}

static void every_shorter_length_is_truncated(void **state)
{
    struct fixture *f = *state;
    static const size_t lengths[] = {1, 7, 8, 100, 4095, 4096, 4097, 65536};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        write_bytes(f->path, f->builder.bytes, lengths[i]);
        refused(f->path, -EBADMSG, "is truncated");
    }
    write_bytes(f->path, f->builder.bytes, f->builder.size_bytes - 1);
    refused(f->path, -EBADMSG, "is truncated");
}

/* With whatever hash that format has. */
static void refused_as(struct fixture *f, uint32_t format, const char *reason)
{
    f->builder.view.header->format_major = format;
    f->builder.view.header->fixed_hash++;
    builder_write(&f->builder, f->path);
    refused(f->path, -EPROTO, reason);
}

static void another_format_is_refused_with_its_number(void **state)
{
    struct fixture *f = *state;
    char this[64];
    char reason[160];

    snprintf(this, sizeof(this), "; this seep reads format %u",
             SEEP_FORMAT_MAJOR);
    f->builder.view.header->seep_version = 0;
    for (uint32_t format = 1; format < SEEP_FORMAT_MAJOR; format++) {
        snprintf(reason, sizeof(reason), "has the older format %u%s", format,
                 this);
        refused_as(f, format, reason);
    }
    snprintf(reason, sizeof(reason), "has the newer format %u%s",
             SEEP_FORMAT_MAJOR + 1, this);
    refused_as(f, SEEP_FORMAT_MAJOR + 1, reason);
    f->builder.view.header->format_major = 0; /* there was none */
    builder_write(&f->builder, f->path);
    refused(f->path, -EBADMSG, "damaged");
}

static void who_wrote_another_format_is_told_if_it_is_known(void **state)
{
    struct fixture *f = *state;
    static const char *const versions[] = {"0.1.0", "12.3", "1.0.0-rc.2"};
    static const char *const others[] = {
        "",
        "5",
        "python3",
        "0.1.0\033[2J",
        "1.0 of mine",
        "1.11111111111111111111111111111111111111111111111111111111111111"};
    struct seep_rec_header *header = f->builder.view.header;
    char reason[160];

    for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
        header->seep_version = builder_string(&f->builder, versions[i]);
        snprintf(reason, sizeof(reason),
                 "has the older format 1, of seep %s; "
                 "this seep reads",
                 versions[i]);
        refused_as(f, 1, reason);
    }
    for (size_t i = 0; i + 1 < sizeof(others) / sizeof(*others); i++) {
        header->seep_version = builder_string(&f->builder, others[i]);
        refused_as(f, 1, "has the older format 1; this seep reads");
    }
    header->seep_version = UINT32_MAX;
    refused_as(f, 1, "has the older format 1; this seep reads");
    header->sections[SEEP_SECTION_STRINGS].offset_bytes = UINT64_MAX - 5;
    refused_as(f, 1, "has the older format 1; this seep reads");
}

static void a_header_that_does_not_match_its_hash_is_damaged(void **state)
{
    struct fixture *f = *state;

    f->builder.view.header->pid++;
    builder_write(&f->builder, f->path);
    refused(f->path, -EBADMSG, "damaged");
}

static void one_that_was_never_finished_is_refused(void **state)
{
    struct fixture *f = *state;

    atomic_store_explicit(&f->builder.view.header->ready, 0,
                          memory_order_relaxed);
    builder_write(&f->builder, f->path);
    refused(f->path, -EBADMSG, "never finished");
}

static void a_file_means_itself_and_a_folder_its_recordings(void **state)
{
    struct fixture *f = *state;
    char other[96];
    char hidden[96];
    char **paths = NULL;
    struct seep_refusal refusal = {.error = 0};

    assert_int_equal(seep_report_list(f->folder, &refusal, &paths), -ENOENT);
    assert_non_null(strstr(refusal.reason, "contains no recordings"));

    snprintf(other, sizeof(other), "%s/B.seep", f->folder);
    snprintf(hidden, sizeof(hidden), "%s/.seep", f->folder);
    write_bytes(f->path, "", 0);
    write_bytes(other, "", 0);
    write_bytes(hidden, "", 0);
    assert_int_equal(seep_report_list(f->folder, &refusal, &paths), 0);
    assert_string_equal(paths[0], other);
    assert_string_equal(paths[1], f->path);
    assert_null(paths[2]);
    seep_report_list_free(paths);

    assert_int_equal(seep_report_list(hidden, &refusal, &paths), 0);
    assert_string_equal(paths[0], hidden);
    seep_report_list_free(paths);
    unlink(other);
    unlink(hidden);
    assert_int_equal(seep_report_list("/no/such", &refusal, &paths), -ENOENT);
}

static void what_lies_beside_one_that_is_given_is_no_recording(void **state)
{
    char *const paths[] = {"a.seep", "a.seep.held", "a.seep.looks",
                           "b.seep.looks", "b.see"};
    const bool is_beside[] = {false, true, true, false, false};
    const size_t count = sizeof(paths) / sizeof(paths[0]);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(seep_report_is_beside(paths, count, i), is_beside[i]);
    }
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(what_is_missing_is_said_to_be),
        WITH(a_fifo_without_a_writer_does_not_block),
        WITH(a_directory_and_a_device_are_refused),
        WITH(an_empty_file_is_refused),
        WITH(another_file_is_refused),
        WITH(every_shorter_length_is_truncated),
        WITH(another_format_is_refused_with_its_number),
        WITH(who_wrote_another_format_is_told_if_it_is_known),
        WITH(a_header_that_does_not_match_its_hash_is_damaged),
        WITH(one_that_was_never_finished_is_refused),
        WITH(a_file_means_itself_and_a_folder_its_recordings),
        cmocka_unit_test(what_lies_beside_one_that_is_given_is_no_recording),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
