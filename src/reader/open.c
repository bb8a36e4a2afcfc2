/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opening what may be a recording: see open.h.
 *
 * Invariant: opening waits for nobody. A FIFO without a writer, a device, a
 * terminal: all are opened without blocking and then refused by their type.
 */
#include "reader/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIVE_A_RECORDING "give a .seep file that `seep run` or SEEP_OUT made"

static const struct {
    int error;
    const char *reason;
    const char *remedy;
} errno_words[] = {
    {ENOENT, "does not exist",
     "check the path; SEEP_OUT says where recordings are written"},
    {ENOTDIR, "does not exist: a part of its path is not a directory",
     "check the path; SEEP_OUT says where recordings are written"},
    {EACCES, "may not be read by this user",
     "recordings are private: read it as the user who ran the worker"},
    {EPERM, "may not be read by this user",
     "recordings are private: read it as the user who ran the worker"},
    {EISDIR, "is a directory", "give one of the recordings inside it"},
    {ELOOP, "is a symbolic link that leads nowhere", GIVE_A_RECORDING},
    {ENAMETOOLONG, "has a name longer than the system allows",
     "check the path"},
    {ENXIO, "is a socket or a device, not a file", GIVE_A_RECORDING},
    {ENODEV, "is a socket or a device, not a file", GIVE_A_RECORDING},
    {ENOMEM, "does not fit into memory",
     "read it on a machine with more memory free"},
    {EMFILE, "cannot be opened: too many open files",
     "raise the limit (ulimit -n)"},
    {EIO, "cannot be read: the storage reports an error",
     "copy it from where it was recorded, or look into the kernel's log"},
};

int seep_open_refuse(struct seep_refusal *ret_refusal, int error,
                     const char *reason, const char *remedy)
{
    if (ret_refusal != NULL) {
        ret_refusal->error = error;
        snprintf(ret_refusal->reason, sizeof(ret_refusal->reason), "%s",
                 reason);
        snprintf(ret_refusal->remedy, sizeof(ret_refusal->remedy), "%s",
                 remedy);
    }
    return error;
}

int seep_open_refuse_errno(struct seep_refusal *ret_refusal, int error)
{
    char reason[160];

    for (size_t i = 0; i < sizeof(errno_words) / sizeof(errno_words[0]); i++) {
        if (errno_words[i].error == -error) {
            return seep_open_refuse(ret_refusal, error, errno_words[i].reason,
                                    errno_words[i].remedy);
        }
    }
    snprintf(reason, sizeof(reason), "cannot be read: %s", strerror(-error));
    return seep_open_refuse(ret_refusal, error, reason,
                            "see the reason that the system gives");
}

int seep_open_refuse_check(struct seep_refusal *ret_refusal,
                           enum seep_check_result result)
{
    int error = result == SEEP_CHECK_NEWER ? -EPROTO : -EBADMSG;

    return seep_open_refuse(ret_refusal, error, seep_check_reason(result),
                            seep_check_remedy(result));
}

static int refuse_type(struct seep_refusal *ret_refusal, mode_t mode)
{
    if (S_ISDIR(mode)) {
        return seep_open_refuse_errno(ret_refusal, -EISDIR);
    }
    if (S_ISFIFO(mode)) {
        return seep_open_refuse(ret_refusal, -ESPIPE, "is a FIFO, not a file",
                                "write it to a file first: a recording is "
                                "read at any place");
    }
    return seep_open_refuse_errno(ret_refusal, -ENXIO);
}

int seep_open_file(const char *path, struct seep_refusal *ret_refusal,
                   int *ret_fd, uint64_t *ret_size_bytes)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    struct stat status;

    if (fd < 0) {
        return seep_open_refuse_errno(ret_refusal, -errno);
    }
    if (fstat(fd, &status) != 0) {
        int error = -errno;

        close(fd);
        return seep_open_refuse_errno(ret_refusal, error);
    }
    if (!S_ISREG(status.st_mode)) {
        close(fd);
        return refuse_type(ret_refusal, status.st_mode);
    }
    *ret_fd = fd;
    *ret_size_bytes = (uint64_t)status.st_size;
    return 0;
}
