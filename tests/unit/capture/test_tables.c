/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Unwind tables of large objects: read in a mapping of our own, which says the
 * same, and given back; the object's own pages are left alone.
 */
#include "seep_test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "capture/native/elf.h"
#include "capture/native/rule.h"

#define PAGE ((uintptr_t)4096)
#define FUNCTIONS 50000U
#define FUNCTION_BYTES 16U
#define STEP 97U

/* A library of large_tables.S, loaded. */
struct library {
    void *handle;
    uintptr_t code;
    unsigned int variant;
    struct seep_elf_image image;
    uintptr_t low; /* of its tables */
    uintptr_t high;
};

static char folder[] = "/tmp/seep-test-tables-XXXXXX";

static struct library load(const char *path, unsigned int variant)
{
    struct library library = {.handle = dlopen(path, RTLD_NOW),
                              .variant = variant};
    uintptr_t hdr;

    assert_non_null(library.handle);
    library.code = (uintptr_t)dlsym(library.handle, "large_tables_code");
    assert_true(seep_objects_find(library.code, &library.image));
    hdr = (uintptr_t)library.image.eh_frame_hdr;
    assert_true(
        seep_elf_segment(&library.image, hdr, &library.low, &library.high));
    return library;
}

static void unload(struct library *library)
{
    seep_objects_unload_begin();
    assert_int_equal(dlclose(library->handle), 0);
    seep_objects_unload_end();
}

/* Under a name of its own: what has the same is loaded once. */
static const char *copy(const char *from, const char *name)
{
    static char path[sizeof(folder) + 64];
    char command[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    snprintf(command, sizeof(command), "cp '%s' '%s'", from, path);
    assert_int_equal(system(command), 0); /* NOLINT: of names that are ours */
    return path;
}

/* All rules that are asked for, against what the code does. */
static void expect_rules(const struct library *library)
{
    for (unsigned int i = 0; i < FUNCTIONS; i += STEP) {
        uintptr_t back = library->code + (uintptr_t)i * FUNCTION_BYTES + 6;
        struct seep_cfi_entry entry;
        struct seep_cfi_row row;
        bool is_signal;

        assert_int_equal(seep_rule_row(back, &row, &is_signal), SEEP_CUT_NONE);
        assert_int_equal(row.cfa.base, SEEP_CFI_SP);
        assert_int_equal(row.cfa.offset, 16 * (1 + (i + library->variant) % 4));
        assert_int_equal(seep_rule_entry(back, &entry), SEEP_CUT_NONE);
        assert_true(entry.pc_low ==
                    library->code + (uintptr_t)i * FUNCTION_BYTES);
        assert_true(back < entry.pc_high);
    }
}

/* Pages that this process is charged for. */
static size_t resident(uintptr_t low, uintptr_t high)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t count = 0;

    assert_true(fd >= 0);
    for (uintptr_t page = low / PAGE; page < (high + PAGE - 1) / PAGE; page++) {
        uint64_t word = 0;

        assert_int_equal(pread(fd, &word, sizeof(word), (off_t)(page * 8)), 8);
        count += word >> 63;
    }
    close(fd);
    return count;
}

/* The last mapping of that file outside of the object. @return false: none */
static bool find_own(const struct library *library, const char *name,
                     uintptr_t *ret_low, uintptr_t *ret_high)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[1024];
    bool found = false;

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned long low;
        unsigned long high;

        if (strstr(line, name) != NULL &&
            sscanf(line, "%lx-%lx", &low, &high) == 2 && /* NOLINT */
            (low < library->image.start || low >= library->image.end)) {
            *ret_low = low;
            *ret_high = high;
            found = true;
        }
    }
    fclose(maps);
    return found;
}

static void they_are_read_elsewhere_and_say_the_same(void **state)
{
    struct library library = load(copy(FIRST, "read.so"), 0);
    size_t before = resident(library.low, library.high);
    uintptr_t low;
    uintptr_t high;

    (void)state;
    expect_rules(&library);
    assert_int_equal(resident(library.low, library.high), before);
    assert_true(find_own(&library, "read.so", &low, &high));
    assert_true(high - low >= (uintptr_t)1 << 20);
    assert_true(resident(low, high) > 64);
}

static void what_was_read_is_given_back_and_can_be_read_again(void **state)
{
    struct library library = load(copy(FIRST, "back.so"), 0);
    uintptr_t low;
    uintptr_t high;

    (void)state;
    expect_rules(&library);
    assert_true(find_own(&library, "back.so", &low, &high));
    seep_tables_give_back();
    assert_int_equal(resident(low, high), 0);
    expect_rules(&library);
    assert_true(resident(low, high) > 0);
}

/* Also where the last look is the one that gave the others' pages back. */
static void nothing_stays_however_often_they_were_looked_at(void **state)
{
    struct library library = load(copy(FIRST, "often.so"), 0);
    unsigned int next = 0;
    uintptr_t low;
    uintptr_t high;

    (void)state;
    expect_rules(&library);
    assert_true(find_own(&library, "often.so", &low, &high));
    for (unsigned int looks = 120; looks < 270; looks++) {
        seep_tables_give_back();
        for (unsigned int i = 0; i < looks; i++, next += STEP) {
            struct seep_cfi_row row;
            bool is_signal;

            assert_int_equal(seep_rule_row(library.code +
                                               (uintptr_t)(next % FUNCTIONS) *
                                                   FUNCTION_BYTES +
                                               6,
                                           &row, &is_signal),
                             SEEP_CUT_NONE);
        }
        seep_tables_give_back();
        assert_int_equal(resident(low, high), 0);
    }
}

static void what_somebody_wrote_into_the_tables_stays(void **state)
{
    struct library library = load(copy(FIRST, "written.so"), 0);
    uintptr_t page = (library.high - 1) & ~(PAGE - 1);
    volatile uint8_t *byte = (volatile uint8_t *)page;
    uint8_t written = (uint8_t)(*byte ^ 0x5a);

    (void)state;
    assert_int_equal(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE), 0);
    *byte = written;
    expect_rules(&library);
    seep_tables_give_back();
    assert_int_equal(*byte, written);
}

static void a_file_that_is_another_by_now_is_not_read(void **state)
{
    struct library library = load(copy(FIRST, "other.so"), 0);
    char path[sizeof(folder) + 64];
    uintptr_t low;
    uintptr_t high;

    (void)state;
    snprintf(path, sizeof(path), "%s/other.so", folder);
    assert_int_equal(rename(copy(SECOND, "moved.so"), path), 0);
    expect_rules(&library);
    assert_false(find_own(&library, "other.so", &low, &high));
}

/* Most likely at the address of the first, which is asked for here. */
static void another_object_at_the_same_address_is_another(void **state)
{
    struct library first = load(copy(FIRST, "first.so"), 0);
    struct library second;
    uintptr_t start = first.image.start;

    (void)state;
    expect_rules(&first);
    unload(&first);
    second = load(copy(SECOND, "second.so"), 1);
    if (second.image.start != start) {
        skip();
    }
    expect_rules(&second);
}

static void the_file_of_what_was_unloaded_is_let_go(void **state)
{
    struct library library = load(copy(FIRST, "gone.so"), 0);
    uintptr_t low;
    uintptr_t high;

    (void)state;
    expect_rules(&library);
    assert_true(find_own(&library, "gone.so", &low, &high));
    seep_tables_give_back(); /* it is still there */
    assert_true(find_own(&library, "gone.so", &low, &high));
    unload(&library);
    seep_tables_give_back();
    assert_false(find_own(&library, "gone.so", &low, &high));
    assert_int_equal(*(volatile uint8_t *)low, 0); /* and the addresses stay */
    library = load(copy(FIRST, "gone.so"), 0);
    expect_rules(&library);
    assert_true(find_own(&library, "gone.so", &low, &high));
}

/* In a child, whose limit nobody else has. */
static void who_has_few_addresses_keeps_them(void **state)
{
    const char *path = copy(FIRST, "few.so");
    pid_t child = fork();
    int status = 0;

    (void)state;
    if (child == 0) {
        struct library library = load(path, 0);
        struct rlimit limit = {(rlim_t)1 << 44, RLIM_INFINITY};
        uintptr_t low;
        uintptr_t high;

        setrlimit(RLIMIT_AS, &limit);
        expect_rules(&library);
        _exit(find_own(&library, "few.so", &low, &high) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* In a child, which is restricted for good. */
static void no_call_is_made_where_calls_are_not_welcome(void **state)
{
    const char *path = copy(FIRST, "restricted.so");
    pid_t child = fork();
    int status = 0;

    (void)state;
    if (child == 0) {
        struct library library = load(path, 0);
        uintptr_t low;
        uintptr_t high;

        seep_tables_restrict();
        expect_rules(&library);
        _exit(find_own(&library, "restricted.so", &low, &high) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A program goes on from where it stood; of what has none behind it, it begins
 * again. */
static void rows_are_the_same_in_whatever_order_they_are_asked_for(void **state)
{
    uintptr_t code = (uintptr_t)dlsym(RTLD_DEFAULT, "vfwprintf");
    uint64_t random = 1;

    (void)state;
    assert_true(code != 0);
    for (unsigned int i = 0; i < 20000; i++) {
        uintptr_t pc = i < 4000   ? code + i
                       : i < 8000 ? code + 8000 - i
                                  : code + seep_hash_random(&random) % 4000;
        struct seep_cfi_entry entry;
        struct seep_cfi_row wanted;
        struct seep_cfi_row row;
        bool is_signal;

        if (seep_rule_entry(pc, &entry) == SEEP_CUT_NONE) {
            assert_int_equal(seep_cfi_run(&entry, pc, &wanted), SEEP_CUT_NONE);
            assert_int_equal(seep_rule_row(pc, &row, &is_signal),
                             SEEP_CUT_NONE);
            assert_memory_equal(&row, &wanted, sizeof(row));
        }
    }
}

static int make_folder(void **state)
{
    (void)state;
    seep_objects_init();
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    char command[sizeof(folder) + 32];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command); /* NOLINT: of a name that is ours */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_read_elsewhere_and_say_the_same),
        cmocka_unit_test(what_was_read_is_given_back_and_can_be_read_again),
        cmocka_unit_test(nothing_stays_however_often_they_were_looked_at),
        cmocka_unit_test(what_somebody_wrote_into_the_tables_stays),
        cmocka_unit_test(a_file_that_is_another_by_now_is_not_read),
        cmocka_unit_test(another_object_at_the_same_address_is_another),
        cmocka_unit_test(the_file_of_what_was_unloaded_is_let_go),
        cmocka_unit_test(who_has_few_addresses_keeps_them),
        cmocka_unit_test(
            rows_are_the_same_in_whatever_order_they_are_asked_for),
        cmocka_unit_test(no_call_is_made_where_calls_are_not_welcome),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
