/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which of the recorder's system calls an inherited filter kills for: a child
 * of ours makes each.
 *
 * Invariant: without a filter no child is made.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/syscall.h"
#include "run/launch.h"

#define MODE_FILTER 2

static const struct {
    const char *name;
    long number;
    long first;
    long second;
} calls[] = {
#define CALL(name, need, first, second) {#name, SYS_##name, first, second},
    SEEP_CALLS(CALL)
#undef CALL
};

/* No core file of it: but the limit is set only where that may be done. */
static bool kills(size_t index, bool may_limit)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (may_limit) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        }
        /* a mask of 8 bytes, a file system's no path: each ends in an error */
        seep_syscall_forward(calls[index].number, calls[index].first,
                             calls[index].second, 0, 0, 0, 0);
        _exit(0);
    }
    return pid < 0 || waitpid(pid, &status, 0) != pid || WIFSIGNALED(status);
}

static long number_behind(const char *text, const char *key)
{
    const char *line = strstr(text, key);

    return line == NULL ? 0 : strtol(line + strlen(key), NULL, 10);
}

bool seep_launch_try_calls(struct seep_launch_calls *ret_calls)
{
    struct seep_launch_calls found = {0};
    static char status[1 << 19]; /* with up to 65,536 groups */
    FILE *file = fopen("/proc/self/status", "re");
    size_t length =
        file == NULL ? 0 : fread(status, 1, sizeof(status) - 1, file);

    if (file != NULL) {
        fclose(file);
    }
    status[length] = '\0';
    found.filter_count =
        (unsigned)number_behind(status, "\nSeccomp_filters:\t");
    if (number_behind(status, "\nSeccomp:\t") != MODE_FILTER) {
        return false;
    }
    bool may_limit = !kills(SEEP_CALL_INDEX_prlimit64, false);
    for (size_t i = 0; i < SEEP_CALL_COUNT; i++) {
        found.denied |= kills(i, may_limit) ? UINT64_C(1) << i : 0;
    }
    *ret_calls = found;
    return true;
}

void seep_launch_name_calls(uint64_t denied, char *text, size_t size)
{
    size_t length = 0;

    *text = '\0';
    for (size_t i = 0; i < SEEP_CALL_COUNT && length < size; i++) {
        if ((denied >> i & 1) != 0) {
            length += (size_t)snprintf(text + length, size - length, "%s%s",
                                       length == 0 ? "" : ", ", calls[i].name);
        }
    }
}

int seep_launch_put_filter(uint64_t *ret_denied)
{
    struct seep_launch_calls tried;
    char value[48];

    unsetenv("SEEP_FILTER"); /* of a run around this one */
    *ret_denied = 0;
    if (!seep_launch_try_calls(&tried)) {
        return 0;
    }
    *ret_denied = tried.denied;
    seep_calls_denied = tried.denied;
    snprintf(value, sizeof(value), "%u:%llx", tried.filter_count,
             (unsigned long long)tried.denied);
    return setenv("SEEP_FILTER", value, 1) == 0 ? 0 : -errno;
}
