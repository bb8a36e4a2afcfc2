/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tool/probe: what vitals made by hand come to, in words and codes. */
#include "seep_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/thread.h"
#include "options/option.h"
#include "probe/probe.h"
#include "words/clean.h"

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

struct fixture {
    struct seep_probe_arguments arguments;
    struct seep_probe_set set;
    struct seep_probe_answer answer;
    char line[SEEP_PROBE_LINE_BYTES];
};

static struct fixture *f;

static int set_up(void **state)
{
    (void)state;
    f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return -1;
    }
    f->arguments.gpu_free_bytes = SEEP_PROBE_UNTOLD;
    f->arguments.host_free_bytes = SEEP_PROBE_UNTOLD;
    f->arguments.growth_bytes_per_s = SEEP_PROBE_UNTOLD;
    f->arguments.age_s = SEEP_PROBE_UNTOLD;
    f->arguments.deadline_s = 0.8;
    f->answer.arguments = &f->arguments;
    f->answer.set = &f->set;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(f);
    return 0;
}

/* One that is well in every way. */
static struct seep_vitals *add(void)
{
    uint32_t count = atomic_load_explicit(&f->set.count, memory_order_relaxed);
    struct seep_probe_process *process = &f->set.processes[count];
    struct seep_vitals *vitals = &process->vitals;

    strcpy(process->path, "/data/x.seep");
    strcpy(vitals->executable, "/usr/bin/worker");
    vitals->pid = 100 + count;
    vitals->state = SEEP_STATE_RUNNING;
    vitals->duration_s = 600;
    vitals->age_s = 0.4;
    vitals->start_realtime_ns =
        seep_clock_ns(CLOCK_REALTIME) - 600 * UINT64_C(1000000000);
    vitals->host_growth.known = true;
    vitals->host_growth.bytes_per_s = (struct seep_interval){100, -500, 700};
    vitals->room =
        (struct seep_vitals_room){SEEP_ROOM_CGROUP, 3 * GIB, 8 * GIB, false};
    vitals->devices[0].reported = true;
    vitals->devices[0].free_bytes = 10 * GIB;
    vitals->devices[0].total_bytes = 16 * GIB;
    /* Nobody else is here: pairs with nothing. */
    atomic_store_explicit(&f->set.count, count + 1, memory_order_relaxed);
    return vitals;
}

static void limit_all(void)
{
    f->arguments.gpu_free_bytes = 2 * (double)GIB;
    f->arguments.host_free_bytes = (double)GIB;
    f->arguments.growth_bytes_per_s = 20. * (double)MIB / 60;
    f->arguments.age_s = 30;
}

static const char *line(void)
{
    seep_probe_judge(&f->answer);
    seep_probe_line(&f->answer, f->line);
    return f->line;
}

static void all_that_is_well_is_told(void **state)
{
    (void)state;
    add();
    limit_all();
    assert_string_equal(line(), "ready: GPU 0 has 10 GiB left; the host has 3 "
                                "GiB left; memory of the host grows by +5.9 "
                                "KiB/min (-29.3 to 41.0); written 400 ms ago");
    assert_int_equal(f->answer.code, SEEP_EXIT_FINE);
}

static void all_that_is_wrong_is_told_in_one_order(void **state)
{
    static const int codes[] = {SEEP_EXIT_OVER_LIMIT, SEEP_EXIT_OVER_LIMIT,
                                SEEP_PROBE_EXIT_GROWTH, SEEP_PROBE_EXIT_STALE,
                                SEEP_EXIT_FINE};
    struct seep_vitals *vitals = add();

    (void)state;
    limit_all();
    vitals->devices[0].free_bytes = GIB;
    vitals->room.left_bytes = 200 * MIB;
    vitals->host_growth.bytes_per_s =
        (struct seep_interval){1e6, 900000, 1100000};
    vitals->age_s = 130;
    assert_string_equal(
        line(), "not ready: GPU 0 has 1 GiB left, under 2 GiB; the host has "
                "200 MiB left, under 1 GiB; memory of the host grows by +57.2 "
                "MiB/min (51.5 to 62.9), over 20 MiB/min; nothing was written "
                "for 2 min 10 s, over 30.0 s");
    for (int i = 0; i < 5; i++) {
        line();
        assert_int_equal(f->answer.code, codes[i]);
        f->arguments.gpu_free_bytes = SEEP_PROBE_UNTOLD;
        f->arguments.host_free_bytes =
            i >= 1 ? SEEP_PROBE_UNTOLD : f->arguments.host_free_bytes;
        f->arguments.growth_bytes_per_s =
            i >= 2 ? SEEP_PROBE_UNTOLD : f->arguments.growth_bytes_per_s;
        f->arguments.age_s = i >= 3 ? 200 : f->arguments.age_s;
    }
}

static void the_lower_bound_of_growth_decides(void **state)
{
    struct seep_vitals *vitals = add();

    (void)state;
    f->arguments.growth_bytes_per_s = 1000;
    vitals->host_growth.bytes_per_s = (struct seep_interval){5000, 999, 9001};
    line();
    assert_int_equal(f->answer.outcome, SEEP_PROBE_READY);
    /* Private memory grows where no live block does. */
    vitals->private_growth.known = true;
    vitals->private_growth.bytes_per_s =
        (struct seep_interval){5000, 1001, 9001};
    line();
    assert_int_equal(f->answer.code, SEEP_PROBE_EXIT_GROWTH);
    vitals->host_growth.known = false;
    line();
    assert_int_equal(f->answer.code, SEEP_PROBE_EXIT_GROWTH);
    vitals->host_growth.known = true;
    vitals->private_growth.bytes_per_s.low = 998;
    line();
    assert_int_equal(f->answer.outcome, SEEP_PROBE_READY);
    vitals->private_growth.known = false;
    vitals->host_growth.bytes_per_s.low = 1001;
    line();
    assert_int_equal(f->answer.code, SEEP_PROBE_EXIT_GROWTH);
}

static void a_gpu_that_grows_is_named(void **state)
{
    struct seep_vitals *vitals = add();

    (void)state;
    f->arguments.growth_bytes_per_s = 1000;
    vitals->devices[3].live_bytes = GIB;
    vitals->devices[3].growth.known = true;
    vitals->devices[3].growth.bytes_per_s =
        (struct seep_interval){1e6, 900000, 1100000};
    assert_non_null(
        strstr(line(), "not ready: memory of GPU 3 grows by +57.2"));
}

static void what_cannot_be_told_is_not_ready_if_that_is_asked(void **state)
{
    struct seep_vitals *vitals = add();

    (void)state;
    limit_all();
    vitals->duration_s = 12;
    vitals->host_growth.known = false;
    vitals->devices[0].reported = false;
    vitals->room.kind = SEEP_ROOM_UNKNOWN;
    assert_string_equal(
        line(),
        "cannot tell: GPU memory: the driver has reported no GPU yet; host "
        "memory: recorded on another machine, without a limit; growth "
        "after 12.0 s of at least 30.0 s; written 400 ms ago");
    assert_int_equal(f->answer.code, SEEP_EXIT_FINE);
    f->arguments.strict = true;
    line();
    assert_int_equal(f->answer.code, SEEP_EXIT_INSUFFICIENT);
}

static void what_is_wrong_stands_before_what_cannot_be_told(void **state)
{
    struct seep_vitals *vitals = add();

    (void)state;
    f->arguments.age_s = 0.1;
    f->arguments.gpu_free_bytes = 1;
    f->arguments.strict = true;
    vitals->devices[0].reported = false;
    assert_string_equal(
        line(),
        "not ready: nothing was written for 400 ms, over 100 "
        "ms; cannot tell: GPU memory: the driver has reported no GPU yet");
    assert_int_equal(f->answer.code, SEEP_PROBE_EXIT_STALE);
}

static void a_process_without_a_gpu_is_no_fault_beside_one_with(void **state)
{
    (void)state;
    add()->devices[0].reported = false;
    add()->devices[0].free_bytes = 5 * GIB;
    f->arguments.gpu_free_bytes = 1;
    assert_string_equal(line(), "ready: GPU 0 has 5 GiB left (pid 101)");
}

static void a_process_that_took_the_place_of_another_is_all(void **state)
{
    struct seep_vitals *old = add();
    struct seep_vitals *now = add();

    (void)state;
    f->arguments.age_s = 30;
    old->state = now->state = SEEP_STATE_UNKNOWN;
    old->age_s = 500;
    line();
    assert_int_equal(f->answer.code, SEEP_PROBE_EXIT_STALE); /* side by side */
    now->start_realtime_ns =
        seep_clock_ns(CLOCK_REALTIME) - 400 * UINT64_C(1000000000);
    line();
    assert_int_equal(f->answer.outcome, SEEP_PROBE_READY);
    strcpy(now->executable, "/usr/bin/other");
    line();
    assert_int_equal(f->answer.code, SEEP_PROBE_EXIT_STALE);
}

static void nobody_left_is_not_ready(void **state)
{
    (void)state;
    f->arguments.age_s = 30;
    atomic_store_explicit(&f->set.ended, 3, memory_order_relaxed);
    assert_string_equal(line(),
                        "not ready: no process is running any more: 3 ended");
    assert_int_equal(f->answer.code, SEEP_PROBE_EXIT_STALE);
}

static void a_late_child_is_told_with_where_it_was(void **state)
{
    (void)state;
    f->arguments.age_s = 30;
    f->answer.late = true;
    atomic_store_explicit(&f->set.ended, 3, memory_order_relaxed);
    strcpy(f->set.at, "/mnt/dead");
    assert_string_equal(line(),
                        "cannot tell: /mnt/dead did not answer within 800 ms");
    f->answer.late = false;
    f->answer.signal = 7;
    assert_string_equal(line(),
                        "cannot tell: reading /mnt/dead was ended by signal 7");
}

static void a_process_that_records_nothing_cannot_be_told(void **state)
{
    struct seep_vitals *vitals = add();

    (void)state;
    limit_all();
    vitals->inert = SEEP_INERT_OWN_MALLOC;
    assert_string_equal(line(), "cannot tell: /data/x.seep records nothing: "
                                "the program brings its own malloc");
    vitals->inert = SEEP_INERT_VALGRIND;
    assert_string_equal(line(), "cannot tell: /data/x.seep records nothing: "
                                "the program runs under valgrind");
}

static void a_line_is_never_longer_than_it_may_be(void **state)
{
    (void)state;
    limit_all();
    for (unsigned i = 0; i < SEEP_PROBE_PROCESSES; i++) {
        struct seep_vitals *vitals = add();

        vitals->age_s = 100;
        vitals->devices[0].free_bytes = i;
    }
    assert_true(strlen(line()) <= SEEP_PROBE_LINE_BYTES - 2);
    assert_true(strlen(f->line) > SEEP_PROBE_LINE_BYTES - 16);
    assert_int_equal(f->answer.code, SEEP_EXIT_OVER_LIMIT);
}

static void the_document_is_one(void **state)
{
    static const char hostile[] = "/a\"\\\n\x1b\x7f\xff\xc2\x9b\xe2\x80\xae"
                                  "\xf0\x9f\x98\x80/x.seep";
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    struct seep_vitals *vitals = add();
    json_t *document;
    json_t *process;

    (void)state;
    assert_non_null(file);
    limit_all();
    strcpy(f->set.processes[0].path, hostile);
    strcpy(vitals->executable, hostile);
    vitals->age_s = NAN;
    vitals->host_growth.known = false;
    line();
    seep_probe_json(&f->answer, f->line, file);
    fclose(file);
    document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(document);
    for (const char *at = text; *at != '\0'; at++) {
        assert_true(*at == '\n' || (*at >= 0x20 && *at < 0x7f));
    }
    assert_string_equal(json_string_value(json_object_get(document, "schema")),
                        "seep-probe/1");
    assert_string_equal(json_string_value(json_object_get(document, "reason")),
                        f->line);
    process = json_array_get(json_object_get(document, "processes"), 0);
    assert_string_equal(json_string_value(json_object_get(process, "path")),
                        "/a\"\\\n\x1b\x7f\xef\xbf\xbd\xc2\x9b\xe2\x80\xae"
                        "\xf0\x9f\x98\x80/x.seep");
    assert_true(json_is_null(json_object_get(process, "age_s")));
    assert_int_equal(json_array_size(json_object_get(process, "devices")), 1);
    assert_int_equal(json_array_size(json_object_get(document, "checks")), 4);
    json_decref(document);
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_that_is_well_is_told),
        TEST(all_that_is_wrong_is_told_in_one_order),
        TEST(the_lower_bound_of_growth_decides),
        TEST(a_gpu_that_grows_is_named),
        TEST(what_cannot_be_told_is_not_ready_if_that_is_asked),
        TEST(what_is_wrong_stands_before_what_cannot_be_told),
        TEST(a_process_without_a_gpu_is_no_fault_beside_one_with),
        TEST(a_process_that_took_the_place_of_another_is_all),
        TEST(nobody_left_is_not_ready),
        TEST(a_late_child_is_told_with_where_it_was),
        TEST(a_process_that_records_nothing_cannot_be_told),
        TEST(a_line_is_never_longer_than_it_may_be),
        TEST(the_document_is_one),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
