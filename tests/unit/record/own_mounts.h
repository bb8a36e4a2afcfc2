/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Mounts of a test's own, which nobody else sees.
 *
 * Invariant: the process stays who it is, so what it makes there is its own.
 */
#ifndef SEEP_TESTS_OWN_MOUNTS_H
#define SEEP_TESTS_OWN_MOUNTS_H

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static inline bool own_mounts_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written =
        fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    close(fd);
    return is_written;
}

/* In a name space in which this user has no number, it can make no file. */
static inline bool own_mounts_become_owner(void)
{
    char users[32];
    char groups[32];

    snprintf(users, sizeof(users), "%u %u 1", geteuid(), geteuid());
    snprintf(groups, sizeof(groups), "%u %u 1", getegid(), getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           own_mounts_write("/proc/self/setgroups", "deny") &&
           own_mounts_write("/proc/self/uid_map", users) &&
           own_mounts_write("/proc/self/gid_map", groups);
}

/** From now on, for this process. @return false: this user may not */
static inline bool own_mounts_begin(void)
{
    return (unshare(CLONE_NEWNS) == 0 || own_mounts_become_owner()) &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

#endif
