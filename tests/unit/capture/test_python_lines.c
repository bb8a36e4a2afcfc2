/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Line tables that interpreters made, against what they say of them; strings
 * of all widths; tables and strings that are none.
 */
#include "seep_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/python/interpreter.h"

#define LINE_BYTES 65536
#define DATA_BYTES 32768

/* A code object of which only the table and a string are there. */
struct object {
    uint64_t references;
    uint64_t type;
    uint64_t size;
    uint64_t hash;
    uint8_t data[DATA_BYTES];
};

static const char *fixtures;
static struct object table;
static struct object text;
static uint64_t code[32];
static struct seep_python python;
static struct seep_python_memory memory;

static void make_python(unsigned int minor)
{
    static uint64_t words[96];

    memset(&python, 0, sizeof(python));
    /* 3.12's row has all that is asked here; what differs is the minor. */
    seep_python_offsets_find(minor < 12 ? 0x030000f0U | minor << 16
                                        : 0x030c00f0U,
                             words, &python.offsets);
    python.offsets.minor = minor;
    python.bytes_type = (uintptr_t)words;
    python.text_type = (uintptr_t)(words + 1);
    table.type = python.bytes_type;
    text.type = python.text_type;
}

static struct seep_python_identity identity_of(size_t bytes, int first_line)
{
    static uint64_t made;
    struct seep_python_identity identity = {.code = (uintptr_t)code,
                                            .name = ++made,
                                            .lines = (uintptr_t)&table,
                                            .lines_bytes = bytes,
                                            .first_line = first_line};

    table.size = bytes;
    identity.hash = seep_python_identity_hash(&identity);
    return identity;
}

static size_t take_hex(const char *hex)
{
    size_t bytes = 0;

    for (; hex[0] != '-' && hex[0] != '\0' && hex[0] != '\n'; hex += 2) {
        char pair[3] = {hex[0], hex[1], '\0'};

        assert_true(bytes < DATA_BYTES);
        table.data[bytes++] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return bytes;
}

/* Each instruction up to the next one that is listed has the line before. */
static unsigned int check_lines(const struct seep_python_identity *identity,
                                char *list, int code_bytes)
{
    unsigned int checked = 0;
    int wanted = 0;
    char *at = list;
    int next = (int)strtol(at, &at, 10);

    for (int i = 0; i < code_bytes; i += 2) {
        int32_t line = -1;
        int32_t again = -1;

        if (i == next) {
            wanted = (int)strtol(at + 1, &at, 10);
            next = *at == ' ' ? (int)strtol(at, &at, 10) : code_bytes;
        }
        assert_true(seep_python_line(&python, &memory, identity, i, &line));
        assert_int_equal(line, wanted);
        assert_true(
            seep_python_line_cached(&python, &memory, identity, i, &again));
        assert_int_equal(again, wanted);
        assert_true(
            seep_python_line_cached(&python, &memory, identity, i, &again));
        assert_int_equal(again, wanted);
        checked++;
    }
    return checked;
}

static void lines_are_what_python_says(void **state)
{
    static char line[LINE_BYTES];
    static char hex[LINE_BYTES];
    unsigned int checked[16] = {0};
    struct seep_python_identity identity = {0};
    unsigned int minor = 0;
    int first_line = 0;
    int code_bytes = 0;
    FILE *file = fopen(fixtures, "r");

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "table %u %d %d %65535s", &minor, &first_line,
                   &code_bytes, hex) == 4) {
            make_python(minor);
            identity = identity_of(take_hex(hex), first_line);
            assert_true(seep_python_lines_check(&python, &memory, &identity,
                                                code_bytes));
        } else if (strncmp(line, "lines ", 6) == 0) {
            checked[minor] += check_lines(&identity, line + 6, code_bytes);
        }
    }
    fclose(file);
    for (minor = 8; minor <= SEEP_PYTHON_MINOR_MAX; minor++) {
        assert_true(checked[minor] > 200);
    }
}

static void an_instruction_before_the_first_has_the_first_line(void **state)
{
    (void)state;
    for (unsigned int minor = 8; minor <= SEEP_PYTHON_MINOR_MAX; minor++) {
        struct seep_python_identity identity;
        int32_t line = 0;

        make_python(minor);
        identity = identity_of(0, 77);
        assert_true(seep_python_line(&python, &memory, &identity, -2, &line));
        assert_int_equal(line, 77);
    }
}

/* Any bytes: an answer or none, within the table, which ends at a page that
 * cannot be read. */
static void any_bytes_are_read_within_their_bounds(void **state)
{
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t random = 88172645463325252U;
    unsigned int refused = 0;

    (void)state;
    mprotect(pages + 4096, 4096, PROT_NONE);
    for (unsigned int i = 0; i < 20000; i++) {
        struct seep_python_identity identity;
        size_t bytes = i % 200;
        uint8_t *object = pages + 4096 - SEEP_PYTHON_BYTES_DATA - bytes;
        int32_t line;

        for (size_t j = 0; j < bytes; j++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            object[SEEP_PYTHON_BYTES_DATA + j] =
                (uint8_t)(i % 3 == 0 ? random : random | 0x80);
        }
        make_python(8 + i % 7);
        identity = identity_of(bytes, 1);
        identity.lines = (uintptr_t)object;
        seep_python_line(&python, &memory, &identity, (int32_t)(i % 999),
                         &line);
        refused += !seep_python_lines_check(&python, &memory, &identity, 64);
    }
    assert_true(refused > 15000);
    munmap(pages, 8192);
}

/* A name of @count characters of @width bytes each, behind its header. */
static void put_text(const void *characters, size_t count, unsigned int width,
                     bool ascii)
{
    size_t header = python.offsets.minor < 12 ? 48 : 40;
    int offset = python.offsets.minor < 11 ? python.offsets.code_name
                                           : python.offsets.code_qualname;

    header += ascii ? 0 : python.offsets.minor < 12 ? 24 : 16;
    text.size = count;
    memset(&text.data, 0, 64);
    text.data[0] = (uint8_t)(width << 2 | 1 << 5 | (ascii ? 1 << 6 : 0));
    memcpy((uint8_t *)&text + header, characters, count * width);
    memcpy((uint8_t *)code + offset, &(uintptr_t){(uintptr_t)&text}, 8);
    memcpy((uint8_t *)code + python.offsets.code_filename,
           &(uintptr_t){(uintptr_t)&text}, 8);
}

static bool get_text(enum seep_python_text which, size_t size,
                     const char *wanted)
{
    char buffer[512];
    size_t bytes = 0;

    assert_true(size < sizeof(buffer));
    memset(buffer, '#', sizeof(buffer));
    return seep_python_text(&python, &memory, (uintptr_t)code, which, buffer,
                            size, &bytes) &&
           strcmp(buffer, wanted) == 0 && bytes == strlen(wanted) &&
           buffer[size] == '#';
}

static void names_of_every_width_become_utf_8(void **state)
{
    static const uint16_t wide[] = {0x4e2d, 'a', 0xd800, 0x7ff};
    static const uint32_t wider[] = {0x1f600, 'z', 0xe9};

    (void)state;
    for (unsigned int minor = 8; minor <= SEEP_PYTHON_MINOR_MAX; minor++) {
        make_python(minor);
        put_text("plain", 5, 1, true);
        assert_true(get_text(SEEP_PYTHON_NAME, 64, "plain"));
        put_text("caf\xe9", 4, 1, false);
        assert_true(get_text(SEEP_PYTHON_NAME, 64, "caf\xc3\xa9"));
        put_text(wide, 4, 2, false);
        assert_true(get_text(SEEP_PYTHON_NAME, 64,
                             "\xe4\xb8\xad"
                             "a\xef\xbf\xbd\xdf\xbf"));
        put_text(wider, 3, 4, false);
        assert_true(
            get_text(SEEP_PYTHON_FILE, 64, "\xf0\x9f\x98\x80z\xc3\xa9"));
    }
}

static void what_is_too_long_is_cut_between_characters(void **state)
{
    static const uint32_t wide[] = {0x4e2d, 0x4e2d, 0x4e2d, 'x'};
    char many[300];

    (void)state;
    make_python(13);
    put_text("/srv/app/serve.py", 17, 1, true);
    assert_true(get_text(SEEP_PYTHON_FILE, 18, "/srv/app/serve.py"));
    assert_true(get_text(SEEP_PYTHON_FILE, 9, "serve.py"));
    assert_true(get_text(SEEP_PYTHON_NAME, 9, "/srv/app"));
    put_text(wide, 4, 4, false);
    assert_true(get_text(SEEP_PYTHON_NAME, 6, "\xe4\xb8\xad"));
    assert_true(get_text(SEEP_PYTHON_FILE, 6,
                         "\xe4\xb8\xad"
                         "x"));
    memset(many, 'm', sizeof(many));
    put_text(many, sizeof(many), 1, true);
    many[200] = '\0';
    assert_true(get_text(SEEP_PYTHON_NAME, 201, many));
    assert_true(get_text(SEEP_PYTHON_FILE, 201, many));
}

static void what_is_no_string_is_refused(void **state)
{
    (void)state;
    make_python(13);
    put_text("fine", 4, 1, true);
    assert_true(get_text(SEEP_PYTHON_NAME, 64, "fine"));
    text.type++;
    assert_false(get_text(SEEP_PYTHON_NAME, 64, "fine"));
    text.type--;
    text.size = UINT64_C(1) << 40;
    assert_false(get_text(SEEP_PYTHON_NAME, 64, "fine"));
    text.size = UINT64_MAX;
    assert_false(get_text(SEEP_PYTHON_NAME, 64, "fine"));
    text.size = 4;
    text.data[0] = 3 << 2 | 1 << 5; /* characters of 3 bytes */
    assert_false(get_text(SEEP_PYTHON_NAME, 64, "fine"));
    text.data[0] = 1 << 2; /* not compact */
    assert_false(get_text(SEEP_PYTHON_NAME, 64, "fine"));
}

static void pages_that_are_not_there_are_no_answer(void **state)
{
    struct seep_python_memory careful = {.budget = 4};
    uint8_t *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile uintptr_t nowhere = 8;
    uint64_t word = 1;

    (void)state;
    careful.pages = seep_python_pages_take(1);
    assert_non_null(careful.pages);
    assert_true(seep_python_pages_are_atomic(careful.pages));
    munmap(pages + 4096, 4096);
    pages[4095] = 9;
    assert_true(seep_python_read(&careful, &word, (uintptr_t)pages + 4088, 8));
    assert_true(word >> 56 == 9);
    assert_false(seep_python_read(&careful, &word, (uintptr_t)pages + 4092, 8));
    assert_false(seep_python_read(&careful, &word, nowhere, 8));
    assert_false(careful.spent);
    assert_true(seep_python_read(&careful, &word, (uintptr_t)pages + 8192, 8));
    assert_false(seep_python_read(&careful, &word, (uintptr_t)pages + 4096, 8));
    assert_false(seep_python_read(&careful, &word, (uintptr_t)&word, 8));
    assert_true(careful.spent);
    seep_python_pages_give(careful.pages);
    munmap(pages, 3 * 4096);
}

/* Wherever they lie: a stack reads a few in turns, a frame after a frame. */
static void while_there_is_room_a_page_is_copied_once(void **state)
{
    struct seep_python_memory careful = {.budget = SEEP_PYTHON_PIECES};
    size_t bytes = 5 * SEEP_PYTHON_PIECES * 4096UL;
    uint8_t *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    careful.pages = seep_python_pages_take(1);
    assert_non_null(careful.pages);
    for (int turn = 0; turn < 3; turn++) {
        for (uint64_t i = 0; i < SEEP_PYTHON_PIECES; i++) {
            uint64_t *there = (uint64_t *)(pages + i * 5 * 4096);
            uint64_t word = 0;

            *there = turn == 0 ? i : 0;
            assert_true(seep_python_read(&careful, &word, (uintptr_t)there, 8));
            assert_int_equal(word, i);
        }
    }
    assert_false(careful.spent);
    assert_int_equal(careful.budget, 0);
    seep_python_pages_give(careful.pages);
    munmap(pages, bytes);
}

/* The stacks of a thread are alike: one call copies what the one before was
 * read from, so that nothing of the budget is spent, and nothing is left from
 * it. */
static void what_the_stack_before_asked_for_is_copied_anew(void **state)
{
    struct seep_python_memory careful = {.budget = 3};
    uint64_t *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t word = 0;

    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (uint64_t turn = 1; turn <= 3; turn++) {
        careful.pages = seep_python_pages_take(1);
        assert_non_null(careful.pages);
        for (size_t i = 0; i < 3; i++) {
            pages[i * 512] = turn;
            assert_true(seep_python_read(&careful, &word,
                                         (uintptr_t)&pages[i * 512], 8));
            assert_int_equal(word, turn - (turn > 1));
        }
        seep_python_pages_give(careful.pages);
    }
    assert_int_equal(careful.budget, 0);
    munmap(&pages[512], 4096);
    careful.budget = 3;
    careful.pages = seep_python_pages_take(1);
    assert_true(seep_python_read(&careful, &word, (uintptr_t)pages, 8));
    assert_false(seep_python_read(&careful, &word, (uintptr_t)&pages[512], 8));
    assert_true(seep_python_read(&careful, &word, (uintptr_t)&pages[1024], 8));
    assert_int_equal(word, 3);
    seep_python_pages_give(careful.pages);
    munmap(pages, 3 * 4096);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_what_python_says),
        cmocka_unit_test(an_instruction_before_the_first_has_the_first_line),
        cmocka_unit_test(any_bytes_are_read_within_their_bounds),
        cmocka_unit_test(names_of_every_width_become_utf_8),
        cmocka_unit_test(what_is_too_long_is_cut_between_characters),
        cmocka_unit_test(what_is_no_string_is_refused),
        cmocka_unit_test(pages_that_are_not_there_are_no_answer),
        cmocka_unit_test(while_there_is_room_a_page_is_copied_once),
        cmocka_unit_test(what_the_stack_before_asked_for_is_copied_anew),
    };

    fixtures = argc > 1 ? argv[1] : "python_lines.txt";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
