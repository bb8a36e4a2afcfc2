/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of code whose names are known: fixture_symbols.cc, with its debug
 * information inside, beside it, elsewhere, gone, and of another build.
 *
 * $SEEP_FIXTURES is the folder where the build left the fixture's forms.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <fcntl.h>

#include <cmocka.h>

#include "reader/symbols/symbolise.h"

typedef int entry(void (*call)(void));

static const char *folder;
static uint64_t here_offset;

/* Called from the fixture: the offset of the call into us. */
static __attribute__((noinline)) void tell(void)
{
    char *address = (char *)__builtin_return_address(0) - 1;
    Dl_info info;

    if (dladdr(address, &info) != 0) {
        here_offset = (uint64_t)(address - (char *)info.dli_fbase);
    }
}

static void path_of(const char *name, char ret_path[static 512])
{
    snprintf(ret_path, 512, "%s/%s", folder, name);
}

/* Where @function of the fixture's form @name calls us from. */
static uint64_t offset_in(const char *name, const char *function)
{
    char path[512];
    void *library;
    entry *call;
    void *address;

    path_of(name, path);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    address = dlsym(library, function);
    assert_non_null(address);
    memcpy(&call, &address, sizeof(call));
    here_offset = 0;
    call(tell);
    dlclose(library);
    assert_int_not_equal(here_offset, 0);
    return here_offset;
}

struct question {
    const char *path;
    const uint8_t *build_id;
    size_t build_id_bytes;
    const char *sysroot;
    uint64_t offset;
};

struct reply {
    struct seep_symboliser *symboliser;
    const struct seep_symbol_frame *frames;
    size_t count;
};

static struct reply ask(const struct question *question)
{
    struct seep_symbol_module module = {
        .path = question->path,
        .build_id = question->build_id,
        .build_id_bytes = question->build_id_bytes,
    };
    struct seep_symboliser_options options = {.sysroot = question->sysroot};
    struct reply reply = {0};

    assert_int_equal(
        seep_symboliser_open(&module, 1, &options, &reply.symboliser), 0);
    assert_int_equal(seep_symboliser_resolve(reply.symboliser, 0,
                                             question->offset, &reply.frames,
                                             &reply.count),
                     0);
    assert_true(reply.count >= 1);
    return reply;
}

static void assert_frame(const struct seep_symbol_frame *frame,
                         const char *function, uint32_t line, bool inlined)
{
    const char *name = strrchr(frame->file, '/');

    assert_string_equal(frame->function, function);
    assert_int_equal(frame->line, line);
    assert_int_equal(frame->inlined, inlined);
    if (line != 0) {
        assert_int_equal(frame->file[0], '/');
        assert_string_equal(name, "/fixture_lines.cc");
    } else {
        assert_string_equal(frame->file, "");
    }
}

static void assert_chain(const struct reply *reply)
{
    assert_int_equal(reply->count, 3);
    assert_frame(&reply->frames[0],
                 "fixture::holder<int>::innermost(void (*)())", 102, true);
    assert_frame(&reply->frames[1], "fixture::middle(void (*)(), long)", 202,
                 true);
    assert_frame(&reply->frames[2],
                 "fixture::server::handle(void (*)(), char const*)", 303,
                 false);
}

static void assert_no_names(const struct reply *reply)
{
    assert_int_equal(reply->count, 1);
    assert_frame(&reply->frames[0], "", 0, false);
}

static void a_call_is_named_by_function_file_and_line(void **state)
{
    static const struct {
        const char *function;
        const char *expected;
        uint32_t line;
    } calls[] = {
        {"fixture_plain", "fixture_plain", 402},
        {"fixture_via_hidden", "(anonymous namespace)::hidden(void (*)())",
         602},
    };
    char path[512];

    (void)state;
    path_of("libfixture_symbols.so", path);
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        struct question question = {
            .path = path,
            .offset = offset_in("libfixture_symbols.so", calls[i].function),
        };
        struct reply reply = ask(&question);

        assert_int_equal(reply.count, 1);
        assert_frame(&reply.frames[0], calls[i].expected, calls[i].line, false);
        seep_symboliser_close(reply.symboliser);
    }
}

static void inlined_calls_come_innermost_first(void **state)
{
    char path[512];
    struct question question = {
        .path = path,
        .offset = offset_in("libfixture_symbols.so", "fixture_chain"),
    };
    struct reply reply;

    (void)state;
    path_of("libfixture_symbols.so", path);
    reply = ask(&question);
    assert_chain(&reply);
    seep_symboliser_close(reply.symboliser);
}

static void an_answer_is_given_again(void **state)
{
    char path[512];
    struct question question = {
        .path = path,
        .offset = offset_in("libfixture_symbols.so", "fixture_chain"),
    };
    const struct seep_symbol_frame *again = NULL;
    struct reply reply;
    size_t count = 0;

    (void)state;
    path_of("libfixture_symbols.so", path);
    reply = ask(&question);
    for (uint64_t offset = 0; offset < 500; offset++) {
        assert_int_equal(seep_symboliser_resolve(reply.symboliser, 0, offset,
                                                 &again, &count),
                         0);
    }
    assert_int_equal(seep_symboliser_resolve(reply.symboliser, 0,
                                             question.offset, &again, &count),
                     0);
    assert_ptr_equal(again, reply.frames);
    assert_int_equal(count, reply.count);
    assert_chain(&reply);
    seep_symboliser_close(reply.symboliser);
}

static void a_debug_link_is_followed_to_the_file_of_the_same_build(void **state)
{
    static const char *const forms[][2] = {
        {"libfixture_symbols.so", "fixture_symbols.stripped"},
        {"libfixture_no_id.so", "fixture_no_id.stripped"},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char path[512];
        struct question question = {
            .path = path,
            .offset = offset_in(forms[i][0], "fixture_chain"),
        };
        struct reply reply;

        path_of(forms[i][1], path);
        reply = ask(&question);
        assert_chain(&reply);
        seep_symboliser_close(reply.symboliser);
    }
}

static void a_module_is_looked_for_below_the_sysroot(void **state)
{
    struct question question = {
        .path = "/fixture_symbols.stripped",
        .sysroot = folder,
        .offset = offset_in("libfixture_symbols.so", "fixture_chain"),
    };
    struct reply reply = ask(&question);

    (void)state;
    assert_chain(&reply);
    seep_symboliser_close(reply.symboliser);
}

static void copy_file(const char *from, const char *to)
{
    char buffer[4096];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    size_t got;

    assert_non_null(in);
    assert_non_null(out);
    while ((got = fread(buffer, 1, sizeof(buffer), in)) > 0) {
        assert_int_equal(fwrite(buffer, 1, got, out), got);
    }
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

struct scratch {
    char folder[64];
    char module[96];
    char debug[128];
};

static int setup(void **state)
{
    static struct scratch scratch;
    char path[512];

    strcpy(scratch.folder, "/tmp/seep-symbolise-XXXXXX");
    if (mkdtemp(scratch.folder) == NULL) {
        return -1;
    }
    snprintf(scratch.module, sizeof(scratch.module), "%s/module.so",
             scratch.folder);
    snprintf(scratch.debug, sizeof(scratch.debug), "%s/fixture_symbols.debug",
             scratch.folder);
    path_of("fixture_symbols.stripped", path);
    copy_file(path, scratch.module);
    *state = &scratch;
    return 0;
}

static int teardown(void **state)
{
    struct scratch *scratch = *state;

    unlink(scratch->module);
    unlink(scratch->debug);
    return rmdir(scratch->folder);
}

static void without_debug_information_the_exported_symbol_is_told(void **state)
{
    struct scratch *scratch = *state;
    struct question question = {
        .path = scratch->module,
        .offset = offset_in("libfixture_symbols.so", "fixture_chain"),
    };
    struct reply reply = ask(&question);

    assert_int_equal(reply.count, 1);
    assert_frame(&reply.frames[0],
                 "fixture::server::handle(void (*)(), char const*)", 0, false);
    seep_symboliser_close(reply.symboliser);
}

/* hidden() is not exported, and stands behind all that is. */
static void an_address_that_no_symbol_covers_has_no_name(void **state)
{
    struct scratch *scratch = *state;
    struct question question = {
        .path = scratch->module,
        .offset = offset_in("libfixture_symbols.so", "fixture_via_hidden"),
    };
    struct reply reply = ask(&question);

    assert_int_equal(reply.count, 1);
    assert_string_equal(reply.frames[0].function, "");
    assert_string_equal(reply.frames[0].file, "");
    seep_symboliser_close(reply.symboliser);
}

/* .plt stands behind _init, which has no size. */
static void the_linkers_own_code_has_no_name(void **state)
{
    uint64_t named = 0;
    char path[512];

    (void)state;
    path_of("libfixture_symbols.so", path);
    struct question question = {.path = path};
    struct reply reply = ask(&question);

    for (uint64_t offset = 0; offset < 0x2000; offset += 4) {
        const struct seep_symbol_frame *frames;
        size_t count;

        assert_int_equal(seep_symboliser_resolve(reply.symboliser, 0, offset,
                                                 &frames, &count),
                         0);
        named += strcmp(frames[0].function, "_init") == 0;
    }
    seep_symboliser_close(reply.symboliser);
    assert_in_range(named, 1, 32 / 4);
}

/* As assembly has them: it reaches to the next symbol; where most symbols are
 * gone, nobody knows how far that is. */
static void
a_label_without_size_names_what_follows_if_all_is_known(void **state)
{
    struct scratch *scratch = *state;
    char path[512];
    struct question question = {.path = path};
    struct reply reply;
    void *library;
    void *label;
    Dl_info info;

    path_of("libfixture_symbols.so", path);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    label = dlsym(library, "fixture_label");
    assert_non_null(label);
    assert_int_not_equal(dladdr(label, &info), 0);
    question.offset =
        (uint64_t)((const char *)label - (const char *)info.dli_fbase) + 2;
    dlclose(library);
    reply = ask(&question);
    assert_string_equal(reply.frames[0].function, "fixture_label");
    seep_symboliser_close(reply.symboliser);
    question.path = scratch->module;
    reply = ask(&question);
    assert_string_equal(reply.frames[0].function, "");
    seep_symboliser_close(reply.symboliser);
}

static void a_debug_file_of_another_build_is_not_used(void **state)
{
    struct scratch *scratch = *state;
    struct question question = {
        .path = scratch->module,
        .offset = offset_in("libfixture_symbols.so", "fixture_chain"),
    };
    struct reply reply;
    char path[512];

    path_of("fixture_no_id.debug", path);
    copy_file(path, scratch->debug);
    reply = ask(&question);
    assert_int_equal(reply.count, 1);
    assert_frame(&reply.frames[0],
                 "fixture::server::handle(void (*)(), char const*)", 0, false);
    seep_symboliser_close(reply.symboliser);
}

static void a_file_of_another_checksum_is_not_used(void **state)
{
    struct scratch *scratch = *state;
    struct question question = {
        .path = scratch->module,
        .offset = offset_in("libfixture_no_id.so", "fixture_chain"),
    };
    struct reply reply;
    char path[512];
    FILE *debug;

    path_of("fixture_no_id.stripped", path);
    copy_file(path, scratch->module);
    snprintf(scratch->debug, sizeof(scratch->debug), "%s/fixture_no_id.debug",
             scratch->folder);
    path_of("fixture_no_id.debug", path);
    copy_file(path, scratch->debug);
    debug = fopen(scratch->debug, "ab");
    assert_non_null(debug);
    fputc('x', debug);
    assert_int_equal(fclose(debug), 0);
    reply = ask(&question);
    assert_int_equal(reply.count, 1);
    assert_string_equal(reply.frames[0].file, "");
    seep_symboliser_close(reply.symboliser);
}

/* A FIFO would hold an open() that waits for a writer for ever. */
static void a_fifo_as_debug_file_does_not_block(void **state)
{
    struct scratch *scratch = *state;
    struct question question = {
        .path = scratch->module,
        .offset = offset_in("libfixture_symbols.so", "fixture_chain"),
    };
    struct reply reply;

    assert_int_equal(mkfifo(scratch->debug, 0600), 0);
    reply = ask(&question);
    assert_int_equal(reply.count, 1);
    assert_frame(&reply.frames[0],
                 "fixture::server::handle(void (*)(), char const*)", 0, false);
    seep_symboliser_close(reply.symboliser);
}

static size_t read_build_id(const char *path, uint8_t ret_id[static 64])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const void *bytes = NULL;
    ssize_t size;
    Elf *elf;

    assert_true(fd >= 0);
    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    size = dwelf_elf_gnu_build_id(elf, &bytes);
    assert_in_range(size, 1, 64);
    memcpy(ret_id, bytes, (size_t)size);
    elf_end(elf);
    close(fd);
    return (size_t)size;
}

static void a_file_is_used_only_under_its_own_build_id(void **state)
{
    char path[512];
    uint8_t id[64];
    struct question question = {
        .path = path,
        .build_id = id,
        .offset = offset_in("libfixture_symbols.so", "fixture_chain"),
    };
    struct reply reply;

    (void)state;
    path_of("libfixture_symbols.so", path);
    question.build_id_bytes = read_build_id(path, id);
    reply = ask(&question);
    assert_chain(&reply);
    seep_symboliser_close(reply.symboliser);

    id[0] ^= 1;
    reply = ask(&question);
    assert_no_names(&reply);
    seep_symboliser_close(reply.symboliser);

    id[0] ^= 1;
    question.build_id_bytes--;
    reply = ask(&question);
    assert_no_names(&reply);
    seep_symboliser_close(reply.symboliser);

    question.build_id_bytes++;
    path_of("libfixture_no_id.so", path);
    reply = ask(&question);
    assert_no_names(&reply);
    seep_symboliser_close(reply.symboliser);
}

static void an_offset_outside_the_code_has_no_name(void **state)
{
    static const uint64_t offsets[] = {0, 8, UINT64_C(1) << 40, UINT64_MAX};
    char path[512];

    (void)state;
    path_of("libfixture_symbols.so", path);
    for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
        struct question question = {.path = path, .offset = offsets[i]};
        struct reply reply = ask(&question);

        assert_no_names(&reply);
        seep_symboliser_close(reply.symboliser);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_named_by_function_file_and_line),
        cmocka_unit_test(inlined_calls_come_innermost_first),
        cmocka_unit_test(an_answer_is_given_again),
        cmocka_unit_test(
            a_debug_link_is_followed_to_the_file_of_the_same_build),
        cmocka_unit_test(a_module_is_looked_for_below_the_sysroot),
        cmocka_unit_test_setup_teardown(
            without_debug_information_the_exported_symbol_is_told, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            an_address_that_no_symbol_covers_has_no_name, setup, teardown),
        cmocka_unit_test(the_linkers_own_code_has_no_name),
        cmocka_unit_test_setup_teardown(
            a_label_without_size_names_what_follows_if_all_is_known, setup,
            teardown),
        cmocka_unit_test_setup_teardown(a_file_of_another_checksum_is_not_used,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_debug_file_of_another_build_is_not_used, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fifo_as_debug_file_does_not_block,
                                        setup, teardown),
        cmocka_unit_test(a_file_is_used_only_under_its_own_build_id),
        cmocka_unit_test(an_offset_outside_the_code_has_no_name),
    };

    folder = getenv("SEEP_FIXTURES");
    return folder != NULL ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
