/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inherited filters: what is believed of SEEP_FILTER, and what is called. Each
 * test is a child behind a filter that lets everything pass. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/syscall.h"
#include "preload/life.h"

#define TELLING (SEEP_CALL_BIT(fstat) | SEEP_CALL_BIT(write))
#define NOTHING (SEEP_CALLS_ALL & ~TELLING)
#define NO_FILTERS 77

static bool put_filter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = 1, .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* How many this process is behind; 0 where this kernel does not say. */
static unsigned count_filters(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    unsigned count = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        sscanf(line, "Seccomp_filters: %u", &count);
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

/* Exits with 0 if what is denied is @denied and the reason has @part. */
static void settle(unsigned more, const char *set, uint64_t denied,
                   const char *part)
{
    char variable[64];
    char *environment[] = {variable, NULL};
    unsigned before = count_filters();
    const char *reason;
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (!put_filter() || count_filters() != before + 1) {
            _exit(NO_FILTERS);
        }
        snprintf(variable, sizeof(variable), "SEEP_FILTER=%u%s",
                 before + 1 + more, set == NULL ? "" : set);
        reason =
            seep_filter_settle(set == NULL ? environment + 1 : environment);
        if (part == NULL ? reason != NULL
                         : reason == NULL || strstr(reason, part) == NULL) {
            _exit(1);
        }
        _exit(seep_calls_denied == denied ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTERS) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void without_a_filter_nothing_is_denied(void **state)
{
    char *environment[] = {NULL};

    (void)state;
    if (prctl(PR_GET_SECCOMP) != 0) {
        skip();
    }
    assert_null(seep_filter_settle(environment));
    assert_int_equal(seep_calls_denied, 0);
}

static void what_was_tried_is_believed(void **state)
{
    (void)state;
    settle(0, ":0", 0, NULL);
    settle(0, ":", 0, NULL);
}

static void what_kills_is_not_called(void **state)
{
    char set[32];

    (void)state;
    snprintf(set, sizeof(set), ":%llx",
             (unsigned long long)SEEP_CALL_BIT(linkat));
    settle(0, set, SEEP_CALL_BIT(linkat), NULL);
}

static void without_what_is_needed_hardly_anything_is_called(void **state)
{
    char set[32];

    (void)state;
    snprintf(set, sizeof(set), ":%llx",
             (unsigned long long)SEEP_CALL_BIT(openat));
    settle(0, set, NOTHING, "is needed");
}

/* It would end the process to say why. */
static void what_kills_is_not_called_to_say_so_either(void **state)
{
    char set[32];

    (void)state;
    snprintf(set, sizeof(set), ":%llx",
             (unsigned long long)(SEEP_CALL_BIT(openat) | TELLING));
    settle(0, set, SEEP_CALLS_ALL, "is needed");
}

static void a_filter_more_is_not_known(void **state)
{
    (void)state;
    settle(1, ":0", NOTHING, "may kill");
}

static void a_word_that_is_none_is_not_believed(void **state)
{
    (void)state;
    settle(0, "", NOTHING, "may kill");
    settle(0, ":xyz", NOTHING, "may kill");
    settle(0, ":0 ", NOTHING, "may kill");
    settle(0, ":AB", NOTHING, "may kill");
    settle(0, NULL, NOTHING, "may kill");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_filter_nothing_is_denied),
        cmocka_unit_test(what_was_tried_is_believed),
        cmocka_unit_test(what_kills_is_not_called),
        cmocka_unit_test(without_what_is_needed_hardly_anything_is_called),
        cmocka_unit_test(what_kills_is_not_called_to_say_so_either),
        cmocka_unit_test(a_filter_more_is_not_known),
        cmocka_unit_test(a_word_that_is_none_is_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
