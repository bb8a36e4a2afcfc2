/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/view_*: what people and machines are shown of a report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_report.h"
#include "read/gather.h"
#include "text/page.h"
#include "text/report.h"

static struct fake_report fake;
static struct fake_report several[8];

static int fill(void **state)
{
    (void)state;
    fake_report_fill(&fake);
    return 0;
}

static char *print(size_t columns, bool color,
                   const struct seep_text_options *options)
{
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = columns,
                             .color = color};

    seep_view_text_report(&page, &fake.report, options);
    seep_view_text_info(&page, &fake.report);
    fclose(page.file);
    return text;
}

/* Nothing below a blank but line ends and, if asked for, our own colours. */
static void assert_harmless(const char *text, bool color)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\033') {
            assert_true(color);
            assert_int_equal(c[1], '[');
            assert_int_equal(c[2 + strspn(c + 2, "0123456789;")], 'm');
        } else {
            assert_true(*c == '\n' || (unsigned char)*c >= ' ');
            assert_int_not_equal(*c, '\x7f');
        }
    }
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
}

static void the_answer_stands_first(void **state)
{
    struct seep_text_options options = {.site_limit = 10};
    char *text = print(200, false, &options);

    (void)state;
    assert_ptr_equal(
        strstr(
            text,
            "LEAK  python3 serve.py (pid 4242): host memory grows by 41.3 MiB/min "
            "(40.1 "
            "to 42.5), 12.3 KiB per unit of work, 97 % of it at serve.py:31 "
            "handle.\n"
            "      At this rate the cgroup's 8 GiB will be reached in 2 h 51 min "
            "(2 h 44 min to 2 h 59 min).\n"),
        text);
    assert_has(text, "seep: python3 serve.py, pid 4242, 14 min 02 s, 48,112 "
                     "units of work, killed by signal 9\n");
    free(text);
}

/* Answer, process, table, balance, next step, seep itself: in this order. */
static void the_parts_stand_in_their_order(void **state)
{
    static const char *const parts[] = {
        "LEAK  ",     "\nseep: ", "\n class ",
        "\n memory ", "\nnext  ", "\nseep    ",
    };
    struct seep_text_options options = {.site_limit = 10};
    char *text = print(100, false, &options);
    const char *at = text;

    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        at = strstr(at, parts[i]);
        assert_non_null(at);
    }
    free(text);
}

static void
the_table_has_growth_live_and_the_way_to_the_allocation(void **state)
{
    struct seep_text_options options = {.site_limit = 10};
    char *text = print(200, false, &options);

    (void)state;
    assert_has(text, " leak     +40.1 ±0.6 MiB  +12.0 ±0.2 KiB  562 MiB  "
                     "48,112  serve.py:31 handle > json.loads > "
                     "libpython3.11\n");
    assert_has(text, " suspect               ?               ?   14 MiB       "
                     "3  put\\x1b[2J\\xff\\u{202e}");
    assert_has(text, "seep report --stack --site 3f9a0011 "
                     "/data/seep.python3.4242.seep");
    assert_has(text, "sampled every 512 KiB; 0 events lost; cost 0.3 % of "
                     "the run");
    free(text);
}

static void add_third_site(enum seep_class class)
{
    fake.sites[2].class = class;
    fake.report.site_count = 3;
    fake.report.site_total = 3;
}

static void suppressed_sites_are_counted_and_shown_when_asked(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    add_third_site(SEEP_CLASS_LEAK);
    fake.sites[2].suppressed_by = "^load";
    fake.report.verdict.suppressed_count = 1;
    fake.report.verdict.suppressed_bytes_per_s = 20000;
    char *text = print(200, false, &options);
    assert_has(text, " and 1 suppressed (leak:^load), growing by 1.1 MiB/min: "
                     "--show-suppressed shows it\n");
    assert_null(strstr(text, "serve.py:8"));
    assert_null(strstr(text, "more call sites"));
    free(text);
    options.show_suppressed = true;
    text = print(200, false, &options);
    assert_has(text, "serve.py:8 load");
    assert_has(text, "       suppressed by leak:^load\n");
    free(text);
}

static void what_the_floor_hid_is_counted(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    add_third_site(SEEP_CLASS_MINOR);
    fake.report.verdict.minor_count = 1;
    fake.report.verdict.minor_bytes_per_s = 3000;
    char *text = print(200, false, &options);
    assert_has(text, " and 1 that grew by less than 1 MiB each, 176 KiB/min "
                     "together\n");
    assert_null(strstr(text, "serve.py:8"));
    free(text);
}

static void a_known_pattern_stands_under_its_row(void **state)
{
    struct seep_text_options options = {.site_limit = 10, .stacks = true};

    (void)state;
    fake.sites[0].pattern = &fake_report_pattern;
    fake.sites[1].pattern = &fake_report_pattern;
    char *text = print(200, false, &options);
    assert_has(text, "libpython3.11\n       known: json's cache of keys\n");
    assert_has(text, "\n       known: json's cache of keys. Keep keys few.\n");
    assert_has(text, "(https://example.org/issues/1)");
    free(text);
}

/* Where something grows, what does not is no news. */
static void a_brief_table_has_few_rows_of_what_does_not_grow(void **state)
{
    static struct seep_report_site sites[8];
    struct seep_text_options options = {.site_limit = 10, .brief = true};

    (void)state;
    sites[0] = fake.sites[0];
    for (size_t i = 1; i < 8; i++) {
        sites[i] = fake.sites[2];
    }
    fake.report.sites = sites;
    fake.report.site_count = 8;
    fake.report.site_total = 8;
    char *text = print(200, false, &options);
    assert_has(text, " and 4 more call sites (--sites 0 shows all)\n");
    free(text);
    sites[0].class = SEEP_CLASS_STEP;
    text = print(200, false, &options);
    assert_null(strstr(text, "more call sites"));
    free(text);
}

static void a_row_of_nothing_is_not_in_the_brief_table(void **state)
{
    static struct seep_report_site sites[3];
    struct seep_text_options options = {.site_limit = 10, .brief = true};

    (void)state;
    sites[0] = fake.sites[0];
    sites[1] = fake.sites[2];
    sites[2] = fake.sites[2];
    sites[2].where = "gcmodule.c:2290 gc_alloc";
    sites[2].class = SEEP_CLASS_INSUFFICIENT;
    sites[2].has_growth = false;
    sites[2].live_bytes = 0;
    sites[2].peak_bytes = 4000;
    fake.report.sites = sites;
    fake.report.site_count = 3;
    fake.report.site_total = 3;
    char *text = print(200, false, &options);
    assert_null(strstr(text, "gc_alloc"));
    assert_has(text, " and 1 more call site (--sites 0 shows all)\n");
    free(text);
    sites[2].has_growth = true; /* it is gone now, and grew */
    sites[2].growth_bytes_per_s = (struct seep_interval){4000, -100, 9000};
    text = print(200, false, &options);
    assert_has(text, "gc_alloc");
    free(text);
    sites[2].has_growth = false;
    fake.report.freed_all = true; /* its peak tells */
    text = print(200, false, &options);
    assert_has(text, "gc_alloc");
    free(text);
    fake.report.freed_all = false;
    options = (struct seep_text_options){.brief = false};
    text = print(200, false, &options);
    assert_has(text, "gc_alloc");
    free(text);
}

/* Eight rows that do not grow, of imports and of the work; the last holds the
 * most, and its growth is too little to be a row. */
static void fill_holders(struct seep_report_site sites[8])
{
    for (size_t i = 0; i < 8; i++) {
        sites[i] = fake.sites[2];
        sites[i].is_start = i < 3;
        sites[i].class = SEEP_CLASS_PLATEAU;
    }
    sites[6].where = "serve.py:77 warm";
    sites[7].where = "serve.py:88 cache";
    sites[7].class = SEEP_CLASS_MINOR;
    sites[7].live_bytes = 900ULL << 20;
    sites[7].peak_bytes = 901ULL << 20;
    sites[7].stands_out = true;
    sites[7].pattern = &fake_report_pattern;
    fake.report.sites = sites;
    fake.report.site_count = 8;
    fake.report.site_total = 8;
    fake.report.verdict.minor_count = 1;
    fake.report.begin = (struct seep_report_begin){
        .source = SEEP_BEGINS_AT_IMPORTS,
        .at_s = 400,
        .from_s = 400,
        .site_count = 3,
        .live_bytes = 12ULL << 20,
        .live_count = 30,
    };
}

static void what_was_killed_tells_what_it_did_last(void **state)
{
    struct seep_text_options options = {.site_limit = 3};

    (void)state;
    fake.report.last = (struct seep_report_last){
        .span_s = 1.5,
        .allocated_bytes = 90 << 20,
        .freed_bytes = 80 << 20,
        .stayed_bytes = 8 << 20,
        .where = "serve.py:31 handle",
    };
    fake.report.memory.cgroup =
        (struct seep_report_extent){.valid = true, .last_bytes = 390 << 20};
    fake.report.memory.cgroup_limit_bytes = 400 << 20;
    char *text = print(200, false, &options);
    assert_has(text, "last    in its last 1.5 s it allocated 90 MiB and gave "
                     "back 80 MiB; it kept most at serve.py:31 handle, "
                     "8 MiB\n"
                     "        its cgroup held 390 MiB of 400 MiB when it was "
                     "last seen\n");
    free(text);
    fake.frames[2].file = "";
    fake.frames[2].module = "/opt/libserve.so";
    fake.frames[2].function = "serve::handle(std::vector<int> const&)";
    fake.sites[0].where = "libserve.so serve::handle(std::vector<int> const&)";
    fake.report.last.where = fake.sites[0].where;
    text = print(200, false, &options);
    assert_has(text, "it kept most at serve::handle in libserve, 8 MiB\n");
    free(text);
    fake.report.state = SEEP_STATE_GONE; /* by _exit(), perhaps */
    fake.report.verdict.class = SEEP_VERDICT_STEADY;
    text = print(200, false, &options);
    assert_null(strstr(text, "in its last"));
    free(text);
}

static void what_holds_the_most_is_a_row_and_the_start_is_one(void **state)
{
    static struct seep_report_site sites[8];
    struct seep_text_options options = {.site_limit = 3, .brief = true};

    (void)state;
    fill_holders(sites);
    char *text = print(200, false, &options);
    assert_has(text, "serve.py:88 cache");
    assert_has(text, "\n       known: json's cache of keys. Keep keys few.\n");
    assert_has(text, "imports and start-up, 3 call sites\n");
    assert_has(text, " and 2 more call sites (--sites 0 shows all)\n");
    assert_null(strstr(text, "that grew by less"));
    assert_has(text, "the work began 6 min 40 s after the start: end of the "
                     "imports\n");
    free(text);
    options.brief = false;
    options.site_limit = 0;
    text = print(200, false, &options);
    assert_null(strstr(text, "imports and start-up"));
    free(text);
    fake.report.begin.mostly_imports = true;
    fake.report.begin.imports_s = fake.report.duration_s - 0.5;
    text = print(200, false, &options);
    assert_null(strstr(text, "the work began")); /* it has not */
    free(text);
}

static void rows_by_what_they_hold_have_the_most_first(void **state)
{
    static struct seep_report_site sites[8];
    struct seep_text_options options = {.site_limit = 3, .holding = true};
    static const char *const rows[] = {"serve.py:88 cache", "serve.py:77 warm",
                                       "imports and start-up, 3 call sites"};
    const char *at;

    (void)state;
    fill_holders(sites);
    sites[6].live_bytes = 13ULL << 20;
    fake.report.begin.at_s = 500;
    fake.report.begin.from_s = 300;
    char *text = print(200, false, &options);
    at = text;
    for (size_t i = 0; i < 3; i++) {
        at = strstr(at, rows[i]);
        assert_non_null(at);
    }
    assert_has(text, " and 2 more call sites (--sites 0 shows all)\n");
    assert_has(text, "; growth counts from half of the run, 5 min 00 s\n");
    free(text);
}

static void the_balance_adds_up_and_names_what_grew_unseen(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_UNEXPLAINED);
    char *text = print(200, false, &options);
    assert_has(
        text,
        " RSS             80 MiB  680 MiB  +42.9 ±0.7 MiB\n"
        " = tracked       60 MiB  576 MiB      0 ±527 KiB  heap 576 MiB "
        "±1 MiB\n"
        " + allocator      5 MiB   50 MiB   +410 ±117 KiB  glibc's "
        "malloc, 4,312 free pieces\n"
        " + unexplained    5 MiB   24 MiB  +40.1 ±0.5 MiB  not seen by any hook\n"
        " + shared        10 MiB   30 MiB    +293 ±59 KiB  files and "
        "shared memory\n"
        " cgroup         100 MiB  700 MiB  +43.5 ±0.7 MiB  of 8 GiB\n"
        " grew   anonymous memory at 0x7f1200000000: 2 MiB to 240 MiB, "
        "+17.2 MiB/min\n");
    free(text);
    fake_report_become(&fake, SEEP_VERDICT_LEAK);
    text = print(200, false, &options);
    assert_null(strstr(text, " grew "));
    free(text);
}

/* Other processes are in it too: only how far its limit is matters. */
static void a_cgroup_without_a_limit_is_left_out(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_LEAK);
    fake.report.memory.cgroup_limit_bytes = 0;
    char *text = print(200, false, &options);
    assert_null(strstr(text, "\n cgroup "));
    free(text);
}

/* A line can be laid through anything; the class says what it is worth. */
static void what_does_not_grow_has_no_rate(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake.sites[1].class = SEEP_CLASS_TURNOVER;
    fake.sites[1].has_growth = true;
    fake.sites[1].growth_bytes_per_s = (struct seep_interval){3e6, 1e6, 5e6};
    char *text = print(200, false, &options);
    assert_has(text, " turnover               -               -   14 MiB");
    free(text);
}

static void the_rows_make_up_rss(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_STEADY);
    fake.report.memory.tracked.last_bytes += 200 << 20;
    char *text = print(200, false, &options);
    assert_has(text, " - not touched      0 B  200 MiB ");
    free(text);
    fake.report.memory.shared.last_bytes =
        fake.report.memory.shared.first_bytes + (200 << 20);
    text = print(200, false, &options);
    assert_has(text, " - in both          0 B  200 MiB ");
    free(text);
    fake.report.memory.shared.last_bytes =
        fake.report.memory.shared.first_bytes;
    fake.report.memory.tracked.last_bytes -= 250 << 20;
    text = print(200, false, &options);
    assert_has(text, " + newer            0 B   50 MiB ");
    assert_has(text, "since glibc's malloc was last asked");
    free(text);
}

static char *print_several(size_t count,
                           const struct seep_text_options *options)
{
    const struct seep_report *reports[8];
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = 200};

    for (size_t i = 0; i < count; i++) {
        reports[i] = &several[i].report;
    }
    seep_view_text_reports(&page, reports, count, options);
    fclose(page.file);
    return text;
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)) != NULL; text++) {
        count++;
    }
    return count;
}

/* A script starts dozens of helpers: the first ones are what matters. */
static void of_many_processes_the_first_are_told_in_full(void **state)
{
    struct seep_text_options options = {.site_limit = 10, .process_limit = 3};

    (void)state;
    for (size_t i = 0; i < 8; i++) {
        fake_report_become(&several[i], i < 1   ? SEEP_VERDICT_LEAK
                                        : i < 4 ? SEEP_VERDICT_STEADY
                                                : SEEP_VERDICT_INSUFFICIENT);
        several[i].report.duration_s = i < 5 ? 842 : 0.1;
    }
    char *text = print_several(8, &options);
    assert_ptr_equal(strstr(text, "seep: 8 processes: 1 leak, 4 "
                                  "insufficient-data, 3 steady; "),
                     text);
    assert_int_equal(count_of(text, " memory  "), 3);
    assert_int_equal(count_of(text, "\nSTEADY  python3"), 3);
    assert_int_equal(count_of(text, "\nINSUFFICIENT DATA  python3"), 1);
    assert_has(text, "\nand 3 processes that lived less than 1 s "
                     "(--processes 0 shows all)\n");
    free(text);
    options.process_limit = 0;
    text = print_several(8, &options);
    assert_int_equal(count_of(text, " memory  "), 8);
    free(text);
    text = print_several(1, &options);
    assert_ptr_equal(strstr(text, "LEAK  python3"), text);
    free(text);
}

static void a_device_has_a_row_of_its_own(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake.spaces[1] = (struct seep_report_space){.space = SEEP_SPACE_DEVICE,
                                                .live_bytes = 3ULL << 30};
    fake.report.space_count = 2;
    char *text = print(200, false, &options);
    assert_has(text, "\n device ");
    assert_has(text, "3 GiB");
    free(text);
}

static void no_line_is_wider_than_the_page(void **state)
{
    static const size_t widths[] = {40, 60, 80, 100, 120, 1000};
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    for (size_t i = 0; i < 6 * SEEP_VERDICT_COUNT; i++) {
        size_t width = widths[i % 6];

        fake_report_become(&fake, (enum seep_verdict_class)(i / 6));
        char *text = print(width, false, &options);
        for (char *line = strtok(text, "\n"); line != NULL;
             line = strtok(NULL, "\n")) {
            bool wraps = strchr(line + strspn(line, " "), ' ') != NULL;
            assert_true(!wraps || seep_clean_columns(line) <= width);
        }
        free(text);
    }
}

/* A figure without its unit, or a unit alone, is no figure. */
static void a_number_stays_with_its_unit(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    for (size_t columns = 40; columns < 120; columns++) {
        char *text = print(columns, false, &options);
        for (char *line = strtok(text, "\n"); line != NULL;
             line = strtok(NULL, "\n")) {
            line += strspn(line, " ");
            assert_true(strncmp(line, "MiB", 3) != 0);
            assert_true(strncmp(line, "min", 3) != 0);
            assert_true(strncmp(line, "% ", 2) != 0);
        }
        free(text);
    }
}

static void of_many_marks_the_last_are_told(void **state)
{
    static const struct seep_report_mark marks[] = {
        {1, "one", 0},  {2, "two", 0},  {3, "three", 0},   {4, "four", 0},
        {5, "five", 0}, {60, "six", 0}, {720, "seven", 0},
    };
    struct seep_text_options options = {.site_limit = 10};
    char *text = print(200, false, &options);

    (void)state;
    assert_non_null(strstr(text, "marks   warm-up done at 12.0 s, model"));
    free(text);
    fake.report.marks = marks;
    fake.report.mark_count = 7;
    text = print(200, false, &options);
    assert_non_null(
        strstr(text, "marks   2 before, then three at 3.0 s, four "));
    assert_non_null(strstr(text, "six at 1 min 00 s, seven at 12 min 00 s"));
    assert_non_null(strstr(text, "marks      one at 1.0 s")); /* info: all */
    free(text);
    fake.report.mark_count = 0;
    text = print(200, false, &options);
    assert_null(strstr(text, "marks"));
    free(text);
}

static void nothing_hostile_reaches_the_terminal(void **state)
{
    static const size_t widths[] = {40, 80, 120, 200};
    struct seep_text_options options = {.site_limit = 10, .stacks = true};
    struct seep_pattern pattern = fake_report_pattern;

    (void)state;
    for (size_t i = 0; i < 8 * SEEP_VERDICT_COUNT; i++) {
        fake_report_become(&fake, (enum seep_verdict_class)(i / 8));
        fake.report.executable = "/\033c";
        fake.report.labels = "\033]0;x\007";
        fake.report.host = "h\rost";
        fake.report.path = "/data/\033[31m";
        fake.report.verdict.reason = "\033[5m\nno";
        fake.mappings[1].name = "/x/\033[31m\n";
        fake.sites[0].where_frame = 9;
        fake.sites[0].where = FAKE_HOSTILE_FUNCTION;
        fake.sites[1].suppressed_by = "\033[2J";
        fake.report.verdict.suppressed_count = 1;
        pattern.name = pattern.remedy = "\033[2J\n";
        fake.sites[0].pattern = &pattern;
        char *text = print(widths[i / 2 % 4], i % 2 == 1, &options);
        assert_harmless(text, i % 2 == 1);
        free(text);
    }
}

static void colours_are_only_added(void **state)
{
    struct seep_text_options options = {.site_limit = 10};
    char *plain = print(80, false, &options);
    char *colored = print(80, true, &options);
    char *out = colored;

    (void)state;
    assert_non_null(strstr(colored, "\033[1;31mLEAK"));
    for (const char *in = colored; *in != '\0'; in++) {
        if (*in == '\033') {
            in += strcspn(in, "m");
        } else {
            *out++ = *in;
        }
    }
    *out = '\0';
    assert_string_equal(colored, plain);
    free(plain);
    free(colored);
}

static void what_was_not_computed_is_not_said(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_INSUFFICIENT);
    fake.report.memory.valid = false;
    char *text = print(200, false, &options);
    assert_null(strstr(text, "MiB/min"));
    assert_null(strstr(text, "LEAK"));
    assert_null(strstr(text, "RSS"));
    assert_has(
        text,
        "INSUFFICIENT DATA  python3 serve.py (pid 4242): cannot tell yet");
    assert_has(text, " unclear  562 MiB");
    free(text);
}

static void every_loss_is_told(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake.counters[SEEP_COUNT_DROPPED_FREES].value = 12;
    fake.counters[SEEP_COUNT_SITES_FULL].value = 3;
    char *text = print(200, false, &options);
    assert_has(text, "12 events lost");
    assert_has(text, "lost    12 frees not recorded because a ring was full");
    assert_has(text, "lost    3 events charged to no call site");
    free(text);
}

static void one_site_can_be_asked_for_with_its_stack(void **state)
{
    struct seep_text_options options = {
        .site_limit = 10, .stacks = true, .site_id = "77"};
    char *text = print(200, false, &options);

    (void)state;
    assert_has(text, "site 77aa0011  suspect, heap, 14 MiB live in 3 blocks\n");
    assert_has(text, "(cut here: code without unwind information)");
    assert_null(strstr(text, "site 3f9a"));
    free(text);
}

static void rows_left_out_are_counted(void **state)
{
    struct seep_text_options options = {.site_limit = 1};

    (void)state;
    fake.report.site_total = 40;
    char *text = print(200, false, &options);
    assert_has(text, " and 39 more call sites (--sites 0 shows all)\n");
    free(text);
}

static void the_worst_process_is_the_first(void **state)
{
    struct fake_report other;

    (void)state;
    fake_report_fill(&other);
    other.report.verdict.class = SEEP_VERDICT_STEADY;
    assert_true(seep_gather_compare(&fake.report, &other.report) < 0);
    other.report.verdict.class = SEEP_VERDICT_LEAK;
    other.report.verdict.growth_bytes_per_s.low = 800000;
    assert_true(seep_gather_compare(&fake.report, &other.report) > 0);
}

/* Else a healthy server that a script started began with "first to look at:
 * readlink". */
static void what_lived_for_a_moment_is_never_the_first(void **state)
{
    struct fake_report helper;

    (void)state;
    fake_report_become(&fake, SEEP_VERDICT_STEADY);
    fake_report_become(&helper, SEEP_VERDICT_INSUFFICIENT);
    helper.report.duration_s = 0.02;
    assert_true(seep_gather_compare(&fake.report, &helper.report) < 0);
    helper.report.duration_s = 12;
    assert_true(seep_gather_compare(&fake.report, &helper.report) > 0);
    helper.report.duration_s = 0.02;
    helper.report.inert = SEEP_INERT_OWN_MALLOC;
    assert_true(seep_gather_compare(&fake.report, &helper.report) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_answer_stands_first, fill),
        cmocka_unit_test_setup(
            the_table_has_growth_live_and_the_way_to_the_allocation, fill),
        cmocka_unit_test_setup(the_parts_stand_in_their_order, fill),
        cmocka_unit_test_setup(
            suppressed_sites_are_counted_and_shown_when_asked, fill),
        cmocka_unit_test_setup(what_the_floor_hid_is_counted, fill),
        cmocka_unit_test_setup(a_row_of_nothing_is_not_in_the_brief_table,
                               fill),
        cmocka_unit_test_setup(a_known_pattern_stands_under_its_row, fill),
        cmocka_unit_test_setup(a_brief_table_has_few_rows_of_what_does_not_grow,
                               fill),
        cmocka_unit_test_setup(what_was_killed_tells_what_it_did_last, fill),
        cmocka_unit_test_setup(
            what_holds_the_most_is_a_row_and_the_start_is_one, fill),
        cmocka_unit_test_setup(rows_by_what_they_hold_have_the_most_first,
                               fill),
        cmocka_unit_test_setup(the_balance_adds_up_and_names_what_grew_unseen,
                               fill),
        cmocka_unit_test_setup(a_cgroup_without_a_limit_is_left_out, fill),
        cmocka_unit_test_setup(what_does_not_grow_has_no_rate, fill),
        cmocka_unit_test_setup(the_rows_make_up_rss, fill),
        cmocka_unit_test_setup(of_many_processes_the_first_are_told_in_full,
                               fill),
        cmocka_unit_test_setup(a_device_has_a_row_of_its_own, fill),
        cmocka_unit_test_setup(no_line_is_wider_than_the_page, fill),
        cmocka_unit_test_setup(a_number_stays_with_its_unit, fill),
        cmocka_unit_test_setup(of_many_marks_the_last_are_told, fill),
        cmocka_unit_test_setup(nothing_hostile_reaches_the_terminal, fill),
        cmocka_unit_test_setup(colours_are_only_added, fill),
        cmocka_unit_test_setup(what_was_not_computed_is_not_said, fill),
        cmocka_unit_test_setup(every_loss_is_told, fill),
        cmocka_unit_test_setup(one_site_can_be_asked_for_with_its_stack, fill),
        cmocka_unit_test_setup(rows_left_out_are_counted, fill),
        cmocka_unit_test_setup(the_worst_process_is_the_first, fill),
        cmocka_unit_test_setup(what_lived_for_a_moment_is_never_the_first,
                               fill),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
