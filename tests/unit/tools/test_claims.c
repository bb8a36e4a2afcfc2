/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sentences of a verdict: each is there where its claim holds, and is not
 * where it does not. What to do next is in test_claims_advice.c, when memory is
 * full in test_claims_forecast.c. */
#include "claims.h"

#include <math.h>

#include "fake_report.h"
#include "text/page.h"
#include "words/verdict.h"
#include "words/words.h"

#define MIB 1048576.0

static struct fake_report fake;
static struct seep_report *report = &fake.report;
static struct seep_report_verdict *verdict = &fake.report.verdict;
static struct seep_report_memory *memory = &fake.report.memory;
static struct seep_report_site *site = &fake.sites[0];

static void become(enum seep_verdict_class class)
{
    fake_report_become(&fake, class);
    forget();
}

/* Label, sentence, how it ended, and reasons: a line each. */
char *claims_text(void)
{
    struct seep_words_verdict words;
    char end[SEEP_WORDS_END_BYTES];
    char *when = seep_words_when(&verdict->forecast);
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    seep_words_verdict(report, NULL, &words);
    fprintf(file, "%s\n%s\n%s\nfull %s\n%s\n", words.label, words.sentence,
            words.forecast == NULL ? "" : words.forecast, when,
            seep_words_end(report, end));
    free(when);
    for (size_t i = 0; i < words.reason_count; i++) {
        fprintf(file, "%s\n", words.reasons[i]);
    }
    seep_words_verdict_fini(&words);
    fclose(file);
    return text;
}

static void where_it_grows(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    holds(", 12.3 KiB per unit of work");
    verdict->has_growth_per_unit = false;
    fails(", 12.3 KiB per unit of work");
    holds(", 97 % of it at serve.py:31");
    verdict->first_share = 1;
    fails(", 97 % of it at serve.py:31");
    holds(", all of it at serve.py:31");
    verdict->first_share = 0;
    fails(", all of it at serve.py:31");
    holds(", first at serve.py:31");
    verdict->first_share = .5;
    fails(", first at serve.py:31");
    verdict->growing_count = 3;
    holds(", the rest at 2 other call sites");
    verdict->growing_count = 1;
    fails(", the rest at 2 other call sites");
    fake.sites[1].role = SEEP_ROLE_MEMBER;
    fake.sites[1].class = SEEP_CLASS_LEAK;
    snprintf(fake.sites[1].group_id, sizeof(site->group_id), "%s", site->id);
    holds(" and 1 call site that grows in step with it");
    fake.sites[1].class = SEEP_CLASS_STEADY;
    fails(" and 1 call site that grows in step with it");
}

static void what_may_be_a_leak(void **state)
{
    (void)state;
    become(SEEP_VERDICT_SUSPECT);
    holds("host memory may be leaking");
    verdict->class = SEEP_VERDICT_LEAK;
    fails("host memory may be leaking");
}

static void what_lies_outside_of_live_blocks(void **state)
{
    (void)state;
    become(SEEP_VERDICT_UNEXPLAINED);
    holds("memory that no hook saw (malloc, new, mmap) grows by 41");
    holds(", the largest part in anonymous memory at 0x7f1200000000");
    holds("in anonymous memory at");
    fake.mappings[1].name = "[heap]";
    fails("in anonymous memory at");
    fake.mappings[1].name = "";
    verdict->growth_bytes_per_s.estimate *= 10;
    fails(", the largest part in anonymous memory at 0x7f1200000000");
    verdict->growth_bytes_per_s.estimate /= 10;
    fake.mappings[1].tracked = true;
    fails(", the largest part in anonymous memory at 0x7f1200000000");
    memory->allocator_overhead.valid = false;
    fails("memory that no hook saw (malloc, new, mmap) grows by 41");
    verdict->unseen = true;
    holds("memory that no hook saw (malloc, new, mmap) grows by 41");
    verdict->unseen = false;
    holds("memory beyond live blocks grows by 41");
    verdict->files = true;
    fails("memory beyond live blocks grows by 41");
    holds("memory mapped from files, or shared, grows by 41");
    verdict->files = false;
    fails("memory mapped from files, or shared, grows by 41");
}

/* A hook saw the mapping: then nobody says that none did. */
static void who_mapped_what_fills(void **state)
{
    (void)state;
    become(SEEP_VERDICT_UNEXPLAINED);
    snprintf(verdict->first_id, sizeof(verdict->first_id), "%s", site->id);
    verdict->fills_used_bytes = 3 * MIB;
    verdict->fills_of_bytes = 562 * MIB;
    holds("memory that serve.py:31");
    holds(" allocated before fills by 41");
    holds(": 3 MiB of its 562 MiB are in use");
    holds("; at this rate it is full in 13 min");
    site->space = SEEP_SPACE_MAPPED;
    fails(" allocated before fills by 41");
    holds(" mapped before fills by 41");
    verdict->fills_used_bytes = 562 * MIB;
    holds(": 562 MiB of its 562 MiB are in use");
    fails("; at this rate it is full in 13 min");
    *verdict->first_id = '\0';
    fails("memory that serve.py:31");
    fails(" mapped before fills by 41");
    fails(": 562 MiB of its 562 MiB are in use");
    holds("memory that no hook saw (malloc, new, mmap) grows by 41");
    snprintf(verdict->first_id, sizeof(verdict->first_id), "%s", site->id);
    fails("memory that no hook saw (malloc, new, mmap) grows by 41");
}

/* What was allocated before is used: whatever that is, hooks saw it. */
static void what_is_written_to_only_now(void **state)
{
    (void)state;
    become(SEEP_VERDICT_UNEXPLAINED);
    *verdict->first_id = '\0';
    holds("memory that no hook saw (malloc, new, mmap) grows by 41");
    memory->tracked.slope_bytes_per_s = 0;
    memory->unexplained.slope_bytes_per_s = 0;
    fails("memory that no hook saw (malloc, new, mmap) grows by 41");
    holds("memory beyond live blocks grows by 41");
}

static void of_threads_that_become_more(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    memory->threads = (struct seep_report_extent){true, 12, 1200, 2, .1};
    holds(
        "1,200 threads, 12 at first, and 120 more a minute: each that does not end keeps its stack and what it has");
    memory->threads.first_bytes = 1195; /* a pool that breathes */
    fails(
        "1,200 threads, 12 at first, and 120 more a minute: each that does not end keeps its stack and what it has");
    memory->threads.first_bytes = 12;
    fake.frames[0].function = "threading.Thread.start";
    holds("; they are started at serve.py:31");
    fake.frames[0].function = "start";
    fails("; they are started at serve.py:31");
    fake.frames[1].function = "Thread.start"; /* no frame is the user's */
    site->where_frame = 1;
    holds("; they are started at serve.handle");
}

/* Its resident memory is the same: the machine's grows. */
static void what_of_a_fork_is_copied(void **state)
{
    (void)state;
    become(SEEP_VERDICT_STEADY);
    report->is_fork = true;
    report->python_version = 0;
    memory->unexplained.last_bytes = 80 * MIB;
    memory->forked =
        (struct seep_report_extent){true, 80 * MIB, 20 * MIB, -MIB, 100};
    holds(
        "no call site grows, but pages from before the fork are copied by 60.0 MiB/min, as they are written to");
    verdict->minor_count = 1;
    fails(
        "no call site grows, but pages from before the fork are copied by 60.0 MiB/min, as they are written to");
    holds(
        " or more, but pages from before the fork are copied by 60.0 MiB/min, as they are written to");
    verdict->minor_count = 0;
    holds(
        "the cgroup and the machine grow by the copies, without an allocation, at most until all is copied: 20 MiB are not yet");
    report->python_version = 0x030b02f0;
    holds(
        "in Python each use of an object writes its reference count, so that reading copies as well");
    memory->forked.slope_error = 2 * MIB;
    fails(
        "no call site grows, but pages from before the fork are copied by 60.0 MiB/min, as they are written to");
    fails(
        "the cgroup and the machine grow by the copies, without an allocation, at most until all is copied: 20 MiB are not yet");
    fails(
        "in Python each use of an object writes its reference count, so that reading copies as well");
    memory->has_samples = false;
    holds(
        "how much of the 80 MiB from before the fork is copied, and makes the machine's memory grow, is not known: `seep run`, which looks from outside, tells");
    report->is_fork = false;
    fails(
        "how much of the 80 MiB from before the fork is copied, and makes the machine's memory grow, is not known: `seep run`, which looks from outside, tells");
}

/* What ends with the cgroup ends by what grows there, whoever it is. */
static void what_of_its_cgroup_grows_beside_it(void **state)
{
    (void)state;
    become(SEEP_VERDICT_STEADY);
    verdict->beside_bytes_per_s = MIB;
    verdict->beside_is_files = true;
    holds("nothing grows in it");
    holds(", but its cgroup grows beside it by 60.0 MiB/min");
    holds(
        "most of the 60 MiB/min that its cgroup grows by beside it is files in a tmpfs (/dev/shm, a volume in memory) or shared memory");
    verdict->beside_is_files = false;
    fails(
        "most of the 60 MiB/min that its cgroup grows by beside it is files in a tmpfs (/dev/shm, a volume in memory) or shared memory");
    holds(
        "most of the 60 MiB/min that its cgroup grows by beside it is its other processes, or what the kernel has for them (sockets, pipes)");
    verdict->beside_bytes_per_s = 0;
    fails("nothing grows in it");
    fails(", but its cgroup grows beside it by 60.0 MiB/min");
    fails(
        "most of the 60 MiB/min that its cgroup grows by beside it is its other processes, or what the kernel has for them (sockets, pipes)");
    verdict->beside_bytes_per_s = MIB;
    holds("nothing grows in it");
    verdict->reassures = false;
    fails("nothing grows in it");
    holds("nothing was seen to grow in it");
    verdict->reassures = true;
    fails("nothing was seen to grow in it");
}

/* Of a leak it is said only where the cgroup is full by that first. */
static void what_fills_its_cgroup_beside_a_leak(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    verdict->beside_bytes_per_s = MIB;
    verdict->forecast.by_others = true;
    verdict->forecast.bytes_per_s = 2 * MIB;
    holds("The cgroup fills by 120 MiB/min in all.");
    holds(
        "At its current rate, the cgroup's 8 GiB will be reached in 2 h 51 min (2 h 44 min to 2 h 59 min).");
    holds(
        "most of the 60 MiB/min that its cgroup grows by beside it is its other processes, or what the kernel has for them (sockets, pipes)");
    verdict->forecast.by_others = false;
    fails("The cgroup fills by 120 MiB/min in all.");
    fails(
        "At its current rate, the cgroup's 8 GiB will be reached in 2 h 51 min (2 h 44 min to 2 h 59 min).");
    fails(
        "most of the 60 MiB/min that its cgroup grows by beside it is its other processes, or what the kernel has for them (sockets, pipes)");
}

static void what_is_only_reserved(void **state)
{
    (void)state;
    become(SEEP_VERDICT_STEADY);
    site->class = SEEP_CLASS_MINOR;
    site->touched_bytes = 0;
    site->space = SEEP_SPACE_MAPPED;
    holds("the address space that serve.py:31");
    holds(
        " reserves grows, to 562 MiB, and fills no memory: 0 B of it are in use");
    site->touched_bytes = -1;
    fails("the address space that serve.py:31");
    fails(
        " reserves grows, to 562 MiB, and fills no memory: 0 B of it are in use");
    site->space = SEEP_SPACE_HEAP;
    site->touched_bytes = 0;
    holds(
        " allocates grows, to 562 MiB, and fills no memory: 0 B of it are in use");
}

static void what_was_never_written_to(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    site->touched_bytes = 3 * MIB;
    holds(
        "of the 562 MiB that it holds only 3 MiB were ever written to: those take memory, and are what grows");
    site->touched_bytes = -1;
    fails(
        "of the 562 MiB that it holds only 3 MiB were ever written to: those take memory, and are what grows");
    site->touched_bytes = 250 * MIB;
    holds("it holds only 250 MiB were ever written to");
    site->touched_bytes = 300 * MIB;
    fails("it holds only 250 MiB were ever written to");
}

/* Nothing more is allocated, and private memory grows all the same. */
static void what_is_written_to_later(void **state)
{
    double *private_per_s = &memory->anonymous.slope_bytes_per_s;

    (void)state;
    become(SEEP_VERDICT_UNEXPLAINED);
    site->touched_bytes = 3 * MIB;
    *private_per_s += 10 * verdict->growth_bytes_per_s.estimate;
    holds("what was allocated before is being written to, and serve.py:31");
    holds(" has most that was not: 3 MiB of its 562 MiB are in use");
    *private_per_s -= 10 * verdict->growth_bytes_per_s.estimate;
    fails("what was allocated before is being written to, and serve.py:31");
    *private_per_s += 10 * verdict->growth_bytes_per_s.estimate;
    site->touched_bytes = (double)site->live_bytes;
    fails(" has most that was not: 3 MiB of its 562 MiB are in use");
}

static void how_fast_it_is_now(void **state)
{
    struct seep_report_forecast *forecast = &verdict->forecast;

    (void)state;
    become(SEEP_VERDICT_LEAK);
    forecast->bytes_per_s = MIB;
    forecast->pace = .5;
    holds("It has slowed to 60.0 MiB/min. At this rate");
    forecast->pace = 2;
    fails("It has slowed to 60.0 MiB/min. At this rate");
    holds("It has sped up to 60.0 MiB/min. At this rate");
    forecast->pace = .9;
    fails("It has sped up to 60.0 MiB/min. At this rate");
    forecast->pace = .5;
    forecast->by_private = true;
    holds("Private memory grows by at most 60.0 MiB/min. At this rate");
    holds(" at the earliest");
    forecast->by_private = false;
    holds("It has slowed to 60.0 MiB/min. At this rate");
    fails("Private memory grows by at most 60.0 MiB/min. At this rate");
    fails(" at the earliest");
}

static void whose_use_is_counted(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    verdict->forecast.of_all = true;
    holds(" that all processes use now");
    verdict->forecast.of_all = false;
    fails(" that all processes use now");
}

static void what_the_allocator_keeps(void **state)
{
    (void)state;
    become(SEEP_VERDICT_RETENTION);
    holds("glibc's malloc keeps 50 MiB that the program has freed");
    holds("no leak: live memory does not grow; ");
    holds("live memory does not grow; ");
    verdict->reassures = false;
    fails("no leak: live memory does not grow; ");
    memory->tracked.slope_bytes_per_s = 700000;
    fails("live memory does not grow; ");
    memory->allocator = SEEP_ALLOCATOR_UNKNOWN;
    fails("glibc's malloc keeps 50 MiB that the program has freed");
    holds("the allocator keeps 50 MiB");
    memory->allocator = SEEP_ALLOCATOR_JEMALLOC;
    fails("the allocator keeps 50 MiB");
    holds("keeps 50 MiB that the program has freed");
    verdict->class = SEEP_VERDICT_FRAGMENTATION;
    fails("keeps 50 MiB that the program has freed");
    holds("jemalloc holds 50 MiB free between live blocks");
    holds(", in 4,312 pieces");
    memory->allocator_free_chunks = 0;
    fails(", in 4,312 pieces");
    verdict->class = SEEP_VERDICT_RETENTION;
    fails("jemalloc holds 50 MiB free between live blocks");
}

static void what_a_cache_of_tensors_keeps(void **state)
{
    (void)state;
    become(SEEP_VERDICT_FRAGMENTATION);
    fake_report_give_devices(&fake);
    fake.devices[0].cache_fragments = true;
    holds("the tensors on GPU 0 do not grow, but PyTorch's cache there does");
    holds(": 8.5 GiB, 8 GiB of it in tensors");
    fake.devices[0].cache_fragments = false;
    fails("the tensors on GPU 0 do not grow, but PyTorch's cache there does");
    fails(": 8.5 GiB, 8 GiB of it in tensors");
}

static void what_still_fills(void **state)
{
    (void)state;
    become(SEEP_VERDICT_BOUNDED);
    holds("still filling, with no known bound: serve.py:31 handle "
          "holds 562 MiB");
    holds(" and grows by 41");
    holds(", 4.0 MiB/min now");
    site->growth_now_bytes_per_s = site->growth_bytes_per_s.estimate;
    fails(", 4.0 MiB/min now");
    verdict->growing_count = 3;
    fails(" and grows by 41");
    holds("; together with 2 other call sites it grows by 41");
    verdict->growing_count = 1;
    fails("; together with 2 other call sites it grows by 41");
    site->known_bound_bytes = UINT64_C(1) << 30;
    fails("still filling, with no known bound: serve.py:31 handle "
          "holds 562 MiB");
    holds(
        "still filling: serve.py:31 handle holds 562 MiB of the 1 GiB given with --known");
    verdict->filling = false;
    fails(
        "still filling: serve.py:31 handle holds 562 MiB of the 1 GiB given with --known");
}

static void what_still_fills_at_no_row(void **state)
{
    (void)state;
    become(SEEP_VERDICT_BOUNDED);
    report->site_count = 0;
    holds("still filling; 576 MiB live at 2 call sites");
    verdict->filling = false;
    fails("still filling; 576 MiB live at 2 call sites");
    holds("growth stopped; 576 MiB live");
    verdict->reassures = true;
    holds("no leak: growth stopped; 576 MiB live");
    verdict->reassures = false;
    fails("no leak: growth stopped; 576 MiB live");
    verdict->filling = true;
    fails("growth stopped; 576 MiB live");
}

static void become_stopped(void)
{
    become(SEEP_VERDICT_BOUNDED);
    verdict->filling = false;
    verdict->reassures = true;
    verdict->hidden_bytes_per_s = 36700;
    site->class = SEEP_CLASS_PLATEAU;
    report->duration_s = 100;
    site->stopped_since_s = 40;
    site->stopped_ln_p = -9.21034;
}

static void what_has_stopped(void **state)
{
    (void)state;
    become_stopped();
    holds("no leak: growth stopped 1 min 00 s ago");
    holds("growth stopped 1 min 00 s ago");
    holds(" (odds of such a long pause by chance: 1 in 10,000)");
    holds("; it was at serve.py:31 handle, which holds 562 MiB");
    holds("; a leak of more than 2.1 MiB/min would have shown by now");
    verdict->reassures = false;
    fails("no leak: growth stopped 1 min 00 s ago");
    fails("; a leak of more than 2.1 MiB/min would have shown by now");
    site->stopped_ln_p = 0; /* nobody has computed it */
    fails(" (odds of such a long pause by chance: 1 in 10,000)");
    site->stopped_since_s = 0;
    fails("growth stopped 1 min 00 s ago");
    site->class = SEEP_CLASS_STEADY;
    fake.sites[1].class = SEEP_CLASS_STEP;
    fails("; it was at serve.py:31 handle, which holds 562 MiB");
    holds("; more memory, 562 MiB, is live at serve.py:31 handle");
    fake.sites[1].live_bytes = 562 << 20;
    fails("; more memory, 562 MiB, is live at serve.py:31 handle");
}

static void what_cannot_be_told_beside_it(void **state)
{
    (void)state;
    become_stopped();
    holds("no leak");
    verdict->reassures = false;
    verdict->open_reason =
        "a call site kept more than it freed, but for too little of the run to say how it goes on";
    verdict->open_bytes_per_s = (struct seep_interval){1024, 512, 2048};
    strcpy(verdict->open_id, site->id);
    holds(
        "; cannot tell yet whether serve.py:31 handle (heap) leaks 60.0 KiB/min (30.0 to 120)");
    holds("a call site kept more than it freed, but for too little of the run");
    fails("no leak");
    verdict->open_reason = NULL;
    *verdict->open_id = '\0';
    fails(
        "; cannot tell yet whether serve.py:31 handle (heap) leaks 60.0 KiB/min (30.0 to 120)");
    fails("a call site kept more than it freed, but for too little of the run");
}

static void what_rose_most_and_has_stopped(void **state)
{
    (void)state;
    become(SEEP_VERDICT_SUSPECT);
    site->pattern = NULL;
    strcpy(verdict->stopped_id, fake.sites[1].id);
    fake.sites[1].live_bytes = 440 << 20;
    fake.sites[1].pattern = &fake_report_pattern;
    holds("of live memory ");
    holds(") rose most, to 440 MiB, and has stopped");
    holds("known: ");
    fake.sites[1].pattern = NULL;
    fails("known: ");
    strcpy(verdict->stopped_id, "of no site");
    fails("of live memory ");
    fails(") rose most, to 440 MiB, and has stopped");
}

static void what_a_known_bound_is_to(void **state)
{
    (void)state;
    become_stopped();
    site->known_bound_bytes = UINT64_C(1) << 30;
    holds(
        "no leak: serve.py:31 handle holds 562 MiB of the 1 GiB given with --known");
    verdict->reassures = false;
    fails(
        "no leak: serve.py:31 handle holds 562 MiB of the 1 GiB given with --known");
    site->known_bound_bytes = UINT64_C(1) << 29;
    holds(
        "holds 562 MiB, no longer grows, but exceeds the 512 MiB given with --known");
    site->known_bound_bytes = UINT64_C(1) << 30;
    fails(
        "holds 562 MiB, no longer grows, but exceeds the 512 MiB given with --known");
}

static void what_cannot_be_told(void **state)
{
    (void)state;
    become(SEEP_VERDICT_INSUFFICIENT);
    holds("cannot tell yet whether it leaks: ");
    holds("576 MiB live at 2 call sites");
    fake_report_give_devices(&fake);
    fails("576 MiB live at 2 call sites");
    holds("576 MiB of host memory and 9 GiB of GPU memory live at");
    report->space_count = 1;
    fails("576 MiB of host memory and 9 GiB of GPU memory live at");
    verdict->has_growth = verdict->private_grows = true;
    holds("private memory grows by 41");
    verdict->private_grows = false;
    fails("private memory grows by 41");
    verdict->too_little = true;
    holds("private memory grows by 41");
    snprintf(verdict->first_id, sizeof(verdict->first_id), "%s", site->id);
    fails("private memory grows by 41");
    holds("live memory grows by 41");
    verdict->too_little = false;
    fails("live memory grows by 41");
    verdict->class = SEEP_VERDICT_STEADY;
    fails("cannot tell yet whether it leaks: ");
}

static void what_imported_for_most_of_its_time(void **state)
{
    (void)state;
    become(SEEP_VERDICT_INSUFFICIENT);
    report->duration_s = 100;
    report->begin.imports_s = 88;
    report->begin.mostly_imports = true;
    verdict->hidden_bytes_per_s = 35 * MIB / 60;
    holds("12.0 s of work behind 1 min 28 s of imports is too little");
    holds(", and a leak of up to 35.0 MiB/min could hide in it; ");
    verdict->hidden_bytes_per_s = 0;
    fails(", and a leak of up to 35.0 MiB/min could hide in it; ");
    report->begin.imports_s = 99.5;
    fails("12.0 s of work behind 1 min 28 s of imports is too little");
    holds("all of the 1 min 40 s so far was imports; ");
    report->end.judged_before = true;
    fails("all of the 1 min 40 s so far was imports; ");
    holds("all of the 1 min 40 s that can be judged was imports; ");
    report->begin.mostly_imports = false;
    fails("all of the 1 min 40 s that can be judged was imports; ");
}

static void what_is_steady(void **state)
{
    (void)state;
    become(SEEP_VERDICT_STEADY);
    holds("no leak: nothing grows; ");
    holds("; a leak of more than 2.1 MiB/min would have shown by now");
    verdict->reassures = false;
    fails("no leak: nothing grows; ");
    fails("; a leak of more than 2.1 MiB/min would have shown by now");
    holds("nothing was seen to grow; ");
    verdict->minor_count = 1;
    fails("nothing was seen to grow; ");
    holds("nothing certainly grows by 1 MiB or more");
    verdict->minor_count = 0;
    fails("nothing certainly grows by 1 MiB or more");
    fake.sites[1].class = SEEP_CLASS_TURNOVER;
    fake.sites[1].has_growth = true;
    fake.sites[1].growth_bytes_per_s.low = 1;
    fails("nothing was seen to grow; ");
    holds("nothing certainly grows by 1 MiB or more");
    fake.sites[1].growth_bytes_per_s.low = 0;
    fails("nothing certainly grows by 1 MiB or more");
    report->memory.anonymous.slope_bytes_per_s = 45000;
    fails("nothing was seen to grow; ");
    holds("nothing certainly grows by 1 MiB or more");
    report->memory.anonymous.slope_bytes_per_s = 0;
    fails("nothing certainly grows by 1 MiB or more");
    verdict->suppressed_count = 2;
    verdict->suppressed_bytes_per_s = 20000;
    holds(" but 1.1 MiB/min at 2 suppressed call sites");
    verdict->class = SEEP_VERDICT_BOUNDED;
    fails(" but 1.1 MiB/min at 2 suppressed call sites");
    holds("; not counted: 1.1 MiB/min at 2 suppressed call sites");
    verdict->suppressed_count = 0;
    fails("; not counted: 1.1 MiB/min at 2 suppressed call sites");
}

static void what_was_not_recorded(void **state)
{
    (void)state;
    become(SEEP_VERDICT_STEADY);
    report->inert = SEEP_INERT_VALGRIND;
    holds("NOT RECORDED");
    report->inert = SEEP_INERT_NONE;
    fails("NOT RECORDED");
}

static void how_it_ended(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    report->end = (struct seep_report_end){
        .judged_before = true, .judged_to_s = 45, .freed_bytes = 177 * MIB};
    holds(", until it shut down and freed 177 MiB");
    holds("judged up to 45.0 s, before it shut down and freed 177 MiB");
    report->end.by_exit = true;
    fails("judged up to 45.0 s, before it shut down and freed 177 MiB");
    holds("judged up to 45.0 s, where it called exit() and freed 177 MiB");
    report->end.freed_bytes = MIB; /* of 576: not worth a word */
    fails(", until it shut down and freed 177 MiB");
    fails("judged up to 45.0 s, where it called exit() and freed 177 MiB");
    report->end.unreachable = true;
    holds(
        "most of its memory was freed before the last samples that are kept: growth before that cannot be judged");
    report->end.unreachable = false;
    fails(
        "most of its memory was freed before the last samples that are kept: growth before that cannot be judged");
}

static void what_a_site_kept(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    holds(
        "it kept 12 KiB per unit of work from 12.0 s into the run to its end, "
        "97 % of its work");
    site->role = SEEP_ROLE_HEAD; /* others count in the headline */
    holds("the first line kept 12 KiB per unit of work from 12.0 s");
    site->role = SEEP_ROLE_NONE;
    fails("the first line kept 12 KiB per unit of work from 12.0 s");
    site->has_growth_per_unit = false;
    holds("it kept 684 KiB per second from 12.0 s");
    site->has_growth_per_unit = true;
    fails("it kept 684 KiB per second from 12.0 s");
    holds("; none of it was freed");
    holds("a cache that has not reached its bound yet looks the same");
    site->kept.oldest_death_s = 4;
    fails("; none of it was freed");
    holds("; no block older than 4.0 s was freed");
    site->kept.oldest_death_s = 0;
    fails("; no block older than 4.0 s was freed");
    site->kept.share = 1;
    fails(
        "it kept 12 KiB per unit of work from 12.0 s into the run to its end, "
        "97 % of its work");
    holds("it kept 12 KiB per unit of work throughout the run");
    report->begin.from_s = 8;
    fails("it kept 12 KiB per unit of work throughout the run");
    holds("it kept 12 KiB per unit of work since the work began");
    site->kept.share = 0.97;
    report->units = 0;
    holds("97 % of its length since the work began");
    report->begin.from_s = 0;
    fails("97 % of its length since the work began");
    site->kept.share = 1;
    fails("it kept 12 KiB per unit of work since the work began");
    site->kept.gave_back_old = true;
    fails("it kept 12 KiB per unit of work throughout the run");
    fails("a cache that has not reached its bound yet looks the same");
    holds("it was seen freeing old blocks, but grows all the same");
    site->stopped_since_s = 400;
    fails("it was seen freeing old blocks, but grows all the same");
    site->stopped_since_s = 0;
    holds("it was seen freeing old blocks, but grows all the same");
    site->growth_bytes_per_s.low = -1;
    fails("it was seen freeing old blocks, but grows all the same");
}

static void when_the_next_step_is_due(void **state)
{
    (void)state;
    become(SEEP_VERDICT_SUSPECT);
    site->in_steps = true;
    site->step_next_bytes = 256 * MIB;
    site->step_next_s = report->duration_s + 40;
    holds("its next step, to 256 MiB, is due in about 40.0 s");
    site->step_next_s = report->duration_s;
    fails("its next step, to 256 MiB, is due in about 40.0 s");
    holds("its next step, to 256 MiB, is due now");
    site->in_steps = false;
    fails("its next step, to 256 MiB, is due now");
}

static void what_the_process_grows_by_beside_it(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    verdict->private_grows = true;
    memory->anonymous.slope_bytes_per_s = 2e6;
    holds("private memory grows by more than that, +114 MiB/min in all");
    memory->anonymous.slope_error = 1.3e6; /* it may be no more */
    fails("private memory grows by more than that, +114 MiB/min in all");
}

static void what_is_mapped_of_files(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    verdict->files = true;
    memory->files.valid = true;
    memory->files.last_bytes = 5 * 1024 * MIB;
    holds(
        "it is address space mapped from files and never unmapped: of 5 GiB, at most 30 MiB is resident so far, as page cache that the kernel can take back");
    memory->shared.valid = false;
    fails(
        "it is address space mapped from files and never unmapped: of 5 GiB, at most 30 MiB is resident so far, as page cache that the kernel can take back");
    holds(
        "it is address space mapped from files and never unmapped; the parts that were read are page cache");
    verdict->files = false;
    fails(
        "it is address space mapped from files and never unmapped; the parts that were read are page cache");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_it_grows),
        cmocka_unit_test(what_may_be_a_leak),
        cmocka_unit_test(what_lies_outside_of_live_blocks),
        cmocka_unit_test(who_mapped_what_fills),
        cmocka_unit_test(what_is_written_to_only_now),
        cmocka_unit_test(of_threads_that_become_more),
        cmocka_unit_test(what_of_a_fork_is_copied),
        cmocka_unit_test(what_of_its_cgroup_grows_beside_it),
        cmocka_unit_test(what_fills_its_cgroup_beside_a_leak),
        cmocka_unit_test(what_is_only_reserved),
        cmocka_unit_test(what_was_never_written_to),
        cmocka_unit_test(what_is_written_to_later),
        cmocka_unit_test(how_fast_it_is_now),
        cmocka_unit_test(whose_use_is_counted),
        cmocka_unit_test(what_the_allocator_keeps),
        cmocka_unit_test(what_a_cache_of_tensors_keeps),
        cmocka_unit_test(what_still_fills),
        cmocka_unit_test(what_still_fills_at_no_row),
        cmocka_unit_test(what_has_stopped),
        cmocka_unit_test(what_cannot_be_told_beside_it),
        cmocka_unit_test(what_rose_most_and_has_stopped),
        cmocka_unit_test(what_a_known_bound_is_to),
        cmocka_unit_test(what_cannot_be_told),
        cmocka_unit_test(what_imported_for_most_of_its_time),
        cmocka_unit_test(what_is_steady),
        cmocka_unit_test(what_was_not_recorded),
        cmocka_unit_test(how_it_ended),
        cmocka_unit_test(what_a_site_kept),
        cmocka_unit_test(when_the_next_step_is_due),
        cmocka_unit_test(what_the_process_grows_by_beside_it),
        cmocka_unit_test(what_is_mapped_of_files),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
