/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When memory is full, as a report and as top tell it: each sentence is there
 * where its claim holds, and is not where it does not. */
#include "claims.h"

#include <math.h>

#include "fake_report.h"
#include "words/verdict.h"
#include "words/words.h"

#define MIB 1048576.0

static struct fake_report fake;
static struct seep_report *report = &fake.report;
static struct seep_report_verdict *verdict = &fake.report.verdict;
static struct seep_report_memory *memory = &fake.report.memory;

static void become(enum seep_verdict_class class)
{
    fake_report_become(&fake, class);
    forget();
}

/* The forecast, and the same as top tells it: a line each. */
char *claims_text(void)
{
    struct seep_words_verdict words;
    char *when = seep_words_when(&verdict->forecast);
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    seep_words_verdict(report, NULL, &words);
    fprintf(file, "%s\nfull %s\n", words.forecast == NULL ? "" : words.forecast,
            when);
    free(when);
    seep_words_verdict_fini(&words);
    fclose(file);
    return text;
}

static void when_memory_is_full(void **state)
{
    struct seep_report_forecast *forecast = &verdict->forecast;

    (void)state;
    become(SEEP_VERDICT_LEAK);
    holds("At this rate the cgroup's 8 GiB will be reached in 2 h 51 min");
    forecast->seconds.high = INFINITY;
    holds(" (2 h 44 min at the earliest, or never)");
    forecast->seconds.high = 10740;
    fails(" (2 h 44 min at the earliest, or never)");
    forecast->if_suspect = true;
    fails("At this rate the cgroup's 8 GiB will be reached in 2 h 51 min");
    holds(
        "If it is a leak, the cgroup's 8 GiB will be reached in 2 h 44 min at "
        "the earliest");
    verdict->class = SEEP_VERDICT_FRAGMENTATION;
    holds("If it goes on, the cgroup's 8 GiB will be reached in 2 h 44 min at "
          "the earliest");
    verdict->class = SEEP_VERDICT_LEAK;
    fails("If it goes on, the cgroup's 8 GiB will be reached in 2 h 44 min at "
          "the earliest");
    forecast->if_suspect = false;
    fails(
        "If it is a leak, the cgroup's 8 GiB will be reached in 2 h 44 min at "
        "the earliest");
    forecast->seconds = (struct seep_interval){1e10, 5e9, 2e10};
    holds("in over ten years");
    forecast->seconds = (struct seep_interval){10260, 9840, 10740};
    fails("in over ten years");
    holds("the cgroup's 8 GiB");
    forecast->what = "ram";
    fails("the cgroup's 8 GiB");
    holds("the machine's 8 GiB");
    forecast->what = "device"; /* nobody knows which */
    fails("the machine's 8 GiB");
    holds("the device's 8 GiB");
    forecast->device = 0;
    fails("the device's 8 GiB");
    holds("At its current rate, GPU 0's 8 GiB will be full in 2 h 51 min");
    forecast->by_others = true;
    forecast->bytes_per_s = MIB;
    holds("GPU 0 fills by 60.0 MiB/min");
    holds(", most of it by other processes, contexts or code. ");
    forecast->by_others = false;
    fails("GPU 0 fills by 60.0 MiB/min");
    fails(", most of it by other processes, contexts or code. ");
    forecast->used_bytes = forecast->limit_bytes - (4 << 20);
    holds("GPU 0's 8 GiB are used up already");
    forecast->used_bytes = forecast->limit_bytes - (64 << 20);
    fails("GPU 0's 8 GiB are used up already");
    forecast->device = -1;
    fails("At its current rate, GPU 0's 8 GiB will be full in 2 h 51 min");
}

static void what_is_full_already_or_never(void **state)
{
    struct seep_report_forecast *forecast = &verdict->forecast;

    (void)state;
    become(SEEP_VERDICT_LEAK);
    forecast->used_bytes = forecast->limit_bytes;
    holds(
        "he cgroup's 8 GiB are used up already, counting page cache that the kernel can drop");
    forecast->what = "ram";
    fails(
        "he cgroup's 8 GiB are used up already, counting page cache that the kernel can drop");
    holds("he machine's 8 GiB are used up already.");
    forecast->used_bytes = 700 << 20;
    fails("he machine's 8 GiB are used up already.");
    forecast->answer = SEEP_FORECAST_NEVER;
    holds(
        "It is not growing now, so the machine's 8 GiB would not be reached; 700 MiB are in use");
    forecast->answer = SEEP_FORECAST_UNKNOWN;
    fails(
        "It is not growing now, so the machine's 8 GiB would not be reached; 700 MiB are in use");
    holds("Cannot tell when memory will be full: too little data");
    forecast->limit_bytes = 0;
    fails("Cannot tell when memory will be full: too little data");
    holds("Cannot tell when memory will be full: its limit is unknown");
    memory->machine_bytes = UINT64_C(8) << 30;
    memory->anonymous.slope_bytes_per_s = 0;
    verdict->private_grows = false;
    fails("Cannot tell when memory will be full: its limit is unknown");
    holds(
        "Cannot tell when memory will be full: private memory does not grow yet");
    verdict->private_grows = true;
    fails(
        "Cannot tell when memory will be full: private memory does not grow yet");
    verdict->has_growth = false;
    fails("Cannot tell when memory will be full: its limit is unknown");
    become(SEEP_VERDICT_UNEXPLAINED);
    forecast->answer = SEEP_FORECAST_UNKNOWN;
    forecast->limit_bytes = 0;
    verdict->fills_of_bytes = 562 * MIB;
    memory->machine_bytes = 0;
    holds("Cannot tell when memory will be full: its limit is unknown");
    memory->machine_bytes = UINT64_C(8) << 30;
    holds("When it is full it ends, and memory has room for all of it");
    verdict->fills_of_bytes = 0;
    fails("When it is full it ends, and memory has room for all of it");
}

static void when_top_says_that_it_is_full(void **state)
{
    struct seep_report_forecast *forecast = &verdict->forecast;

    (void)state;
    become(SEEP_VERDICT_SUSPECT);
    holds("full in 2 h 44 min at the earliest, if it goes on");
    forecast->if_suspect = false;
    fails("full in 2 h 44 min at the earliest, if it goes on");
    forecast->used_bytes = forecast->limit_bytes;
    holds("full already");
    forecast->used_bytes = 0;
    fails("full already");
    forecast->answer = SEEP_FORECAST_UNKNOWN;
    holds("full unknown: too little data");
    forecast->answer = SEEP_FORECAST_NEVER;
    fails("full unknown: too little data");
    holds("full never at this rate: it is not growing");
    forecast->answer = SEEP_FORECAST_TIME;
    fails("full never at this rate: it is not growing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_memory_is_full),
        cmocka_unit_test(what_is_full_already_or_never),
        cmocka_unit_test(when_top_says_that_it_is_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
