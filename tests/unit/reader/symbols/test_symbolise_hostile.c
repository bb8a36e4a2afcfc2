/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Modules that are no modules: special files, damaged images, odd paths. All
 * that they may cost is their names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elf.h>

#include <cmocka.h>

#include "base/hash.h"
#include "reader/symbols/symbolise.h"

#define MUTANTS 600
#define IMAGE_BYTES_MAX (1 << 20)

struct scratch {
    char folder[64];
    char path[96];
    unsigned char *image; /* the fixture's */
    size_t image_bytes;
};

static const char *fixtures;

static int setup(void **state)
{
    static struct scratch scratch;
    char path[512];
    FILE *file;

    strcpy(scratch.folder, "/tmp/seep-hostile-XXXXXX");
    scratch.image = malloc(IMAGE_BYTES_MAX);
    if (mkdtemp(scratch.folder) == NULL || scratch.image == NULL) {
        return -1;
    }
    snprintf(scratch.path, sizeof(scratch.path), "%s/module", scratch.folder);
    snprintf(path, sizeof(path), "%s/libfixture_symbols.so", fixtures);
    file = fopen(path, "rb");
    if (file == NULL) {
        return -1;
    }
    scratch.image_bytes = fread(scratch.image, 1, IMAGE_BYTES_MAX, file);
    fclose(file);
    *state = &scratch;
    return scratch.image_bytes > 4096 ? 0 : -1;
}

static int teardown(void **state)
{
    struct scratch *scratch = *state;

    free(scratch->image);
    unlink(scratch->path);
    return rmdir(scratch->folder);
}

static void write_module(const struct scratch *scratch, const void *bytes,
                         size_t size_bytes)
{
    FILE *file = fopen(scratch->path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size_bytes, file), size_bytes);
    assert_int_equal(fclose(file), 0);
}

/* How many of a spread of offsets get a name; each must get a whole answer. */
static size_t count_names(const char *path)
{
    struct seep_symbol_module module = {.path = path};
    struct seep_symboliser_options options = {.without_wall = true};
    struct seep_symboliser *symboliser = NULL;
    size_t named = 0;

    assert_int_equal(seep_symboliser_open(&module, 1, &options, &symboliser),
                     0);
    for (uint64_t offset = 0; offset < 0x3000; offset += 0x11) {
        const struct seep_symbol_frame *frames = NULL;
        size_t count = 0;

        assert_int_equal(
            seep_symboliser_resolve(symboliser, 0, offset, &frames, &count), 0);
        assert_in_range(count, 1, 64);
        for (size_t i = 0; i < count; i++) {
            assert_non_null(frames[i].function);
            assert_non_null(frames[i].file);
            assert_int_equal(frames[i].inlined, i + 1 < count);
        }
        named += frames[count - 1].function[0] != '\0';
    }
    seep_symboliser_close(symboliser);
    return named;
}

static void a_path_that_is_no_file_has_no_names(void **state)
{
    struct scratch *scratch = *state;
    static const char *const paths[] = {"",
                                        "[vdso]",
                                        "[heap]",
                                        "libc.so.6",
                                        "/dev/zero",
                                        "/dev/tty",
                                        "/dev/null",
                                        "/",
                                        "/nonesuch",
                                        "/proc/self/mem",
                                        "/proc/self/maps",
                                        "/usr/lib/libc.so.6 (deleted)",
                                        "../../../etc/passwd"};
    char *endless = malloc(100000);

    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        assert_int_equal(count_names(paths[i]), 0);
    }
    assert_int_equal(count_names(scratch->folder), 0);
    assert_int_equal(mkfifo(scratch->path, 0600), 0);
    assert_int_equal(count_names(scratch->path), 0);
    assert_non_null(endless);
    memset(endless, '/', 99999);
    endless[99999] = '\0';
    assert_int_equal(count_names(endless), 0);
    free(endless);
}

static void a_module_beyond_the_list_has_no_name(void **state)
{
    const struct seep_symbol_frame *frames = NULL;
    struct seep_symboliser *symboliser = NULL;
    size_t count = 0;

    (void)state;
    assert_int_equal(seep_symboliser_open(NULL, 0, NULL, &symboliser), 0);
    assert_int_equal(
        seep_symboliser_resolve(symboliser, 7, 0x1000, &frames, &count), 0);
    assert_int_equal(count, 1);
    assert_string_equal(frames[0].function, "");
    assert_int_equal(
        seep_symboliser_resolve(symboliser, SIZE_MAX, 1, &frames, &count), 0);
    assert_int_equal(count, 1);
    seep_symboliser_close(symboliser);
    seep_symboliser_close(NULL);
}

static void random_bytes_have_no_names(void **state)
{
    struct scratch *scratch = *state;
    uint64_t random = 7;

    for (size_t i = 0; i < scratch->image_bytes; i++) {
        random = seep_hash_add(random, i);
        scratch->image[i] = (unsigned char)random;
    }
    write_module(scratch, scratch->image, scratch->image_bytes);
    assert_int_equal(count_names(scratch->path), 0);
    write_module(scratch, "", 0);
    assert_int_equal(count_names(scratch->path), 0);
    memcpy(scratch->image, ELFMAG, SELFMAG);
    write_module(scratch, scratch->image, scratch->image_bytes);
    assert_int_equal(count_names(scratch->path), 0);
}

static void a_truncated_image_is_survived_at_any_length(void **state)
{
    struct scratch *scratch = *state;

    write_module(scratch, scratch->image, scratch->image_bytes);
    assert_true(count_names(scratch->path) > 0);
    for (size_t bytes = 1; bytes < scratch->image_bytes;
         bytes += bytes < 128 ? 7 : 173) {
        write_module(scratch, scratch->image, bytes);
        (void)count_names(scratch->path);
    }
}

/* Where a changed byte does most: headers, tables, sections of DWARF. */
static size_t pick_target(const unsigned char *image, size_t image_bytes,
                          uint64_t random)
{
    Elf64_Ehdr header;
    Elf64_Shdr section;
    size_t at;

    memcpy(&header, image, sizeof(header));
    switch (random % 4) {
    case 0:
        return (random >> 8) % sizeof(header);
    case 1:
        at = header.e_shoff +
             (random >> 8) % ((uint64_t)header.e_shnum * sizeof(section));
        break;
    case 2:
        at = header.e_shoff + (random >> 8) % header.e_shnum * sizeof(section);
        if (at + sizeof(section) > image_bytes) {
            return 0;
        }
        memcpy(&section, image + at, sizeof(section));
        if (section.sh_size == 0) {
            return 0;
        }
        at = section.sh_offset + (random >> 24) % section.sh_size;
        break;
    default:
        at = (random >> 8) % image_bytes;
        break;
    }
    return at < image_bytes ? at : image_bytes - 1;
}

static void a_damaged_image_costs_only_its_names(void **state)
{
    static const unsigned char bytes[] = {0, 1, 0x7f, 0x80, 0xff};
    struct scratch *scratch = *state;
    unsigned char *mutant = malloc(scratch->image_bytes);
    uint64_t random = 42;

    assert_non_null(mutant);
    for (uint64_t i = 0; i < MUTANTS; i++) {
        memcpy(mutant, scratch->image, scratch->image_bytes);
        for (uint64_t j = 0; j < 1 + i % 12; j++) {
            size_t at;

            random = seep_hash_add(random, i);
            at = pick_target(scratch->image, scratch->image_bytes, random);
            mutant[at] = (random >> 60) < 5 ? bytes[random >> 60]
                                            : (unsigned char)(random >> 40);
        }
        write_module(scratch, mutant, scratch->image_bytes);
        (void)count_names(scratch->path);
    }
    free(mutant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_path_that_is_no_file_has_no_names,
                                        setup, teardown),
        cmocka_unit_test(a_module_beyond_the_list_has_no_name),
        cmocka_unit_test_setup_teardown(random_bytes_have_no_names, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            a_truncated_image_is_survived_at_any_length, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_image_costs_only_its_names,
                                        setup, teardown),
    };

    fixtures = getenv("SEEP_FIXTURES");
    return fixtures != NULL ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
