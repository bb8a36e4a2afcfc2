/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file system that does not answer, without one: preloaded, it waits for ever
 * in calls on files whose path holds $SEEP_TEST_HANG, from the call on that
 * $SEEP_TEST_HANG_IN names: stat, open or read. Into $SEEP_TEST_HANG_STREAMS
 * it first writes which of stdout (1) and stderr (2) are open.
 *
 * Invariant: nobody but who carries it waits, and SIGKILL ends that.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int open64(const char *path, int flags, ...);
ssize_t pread64(int fd, void *to, size_t bytes, off_t offset);
int stat64(const char *path, struct stat64 *status);

static int hung_fd = -1;

static int is_meant(const char *path)
{
    const char *part = getenv("SEEP_TEST_HANG");

    return part != NULL && strstr(path, part) != NULL;
}

/* The same file, opened anew by the descriptor that named it. */
static int is_reopened(const char *path)
{
    char link[64];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", hung_fd);
    return hung_fd >= 0 && strcmp(path, link) == 0;
}

/* A line for each of the standard streams that is still open. */
static void tell_streams(const char *path)
{
    char text[3] = "";
    int count = 0;
    int fd;

    for (int i = 1; i <= 2; i++) {
        if (fcntl(i, F_GETFD) >= 0) {
            text[count++] = (char)('0' + i);
        }
    }
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT, 0600);
    if (fd >= 0 && write(fd, text, (size_t)count) >= 0) {
        close(fd);
    }
}

static void hang_in(const char *call)
{
    const char *wanted = getenv("SEEP_TEST_HANG_IN");
    const char *streams = getenv("SEEP_TEST_HANG_STREAMS");

    if (wanted == NULL || strcmp(wanted, call) != 0) {
        return;
    }
    if (streams != NULL) {
        tell_streams(streams);
    }
    for (;;) {
        pause();
    }
}

int stat64(const char *path, struct stat64 *status)
{
    if (is_meant(path)) {
        hang_in("stat");
    }
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int open64(const char *path, int flags, ...)
{
    int mode = 0;
    int fd;

    if ((flags & O_CREAT) != 0) {
        va_list arguments;

        va_start(arguments, flags);
        mode = va_arg(arguments, int);
        va_end(arguments);
    }
    if (is_meant(path)) {
        hang_in("open");
    }
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    hung_fd = is_meant(path) || is_reopened(path) ? fd : hung_fd;
    return fd;
}

ssize_t pread64(int fd, void *to, size_t bytes, off_t offset)
{
    if (fd == hung_fd) {
        hang_in("read");
    }
    return syscall(SYS_pread64, fd, to, bytes, offset);
}
