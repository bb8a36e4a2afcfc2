/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a pc to its entry, in sections that are built here, whole and damaged.
 *
 * The image lies at the end of a mapping, with nothing readable around it: a
 * read outside is a SIGSEGV, with or without a sanitizer.
 */
#include "seep_test.h"

#include <string.h>
#include <sys/mman.h>

#include "capture/native/cfi.h"

#define PAGE_BYTES 4096U
#define CODE_OFFSET 0x10000 /* the code, seen from the hdr; never read */
#define FUNCTIONS 3U

struct fixture {
    uint8_t *map;
    struct seep_cfi_section section;
    size_t size;
    uint8_t *frames; /* the CIE; the FDEs follow */
};

static void put4(uint8_t **at, uint32_t value)
{
    memcpy(*at, &value, 4);
    *at += 4;
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

/* 12 bytes of hdr, 3 table entries, a CIE "zPLR" and three FDEs of 0x20 bytes
 * of code each, 0x40 apart. */
static size_t build(uint8_t *image, uint8_t **ret_frames)
{
    static const uint8_t head[] = {1, 0x1b, 0x03, 0x3b};
    static const uint8_t common[] = {
        1, 'z',  'P',  'L', 'R', 0, 1,    0x78, SEEP_CFI_RETURN,
        7, 0x9b, 1,    2,   3,   4, 0x1b, 0x1b, 0x0c,
        7, 8,    0x90, 1,   0,   0, 0};
    uint8_t *at = put(image, head, sizeof(head));
    uint8_t *table = at + 8;
    uint8_t *cie = table + FUNCTIONS * 8;

    put4(&at, (uint32_t)(cie - at));
    put4(&at, FUNCTIONS);
    at = cie;
    put4(&at, 4 + sizeof(common));
    put4(&at, 0);
    at = put(at, common, sizeof(common));
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        static const uint8_t own[] = {4, 0, 0, 0, 0, 0x41, 0x0e, 16, 0, 0, 0};
        uint32_t code = CODE_OFFSET + i * 0x40;

        put4(&table, code);
        put4(&table, (uint32_t)(at - image));
        put4(&at, 12 + sizeof(own));
        put4(&at, (uint32_t)(at - cie));
        put4(&at, code - (uint32_t)(at - image));
        put4(&at, 0x20);
        at = put(at, own, sizeof(own));
    }
    *ret_frames = cie;
    return (size_t)(at - image);
}

static int setup(void **state)
{
    static struct fixture fixture;
    uint8_t image[PAGE_BYTES] __attribute__((aligned(8)));
    uint8_t *frames;
    uint8_t *base;

    fixture.map = mmap(NULL, 3 * PAGE_BYTES, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(fixture.map, MAP_FAILED);
    mprotect(fixture.map + PAGE_BYTES, PAGE_BYTES, PROT_READ | PROT_WRITE);
    fixture.size = build(image, &frames);
    base = fixture.map + 2 * PAGE_BYTES - fixture.size;
    memcpy(base, image, fixture.size);
    fixture.frames = base + (frames - image);
    fixture.section.hdr = base;
    fixture.section.low = base;
    fixture.section.high = base + fixture.size;
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    return munmap(fixture->map, 3 * PAGE_BYTES);
}

static enum seep_cut find(const struct fixture *fixture, unsigned int offset,
                          struct seep_cfi_entry *entry)
{
    return seep_cfi_find(&fixture->section,
                         (uintptr_t)fixture->section.hdr + CODE_OFFSET + offset,
                         entry);
}

static void each_function_is_found_by_any_of_its_addresses(void **state)
{
    struct fixture *fixture = *state;
    uintptr_t code = (uintptr_t)fixture->section.hdr + CODE_OFFSET;

    for (unsigned int i = 0; i < FUNCTIONS; i++) {
        for (unsigned int at = 0; at < 0x20; at++) {
            struct seep_cfi_entry entry;
            struct seep_cfi_row row;

            assert_int_equal(find(fixture, i * 0x40 + at, &entry),
                             SEEP_CUT_NONE);
            assert_int_equal(entry.pc_low, code + i * 0x40);
            assert_int_equal(entry.pc_high, code + i * 0x40 + 0x20);
            assert_false(entry.signal_frame);
            assert_int_equal(seep_cfi_run(&entry, entry.pc_low + at, &row),
                             SEEP_CUT_NONE);
            assert_int_equal(row.cfa.offset, at == 0 ? 8 : 16);
        }
    }
}

static void code_between_functions_has_no_rule(void **state)
{
    struct fixture *fixture = *state;
    struct seep_cfi_entry entry;

    assert_int_equal(find(fixture, 0x20, &entry), SEEP_CUT_NO_RULE);
    assert_int_equal(find(fixture, 0x3f, &entry), SEEP_CUT_NO_RULE);
    assert_int_equal(find(fixture, 0x40 * 40, &entry), SEEP_CUT_NO_RULE);
    assert_int_equal(find(fixture, 0U - 1U, &entry), SEEP_CUT_NO_RULE);
    assert_int_equal(seep_cfi_find(&fixture->section, 16, &entry),
                     SEEP_CUT_NO_RULE);
}

static void a_signal_frame_says_so(void **state)
{
    struct fixture *fixture = *state;
    struct seep_cfi_entry entry;

    /* Without a personality the encoding is the first byte of the data. */
    memcpy(fixture->frames + 9, "zSSR", 4);
    fixture->frames[18] = 0x1b;
    assert_int_equal(find(fixture, 0, &entry), SEEP_CUT_NONE);
    assert_true(entry.signal_frame);
}

static void a_table_of_another_shape_is_refused(void **state)
{
    struct fixture *fixture = *state;
    uint8_t *hdr = fixture->map + 2 * PAGE_BYTES - fixture->size;
    struct seep_cfi_entry entry;

    hdr[3] = 0xff;
    assert_int_equal(find(fixture, 0, &entry), SEEP_CUT_NO_RULE);
    hdr[3] = 0x3b;
    hdr[0] = 2;
    assert_int_equal(find(fixture, 0, &entry), SEEP_CUT_MALFORMED);
    hdr[0] = 1;
    memset(hdr + 8, 0xff, 4);
    assert_int_equal(find(fixture, 0, &entry), SEEP_CUT_MALFORMED);
}

static void a_section_cut_short_is_never_read_beyond(void **state)
{
    struct fixture *fixture = *state;
    uint8_t *end = fixture->map + 2 * PAGE_BYTES;
    struct seep_cfi_entry entry;
    struct seep_cfi_row row;

    for (size_t size = 0; size <= fixture->size; size++) {
        struct seep_cfi_section cut = {end - size, end - size, end, 0};

        /* Its last bytes are those before the unreadable page. */
        memmove(end - size, fixture->section.hdr, size);
        for (unsigned int at = 0; at < 0xc0; at += 0x20) {
            uintptr_t pc = (uintptr_t)cut.hdr + CODE_OFFSET + at;

            if (seep_cfi_find(&cut, pc, &entry) == SEEP_CUT_NONE) {
                seep_cfi_run(&entry, pc, &row);
            }
        }
        teardown(state);
        setup(state);
        fixture = *state;
        end = fixture->map + 2 * PAGE_BYTES;
    }
}

/* Any single byte wrong, to any value: answered, and nothing read outside. */
static void a_damaged_byte_is_survived(void **state)
{
    struct fixture *fixture = *state;
    uint8_t *image = fixture->map + 2 * PAGE_BYTES - fixture->size;
    struct seep_cfi_entry entry;
    struct seep_cfi_row row;

    for (size_t i = 0; i < fixture->size; i++) {
        uint8_t whole = image[i];

        for (unsigned int value = 0; value < 256; value++) {
            image[i] = (uint8_t)value;
            for (unsigned int at = 0; at < 0xa0; at += 0x21) {
                uintptr_t pc = (uintptr_t)image + CODE_OFFSET + at;

                if (find(fixture, at, &entry) == SEEP_CUT_NONE) {
                    seep_cfi_run(&entry, pc, &row);
                }
            }
        }
        image[i] = whole;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            each_function_is_found_by_any_of_its_addresses, setup, teardown),
        cmocka_unit_test_setup_teardown(code_between_functions_has_no_rule,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_signal_frame_says_so, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_table_of_another_shape_is_refused,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_section_cut_short_is_never_read_beyond, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_byte_is_survived, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
