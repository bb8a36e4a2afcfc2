/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that is replaced at once; see metrics_file.h. The new one is written
 * beside it, under a name that does not end in .prom: the collector reads
 * every file that does.
 */
#include "metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE 0644

static int create(const char *path)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags, MODE);

    if (fd < 0 && errno == EEXIST && unlink(path) == 0) {
        fd = open(path, flags, MODE); /* one of our number was killed here */
    }
    return fd < 0 ? -errno : fd;
}

static int write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, text, length);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return -errno;
        }
        text += written;
        length -= (size_t)written;
    }
    return 0;
}

int seep_metrics_file_write(const char *path, const char *text, size_t length)
{
    char *temporary;

    if (asprintf(&temporary, "%s.%d", path, (int)getpid()) < 0) {
        return -ENOMEM;
    }
    int fd = create(temporary);
    int error = fd < 0 ? fd : write_all(fd, text, length);
    if (fd >= 0 && close(fd) < 0 && error == 0) {
        error = -errno;
    }
    if (error == 0 && rename(temporary, path) < 0) {
        error = -errno;
    }
    if (fd >= 0 && error < 0) {
        unlink(temporary);
    }
    free(temporary);
    return error;
}
