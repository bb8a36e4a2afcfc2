/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is said where the blocks of a site are not all of what the process grows
 * by: each sentence where it holds, and nowhere else. */
#include "claims.h"

#include "fake_report.h"
#include "words/verdict.h"

#define MIB 1048576.0

static struct fake_report fake;
static struct seep_report *report = &fake.report;
static struct seep_report_verdict *verdict = &fake.report.verdict;
static struct seep_report_site *site = &fake.sites[0];

static void become(enum seep_verdict_class class)
{
    fake_report_become(&fake, class);
    forget();
}

/* Sentence and reasons, a line each. */
char *claims_text(void)
{
    struct seep_words_verdict words;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    seep_words_verdict(report, NULL, &words);
    fprintf(file, "%s\n", words.sentence);
    for (size_t i = 0; i < words.reason_count; i++) {
        fprintf(file, "%s\n", words.reasons[i]);
    }
    seep_words_verdict_fini(&words);
    fclose(file);
    return text;
}

static void what_was_asked_for(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    site->requested.live_bytes = (uint64_t)(420 * MIB);
    holds(
        "its blocks take 562 MiB, and 420 MiB of that were asked for: the rest is what the allocator adds to each of them");
    site->requested.live_bytes = (uint64_t)(520 * MIB);
    fails(
        "its blocks take 562 MiB, and 420 MiB of that were asked for: the rest is what the allocator adds to each of them");
}

static void where_the_rest_is(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    verdict->private_bytes_per_s = 2 * MIB;
    verdict->rest_bytes_per_s = MIB;
    holds("; private memory grows by 120 MiB/min, and ");
    holds("the rest is where seep does not see");
    verdict->rest = SEEP_REST_SITES;
    fails("the rest is where seep does not see");
    holds("most of the rest is live at other call sites");
    verdict->rest = SEEP_REST_FREE;
    fails("most of the rest is live at other call sites");
    holds("most of the rest is free memory of the allocator");
    verdict->rest = SEEP_REST_BLOCKS;
    fails("most of the rest is free memory of the allocator");
    holds("most of the rest is in blocks that no hook saw");
    verdict->rest = SEEP_REST_MAPPINGS;
    fails("most of the rest is in blocks that no hook saw");
    holds("most of the rest is in mappings that no hook saw");
    verdict->rest_bytes_per_s = 0;
    fails("most of the rest is in mappings that no hook saw");
    fails("; private memory grows by 120 MiB/min, and ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_asked_for),
        cmocka_unit_test(where_the_rest_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
