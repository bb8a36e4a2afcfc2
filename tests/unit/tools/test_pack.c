/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A pack that was damaged on its way, or made by a stranger. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "held/kept.h"
#include "pack/pack.h"
#include "reader/recording/pack.h"
#include "recording_builder.h"

struct fixture {
    char folder[64];
    char recording[96];
    char pack[96];
    char *bytes; /* of the pack */
    size_t size;
};

static void refuse(const char *path, const struct seep_refusal *refusal)
{
    print_error("%s %s\n", path, refusal->reason);
    fail();
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct seep_pack_options options = {.refused = refuse};
    struct seep_pack_outcome outcome;
    struct recording_builder builder;
    char *path = f->recording;
    struct stat status;
    FILE *file;

    snprintf(f->folder, sizeof(f->folder), "/tmp/seep-test-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->recording, sizeof(f->recording), "%s/a.seep", f->folder);
    snprintf(f->pack, sizeof(f->pack), "%s/a.seeppack", f->folder);
    builder_init_sample(&builder);
    builder_write(&builder, f->recording);
    builder_fini(&builder);
    assert_int_equal(seep_pack_write(f->pack, &path, 1, &options, &outcome), 0);
    assert_int_equal(outcome.packed_count, 1);
    assert_int_equal(stat(f->pack, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    f->size = (size_t)status.st_size;
    f->bytes = malloc(f->size);
    file = fopen(f->pack, "rb");
    assert_non_null(file);
    assert_int_equal(fread(f->bytes, 1, f->size, file), f->size);
    fclose(file);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    unlink(f->recording);
    unlink(f->pack);
    rmdir(f->folder);
    free(f->bytes);
    free(f);
    return 0;
}

static void write_pack(const struct fixture *f, const char *bytes, size_t size)
{
    FILE *file = fopen(f->pack, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* @return of reading it; it says why not */
static int read_pack(const struct fixture *f, char reason[192])
{
    const struct seep_report_options options = {.symbols = true};
    struct seep_refusal refusal = {0};
    struct seep_report *report = NULL;
    int error = seep_report_open(f->pack, &options, &refusal, &report);

    snprintf(reason, 192, "%s", refusal.reason);
    assert_true((error == 0) == (report != NULL));
    assert_true(error == 0 || refusal.reason[0] != '\0');
    seep_report_close(report);
    return error;
}

/* What the directory says, with the hash that it must have. */
static void write_directory(struct fixture *f, size_t at, const void *word,
                            size_t bytes)
{
    struct seep_pack_header header;
    char *copy = malloc(f->size);
    size_t all;

    memcpy(copy, f->bytes, f->size);
    memcpy(copy + at, word, bytes);
    memcpy(&header, copy, sizeof(header));
    header.hash = 0;
    memcpy(copy, &header, sizeof(header));
    all = sizeof(header) + header.part_count * sizeof(struct seep_pack_part) +
          header.names_bytes;
    if (all <= f->size) {
        header.hash = seep_hash_bytes(copy, all);
        memcpy(copy, &header, sizeof(header));
    }
    write_pack(f, copy, f->size);
    free(copy);
}

static void a_whole_one_is_read(void **state)
{
    struct fixture *f = *state;
    char reason[192];

    assert_int_equal(read_pack(f, reason), 0);
    /* and the helper above changes nothing else */
    write_directory(f, 0, f->bytes, 8);
    assert_int_equal(read_pack(f, reason), 0);
}

static void one_that_was_cut_is_refused_wherever_it_was(void **state)
{
    struct fixture *f = *state;
    char reason[192];

    for (size_t size = 8; size < f->size; size += 1 + size / 7) {
        write_pack(f, f->bytes, size);
        assert_int_not_equal(read_pack(f, reason), 0);
        assert_non_null(strstr(reason, "truncated"));
    }
}

static void a_byte_that_changed_is_noticed_or_means_nothing(void **state)
{
    struct fixture *f = *state;
    char reason[192];
    size_t refused = 0;

    for (size_t at = 8; at < f->size; at += 1 + at / 19) {
        f->bytes[at] ^= 0x10;
        write_pack(f, f->bytes, f->size);
        refused += read_pack(f, reason) != 0;
        f->bytes[at] ^= 0x10;
    }
    /* between the directory and the parts there is room that nobody reads */
    assert_in_range(refused, 20, 1000);
}

static void a_newer_one_is_told_from_a_damaged_one(void **state)
{
    static const uint32_t next = SEEP_PACK_VERSION + 1;
    static const uint32_t none = 0;
    struct fixture *f = *state;
    char reason[192];

    write_directory(f, offsetof(struct seep_pack_header, version), &next, 4);
    assert_int_equal(read_pack(f, reason), -EPROTO);
    assert_non_null(strstr(reason, "newer"));
    write_directory(f, offsetof(struct seep_pack_header, version), &none, 4);
    assert_int_equal(read_pack(f, reason), -EBADMSG);
}

/* Refused before a byte of it is inflated. */
static void a_part_that_would_be_too_large_is_refused(void **state)
{
    /* The first is what zeros would become. */
    static const uint64_t sizes[] = {SEEP_PACK_RECORDING_BYTES_MAX,
                                     SEEP_PACK_RECORDING_BYTES_MAX + 1,
                                     UINT64_C(1) << 40, UINT64_MAX, 0};
    struct fixture *f = *state;
    char reason[192];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        write_directory(f,
                        sizeof(struct seep_pack_header) +
                            offsetof(struct seep_pack_part, bytes),
                        &sizes[i], 8);
        assert_int_equal(read_pack(f, reason), -EBADMSG);
        assert_non_null(strstr(reason, "damaged"));
    }
}

static void a_part_lies_in_the_file_and_apart(void **state)
{
    static const uint64_t places[] = {0, 64, UINT64_MAX, UINT64_C(1) << 40};
    struct fixture *f = *state;
    char reason[192];

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        write_directory(f,
                        sizeof(struct seep_pack_header) +
                            offsetof(struct seep_pack_part, offset_bytes),
                        &places[i], 8);
        assert_int_equal(read_pack(f, reason), -EBADMSG);
    }
}

/* It would be written to outside of the folder that it is unpacked into. */
static void a_recording_is_called_like_a_file(void **state)
{
    static const char *const names[] = {"../a.s", "/a.sep", "a/b/cd", "."};
    struct fixture *f = *state;
    char reason[192];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        write_directory(f,
                        sizeof(struct seep_pack_header) +
                            2 * sizeof(struct seep_pack_part),
                        names[i], strlen(names[i]) + (i == 3));
        assert_int_equal(read_pack(f, reason), -EBADMSG);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Of reads of this process. */
static uint64_t count_read(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    unsigned long long bytes = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "rchar: %llu", &bytes), 1);
    fclose(file);
    return bytes;
}

#define MEMBERS 300U

/* A pack of that many, each the recording at @path. */
static void pack_many(const struct fixture *f)
{
    char *paths[MEMBERS];
    struct seep_pack_options options = {.refused = refuse, .is_folder = true};
    struct seep_pack_outcome outcome;

    for (size_t i = 0; i < MEMBERS; i++) {
        paths[i] = (char *)(uintptr_t)f->recording;
    }
    assert_int_equal(unlink(f->pack), 0);
    assert_int_equal(
        seep_pack_write(f->pack, paths, MEMBERS, &options, &outcome), 0);
    assert_int_equal(outcome.packed_count, MEMBERS);
}

/* All of them, by their paths. @return the bytes that were read */
static uint64_t open_many(const struct fixture *f, uint64_t *ret_directory)
{
    struct seep_open_list list = {0};
    struct seep_refusal refusal = {0};
    uint64_t before;

    assert_int_equal(seep_pack_list(f->pack, &refusal, &list), 0);
    assert_int_equal(list.count, MEMBERS);
    before = count_read();
    for (size_t i = 0; i < list.count; i++) {
        struct seep_pack *pack;
        uint32_t process;

        assert_int_equal(
            seep_pack_open(list.paths[i], &refusal, &pack, &process), 0);
        assert_int_equal(process, i);
        assert_int_equal(
            seep_pack_find(pack, SEEP_PACK_RECORDING, process)->process, i);
        *ret_directory =
            pack->header.part_count * sizeof(struct seep_pack_part) +
            pack->header.names_bytes;
        seep_pack_close(pack);
    }
    before = count_read() - before;
    seep_report_list_free(list.paths);
    return before;
}

/* It was 3.6 MB here, and half a minute of 10,000. */
static void its_directory_is_read_once_for_all_that_are_in_it(void **state)
{
    struct fixture *f = *state;
    uint64_t directory;

    pack_many(f);
    /* Who was just written might be written again. */
    assert_true(open_many(f, &directory) > MEMBERS * directory);
    sleep(3);
    assert_true(open_many(f, &directory) <
                2 * directory + MEMBERS * sizeof(struct seep_pack_header) * 2);
}

/* One that took its place is another. */
static void one_that_changed_is_read_again(void **state)
{
    struct fixture *f = *state;
    char reason[192];

    sleep(3);
    assert_int_equal(read_pack(f, reason), 0);
    assert_int_equal(read_pack(f, reason), 0);
    f->bytes[sizeof(struct seep_pack_header)] ^= 1;
    write_pack(f, f->bytes, f->size);
    assert_int_equal(read_pack(f, reason), -EBADMSG);
}

static struct seep_held_step step_of(enum seep_held_kind kind, const char *name)
{
    return (struct seep_held_step){
        .edge = SEEP_HELD_EDGE_ATTRIBUTE,
        .edge_name = name,
        .edge_function = "",
        .kind = kind,
        .name = "Cache",
        .function = "",
        .file = "",
    };
}

/* What an attribute is called by setattr(), somebody set. */
static void members_of_code_stay_and_other_names_do_not(void **state)
{
    struct seep_held_step steps[] = {
        step_of(SEEP_HELD_KIND_GLOBAL, "cells[...].first"),
        step_of(SEEP_HELD_KIND_CXX_OBJECT, "shelf.books"),
        step_of(SEEP_HELD_KIND_BLOCK, "[...].payload"),
        step_of(SEEP_HELD_KIND_OBJECT, "books"),
        step_of(SEEP_HELD_KIND_OBJECT, "host.example"),
        step_of(SEEP_HELD_KIND_OBJECT, "[...]"),
    };
    static const bool stays[] = {true, true, true, true, false, false};
    const struct seep_held_group group = {.steps = steps, .step_count = 6};
    const struct seep_held_answer answer = {.groups = &group, .group_count = 1};
    const struct seep_held_kept kept = {.site_id = "a", .answer = &answer};
    struct seep_held_pin_site site = {"a", "/srv/acme/x.py:3 quince", 1, 1};
    const struct seep_held_kept_pins pins = {.sites = &site, .site_count = 1};
    struct seep_held_book book = {&kept, 1, &pins};
    struct seep_redaction redaction = {0};
    const char *before[6];

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        before[i] = steps[i].edge_name;
    }
    assert_int_equal(seep_redact_held(&redaction, &book), 0);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(strcmp(steps[i].edge_name, before[i]) == 0, stays[i]);
    }
    assert_string_equal(site.where, ""); /* the pack names it by its id */
    seep_redaction_fini(&redaction);
}

/* What compile() is told is a file's name may be anything. */
static void of_a_path_only_names_stay(void **state)
{
    static const struct {
        const char *path;
        const char *redacted;
    } cases[] = {
        {"", ""},
        {"serve.py", "serve.py"},
        {"/srv/acme/serve.py", "/d1/serve.py"},
        {"/serve.py", "/serve.py"},
        {"/usr/lib/python3.11/ast.py", "/usr/lib/python3.11/ast.py"},
        {"/x/site-packages/a/b.py", "/d2/site-packages/a/b.py"},
        {"x.py?token=quince", "x.py?v1"},
        {"/srv/acme/x.py?token=quince", "/d1/x.py?v1"},
        {"/usr/lib/x.py?token=quince", "/d3/x.py?v1"},
        {"https://u:quince@h/x.py#a=quince", "d4/x.py#v2"},
        {"..\\Users\\quince\\x.py", "d5/x.py"},
        {"C:\\Users\\quince\\x.py", "d6/x.py"},
        {"<string>", "<string>"},
        {"<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"},
        {"<frozen x>?quince>", "<v3>"},
        {"<ipython-input-3-quince>", "<v4>"},
        {"<quince", "<v5>"},
        {"/memfd:quince (deleted)", "/memfd:v6"},
        {"[anon:quince]", "m1"},
        {"[vdso]", "[vdso]"},
    };
    struct seep_redaction redaction = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_string_equal(seep_redact_path(&redaction, cases[i].path),
                            cases[i].redacted);
    }
    seep_redaction_fini(&redaction);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_whole_one_is_read),
        TEST(one_that_was_cut_is_refused_wherever_it_was),
        TEST(a_byte_that_changed_is_noticed_or_means_nothing),
        TEST(a_newer_one_is_told_from_a_damaged_one),
        TEST(a_part_that_would_be_too_large_is_refused),
        TEST(a_part_lies_in_the_file_and_apart),
        TEST(a_recording_is_called_like_a_file),
        TEST(its_directory_is_read_once_for_all_that_are_in_it),
        TEST(one_that_changed_is_read_again),
        cmocka_unit_test(members_of_code_stay_and_other_names_do_not),
        cmocka_unit_test(of_a_path_only_names_stay),
    };

    return cmocka_run_group_tests_name("packs", tests, NULL, NULL);
}
