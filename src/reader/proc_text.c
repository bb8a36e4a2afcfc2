/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See proc_text.h. */
#include "reader/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

ssize_t seep_proc_text(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
    int error = -errno;

    if (fd >= 0) {
        close(fd);
    }
    text[got < 0 ? 0 : got] = '\0';
    return got < 0 ? error : got;
}
