/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who held what: kept beside a recording, read again, and said in one line. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held/kept.h"
#include "seep_test.h"
#include "words/held.h"

#define HEADER "{\"schema\":\"seep-held-kept/1\"}\n"
#define MUTANTS 4000

static const struct seep_held_step steps[] = {
    {.edge = SEEP_HELD_EDGE_ITEM,
     .edge_name = "",
     .edge_function = "",
     .kind = SEEP_HELD_KIND_OBJECT,
     .name = "list",
     .function = "",
     .file = "",
     .address = 0x7f0010,
     .bytes = 56,
     .items = 35411,
     .has_items = true},
    {.edge = SEEP_HELD_EDGE_KEY,
     .edge_name = "secret of a customer",
     .edge_function = "",
     .offset_bytes = -8,
     .kind = SEEP_HELD_KIND_OBJECT,
     .name = "__main__.Model",
     .function = "",
     .file = ""},
    {.edge = SEEP_HELD_EDGE_ATTRIBUTE,
     .edge_name = "audit",
     .edge_function = "",
     .kind = SEEP_HELD_KIND_CLASS,
     .name = "__main__.Handler",
     .function = "",
     .file = "/a \"b\"\n\x1b\xff.py"},
};

static struct seep_held_group group = {
    .end = SEEP_HELD_END_HELD,
    .block_count = 60,
    .steps = steps,
    .step_count = 3,
    .holder = 0,
    .shares_edge = true,
    .is_object = true,
};
static struct seep_held_answer answer = {
    .asked_count = 64,
    .groups = &group,
    .group_count = 1,
    .level_count = 7,
    .level_bytes = 1000,
    .elapsed_s = 0.5,
    .cpu_s = 0.25,
};
static struct seep_held_kept kept = {
    .site_id = "5a08e463",
    .stack = 17,
    .asked_s = 34.5,
    .live_bytes = 1 << 20,
    .answer = &answer,
};

/* The text of @entries. To be freed. */
static char *print(const struct seep_held_kept *entries, size_t count)
{
    const struct seep_held_book book = {entries, count, NULL};
    size_t bytes;
    char *text;
    FILE *file = open_memstream(&text, &bytes);

    assert_int_equal(seep_held_book_print(file, "", &book), 0);
    assert_int_equal(fclose(file), 0);
    return text;
}

static int parse(const char *text, struct seep_store *store,
                 struct seep_held_book *ret_book)
{
    return seep_held_book_parse(text, strlen(text), "/nowhere", store,
                                ret_book);
}

static void what_was_kept_is_read(void **state)
{
    struct seep_store store = {NULL};
    struct seep_held_book book;
    char *text = print(&kept, 1);

    (void)state;
    assert_int_equal(parse(text, &store, &book), 0);

    const struct seep_held_kept *read = seep_held_book_find(&book, "5a08e463");
    assert_non_null(read);
    assert_null(seep_held_book_find(&book, "5a08"));
    assert_null(seep_held_book_find(&book, ""));
    const uint32_t stacks[] = {3, 17};
    assert_ptr_equal(seep_held_book_find_stack(&book, stacks, 2), read);
    assert_null(seep_held_book_find_stack(&book, stacks, 1));
    assert_true(read->asked_s == 34.5);
    assert_int_equal(read->live_bytes, 1 << 20);
    assert_int_equal(read->outcome, SEEP_HELD_OUTCOME_ANSWERED);
    assert_int_equal(read->answer->asked_count, 64);
    assert_int_equal(read->answer->level_count, 7);
    assert_true(read->answer->cpu_s == 0.25);
    assert_int_equal(read->answer->group_count, 1);
    const struct seep_held_group *first = &read->answer->groups[0];
    assert_int_equal(first->end, SEEP_HELD_END_HELD);
    assert_int_equal(first->block_count, 60);
    assert_int_equal(first->holder, 0);
    assert_true(first->shares_edge);
    assert_true(first->is_object);
    assert_int_equal(first->step_count, 3);
    assert_int_equal(first->steps[0].items, 35411);
    assert_true(first->steps[0].has_items);
    assert_false(first->steps[1].has_items);
    assert_int_equal(first->steps[0].address, 0x7f0010);
    assert_int_equal(first->steps[1].offset_bytes, -8);
    assert_string_equal(first->steps[2].edge_name, "audit");
    assert_string_equal(first->steps[2].file, "/a \"b\"\n\x1b?.py");
    free(text);
    seep_store_fini(&store);
}

static void a_key_of_data_is_not_kept(void **state)
{
    struct seep_store store = {NULL};
    struct seep_held_book book;
    char *text = print(&kept, 1);

    (void)state;
    assert_null(strstr(text, "secret"));
    free(text);
    assert_int_equal(
        parse(HEADER
              "{\"site\":\"a\",\"outcome\":\"answered\",\"asked\":8,\"groups\":"
              "[{\"end\":\"held\",\"blocks\":8,\"steps\":[{\"by\":\"key\","
              "\"kind\":\"object\",\"by_name\":\"secret\"}]}]}\n",
              &store, &book),
        0);
    assert_string_equal(book.entries[0].answer->groups[0].steps[0].edge_name,
                        "");
    seep_store_fini(&store);
}

#define MANY SEEP_HELD_KEPT_MOST
#define CUT_BYTES 4096U

/* In a child, which the kernel kills where the file becomes too large.
 * @return how it ended */
static int write_and_be_killed(const char *path, size_t cut_bytes)
{
    struct seep_held_kept many[MANY];
    const struct seep_held_book book = {many, MANY, NULL};
    const struct rlimit limit = {cut_bytes, cut_bytes};
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < MANY; i++) {
            many[i] = kept;
        }
        signal(SIGXFSZ, SIG_DFL);
        _exit(setrlimit(RLIMIT_FSIZE, &limit) == 0 &&
                      seep_held_book_write(path, &book) == 0
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void who_is_killed_while_it_writes_leaves_what_was_there(void **state)
{
    const struct seep_held_book one = {&kept, 1, NULL};
    struct seep_store store = {NULL};
    struct seep_held_book book;
    char folder[] = "/tmp/seep-kept-XXXXXX";
    char path[sizeof(folder) + 8];
    char command[sizeof(folder) + 8];
    int status;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/a.seep", folder);
    snprintf(command, sizeof(command), "rm -r %s", folder);

    status = write_and_be_killed(path, CUT_BYTES);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGXFSZ);
    assert_int_equal(seep_held_book_read(path, &store, &book), -ENOENT);

    assert_int_equal(seep_held_book_write(path, &one), 0);
    assert_true(WIFSIGNALED(write_and_be_killed(path, CUT_BYTES)));
    assert_int_equal(seep_held_book_read(path, &store, &book), 0);
    assert_int_equal(book.count, 1);

    assert_int_equal(write_and_be_killed(path, (size_t)1 << 20), 0);
    assert_int_equal(seep_held_book_read(path, &store, &book), 0);
    assert_int_equal(book.count, MANY);
    seep_store_fini(&store);
    assert_int_equal(system(command), 0);
}

static void the_last_answer_of_a_site_stays_and_the_oldest_goes(void **state)
{
    struct seep_store store = {NULL};
    struct seep_held_book book = {NULL, 0, NULL};

    (void)state;
    for (unsigned i = 0; i < SEEP_HELD_KEPT_MOST + 2; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%u", i);
        struct seep_held_kept one = kept;
        one.site_id = seep_store_text(&store, name);
        assert_int_equal(seep_held_book_put(&book, &one, &store), 0);
        one.asked_s = 100 + i;
        assert_int_equal(seep_held_book_put(&book, &one, &store), 0);
    }

    assert_int_equal(book.count, SEEP_HELD_KEPT_MOST);
    assert_null(seep_held_book_find(&book, "1"));
    assert_true(seep_held_book_find(&book, "2")->asked_s == 102);
    seep_store_fini(&store);
}

static const struct seep_held_pin_site pin_sites[] = {
    {"5a08e463", "serve.py:31 handle", 300, 19660800},
    {"77aa0012", "\x1b\xff", 20, 1024},
};
static const struct seep_held_kept_pins pins = {
    .asked_s = 51.5,
    .free_bytes = 30000000,
    .piece_count = 400,
    .piece_bytes = 26214400,
    .pin_count = 368,
    .pin_bytes = 10240,
    .apart_bytes = 24000000,
    .known_count = 330,
    .known_apart_bytes = 20000000,
    .sites = pin_sites,
    .site_count = 2,
    .answer = &answer,
};

static void what_keeps_free_memory_apart_is_read(void **state)
{
    const struct seep_held_book one = {&kept, 1, &pins};
    struct seep_store store = {NULL};
    struct seep_held_book book;
    size_t bytes;
    char *text;
    FILE *file = open_memstream(&text, &bytes);

    (void)state;
    assert_int_equal(seep_held_book_print(file, "", &one), 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(parse(text, &store, &book), 0);
    assert_int_equal(book.count, 1);
    assert_non_null(book.pins);
    assert_true(book.pins->asked_s == 51.5);
    assert_int_equal(book.pins->free_bytes, 30000000);
    assert_int_equal(book.pins->piece_count, 400);
    assert_int_equal(book.pins->piece_bytes, 26214400);
    assert_int_equal(book.pins->pin_count, 368);
    assert_int_equal(book.pins->pin_bytes, 10240);
    assert_int_equal(book.pins->known_count, 330);
    assert_true(book.pins->apart_bytes == 24000000);
    assert_true(book.pins->known_apart_bytes == 20000000);
    assert_int_equal(book.pins->site_count, 2);
    assert_string_equal(book.pins->sites[0].where, "serve.py:31 handle");
    assert_int_equal(book.pins->sites[0].pin_count, 300);
    assert_int_equal(book.pins->answer->asked_count, 64);
    free(text);
    seep_store_fini(&store);
}

#define APART "\"apart_bytes\":1,\"known_apart_bytes\":0"
#define ENTRY(more) \
    "{\"site\":\"a\",\"outcome\":\"answered\",\"asked\":8," more "}\n"
#define GROUP(more) ENTRY("\"groups\":[{\"end\":\"held\"," more "}]")
#define STEP(more)                                                            \
    GROUP("\"blocks\":8,\"steps\":[{\"by\":\"item\",\"kind\":\"object\"" more \
          "}]")

static void assert_refused(const char *lines)
{
    struct seep_store store = {NULL};
    struct seep_held_book book = {NULL, 77, NULL};
    char text[8192];

    snprintf(text, sizeof(text), HEADER "%s", lines);
    assert_int_equal(parse(text, &store, &book), -EBADMSG);
    assert_int_equal(book.count, 77);
    seep_store_fini(&store);
}

static void what_cannot_be_is_refused(void **state)
{
    struct seep_store store = {NULL};
    struct seep_held_book book;

    (void)state;
    assert_int_equal(parse(HEADER STEP(""), &store, &book), 0);
    assert_int_equal(
        parse("{\"schema\":\"seep-held-kept/2\"}\n", &store, &book), -EPROTO);
    seep_store_fini(&store);
    assert_refused("[]\n");
    assert_refused("{\"pins\":[]}\n");
    assert_refused("{\"pins\":1," APART "}\n");
    assert_refused("{\"pins\":[]," APART ",\"known_count\":1}\n");
    assert_refused("{\"pins\":[{\"site\":\"a\",\"where\":\"b\",\"blocks\":1,"
                   "\"apart_bytes\":1}]," APART "}\n");
    assert_refused("{\"pins\":[]," APART "}\n{\"pins\":[]," APART "}\n");
    assert_refused("{\"site\":\"a\"}\n");
    assert_refused("{\"site\":1,\"outcome\":\"failed\"}\n");
    assert_refused("{\"site\":\"a\",\"outcome\":\"unheard-of\"}\n");
    assert_refused("{\"site\":\"a\",\"outcome\":\"failed\",\"asked_s\":-1}\n");
    assert_refused(ENTRY("\"levels\":1"));
    assert_refused(ENTRY("\"groups\":[]"));
    assert_refused(ENTRY("\"groups\":[1]"));
    assert_refused(ENTRY("\"groups\":{}"));
    assert_refused(GROUP("\"blocks\":9,\"steps\":[]"));
    assert_refused(GROUP("\"blocks\":-1,\"steps\":[]"));
    assert_refused(GROUP("\"blocks\":8"));
    assert_refused(GROUP("\"blocks\":8,\"steps\":[],\"holder_step\":0"));
    assert_refused(GROUP("\"blocks\":8,\"steps\":[],\"holder_step\":-1"));
    assert_refused(GROUP("\"blocks\":8,\"steps\":[],\"calls\":9"));
    assert_refused(GROUP("\"blocks\":8,\"steps\":[],\"calls\":-1"));
    assert_refused(STEP(",\"items\":-1"));
    assert_refused(STEP(",\"bytes\":\"1\""));
    assert_refused(STEP(",\"name\":1"));
    assert_refused(GROUP("\"blocks\":8,\"steps\":[{\"by\":\"item\"}]"));
}

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (*seed >> 33) % limit;
}

/* Whatever is read keeps the promises of held.h, and has words. */
static void assert_sane(const struct seep_held_book *book)
{
    assert_true(book->count <= SEEP_HELD_KEPT_MOST);
    for (size_t i = 0; i < book->count; i++) {
        const struct seep_held_answer *read = book->entries[i].answer;
        size_t blocks = 0;

        free(seep_words_held_line(&book->entries[i], 1));
        for (size_t j = 0; read != NULL && j < read->group_count; j++) {
            const struct seep_held_group *one = &read->groups[j];

            assert_true(one->holder <= one->step_count);
            blocks += one->block_count;
            free(seep_words_held(one));
            free(seep_words_held_chain(one));
            seep_words_held_remedy(one);
        }
        assert_true(read == NULL || blocks <= read->asked_count);
    }
}

static void damage_is_refused_or_harmless(void **state)
{
    static const char pieces[] = "0123456789-e.,:{}[]\"\n tnul\\u\xff";
    char *whole = print(&kept, 1);
    size_t length = strlen(whole);
    uint64_t seed = 20261126;

    (void)state;
    for (int i = 0; i < MUTANTS; i++) {
        struct seep_store store = {NULL};
        struct seep_held_book book;
        char *text = strdup(whole);
        uint64_t count = 1 + random_below(&seed, 3);

        while (count-- > 0) {
            text[random_below(&seed, length)] =
                pieces[random_below(&seed, sizeof(pieces) - 1)];
        }
        if (seep_held_book_parse(text, length, "/nowhere", &store, &book) ==
            0) {
            assert_sane(&book);
        }
        free(text);
        seep_store_fini(&store);
    }
    free(whole);
}

static void assert_line(uint64_t live_bytes, const char *wanted)
{
    char *line = seep_words_held_line(&kept, live_bytes);

    if (wanted == NULL) {
        assert_null(line);
    } else {
        assert_string_equal(line, wanted);
    }
    free(line);
}

static void one_line_says_who_holds_it(void **state)
{
    const struct seep_held_group all = group;

    (void)state;
    assert_line(1 << 20, "Handler.audit[...], a list of 35,411 items (94 %)");
    assert_line(2 << 20, "Handler.audit[...], a list of 35,411 items (94 %), "
                         "when it kept 1 MiB");
    group.block_count = 20;
    assert_line(1 << 20, "not clear; most of all by Handler.audit[...], a list "
                         "of 35,411 items (31 %)");
    answer.asked_count = 7;
    group.block_count = 7;
    assert_line(1 << 20, NULL);
    answer.asked_count = 64;
    group.block_count = 64;
    group.end = SEEP_HELD_END_LOST;
    group.step_count = 0;
    assert_line(1 << 20, "lost or hidden: no pointer to any of 64 blocks");
    group.end = SEEP_HELD_END_MOVED;
    group.step_count = 0;
    assert_line(1 << 20, "not known: what points to it had moved before it was "
                         "read (100 %)");
    group = all;
    kept.answer = NULL;
    kept.outcome = SEEP_HELD_OUTCOME_NOT_PERMITTED;
    assert_line(1 << 20,
                "not known: its memory may not be read by this user; ask as "
                "the same user, by `seep run`, or with CAP_SYS_PTRACE");
    kept.outcome = SEEP_HELD_OUTCOME_NO_ROOM;
    assert_line(1 << 20, "not known: its cgroup was too full to look");
    kept.outcome = SEEP_HELD_OUTCOME_FAILED;
    assert_line(1 << 20, NULL);
    kept.outcome = SEEP_HELD_OUTCOME_ANSWERED;
    kept.answer = &answer;
}

static const struct seep_held_step plain = {.edge_name = "",
                                            .edge_function = "",
                                            .name = "",
                                            .function = "",
                                            .file = ""};

static void assert_runs(enum seep_held_kind root, const char *wanted)
{
    struct seep_held_step chain[] = {plain, plain, plain, plain};
    struct seep_held_group one = {.end = SEEP_HELD_END_HELD,
                                  .block_count = 8,
                                  .steps = chain,
                                  .step_count = 4};
    char *holder;

    chain[0].edge = SEEP_HELD_EDGE_ITEM;
    chain[0].kind = SEEP_HELD_KIND_OBJECT;
    chain[1].edge = SEEP_HELD_EDGE_LOCAL;
    chain[1].edge_name = "kept";
    chain[1].edge_function = "serve";
    chain[1].kind = SEEP_HELD_KIND_OBJECT;
    chain[1].name = "frame";
    chain[2].edge = SEEP_HELD_EDGE_OFFSET;
    chain[2].kind = SEEP_HELD_KIND_BLOCK;
    chain[3].kind = root;
    chain[3].name = "cache";
    holder = seep_words_holder(&one);
    assert_string_equal(holder, wanted);
    free(holder);
}

static void a_function_that_runs_is_named_whoever_has_its_frame(void **state)
{
    (void)state;
    assert_runs(SEEP_HELD_KIND_STACK, "kept of running serve()");
    assert_runs(SEEP_HELD_KIND_THREAD_LOCAL, "kept of running serve()");
    assert_runs(SEEP_HELD_KIND_GLOBAL, "cache.kept of serve()");
}

/* What is said of a chain of one step that is had by @edge, of @name. */
static const char *remedy_of(enum seep_held_end end, enum seep_held_kind kind,
                             const char *name, const char *attribute)
{
    struct seep_held_step step = plain;
    struct seep_held_group one = {
        .end = end, .block_count = 8, .steps = &step, .step_count = 1};

    step.kind = kind;
    step.name = name;
    step.edge =
        *attribute != '\0' ? SEEP_HELD_EDGE_ATTRIBUTE : SEEP_HELD_EDGE_ITEM;
    step.edge_name = attribute;
    return seep_words_held_remedy(&one);
}

static void each_kind_of_holder_has_its_remedy(void **state)
{
    static const struct {
        enum seep_held_end end;
        enum seep_held_kind kind;
        const char *name;
        const char *attribute;
        const char *words; /* that the remedy has; "": there is none */
    } cases[] = {
        {SEEP_HELD_END_LOST, SEEP_HELD_KIND_BLOCK, "", "", "missing free()"},
        {SEEP_HELD_END_CYCLE, SEEP_HELD_KIND_OBJECT, "list", "", "weakref"},
        {SEEP_HELD_END_UNROOTED, SEEP_HELD_KIND_OBJECT, "list", "", "--freeze"},
        {SEEP_HELD_END_MOVED, SEEP_HELD_KIND_BLOCK, "", "", "--freeze"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "traceback", "",
         "with_traceback(None)"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_CXX_OBJECT,
         "torch::autograd::AccumulateGrad", "", "detach()"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_CXX_OBJECT,
         "torch::autograd::generated::AddBackward0", "", "detach()"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "MulBackward0", "",
         "detach()"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT,
         "functools._lru_cache_wrapper", "", "maxsize"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "_asyncio.Task", "",
         "await or cancel"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "logging.LogRecord", "",
         "removeHandler()"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "queue.Queue", "",
         "maxsize"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "function", "__defaults__",
         "default argument"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "function",
         "__kwdefaults__", "default argument"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "cell", "", "closure"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "generator", "",
         "close() it"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "list", "",
         "deque(maxlen=N)"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "dict", "", "the dict"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "collections.defaultdict",
         "", "the dict"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "collections.deque", "",
         "no maxlen"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "set", "", "the set"},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_OBJECT, "__main__.Model", "", ""},
        {SEEP_HELD_END_HELD, SEEP_HELD_KIND_GLOBAL, "list", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *words = remedy_of(cases[i].end, cases[i].kind,
                                      cases[i].name, cases[i].attribute);

        assert_non_null(strstr(words, cases[i].words));
        assert_int_equal(*words == '\0', *cases[i].words == '\0');
    }
}

/* A dict that a closure has is what grows; a closure for each block is what is
 * registered, and not given back. */
static void a_remedy_is_for_what_has_the_blocks_or_lies_below_it(void **state)
{
    struct seep_held_step way[3] = {plain, plain, plain};
    struct seep_held_group one = {.end = SEEP_HELD_END_HELD,
                                  .block_count = 8,
                                  .steps = way,
                                  .step_count = 3,
                                  .holder = 1};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        way[i].kind = SEEP_HELD_KIND_OBJECT;
    }
    way[0].name = "list";
    way[1].name = "collections.defaultdict";
    way[2].name = "cell";
    assert_non_null(strstr(seep_words_held_remedy(&one), "the dict only"));
    way[0].name = "cell";
    way[2].name = "__main__.Bus";
    assert_non_null(strstr(seep_words_held_remedy(&one), "closure"));
    way[0].name = "tuple"; /* a cache is a dict of the wrapper */
    way[1].name = "dict";
    way[2].name = "functools._lru_cache_wrapper";
    assert_non_null(strstr(seep_words_held_remedy(&one), "lru_cache"));
}

static void a_variable_is_that_of_the_function_that_runs(void **state)
{
    struct seep_held_step way[3] = {plain, plain, plain};
    const struct seep_held_group one = {.end = SEEP_HELD_END_HELD,
                                        .block_count = 8,
                                        .steps = way,
                                        .step_count = 3};
    char *holder;

    (void)state;
    way[0].kind = SEEP_HELD_KIND_OBJECT;
    way[0].edge = SEEP_HELD_EDGE_ITEM;
    way[0].name = "list";
    way[1].kind = SEEP_HELD_KIND_OBJECT;
    way[1].edge = SEEP_HELD_EDGE_LOCAL;
    way[1].edge_name = "kept";
    way[1].edge_function = "serve";
    way[1].name = "frame";
    way[2].kind = SEEP_HELD_KIND_STACK;
    way[2].name = "python3";
    holder = seep_words_holder(&one);
    assert_string_equal(holder, "kept of running serve()");
    free(holder);
    way[2].kind = SEEP_HELD_KIND_MODULE;
    way[2].name = "server";
    holder = seep_words_holder(&one);
    assert_string_equal(holder, "server.kept of serve()");
    free(holder);
}

static void a_lost_object_of_python_was_not_given_back(void **state)
{
    struct seep_held_step step = plain;
    struct seep_held_group one = {.end = SEEP_HELD_END_LOST,
                                  .is_object = true,
                                  .block_count = 8,
                                  .steps = &step,
                                  .step_count = 1};
    char *words;

    (void)state;
    step.kind = SEEP_HELD_KIND_OBJECT;
    step.edge = SEEP_HELD_EDGE_DATA;
    step.name = "numpy.ndarray";
    words = seep_words_held(&one);
    assert_string_equal(words, "something lost or hidden, with no pointer to "
                               "it: data of numpy.ndarray");
    free(words);
    assert_non_null(strstr(seep_words_held_remedy(&one), "Py_DECREF"));
    one.step_count = 0;
    words = seep_words_held(&one);
    assert_string_equal(words,
                        "nothing that was found: lost, or its pointer is "
                        "hidden");
    free(words);
    assert_non_null(strstr(seep_words_held_remedy(&one), "Py_DECREF"));
    one.is_object = false;
    assert_non_null(strstr(seep_words_held_remedy(&one), "missing free()"));
}

static void what_is_lost_in_several_ways_is_lost(void **state)
{
    struct seep_held_group ways[] = {
        {.end = SEEP_HELD_END_LOST, .block_count = 4},
        {.end = SEEP_HELD_END_HELD, .block_count = 3},
        {.end = SEEP_HELD_END_LOST, .block_count = 3},
    };
    const struct seep_held_answer one = {
        .asked_count = 10, .groups = ways, .group_count = 3};

    (void)state;
    assert_int_equal(lround(10 * seep_words_held_share(&one)), 7);
    ways[0].end = SEEP_HELD_END_CYCLE;
    assert_int_equal(lround(10 * seep_words_held_share(&one)), 4);
}

/* What "all of it at" is said of has a holder, whatever its class. */
static void a_row_that_the_verdict_names_is_asked_about(void **state)
{
    struct seep_report_site site = {.id = "a1", .class = SEEP_CLASS_LEAK};
    struct seep_report report = {.sites = &site, .site_count = 1};

    (void)state;
    assert_true(seep_words_held_is_wanted(&report, &site));
    site.class = SEEP_CLASS_INSUFFICIENT;
    assert_false(seep_words_held_is_wanted(&report, &site));
    strcpy(report.verdict.first_id, "a1");
    assert_true(seep_words_held_is_wanted(&report, &site));
    site.suppressed_by = "^load";
    assert_false(seep_words_held_is_wanted(&report, &site));
    site.suppressed_by = NULL;
    site.class = SEEP_CLASS_STEP; /* of what it allocated before */
    assert_false(seep_words_held_is_wanted(&report, &site));
    site.class = SEEP_CLASS_WARMING;
    strcpy(report.verdict.first_id, "b2");
    assert_false(seep_words_held_is_wanted(&report, &site));
    strcpy(report.verdict.open_id, "a1");
    assert_true(seep_words_held_is_wanted(&report, &site));
}

/* What is kept, read again. */
static void read_again(const struct seep_held_group *one,
                       struct seep_store *store, struct seep_held_kept *ret)
{
    const struct seep_held_answer asked = {
        .asked_count = 64, .groups = one, .group_count = 1};
    const struct seep_held_kept only = {
        .site_id = "a", .live_bytes = 9, .answer = &asked};
    struct seep_held_book book;
    char *text = print(&only, 1);

    assert_int_equal(parse(text, store, &book), 0);
    assert_int_equal(book.count, 1);
    *ret = book.entries[0];
    free(text);
}

static void calls_that_have_not_returned_are_counted(void **state)
{
    struct seep_held_step frame = plain;
    struct seep_held_group one = {.end = SEEP_HELD_END_HELD,
                                  .block_count = 64,
                                  .steps = &frame,
                                  .step_count = 1,
                                  .call_count = 64};
    struct seep_store store = {NULL};
    struct seep_held_kept read;
    char *text;

    (void)state;
    frame.kind = SEEP_HELD_KIND_FRAME;
    frame.name = "data";
    frame.function = "handle";
    read_again(&one, &store, &read);
    text = seep_words_held_line(&read, 9);
    assert_string_equal(text, "data of running handle(), in 64 calls or more "
                              "that have not returned (100 %)");
    free(text);
    text = seep_words_held_advice(&read);
    assert_string_equal(text, "data of running handle(): each call keeps what "
                              "it has until it returns: see what they wait "
                              "for, and give that a timeout");
    free(text);
    one.call_count = 1;
    read_again(&one, &store, &read);
    text = seep_words_held_line(&read, 9);
    assert_string_equal(text, "data of running handle() (100 %)");
    free(text);
    seep_store_fini(&store);
}

static void what_has_no_name_is_not_to_be_looked_for(void **state)
{
    struct seep_held_step global = plain;
    struct seep_held_group one = {.end = SEEP_HELD_END_HELD,
                                  .block_count = 64,
                                  .steps = &global,
                                  .step_count = 1};
    struct seep_held_answer asked = {
        .asked_count = 64, .groups = &one, .group_count = 1};
    const struct seep_held_kept only = {
        .site_id = "a", .live_bytes = 9, .answer = &asked};
    char *text;

    (void)state;
    global.kind = SEEP_HELD_KIND_GLOBAL;
    global.file = "libx.so";
    text = seep_words_held_line(&only, 9);
    assert_string_equal(text, "a global without a name of libx.so (100 %)");
    free(text);
    text = seep_words_held_chain(&one);
    assert_string_equal(text, "a global without a name of libx.so");
    free(text);
    assert_null(seep_words_held_advice(&only));
    global.name = "table";
    text = seep_words_held_advice(&only);
    assert_string_equal(text, "find why table keeps it");
    free(text);
    /* that it may have moved is not known of who was not looked for enough */
    one.end = SEEP_HELD_END_UNROOTED;
    text = seep_words_held_advice(&only);
    assert_non_null(strstr(text, "--freeze"));
    free(text);
    asked.was_late = true;
    text = seep_words_held_advice(&only);
    assert_null(strstr(text, "--freeze"));
    assert_non_null(strstr(text, "`seep held PID`, which takes longer"));
    free(text);
    text = seep_words_held_line(&only, 9);
    assert_string_equal(text, "not known: the time for the search was over; so "
                              "far it is global table of libx.so");
    free(text);
}

/* gc has no part in what is no object of Python. */
static void a_cycle_is_mended_as_what_it_is_made_of(void **state)
{
    struct seep_held_step step = plain;
    struct seep_held_group one = {.end = SEEP_HELD_END_CYCLE,
                                  .block_count = 8,
                                  .steps = &step,
                                  .step_count = 1};

    (void)state;
    step.kind = SEEP_HELD_KIND_OBJECT;
    assert_non_null(strstr(seep_words_held_remedy(&one), "gc.collect() frees "
                                                         "it only where gc "
                                                         "sees all of it"));
    step.kind = SEEP_HELD_KIND_BLOCK;
    assert_null(strstr(seep_words_held_remedy(&one), "gc"));
    assert_non_null(strstr(seep_words_held_remedy(&one), "std::weak_ptr"));
}

static void what_is_not_clear_has_no_advice(void **state)
{
    char *advice = seep_words_held_advice(&kept);

    (void)state;
    assert_string_equal(advice,
                        "Handler.audit[...]: the list only grows: bound it "
                        "(collections.deque(maxlen=N)) or clear it");
    free(advice);
    group.block_count = 20;
    assert_null(seep_words_held_advice(&kept));
    group.block_count = 60;
    assert_null(seep_words_held_advice(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_kept_is_read),
        cmocka_unit_test(what_keeps_free_memory_apart_is_read),
        cmocka_unit_test(a_key_of_data_is_not_kept),
        cmocka_unit_test(who_is_killed_while_it_writes_leaves_what_was_there),
        cmocka_unit_test(the_last_answer_of_a_site_stays_and_the_oldest_goes),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(damage_is_refused_or_harmless),
        cmocka_unit_test(one_line_says_who_holds_it),
        cmocka_unit_test(a_function_that_runs_is_named_whoever_has_its_frame),
        cmocka_unit_test(a_row_that_the_verdict_names_is_asked_about),
        cmocka_unit_test(a_cycle_is_mended_as_what_it_is_made_of),
        cmocka_unit_test(each_kind_of_holder_has_its_remedy),
        cmocka_unit_test(a_remedy_is_for_what_has_the_blocks_or_lies_below_it),
        cmocka_unit_test(a_variable_is_that_of_the_function_that_runs),
        cmocka_unit_test(a_lost_object_of_python_was_not_given_back),
        cmocka_unit_test(what_is_lost_in_several_ways_is_lost),
        cmocka_unit_test(calls_that_have_not_returned_are_counted),
        cmocka_unit_test(what_has_no_name_is_not_to_be_looked_for),
        cmocka_unit_test(what_is_not_clear_has_no_advice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
