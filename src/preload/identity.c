/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process's identity and its recording's head; see identity.h. */
#include "preload/identity.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "base/text.h"
#include "format/layout.h"
#include "format/view.h"
#include "preload/options.h"
#include "record/modules.h"
#include "record/region.h"
#include "seep_version.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#define CLOCK_TICKS_PER_S 100U

/* All of this is touched by one thread at a time: the constructor, or the one
 * that creates the recording. */
/* Two words, not 0 in the process that set them: is ours, is sound. */
static volatile uint32_t *mark;
static volatile uint32_t sound_pid; /* the same, for want of wiping */
static uint32_t own_pid;
static uint32_t marked_pid; /* where the kernel cannot wipe */
static bool is_fork;
static char executable[512];
static char allocator[512];
static char arguments[4096];
static struct seep_rec_header head;

int seep_identity_init(void)
{
    long page =
        seep_syscall6(SYS_mmap, 0, SEEP_PAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long length;

    if (page < 0 && page > -4096) {
        return (int)page;
    }
    mark = (volatile uint32_t *)(uintptr_t)page;
    *mark = 1;
    own_pid = (uint32_t)seep_syscall0(SYS_getpid);
    if (seep_syscall3(SYS_madvise, page, SEEP_PAGE_BYTES, MADV_WIPEONFORK) <
        0) {
        marked_pid = own_pid;
    }
    length = seep_syscall4(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe",
                           (long)executable, sizeof(executable) - 1);
    executable[length > 0 ? length : 0] = '\0';
    return 0;
}

bool seep_identity_is_ours(void)
{
    return *mark != 0 && (marked_pid == 0 ||
                          marked_pid == (uint32_t)seep_syscall0(SYS_getpid));
}

bool seep_identity_is_this_process(void)
{
    return own_pid == (uint32_t)seep_syscall0(SYS_getpid);
}

void seep_identity_note_sound(void)
{
    mark[1] = 1;
    sound_pid = (uint32_t)seep_syscall0(SYS_getpid);
}

bool seep_identity_is_sound(void)
{
    return mark[1] != 0 && sound_pid == (uint32_t)seep_syscall0(SYS_getpid);
}

void seep_identity_adopt(void)
{
    is_fork = true;
    own_pid = (uint32_t)seep_syscall0(SYS_getpid);
    if (marked_pid != 0) {
        marked_pid = own_pid;
    }
    *mark = 1;
}

const char *seep_identity_executable(void)
{
    return executable;
}

void seep_identity_set_allocator(const char *path)
{
    struct seep_text text;

    seep_text_init(&text, allocator, sizeof(allocator));
    seep_text_add(&text, path);
}

static size_t read_file(const char *path, char *bytes, size_t size)
{
    long fd = seep_syscall4(SYS_openat, AT_FDCWD, (long)path,
                            O_RDONLY | O_CLOEXEC, 0);
    long count = 0;
    size_t total = 0;

    if (fd < 0) {
        bytes[0] = '\0';
        return 0;
    }
    do {
        count = seep_syscall3(SYS_read, fd, (long)(bytes + total),
                              (long)(size - 1 - total));
        total += count > 0 ? (size_t)count : 0;
    } while (count > 0 && total < size - 1);
    seep_syscall1(SYS_close, fd);
    bytes[total] = '\0';
    return total;
}

/* Field 22 of /proc/self/stat; the second field may hold anything but its
 * closing bracket is the last one. */
static uint64_t process_start_clock(void)
{
    char text[1024];
    const char *at;
    uint64_t number = 0;

    if (read_file("/proc/self/stat", text, sizeof(text)) == 0) {
        return 0;
    }
    at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    for (at = at == NULL ? "" : at + 1; *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (uint64_t)(*at - '0');
    }
    return number;
}

static void describe_machine(void)
{
    struct utsname name;
    struct sysinfo info;
    struct stat status;
    struct seep_text text;

    if (seep_syscall1(SYS_uname, (long)&name) == 0) {
        seep_text_init(&text, head.host, sizeof(head.host));
        seep_text_add(&text, name.nodename);
    }
    if (seep_syscall1(SYS_sysinfo, (long)&info) == 0) {
        head.memory_total_bytes = (uint64_t)info.totalram * info.mem_unit;
    }
    if (seep_syscall4(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/ns/pid",
                      (long)&status, 0) == 0) {
        head.pid_namespace = status.st_ino;
    }
    if (read_file("/proc/sys/kernel/random/boot_id", head.boot_id,
                  sizeof(head.boot_id)) > 0) {
        head.boot_id[strcspn(head.boot_id, "\n")] = '\0';
    }
}

static void describe_process(enum seep_inert_reason reason)
{
    head.start_realtime_ns = seep_clock_ns(CLOCK_REALTIME);
    head.start_monotonic_ns = seep_clock_monotonic_ns();
    head.start_cycles = seep_clock_cycles();
    head.process_start_clock = process_start_clock();
    head.clock_ticks_per_s = CLOCK_TICKS_PER_S;
    head.pid = (uint32_t)seep_syscall0(SYS_getpid);
    head.parent_pid = (uint32_t)seep_syscall0(SYS_getppid);
    head.is_fork = is_fork;
    head.inert = reason;
    head.unwinder = seep_options.unwinder;
#if defined(__x86_64__)
    head.elf_machine = EM_X86_64;
#elif defined(__aarch64__)
    head.elf_machine = EM_AARCH64;
#endif
    atomic_store_explicit(&head.sample_log2, seep_options.sample_log2,
                          memory_order_relaxed);
}

static void add_arguments(const struct seep_view *view)
{
    size_t length =
        read_file("/proc/self/cmdline", arguments, sizeof(arguments));
    const char *at = arguments;

    for (uint32_t count = 0; at < arguments + length; count++) {
        seep_string string = seep_modules_string(view, at);

        if (string == 0 && *at != '\0') {
            break;
        }
        if (count == 0) {
            view->header->arguments = string;
        } else if (*at == '\0') {
            /* An empty argument needs a byte of its own in the row. */
            atomic_fetch_add_explicit(&view->header->string_bytes_used, 1,
                                      memory_order_relaxed);
        }
        view->header->argument_count = count + 1;
        at += strlen(at) + 1;
    }
}

/* What is text. The fixed part is hashed again after it. */
static void add_strings(void *mapping)
{
    struct seep_view view;

    seep_view_init(&view, mapping);
    add_arguments(&view);
    view.header->executable = seep_modules_string(&view, executable);
    view.header->labels = seep_modules_string(&view, seep_options.labels);
    view.header->allocator = seep_modules_string(&view, allocator);
    view.header->seep_version = seep_modules_string(&view, SEEP_VERSION);
    view.header->fixed_hash = seep_layout_fixed_hash(view.header);
}

static int create(enum seep_inert_reason reason, void **ret_mapping)
{
    struct seep_region_options options = {
        .pattern = seep_options.pattern,
        .fallback_folder = seep_options.fallback_folder,
        .executable = seep_text_base_name(executable),
        .complete = add_strings,
        .any_filesystem = seep_options.any_filesystem,
    };
    int result;

    memset((void *)&head, 0, sizeof(head));
    result =
        seep_layout_make(seep_options.size_bytes, seep_options.sample_log2 == 0,
                         reason != SEEP_INERT_NONE, &head);
    if (result < 0) {
        return result;
    }
    describe_process(reason);
    describe_machine();
    options.host = head.host;
    options.start_s = head.start_realtime_ns / UINT64_C(1000000000);
    options.pid = head.pid;
    return seep_region_create(&options, &head, ret_mapping);
}

int seep_identity_create(void **ret_mapping)
{
    return create(SEEP_INERT_NONE, ret_mapping);
}

void seep_identity_create_inert(enum seep_inert_reason reason)
{
    void *mapping = NULL;

    if (create(reason, &mapping) == 0) {
        seep_region_drop(mapping, head.file_bytes);
    }
}
