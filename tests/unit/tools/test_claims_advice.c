/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What to do next, and what a process with Python or GPUs is told besides: each
 * is said where it helps, and nowhere else. */
#include "claims.h"

#include "fake_report.h"
#include "held/kept.h"
#include "text/page.h"
#include "words/verdict.h"

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

/* The sentence, reasons and advice, a line each. */
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
    for (size_t i = 0; i < words.advice_count; i++) {
        fprintf(file, "%s\n", words.advice[i]);
    }
    seep_words_verdict_fini(&words);
    fclose(file);
    return text;
}

static void of_a_leak(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    holds(
        "find what holds the memory allocated at serve.py:31: seep report --stack --site "
        "3f9a0011 /data/");
    holds("the memory allocated at serve.py:31");
    site->where_frame = 0; /* no line of Python's */
    fails("the memory allocated at serve.py:31");
    holds("find what holds it: seep report --stack --site");
    site->where_frame = 2;
    fails("find what holds it: seep report --stack --site");
    report->by = SEEP_BY_FUNCTION;
    fails(
        "find what holds the memory allocated at serve.py:31: seep report --stack --site "
        "3f9a0011 /data/");
    holds(
        "if it is a cache, run it until it is full, or give its bound with --known 3f9a0011=SIZE; if it may grow, suppress it: --suppressions FILE with a line leak:handle");
    site->kept.gave_back_old = true;
    fails(
        "if it is a cache, run it until it is full, or give its bound with --known 3f9a0011=SIZE; if it may grow, suppress it: --suppressions FILE with a line leak:handle");
    verdict->class = SEEP_VERDICT_SUSPECT;
    holds("run it longer under steady load: 28 min 04 s or more");
    verdict->class = SEEP_VERDICT_LEAK;
    fails("run it longer under steady load: 28 min 04 s or more");
}

/* A rule names a function, without its arguments, where there is one. */
static void of_what_may_be_a_cache(void **state)
{
    static const char of_python[] =
        "; if it may grow, suppress it: --suppressions FILE with a line leak:handle";
    static const char of_cxx[] =
        "; if it may grow, suppress it: --suppressions FILE with a line leak:net::take";

    (void)state;
    become(SEEP_VERDICT_LEAK);
    holds(of_python);
    fake.frames[2].function = "<module>";
    fails(of_python);
    holds("or give its bound with --known 3f9a0011=SIZE\n");
    fake.frames[2].function =
        "std::vector<int> net::take<int>(std::less<int> const&)";
    fake.frames[2].python = false;
    fails("or give its bound with --known 3f9a0011=SIZE\n");
    holds(of_cxx);
    fake.frames[2].function = "main";
    fails(of_cxx);
    fails(of_python);
    holds("or give its bound with --known 3f9a0011=SIZE\n");
    fake_report_fill(&fake);
}

/* What nothing points to is in no cache. */
static void of_what_nobody_holds(void **state)
{
    struct seep_held_group group = {.end = SEEP_HELD_END_LOST,
                                    .block_count = 64};
    const struct seep_held_answer answer = {
        .asked_count = 64, .groups = &group, .group_count = 1};
    const struct seep_held_kept kept = {.site_id = "", .answer = &answer};

    (void)state;
    become(SEEP_VERDICT_LEAK);
    holds("a cache that has not reached its bound yet looks the same");
    holds("if it is a cache, run it until it is full");
    holds("it kept 12 KiB per unit of work");
    site->held = &kept;
    fails("a cache that has not reached its bound yet looks the same");
    fails("if it is a cache, run it until it is full");
    holds("nothing points to it");
    holds("it kept 12 KiB per unit of work");
    group.block_count = 20; /* not clear */
    fails("nothing points to it");
    holds("a cache that has not reached its bound yet looks the same");
    group.block_count = 64;
    group.end = SEEP_HELD_END_CYCLE;
    fails("a cache that has not reached its bound yet looks the same");
    fails("if it is a cache, run it until it is full");
    group.end = SEEP_HELD_END_UNROOTED; /* nobody knows */
    holds("if it is a cache, run it until it is full");
    site->held = NULL;
}

/* Who holds it, is told first; where that is not clear, as if nobody had been
 * asked. */
static void of_a_leak_whose_holder_is_known(void **state)
{
    const struct seep_held_step step = {.edge = SEEP_HELD_EDGE_NONE,
                                        .edge_name = "",
                                        .edge_function = "",
                                        .kind = SEEP_HELD_KIND_GLOBAL,
                                        .name = "registry",
                                        .function = "",
                                        .file = ""};
    struct seep_held_group group = {.end = SEEP_HELD_END_HELD,
                                    .block_count = 64,
                                    .steps = &step,
                                    .step_count = 1,
                                    .holder = 1};
    const struct seep_held_answer answer = {
        .asked_count = 64, .groups = &group, .group_count = 1};
    const struct seep_held_kept kept = {.site_id = "", .answer = &answer};

    (void)state;
    become(SEEP_VERDICT_LEAK);
    holds("find what holds the memory allocated at serve.py:31: seep report");
    site->held = &kept;
    holds("find why registry keeps it");
    holds("see where it is allocated: seep report --stack --site 3f9a0011 ");
    fails("find what holds the memory allocated at serve.py:31: seep report");
    group.block_count = 20;
    fails("find why registry keeps it");
    fails("see where it is allocated: seep report --stack --site 3f9a0011 ");
    holds("find what holds the memory allocated at serve.py:31: seep report");
    site->held = NULL;
}

/* Its blocks may have come by a free list; who has them is known. */
static void who_keeps_what_may_be_lent(void **state)
{
    const struct seep_held_step step = {.edge_name = "",
                                        .edge_function = "",
                                        .kind = SEEP_HELD_KIND_GLOBAL,
                                        .name = "registry",
                                        .function = "",
                                        .file = ""};
    struct seep_held_group group = {.end = SEEP_HELD_END_HELD,
                                    .block_count = 64,
                                    .steps = &step,
                                    .step_count = 1,
                                    .holder = 1};
    const struct seep_held_answer answer = {
        .asked_count = 64, .groups = &group, .group_count = 1};
    const struct seep_held_kept kept = {.site_id = "", .answer = &answer};

    (void)state;
    become(SEEP_VERDICT_LEAK);
    site->space = SEEP_SPACE_PYTHON;
    site->lendable_share = 0.95;
    site->keeps_share = 0.14;
    site->held = &kept;
    holds("97 % of it at serve.py:31 handle, kept by registry.");
    holds(", kept by ");
    group.block_count = 20; /* not clear */
    fails(", kept by ");
    group.block_count = 64;
    holds(", kept by ");
    group.end = SEEP_HELD_END_LOST;
    fails(", kept by ");
    group.end = SEEP_HELD_END_HELD;
    site->keeps_share = 0.9; /* it is the line that keeps */
    fails(", kept by ");
    site->held = NULL;
}

static void what_of_live_memory_was_never_touched(void **state)
{
    (void)state;
    become(SEEP_VERDICT_INSUFFICIENT);
    holds("576 MiB live at 2 call sites after");
    memory->anonymous.last_bytes -= 200 * MIB;
    fails("576 MiB live at 2 call sites after");
    holds(
        "576 MiB live at 2 call sites (200 MiB of it never written to) after");
    holds(" of it never written to)");
    site->elsewhere_bytes = 180 * MIB; /* by others */
    fails(" of it never written to)");
    site->elsewhere_bytes = 0;
    verdict->class = SEEP_VERDICT_STEADY;
    holds("576 MiB live at 2 call sites (200 MiB of it never written to), RSS");
    memory->anonymous.last_bytes -= 500 * MIB; /* more than all that lives */
    fails(" of it never written to)");
    memory->anonymous.valid = false;
    site->touched_bytes = 462 * MIB; /* a mapping */
    holds("576 MiB live at 2 call sites (100 MiB of it never written to), RSS");
    site->touched_bytes = 560 * MIB; /* nearly all */
    fails(" of it never written to)");
    site->touched_bytes = -1;
}

static void of_what_lies_outside(void **state)
{
    (void)state;
    become(SEEP_VERDICT_UNEXPLAINED);
    memory->allocator_reported = false;
    memory->has_samples = false;
    holds(
        "while it runs, as root: bpftrace -e 'tracepoint:syscalls:sys_enter_mmap,tracepoint:syscalls:sys_enter_brk,tracepoint:syscalls:sys_enter_shmat /pid == PID/");
    holds(
        "start it with `seep run`, which samples its mappings from outside and names those that grow");
    holds(
        "seep run --allocator jemalloc -- COMMAND: jemalloc reports what it holds itself, which narrows down the rest");
    memory->allocator_reported = true;
    fails(
        "seep run --allocator jemalloc -- COMMAND: jemalloc reports what it holds itself, which narrows down the rest");
    memory->has_samples = true;
    fails(
        "start it with `seep run`, which samples its mappings from outside and names those that grow");
    verdict->unseen = true;
    holds(
        "if a library is loaded with RTLD_DEEPBIND, a flag of dlopen(), load it without: then its blocks are recorded");
    verdict->unseen = false;
    fails(
        "if a library is loaded with RTLD_DEEPBIND, a flag of dlopen(), load it without: then its blocks are recorded");
    verdict->fills_of_bytes = 1;
    fails(
        "while it runs, as root: bpftrace -e 'tracepoint:syscalls:sys_enter_mmap,tracepoint:syscalls:sys_enter_brk,tracepoint:syscalls:sys_enter_shmat /pid == PID/");
}

static void of_what_it_has_in_open_files(void **state)
{
    (void)state;
    become(SEEP_VERDICT_UNEXPLAINED);
    verdict->open_files = true;
    memory->open_file = "memfd:frames";
    holds(
        "memory in files that it has open and that have no name (memfd, removed from a tmpfs) grows by ");
    holds(", the largest is memfd:frames");
    holds(
        "while it runs: ls -lL /proc/PID/fd shows how large each is, strace -f -p PID -e trace=memfd_create,write,pwrite64,ftruncate,close who makes and fills them");
    verdict->open_files = false;
    fails(
        "memory in files that it has open and that have no name (memfd, removed from a tmpfs) grows by ");
    fails(", the largest is memfd:frames");
    fails(
        "while it runs: ls -lL /proc/PID/fd shows how large each is, strace -f -p PID -e trace=memfd_create,write,pwrite64,ftruncate,close who makes and fills them");
}

static void of_what_the_allocator_keeps(void **state)
{
    (void)state;
    become(SEEP_VERDICT_RETENTION);
    holds("on a copy, never in production: gdb -p PID -batch -ex "
          "'call (int)malloc_trim(0)' should give it back");
    holds(
        "MALLOC_ARENA_MAX=2 or MALLOC_TRIM_THRESHOLD_=131072 in its environment keeps glibc from holding on to it");
    holds("seep run --allocator jemalloc -- COMMAND, and compare its RSS");
    memory->allocator = SEEP_ALLOCATOR_JEMALLOC;
    fails("on a copy, never in production: gdb -p PID -batch -ex "
          "'call (int)malloc_trim(0)' should give it back");
    fails(
        "MALLOC_ARENA_MAX=2 or MALLOC_TRIM_THRESHOLD_=131072 in its environment keeps glibc from holding on to it");
    fails("seep run --allocator jemalloc -- COMMAND, and compare its RSS");
    holds("MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,"
          "muzzy_decay_ms:0 gives it back sooner");
    memory->allocator = SEEP_ALLOCATOR_MIMALLOC;
    fails("MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,"
          "muzzy_decay_ms:0 gives it back sooner");
    holds("see how mimalloc can be told to give memory back sooner");
    memory->allocator = SEEP_ALLOCATOR_TCMALLOC;
    fails("see how mimalloc can be told to give memory back sooner");
}

static void of_what_keeps_free_memory_apart(void **state)
{
    struct seep_held_pin_site pin_site = {"0123456789abcdef",
                                          "read.c:42 read_reply", 330, 18e6};
    struct seep_held_kept_pins pins = {
        .pin_count = 368,
        .pin_bytes = 10240,
        .apart_bytes = 368 * 65536.0,
        .known_count = 330,
        .known_apart_bytes = 20e6,
        .sites = &pin_site,
        .site_count = 1,
    };

    (void)state;
    become(SEEP_VERDICT_FRAGMENTATION);
    verdict->has_growth = true;
    memory->allocator = SEEP_ALLOCATOR_GLIBC;
    report->pins = &pins;
    holds(
        "read.c:42 read_reply: free what it keeps, or copy it: a small rest of a large buffer (realloc, del, a short read) stays where that was, and keeps 64 KiB of free memory apart");
    pins.pin_bytes *= 1000;
    fails(
        "read.c:42 read_reply: free what it keeps, or copy it: a small rest of a large buffer (realloc, del, a short read) stays where that was, and keeps 64 KiB of free memory apart");
    holds(
        "read.c:42 read_reply: free what it keeps, or allocate it before the load begins: each block keeps 64 KiB of free memory apart");
    pins.site_count = 0;
    report->exact = false;
    fails(
        "read.c:42 read_reply: free what it keeps, or allocate it before the load begins: each block keeps 64 KiB of free memory apart");
    holds(
        "seep run --exact -- COMMAND tells where the blocks between free pieces are allocated");
    report->exact = true;
    fails(
        "seep run --exact -- COMMAND tells where the blocks between free pieces are allocated");
    report->pins = NULL;
}

static void of_fragments(void **state)
{
    (void)state;
    become(SEEP_VERDICT_FRAGMENTATION);
    holds(
        "MALLOC_ARENA_MAX=2 in its environment: fewer heaps for threads to fragment");
    holds(
        "keep long-lived and short-lived blocks apart: allocate whatever stays before the load begins");
    holds("seep run --allocator jemalloc -- COMMAND, and compare its RSS");
    memory->allocator = SEEP_ALLOCATOR_JEMALLOC;
    fails(
        "MALLOC_ARENA_MAX=2 in its environment: fewer heaps for threads to fragment");
    fails("seep run --allocator jemalloc -- COMMAND, and compare its RSS");
    fake_report_give_devices(&fake);
    fake.devices[0].cache_fragments = true; /* none of the host's */
    fails(
        "keep long-lived and short-lived blocks apart: allocate whatever stays before the load begins");
}

static void of_what_is_written_to_only_now(void **state)
{
    (void)state;
    become(SEEP_VERDICT_UNEXPLAINED);
    verdict->fills_of_bytes = 4096;
    holds(
        "who writes to it first, while it runs: perf record -e page-faults -g -p");
    holds(
        "if it is meant to fill, run it until it is full: what grows then is something else");
    verdict->fills_of_bytes = 0;
    fails(
        "who writes to it first, while it runs: perf record -e page-faults -g -p");
    fails(
        "if it is meant to fill, run it until it is full: what grows then is something else");
}

static void of_threads_that_become_more(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    report->python_version = 0x030b02f0;
    memory->threads = (struct seep_report_extent){true, 12, 1200, 2, .1};
    holds("see for what its threads wait: py-spy dump --pid");
    report->python_version = 0;
    fails("see for what its threads wait: py-spy dump --pid");
    holds("see for what its threads wait: eu-stack -p");
    holds("; a pool of threads has a bound");
    memory->threads.slope_error = 3;
    fails("see for what its threads wait: eu-stack -p");
    fails("; a pool of threads has a bound");
}

static void of_what_a_fork_copies(void **state)
{
    (void)state;
    become(SEEP_VERDICT_STEADY);
    report->python_version = 0;
    memory->forked = (struct seep_report_extent){true, 80.0 * 1048576,
                                                 20.0 * 1048576, -1048576, 100};
    holds(
        "fewer copies: keep what the workers only read on other pages than what they write");
    report->python_version = 0x030b02f0;
    fails(
        "fewer copies: keep what the workers only read on other pages than what they write");
    holds(
        "fewer copies: gc.freeze() before the fork, arrays (numpy, Arrow) in place of many objects, or workers that are not forks (spawn)");
    memory->forked.valid = false;
    fails(
        "fewer copies: gc.freeze() before the fork, arrays (numpy, Arrow) in place of many objects, or workers that are not forks (spawn)");
    verdict->beside_bytes_per_s = 1048576;
    holds(
        "see what grows in its cgroup: memory.stat there (shmem, sock, kernel), du -sh /dev/shm, and its other processes");
    verdict->beside_bytes_per_s = 0;
    fails(
        "see what grows in its cgroup: memory.stat there (shmem, sock, kernel), du -sh /dev/shm, and its other processes");
}

/* A reason, and none of what to do: RSS does not show what grows. */
static void of_shared_memory_that_others_wrote(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    site->touched_bytes = 500.0 * 1048576;
    site->elsewhere_bytes = 400.0 * 1048576;
    holds(
        "of the 562 MiB that it holds 400 MiB are shared memory that this process has not touched: that is in none of its RSS, but in the machine's memory, and in the cgroup's of who wrote it");
    site->elsewhere_bytes = 100.0 * 1048576;
    fails(
        "of the 562 MiB that it holds 400 MiB are shared memory that this process has not touched: that is in none of its RSS, but in the machine's memory, and in the cgroup's of who wrote it");
    site->elsewhere_bytes = 400.0 * 1048576;
    site->class = SEEP_CLASS_PLATEAU;
    fails(
        "of the 562 MiB that it holds 400 MiB are shared memory that this process has not touched: that is in none of its RSS, but in the machine's memory, and in the cgroup's of who wrote it");
}

static void of_what_fills(void **state)
{
    (void)state;
    become(SEEP_VERDICT_BOUNDED);
    holds("run it until it is full: 28 min 04 s or more");
    holds("give its bound: --known 3f9a0011=SIZE");
    site->known_bound_bytes = UINT64_C(1) << 30;
    fails("give its bound: --known 3f9a0011=SIZE");
    verdict->filling = false;
    fails("run it until it is full: 28 min 04 s or more");
}

static void of_too_little(void **state)
{
    (void)state;
    become(SEEP_VERDICT_INSUFFICIENT);
    holds(
        "run it under steady load for at least 30 s, better five times as long as the longest request, batch or session");
    report->site_count = 0;
    fails(
        "run it under steady load for at least 30 s, better five times as long as the longest request, batch or session");
    holds("nothing was sampled: run it longer, or with `seep run --exact`");
    report->site_count = 2;
    fails("nothing was sampled: run it longer, or with `seep run --exact`");
    report->duration_s = 60;
    report->units = 20;
    holds("let it do at least 100 units of work");
    holds(
        "use a smaller --sample, or --exact: sampled every 512 KiB, a leak shows only after it has lost some 6 MiB");
    fake.counters[SEEP_COUNT_SITES_FULL].value = 121501;
    fails(
        "use a smaller --sample, or --exact: sampled every 512 KiB, a leak shows only after it has lost some 6 MiB");
    fake.counters[SEEP_COUNT_SITES_FULL].value = 0;
    report->sample_bytes = 1;
    fails(
        "use a smaller --sample, or --exact: sampled every 512 KiB, a leak shows only after it has lost some 6 MiB");
    report->units = 100;
    fails("let it do at least 100 units of work");
    verdict->need_s = 90;
    holds("run it for another 1 min 30 s under steady load, past its warm-up");
    verdict->need_s = 30;
    fails("run it for another 1 min 30 s under steady load, past its warm-up");
    fake.counters[SEEP_COUNT_ROOM_REFUSED].value = 3;
    fake.counters[SEEP_COUNT_DROPPED_FREES].value = 1000;
    holds(
        "free space on its disk, or choose another folder with -o: the recording could not grow (SEEP_FLOOR)");
    fake.counters[SEEP_COUNT_ROOM_REFUSED].value = 0;
    fails(
        "free space on its disk, or choose another folder with -o: the recording could not grow (SEEP_FLOOR)");
    fake.counters[SEEP_COUNT_DROPPED_FREES].value = 0;
    report->inert = SEEP_INERT_VALGRIND;
    holds("record it without that, or record only its other processes");
    report->inert = SEEP_INERT_NONE;
    fails("record it without that, or record only its other processes");
}

/* Whatever the verdict: what is missing from the rows may be what grows. */
static void of_tables_that_are_full(void **state)
{
    static const enum seep_verdict_class classes[] = {
        SEEP_VERDICT_LEAK, SEEP_VERDICT_BOUNDED, SEEP_VERDICT_INSUFFICIENT};

    (void)state;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        become(classes[i]);
        fake.counters[SEEP_COUNT_STACKS_SHORT].value = 12023;
        holds(
            "record it with --size 128MiB: the table of call sites was filling up, and 12,023 of them lost frames");
        fake.counters[SEEP_COUNT_SITES_FULL].value = 121501;
        fails(
            "record it with --size 128MiB: the table of call sites was filling up, and 12,023 of them lost frames");
        holds(
            "record it with --size 128MiB: the table of call sites was full, 121,501 events belong to none");
        fake.counters[SEEP_COUNT_SITES_FULL].value = 0;
        fake.counters[SEEP_COUNT_STACKS_SHORT].value = 0;
        fails(
            "record it with --size 128MiB: the table of call sites was full, 121,501 events belong to none");
    }
}

static void become_python(enum seep_verdict_class class)
{
    become(class);
    site->space = SEEP_SPACE_MAPPED;
    report->python_objects = SEEP_PYTHON_OBJECTS_OFF;
}

static void of_python(void **state)
{
    (void)state;
    become_python(SEEP_VERDICT_LEAK);
    holds(
        "it is an arena of Python's small-object allocator: record Python's objects to see which lines keep them");
    holds(
        "seep run --python objects -- COMMAND, or SEEP_PYTHON=objects: shows Python's own objects by the lines that made them");
    report->python_objects = SEEP_PYTHON_OBJECTS_ON;
    fails(
        "it is an arena of Python's small-object allocator: record Python's objects to see which lines keep them");
    fails(
        "seep run --python objects -- COMMAND, or SEEP_PYTHON=objects: shows Python's own objects by the lines that made them");
    site->space = SEEP_SPACE_PYTHON;
    site->lendable_share = 0.95;
    site->keeps_share = 0.14;
    holds(
        "Python reuses freed dicts, lists, tuples and floats: this line freed 86 % of its blocks, and another may keep the rest");
    site->keeps_share = 0.9; /* it is the one that keeps */
    fails(
        "Python reuses freed dicts, lists, tuples and floats: this line freed 86 % of its blocks, and another may keep the rest");
    site->keeps_share = 0.14;
    site->lendable_share = 0.2; /* by no free list */
    fails(
        "Python reuses freed dicts, lists, tuples and floats: this line freed 86 % of its blocks, and another may keep the rest");
}

static void of_python_without_frames(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    site->frame_count = 1;
    site->where_frame = 0;
    report->python_state = SEEP_PYTHON_DEBUG;
    holds(
        "use a release build of Python 3.8 to 3.15: with this one frames are off");
    report->python_state = SEEP_PYTHON_NONE;
    report->python_version = 0;
    fails(
        "use a release build of Python 3.8 to 3.15: with this one frames are off");
    holds(
        "seep run --python frames -- COMMAND, or SEEP_PYTHON=frames: shows the lines of Python");
    report->executable = "/usr/bin/serve";
    fails(
        "seep run --python frames -- COMMAND, or SEEP_PYTHON=frames: shows the lines of Python");
}

static void of_memory_of_gpus(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    fake_report_give_devices(&fake);
    fake.devices[0].unexplained.slope_bytes_per_s = 1e6;
    holds(
        "memory of GPU 0 that was not allocated by recorded calls of this process grows by 57.2 MiB/min: other processes, or contexts and code");
    fake.devices[0].unexplained.slope_error = 1e6;
    fails(
        "memory of GPU 0 that was not allocated by recorded calls of this process grows by 57.2 MiB/min: other processes, or contexts and code");
    fake.devices[0].pool_reserved.last_bytes = 20.0 * (1 << 30);
    holds(
        "the memory pool of GPU 0 keeps 20 GiB unused: a lower cudaMemPoolAttrReleaseThreshold, or cudaMemPoolTrimTo when it is idle, gives it back");
    fake.devices[0].pool_used.last_bytes = 20.0 * (1 << 30);
    fails(
        "the memory pool of GPU 0 keeps 20 GiB unused: a lower cudaMemPoolAttrReleaseThreshold, or cudaMemPoolTrimTo when it is idle, gives it back");
}

/* The sentence about when it is full says it of that device alone, and not of
 * one that is full already. */
static void of_others_on_a_gpu_it_is_said_once(void **state)
{
    static const char first[] =
        "memory of GPU 0 that was not allocated by recorded calls";
    static const char second[] =
        "memory of GPU 1 that was not allocated by recorded calls";
    struct seep_report_forecast *forecast = &verdict->forecast;

    (void)state;
    become(SEEP_VERDICT_LEAK);
    fake_report_give_devices(&fake);
    fake.devices[0].unexplained.slope_bytes_per_s = 1e6;
    fake.devices[1].unexplained = fake.devices[0].unexplained;
    holds(first);
    holds(second);
    forecast->what = "device";
    forecast->device = 0;
    forecast->by_others = true;
    fails(first);
    holds(second);
    forecast->device = 1;
    holds(first);
    fails(second);
    forecast->used_bytes = forecast->limit_bytes;
    holds(second);
}

static void of_the_cache_of_tensors(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    fake_report_give_devices(&fake);
    fake.devices[0].cache_fragments = true;
    holds(
        "PyTorch's cache on GPU 0 grows by 114 MiB/min, but the tensors in it do not: it is fragmenting");
    holds(
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in its environment "
        "(PyTorch 2.1 or newer): the 512 MiB idle on GPU 0 are pieces of fixed-size segments, which could grow instead");
    holds(
        "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128: blocks larger than "
        "that are not split, so small tensors cannot hold them; or use few, fixed request shapes, so that freed memory fits the next request");
    fake.spaces[0].space = SEEP_SPACE_RESERVED;
    fails(
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in its environment "
        "(PyTorch 2.1 or newer): the 512 MiB idle on GPU 0 are pieces of fixed-size segments, which could grow instead");
    /* A line of tensors leaks, and the cache takes more than that. */
    fake.sites[0].space = SEEP_SPACE_TENSOR;
    fake.sites[1].space = SEEP_SPACE_DEVICE;
    fake.sites[1].device = 0;
    fake.sites[1].backs_tensors = true;
    fake.sites[1].has_growth = true;
    fake.sites[1].growth_bytes_per_s =
        (struct seep_interval){9 << 20, 8 << 20, 10 << 20};
    holds(
        "PyTorch's cache on GPU 0 grows by at least 480 MiB/min, more than the tensors in it: the rest is idle there, or kept for CUDA graphs, each of which has a pool of its own");
    fails(
        "PyTorch's cache on GPU 0 grows by 114 MiB/min, but the tensors in it do not: it is fragmenting");
    fake.sites[1].growth_bytes_per_s = fake.sites[0].growth_bytes_per_s;
    fails(
        "PyTorch's cache on GPU 0 grows by at least 480 MiB/min, more than the tensors in it: the rest is idle there, or kept for CUDA graphs, each of which has a pool of its own");
    fake.sites[0].space = SEEP_SPACE_DEVICE;
    holds(
        "PyTorch's cache on GPU 0 grows by 114 MiB/min, but the tensors in it do not: it is fragmenting");
    fake.devices[0].cache_fragments = false;
    fails(
        "PyTorch's cache on GPU 0 grows by 114 MiB/min, but the tensors in it do not: it is fragmenting");
    fails(
        "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128: blocks larger than "
        "that are not split, so small tensors cannot hold them; or use few, fixed request shapes, so that freed memory fits the next request");
}

static void of_segments_without_tensors(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    fake_report_give_devices(&fake);
    fake.frames[0].module = "/x/libc10_cuda.so";
    report->space_count = 2;
    holds(
        "it is memory of PyTorch's cache: the line missed the cache, and may not be the one that keeps its contents");
    holds(
        "seep run --cuda tensors -- COMMAND, or SEEP_CUDA=tensors: shows PyTorch's tensors by the lines that keep them");
    report->space_count = 3; /* tensors are recorded */
    fails(
        "it is memory of PyTorch's cache: the line missed the cache, and may not be the one that keeps its contents");
    fails(
        "seep run --cuda tensors -- COMMAND, or SEEP_CUDA=tensors: shows PyTorch's tensors by the lines that keep them");
}

/* Whoever came upon the next chunk of a pool need not hold anything in it. */
static void of_a_pool(void **state)
{
    (void)state;
    become(SEEP_VERDICT_SUSPECT);
    holds("find what holds the memory allocated at serve.py:31: seep report");
    site->pool = "polars' own jemalloc";
    fails("find what holds the memory allocated at serve.py:31: seep report");
    holds(
        "which lines keep it is not known: look for a setting by which the library uses malloc, or ask it what it has");
    site->pool = NULL;
    fails(
        "which lines keep it is not known: look for a setting by which the library uses malloc, or ask it what it has");
}

static void of_a_driver_that_is_reached_past_us(void **state)
{
    static const char *const modules[] = {"/usr/lib/libcuda.so.1"};

    (void)state;
    become(SEEP_VERDICT_STEADY);
    report->modules = modules;
    report->module_count = 1;
    holds(
        "the CUDA driver is loaded, but none of its functions was looked up where seep could see it: GPU memory is not in this report");
    holds(
        "the program reaches the driver in a way that seep does not see (dlmopen, RTLD_DEEPBIND): turn that off to record its memory");
    fake.counters[SEEP_COUNT_CUDA_LOOKUPS].value = 1;
    fails(
        "the CUDA driver is loaded, but none of its functions was looked up where seep could see it: GPU memory is not in this report");
    fails(
        "the program reaches the driver in a way that seep does not see (dlmopen, RTLD_DEEPBIND): turn that off to record its memory");
}

static void until_when_it_was_recorded(void **state)
{
    (void)state;
    become(SEEP_VERDICT_LEAK);
    report->is_closed = true;
    holds(
        "it was recorded until a limit of its own (ulimit -v, -d) had no room for it and a recording: what came later is not in here");
    report->is_closed = false;
    fails(
        "it was recorded until a limit of its own (ulimit -v, -d) had no room for it and a recording: what came later is not in here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(until_when_it_was_recorded),
        cmocka_unit_test(of_a_leak),
        cmocka_unit_test(of_a_leak_whose_holder_is_known),
        cmocka_unit_test(of_what_may_be_a_cache),
        cmocka_unit_test(of_what_nobody_holds),
        cmocka_unit_test(who_keeps_what_may_be_lent),
        cmocka_unit_test(what_of_live_memory_was_never_touched),
        cmocka_unit_test(of_what_lies_outside),
        cmocka_unit_test(of_what_it_has_in_open_files),
        cmocka_unit_test(of_what_the_allocator_keeps),
        cmocka_unit_test(of_what_keeps_free_memory_apart),
        cmocka_unit_test(of_fragments),
        cmocka_unit_test(of_what_is_written_to_only_now),
        cmocka_unit_test(of_threads_that_become_more),
        cmocka_unit_test(of_what_a_fork_copies),
        cmocka_unit_test(of_shared_memory_that_others_wrote),
        cmocka_unit_test(of_what_fills),
        cmocka_unit_test(of_too_little),
        cmocka_unit_test(of_tables_that_are_full),
        cmocka_unit_test(of_python),
        cmocka_unit_test(of_python_without_frames),
        cmocka_unit_test(of_memory_of_gpus),
        cmocka_unit_test(of_others_on_a_gpu_it_is_said_once),
        cmocka_unit_test(of_the_cache_of_tensors),
        cmocka_unit_test(of_segments_without_tensors),
        cmocka_unit_test(of_a_pool),
        cmocka_unit_test(of_a_driver_that_is_reached_past_us),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
