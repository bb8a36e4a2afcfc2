/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sentences of a family: each is there where its claim holds, and is not
 * where it does not. */
#include "claims.h"

#include <math.h>

#include "fake_report.h"
#include "text/page.h"
#include "words/verdict.h"

#define CHILDREN 12
#define MIB 1048576.0

static struct fake_report fakes[CHILDREN];
static const struct seep_report *reports[CHILDREN];
static size_t report_count;

static void become(size_t count, enum seep_verdict_class class)
{
    for (size_t i = 0; i < count; i++) {
        fake_report_become(&fakes[i], class);
        fakes[i].report.state = SEEP_STATE_RUNNING;
        fakes[i].report.pid = (uint32_t)(4242 + i);
        reports[i] = &fakes[i].report;
    }
    report_count = count;
    forget();
}

/* What the worst family is told as, and its first line. */
char *claims_text(void)
{
    struct seep_words_verdict words;
    struct seep_families families;
    char *text = NULL;
    char *line;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    assert_int_equal(seep_families_make(reports, report_count, &families), 0);
    seep_words_family(&families.list[0], &words);
    fprintf(file, "%s\n%s\n%s\n", words.label, words.sentence,
            words.forecast == NULL ? "" : words.forecast);
    for (size_t i = 0; i < words.reason_count; i++) {
        fprintf(file, "why: %s\n", words.reasons[i]);
    }
    if (families.list[0].site_count > 0) {
        line = seep_words_family_site(&families.list[0],
                                      &families.list[0].sites[0]);
        fprintf(file, "line: %s\n", line);
        free(line);
    }
    seep_words_verdict_fini(&words);
    seep_families_fini(&families);
    fclose(file);
    return text;
}

static void what_grows_in_all_of_them(void **state)
{
    (void)state;
    become(3, SEEP_VERDICT_LEAK);
    holds("3 processes of python3 serve.py together grow by 124 MiB/min");
    holds(", most at serve.py:31 handle, in 3 of 3");
    holds("one by one: 3 leak");
    fake_report_become(&fakes[2], SEEP_VERDICT_STEADY);
    fakes[2].report.state = SEEP_STATE_RUNNING;
    fails("3 processes of python3 serve.py together grow by 124 MiB/min");
    fails(", most at serve.py:31 handle, in 3 of 3");
    fails("one by one: 3 leak");
    holds("2 of 3 processes of python3 serve.py together grow");
    holds("together grow");
    fake_report_become(&fakes[1], SEEP_VERDICT_STEADY);
    fakes[1].report.state = SEEP_STATE_RUNNING;
    fails("2 of 3 processes of python3 serve.py together grow");
    fails("together grow"); /* one is not several */
}

static void what_may_leak_in_some_of_them(void **state)
{
    (void)state;
    become(3, SEEP_VERDICT_SUSPECT);
    holds("3 processes of python3 serve.py may leak: together growing by 124");
    holds(" may leak: together growing by");
    for (size_t i = 1; i < 3; i++) {
        fake_report_become(&fakes[i], SEEP_VERDICT_STEADY);
        fakes[i].report.state = SEEP_STATE_RUNNING;
    }
    fails("3 processes of python3 serve.py may leak: together growing by 124");
    fails(" may leak: together growing by"); /* it is one */
    holds("1 of 3 processes of python3 serve.py may leak: growing by 41");
    fake_report_become(&fakes[0], SEEP_VERDICT_LEAK);
    fakes[0].report.state = SEEP_STATE_RUNNING;
    fails("1 of 3 processes of python3 serve.py may leak: growing by 41");
}

static void who_of_them_ran_at_once(void **state)
{
    (void)state;
    become(3, SEEP_VERDICT_LEAK);
    fakes[2].report.state = SEEP_STATE_EXITED;
    holds(" that run together (of 3 in all)");
    fakes[2].report.state = SEEP_STATE_RUNNING;
    fails(" that run together (of 3 in all)");
}

static void what_of_it_is_of_gpus(void **state)
{
    (void)state;
    become(2, SEEP_VERDICT_LEAK);
    for (size_t i = 0; i < 2; i++) {
        fake_report_give_devices(&fakes[i]);
    }
    holds(" of GPU memory");
    for (size_t i = 0; i < 2; i++) {
        fakes[i].report.verdict.device = -1;
        fakes[i].sites[0].space = SEEP_SPACE_HEAP;
        fakes[i].sites[0].device = -1;
    }
    fails(" of GPU memory");
}

static void what_grows_at_several_lines(void **state)
{
    (void)state;
    become(2, SEEP_VERDICT_LEAK);
    for (size_t i = 0; i < 2; i++) {
        fakes[i].sites[1] = fakes[i].sites[0];
        snprintf(fakes[i].sites[1].id, sizeof(fakes[i].sites[1].id), "other");
    }
    holds("why: serve.py:31 handle grows by +80.1");
    for (size_t i = 0; i < 2; i++) {
        fakes[i].report.site_count = 1; /* the sentence has said so */
    }
    fails("why: serve.py:31 handle grows by +80.1");
}

static void where_a_line_is(void **state)
{
    (void)state;
    become(2, SEEP_VERDICT_STEADY);
    holds("line: serve.py:31 handle is in 2 of 2 processes");
    for (size_t i = 0; i < 2; i++) {
        fakes[i].sites[0].class = SEEP_CLASS_LEAK;
        fakes[i].sites[0].has_growth = true;
    }
    fails("line: serve.py:31 handle is in 2 of 2 processes");
    holds("line: serve.py:31 handle grows by +80.1 ±0.8 MiB/min in 2 of 2 "
          "processes");
    fakes[1].sites[0].class = SEEP_CLASS_STEP;
    fakes[1].sites[0].has_growth = false;
    fails("line: serve.py:31 handle grows by +80.1 ±0.8 MiB/min in 2 of 2 "
          "processes");
}

static void what_is_quiet(void **state)
{
    (void)state;
    become(3, SEEP_VERDICT_STEADY);
    holds("no leak in 3 processes of python3 serve.py: 3 steady");
    holds("no leak in ");
    fakes[1].report.verdict.reassures = false;
    fails("no leak in 3 processes of python3 serve.py: 3 steady");
    fails("no leak in ");
    holds("3 processes of python3 serve.py: 3 steady");
    fake_report_become(&fakes[1], SEEP_VERDICT_INSUFFICIENT);
    fakes[1].report.state = SEEP_STATE_RUNNING;
    fails("3 processes of python3 serve.py: 3 steady");
    holds("cannot tell yet for 1 of 3 processes of python3 serve.py: ");
    fake_report_become(&fakes[1], SEEP_VERDICT_STEADY);
    fakes[1].report.state = SEEP_STATE_RUNNING;
    fails("cannot tell yet for 1 of 3 processes of python3 serve.py: ");
    become(1, SEEP_VERDICT_STEADY);
    holds("no leak in 1 process of python3 serve.py: 1 steady");
}

static void make_children(double each_mib, double more_s, bool by_units)
{
    for (size_t i = 0; i < CHILDREN; i++) {
        double length = 3 + more_s * (double)i;
        struct seep_report *report = &fakes[i].report;

        fake_report_become(&fakes[i], SEEP_VERDICT_INSUFFICIENT);
        report->state = SEEP_STATE_EXITED;
        report->duration_s = length;
        report->units = by_units ? (uint64_t)(100 * length) : 0;
        report->site_count = 1;
        report->memory.anonymous.valid = false;
        fakes[i].sites[0].live_bytes =
            (uint64_t)((10 + each_mib * length) * MIB);
        fakes[i].spaces[0].live_bytes = fakes[i].sites[0].live_bytes;
        reports[i] = report;
    }
    report_count = CHILDREN;
}

static void what_children_keep(void **state)
{
    (void)state;
    forget();
    make_children(2, .25, false);
    holds(
        "12 processes of 3.0 s to 5.8 s: serve.py:31 handle keeps 18.8 MiB "
        "in each, more the longer it runs: 2 MiB for each second of its run (");
    holds("; a leak, or what a larger job needs");
    make_children(2, .25, true);
    fails("; a leak, or what a larger job needs");
    fails(
        "12 processes of 3.0 s to 5.8 s: serve.py:31 handle keeps 18.8 MiB "
        "in each, more the longer it runs: 2 MiB for each second of its run (");
    holds(" for each unit of work (");
    holds(", over many units in each: a leak");
    make_children(0, .25, true);
    fails(" for each unit of work (");
    fails(", over many units in each: a leak");
    holds(", and no more in longer runs: kept once per process");
    make_children(2, 0, false);
    fails(", and no more in longer runs: kept once per process");
    holds("12 processes of 3.0 s each");
    holds("; too short, or too similar in length, to tell a leak from a "
          "working set");
    make_children(2, .25, false);
    fails("12 processes of 3.0 s each");
    fails("; too short, or too similar in length, to tell a leak from a "
          "working set");
}

#define POINTS 48

static struct seep_report_point points[CHILDREN][POINTS];

static double all_along(double age)
{
    return age;
}

static double early(double age)
{
    return fmin(1, 1.4 * age);
}

/* Nearly as much late as early; one of two keeps up, the other does not. */
static double nearly(double age)
{
    return pow(age, 0.78);
}

/* Each with a tenth more than one and less than another, at its age. */
static void age_children(double (*share)(double), double scatter)
{
    make_children(2, 0, false);
    for (size_t i = 0; i < CHILDREN; i++) {
        double more = i % 2 == 0 ? scatter : -scatter;

        for (size_t k = 0; k < POINTS; k++) {
            double age = (double)k / POINTS;
            double part = share(age) + (age > 0.8 ? more : 0);

            points[i][k] = (struct seep_report_point){
                .start_s = 3 * age,
                .width_s = 3.0 / POINTS,
                .live_bytes = (uint64_t)(16 * MIB * part),
            };
        }
        fakes[i].sites[0].series = points[i];
        fakes[i].sites[0].point_count = POINTS;
    }
}

static void what_grows_with_their_age(void **state)
{
    (void)state;
    forget();
    age_children(all_along, 0.01);
    holds(", more the older it gets: ");
    holds(" in 12 of 12: a leak");
    age_children(early, 0.01);
    fails(", more the older it gets: ");
    fails(" in 12 of 12: a leak");
    holds(", ever less of it the older it gets, as a cache that fills: to be "
          "sure, let a process live longer");
    age_children(all_along, 0.01);
    fails(", ever less of it the older it gets, as a cache that fills: to be "
          "sure, let a process live longer");
    age_children(nearly, 0.05);
    holds("; a leak, or a cache that fills: let a process live longer");
    age_children(all_along, 0.01);
    fails("; a leak, or a cache that fills: let a process live longer");
}

static void how_sure_what_children_keep_is(void **state)
{
    (void)state;
    forget();
    make_children(0, .25, false);
    for (size_t i = 0; i < CHILDREN; i++) {
        fakes[i].sites[0].live_bytes += (i * 7 % 5) << 16;
        fakes[i].spaces[0].live_bytes = fakes[i].sites[0].live_bytes;
    }
    holds(", all but at most ");
    make_children(0, .25, false);
    fails(", all but at most ");
}

/* One keeps what it has at another line. */
static void how_many_children_keep_it(void **state)
{
    (void)state;
    forget();
    make_children(0, .25, false);
    snprintf(fakes[3].sites[0].id, sizeof(fakes[3].sites[0].id), "other");
    holds(" in most (11 of 12)");
    make_children(0, .25, false);
    fails(" in most (11 of 12)");
}

/* At many lines, none of them in most of the children. */
static void what_children_keep_at_no_one_line(void **state)
{
    (void)state;
    forget();
    make_children(2, .25, false);
    for (size_t i = 0; i < CHILDREN; i++) {
        snprintf(fakes[i].sites[0].id, sizeof(fakes[i].sites[0].id), "%zu", i);
    }
    holds(": in all they keep 18.8 MiB in each");
    make_children(2, .25, false);
    fails(": in all they keep 18.8 MiB in each");
}

static void what_keeps_nothing(void **state)
{
    (void)state;
    forget();
    make_children(0, .25, false);
    for (size_t i = 0; i < CHILDREN; i++) {
        fakes[i].sites[0].live_bytes = 0;
        fakes[i].spaces[0].live_bytes = 0;
    }
    holds(": nothing that they keep was seen");
    make_children(2, .25, false);
    fails(": nothing that they keep was seen");
}

/* Beside children that were judged, a worker that tells too little. */
static void who_tells_too_little(void **state)
{
    (void)state;
    forget();
    make_children(2, .25, false);
    fake_report_become(&fakes[0], SEEP_VERDICT_INSUFFICIENT);
    fakes[0].report.state = SEEP_STATE_RUNNING;
    holds("1 more process has too little data to judge");
    fake_report_become(&fakes[1], SEEP_VERDICT_INSUFFICIENT);
    fakes[1].report.state = SEEP_STATE_RUNNING;
    fails("1 more process has too little data to judge");
    holds("2 more processes have too little data to judge");
    make_children(2, .25, false);
    fails("2 more processes have too little data to judge");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_grows_in_all_of_them),
        cmocka_unit_test(what_may_leak_in_some_of_them),
        cmocka_unit_test(who_of_them_ran_at_once),
        cmocka_unit_test(what_of_it_is_of_gpus),
        cmocka_unit_test(what_grows_at_several_lines),
        cmocka_unit_test(where_a_line_is),
        cmocka_unit_test(what_is_quiet),
        cmocka_unit_test(what_children_keep),
        cmocka_unit_test(what_grows_with_their_age),
        cmocka_unit_test(how_sure_what_children_keep_is),
        cmocka_unit_test(how_many_children_keep_it),
        cmocka_unit_test(what_children_keep_at_no_one_line),
        cmocka_unit_test(what_keeps_nothing),
        cmocka_unit_test(who_tells_too_little),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
