/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small files of the kernel's; see proc.h. */
#include "record/proc.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "base/text.h"

#define SLOW_NS UINT64_C(1000000)

static volatile long open_fd = -1;

size_t seep_proc_read(const char *path, char *bytes, size_t size)
{
    long fd = seep_syscall4(SYS_openat, AT_FDCWD, (long)path,
                            O_RDONLY | O_CLOEXEC, 0);
    long count;

    if (fd < 0) {
        return 0;
    }
    open_fd = fd;
    count = seep_syscall3(SYS_read, fd, (long)bytes, (long)size - 1);
    open_fd = -1;
    seep_syscall1(SYS_close, fd);
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
    char name[48];
    char path[8];
    struct seep_text text;
    long length;

    seep_text_init(&text, name, sizeof(name));
    seep_text_add(&text, "/proc/self/fd/");
    seep_text_add_number(&text, (uint64_t)fd);
    length = seep_syscall4(SYS_readlinkat, AT_FDCWD, (long)name, (long)path,
                           sizeof(path));
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
