/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/text/tree: branches of stacks that are known, and their sums. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "seep_test.h"

#include "recording_builder.h"
#include "text/report.h"

#define TICKS(s) ((uint32_t)((s)*953.67431640625))
#define KIB 1024U
#define LINES_MAX 400

struct line {
    double kib; /* below 0: it only leads on */
    double peak_kib;
    int level;
    char label[80];
};

struct fixture {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
    uint32_t module;
    uint64_t next_address;
    struct line lines[LINES_MAX];
    int count;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    builder_temporary(f->path);
    builder_init(&f->builder, UINT64_C(8) << 20, true);
    f->module = builder_module(&f->builder, "/opt/app/worker", 0xab);
    f->next_address = 0x100000;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    seep_report_close(f->report);
    builder_fini(&f->builder);
    unlink(f->path);
    free(f);
    return 0;
}

/* @offsets: from main() on, @count of them; from @born_s to @died_s, below 0 to
 * the end. */
static void live(struct fixture *f, const uint64_t *offsets, uint32_t count,
                 uint64_t bytes, double born_s, double died_s)
{
    uint64_t frames[16];
    uint32_t site;

    for (uint32_t i = 0; i < count; i++) {
        frames[count - 1 - i] = builder_frame(f->module, offsets[i]);
    }
    site = builder_site(&f->builder, builder_stack(&f->builder, frames, count),
                        SEEP_SPACE_HEAP);
    f->next_address += 0x1000000;
    builder_alloc(&f->builder, f->next_address, bytes, site, TICKS(born_s));
    builder_fold(&f->builder);
    if (died_s >= 0) {
        builder_free(&f->builder, f->next_address, TICKS(died_s));
        builder_fold(&f->builder);
    }
}

#define LIVE(f, bytes, born_s, died_s, ...)                                 \
    live(f, (const uint64_t[]){__VA_ARGS__},                                \
         sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), bytes, \
         born_s, died_s)

/* "60 KiB" in the columns [@from, @to). */
static double kib_at(const char *line, size_t from, size_t to)
{
    char text[40];
    char unit[8] = "";
    double value;

    snprintf(text, sizeof(text), "%.*s", (int)(to - from), line + from);
    if (sscanf(text, "%lf %7s", &value, unit) < 1) {
        return -1;
    }
    return strcmp(unit, "KiB") == 0   ? value
           : strcmp(unit, "MiB") == 0 ? value * KIB
                                      : value / KIB;
}

static void read_lines(struct fixture *f, char *text, const char *title)
{
    char *head = strstr(text, title);
    char *line;
    size_t label;
    size_t peak;

    assert_non_null(head);
    line = head;
    while (line > text && line[-1] != '\n') {
        line--;
    }
    label = (size_t)(head - line);
    peak = (size_t)(strstr(line, "peak") - line) + 4;
    f->count = 0;
    for (line = strchr(line, '\n') + 1; *line != '\n';
         line = strchr(line, '\n') + 1) {
        struct line *at = &f->lines[f->count++];
        char *end = strchr(line, '\n');
        size_t blanks = strspn(line + label, " ");

        assert_true(f->count < LINES_MAX);
        snprintf(at->label, sizeof(at->label), "%.*s",
                 (int)(end - line - (long)label - (long)blanks),
                 line + label + blanks);
        at->level = (int)blanks / 2;
        at->kib = kib_at(line, 0, peak - 8);
        at->peak_kib = kib_at(line, peak - 8, label);
    }
}

static void print_at(struct fixture *f, enum seep_text_tree way, size_t limit,
                     double at_s, size_t columns)
{
    const struct seep_report_options stacks = {.by = SEEP_BY_STACK};
    const struct seep_text_options options = {
        .tree = way,
        .site_limit = limit,
        .wish.at = {SEEP_SPAN_TIME, at_s, NULL},
    };
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = columns};

    if (f->report == NULL) {
        builder_exit(&f->builder, TICKS(100));
        builder_write(&f->builder, f->path);
        assert_int_equal(seep_report_open(f->path, &stacks, NULL, &f->report),
                         0);
    }
    seep_view_text_report(&page, f->report, &options);
    fclose(page.file);
    read_lines(f, text,
               way == SEEP_TREE_DOWN ? "callers, down" : "what allocates, up");
    free(text);
}

static const struct line *line_of(const struct fixture *f, const char *label)
{
    for (int i = 0; i < f->count; i++) {
        if (strcmp(f->lines[i].label, label) == 0) {
            return &f->lines[i];
        }
    }
    fail_msg("no line \"%s\"", label);
    return NULL;
}

static void play_branches(struct fixture *f)
{
    LIVE(f, 600 * KIB, 10, -1, 0x1000, 0x2000, 0x2100);
    LIVE(f, 300 * KIB, 20, -1, 0x1000, 0x2000, 0x2200);
    LIVE(f, 100 * KIB, 30, -1, 0x1000, 0x3000, 0x3100);
    LIVE(f, 500 * KIB, 40, 50, 0x1000, 0x3000, 0x3100, 0x3200);
    for (uint64_t i = 0; i < 3; i++) {
        LIVE(f, KIB, 30, -1, 0x1000, 0x4000 + i);
    }
}

static void callers_come_first_with_what_all_below_them_hold(void **state)
{
    struct fixture *f = *state;

    play_branches(f);
    print_at(f, SEEP_TREE_DOWN, 10, 90, 120);
    assert_string_equal(f->lines[0].label, "all");
    assert_true(f->lines[0].kib == 1003);
    /* What only leads on has no figures of its own. */
    assert_string_equal(f->lines[1].label, "worker+0x1000");
    assert_true(f->lines[1].kib < 0 && f->lines[1].level == 0);
    assert_string_equal(f->lines[2].label, "worker+0x2000");
    assert_true(f->lines[2].kib == 900 && f->lines[2].level == 1);
    assert_string_equal(f->lines[3].label, "worker+0x2100");
    assert_true(f->lines[3].kib == 600 && f->lines[3].level == 2);
    assert_string_equal(f->lines[4].label, "worker+0x2200");
    assert_true(line_of(f, "worker+0x3000")->kib == 100);
    assert_true(line_of(f, "worker+0x3100")->kib < 0);
    assert_true(line_of(f, "3 thinner branches")->kib == 3);
}

static void a_branch_has_the_peak_of_all_below_it_together(void **state)
{
    struct fixture *f = *state;

    play_branches(f);
    print_at(f, SEEP_TREE_DOWN, 10, 90, 120);
    assert_true(line_of(f, "worker+0x3000")->peak_kib == 600);
    assert_true(line_of(f, "worker+0x2000")->peak_kib == 900);
    assert_true(f->lines[0].peak_kib / KIB >= 1.4);
}

static void what_allocates_comes_first_with_who_called_it(void **state)
{
    struct fixture *f = *state;
    const struct line *first;

    play_branches(f);
    LIVE(f, 50 * KIB, 30, -1, 0x1000, 0x5000, 0x2200);
    print_at(f, SEEP_TREE_UP, 10, 90, 120);
    assert_string_equal(f->lines[1].label, "worker+0x2100");
    assert_true(f->lines[1].kib == 600);
    first = line_of(f, "worker+0x2200");
    assert_true(first->kib == 350 && first->level == 1);
    assert_string_equal(first[1].label, "worker+0x2000");
    assert_true(first[1].kib == 300 && first[1].level == 2);
    assert_string_equal(first[2].label, "worker+0x1000");
    assert_true(first[2].kib < 0);
    assert_string_equal(first[3].label, "worker+0x5000");
    assert_true(first[3].kib == 50);
}

static void
what_a_caller_takes_itself_is_a_line_beside_what_it_calls(void **state)
{
    struct fixture *f = *state;

    LIVE(f, 70 * KIB, 10, -1, 0x1000, 0x2000);
    LIVE(f, 30 * KIB, 10, -1, 0x1000, 0x2000, 0x2100);
    print_at(f, SEEP_TREE_DOWN, 10, 90, 120);
    assert_string_equal(f->lines[2].label, "worker+0x2000");
    assert_true(f->lines[2].kib < 0);
    assert_string_equal(f->lines[3].label, "by itself");
    assert_true(f->lines[3].kib == 70 && f->lines[3].level == 1);
    assert_true(line_of(f, "worker+0x2100")->kib == 30);
}

/* Branches below @i, with figures: their sum. */
static double sum_below(const struct fixture *f, int i, int *ret_count)
{
    double sum = 0;

    *ret_count = 0;
    for (int j = i + 1; j < f->count; j++) {
        const struct line *line = &f->lines[j];

        if (line->kib >= 0 && line->level <= f->lines[i].level) {
            break;
        }
        if (line->kib >= 0 && line->level == f->lines[i].level + 1) {
            sum += line->kib;
            ++*ret_count;
        }
    }
    return sum;
}

static void every_branch_is_the_sum_of_those_below_it(void **state)
{
    struct fixture *f = *state;
    uint32_t random = 7;
    double total = 0;

    for (int i = 0; i < 150; i++) {
        uint64_t offsets[8] = {0x1000};
        uint32_t depth = 1;

        random = random * 1664525U + 1013904223U;
        for (uint32_t bits = random >> 8; depth < 7 && bits % 4 != 0;
             bits >>= 2) {
            offsets[depth] = 0x1000 * depth + bits % 4 * 16;
            depth++;
        }
        live(f, offsets, depth, KIB * (1 + random % 5), i / 2., -1);
        total += 1 + random % 5;
    }
    for (size_t limit = 0; limit < 8; limit += 3) {
        print_at(f, limit == 6 ? SEEP_TREE_UP : SEEP_TREE_DOWN, limit, 99, 160);
        assert_true(f->lines[0].kib == total);
        assert_true(f->count > 10);
        for (int i = 0; i < f->count; i++) {
            int count;
            double sum = sum_below(f, i, &count);

            assert_true(f->lines[i].kib < 0 || count == 0 ||
                        sum == f->lines[i].kib);
        }
    }
}

static void a_long_way_without_a_branch_is_cut_in_its_middle(void **state)
{
    struct fixture *f = *state;

    LIVE(f, 64 * KIB, 10, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
         16);
    print_at(f, SEEP_TREE_DOWN, 10, 90, 120);
    line_of(f, "… 6 calls …");
    line_of(f, "worker+0x1");
    line_of(f, "worker+0x10");
    for (int i = 1; i < f->count; i++) {
        assert_true(f->lines[i].kib < 0);
        assert_int_equal(f->lines[i].level, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(callers_come_first_with_what_all_below_them_hold),
        TEST(a_branch_has_the_peak_of_all_below_it_together),
        TEST(what_allocates_comes_first_with_who_called_it),
        TEST(what_a_caller_takes_itself_is_a_line_beside_what_it_calls),
        TEST(every_branch_is_the_sum_of_those_below_it),
        TEST(a_long_way_without_a_branch_is_cut_in_its_middle),
#undef TEST
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
