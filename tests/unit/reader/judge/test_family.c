/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* reader/family*: who belongs together, their sums, and one forecast. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reader/judge/family.h"
#include "seep_test.h"

#define MIB (1024.0 * 1024.0)
#define GIB (1024 * MIB)
#define MOST 16
#define HOUR_S 3600.0
#define assert_near(value, expected, error) \
    assert_true(fabs((value) - (expected)) <= (error))

static struct seep_report reports[MOST];
static struct seep_report_site sites[MOST][2];
static struct seep_report_space spaces[MOST];
static const struct seep_report *list[MOST];
static const char *arguments[MOST][4];

static const char *const plain[] = {"/usr/bin/python3", "serve.py"};

/* Processes that run, of one program, and are steady. */
static int set_up(void **state)
{
    (void)state;
    memset(reports, 0, sizeof(reports));
    memset(sites, 0, sizeof(sites));
    for (size_t i = 0; i < MOST; i++) {
        reports[i] = (struct seep_report){
            .path = "x.seep",
            .state = SEEP_STATE_RUNNING,
            .pid = (uint32_t)(100 + i),
            .executable = "/usr/bin/python3",
            .arguments = plain,
            .argument_count = 2,
            .labels = "model=bert",
            .host = "node1",
            .start_realtime_ns = UINT64_C(1700000000000000000),
            .duration_s = 1000,
            .by = SEEP_BY_LINE,
            .verdict = {.class = SEEP_VERDICT_STEADY,
                        .reason = "",
                        .device = -1,
                        .forecast = {.what = "", .device = -1}},
            .sites = sites[i],
            .spaces = &spaces[i],
            .space_count = 1,
        };
        spaces[i] = (struct seep_report_space){.space = SEEP_SPACE_HEAP};
        list[i] = &reports[i];
    }
    return 0;
}

static struct seep_families make(size_t count)
{
    struct seep_families families;

    assert_int_equal(seep_families_make(list, count, &families), 0);
    return families;
}

static size_t count_of(size_t count)
{
    struct seep_families families = make(count);
    size_t found = families.count;

    seep_families_fini(&families);
    return found;
}

static void give_word(size_t i, const char *word)
{
    arguments[i][0] = "python3";
    arguments[i][1] = word;
    reports[i].arguments = arguments[i];
}

static void check_pair(const char *left, const char *right, size_t count)
{
    give_word(0, left);
    give_word(1, right);
    assert_int_equal(count_of(2), count);
}

static void numbers_of_replicas_do_not_part_a_family(void **state)
{
    (void)state;
    check_pair("--port=8080", "--port=8081", 1);
    check_pair("spawn_main(tracker_fd=5, pipe_handle=7)",
               "spawn_main(tracker_fd=5, pipe_handle=11)", 1);
    check_pair("/run/worker3.sock", "/run/worker12.sock", 1);
    check_pair("gpu0", "gpu1", 1);
    check_pair("", "", 1);
}

static void numbers_of_models_do_part_it(void **state)
{
    (void)state;
    check_pair("--model=7b", "--model=13b", 2);
    check_pair("gpt2", "gpt3", 2);
    check_pair("model-1.5", "model-1.6", 2);
    check_pair("serve.py", "train.py", 2);
    /* One argument is not two. */
    arguments[1][1] = "a";
    arguments[1][2] = "b";
    reports[1].argument_count = 3;
    give_word(0, "a\nb");
    assert_int_equal(count_of(2), 2);
}

static void hosts_programs_and_labels_part_a_family(void **state)
{
    (void)state;
    reports[1].labels = "worker=1,model=bert,rank=7";
    reports[2].labels = "model=bert,replica=2";
    assert_int_equal(count_of(3), 1);
    reports[1].labels = "model=bert,role=canary";
    assert_int_equal(count_of(3), 2);
    reports[2].host = "node2";
    assert_int_equal(count_of(3), 3);
    reports[3].executable = "/opt/python3";
    assert_int_equal(count_of(4), 4);
}

static void names_may_be_anything(void **state)
{
    char labels[4000];

    (void)state;
    for (size_t i = 0; i + 1 < sizeof(labels); i++) {
        labels[i] = i % 7 == 0 ? ',' : (char)(128 + i % 100);
    }
    labels[sizeof(labels) - 1] = '\0';
    reports[0].labels = labels;
    reports[1].labels = ",,,=,=x,,";
    reports[2].labels = NULL;
    reports[2].host = NULL;
    reports[2].argument_count = 0;
    give_word(3, "\xff\xfe"
                 "9\x80"
                 "9.9..9.");
    assert_int_equal(count_of(4), 4);
    assert_int_equal(count_of(0), 0);
}

static void an_id_is_the_same_in_every_run(void **state)
{
    (void)state;
    struct seep_families one = make(2);
    reports[0].pid = 7;
    reports[1].labels = "replica=9,model=bert";
    struct seep_families other = make(3);

    assert_string_equal(one.list[0].id, other.list[0].id);
    assert_int_equal(strlen(one.list[0].id), 16);
    seep_families_fini(&one);
    seep_families_fini(&other);
}

/* Grows by @rate, by a tenth more or less, until the machine is full. */
static void leak(size_t i, double rate, double used, double limit)
{
    struct seep_report *report = &reports[i];
    double seconds = (limit - used) / rate;

    report->verdict.class = SEEP_VERDICT_LEAK;
    report->verdict.has_growth = true;
    report->verdict.growth_bytes_per_s =
        (struct seep_interval){rate, 0.9 * rate, 1.1 * rate};
    report->verdict.forecast = (struct seep_report_forecast){
        .answer = SEEP_FORECAST_TIME,
        .what = "ram",
        .limit_bytes = (uint64_t)limit,
        .used_bytes = (uint64_t)used,
        .seconds = {seconds, seconds / 1.1, seconds / 0.9},
        .device = -1,
    };
    report->memory = (struct seep_report_memory){
        .valid = true,
        .rss = {true, 0, 100 * MIB, 0, 0},
        .anonymous = {true, 0, 100 * MIB, 0, 0},
        .machine_bytes = (uint64_t)limit,
        .available_bytes = (uint64_t)(limit - used),
    };
    sites[i][0] = (struct seep_report_site){
        .id = "3f9a00112233",
        .device = -1,
        .class = SEEP_CLASS_LEAK,
        .live_bytes = 50,
        .has_growth = true,
        .growth_bytes_per_s = {rate, 0.9 * rate, 1.1 * rate},
        .where = "serve.py:31 handle",
    };
    report->site_count = 1;
}

/* Seven hours, eight, and a little under ten: 2.7 h together. */
static void three_that_last_seven_hours_last_under_three_together(void **state)
{
    double room = 8 * GIB;
    double rates[] = {room / (7 * HOUR_S), room / (8 * HOUR_S),
                      room * (1 / 2.7 - 1 / 7.0 - 1 / 8.0) / HOUR_S};
    double sum = rates[0] + rates[1] + rates[2];
    double half = 0.1 * sqrt(rates[0] * rates[0] + rates[1] * rates[1] +
                             rates[2] * rates[2]);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        leak(i, rates[i], 16 * GIB, 24 * GIB);
    }
    struct seep_families families = make(3);
    const struct seep_family *family = &families.list[0];
    assert_int_equal(families.count, 1);
    assert_int_equal(family->growing_count, 3);
    assert_near(family->growth_bytes_per_s.estimate, sum, 1);
    assert_near(family->growth_bytes_per_s.low, sum - half, 1);
    assert_near(family->growth_bytes_per_s.high, sum + half, 1);
    assert_int_equal(family->forecast.answer, SEEP_FORECAST_TIME);
    assert_string_equal(family->forecast.what, "ram");
    assert_near(family->forecast.seconds.estimate, 2.7 * HOUR_S, 1);
    assert_near(family->forecast.seconds.low, room / (sum + half), 1);
    assert_int_equal(family->sites[0].leak_count, 3);
    assert_near(family->sites[0].growth_bytes_per_s.low, sum - half, 1);
    assert_int_equal(family->sites[0].live_bytes, 150);
    seep_families_fini(&families);
}

static void give_cgroup(size_t i, double used, double limit)
{
    reports[i].memory.cgroup = (struct seep_report_extent){true, 0, used, 0, 0};
    reports[i].memory.cgroup_limit_bytes = (uint64_t)limit;
}

static struct seep_family_forecast_check {
    double seconds;
    bool shares;
    char what[8];
} forecast_of_three(void)
{
    struct seep_families families = make(3);
    struct seep_family_forecast_check check = {
        .seconds = families.list[0].forecast.seconds.estimate,
        .shares = families.list[0].shares_cgroup,
    };

    snprintf(check.what, sizeof(check.what), "%s",
             families.list[0].forecast.what);
    seep_families_fini(&families);
    return check;
}

static void rates_are_summed_against_a_group_that_is_shared(void **state)
{
    struct seep_family_forecast_check check;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        leak(i, MIB, 16 * GIB, 24 * GIB);
        give_cgroup(i, 400 * MIB, 1000 * MIB);
    }
    check = forecast_of_three();
    assert_true(check.shares);
    assert_string_equal(check.what, "cgroup");
    assert_near(check.seconds, 200, 0.1);
    /* One is in another group. */
    give_cgroup(2, 400 * MIB, 900 * MIB);
    check = forecast_of_three();
    assert_false(check.shares);
    assert_string_equal(check.what, "ram");
    assert_near(check.seconds, 8 * 1024 / 3.0, 1);
    /* A group each: none is charged with what all of them hold. */
    for (size_t i = 0; i < 3; i++) {
        give_cgroup(i, 110 * MIB, 1000 * MIB);
    }
    assert_false(forecast_of_three().shares);
}

static void what_has_ended_fills_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        leak(i, MIB, 16 * GIB, 24 * GIB);
    }
    reports[3].state = SEEP_STATE_KILLED;
    reports[3].site_count = 0;
    struct seep_families families = make(4);
    assert_int_equal(families.list[0].together_count, 3);
    assert_int_equal(families.list[0].running_count, 3);
    assert_near(families.list[0].growth_bytes_per_s.estimate, 3 * MIB, 1);
    seep_families_fini(&families);
}

static void of_ended_ones_those_count_that_ran_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        leak(i, MIB, 16 * GIB, 24 * GIB);
        reports[i].state = SEEP_STATE_EXITED;
        reports[i].duration_s = 100;
        /* Two, then three, which took over from them. */
        reports[i].start_realtime_ns +=
            (i < 2 ? 0 : 200) * UINT64_C(1000000000);
    }
    struct seep_families families = make(5);
    assert_int_equal(families.list[0].together_count, 3);
    assert_ptr_equal(families.list[0].together[0], &reports[2]);
    seep_families_fini(&families);
}

static enum seep_verdict_class class_of(size_t count)
{
    struct seep_families families = make(count);
    enum seep_verdict_class class = families.list[0].class;

    assert_int_equal(seep_families_class(&families), class);
    seep_families_fini(&families);
    return class;
}

static void the_worst_member_is_never_hidden(void **state)
{
    (void)state;
    assert_int_equal(class_of(4), SEEP_VERDICT_STEADY);
    reports[1].verdict.class = SEEP_VERDICT_BOUNDED;
    assert_int_equal(class_of(4), SEEP_VERDICT_BOUNDED);
    reports[2].verdict.class = SEEP_VERDICT_INSUFFICIENT;
    assert_int_equal(class_of(4), SEEP_VERDICT_INSUFFICIENT);
    reports[1].verdict.class = SEEP_VERDICT_RETENTION;
    assert_int_equal(class_of(4), SEEP_VERDICT_INSUFFICIENT);
    reports[3].verdict.class = SEEP_VERDICT_SUSPECT;
    assert_int_equal(class_of(4), SEEP_VERDICT_SUSPECT);
    leak(0, MIB, 16 * GIB, 24 * GIB);
    assert_int_equal(class_of(4), SEEP_VERDICT_LEAK);
    /* One that lived for a moment tells nothing either way. */
    set_up(NULL);
    reports[2].verdict.class = SEEP_VERDICT_INSUFFICIENT;
    reports[2].duration_s = 0.5;
    assert_int_equal(class_of(4), SEEP_VERDICT_STEADY);
}

static void a_suspect_is_not_summed_with_leaks(void **state)
{
    (void)state;
    leak(0, MIB, 16 * GIB, 24 * GIB);
    leak(1, MIB, 16 * GIB, 24 * GIB);
    reports[1].verdict.class = SEEP_VERDICT_SUSPECT;
    reports[1].verdict.forecast.if_suspect = true;
    struct seep_families families = make(2);
    assert_int_equal(families.list[0].growing_count, 1);
    assert_false(families.list[0].forecast.if_suspect);
    seep_families_fini(&families);
    reports[0].verdict = reports[1].verdict;
    families = make(2);
    assert_int_equal(families.list[0].growing_count, 2);
    assert_true(families.list[0].forecast.if_suspect);
    seep_families_fini(&families);
}

/* Page cache that is mapped: the kernel can drop it. */
static void growth_by_files_fills_nothing(void **state)
{
    (void)state;
    leak(0, MIB, 16 * GIB, 24 * GIB);
    leak(1, MIB, 16 * GIB, 24 * GIB);
    reports[1].verdict.files = true;
    reports[1].verdict.forecast.answer = SEEP_FORECAST_UNKNOWN;
    struct seep_families families = make(2);
    assert_near(families.list[0].growth_bytes_per_s.estimate, 2 * MIB, 1);
    assert_near(families.list[0].forecast.seconds.estimate, 8192, 1);
    seep_families_fini(&families);
    reports[0].verdict.files = true;
    reports[0].verdict.forecast.answer = SEEP_FORECAST_UNKNOWN;
    families = make(2);
    assert_int_equal(families.list[0].forecast.answer, SEEP_FORECAST_UNKNOWN);
    seep_families_fini(&families);
}

static void one_of_eight_that_leaks_is_told_as_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        leak(i, MIB, 16 * GIB, 24 * GIB);
        if (i > 0) {
            reports[i].verdict.class = SEEP_VERDICT_STEADY;
            sites[i][0].class = SEEP_CLASS_STEADY;
            sites[i][0].has_growth = false;
        }
    }
    struct seep_families families = make(8);
    assert_int_equal(families.list[0].sites[0].leak_count, 1);
    assert_int_equal(families.list[0].sites[0].process_count, 8);
    assert_near(families.list[0].sites[0].growth_bytes_per_s.estimate, MIB, 1);
    seep_families_fini(&families);
}

/* Twelve children of 3 to 6 s, that keep @once and @each more a second. */
static struct seep_families make_children(double once, double each,
                                          double noise)
{
    static const double scatter[] = {0.3, -1,  0.8,  -0.4, 1,    -0.7,
                                     0.1, 0.6, -0.9, 0.5,  -0.2, -0.1};

    for (size_t i = 0; i < 12; i++) {
        struct seep_report *report = &reports[i];
        double length = 3 + 3.0 * (double)((i * 5) % 12) / 11;
        double kept = once + each * length + noise * scatter[i];

        report->state = SEEP_STATE_EXITED;
        report->duration_s = length;
        report->start_realtime_ns += i * UINT64_C(4000000000);
        report->verdict.class = SEEP_VERDICT_INSUFFICIENT;
        report->units = (uint64_t)(length * 100);
        report->is_fork = true;
        spaces[i].live_bytes = (uint64_t)(kept + 0.3 * MIB);
        sites[i][0] = (struct seep_report_site){
            .id = "3f9a00112233",
            .device = -1,
            .class = SEEP_CLASS_INSUFFICIENT,
            .live_bytes = (uint64_t)kept,
            .where = "json_cache.py:12 parse",
        };
        report->site_count = 1;
    }
    return make(12);
}

static void check_children(double once, double each, double noise,
                           enum seep_verdict_class class,
                           enum seep_family_trend trend)
{
    set_up(NULL);
    struct seep_families families = make_children(once, each, noise);
    const struct seep_family *family = &families.list[0];

    assert_int_equal(families.count, 1);
    assert_int_equal(family->children.count, 12);
    assert_int_equal(family->sites[0].kept.count, 12);
    assert_int_equal(family->children.trend, trend);
    assert_int_equal(family->class, class);
    seep_families_fini(&families);
}

static void what_children_keep_of_each_unit_is_a_leak(void **state)
{
    (void)state;
    check_children(0, 2 * MIB, 0, SEEP_VERDICT_LEAK, SEEP_FAMILY_GROWS);
    check_children(10 * MIB, 2 * MIB, 0.2 * MIB, SEEP_VERDICT_LEAK,
                   SEEP_FAMILY_GROWS);
}

static void a_working_set_is_kept_once(void **state)
{
    (void)state;
    check_children(17 * MIB, 0, 0, SEEP_VERDICT_BOUNDED, SEEP_FAMILY_ONCE);
    check_children(17 * MIB, 0, 0.3 * MIB, SEEP_VERDICT_BOUNDED,
                   SEEP_FAMILY_ONCE);
}

static void what_scatters_too_much_is_not_told(void **state)
{
    (void)state;
    check_children(10 * MIB, 0.5 * MIB, 8 * MIB, SEEP_VERDICT_INSUFFICIENT,
                   SEEP_FAMILY_UNTOLD);
}

/* A larger job keeps more and takes longer, and is no leak. */
static void what_grows_with_time_alone_is_a_suspect(void **state)
{
    (void)state;
    struct seep_families families = make_children(0, 2 * MIB, 0);
    seep_families_fini(&families);
    for (size_t i = 0; i < 12; i++) {
        reports[i].units = 0;
    }
    families = make(12);
    assert_int_equal(families.list[0].class, SEEP_VERDICT_SUSPECT);
    assert_near(families.list[0].sites[0].kept.slope.estimate, 2 * MIB,
                MIB / 100);
    seep_families_fini(&families);
    for (size_t i = 0; i < 12; i++) {
        reports[i].units = 1;
    }
    families = make(12);
    assert_int_equal(families.list[0].class, SEEP_VERDICT_INSUFFICIENT);
    seep_families_fini(&families);
}

static void a_line_of_one_child_is_none_of_all(void **state)
{
    (void)state;
    struct seep_families families = make_children(MIB, 0, 0);
    seep_families_fini(&families);
    for (size_t i = 0; i < 12; i++) {
        sites[i][0].live_bytes = i == 3 ? 900 << 20 : 0;
    }
    families = make(12);
    assert_int_equal(families.list[0].sites[0].kept.count, 0);
    seep_families_fini(&families);
}

static void private_memory_has_a_veto_against_once(void **state)
{
    (void)state;
    struct seep_families families = make_children(17 * MIB, 0, 0);
    seep_families_fini(&families);
    for (size_t i = 0; i < 12; i++) {
        reports[i].memory.anonymous = (struct seep_report_extent){
            true, 0, reports[i].duration_s * 9 * MIB, 0, 0};
    }
    families = make(12);
    assert_int_equal(families.list[0].children.trend, SEEP_FAMILY_UNTOLD);
    assert_int_equal(families.list[0].class, SEEP_VERDICT_INSUFFICIENT);
    seep_families_fini(&families);
}

static void children_do_not_speak_for_who_began_them(void **state)
{
    (void)state;
    struct seep_families families = make_children(17 * MIB, 0, 0);
    seep_families_fini(&families);
    reports[12].verdict.class = SEEP_VERDICT_INSUFFICIENT;
    families = make(13);
    assert_int_equal(families.list[0].children.trend, SEEP_FAMILY_ONCE);
    assert_int_equal(families.list[0].class, SEEP_VERDICT_INSUFFICIENT);
    seep_families_fini(&families);
    leak(12, MIB, 16 * GIB, 24 * GIB);
    assert_int_equal(class_of(13), SEEP_VERDICT_LEAK);
    reports[12].verdict = (struct seep_report_verdict){
        .class = SEEP_VERDICT_STEADY, .reason = "", .device = -1};
    assert_int_equal(class_of(13), SEEP_VERDICT_BOUNDED);
}

/* A worker that a pool began, and had no work for. */
static void a_child_of_a_moment_is_not_compared(void **state)
{
    (void)state;
    struct seep_families families = make_children(17 * MIB, 0, 0);
    seep_families_fini(&families);
    reports[12] = reports[0];
    reports[12].duration_s = 0.03;
    reports[12].site_count = 0;
    families = make(13);
    assert_int_equal(families.list[0].children.count, 12);
    assert_int_equal(families.list[0].class, SEEP_VERDICT_BOUNDED);
    seep_families_fini(&families);
}

/* The same for longer than a moment: it has none of the lines of the others. */
static void an_idle_child_is_not_compared(void **state)
{
    (void)state;
    struct seep_families families = make_children(17 * MIB, 0, 0);
    seep_families_fini(&families);
    reports[12] = reports[0];
    reports[12].duration_s = 1.5;
    reports[12].site_count = 0;
    spaces[12].live_bytes = 10000;
    reports[12].spaces = &spaces[12];
    families = make(13);
    assert_int_equal(families.list[0].children.count, 12);
    assert_near(families.list[0].children.least_s, 3, 1e-9);
    assert_int_equal(families.list[0].class, SEEP_VERDICT_BOUNDED);
    seep_families_fini(&families);
    /* One that holds much elsewhere is not idle. */
    spaces[12].live_bytes = 50 << 20;
    families = make(13);
    assert_int_equal(families.list[0].children.count, 13);
    assert_int_equal(families.list[0].class, SEEP_VERDICT_INSUFFICIENT);
    seep_families_fini(&families);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, set_up)
        TEST(numbers_of_replicas_do_not_part_a_family),
        TEST(numbers_of_models_do_part_it),
        TEST(hosts_programs_and_labels_part_a_family),
        TEST(names_may_be_anything),
        TEST(an_id_is_the_same_in_every_run),
        TEST(three_that_last_seven_hours_last_under_three_together),
        TEST(rates_are_summed_against_a_group_that_is_shared),
        TEST(what_has_ended_fills_nothing),
        TEST(of_ended_ones_those_count_that_ran_together),
        TEST(the_worst_member_is_never_hidden),
        TEST(a_suspect_is_not_summed_with_leaks),
        TEST(growth_by_files_fills_nothing),
        TEST(one_of_eight_that_leaks_is_told_as_one),
        TEST(what_children_keep_of_each_unit_is_a_leak),
        TEST(a_working_set_is_kept_once),
        TEST(what_scatters_too_much_is_not_told),
        TEST(what_grows_with_time_alone_is_a_suspect),
        TEST(a_line_of_one_child_is_none_of_all),
        TEST(private_memory_has_a_veto_against_once),
        TEST(children_do_not_speak_for_who_began_them),
        TEST(a_child_of_a_moment_is_not_compared),
        TEST(an_idle_child_is_not_compared),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
