/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small files of the kernel's, by raw system calls, and what asking took. */
#include "base/proc.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/syscall.h"
#include "base/text.h"
#include "base/thread.h"

#define SLOW_NS UINT64_C(1000000)

/* What a thread that left by a jump left open; -1: nothing. */
static volatile long open_fd = -1;

long seep_proc_open(const char *path)
{
    long fd = seep_syscall4(SYS_openat, AT_FDCWD, (long)path,
                            O_RDONLY | O_CLOEXEC, 0);

    open_fd = fd < 0 ? -1 : fd;
    return fd;
}

size_t seep_proc_read_at(long fd, void *bytes, size_t size, uint64_t offset)
{
    long count =
        seep_syscall4(SYS_pread64, fd, (long)bytes, (long)size, (long)offset);

    return count < 0 ? 0 : (size_t)count;
}

void seep_proc_close_file(long fd)
{
    open_fd = -1;
    if (fd >= 0) {
        seep_syscall1(SYS_close, fd);
    }
}

size_t seep_proc_read(const char *path, char *bytes, size_t size)
{
    long fd = seep_proc_open(path);
    long count;

    if (fd < 0) {
        return 0;
    }
    count = seep_syscall3(SYS_read, fd, (long)bytes, (long)size - 1);
    seep_proc_close_file(fd);
    count = count < 0 ? 0 : count;
    bytes[count] = '\0';
    return (size_t)count;
}

uint64_t seep_proc_number(const char **at)
{
    uint64_t number = 0;

    while (**at == ' ') {
        ++*at;
    }
    for (; **at >= '0' && **at <= '9'; ++*at) {
        number = number * 10 + (uint64_t)(**at - '0');
    }
    return number;
}

const char *seep_proc_path(char *path, const char *before, uint64_t number,
                           const char *after)
{
    struct seep_text text;

    seep_text_init(&text, path, SEEP_PROC_PATH_BYTES);
    seep_text_add(&text, before);
    seep_text_add_number(&text, number);
    seep_text_add(&text, after);
    return path;
}

/* The second field may hold anything but its closing bracket is the last one.
 */
struct seep_proc_start seep_proc_start_of(const char *path)
{
    struct seep_proc_start start = {0};
    char text[1024];
    const char *at;

    if (seep_proc_read(path, text, sizeof(text)) == 0) {
        return start;
    }
    at = strrchr(text, ')');
    for (int field = 3; at != NULL && field <= 28; field++) {
        at = strchr(at + 1, ' ');
        if (at != NULL && (field == 22 || field == 28)) {
            const char *number = at;

            *(field == 22 ? &start.clock : &start.stack) =
                seep_proc_number(&number);
        }
    }
    return start;
}

uint64_t seep_proc_pid_namespace(void)
{
    struct stat status;

    return seep_syscall4(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/ns/pid",
                         (long)&status, 0) == 0
               ? status.st_ino
               : 0;
}

void seep_proc_boot_id(char *id, size_t size)
{
    size_t length = seep_proc_read("/proc/sys/kernel/random/boot_id", id, size);

    id[length == 0 ? 0 : strcspn(id, "\n")] = '\0';
}

/* How long this thread has waited for a processor; 0 where nobody tells. */
static uint64_t processor_wait_ns(void)
{
    char text[96];
    const char *at = text;

    if (seep_proc_read("/proc/thread-self/schedstat", text, sizeof(text)) ==
        0) {
        return 0;
    }
    seep_proc_number(&at);
    return seep_proc_number(&at);
}

struct seep_proc_watch seep_proc_watch_start(void)
{
    uint64_t wait_ns = processor_wait_ns();

    return (struct seep_proc_watch){seep_clock_ns(CLOCK_MONOTONIC), wait_ns};
}

bool seep_proc_was_slow(const struct seep_proc_watch *watch)
{
    uint64_t took_ns = seep_clock_ns(CLOCK_MONOTONIC) - watch->start_ns;

    return took_ns > SLOW_NS &&
           took_ns > SLOW_NS + (processor_wait_ns() - watch->wait_ns);
}

/* Does @fd still lead to a file of the kernel's? The program may have closed
 * all of its descriptors meanwhile, and been given the number again. */
static bool is_kernels(long fd)
{
    char name[SEEP_PROC_PATH_BYTES];
    char path[8];
    long length = seep_syscall4(
        SYS_readlinkat, AT_FDCWD,
        (long)seep_proc_path(name, "/proc/self/fd/", (uint64_t)fd, ""),
        (long)path, sizeof(path));

    return length > 6 &&
           (memcmp(path, "/proc/", 6) == 0 || memcmp(path, "/sys/", 5) == 0);
}

void seep_proc_close(void)
{
    long fd = open_fd;

    open_fd = -1;
    if (fd >= 0 && is_kernels(fd)) {
        seep_syscall1(SYS_close, fd);
    }
}
