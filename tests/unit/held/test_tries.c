/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When a process is asked once more, and when it is not; what is known of what
 * was seen of it.
 *
 * Invariant: the process is a child of ours with the same addresses, and has no
 * copy of what it is asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "held/held.h"
#include "held/search.h"
#include "seep_test.h"

#define BLOCKS 16U
#define BLOCK_BYTES 4096U
#define NOWHERE UINT64_C(0x123456780000) /* an address without memory */

struct fixture {
    uint64_t hidden; /* where the blocks are, inverted */
    struct seep_held_block *asked;
    struct seep_held_question question;
    int pipe[2];
    pid_t child;
};

static uint64_t block_of(const struct fixture *f, size_t i)
{
    return ~f->hidden + i * BLOCK_BYTES;
}

static void *take(size_t bytes)
{
    void *taken = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(taken != MAP_FAILED);
    return taken;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->hidden = ~(uint64_t)(uintptr_t)take(BLOCKS * BLOCK_BYTES);
    f->asked = take(SEEP_HELD_PAGE_BYTES);
    assert_int_equal(madvise(f->asked, SEEP_HELD_PAGE_BYTES, MADV_DONTFORK), 0);
    for (size_t i = 0; i < BLOCKS; i++) {
        f->asked[i] = (struct seep_held_block){block_of(f, i), BLOCK_BYTES};
    }
    f->question =
        (struct seep_held_question){.blocks = f->asked, .block_count = BLOCKS};
    assert_int_equal(pipe2(f->pipe, O_CLOEXEC), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    if (f->child > 0) {
        kill(f->child, SIGKILL);
        waitpid(f->child, NULL, 0);
    }
    munmap(f->asked, SEEP_HELD_PAGE_BYTES);
    munmap((void *)(uintptr_t)~f->hidden, BLOCKS * BLOCK_BYTES);
    close(f->pipe[0]);
    close(f->pipe[1]);
    free(f);
    *state = NULL; /* cmocka keeps it, and a table may come to lie there */
    return 0;
}

static void be_ready(struct fixture *f)
{
    if (write(f->pipe[1], "r", 1) != 1) {
        _exit(1);
    }
}

/* A child that does @make, which says when it is ready, and waits. */
static void begin(struct fixture *f, void (*make)(struct fixture *f))
{
    char ready = 0;

    f->child = fork();
    assert_true(f->child >= 0);
    if (f->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        make(f);
        for (;;) {
            pause();
        }
    }
    f->question.pid = f->child;
    assert_int_equal(read(f->pipe[0], &ready, 1), 1);
}

static struct seep_held_answer *ask(struct fixture *f)
{
    struct seep_held_answer *answer = NULL;

    assert_int_equal(seep_held_ask(&f->question, &answer), 0);
    assert_true(answer->group_count > 0);
    return answer;
}

/*
 * A search that went too deep.
 */

#define ROW_LENGTH 40U /* more than there are levels */

/* Each block is below a row of others, no two of a size, that nobody has. */
static void have_deep_rows(struct fixture *f)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        void *below = (void *)(uintptr_t)block_of(f, i);

        for (size_t k = 0; k < ROW_LENGTH; k++) {
            void **above = calloc(1, 64 + 16 * (k * BLOCKS + i));

            if (above == NULL) {
                _exit(1);
            }
            above[k % 8] = below;
            below = above;
        }
    }
    be_ready(f);
}

static void a_search_that_went_too_deep_is_made_again(void **state)
{
    struct fixture *f = *state;
    struct seep_held_answer *answer;

    begin(f, have_deep_rows);
    answer = ask(f);

    assert_true(answer->was_cut_short);
    assert_false(answer->was_late);
    assert_true(answer->try_count > 1);
    seep_held_close(answer);
}

/*
 * A process that does not stop at once.
 */

#define NOT_YET_NS 100000000

static volatile uint64_t kept[BLOCKS];

/* Who has called vfork() stops when that ends. */
static void have_what_comes_late(struct fixture *f)
{
    const struct timespec pause = {.tv_nsec = NOT_YET_NS};

    be_ready(f);
    if (vfork() == 0) {
        nanosleep(&pause, NULL);
        for (size_t i = 0; i < BLOCKS; i++) {
            kept[i] = block_of(f, i);
        }
        _exit(0);
    }
}

static void *be_late(void *fixture)
{
    have_what_comes_late(fixture);
    return NULL;
}

/* The same of a thread, beside one that stops at once. */
static void have_a_thread_that_is_late(struct fixture *f)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, be_late, f) != 0) {
        _exit(1);
    }
}

/* As who is recorded has its recording mapped. */
static void record(struct fixture *f)
{
    int file = memfd_create("recording", MFD_CLOEXEC);
    struct stat status;

    assert_int_equal(ftruncate(file, SEEP_HELD_PAGE_BYTES), 0);
    assert_int_equal(fstat(file, &status), 0);
    assert_true(mmap(NULL, SEEP_HELD_PAGE_BYTES, PROT_READ | PROT_WRITE,
                     MAP_SHARED, file, 0) != MAP_FAILED);
    close(file);
    f->question.recording_inode = status.st_ino;
}

static void expect_what_comes_late(struct fixture *f,
                                   void (*make)(struct fixture *f))
{
    struct seep_held_answer *answer;

    f->question.freeze_ms = 5000;
    record(f);
    begin(f, make);
    answer = ask(f);

    assert_int_equal(answer->groups[0].end, SEEP_HELD_END_HELD);
    assert_int_equal(answer->groups[0].block_count, BLOCKS);
    seep_held_close(answer);
}

static void what_is_frozen_is_read_when_it_has_stopped(void **state)
{
    expect_what_comes_late(*state, have_what_comes_late);
}

static void what_is_frozen_has_stopped_when_each_thread_has(void **state)
{
    expect_what_comes_late(*state, have_a_thread_that_is_late);
}

/* Whatever number a recording has in it. */
static void who_does_not_write_the_recording_is_not_stopped(void **state)
{
    struct fixture *f = *state;
    struct seep_held_answer *answer = NULL;

    f->question.freeze_ms = 5000;
    f->question.recording_inode = 1;
    begin(f, be_ready);

    assert_int_equal(seep_held_ask(&f->question, &answer), -EXDEV);
    assert_null(answer);
}

/*
 * A table that grew.
 */

#define TABLE_WORDS 32U
#define LEFT_OVER 11U

void *has_some; /* what lies where a smaller table of them was */

/* All blocks but the first @count_elsewhere in a table of a function that runs,
 * which costs more than a global; the first LEFT_OVER in that of a global. */
static void have_tables(struct fixture *f, size_t count_elsewhere)
{
    uint64_t *table = calloc(TABLE_WORDS, sizeof(*table));
    uint64_t *other = calloc(TABLE_WORDS, sizeof(*other));
    uint64_t *volatile local = table;

    if (table == NULL || other == NULL) {
        _exit(1);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        table[i] = i < count_elsewhere ? 0 : block_of(f, i);
        other[i] = i < LEFT_OVER ? block_of(f, i) : 0;
    }
    has_some = other;
    be_ready(f);
    while (local != NULL) {
        pause();
    }
}

static void have_a_table_that_grew(struct fixture *f)
{
    have_tables(f, 0);
}

static void have_two_tables(struct fixture *f)
{
    have_tables(f, LEFT_OVER);
}

static void who_has_all_is_told_and_not_who_has_words_of_some(void **state)
{
    struct fixture *f = *state;
    struct seep_held_answer *answer;
    const struct seep_held_group *group;

    begin(f, have_a_table_that_grew);
    answer = ask(f);
    group = &answer->groups[0];

    assert_int_equal(group->end, SEEP_HELD_END_HELD);
    assert_int_equal(group->block_count, BLOCKS);
    assert_int_equal(group->steps[group->step_count - 1].kind,
                     SEEP_HELD_KIND_STACK);
    seep_held_close(answer);
}

/* All of them in a table to which some memory points that nobody has. */
static void have_a_table_of_nobody(struct fixture *f)
{
    /* Away from its neighbours, which would have it for theirs. */
    char *pages = take(3 * SEEP_HELD_PAGE_BYTES);
    uint64_t **memory = (uint64_t **)(void *)(pages + SEEP_HELD_PAGE_BYTES);
    uint64_t *other = calloc(TABLE_WORDS, sizeof(*other));

    if (other == NULL ||
        mprotect(pages, SEEP_HELD_PAGE_BYTES, PROT_NONE) != 0 ||
        mprotect(pages + 2 * SEEP_HELD_PAGE_BYTES, SEEP_HELD_PAGE_BYTES,
                 PROT_NONE) != 0) {
        _exit(1);
    }
    memory[9] = calloc(TABLE_WORDS, sizeof(*other));
    for (size_t i = 0; i < BLOCKS; i++) {
        memory[9][i] = block_of(f, i);
        other[i] = i < LEFT_OVER ? block_of(f, i) : 0;
    }
    has_some = other;
    be_ready(f);
}

static void who_has_no_name_explains_nothing(void **state)
{
    struct fixture *f = *state;
    struct seep_held_answer *answer;
    const struct seep_held_group *group;

    begin(f, have_a_table_of_nobody);
    answer = ask(f);
    group = &answer->groups[0];

    assert_int_equal(group->end, SEEP_HELD_END_HELD);
    assert_int_equal(group->block_count, LEFT_OVER);
    assert_string_equal(group->steps[group->step_count - 1].name, "has_some");
    seep_held_close(answer);
}

static void of_two_tables_each_has_its_own(void **state)
{
    struct fixture *f = *state;
    struct seep_held_answer *answer;
    const struct seep_held_group *group;

    begin(f, have_two_tables);
    answer = ask(f);
    group = &answer->groups[0];

    assert_int_equal(group->block_count, LEFT_OVER);
    assert_string_equal(group->steps[group->step_count - 1].name, "has_some");
    seep_held_close(answer);
}

/*
 * Several call sites in the same passes.
 */

static const size_t two_parts[] = {LEFT_OVER, BLOCKS};

static struct seep_held_answer *ask_for_two(struct fixture *f,
                                            void (*make)(struct fixture *f))
{
    struct seep_held_answer *answer;

    f->question.part_ends = two_parts;
    f->question.part_count = 2;
    begin(f, make);
    answer = ask(f);
    assert_int_equal(answer->part_count, 2);
    return answer;
}

/* The first group of a part. */
static const struct seep_held_group *
first_of(const struct seep_held_answer *answer, size_t part)
{
    assert_true(answer->parts[part].group_count > 0);
    return &answer->groups[answer->parts[part].group_first];
}

static void of_two_call_sites_each_has_its_holder(void **state)
{
    struct seep_held_answer *answer = ask_for_two(*state, have_two_tables);
    const struct seep_held_group *one = first_of(answer, 0);
    const struct seep_held_group *other = first_of(answer, 1);

    assert_int_equal(answer->asked_count, BLOCKS);
    assert_int_equal(answer->parts[0].asked_count, LEFT_OVER);
    assert_int_equal(answer->parts[1].asked_count, BLOCKS - LEFT_OVER);
    assert_int_equal(one->block_count, LEFT_OVER);
    assert_string_equal(one->steps[one->step_count - 1].name, "has_some");
    assert_int_equal(other->block_count, BLOCKS - LEFT_OVER);
    assert_int_equal(other->steps[other->step_count - 1].kind,
                     SEEP_HELD_KIND_STACK);
    seep_held_close(answer);
}

static void first_are_gone(void *context, const struct seep_held_block *blocks,
                           size_t count, bool *ret_live)
{
    (void)context;
    (void)blocks;
    assert_int_equal(count, BLOCKS);
    memset(ret_live, 0, LEFT_OVER * sizeof(*ret_live));
}

static void a_call_site_whose_blocks_are_gone_has_no_answer(void **state)
{
    struct fixture *f = *state;
    struct seep_held_answer *answer;

    f->question.still_live = first_are_gone;
    answer = ask_for_two(f, have_two_tables);
    assert_int_equal(answer->parts[0].asked_count, 0);
    assert_int_equal(answer->parts[0].group_count, 0);
    assert_int_equal(first_of(answer, 1)->block_count, BLOCKS - LEFT_OVER);
    seep_held_close(answer);
}

/* As many as one in ten go on, and are asked by themselves. */
static void have_but_one(struct fixture *f)
{
    has_some = calloc(TABLE_WORDS, sizeof(uint64_t));
    if (has_some == NULL) {
        _exit(1);
    }
    for (size_t i = 1; i < BLOCKS; i++) {
        ((uint64_t *)has_some)[i] = block_of(f, i);
    }
    for (size_t k = 0, below = block_of(f, 0); k < ROW_LENGTH; k++) {
        size_t *above = calloc(1, 64 + 16 * k);

        if (above == NULL) {
            _exit(1);
        }
        above[k % 8] = below;
        below = (size_t)(uintptr_t)above;
    }
    be_ready(f);
}

static void what_goes_on_does_not_hold_up_the_others(void **state)
{
    struct fixture *f = *state;
    uint32_t alone;
    struct seep_held_answer *answer;

    begin(f, have_but_one);
    answer = ask(f);
    alone = answer->level_count;
    seep_held_close(answer);
    f->question.part_ends = two_parts;
    f->question.part_count = 2;
    answer = ask(f);

    assert_true(answer->level_count < alone);
    assert_int_equal(first_of(answer, 1)->end, SEEP_HELD_END_HELD);
    seep_held_close(answer);
}

/*
 * Tensors.
 */

/* What PyTorch's cache has of each is an object of a class; these are the
 * driver's, perhaps. */
static void have_blocks_without_a_class(struct fixture *f)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        uint64_t *block = calloc(1, 64);

        if (block == NULL) {
            _exit(1);
        }
        block[3] = NOWHERE + i * BLOCK_BYTES;
    }
    be_ready(f);
}

static void have_nothing(struct fixture *f)
{
    be_ready(f);
}

static struct seep_held_answer *ask_for_tensors(struct fixture *f,
                                                void (*make)(struct fixture *f))
{
    f->question.is_of_driver = true;
    f->question.is_cached = true;
    for (size_t i = 0; i < BLOCKS; i++) {
        f->asked[i].address = NOWHERE + i * BLOCK_BYTES;
    }
    begin(f, make);
    return ask(f);
}

static void a_tensor_that_blocks_without_a_class_have_is_not_lost(void **state)
{
    struct seep_held_answer *answer =
        ask_for_tensors(*state, have_blocks_without_a_class);
    const struct seep_held_group *group = &answer->groups[0];

    assert_int_equal(group->end, SEEP_HELD_END_UNROOTED);
    assert_int_equal(group->block_count, BLOCKS);
    assert_int_equal(group->step_count, 1);
    assert_int_equal(group->steps[0].kind, SEEP_HELD_KIND_BLOCK);
    assert_int_equal(group->steps[0].offset_bytes, 24);
    assert_true(answer->try_count > 1); /* it may have moved to a class */
    seep_held_close(answer);
}

static void a_tensor_that_nobody_has_is_lost(void **state)
{
    struct seep_held_answer *answer = ask_for_tensors(*state, have_nothing);

    assert_int_equal(answer->groups[0].end, SEEP_HELD_END_LOST);
    assert_int_equal(answer->groups[0].block_count, BLOCKS);
    seep_held_close(answer);
}

/*
 * What is below a thing that nobody has.
 */

/* Each block in a table of its own, that @table alone would have, and no frame
 * any more. */
static __attribute__((noinline)) void fill_tables(struct fixture *f)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        volatile uint64_t *volatile table = calloc(TABLE_WORDS, sizeof(*table));

        if (table == NULL) {
            _exit(1);
        }
        table[i] = block_of(f, i);
        table = NULL;
    }
}

static __attribute__((noinline)) void overwrite_frames(void)
{
    volatile uint64_t words[512];

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        words[i] = 0;
    }
}

static void have_lost_tables(struct fixture *f)
{
    fill_tables(f);
    overwrite_frames();
    be_ready(f);
}

#define ROOM_BYTES (BLOCKS * BLOCK_BYTES * 1024UL)

/* Of where the blocks are now other tests have left words in what is free. */
static void move_blocks(struct fixture *f)
{
    munmap((void *)(uintptr_t)~f->hidden, BLOCKS * BLOCK_BYTES);
    f->hidden = ~((uint64_t)(uintptr_t)take(ROOM_BYTES) + ROOM_BYTES / 2);
    for (size_t i = 0; i < BLOCKS; i++) {
        f->asked[i].address = block_of(f, i);
    }
}

#define FEW (BLOCKS / 2 - 1)

/* The blocks of the first of two call sites in one table, which nobody has, and
 * nobody has those of the other. */
static __attribute__((noinline)) void fill_one_table(struct fixture *f)
{
    volatile uint64_t *volatile table = calloc(TABLE_WORDS, sizeof(*table));

    if (table == NULL) {
        _exit(1);
    }
    for (size_t i = 0; i < FEW; i++) {
        table[i] = block_of(f, i);
    }
    table = NULL;
}

static void have_a_table_of_some(struct fixture *f)
{
    fill_one_table(f);
    overwrite_frames();
    be_ready(f);
}

/* A register has the table, though others are asked about in the same passes.
 */
static void one_top_above_all_of_a_call_site_is_not_lost(void **state)
{
    struct fixture *f = *state;
    static const size_t ends[] = {FEW, BLOCKS};
    struct seep_held_answer *answer;

    move_blocks(f);
    f->question.part_ends = ends;
    f->question.part_count = 2;
    begin(f, have_a_table_of_some);
    answer = ask(f);
    assert_int_equal(first_of(answer, 0)->block_count, FEW);
    assert_int_not_equal(first_of(answer, 0)->end, SEEP_HELD_END_LOST);
    assert_int_equal(first_of(answer, 1)->end, SEEP_HELD_END_LOST);
    seep_held_close(answer);
}

/* @return how many blocks are below something lost */
static size_t count_below_lost(struct seep_held_search *search)
{
    size_t count = 0;

    search->was_cut_short = false;
    search->was_late = false;
    assert_int_equal(seep_held_find_lost(search), 0);
    for (size_t i = 0; i < search->asked_count; i++) {
        count += search->nodes[search->asked[i]].is_below_lost;
    }
    return count;
}

static void what_a_late_pass_did_not_come_to_is_not_lost(void **state)
{
    struct fixture *f = *state;
    struct seep_held_source source = {.pid = 0};
    struct seep_held_search search = {.question = &f->question};
    struct seep_held_memory memory = {0};
    struct seep_store store = {0};

    move_blocks(f);
    begin(f, have_lost_tables);
    source.pid = f->child;
    assert_int_equal(seep_held_memory_open(&source, &memory), 0);
    search.memory = &memory;
    search.store = &store;
    assert_int_equal(seep_held_graph_init(&search), 0);
    assert_int_equal(seep_held_resolve_init(&search), 0);
    assert_int_equal(seep_held_search_run(&search), 0);

    seep_held_memory_allow(&memory, 1e-9);
    while (!seep_held_memory_is_late(&memory)) {
    }
    assert_int_equal(count_below_lost(&search), 0);
    assert_true(search.was_late);
    seep_held_memory_allow(&memory, 0);
    /* Where some of the tables are other tests had blocks, and left words. */
    assert_true(count_below_lost(&search) > 0);

    free(search.asked);
    free(search.part_ends);
    free(search.front);
    free(search.hops);
    seep_held_resolve_fini(&search);
    seep_held_graph_fini(&search);
    seep_held_scan_fini(&search.scan);
    seep_held_scan_fini(&search.side);
    free(search.dropped);
    seep_held_memory_close(&memory);
    seep_store_fini(&store);
}

/*
 * Heads of a chain.
 */

#define WORDS (SEEP_HELD_HITS_MOST + 1U) /* more than are kept */

/* @return passes for heads: none, if these are known to be too many */
static uint64_t follow(struct seep_held_search *search, uint32_t *front)
{
    const struct seep_held_repeat repeat = {.bytes = BLOCK_BYTES,
                                            .kind = SEEP_HELD_RAW};
    struct seep_held_level level = {.front = front, .count = 1};
    uint64_t before = search->memory->stats.scan_count;

    assert_int_equal(seep_held_follow_chain(search, &level, &repeat, 1), 0);
    return search->memory->stats.scan_count - before;
}

static void heads_that_are_too_many_are_not_looked_for_again(void **state)
{
    struct fixture *f = *state;
    const struct seep_held_source source = {.pid = getpid()};
    uint64_t *words = take(WORDS * sizeof(*words));
    struct seep_held_search search = {.question = &f->question};
    struct seep_held_block known[3];
    struct seep_held_memory memory = {0};
    struct seep_store store = {0};
    uint32_t *front = calloc(1, sizeof(*front));

    assert_non_null(front);
    for (size_t i = 0; i < WORDS; i++) {
        words[i] = block_of(f, 0);
    }
    /* Each would be one: it points to something like the chain. */
    known[0] = (struct seep_held_block){block_of(f, 0), BLOCK_BYTES};
    known[1] =
        (struct seep_held_block){(uintptr_t)words, WORDS * sizeof(*words)};
    if (known[0].address > known[1].address) {
        known[2] = known[0];
        known[0] = known[1];
        known[1] = known[2];
    }
    f->question.known = known;
    f->question.known_count = 2;
    assert_int_equal(seep_held_memory_open(&source, &memory), 0);
    search.memory = &memory;
    search.store = &store;
    assert_int_equal(seep_held_graph_init(&search), 0);
    assert_int_equal(seep_held_resolve_init(&search), 0);
    *front = seep_held_block_node(&search, block_of(f, 0), block_of(f, 1),
                                  SEEP_HELD_KNOWN);
    search.nodes[*front].level = 1;

    assert_int_equal(follow(&search, front), 1);
    assert_true(search.has_many_heads);
    assert_int_equal(follow(&search, front), 0);
    assert_int_equal(search.link_count, 0);

    free(front);
    free(search.hops);
    seep_held_scan_fini(&search.scan);
    seep_held_scan_fini(&search.side);
    seep_held_resolve_fini(&search);
    seep_held_graph_fini(&search);
    seep_held_memory_close(&memory);
    seep_store_fini(&store);
    munmap(words, WORDS * sizeof(*words));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_search_that_went_too_deep_is_made_again),
        TEST(what_is_frozen_is_read_when_it_has_stopped),
        TEST(what_is_frozen_has_stopped_when_each_thread_has),
        TEST(who_does_not_write_the_recording_is_not_stopped),
        TEST(who_has_all_is_told_and_not_who_has_words_of_some),
        TEST(who_has_no_name_explains_nothing),
        TEST(of_two_tables_each_has_its_own),
        TEST(of_two_call_sites_each_has_its_holder),
        TEST(a_call_site_whose_blocks_are_gone_has_no_answer),
        TEST(what_goes_on_does_not_hold_up_the_others),
        TEST(a_tensor_that_blocks_without_a_class_have_is_not_lost),
        TEST(a_tensor_that_nobody_has_is_lost),
        TEST(one_top_above_all_of_a_call_site_is_not_lost),
        TEST(what_a_late_pass_did_not_come_to_is_not_lost),
        TEST(heads_that_are_too_many_are_not_looked_for_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
