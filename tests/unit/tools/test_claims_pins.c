/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sentences of what keeps free memory apart: each is there where its claim
 * holds, and is not where it does not. */
#include "claims.h"

#include "fake_report.h"
#include "held/kept.h"
#include "words/verdict.h"

static struct fake_report fake;
static struct seep_report *report = &fake.report;
static struct seep_report_verdict *verdict = &fake.report.verdict;
static struct seep_report_memory *memory = &fake.report.memory;

static void become(enum seep_verdict_class class)
{
    fake_report_become(&fake, class);
    forget();
}

/* The sentence, and reasons: a line each. */
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

static struct seep_held_step pin_step = {
    .edge = SEEP_HELD_EDGE_NONE,
    .edge_name = "",
    .edge_function = "",
    .kind = SEEP_HELD_KIND_GLOBAL,
    .name = "replies",
    .function = "",
    .file = "server",
};
static struct seep_held_group pin_group = {
    .end = SEEP_HELD_END_HELD,
    .block_count = 60,
    .steps = &pin_step,
    .step_count = 1,
};
static struct seep_held_answer pin_answer = {
    .asked_count = 64,
    .groups = &pin_group,
    .group_count = 1,
};
static struct seep_held_pin_site pin_sites[2] = {
    {"0123456789abcdef", "read.c:42 read_reply", 330, 18e6},
    {"fedcba9876543210", "", 8, 2e6},
};
static struct seep_held_kept_pins pins = {
    .asked_s = 1e6,
    .piece_count = 400,
    .piece_bytes = 26214400,
    .pin_count = 368,
    .pin_bytes = 10240,
    .apart_bytes = 24e6,
    .known_count = 338,
    .known_apart_bytes = 20e6,
    .sites = pin_sites,
    .site_count = 2,
    .answer = &pin_answer,
};

static void what_keeps_free_memory_apart(void **state)
{
    (void)state;
    become(SEEP_VERDICT_RETENTION);
    verdict->has_growth = true;
    memory->allocator = SEEP_ALLOCATOR_GLIBC;
    report->pins = &pins;
    holds(", kept apart by blocks allocated at read.c:42 read_reply");
    holds("between 400 free pieces, ");
    holds(
        "25 MiB, stand 368 blocks of 10 KiB in all; 90 % of that memory lies beside blocks allocated at read.c:42 read_reply");
    holds("94 % of these blocks are held by replies");
    report->life_s = 100;
    pins.asked_s = 50;
    fails(
        "25 MiB, stand 368 blocks of 10 KiB in all; 90 % of that memory lies beside blocks allocated at read.c:42 read_reply");
    holds(" into the run, stand 368 blocks");
    pins.asked_s = 1e6;
    fails(" into the run, stand 368 blocks");
    pin_group.end = SEEP_HELD_END_LOST;
    fails("94 % of these blocks are held by replies");
    holds(
        "no pointer was found to 94 % of these blocks, or to what holds them: lost, or it is hidden");
    pin_group.block_count = 20;
    fails(
        "no pointer was found to 94 % of these blocks, or to what holds them: lost, or it is hidden");
    pins.free_bytes = 60000000;
    fails("between 400 free pieces, ");
    pins.free_bytes = 0;
    pin_sites[0].apart_bytes = 9e6;
    fails(", kept apart by blocks allocated at read.c:42 read_reply");
    holds("; they were allocated at many call sites");
    pin_sites[0].apart_bytes = 18e6;
    fails("; they were allocated at many call sites");
    verdict->has_growth = false;
    fails("between 400 free pieces, ");
    report->pins = NULL;
}

static void what_was_sampled_of_it(void **state)
{
    (void)state;
    become(SEEP_VERDICT_FRAGMENTATION);
    verdict->has_growth = true;
    memory->allocator = SEEP_ALLOCATOR_GLIBC;
    report->pins = &pins;
    pins.known_count = 12;
    pin_sites[0].pin_count = 12;
    holds(", kept apart by blocks allocated at read.c:42 read_reply");
    holds(", 12 of which were sampled, all allocated at read.c:42 read_reply");
    pin_sites[0].pin_count = 10;
    fails(", 12 of which were sampled, all allocated at read.c:42 read_reply");
    holds(
        ", 12 of which were sampled, 10 of these allocated at read.c:42 read_reply");
    pin_sites[0].apart_bytes = 9e6;
    fails(
        ", 12 of which were sampled, 10 of these allocated at read.c:42 read_reply");
    holds(", 12 of which were sampled, at many call sites");
    pin_sites[0].apart_bytes = 18e6;
    fails(", 12 of which were sampled, at many call sites");
    pins.known_count = 1;
    fails(", kept apart by blocks allocated at read.c:42 read_reply");
    holds(", one of which was sampled, allocated at read.c:42 read_reply");
    pins.known_count = 0;
    fails(", one of which was sampled, allocated at read.c:42 read_reply");
    holds(", none of which was sampled");
    pins.known_count = 338;
    fails(", none of which was sampled");
    report->pins = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_keeps_free_memory_apart),
        cmocka_unit_test(what_was_sampled_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
