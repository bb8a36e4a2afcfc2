/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The mappings of a process, of any kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/process/sample.h"
#include "seep_test.h"

#define KIB 1024U
#define MIB (1024U * KIB)

static const char linux_3_10[] =
    "00400000-0040b000 r-xp 00000000 fd:00 1234       /usr/bin/my server\n"
    "Size:                 44 kB\n"
    "Rss:                  40 kB\n"
    "Pss:                  40 kB\n"
    "Anonymous:             0 kB\n"
    "AnonHugePages:         0 kB\n"
    "Swap:                  0 kB\n"
    "VmFlags: rd ex mr mw me dw \n"
    "7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n"
    "Size:               1024 kB\n"
    "Rss:                 512 kB\n"
    "Anonymous:           508 kB\n"
    "Swap:                 64 kB\n";

static const char linux_6_18[] =
    "7ffe00000000-7ffe00021000 rw-p 00000000 00:00 0"
    "                          [stack]\n"
    "Size:                132 kB\n"
    "KernelPageSize:        4 kB\n"
    "Rss:                  16 kB\n"
    "Pss:                  16 kB\n"
    "Pss_Dirty:            16 kB\n"
    "Anonymous:            16 kB\n"
    "KSM:                   0 kB\n"
    "LazyFree:              0 kB\n"
    "Swap:                  0 kB\n"
    "SwapPss:              99 kB\n"
    "THPeligible:           0\n"
    "VmFlags: rd wr mr mw me gd ac sd \n"
    "7fff00000000-7fff00001000 ---p 00000000 00:00 0 \n"
    "Rss:                   0 kB\n"
    "Anonymous:             0 kB\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0"
    "                  [vsyscall]\n"
    "Rss:                   4 kB\n";

static void read_text(enum seep_smaps_kind kind, const char *text,
                      size_t length, struct seep_smaps *smaps)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, length, "r");

    assert_non_null(file);
    assert_int_equal(seep_smaps_read(file, kind, smaps), 0);
    fclose(file);
}

static void an_old_kernels_mappings_are_read(void **state)
{
    struct seep_smaps smaps;

    (void)state;
    read_text(SEEP_SMAPS, linux_3_10, strlen(linux_3_10), &smaps);

    assert_int_equal(smaps.count, 2);
    assert_string_equal(smaps.mappings[0].name, "/usr/bin/my server");
    assert_int_equal(smaps.mappings[0].inode, 1234);
    assert_int_equal(smaps.mappings[0].start, 0x400000);
    assert_int_equal(smaps.mappings[0].end, 0x40b000);
    assert_int_equal(smaps.mappings[0].rss_bytes, 40 * KIB);
    assert_string_equal(smaps.mappings[1].name, "");
    assert_int_equal(smaps.mappings[1].anonymous_bytes, 508 * KIB);
    assert_int_equal(smaps.mappings[1].swap_bytes, 64 * KIB);
    seep_smaps_fini(&smaps);
}

static void keys_of_later_kernels_do_no_harm(void **state)
{
    struct seep_smaps smaps;

    (void)state;
    read_text(SEEP_SMAPS, linux_6_18, strlen(linux_6_18), &smaps);

    assert_int_equal(smaps.count, 2);
    assert_string_equal(smaps.mappings[0].name, "[stack]");
    assert_int_equal(smaps.mappings[0].swap_bytes, 0);
    assert_string_equal(smaps.mappings[1].name, "[vsyscall]");
    assert_true(smaps.mappings[1].start == UINT64_C(0xffffffffff600000));
    seep_smaps_fini(&smaps);
}

static void of_maps_what_cannot_grow_is_left_out(void **state)
{
    static const char *const text =
        "10000-20000 r-xp 00000000 fd:00 12       /usr/bin/server\n"
        "20000-30000 ---p 00000000 00:00 0 \n"
        "30000-40000 rw-p 00000000 00:00 0 \n"
        "100000000-200000000 r--s 00000000 fd:00 13   /model\n"
        "200000000-300000000 rw-s 00000000 00:06 14   /dev/nvidia0\n"
        "300000000-300010000 rw-s 00000000 00:06 15   /dev/shm/ring\n"
        "400000000-400000000000 rw-p 00000000 00:00 0 \n";
    struct seep_smaps smaps;

    (void)state;
    read_text(SEEP_MAPS, text, strlen(text), &smaps);

    assert_int_equal(smaps.count, 3);
    assert_string_equal(smaps.mappings[0].name, "/usr/bin/server");
    assert_int_equal(smaps.mappings[1].start, 0x30000);
    assert_string_equal(smaps.mappings[2].name, "/dev/shm/ring");
    assert_int_equal(seep_smaps_select(smaps.mappings, smaps.count, 9), 0);
    smaps.count = 0;
    seep_smaps_fini(&smaps);
}

static void a_text_cut_anywhere_is_no_harm(void **state)
{
    (void)state;
    for (size_t length = 0; length <= strlen(linux_6_18); length++) {
        struct seep_smaps smaps;

        read_text(SEEP_SMAPS, linux_6_18, length, &smaps);
        assert_true(smaps.count <= 2);
        seep_smaps_fini(&smaps);
    }
}

static void a_name_longer_than_a_path_is_cut(void **state)
{
    struct seep_smaps smaps;
    char *text = malloc(20000);

    (void)state;
    strcpy(text, "1000-2000 rw-p 00000000 00:01 7 /");
    memset(text + strlen(text), 'a', 19000);
    strcpy(text + 19000, "\nRss: 4 kB\n");

    read_text(SEEP_SMAPS, text, strlen(text), &smaps);
    assert_int_equal(smaps.count, 1);
    assert_int_equal(strlen(smaps.mappings[0].name), 511);
    assert_int_equal(smaps.mappings[0].rss_bytes, 4 * KIB);
    seep_smaps_fini(&smaps);
    free(text);
}

static void what_is_no_mapping_opens_none(void **state)
{
    static const char text[] =
        "Rss: 4 kB\n-\n5-\n5-4 r\n2000-1000 rw-p 0 0:0 0\n"
        "zz-zzz rw-p\n\n\n1000-2000\nRss: 4 kB\n";
    struct seep_smaps smaps;

    (void)state;
    read_text(SEEP_SMAPS, text, strlen(text), &smaps);

    assert_int_equal(smaps.count, 0);
    seep_smaps_fini(&smaps);
}

static struct seep_external_mapping *make(size_t count, uint64_t step_bytes,
                                          uint64_t rss_bytes, const char *name)
{
    struct seep_external_mapping *mappings = calloc(count, sizeof(*mappings));

    for (size_t i = 0; i < count; i++) {
        mappings[i].start = 0x10000 + i * step_bytes;
        mappings[i].end = mappings[i].start + 0x10000;
        mappings[i].rss_bytes = rss_bytes;
        mappings[i].name = strdup(name);
    }
    return mappings;
}

static void release(struct seep_external_mapping *mappings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(mappings[i].name);
    }
    free(mappings);
}

static void few_mappings_stay_as_they_are(void **state)
{
    struct seep_external_mapping *mappings = make(10, 0x20000, 1, "");

    (void)state;
    assert_int_equal(seep_smaps_select(mappings, 10, 10), 10);
    release(mappings, 10);
}

/* 64 KiB each, unmergeable: none is large, all together are a leak. */
static void ten_thousand_small_ones_become_one(void **state)
{
    struct seep_external_mapping *mappings = make(10000, 0x20000, 64 * KIB, "");

    (void)state;
    assert_int_equal(seep_smaps_select(mappings, 10000, 256), 1);
    assert_int_equal(mappings[0].start, 0x10000);
    assert_int_equal(mappings[0].end, 0x10000 + 9999 * 0x20000 + 0x10000);
    assert_int_equal(mappings[0].rss_bytes, 10000 * 64 * KIB);
    release(mappings, 1);
}

static void a_large_anonymous_one_stays_alone(void **state)
{
    struct seep_external_mapping *mappings = make(300, 0x10000, KIB, "");

    (void)state;
    mappings[100].rss_bytes = 5 * MIB;

    assert_int_equal(seep_smaps_select(mappings, 300, 256), 3);

    assert_int_equal(mappings[1].rss_bytes, 5 * MIB);
    assert_int_equal(mappings[0].rss_bytes, 100 * KIB);
    assert_int_equal(mappings[2].rss_bytes, 199 * KIB);
    release(mappings, 3);
}

static void the_largest_stay_by_address(void **state)
{
    struct seep_external_mapping *mappings = make(100, 0x10000, KIB, "");
    uint64_t last = 0;

    (void)state;
    for (size_t i = 0; i < 100; i++) {
        mappings[i].name = realloc(mappings[i].name, 16);
        snprintf(mappings[i].name, 16, "/file%zu", i);
        mappings[i].rss_bytes = (i * 37 % 50) * KIB;
    }

    assert_int_equal(seep_smaps_select(mappings, 100, 9), 9);

    for (size_t i = 0; i < 9; i++) {
        assert_true(mappings[i].rss_bytes >= 45 * KIB);
        assert_true(mappings[i].start > last);
        last = mappings[i].start;
    }
    release(mappings, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_kernels_mappings_are_read),
        cmocka_unit_test(keys_of_later_kernels_do_no_harm),
        cmocka_unit_test(of_maps_what_cannot_grow_is_left_out),
        cmocka_unit_test(a_text_cut_anywhere_is_no_harm),
        cmocka_unit_test(a_name_longer_than_a_path_is_cut),
        cmocka_unit_test(what_is_no_mapping_opens_none),
        cmocka_unit_test(few_mappings_stay_as_they_are),
        cmocka_unit_test(ten_thousand_small_ones_become_one),
        cmocka_unit_test(a_large_anonymous_one_stays_alone),
        cmocka_unit_test(the_largest_stay_by_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
