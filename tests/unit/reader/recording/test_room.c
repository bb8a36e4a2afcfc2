/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recording of very many call sites: the reader's memory has a bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "format/layout.h"
#include "reader/recording/snapshot.h"
#include "recording_builder.h"

#define SITES 60000U
#define LARGE_EVERY 100U
#define LARGE_BYTES (UINT64_C(1) << 20)
#define EXPANDED 50000U

static bool is_dead(const struct seep_rec_header *header)
{
    (void)header;
    return true;
}

/* Room for as many sites, and a series of each. */
static void lay_out(struct seep_rec_header *layout)
{
    assert_int_equal(
        seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, false, false, layout), 0);
    layout->sections[SEEP_SECTION_SITES].entry_count = SITES + 1;
    layout->sections[SEEP_SECTION_BRIEFS].entry_count = SITES;
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
static void add_sites(struct recording_builder *builder)
{
    uint64_t frame = builder_frame(builder_module(builder, "/x", 1), 16);
    uint32_t stack = builder_stack(builder, &frame, 1);

    for (uint32_t i = 0; i < SITES; i++) {
        uint32_t index = builder_site(builder, stack, SEEP_SPACE_HEAP);
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
    lay_out(&layout);
    builder_init_layout(&builder, &layout, fd);
    add_sites(&builder);
    builder_exit(&builder, 1000);
    builder_seal(&builder);
    assert_int_equal(seep_snapshot_init(fd, builder.size_bytes, is_dead,
                                        &refusal, &snapshot),
                     0);

    for (uint32_t i = 1; i <= SITES; i++) {
        uint32_t series = seep_word_load(&snapshot.view.sites[i].series);

        assert_true(series != 0 || i % LARGE_EVERY != 0);
        assert_true(series <= snapshot.view.series_capacity);
        with_series += series != 0;
    }
    assert_int_equal(with_series, EXPANDED);
    assert_int_equal(
        seep_word_load(&snapshot.view.counters[SEEP_COUNT_SERIES_FULL]),
        SITES - EXPANDED);

    seep_snapshot_fini(&snapshot);
    builder_fini(&builder);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_too_many_sites_those_that_hold_most_keep_a_series),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
