/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/verdict_*: the sentences, for every class and every forecast. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_report.h"
#include "text/page.h"
#include "text/report.h"
#include "words/verdict.h"

static struct fake_report fake;
static struct seep_words_verdict words;

static int fill(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_LEAK);
    words = (struct seep_words_verdict){0};
    return 0;
}

static int drop(void **state)
{
    (void)state;
    seep_words_verdict_fini(&words);
    return 0;
}

static void make(void)
{
    seep_words_verdict_fini(&words);
    seep_words_verdict(&fake.report, NULL, &words);
}

static bool has(char *const *texts, size_t count, const char *part)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(texts[i], part) != NULL) {
            return true;
        }
    }
    return false;
}

static bool has_reason(const char *part)
{
    return has(words.reasons, words.reason_count, part);
}

static bool has_advice(const char *part)
{
    return has(words.advice, words.advice_count, part);
}

static void a_signature_is_no_part_of_a_sentence(void **state)
{
    static const struct {
        const char *function;
        const char *told;
    } cases[] = {
        {"net::(anonymous namespace)::Pool<int>::take(std::map<int, char> "
         "const&, int)",
         "at pool.cc:31 net::(anonymous namespace)::Pool::take."},
        {"net::Less::operator()(int, int) const",
         "at pool.cc:31 net::Less::operator()."},
        {"net::run()::{lambda(int)#1}::operator()(int) const",
         "at pool.cc:31 net::run."},
        {"main::{lambda(int)#1}::operator()(int) const",
         "at pool.cc:31 main::{lambda(int)#1}::operator()."},
        {"take", "at pool.cc:31 take."},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake.frames[2] = (struct seep_report_frame){
            .function = cases[i].function,
            .file = "/src/pool.cc",
            .line = 31,
            .module = "/opt/libnet.so",
            .build_id = "",
        };
        fake.sites[0].where = "of machines";
        make();
        if (strstr(words.sentence, cases[i].told) == NULL) {
            fail_msg("%s: %s", cases[i].told, words.sentence);
        }
    }
}

static void every_class_has_its_sentence(void **state)
{
    static const struct {
        enum seep_verdict_class class;
        const char *label;
        const char *sentence;
    } golden[] = {
        {SEEP_VERDICT_LEAK, "LEAK",
         "python3 serve.py (pid 4242): host memory grows by 41.3 MiB/min (40.1 to "
         "42.5), "
         "12.3 KiB per unit of work, 97 % of it at serve.py:31 handle."},
        {SEEP_VERDICT_SUSPECT, "SUSPECT",
         "python3 serve.py (pid 4242): host memory may be leaking: 41.3 "
         "MiB/min (40.1 "
         "to 42.5), 12.3 KiB per unit of work, 97 % of it at serve.py:31 "
         "handle."},
        {SEEP_VERDICT_UNEXPLAINED, "UNEXPLAINED",
         "python3 serve.py (pid 4242): memory that no hook saw (malloc, "
         "new, mmap) grows by 41.3 MiB/min (40.1 to 42.5), the largest part in "
         "anonymous "
         "memory at 0x7f1200000000."},
        {SEEP_VERDICT_FRAGMENTATION, "FRAGMENTATION",
         "python3 serve.py (pid 4242): live memory does not "
         "grow; glibc's malloc holds 50 MiB free between live blocks, in "
         "4,312 pieces, growing by 41.3 MiB/min (40.1 to 42.5)."},
        {SEEP_VERDICT_RETENTION, "ALLOCATOR RETENTION",
         "python3 serve.py (pid 4242): no leak: live memory does not grow; "
         "glibc's "
         "malloc keeps 50 MiB that the program has freed, of 680 MiB RSS."},
        {SEEP_VERDICT_BOUNDED, "BOUNDED",
         "python3 serve.py (pid 4242): still filling, with no known bound: serve.py:31 handle holds 562 MiB and grows by 41.3 MiB/min (40.1 "
         "to "
         "42.5), 12.3 KiB per unit of work, 4.0 MiB/min now."},
        {SEEP_VERDICT_INSUFFICIENT, "INSUFFICIENT DATA",
         "python3 serve.py (pid 4242): cannot tell yet whether it leaks: 576 "
         "MiB live "
         "at 2 call sites after 12.0 s."},
        {SEEP_VERDICT_STEADY, "STEADY",
         "python3 serve.py (pid 4242): no leak: nothing grows; a leak of more "
         "than 2.1 MiB/min would have shown by now; 576 MiB live at 2 call sites, "
         "RSS 680 MiB."},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
        fake_report_become(&fake, golden[i].class);
        make();
        assert_string_equal(words.label, golden[i].label);
        assert_string_equal(words.sentence, golden[i].sentence);
    }
}

/* Address space is not called memory, and what of it is resident is told. */
static void files_that_are_mapped_ever_again_are_address_space(void **state)
{
    (void)state;
    make();
    assert_false(has_reason("mapped from files"));
    fake.report.verdict.files = true;
    fake.sites[0].space = SEEP_SPACE_FILE;
    fake.report.memory.files = (struct seep_report_extent){
        .valid = true, .last_bytes = 5. * (1 << 30)};
    fake.report.memory.shared = (struct seep_report_extent){
        .valid = true, .last_bytes = 84. * (1 << 20)};
    fake.report.verdict.forecast = (struct seep_report_forecast){
        .answer = SEEP_FORECAST_UNKNOWN, .what = "", .device = -1};
    make();
    assert_non_null(strstr(words.sentence,
                           "address space mapped from files grows by 41.3"));
    assert_true(has_reason(
        "of 5 GiB, at most 84 MiB is resident so far, as page cache"));
    assert_null(words.forecast);
    /* What grows of memory beside it does not make it memory. */
    fake.sites[1].class = SEEP_CLASS_LEAK;
    make();
    assert_null(strstr(words.sentence, "host memory"));
    fake.report.memory.shared.valid = false;
    make();
    assert_false(has_reason("resident so far"));
    assert_true(has_reason("never unmapped"));
}

static void what_is_full_is_told_from_what_fills(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_BOUNDED);
    fake.report.verdict.filling = false;
    fake.report.verdict.reassures = true;
    fake.sites[0].class = SEEP_CLASS_PLATEAU;
    make();
    assert_string_equal(
        words.sentence,
        "python3 serve.py (pid 4242): no leak: growth stopped; it was at serve.py:31 handle, which holds 562 "
        "MiB.");
    assert_int_equal(words.advice_count, 0);
    fake.report.duration_s = 100;
    fake.sites[0].stopped_since_s = 40;
    fake.sites[0].stopped_ln_p = -9.21034;
    make();
    assert_non_null(strstr(
        words.sentence,
        "growth stopped 1 min 00 s ago (odds of such a long pause by chance: 1 in 10,000); it was"));
    fake.report.verdict.reassures = false; /* it was not tested */
    make();
    assert_null(strstr(words.sentence, "no leak"));
}

/* The table has a row that may grow: the sentence above it denies nothing. */
static void what_may_grow_is_not_denied(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_RETENTION);
    fake.sites[1].class = SEEP_CLASS_SUSPECT;
    fake.sites[1].has_growth = true;
    make();
    assert_null(strstr(words.sentence, "live memory does not grow"));
    fake.sites[1].suppressed_by = "put";
    make();
    assert_non_null(
        strstr(words.sentence, "no leak: live memory does not grow; glibc"));
    fake.report.memory.tracked.slope_bytes_per_s = 20000;
    make();
    assert_null(strstr(words.sentence, "live memory does not grow"));
    fake_report_become(&fake, SEEP_VERDICT_STEADY);
    fake.report.verdict.floor_bytes = 2 << 20;
    fake.report.verdict.minor_count = 1;
    make();
    assert_non_null(strstr(
        words.sentence, "no leak: nothing certainly grows by 2 MiB or more;"));
}

/* It may be the allocator's, which the hooks of malloc have seen. */
static void nobody_knows_what_an_untold_allocator_keeps(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_UNEXPLAINED);
    fake.report.memory.allocator_overhead.valid = false;
    make();
    assert_non_null(strstr(words.sentence, "memory beyond live blocks grows"));
}

/* The import stopped, and most is elsewhere. */
static void what_holds_more_than_what_stopped_is_named_too(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_BOUNDED);
    fake.report.verdict.filling = false;
    fake.sites[0].class = SEEP_CLASS_STEADY;
    fake.sites[1].class = SEEP_CLASS_STEP;
    fake.sites[1].live_bytes = 1 << 20;
    make();
    assert_non_null(strstr(
        words.sentence,
        "which holds 1 MiB; more memory, 562 MiB, is live at serve.py:31 handle"));
    fake.sites[0].live_bytes = 1 << 20;
    make();
    assert_null(strstr(words.sentence, "is live at"));
}

/* Each word of reassurance is there where the verdict reassures, only. */
static void no_leak_is_said_where_it_was_tested_and_nowhere_else(void **state)
{
    (void)state;
    for (int class = 0; class < SEEP_VERDICT_COUNT; class ++) {
        fake_report_become(&fake, (enum seep_verdict_class) class);
        for (int filling = 0; filling < 2; filling++) {
            for (int known = 0; known < 2; known++) {
                fake.report.verdict.filling = filling != 0;
                fake.sites[0].known_bound_bytes = known != 0 ? 1ULL << 30 : 0;
                fake.report.verdict.reassures = false;
                make();
                assert_null(strstr(words.sentence, "no leak"));
                assert_null(strstr(words.sentence, "nothing grows"));
                assert_null(strstr(words.sentence, "would have shown by now"));
            }
        }
    }
}

static void what_may_be_a_leak_of_the_whole_process_has_its_rate(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_INSUFFICIENT);
    fake.report.verdict.has_growth = true;
    fake.report.verdict.private_grows = true;
    make();
    assert_non_null(strstr(words.sentence,
                           "cannot tell yet whether it leaks: private memory "
                           "grows by 41.3 MiB/min (40.1 to 42.5)"));
    fake.report.verdict.private_grows = false;
    make();
    assert_null(strstr(words.sentence, "private memory grows"));
}

static void memory_of_files_that_grows_is_told_as_that(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_UNEXPLAINED);
    make();
    assert_null(strstr(words.sentence, "mapped from files"));
    fake.report.verdict.files = true;
    make();
    assert_non_null(strstr(
        words.sentence, "memory mapped from files, or shared, grows by 41.3"));
    assert_null(strstr(words.sentence, "no hook saw"));
}

static void a_leak_that_was_freed_at_the_end_is_told_as_one(void **state)
{
    (void)state;
    make();
    assert_null(strstr(words.sentence, "shut down"));
    fake.report.end.judged_before = true;
    fake.report.end.judged_to_s = 45;
    fake.report.end.freed_bytes = 177 << 20;
    make();
    assert_non_null(strstr(words.sentence, "host memory grew by 41.3 MiB/min"));
    assert_non_null(
        strstr(words.sentence,
               "at serve.py:31 handle, until it shut down and freed 177 MiB."));
}

static void a_container_tells_its_next_step(void **state)
{
    struct seep_report_site *site = &fake.sites[0];

    (void)state;
    make();
    assert_false(has_reason("next step"));
    site->in_steps = true;
    site->step_next_bytes = 256 << 20;
    site->step_next_s = fake.report.duration_s + 40;
    make();
    assert_true(
        has_reason("its next step, to 256 MiB, is due in about 40.0 s"));
    site->step_next_s = fake.report.duration_s / 2;
    make();
    assert_true(has_reason("its next step, to 256 MiB, is due now"));
    site->step_next_bytes = 0;
    make();
    assert_false(has_reason("next step"));
}

static void a_bound_that_was_named_is_in_the_sentence(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_BOUNDED);
    fake.report.verdict.filling = false;
    fake.report.verdict.reassures = true;
    fake.sites[0].class = SEEP_CLASS_LEAK;
    fake.sites[0].known_bound_bytes = 1ULL << 30;
    make();
    assert_string_equal(
        words.sentence,
        "python3 serve.py (pid 4242): no leak: serve.py:31 handle "
        "holds 562 MiB of the 1 GiB given with --known.");
    fake.sites[0].known_bound_bytes = 1ULL << 29;
    make();
    assert_non_null(strstr(words.sentence,
                           "holds 562 MiB, no longer grows, but exceeds "
                           "the 512 MiB given with --known."));
}

static void several_sites_share_the_growth(void **state)
{
    (void)state;
    fake.report.verdict.growing_count = 4;
    fake.report.verdict.first_share = 0.6;
    make();
    assert_non_null(strstr(words.sentence,
                           ", 60 % of it at serve.py:31 handle, the rest at 3 "
                           "other call sites."));
    fake.report.verdict.growing_count = 1;
    fake.report.verdict.first_share = 1;
    make();
    assert_non_null(
        strstr(words.sentence, ", all of it at serve.py:31 handle."));
}

static void a_leak_of_a_device_is_not_one_of_the_host(void **state)
{
    (void)state;
    fake.sites[0].space = SEEP_SPACE_DEVICE;
    make();
    assert_non_null(strstr(words.sentence, ": device memory grows by 41.3"));
}

static void a_suppressed_site_speaks_for_nothing(void **state)
{
    (void)state;
    fake.sites[0].suppressed_by = "handle";
    fake.sites[1].class = SEEP_CLASS_LEAK;
    make();
    assert_null(strstr(words.sentence, "serve.py:31"));
    assert_false(has_advice("3f9a"));
}

static void nothing_grows_but_what_is_suppressed(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_STEADY);
    fake.report.verdict.suppressed_count = 3;
    fake.report.verdict.suppressed_bytes_per_s = 20000;
    make();
    assert_non_null(strstr(words.sentence,
                           "nothing grows but 1.1 MiB/min at 3 suppressed "
                           "call sites;"));
    fake_report_become(&fake, SEEP_VERDICT_BOUNDED);
    fake.report.verdict.suppressed_count = 1;
    fake.report.verdict.suppressed_bytes_per_s = 20000;
    make();
    assert_non_null(
        strstr(words.sentence,
               "; not counted: 1.1 MiB/min at 1 suppressed call site."));
}

/* A suspect too small to count can stand above the one that counts. */
static void the_site_that_the_figures_are_of_is_named(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_SUSPECT);
    fake.sites[1].class = SEEP_CLASS_WARMING;
    snprintf(fake.report.verdict.first_id, sizeof(fake.sites[1].id), "%s",
             fake.sites[1].id);
    make();
    assert_non_null(strstr(words.sentence, "97 % of it at put"));
}

/* The rate is of all of them, not of the one that is named. */
static void what_several_caches_grow_is_not_said_of_one(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_BOUNDED);
    fake.report.verdict.growing_count = 3;
    make();
    assert_string_equal(
        words.sentence,
        "python3 serve.py (pid 4242): still filling, with no known bound: serve.py:31 handle holds 562 MiB; together with 2 other call sites it grows by 41.3 MiB/min (40.1 to 42.5), 12.3 KiB per unit of work.");
}

static void what_is_not_recorded_says_so(void **state)
{
    (void)state;
    fake.report.inert = SEEP_INERT_VALGRIND;
    make();
    assert_string_equal(words.label, "NOT RECORDED");
    assert_string_equal(words.sentence,
                        "python3 serve.py (pid 4242): the program runs "
                        "under valgrind.");
    assert_int_equal(words.reason_count, 0);
    assert_null(words.forecast);
    assert_int_equal(words.advice_count, 1);
}

static void assert_forecast(const char *expected)
{
    make();
    assert_non_null(words.forecast);
    assert_string_equal(words.forecast, expected);
}

static void a_forecast_has_an_interval_or_an_open_end(void **state)
{
    struct seep_report_forecast *forecast = &fake.report.verdict.forecast;

    (void)state;
    assert_forecast("At this rate the cgroup's 8 GiB will be reached in 2 h 51 "
                    "min (2 h 44 min to 2 h 59 min).");
    forecast->seconds.high = INFINITY;
    assert_forecast("At this rate the cgroup's 8 GiB will be reached in 2 h 51 "
                    "min (2 h 44 min at the earliest, or never).");
    forecast->seconds.estimate = INFINITY;
    forecast->what = "ram";
    assert_forecast(
        "At this rate the machine's 8 GiB will be reached in 2 h 44 "
        "min at the earliest.");
    forecast->what = "device";
    forecast->if_suspect = true;
    assert_forecast(
        "If it is a leak, the device's 8 GiB will be reached in 2 h "
        "44 min at the earliest.");
}

static void what_is_ten_years_away_is_not_counted_in_days(void **state)
{
    struct seep_report_forecast *forecast = &fake.report.verdict.forecast;

    (void)state;
    forecast->seconds = (struct seep_interval){1e10, 5e9, 2e10};
    assert_forecast(
        "At this rate the cgroup's 8 GiB will be reached in over ten "
        "years.");
    forecast->seconds.low = 86400;
    assert_forecast(
        "At this rate the cgroup's 8 GiB will be reached in over ten "
        "years (1 d 00 h to over ten years).");
}

/* Page cache fills a cgroup to its limit, and no harm is done. */
static void what_is_full_is_not_reached_in_no_time(void **state)
{
    struct seep_report_forecast *forecast = &fake.report.verdict.forecast;

    (void)state;
    forecast->used_bytes = forecast->limit_bytes;
    forecast->seconds = (struct seep_interval){0, 0, 0};
    assert_forecast(
        "The cgroup's 8 GiB are used up already, counting page cache that the kernel can drop.");
    forecast->what = "ram";
    assert_forecast("The machine's 8 GiB are used up already.");

    /* "in 21 ms", of a process that was killed there. */
    forecast->used_bytes -= 200 << 10;
    forecast->seconds = (struct seep_interval){0.021, 0.019, 0.022};
    assert_forecast("The machine's 8 GiB are used up already.");
    forecast->used_bytes = forecast->limit_bytes / 2;
    assert_forecast("At this rate the machine's 8 GiB will be reached in 21 ms "
                    "(19 ms to 22 ms).");
    forecast->seconds = (struct seep_interval){3, 2, 4};
    assert_forecast("At this rate the machine's 8 GiB will be reached in 3.0 s "
                    "(2.0 s to 4.0 s).");
}

static void never_and_cannot_tell_are_answers(void **state)
{
    struct seep_report_forecast *forecast = &fake.report.verdict.forecast;

    (void)state;
    forecast->answer = SEEP_FORECAST_NEVER;
    assert_forecast(
        "It is not growing now, so the cgroup's 8 GiB would not be reached; 700 MiB are in use.");
    forecast->answer = SEEP_FORECAST_UNKNOWN;
    assert_forecast("Cannot tell when memory will be full: too little data.");
    forecast->limit_bytes = 0;
    assert_forecast(
        "Cannot tell when memory will be full: its limit is unknown.");
    fake_report_become(&fake, SEEP_VERDICT_STEADY);
    make();
    assert_null(words.forecast);
}

static void a_program_is_told_by_what_it_runs(void **state)
{
    static const struct {
        const char *words[4];
        const char *said;
    } golden[] = {
        {{"/usr/bin/python3", "/srv/serve.py", "x", "y"},
         "python3 serve.py (pid"},
        {{"python3.11", "-m", "vllm.server", "x"},
         "python3.11 -m vllm.server (pid"},
        {{"python3", "-c", "secret", "x"}, "python3 (pid"},
        {{"python3", "-Ic", "secret", "x"}, "python3 (pid"},
        {{"python3", "-u", "/srv/serve.py", "x"}, "python3 serve.py (pid"},
        {{"python3", "-um", "serve", "x"}, "python3 -m serve (pid"},
        {{"python3", "-Xdev", "serve.py", "x"}, "python3 serve.py (pid"},
        {{"python3", "-X", "dev", "serve.py"}, "python3 serve.py (pid"},
        {{"python3", "-Wignore", "serve.py", "x"}, "python3 serve.py (pid"},
        {{"python3", "-u", "-", "x"}, "python3 (pid"},
        {{"python3", "-B", "-u", "-X"}, "python3 (pid"},
        {{"python3", "--check-hash-based-pycs", "never", "x"}, "python3 (pid"},
        {{"ruby", "-I", "secret", "x"}, "ruby (pid"},
        {{"node", "--inspect", "secret", "x"}, "node (pid"},
        {{"./tritonserver", "--models", "x", "y"}, "tritonserver (pid"},
        {{"", "", "", ""}, "? (pid"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
        fake.report.arguments = golden[i].words;
        fake.report.argument_count = 4;
        make();
        assert_ptr_equal(strstr(words.sentence, golden[i].said),
                         words.sentence);
    }
    fake.report.argument_count = 0;
    make();
    assert_ptr_equal(strstr(words.sentence, "python3 (pid"), words.sentence);
}

static void a_place_without_a_name_is_a_short_module_and_an_offset(void **state)
{
    (void)state;
    fake.sites[0].where_frame = 0;
    fake.frames[0].function = "";
    fake.frames[0].module = "/x/_multiarray_umath.cpython-311-x86_64-linux-"
                            "gnu.so";
    make();
    assert_non_null(strstr(words.sentence, " at _multiarray_umath+0x1234."));
    fake.frames[0].function = "npy_alloc";
    make();
    assert_non_null(
        strstr(words.sentence, " at npy_alloc in _multiarray_umath."));
}

static void what_was_kept_all_along_is_said_shortly(void **state)
{
    (void)state;
    fake.sites[0].kept.share = 1;
    make();
    assert_true(
        has_reason("it kept 12 KiB per unit of work throughout the run; "
                   "none of it was freed"));
}

/* It is one so far, and whoever reads that has to hear it. */
static void a_cache_that_may_still_fill_is_told_as_that(void **state)
{
    (void)state;
    make();
    assert_true(has_reason(
        "it kept 12 KiB per unit of work from 12.0 s into "
        "the run to its end, 97 % of its work; none of it was freed"));
    assert_true(has_reason("a cache that has not reached its bound yet looks "
                           "the same"));
    assert_true(has_advice("--known 3f9a0011=SIZE"));
    assert_true(has_advice("--suppressions FILE"));
    fake.sites[0].kept.oldest_death_s = 4.5;
    make();
    assert_true(has_reason("no block older than 4.5 s was freed"));
    fake.report.units = 0;
    fake.sites[0].has_growth_per_unit = false;
    make();
    assert_true(
        has_reason("it kept 684 KiB per second from 12.0 s into the run "
                   "to its end, 97 % of its length;"));
}

static void a_site_that_was_seen_to_evict_is_no_cache_that_fills(void **state)
{
    (void)state;
    fake.sites[0].kept.gave_back_old = true;
    fake.sites[0].kept.died_share = 0.3;
    make();
    assert_false(has_reason("looks the same"));
    assert_false(has_advice("--known"));
    assert_true(has_reason("freeing old blocks, but grows all the same"));
    assert_null(seep_words_kept(&fake.report, &fake.sites[0]));
    fake.sites[0].stopped_since_s = 400; /* an LRU that is full */
    make();
    assert_false(has_reason("all the same"));
    fake.sites[0].stopped_since_s = 0;
    fake.sites[0].class = SEEP_CLASS_SUSPECT;
    make();
    assert_false(has_reason("all the same"));
}

static void a_known_pattern_is_a_hint_beside_the_verdict(void **state)
{
    (void)state;
    fake.sites[0].pattern = &fake_report_pattern;
    make();
    assert_string_equal(words.label, "LEAK");
    assert_true(has_reason("known: json's cache of keys. Each new key"));
    assert_true(has_advice("Keep keys few."));
}

static void too_little_to_tell_names_the_remedy_of_what_is_known(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_INSUFFICIENT);
    fake.report.duration_s = 60;
    snprintf(fake.report.verdict.first_id, sizeof(fake.sites[0].id), "%s",
             fake.sites[0].id);
    make();
    assert_false(has_advice("Keep keys few."));
    fake.sites[0].pattern = &fake_report_pattern;
    make();
    assert_true(has_reason("known: json's cache of keys. Each new key"));
    assert_true(has_advice("Keep keys few."));
}

static void the_next_step_is_never_an_experiment_of_ours(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_RETENTION);
    make();
    assert_true(has_advice("on a copy, never in production: gdb -p PID"));
    fake.report.state = SEEP_STATE_RUNNING;
    make();
    assert_true(has_advice("gdb -p 4242 -batch -ex 'call (int)malloc_trim"));
    fake_report_become(&fake, SEEP_VERDICT_UNEXPLAINED);
    make();
    assert_true(has_advice("tracepoint:syscalls:sys_enter_shmat "
                           "/pid == PID/ { @[probe, ustack] = count(); }'"));
    fake.report.memory.has_samples = false;
    fake.report.memory.mapping_count = 0;
    make();
    assert_null(strstr(words.sentence, "most of it"));
    assert_true(has_advice("seep run"));
}

static void a_command_can_be_pasted_whatever_the_file_is_called(void **state)
{
    (void)state;
    fake.report.path = "/data/a b;c'd.seep";
    make();
    assert_true(has_advice("--site 3f9a0011 '/data/a b;c'\\''d.seep'"));
    fake.report.path = "/data/seep.python3.11.1-2.seep";
    make();
    assert_true(has_advice("--site 3f9a0011 /data/seep.python3.11.1-2.seep"));
}

static void what_a_pattern_advises_is_not_said_twice(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_RETENTION);
    fake.report.memory.allocator = SEEP_ALLOCATOR_JEMALLOC;
    make();
    assert_true(has_advice("MALLOC_CONF="));
    seep_words_verdict_fini(&words);
    seep_words_verdict(&fake.report, &fake_report_pattern, &words);
    assert_int_equal(words.advice_count, 1);
    assert_true(has_advice("Keep keys few."));
}

static void what_would_be_enough_is_told(void **state)
{
    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_INSUFFICIENT);
    make();
    assert_true(has_advice("under steady load for at least 30 s"));
    assert_false(has_advice("--sample"));
    fake.report.duration_s = 100;
    fake.report.units = 20;
    make();
    assert_true(has_advice(
        "sampled every 512 KiB, a leak shows only after it has lost some 6 MiB"));
    assert_true(has_advice("100 units of work"));
    fake.report.units = 0;
    make();
    assert_true(has_advice("run it for another 3 min 20 s under steady load"));
    fake.report.verdict.need_s = 60;
    make();
    assert_true(has_advice("run it for another 1 min 00 s under steady load"));
    fake.report.site_count = 0;
    make();
    assert_true(has_advice("seep run --exact"));
}

static void there_are_at_most_three_next_steps(void **state)
{
    (void)state;
    for (int class = 0; class < SEEP_VERDICT_COUNT; class ++) {
        fake_report_become(&fake, (enum seep_verdict_class) class);
        fake.sites[0].pattern = &fake_report_pattern;
        fake.report.memory.has_samples = false;
        fake.report.memory.allocator_reported = false;
        seep_words_verdict_fini(&words);
        seep_words_verdict(&fake.report, &fake_report_pattern, &words);
        assert_true(words.advice_count <= SEEP_WORDS_ADVICE_MAX);
        assert_true(class == SEEP_VERDICT_STEADY || words.advice_count > 0);
    }
}

static void the_verdict_alone_is_one_line_on_any_page(void **state)
{
    (void)state;
    for (int class = 0; class < SEEP_VERDICT_COUNT; class ++) {
        char *text = NULL;
        size_t size;
        struct seep_page page = {.file = open_memstream(&text, &size),
                                 .columns = 40};

        fake_report_become(&fake, (enum seep_verdict_class) class);
        seep_view_text_verdict(&page, &fake.report);
        fclose(page.file);
        assert_ptr_equal(strchr(text, '\n'), text + size - 1);
        assert_int_not_equal(text[0], ' ');
        assert_non_null(strstr(text, "  python3 serve.py (pid 4242): "));
        free(text);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fill, drop)
    const struct CMUnitTest tests[] = {
        TEST(a_signature_is_no_part_of_a_sentence),
        TEST(every_class_has_its_sentence),
        TEST(what_is_full_is_told_from_what_fills),
        TEST(what_may_grow_is_not_denied),
        TEST(what_holds_more_than_what_stopped_is_named_too),
        TEST(no_leak_is_said_where_it_was_tested_and_nowhere_else),
        TEST(what_may_be_a_leak_of_the_whole_process_has_its_rate),
        TEST(memory_of_files_that_grows_is_told_as_that),
        TEST(a_leak_that_was_freed_at_the_end_is_told_as_one),
        TEST(nobody_knows_what_an_untold_allocator_keeps),
        TEST(a_container_tells_its_next_step),
        TEST(a_bound_that_was_named_is_in_the_sentence),
        TEST(several_sites_share_the_growth),
        TEST(a_leak_of_a_device_is_not_one_of_the_host),
        TEST(a_suppressed_site_speaks_for_nothing),
        TEST(nothing_grows_but_what_is_suppressed),
        TEST(the_site_that_the_figures_are_of_is_named),
        TEST(what_several_caches_grow_is_not_said_of_one),
        TEST(what_is_not_recorded_says_so),
        TEST(a_forecast_has_an_interval_or_an_open_end),
        TEST(what_is_ten_years_away_is_not_counted_in_days),
        TEST(what_is_full_is_not_reached_in_no_time),
        TEST(never_and_cannot_tell_are_answers),
        TEST(a_program_is_told_by_what_it_runs),
        TEST(a_place_without_a_name_is_a_short_module_and_an_offset),
        TEST(what_was_kept_all_along_is_said_shortly),
        TEST(a_cache_that_may_still_fill_is_told_as_that),
        TEST(a_site_that_was_seen_to_evict_is_no_cache_that_fills),
        TEST(files_that_are_mapped_ever_again_are_address_space),
        TEST(a_known_pattern_is_a_hint_beside_the_verdict),
        TEST(too_little_to_tell_names_the_remedy_of_what_is_known),
        TEST(the_next_step_is_never_an_experiment_of_ours),
        TEST(a_command_can_be_pasted_whatever_the_file_is_called),
        TEST(what_a_pattern_advises_is_not_said_twice),
        TEST(what_would_be_enough_is_told),
        TEST(there_are_at_most_three_next_steps),
        TEST(the_verdict_alone_is_one_line_on_any_page),
    };
#undef TEST

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
