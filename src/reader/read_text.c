/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A text file, whole; see read_text.h. Invariant: no more is read than it had
 * when it was opened and one byte; what grew meanwhile is refused.
 */
#include "reader/read_text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader/open.h"

/* Up to @capacity bytes of @fd; negative errno. */
static ssize_t read_all(int fd, char *bytes, size_t capacity)
{
    size_t length = 0;

    while (length < capacity) {
        ssize_t got = read(fd, bytes + length, capacity - length);

        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            return -errno;
        }
        length += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)length;
}

static int read_open(int fd, uint64_t size_bytes, const char *remedy,
                     struct seep_refusal *ret_refusal, char **ret_text,
                     size_t *ret_length)
{
    size_t capacity = (size_t)size_bytes + 1;
    char *text;
    ssize_t length;

    if (size_bytes > SEEP_READ_TEXT_BYTES) {
        return seep_open_refuse(ret_refusal, -EFBIG, "is larger than 4 MiB",
                                remedy);
    }
    text = malloc(capacity + 1);
    if (text == NULL) {
        return seep_open_refuse_errno(ret_refusal, -ENOMEM);
    }
    length = read_all(fd, text, capacity);
    if (length < 0) {
        free(text);
        return seep_open_refuse_errno(ret_refusal, (int)length);
    }
    if ((size_t)length == capacity ||
        memchr(text, '\0', (size_t)length) != NULL) {
        free(text);
        return seep_open_refuse(ret_refusal, -EBADMSG,
                                "is no text, or is being written", remedy);
    }
    text[length] = '\0';
    *ret_text = text;
    *ret_length = (size_t)length;
    return 0;
}

int seep_read_text(const char *path, const char *remedy,
                   struct seep_refusal *ret_refusal, char **ret_text,
                   size_t *ret_length)
{
    uint64_t size_bytes;
    int fd;
    int error = seep_open_file(path, ret_refusal, &fd, &size_bytes);

    if (error != 0) {
        if (ret_refusal != NULL && error != -EACCES && error != -EPERM) {
            snprintf(ret_refusal->remedy, sizeof(ret_refusal->remedy), "%s",
                     remedy);
        }
        return error;
    }
    error =
        read_open(fd, size_bytes, remedy, ret_refusal, ret_text, ret_length);
    close(fd);
    return error;
}
