/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Members of classes and variables, by DWARF: fixture_members.cc, whose debug
 * information is as it comes, by units of types, and in a file of its own.
 *
 * $SEEP_FIXTURES is the folder where the build left the fixture's forms.
 */
#include <dlfcn.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "fixture_members.h"
#include "reader/symbols/symbolise.h"
#include "seep_test.h"

typedef const struct fixture_member *teller(size_t *ret_count);

static void path_of(const char *form, char ret_path[static 512])
{
    snprintf(ret_path, 512, "%s/lib%s", getenv("SEEP_FIXTURES"), form);
}

static struct seep_symboliser *open_form(const char *form)
{
    static char path[512];
    const struct seep_symbol_module module = {.path = path};
    const struct seep_symboliser_options options = {.sysroot = NULL};
    struct seep_symboliser *symboliser;

    path_of(form, path);
    assert_int_equal(seep_symboliser_open(&module, 1, &options, &symboliser),
                     0);
    return symboliser;
}

/* What the fixture says, loaded from the form that can be. */
static const struct fixture_member *load(const char *form, size_t *ret_count)
{
    char path[512];
    teller *tell;
    void *address;
    void *library;

    path_of(form, path);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    address = dlsym(library, "fixture_members");
    assert_non_null(address);
    memcpy(&tell, &address, sizeof(tell));
    return tell(ret_count);
}

static struct seep_symbol_thing thing_of(const struct fixture_member *said)
{
    struct seep_symbol_thing thing = {.class_symbol = said->what,
                                      .hop_count = said->hops};
    Dl_info info;

    if (said->at != NULL) {
        assert_int_not_equal(dladdr(said->at, &info), 0);
        thing.address = (uintptr_t)said->at - (uintptr_t)info.dli_fbase;
    }
    for (size_t i = 0; i < said->hops; i++) {
        thing.hops[i] =
            (struct seep_symbol_hop){said->hop[i].offset, said->hop[i].bytes};
    }
    return thing;
}

static void check(struct seep_symboliser *symboliser,
                  const struct fixture_member *said, size_t number)
{
    const struct seep_symbol_thing thing = thing_of(said);
    const struct seep_symbol_frame *frames;

    assert_true(seep_symboliser_members(symboliser, 0, &thing, &frames));
    for (size_t i = 0; i < said->hops; i++) {
        const char *type = said->hop[i].type;

        if (strcmp(frames[i].function, said->hop[i].member) != 0 ||
            (type != NULL && strcmp(frames[i].file, type) != 0)) {
            fail_msg("%zu: %s, hop %zu: %s of %s, not %s of %s", number,
                     said->what, i, frames[i].function, frames[i].file,
                     said->hop[i].member, type);
        }
    }
}

static void check_all(const char *form, const char *loaded)
{
    struct seep_symboliser *symboliser = open_form(form);
    size_t count;
    const struct fixture_member *said = load(loaded, &count);

    for (size_t i = 0; i < count; i++) {
        check(symboliser, &said[i], i);
    }
    seep_symboliser_close(symboliser);
}

static void members_are_what_the_program_says(void **state)
{
    (void)state;
    check_all("fixture_members.so", "fixture_members.so");
}

static void types_may_have_units_of_their_own(void **state)
{
    (void)state;
    check_all("fixture_members_units.so", "fixture_members_units.so");
    check_all("fixture_members_units4.so", "fixture_members_units4.so");
}

static void debug_information_may_lie_in_a_file_of_its_own(void **state)
{
    (void)state;
    check_all("fixture_members.stripped", "fixture_members.stripped");
}

static void without_it_nothing_is_known(void **state)
{
    struct seep_symboliser *symboliser = open_form("fixture_members.bare");
    const struct seep_symbol_thing thing = {
        .class_symbol = "N3zoo5CacheE", .hops = {{8, 0}}, .hop_count = 1};
    const struct seep_symbol_frame *frames;

    (void)state;
    assert_false(seep_symboliser_members(symboliser, 0, &thing, &frames));
    assert_false(seep_symboliser_members(symboliser, 0, &thing, &frames));
    seep_symboliser_close(symboliser);
}

#define MUTANTS 240
#define IMAGE_BYTES_MAX (4 << 20)

struct section {
    size_t at;
    size_t bytes;
};

static unsigned char *read_form(const char *form, size_t *ret_bytes)
{
    unsigned char *image = malloc(IMAGE_BYTES_MAX);
    char path[512];
    FILE *file;

    path_of(form, path);
    file = fopen(path, "rb");
    assert_non_null(image);
    assert_non_null(file);
    *ret_bytes = fread(image, 1, IMAGE_BYTES_MAX, file);
    fclose(file);
    return image;
}

static void find_section(const unsigned char *image, const char *name,
                         struct section *ret_section)
{
    Elf64_Ehdr header;
    Elf64_Shdr names;

    memcpy(&header, image, sizeof(header));
    memcpy(&names, image + header.e_shoff + header.e_shstrndx * sizeof(names),
           sizeof(names));
    for (size_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;

        memcpy(&section, image + header.e_shoff + i * sizeof(section),
               sizeof(section));
        if (strcmp((const char *)image + names.sh_offset + section.sh_name,
                   name) == 0) {
            *ret_section = (struct section){section.sh_offset, section.sh_size};
            return;
        }
    }
    fail_msg("no %s", name);
}

static void ask_damaged(const char *path, const struct seep_symbol_thing *thing)
{
    const struct seep_symbol_module module = {.path = path};
    const struct seep_symbol_frame *frames;
    struct seep_symboliser *symboliser;

    assert_int_equal(seep_symboliser_open(&module, 1, NULL, &symboliser), 0);
    if (seep_symboliser_members(symboliser, 0, thing, &frames)) {
        for (size_t i = 0; i < thing->hop_count; i++) {
            assert_true(strlen(frames[i].function) < 256);
            assert_true(strlen(frames[i].file) < 128);
        }
    }
    seep_symboliser_close(symboliser);
}

static void code_has_names_as_well(void **state)
{
    struct seep_symboliser *symboliser = open_form("fixture_members.so");
    const struct seep_symbol_thing thing = {
        .class_symbol = "N3zoo5CacheE", .hops = {{8, 0}}, .hop_count = 1};
    const struct seep_symbol_frame *frames;
    char path[512];
    size_t count;
    void *address;

    (void)state;
    path_of("fixture_members.so", path);
    address = dlsym(dlopen(path, RTLD_NOW), "fixture_members");
    assert_true(seep_symboliser_members(symboliser, 0, &thing, &frames));
    Dl_info info;
    assert_int_not_equal(dladdr(address, &info), 0);
    assert_int_equal(
        seep_symboliser_resolve(symboliser, 0,
                                (uintptr_t)address - (uintptr_t)info.dli_fbase,
                                &frames, &count),
        0);
    assert_string_equal(frames[count - 1].function, "fixture_members");
    seep_symboliser_close(symboliser);
}

/* Bytes of DWARF that are others: each costs its answers and nothing else. */
static void damage_costs_members_and_no_more(void **state)
{
    const struct seep_symbol_thing things[] = {
        {.class_symbol = "N3zoo5CacheE",
         .hops = {{0x70, 0}, {8, 16}, {8, 16}},
         .hop_count = 3},
        {.class_symbol = "N3zoo3BoxIiLi7ESt6vectorIiSaIiEEEE",
         .hops = {{80, 0}},
         .hop_count = 1},
        {.class_symbol = "",
         .address = 0x6000,
         .hops = {{8, 0}},
         .hop_count = 1},
    };
    char path[] = "/tmp/seep-members-XXXXXX";
    int fd = mkstemp(path);
    size_t bytes;
    unsigned char *image = read_form("fixture_members.so", &bytes);
    struct section sections[3];
    uint64_t random = 18;

    (void)state;
    assert_true(fd >= 0);
    find_section(image, ".debug_info", &sections[0]);
    find_section(image, ".debug_abbrev", &sections[1]);
    find_section(image, ".debug_str", &sections[2]);
    for (size_t mutant = 0; mutant < MUTANTS; mutant++) {
        const struct section *section = &sections[mutant % 3];
        size_t at = section->at + seep_hash_random(&random) % section->bytes;
        unsigned char before = image[at];

        image[at] = (unsigned char)seep_hash_random(&random);
        assert_int_equal(pwrite(fd, image, bytes, 0), bytes);
        image[at] = before;
        for (size_t i = 0; i < sizeof(things) / sizeof(*things); i++) {
            ask_damaged(path, &things[i]);
        }
    }
    free(image);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_what_the_program_says),
        cmocka_unit_test(types_may_have_units_of_their_own),
        cmocka_unit_test(debug_information_may_lie_in_a_file_of_its_own),
        cmocka_unit_test(without_it_nothing_is_known),
        cmocka_unit_test(code_has_names_as_well),
        cmocka_unit_test(damage_costs_members_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
