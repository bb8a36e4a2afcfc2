/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What limits leave, and tables that are mapped when they are needed. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/place.h"

#define MIB (UINT64_C(1) << 20)
#define NO_LIMIT UINT64_MAX

/* What is refused once is refused for good: each in a child of its own. */
static void in_a_child(void (*test)(void))
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        test();
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void must(bool holds)
{
    if (!holds) {
        _exit(1);
    }
}

static void limit(__rlimit_resource_t which, uint64_t bytes)
{
    const struct rlimit to = {bytes, RLIM_INFINITY};

    must(setrlimit(which, &to) == 0);
}

static void make_one(void)
{
    static seep_own_table table;
    const uint64_t *words;

    must(seep_own_get(&table) == NULL);
    words = seep_own_make(&table, MIB);
    must(words != NULL && (uintptr_t)words % 64 == 0);
    must(words[0] == 0 && words[MIB / 8 - 1] == 0);
    must(seep_own_get(&table) == words);
    must(seep_own_make(&table, MIB) == words);
    must(seep_own_is_head((const struct seep_own_head *)words - 1));
    must(!seep_own_is_head(words));
}

static void a_table_is_made_once_and_says_what_it_is(void **state)
{
    (void)state;
    in_a_child(make_one);
}

#ifndef SEEP_SANITIZED
static void make_two(void)
{
    static seep_own_table tables[3];

    limit(RLIMIT_DATA, 64 * MIB);
    must(seep_own_make(&tables[0], 3 * MIB) != NULL);
    must(seep_own_make(&tables[1], MIB) == NULL); /* with their heads */
    limit(RLIMIT_DATA, RLIM_INFINITY);
    must(seep_own_make(&tables[1], 1) == NULL); /* nobody asks again */
    must(seep_own_make_needed(&tables[2], MIB) != NULL);
}

static void of_a_limit_a_sixteenth_is_taken_at_the_most(void **state)
{
    (void)state;
    in_a_child(make_two);
}
#endif

static void make_none(void)
{
    static seep_own_table table;

    seep_own_restrict();
    must(seep_own_make(&table, 64) == NULL);
}

static void who_is_restricted_gets_none(void **state)
{
    (void)state;
    in_a_child(make_none);
}

static void read_limits(void)
{
    limit(RLIMIT_AS, 1100 * MIB);
    limit(RLIMIT_DATA, 700 * MIB);
    must(seep_own_limits_now().address_bytes == 1100 * MIB);
    must(seep_place_limits().data_bytes == 700 * MIB);
}

static void which_limit_it_is_is_told(void **state)
{
    const struct seep_own_limits none = {NO_LIMIT, NO_LIMIT, NO_LIMIT};
    const struct seep_own_limits some = {320 * MIB, 160 * MIB, 80 * MIB};

    (void)state;
    in_a_child(read_limits);
    assert_int_equal(seep_own_lacks(&none, UINT64_C(1) << 40, MIB),
                     SEEP_OWN_NO_LIMIT);
    assert_int_equal(seep_own_lacks(&some, 20 * MIB, 5 * MIB),
                     SEEP_OWN_NO_LIMIT);
    assert_int_equal(seep_own_lacks(&some, 20 * MIB + 1, 5 * MIB),
                     SEEP_OWN_ADDRESSES);
    assert_int_equal(seep_own_lacks(&some, 20 * MIB, 10 * MIB + 1),
                     SEEP_OWN_DATA);
    assert_int_equal(seep_own_lacks(&some, 20 * MIB, 5 * MIB + 1),
                     SEEP_OWN_COMMIT);
}

static void what_the_machine_still_commits_to_is_read(void **state)
{
    static const char meminfo[] = "MemTotal:       16000000 kB\n"
                                  "CommitLimit:     9000000 kB\n"
                                  "Committed_AS:    8000000 kB\n";
    static const char full[] = "x\nCommitLimit: 900 kB\nCommitted_AS: 901 kB\n";

    (void)state;
    assert_int_equal(seep_place_commit_left("2\n", meminfo), UINT64_C(1000000)
                                                                 << 10);
    assert_int_equal(seep_place_commit_left("0\n", meminfo), NO_LIMIT);
    assert_int_equal(seep_place_commit_left("1\n", meminfo), NO_LIMIT);
    assert_int_equal(seep_place_commit_left("", ""), NO_LIMIT);
    assert_int_equal(seep_place_commit_left("2\n", ""), NO_LIMIT);
    assert_int_equal(seep_place_commit_left("2\n", full), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_made_once_and_says_what_it_is),
#ifndef SEEP_SANITIZED /* whose own memory is beyond any limit */
        cmocka_unit_test(of_a_limit_a_sixteenth_is_taken_at_the_most),
#endif
        cmocka_unit_test(who_is_restricted_gets_none),
        cmocka_unit_test(which_limit_it_is_is_told),
        cmocka_unit_test(what_the_machine_still_commits_to_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
