/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The installed catalogue against stacks: argv[1] is patterns.json, argv[2]
 * pattern_stacks.json. Every pattern has stacks that it must win, among all,
 * and near misses that it must not.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "reader/compare/catalogue.h"
#include "seep_test.h"

#define FRAME_LIMIT 32
#define MODULE_LIMIT 8
#define PATTERN_MINIMUM 30

static struct seep_catalogue *catalogue;
static json_t *patterns;
static json_t *stacks;

static const char *text_of(const json_t *object, const char *key,
                           const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : otherwise;
}

/* Where @name stands in @names, which must have it. */
static int place_of(const char *name, const char *const *names, int count)
{
    int i = 0;

    while (i < count && strcmp(names[i], name) != 0) {
        i++;
    }
    if (i == count) {
        fail_msg("there is no %s", name);
    }
    return i;
}

static enum seep_class class_of(const json_t *stack)
{
    static const char *const names[] = {
#define NAME(symbol, name) name,
        SEEP_CLASSES(NAME)
#undef NAME
    };

    return (enum seep_class)place_of(text_of(stack, "class", "leak"), names,
                                     SEEP_CLASS_COUNT);
}

static enum seep_space space_of(const json_t *stack)
{
    static const char *const names[] = {
#define NAME(symbol, value, name) [value] = name,
        SEEP_SPACES(NAME)
#undef NAME
    };

    return (enum seep_space)place_of(text_of(stack, "space", "heap"), names,
                                     SEEP_SPACE_COUNT);
}

/* [module, function] of a native frame; a file and a line make it Python's. */
static size_t fill_frames(const json_t *list,
                          struct seep_report_frame frames[FRAME_LIMIT],
                          const struct seep_report_frame *ret_list[FRAME_LIMIT])
{
    size_t count = json_array_size(list);

    assert_true(count <= FRAME_LIMIT);
    for (size_t i = 0; i < count; i++) {
        const json_t *frame = json_array_get(list, i);
        const char *file = json_string_value(json_array_get(frame, 2));

        ret_list[i] = &frames[i];
        frames[i] = (struct seep_report_frame){
            .module = json_string_value(json_array_get(frame, 0)),
            .function = json_string_value(json_array_get(frame, 1)),
            .file = file != NULL ? file : "",
            .build_id = "",
            .python = file != NULL,
        };
        assert_non_null(frames[i].module);
        assert_non_null(frames[i].function);
    }
    return count;
}

static const struct seep_pattern *find_site(const json_t *stack)
{
    struct seep_report_frame frames[FRAME_LIMIT];
    const struct seep_report_frame *list[FRAME_LIMIT];
    json_int_t block_bytes =
        json_integer_value(json_object_get(stack, "block_bytes"));
    struct seep_report_site site = {
        .space = space_of(stack),
        .class = class_of(stack),
        .allocated_bytes = (uint64_t)(block_bytes > 0 ? block_bytes : 64) * 10,
        .allocated_count = 10,
        .where = "",
        .frames = list,
        .frame_count =
            fill_frames(json_object_get(stack, "frames"), frames, list),
    };

    return seep_catalogue_find(catalogue, &site);
}

static const struct seep_pattern *find_process(const json_t *process)
{
    static const char *const verdicts[] = {
#define NAME(symbol, name) name,
        SEEP_VERDICTS(NAME)
#undef NAME
    };
    static const char *const allocators[] = {"unknown", "glibc", "jemalloc",
                                             "tcmalloc", "mimalloc"};
    const char *modules[MODULE_LIMIT];
    const json_t *list = json_object_get(process, "modules");
    struct seep_report report = {
        .executable = text_of(process, "executable", ""),
        .modules = modules,
        .module_count = json_array_size(list),
    };

    assert_true(report.module_count <= MODULE_LIMIT);
    report.verdict.class = (enum seep_verdict_class)place_of(
        text_of(process, "verdict", ""), verdicts, SEEP_VERDICT_COUNT);
    report.memory.allocator = (enum seep_allocator_kind)place_of(
        text_of(process, "allocator", ""), allocators, 5);
    for (size_t i = 0; i < report.module_count; i++) {
        modules[i] = json_string_value(json_array_get(list, i));
    }
    return seep_catalogue_find_process(catalogue, &report);
}

static const char *find(const json_t *stack)
{
    const struct seep_pattern *found = json_object_get(stack, "verdict") != NULL
                                           ? find_process(stack)
                                           : find_site(stack);

    return found != NULL ? found->id : "none";
}

static const json_t *stacks_of(const char *id)
{
    for (size_t i = 0; i < json_array_size(stacks); i++) {
        const json_t *entry = json_array_get(stacks, i);

        if (strcmp(text_of(entry, "id", ""), id) == 0) {
            return entry;
        }
    }
    fail_msg("%s has no stacks", id);
    return NULL;
}

static void there_are_patterns_and_each_has_its_stacks(void **state)
{
    (void)state;
    assert_true(json_array_size(patterns) >= PATTERN_MINIMUM);
    assert_int_equal(json_array_size(patterns), catalogue->count);
    assert_int_equal(json_array_size(patterns), json_array_size(stacks));
    for (size_t i = 0; i < json_array_size(patterns); i++) {
        const char *id = text_of(json_array_get(patterns, i), "id", "");
        const json_t *entry = stacks_of(id);

        if (json_array_size(json_object_get(entry, "hits")) == 0 ||
            json_array_size(json_object_get(entry, "misses")) == 0) {
            fail_msg("%s has no stack that it wins, or no near miss", id);
        }
    }
}

static void every_pattern_wins_its_stacks(void **state)
{
    (void)state;
    for (size_t i = 0; i < json_array_size(stacks); i++) {
        const json_t *entry = json_array_get(stacks, i);
        const json_t *hits = json_object_get(entry, "hits");
        const char *id = text_of(entry, "id", "");

        for (size_t j = 0; j < json_array_size(hits); j++) {
            const char *found = find(json_array_get(hits, j));

            if (strcmp(found, id) != 0) {
                fail_msg("hit %zu of %s is won by %s", j + 1, id, found);
            }
        }
    }
}

static void no_pattern_wins_its_near_misses(void **state)
{
    (void)state;
    for (size_t i = 0; i < json_array_size(stacks); i++) {
        const json_t *entry = json_array_get(stacks, i);
        const json_t *misses = json_object_get(entry, "misses");
        const char *id = text_of(entry, "id", "");

        for (size_t j = 0; j < json_array_size(misses); j++) {
            if (strcmp(find(json_array_get(misses, j)), id) == 0) {
                fail_msg("near miss %zu of %s is won", j + 1, id);
            }
        }
    }
}

/* Ends of sentences: they are printed one behind the other. */
static void the_words_are_sentences(void **state)
{
    (void)state;
    for (size_t i = 0; i < json_array_size(patterns); i++) {
        const json_t *pattern = json_array_get(patterns, i);
        const char *cause = text_of(pattern, "cause", "");
        const char *remedy = text_of(pattern, "remedy", "");

        if (cause[strlen(cause) - 1] != '.' ||
            remedy[strlen(remedy) - 1] != '.') {
            fail_msg("%s: no full stop", text_of(pattern, "id", ""));
        }
    }
}

static json_t *load(const char *path, const char *key)
{
    json_error_t fault;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &fault);
    json_t *list = json_incref(json_object_get(root, key));

    if (root == NULL) {
        fprintf(stderr, "%s:%d: %s\n", path, fault.line, fault.text);
    }
    json_decref(root);
    return list;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_patterns_and_each_has_its_stacks),
        cmocka_unit_test(every_pattern_wins_its_stacks),
        cmocka_unit_test(no_pattern_wins_its_near_misses),
        cmocka_unit_test(the_words_are_sentences),
    };
    struct seep_refusal refusal;
    int failed;

    if (argc != 3) {
        fprintf(stderr, "usage: %s PATTERNS STACKS\n", argv[0]);
        return 1;
    }
    if (seep_catalogue_add_file(&catalogue, argv[1], &refusal) != 0) {
        fprintf(stderr, "%s %s\n", argv[1], refusal.reason);
        return 1;
    }
    patterns = load(argv[1], "patterns");
    stacks = load(argv[2], "stacks");
    failed = patterns == NULL || stacks == NULL ||
             cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(patterns);
    json_decref(stacks);
    seep_catalogue_close(catalogue);
    return failed;
}
