/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep: what is said of GPUs, and nothing where there is none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_report.h"
#include "text/page.h"
#include "text/report.h"
#include "words/verdict.h"
#include "words/words.h"

static struct fake_report fake;

static int fill(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_LEAK);
    fake_report_give_devices(&fake);
    return 0;
}

static char *print(size_t columns)
{
    struct seep_text_options options = {.site_limit = 10};
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = columns};

    seep_view_text_report(&page, &fake.report, &options);
    fclose(page.file);
    return text;
}

static bool is_printed(size_t columns, const char *part)
{
    char *text = print(columns);
    bool printed = strstr(text, part) != NULL;

    free(text);
    return printed;
}

static void assert_printed(const char *part)
{
    char *text = print(200);

    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
    free(text);
}

enum kind { REASON, ADVICE };

static bool is_told(enum kind kind, const char *part)
{
    struct seep_words_verdict words;
    bool told = false;

    seep_words_verdict(&fake.report, NULL, &words);
    char **texts = kind == REASON ? words.reasons : words.advice;
    size_t count = kind == REASON ? words.reason_count : words.advice_count;
    for (size_t i = 0; i < count; i++) {
        told = told || strstr(texts[i], part) != NULL;
    }
    seep_words_verdict_fini(&words);
    return told;
}

static void the_leak_is_said_to_be_on_its_device(void **state)
{
    (void)state;
    assert_printed("): memory of GPU 0 grows by 41.3 MiB/min (40.1 to 42.5)");
    fake.sites[0].device = 1;
    assert_printed("): memory of GPU 1 grows");
    fake.sites[0].device = -1;
    assert_printed("): device memory grows");
    fake.sites[0].device = 1;
    fake.sites[0].space = SEEP_SPACE_TENSOR;
    assert_printed("): tensor memory of GPU 1 grows");
    fake.sites[0].space = SEEP_SPACE_MANAGED;
    assert_printed("): managed memory of GPU 1 grows");
    fake.report.verdict.class = SEEP_VERDICT_SUSPECT;
    assert_printed("): managed memory of GPU 1 may be leaking");
}

static void growth_on_both_sides_is_said_to_be_on_both(void **state)
{
    (void)state;
    fake.sites[1].class = SEEP_CLASS_LEAK;
    assert_printed("): memory of the host and of GPUs grows");
    fake.sites[1].space = SEEP_SPACE_DEVICE;
    fake.sites[1].device = 1;
    assert_printed("): memory of several GPUs grows");
    fake.sites[1].backs_tensors = true;
    assert_printed("): memory of GPU 0 grows");
    fake.sites[1].backs_tensors = false;
    fake.sites[1].device = 0;
    assert_printed("): memory of GPU 0 grows");
    fake.sites[1].space = SEEP_SPACE_HEAP;
    fake.sites[1].suppressed_by = "put";
    assert_printed("): memory of GPU 0 grows");
}

/* The lines that missed the cache are not those that keep what is in it. */
static void segments_stand_below_the_tensors(void **state)
{
    static const char said[] =
        "\n       segments of PyTorch's cache, by the line that missed it: the rows of space tensor show which lines keep their contents\n";

    (void)state;
    fake.sites[2] = fake.sites[1];
    fake.sites[1] = fake.sites[0];
    fake.sites[1].space = SEEP_SPACE_TENSOR;
    fake.sites[0].backs_tensors = true;
    fake.report.site_count = 3;
    fake.report.site_total = 3;
    char *text = print(200);
    char *tensors = strstr(text, "  tensor 0  ");
    char *segments = strstr(text, "\n segments ");
    assert_non_null(tensors);
    assert_non_null(segments);
    assert_true(tensors < segments);
    assert_non_null(strstr(segments, said));
    free(text);
}

/* Their bytes are those of the tensors in them. */
static void segments_speak_for_nothing(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_BOUNDED);
    fake_report_give_devices(&fake);
    fake.report.verdict.filling = false;
    fake.sites[0].class = SEEP_CLASS_STEP;
    fake.sites[2].class = SEEP_CLASS_STEP;
    fake.report.site_count = 3;
    assert_printed("it was at serve.py:31 handle, which holds 562 MiB");
    fake.sites[0].backs_tensors = true;
    assert_printed("it was at serve.py:8 load, which holds 4 MiB");
}

static void a_brief_table_has_segments_beside_what_does_not_grow(void **state)
{
    static struct seep_report_site sites[9];
    struct seep_text_options options = {.site_limit = 10, .brief = true};
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = 200};

    (void)state;
    sites[0] = fake.sites[0];
    for (size_t i = 1; i < 9; i++) {
        sites[i] = fake.sites[2];
        sites[i].backs_tensors = i > 4;
    }
    fake.report.sites = sites;
    fake.report.site_count = 9;
    fake.report.site_total = 9;
    seep_view_text_report(&page, &fake.report, &options);
    fclose(page.file);
    assert_non_null(strstr(text, " and 2 more call sites"));
    assert_non_null(strstr(text, "\n segments "));
    free(text);
    sites[0].backs_tensors = true; /* now nothing else grows */
    for (size_t i = 1; i < 9; i++) {
        sites[i].backs_tensors = false;
    }
    page.file = open_memstream(&text, &size);
    seep_view_text_report(&page, &fake.report, &options);
    fclose(page.file);
    assert_null(strstr(text, "more call sites"));
    free(text);
}

/* A block that is pinned for a device is memory of the host all the same. */
static void pinned_memory_is_the_hosts(void **state)
{
    (void)state;
    fake.sites[0].space = SEEP_SPACE_PINNED;
    assert_printed("): pinned host memory grows");
}

static void a_full_device_is_foretold(void **state)
{
    (void)state;
    assert_printed(
        "At this rate GPU 0's 80 GiB will be full in 10 h 26 min (10 h "
        "16 min to 10 h 33 min).\n");
}

/* The leak is on one side, what is full first on the other. */
static void another_place_is_not_full_at_the_rate_of_the_leak(void **state)
{
    (void)state;
    fake.report.verdict.forecast.device = 1;
    assert_printed("At its current rate, GPU 1's 80 GiB will be full in ");
    fake.report.verdict.forecast.what = "ram";
    fake.report.verdict.forecast.device = -1;
    assert_printed(
        "At its current rate, the machine's 80 GiB will be reached in ");
    fake.report.verdict.device = -1;
    assert_printed("At this rate the machine's 80 GiB will be reached in ");
    fake.report.verdict.forecast.answer = SEEP_FORECAST_NEVER;
    assert_printed("It is not growing now, so the machine's 80 GiB would");
    fake.report.verdict.device = 0;
    assert_false(is_printed(200, "It is not growing now"));
}

static void each_device_has_a_part_of_its_own(void **state)
{
    (void)state;
    assert_printed("\n GPU 0                first     last     growth/min\n"
                   " used                 1 GiB   10 GiB    +114 ±1 MiB  "
                   "of 80 GiB, 70 GiB free, 69 GiB at the lowest\n");
    assert_printed("\n = tracked          512 MiB    9 GiB ");
    assert_printed("\n   PyTorch's cache  256 MiB  8.5 GiB ");
    assert_false(is_printed(200, "its tensors do not"));
    assert_printed("\n     in tensors     200 MiB    8 GiB ");
    assert_printed("\n + unexplained      512 MiB    1 GiB ");
    assert_printed("\n   pool's cache      32 MiB   64 MiB ");
    assert_printed("\n   graphs             6 MiB    6 MiB ");
    assert_printed("of CUDA graphs, 4 MiB of it in use\n");
    assert_printed("\n full   in 10 h 26 min (10 h 16 min to 10 h 33 min)\n");
    assert_printed("\n GPU 1 ");
    assert_printed("of 80 GiB, 79 GiB free\n");
    assert_printed("\n full   never at this rate: it is not growing\n");
}

static void a_device_tells_when_most_of_it_was_held(void **state)
{
    struct seep_report_device *device =
        (struct seep_report_device *)&fake.report.devices[0];

    (void)state;
    assert_false(is_printed(200, "at their peak"));
    device->peak_bytes = ldexp(20, 30);
    device->peak_s = 90;
    assert_printed("by calls of this process, 20 GiB at their peak, "
                   "after 1 min 30 s\n");
    device->peak_bytes = device->tracked.last_bytes;
    assert_false(is_printed(200, "at their peak"));
}

static void what_is_nothing_is_left_out(void **state)
{
    (void)state;
    fake.devices[0] = fake.devices[1];
    fake.report.device_count = 1;
    assert_false(is_printed(200, "\n GPU 0 "));
    assert_false(is_printed(200, "PyTorch's cache"));
    assert_false(is_printed(200, "pool's cache"));
    assert_false(is_printed(200, "graphs"));
    fake.report.device_count = 0;
    assert_false(is_printed(200, "GPU 1"));
    assert_false(is_printed(200, "\n full "));
}

static void a_forecast_of_a_device_has_every_answer(void **state)
{
    struct seep_report_forecast *forecast = &fake.devices[0].forecast;

    (void)state;
    forecast->seconds.high = INFINITY;
    assert_printed(" full   in 10 h 26 min (10 h 16 min at the earliest, or "
                   "never)\n");
    forecast->if_suspect = true;
    assert_printed(" full   in 10 h 16 min at the earliest, if it goes "
                   "on\n");
    forecast->used_bytes = forecast->limit_bytes;
    assert_printed(" full   already\n");
    forecast->answer = SEEP_FORECAST_UNKNOWN;
    assert_printed(
        " full   unknown: the driver is asked only when it has served a call, and it served too few\n");
    fake.report.duration_s = 20;
    assert_printed(" full   unknown: too little data\n");
}

/* The driver is asked when it has just served a call, and may have served none
 * for long: a line through one second of half an hour is no growth. */
static void what_was_not_followed_has_no_growth(void **state)
{
    (void)state;
    assert_printed("\n used                 1 GiB   10 GiB    +114 ±1 MiB  of");
    fake.devices[0].forecast =
        (struct seep_report_forecast){.what = "", .device = -1};
    assert_printed("\n used                 1 GiB   10 GiB              of 80");
    assert_printed("\n     in tensors     200 MiB    8 GiB\n");
}

/* What the parts of the devices tell is not among the host's rows. */
static void device_memory_is_told_once(void **state)
{
    (void)state;
    assert_false(is_printed(200, "\n device "));
    assert_false(is_printed(200, "\n tensor "));
    fake.report.device_count = 0;
    assert_printed("\n device ");
    assert_printed("\n tensor ");
}

static void a_row_names_its_device_where_there_are_several(void **state)
{
    (void)state;
    assert_printed("  device 0  serve.py:31 handle");
    assert_printed("  heap      put");
    fake.report.device_count = 1;
    assert_printed("  device  serve.py:31 handle");
    fake.sites[1].space = SEEP_SPACE_TENSOR;
    fake.sites[1].device = 1;
    assert_printed("  tensor 1  put");
}

static void a_stack_names_its_device_too(void **state)
{
    struct seep_text_options options = {.site_limit = 10, .stacks = true};
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = 200};

    (void)state;
    seep_view_text_report(&page, &fake.report, &options);
    fake.sites[0].backs_tensors = true;
    seep_view_text_report(&page, &fake.report, &options);
    fclose(page.file);
    assert_non_null(strstr(text, "site 3f9a0011  leak, device 0, 562 MiB"));
    assert_non_null(strstr(text, "site 3f9a0011  segments of PyTorch's cache, "
                                 "device 0, 562 MiB"));
    free(text);
}

static void info_names_the_devices(void **state)
{
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = 200};

    (void)state;
    seep_view_text_info(&page, &fake.report);
    fclose(page.file);
    assert_non_null(strstr(text, "\ndevices    GPU 0, 80 GiB, 70 GiB free, 69 "
                                 "GiB at least\n           GPU 1, 80 GiB, "
                                 "79 GiB free\n"));
    free(text);
}

static void a_terminal_of_80_columns_tells_host_from_device(void **state)
{
    (void)state;
    assert_true(is_printed(80, "  device 0  serve"));
    fake.report.space_count = 1;
    fake.report.device_count = 0;
    assert_false(is_printed(80, "  heap  "));
}

static void live_bytes_are_told_of_host_and_device(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_STEADY);
    fake_report_give_devices(&fake);
    assert_printed("; 576 MiB of host memory and 9 GiB of GPU memory live at 2 "
                   "call sites, RSS ");
    fake.report.space_count = 1;
    assert_printed("; 576 MiB live at 2 call sites, RSS ");
}

static void become_fragmented(void)
{
    fake_report_become(&fake, SEEP_VERDICT_FRAGMENTATION);
    fake_report_give_devices(&fake);
    fake.devices[0].cache_fragments = true;
    fake.devices[0].tensor_allocated.last_bytes = 256 << 20;
}

static void a_cache_that_fragments_is_told_with_its_remedies(void **state)
{
    (void)state;
    become_fragmented();
    assert_printed(
        "): the tensors on GPU 0 do not grow, but PyTorch's cache there does, 41.3 MiB/min (40.1 to 42.5): 8.5 GiB, "
        "256 MiB of it in tensors.\n"
        "      At this rate GPU 0's 80 GiB will be full in ");
    assert_printed("grows, but its tensors do not\n");
    assert_false(is_told(REASON, "it is fragmenting"));
    assert_true(is_told(ADVICE, "expandable_segments:True"));
    assert_true(is_told(ADVICE, "the 8.2 GiB idle on GPU 0"));
    assert_true(is_told(ADVICE, "max_split_size_mb:128"));
    assert_false(is_told(ADVICE, "MALLOC_ARENA_MAX"));
    assert_false(is_told(ADVICE, "jemalloc"));
    assert_ptr_equal(seep_words_fragmented(&fake.report), &fake.devices[0]);
}

/* The known patterns of a process are those of the host's allocators. */
static void a_cache_that_fragments_is_none_of_the_hosts_allocator(void **state)
{
    static const char document[] =
        "{\"schema\": \"seep-patterns/1\", \"patterns\": [{\"id\": \"heap\", "
        "\"name\": \"n\", \"cause\": \"c\", \"remedy\": \"r\", \"source\": "
        "[\"https://example.org/\"], \"process\": {\"verdict\": "
        "[\"fragmentation\"]}}]}";
    struct seep_catalogue *catalogue = NULL;
    char path[] = "/tmp/seep-patterns-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_int_equal(write(fd, document, sizeof(document) - 1),
                     sizeof(document) - 1);
    close(fd);
    assert_int_equal(seep_catalogue_add_file(&catalogue, path, NULL), 0);
    unlink(path);
    become_fragmented();
    assert_null(seep_words_pattern(&fake.report, catalogue));
    fake.report.verdict.device = -1;
    assert_non_null(seep_words_pattern(&fake.report, catalogue));
    assert_null(seep_words_pattern(&fake.report, NULL));
    seep_catalogue_close(catalogue);
}

/* Who reserves address space has segments that grow already. */
static void what_is_set_already_is_not_advised(void **state)
{
    (void)state;
    become_fragmented();
    fake.spaces[3] = (struct seep_report_space){.space = SEEP_SPACE_RESERVED};
    fake.report.space_count = 4;
    assert_false(is_told(ADVICE, "expandable_segments"));
    assert_true(is_told(ADVICE, "max_split_size_mb"));
}

static void a_cache_that_fragments_is_a_reason_beside_others(void **state)
{
    (void)state;
    assert_false(is_told(REASON, "it is fragmenting"));
    fake.devices[0].cache_fragments = true;
    assert_true(is_told(REASON,
                        "PyTorch's cache on GPU 0 grows by 114 MiB/min, "
                        "but the tensors in it do not"));
    assert_printed("): memory of GPU 0 grows");
    assert_printed("grows, but its tensors do not\n");
    fake.sites[0].space = SEEP_SPACE_TENSOR; /* and leaks */
    assert_printed("grows by more than its tensors\n");
}

static void fragmentation_of_the_host_is_told_as_ever(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_FRAGMENTATION);
    fake_report_give_devices(&fake);
    fake.report.verdict.device = -1;
    fake.devices[0].cache_fragments = true;
    assert_printed("glibc's malloc holds 50 MiB free between live blocks");
    assert_true(is_told(ADVICE, "MALLOC_ARENA_MAX"));
    assert_true(is_told(REASON, "it is fragmenting"));
}

static void a_neighbour_that_grows_is_no_leak_but_a_reason(void **state)
{
    static const char said[] =
        "memory of GPU 1 that was not allocated by recorded calls of this process grows by 9.5 MiB/min";

    (void)state;
    assert_false(is_told(REASON, "that was not allocated by recorded calls"));
    fake.devices[1].unexplained.slope_bytes_per_s = 10 << 20;
    fake.devices[1].unexplained.slope_error = 11 << 20;
    assert_false(is_told(REASON, "that was not allocated by recorded calls"));
    fake.devices[1].unexplained.slope_bytes_per_s = 166666;
    fake.devices[1].unexplained.slope_error = 1000;
    assert_true(is_told(REASON, said));
}

static void a_segment_asks_for_the_tensors_in_it(void **state)
{
    static const char asked[] = "seep run --cuda tensors -- COMMAND";

    (void)state;
    fake.report.space_count = 2;
    assert_false(is_told(ADVICE, asked));
    fake.frames[0].module = "/opt/torch/lib/libc10_cuda.so";
    assert_true(is_told(ADVICE, asked));
    assert_true(is_told(REASON, "the line missed the cache, and may not be"));
    fake.report.space_count = 3;
    assert_false(is_told(ADVICE, asked));
}

static void a_pool_that_keeps_much_is_told_how_to_give_it_back(void **state)
{
    (void)state;
    assert_false(is_told(ADVICE, "cudaMemPoolAttrReleaseThreshold"));
    fake.devices[0].pool_reserved.last_bytes = 20.0 * (1 << 30);
    assert_true(
        is_told(ADVICE, "the memory pool of GPU 0 keeps 20 GiB unused"));
}

static void a_driver_that_is_not_seen_is_told(void **state)
{
    static const char *const modules[] = {
        "/usr/bin/python3", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"};
    static const char said[] = "in a way that seep does not see";

    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_STEADY);
    fake.report.modules = modules;
    fake.report.module_count = 2;
    assert_true(is_told(ADVICE, said));
    assert_printed("GPU memory is not in this report");
    fake.counters[SEEP_COUNT_CUDA_LOOKUPS].value = 1;
    assert_false(is_told(ADVICE, said));
    fake.counters[SEEP_COUNT_CUDA_LOOKUPS].value = 0;
    fake.report.module_count = 1;
    assert_false(is_told(ADVICE, said));
    fake.report.module_count = 2;
    fake_report_give_devices(&fake); /* a direct link needs no look-up */
    assert_false(is_told(ADVICE, said));
}

static void losses_of_the_driver_are_told(void **state)
{
    (void)state;
    fake.counters[SEEP_COUNT_CUDA_FULL].value = 12;
    assert_printed("; 12 events lost; ");
    assert_printed("\nlost    12 device allocations not recorded because their "
                   "table was full\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_leak_is_said_to_be_on_its_device, fill),
        cmocka_unit_test_setup(growth_on_both_sides_is_said_to_be_on_both,
                               fill),
        cmocka_unit_test_setup(segments_stand_below_the_tensors, fill),
        cmocka_unit_test_setup(segments_speak_for_nothing, fill),
        cmocka_unit_test_setup(
            a_brief_table_has_segments_beside_what_does_not_grow, fill),
        cmocka_unit_test_setup(pinned_memory_is_the_hosts, fill),
        cmocka_unit_test_setup(a_full_device_is_foretold, fill),
        cmocka_unit_test_setup(
            another_place_is_not_full_at_the_rate_of_the_leak, fill),
        cmocka_unit_test_setup(each_device_has_a_part_of_its_own, fill),
        cmocka_unit_test_setup(a_device_tells_when_most_of_it_was_held, fill),
        cmocka_unit_test_setup(what_is_nothing_is_left_out, fill),
        cmocka_unit_test_setup(a_forecast_of_a_device_has_every_answer, fill),
        cmocka_unit_test_setup(what_was_not_followed_has_no_growth, fill),
        cmocka_unit_test_setup(device_memory_is_told_once, fill),
        cmocka_unit_test_setup(a_row_names_its_device_where_there_are_several,
                               fill),
        cmocka_unit_test_setup(a_stack_names_its_device_too, fill),
        cmocka_unit_test_setup(info_names_the_devices, fill),
        cmocka_unit_test_setup(a_terminal_of_80_columns_tells_host_from_device,
                               fill),
        cmocka_unit_test_setup(live_bytes_are_told_of_host_and_device, fill),
        cmocka_unit_test_setup(a_cache_that_fragments_is_told_with_its_remedies,
                               fill),
        cmocka_unit_test_setup(
            a_cache_that_fragments_is_none_of_the_hosts_allocator, fill),
        cmocka_unit_test_setup(what_is_set_already_is_not_advised, fill),
        cmocka_unit_test_setup(a_cache_that_fragments_is_a_reason_beside_others,
                               fill),
        cmocka_unit_test_setup(fragmentation_of_the_host_is_told_as_ever, fill),
        cmocka_unit_test_setup(a_neighbour_that_grows_is_no_leak_but_a_reason,
                               fill),
        cmocka_unit_test_setup(a_segment_asks_for_the_tensors_in_it, fill),
        cmocka_unit_test_setup(
            a_pool_that_keeps_much_is_told_how_to_give_it_back, fill),
        cmocka_unit_test_setup(a_driver_that_is_not_seen_is_told, fill),
        cmocka_unit_test_setup(losses_of_the_driver_are_told, fill),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
