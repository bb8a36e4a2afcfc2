/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recording of very many call sites: the reader's memory has a bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/layout.h"
#include "reader/judge/sites.h"
#include "reader/recording/snapshot.h"
#include "reader/report/report.h"
#include "recording_builder.h"

#define SITES 60000U
#define LARGE_EVERY 100U
#define LARGE_BYTES (UINT64_C(1) << 20)
#define EXPANDED 25000U

static bool is_dead(const struct seep_rec_header *header)
{
    (void)header;
    return true;
}

/* Room for as many sites, and a series of each. */
static void lay_out(struct seep_rec_header *layout, uint32_t sites)
{
    assert_int_equal(
        seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, false, false, layout), 0);
    layout->sections[SEEP_SECTION_SITES].entry_count = sites + 1;
    layout->sections[SEEP_SECTION_STACKS].entry_count = sites + 1;
    layout->sections[SEEP_SECTION_FRAMES].entry_count = sites + 1;
    layout->sections[SEEP_SECTION_BRIEFS].entry_count = sites;
    layout->file_bytes = SEEP_PAGE_BYTES;
    for (unsigned i = 0; i < SEEP_SECTION_COUNT; i++) {
        struct seep_rec_section *part = &layout->sections[i];

        part->bytes = (uint64_t)part->entry_bytes * part->entry_count;
        part->offset_bytes = layout->file_bytes;
        layout->file_bytes += (part->bytes + SEEP_PAGE_BYTES - 1) /
                              SEEP_PAGE_BYTES * SEEP_PAGE_BYTES;
    }
}

/* One block each, of which no series is needed to tell. */
static void add_sites(struct recording_builder *builder, uint32_t sites)
{
    uint32_t module = builder_module(builder, "/x", 1);

    for (uint32_t i = 0; i < sites; i++) {
        uint64_t frame = builder_frame(module, 16 + i);
        uint32_t index = builder_site(
            builder, builder_stack(builder, &frame, 1), SEEP_SPACE_HEAP);
        struct seep_rec_site *site = &builder->view.sites[index];

        seep_word_store(&site->event_count, 1);
        seep_word_store(&site->allocated_bytes,
                        index % LARGE_EVERY == 0 ? LARGE_BYTES : 100);
        seep_word_store(&site->allocated_count_q16, 1 << 16);
    }
}

static void of_too_many_sites_those_that_hold_most_keep_a_series(void **state)
{
    struct seep_rec_header layout = {.pid = 0};
    struct seep_refusal refusal = {.error = 0};
    struct recording_builder builder;
    struct seep_snapshot snapshot;
    uint32_t with_series = 0;
    int fd = memfd_create("many", MFD_CLOEXEC);

    (void)state;
    lay_out(&layout, SITES);
    builder_init_layout(&builder, &layout, fd);
    add_sites(&builder, SITES);
    builder_exit(&builder, 1000);
    builder_seal(&builder);
    assert_int_equal(seep_snapshot_init(fd, builder.size_bytes, is_dead,
                                        &refusal, &snapshot),
                     0);

    for (uint32_t i = 1; i <= SITES; i++) {
        enum seep_series_kind kind =
            seep_series_source_of(&snapshot.view, i).kind;

        assert_true(kind == SEEP_SERIES_WHOLE || i % LARGE_EVERY != 0);
        assert_true(kind == SEEP_SERIES_WHOLE || kind == SEEP_SERIES_NONE);
        with_series += kind == SEEP_SERIES_WHOLE;
    }
    assert_int_equal(with_series, EXPANDED);
    assert_int_equal(
        seep_word_load(&snapshot.view.counters[SEEP_COUNT_SERIES_FULL]),
        SITES - EXPANDED);

    seep_snapshot_fini(&snapshot);
    builder_fini(&builder);
    close(fd);
}

#define FEW 40U

/* Most need none: what tells of each is read where it lies. */
static void of_few_sites_no_series_are_made(void **state)
{
    struct seep_rec_header layout = {.pid = 0};
    struct seep_refusal refusal = {.error = 0};
    struct recording_builder builder;
    struct seep_snapshot snapshot;
    int fd = memfd_create("few", MFD_CLOEXEC);

    (void)state;
    lay_out(&layout, FEW);
    builder_init_layout(&builder, &layout, fd);
    add_sites(&builder, FEW);
    builder_exit(&builder, 1000);
    builder_seal(&builder);
    assert_int_equal(seep_snapshot_init(fd, builder.size_bytes, is_dead,
                                        &refusal, &snapshot),
                     0);

    assert_null(snapshot.series);
    for (uint32_t i = 1; i <= FEW; i++) {
        assert_int_equal(seep_series_source_of(&snapshot.view, i).kind,
                         SEEP_SERIES_TOTALS);
    }

    seep_snapshot_fini(&snapshot);
    builder_fini(&builder);
    close(fd);
}

/* Who reads, and the series that were made for it, to be freed. */
static struct seep_rec_series *read_series(int fd, uint64_t size_bytes,
                                           uint32_t *ret_count)
{
    struct seep_refusal refusal = {.error = 0};
    struct seep_snapshot snapshot;
    struct seep_rec_series *copy;
    size_t bytes;

    assert_int_equal(
        seep_snapshot_init(fd, size_bytes, is_dead, &refusal, &snapshot), 0);
    assert_int_equal(seep_snapshot_expand(&snapshot), 0);
    *ret_count = snapshot.view.series_capacity;
    bytes = *ret_count * sizeof(*copy);
    copy = malloc(bytes);
    assert_non_null(copy);
    memcpy((void *)copy, (const void *)snapshot.view.series, bytes);
    seep_snapshot_fini(&snapshot);
    return copy;
}

/* Blocks that come and go all the time. */
static void add_course(struct recording_builder *builder)
{
    uint32_t module = builder_module(builder, "/x", 1);

    for (uint32_t i = 0; i < FEW; i++) {
        uint64_t frame = builder_frame(module, 16 + i);
        uint32_t site = builder_site(builder, builder_stack(builder, &frame, 1),
                                     SEEP_SPACE_HEAP);

        for (uint32_t tick = 1; tick < 90; tick += 30) {
            builder_alloc(builder, 64 * (100 * i + tick), 5000, site, tick);
            builder_free(builder, 64 * (100 * i + tick), tick + 20);
        }
        builder_fold(builder);
    }
}

static int make(struct recording_builder *builder,
                void (*fill)(struct recording_builder *))
{
    struct seep_rec_header layout = {.pid = 0};
    int fd = memfd_create("one", MFD_CLOEXEC);

    lay_out(&layout, FEW);
    builder_init_layout(builder, &layout, fd);
    fill(builder);
    builder_exit(builder, 1000);
    builder_seal(builder);
    return fd;
}

static void add_few(struct recording_builder *builder)
{
    add_sites(builder, FEW);
}

/* The room of its series was that of another before. */
static void a_recording_is_read_alike_after_any_other(void **state)
{
    struct recording_builder quiet;
    struct recording_builder busy;
    int quiet_fd = make(&quiet, add_few);
    int busy_fd = make(&busy, add_course);
    uint32_t first_count;
    uint32_t busy_count;
    uint32_t then_count;
    struct seep_rec_series *first =
        read_series(quiet_fd, quiet.size_bytes, &first_count);
    struct seep_rec_series *between =
        read_series(busy_fd, busy.size_bytes, &busy_count);
    struct seep_rec_series *then =
        read_series(quiet_fd, quiet.size_bytes, &then_count);

    (void)state;
    assert_int_equal(busy_count, FEW);
    assert_int_equal(first_count, FEW);
    assert_int_equal(then_count, FEW);
    assert_memory_not_equal(between, first, FEW * sizeof(*first));
    assert_memory_equal(then, first, FEW * sizeof(*first));

    free(first);
    free(between);
    free(then);
    builder_fini(&quiet);
    builder_fini(&busy);
    close(quiet_fd);
    close(busy_fd);
}

static bool is_not_dead(const struct seep_rec_header *header)
{
    (void)header;
    return false;
}

/* What no one has folded yet: the reader's own copy has the blocks. */
static void add_pending(struct recording_builder *builder)
{
    add_few(builder);
    for (uint32_t i = 0; i < 8; i++) {
        builder_alloc(builder, 4096 * (i + 1), 5000, 1 + i, 10 * i + 1);
    }
}

static void add_one(struct recording_builder *builder)
{
    add_sites(builder, 1);
}

/* A copy has each byte of the file, and zero where that has nothing. */
static void assert_is_copied(int fd, const struct recording_builder *builder,
                             bool (*dead)(const struct seep_rec_header *))
{
    struct seep_refusal refusal = {.error = 0};
    struct seep_snapshot snapshot;

    assert_int_equal(
        seep_snapshot_copy(fd, builder->size_bytes, dead, &refusal, &snapshot),
        0);
    assert_true(memcmp(snapshot.bytes, builder->bytes, builder->size_bytes) ==
                0);
    seep_snapshot_fini(&snapshot);
}

/* The memory of its copy was that of another, which was read and folded. */
static void a_copy_has_nothing_of_the_one_before(void **state)
{
    static void (*const fills[])(struct recording_builder *) = {
        add_pending, add_one, add_course, add_few};
    struct recording_builder builders[4];
    int fds[4];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        fds[i] = make(&builders[i], fills[i]);
    }
    for (size_t i = 0; i < 16; i++) {
        const struct recording_builder *after = &builders[i / 4];
        struct seep_rec_series *series;
        uint32_t count;

        for (size_t j = 0; j < 2; j++) {
            series =
                read_series(fds[i % 4], builders[i % 4].size_bytes, &count);
            free(series);
            assert_is_copied(fds[i / 4], after, j == 0 ? is_dead : is_not_dead);
        }
    }
    for (size_t i = 0; i < 4; i++) {
        builder_fini(&builders[i]);
        close(fds[i]);
    }
}

/* A tenth more than there are rows for. */
#define MANY (SEEP_SITES_ROWS_MOST + SEEP_SITES_ROWS_MOST / 10)
#define LARGE_COUNT (MANY / LARGE_EVERY)

static struct seep_report *report_of(const char *path)
{
    const struct seep_report_options options = {.by = SEEP_BY_STACK};
    struct seep_refusal refusal = {.error = 0};
    struct seep_report *report = NULL;

    assert_int_equal(seep_report_open(path, &options, &refusal, &report), 0);
    return report;
}

/* Those that hold most are each a row; the rest is in one, and all is there. */
static void of_too_many_rows_those_that_hold_least_are_one(void **state)
{
    char path[] = "/tmp/seep-room-XXXXXX";
    struct seep_rec_header layout = {.pid = 0};
    struct recording_builder builder;
    struct seep_report *report;
    const struct seep_report_site *rest = NULL;
    uint64_t live_bytes = 0;
    size_t stack_count = 0;
    size_t large_count = 0;
    int fd = mkstemp(path);

    (void)state;
    lay_out(&layout, MANY);
    builder_init_layout(&builder, &layout, fd);
    add_sites(&builder, MANY);
    builder_exit(&builder, 1000);
    builder_seal(&builder);
    report = report_of(path);

    assert_in_range(report->site_count, SEEP_SITES_ROWS_MOST,
                    SEEP_SITES_ROWS_MOST + 1);
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        live_bytes += site->live_bytes;
        stack_count += site->stack_count;
        large_count += site->live_bytes == LARGE_BYTES;
        if (strcmp(site->where, "call sites that hold least") == 0) {
            assert_null(rest);
            rest = site;
        }
    }
    assert_non_null(rest);
    assert_int_equal(rest->frame_count, 0);
    assert_int_equal(rest->stack_count, MANY - report->site_count + 1);
    assert_int_equal(stack_count, MANY);
    assert_int_equal(large_count, LARGE_COUNT);
    assert_true(live_bytes ==
                LARGE_COUNT * LARGE_BYTES + (MANY - LARGE_COUNT) * 100);
    assert_true(report->spaces[0].live_bytes == live_bytes);

    seep_report_close(report);
    builder_fini(&builder);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_is_read_alike_after_any_other),
        cmocka_unit_test(a_copy_has_nothing_of_the_one_before),
        cmocka_unit_test(of_too_many_rows_those_that_hold_least_are_one),
        cmocka_unit_test(of_too_many_sites_those_that_hold_most_keep_a_series),
        cmocka_unit_test(of_few_sites_no_series_are_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
