/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process's identity, and the head of its recording.
 *
 * Invariant: all but what lies in the wiped page is touched by one thread at a
 * time: the constructor, or the one that creates the recording.
 */
#include "preload/identity.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/own.h"
#include "base/place.h"
#include "base/proc.h"
#include "base/syscall.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/word.h"
#include "capture/python/interpreter.h"
#include "format/layout.h"
#include "format/view.h"
#include "preload/options.h"
#include "record/keep.h"
#include "record/modules.h"
#include "record/region.h"
#include "record/sampler.h"
#include "seep_version.h"

/* The mean that a recording begins with, and comes to, if none is given. */
#define SEEP_PACE_FIRST_LOG2 14U

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#define CLOCK_TICKS_PER_S 100U
/* One child of so many keeps the folder within its bounds for the others: a
 * server that forks for each request starts nothing else there. */
#define CLEANING_FORKS 16U

/* A page that the kernel wipes in a child: not 0 in the process that set it. */
static volatile struct {
    uint32_t is_ours;
    uint32_t is_sound;
} * wiped;
static volatile uint32_t sound_pid; /* the same, for want of wiping */
static uint32_t own_pid;
static uint32_t unwiped_pid; /* where the kernel cannot wipe */
static bool is_fork;
static char executable[512];
static char allocator[512];
static char arguments[4096];
static struct seep_rec_header head;
static enum seep_own_limit lacking; /* by which there was no room */

int seep_identity_init(void)
{
    long page = seep_syscall_zeros(SEEP_PAGE_BYTES);
    long length;

    if (seep_syscall_failed(page)) {
        return (int)page;
    }
    wiped = (void *)(uintptr_t)page;
    wiped->is_ours = 1;
    own_pid = (uint32_t)seep_syscall0(SYS_getpid);
    if (seep_syscall3(SYS_madvise, page, SEEP_PAGE_BYTES, MADV_WIPEONFORK) <
        0) {
        unwiped_pid = own_pid;
    }
    length = seep_syscall4(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe",
                           (long)executable, sizeof(executable) - 1);
    executable[length > 0 ? length : 0] = '\0';
    if (length <= 0) { /* no /proc here: as it was started */
        const char *started_as = (const char *)(uintptr_t)getauxval(AT_EXECFN);

        seep_text_copy(executable, sizeof(executable),
                       started_as == NULL ? "" : started_as);
    }
    return 0;
}

bool seep_identity_is_ours(void)
{
    return wiped->is_ours != 0 &&
           (unwiped_pid == 0 ||
            unwiped_pid == (uint32_t)seep_syscall0(SYS_getpid));
}

bool seep_identity_is_this_process(void)
{
    return own_pid == (uint32_t)seep_syscall0(SYS_getpid);
}

void seep_identity_note_sound(void)
{
    wiped->is_sound = 1;
    sound_pid = (uint32_t)seep_syscall0(SYS_getpid);
}

bool seep_identity_is_sound(void)
{
    return wiped->is_sound != 0 &&
           sound_pid == (uint32_t)seep_syscall0(SYS_getpid);
}

void seep_identity_adopt(void)
{
    is_fork = true;
    seep_keep_take_removed(); /* that was its parent's doing */
    own_pid = (uint32_t)seep_syscall0(SYS_getpid);
    if (unwiped_pid != 0) {
        unwiped_pid = own_pid;
    }
    wiped->is_ours = 1;
}

const char *seep_identity_executable(void)
{
    return executable;
}

void seep_identity_set_allocator(const char *path)
{
    seep_text_copy(allocator, sizeof(allocator), path);
}

static void describe_machine(void)
{
    struct utsname name;
    struct sysinfo info;

    if (seep_syscall1(SYS_uname, (long)&name) == 0) {
        seep_text_copy(head.host, sizeof(head.host), name.nodename);
    }
    if (seep_syscall1(SYS_sysinfo, (long)&info) == 0) {
        head.memory_total_bytes = (uint64_t)info.totalram * info.mem_unit;
    }
    head.pid_namespace = seep_proc_pid_namespace();
    seep_proc_boot_id(head.boot_id, sizeof(head.boot_id));
}

static void describe_process(enum seep_inert_reason reason)
{
    const struct seep_proc_start start = seep_proc_start_of("/proc/self/stat");

    head.start_realtime_ns = seep_clock_ns(CLOCK_REALTIME);
    head.start_monotonic_ns = seep_clock_monotonic_ns();
    /* Not tested: another thread restricts the process in this moment. */
    head.start_cycles = seep_clock_cycles();
    head.process_start_clock = start.clock;
    seep_word_store(&head.image_stack, start.stack);
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
    head.first_sample_log2 =
        (uint16_t)(seep_options.paced ? SEEP_PACE_FIRST_LOG2
                                      : seep_options.sample_log2);
    head.settled_sample_log2 = seep_options.paced ? SEEP_PACE_SETTLED_LOG2 : 0;
    /* Of an exact one nothing is left out for it. */
    head.budget = head.first_sample_log2 == 0 ? 0 : seep_options.budget;
    seep_word_store(&head.sample_log2, head.first_sample_log2);
}

static void add_arguments(const struct seep_view *view)
{
    size_t length =
        seep_proc_read("/proc/self/cmdline", arguments, sizeof(arguments));
    const char *at = arguments;

    for (uint32_t count = 0; at < arguments + length; count++) {
        seep_string string = seep_modules_string(view, at);

        /* Not tested: a disk that is full here, and was not a page before. */
        if (string == 0 && *at != '\0') {
            break;
        }
        if (count == 0) {
            view->header->arguments = string;
        } else if (*at == '\0') {
            /* An empty argument needs a byte of its own in the row. */
            seep_word_fetch_add(&view->header->string_bytes_used, 1);
        }
        view->header->argument_count = count + 1;
        at += strlen(at) + 1;
    }
}

/* What had to go before this recording. */
static void add_removed(struct seep_rec_header *header)
{
    struct seep_keep_removed removed = seep_keep_take_removed();

    seep_word_store(&header->removed_count, removed.file_count);
    seep_word_store(&header->removed_bytes, removed.bytes);
}

/* What is text. The fixed part is hashed again after it. */
static void add_strings(void *mapping)
{
    struct seep_view view;

    seep_view_init(&view, mapping);
    seep_room_attach(&view);
    add_arguments(&view);
    view.header->executable = seep_modules_string(&view, executable);
    view.header->labels = seep_modules_string(&view, seep_options.labels);
    view.header->allocator = seep_modules_string(&view, allocator);
    view.header->seep_version = seep_modules_string(&view, SEEP_VERSION);
    view.header->rejected_options =
        seep_modules_string(&view, seep_options.rejected);
    view.header->fixed_hash = seep_layout_fixed_hash(view.header);
    add_removed(view.header);
}

/* Where nobody gave a size, and limits are tight, a smaller one. @return 0:
 * there is no room for any, and `lacking` says by which limit */
static uint64_t size_bytes(void)
{
    struct seep_own_limits limits = seep_place_limits();
    bool given = seep_options.size_given;
    bool is_tight = !given &&
                    seep_options.size_bytes == SEEP_LAYOUT_DENSE_BYTES &&
                    seep_place_is_tight(seep_options.size_bytes);
    uint64_t bytes =
        is_tight ? SEEP_LAYOUT_DEFAULT_BYTES : seep_options.size_bytes;
    const struct seep_own_wish wish = {
        .bytes = bytes,
        .least_bytes = given ? bytes : SEEP_LAYOUT_LEAST_BYTES,
        .table_bytes = seep_python_state() == SEEP_PYTHON_NONE
                           ? SEEP_OWN_TABLES_BYTES
                           : SEEP_OWN_TABLES_BYTES + SEEP_OWN_PYTHON_BYTES,
    };

    return seep_own_fit(&limits, &wish, &lacking);
}

static enum seep_inert_reason reason_of(enum seep_own_limit limit)
{
    static const enum seep_inert_reason reasons[] = {
        [SEEP_OWN_NO_LIMIT] = SEEP_INERT_NONE,
        [SEEP_OWN_ADDRESSES] = SEEP_INERT_ADDRESSES,
        [SEEP_OWN_DATA] = SEEP_INERT_DATA,
        [SEEP_OWN_COMMIT] = SEEP_INERT_COMMIT,
    };

    return reasons[limit];
}

enum seep_inert_reason seep_identity_tell_lacking(void)
{
    enum seep_inert_reason reason = reason_of(lacking);

    if (reason != SEEP_INERT_NONE && seep_options.pattern_given) {
        seep_identity_create_inert(reason);
    }
    return reason;
}

int seep_identity_create(enum seep_inert_reason reason, void **ret_mapping)
{
    struct seep_region_options options = {
        .pattern = seep_options.pattern,
        .fallback_folder = seep_options.fallback_folder,
        .executable = seep_text_base_name(executable),
        .complete = add_strings,
        .is_wanted = seep_identity_is_ours,
        .any_filesystem = seep_options.any_filesystem,
        .role = seep_options.role == SEEP_REGION_COMMAND && is_fork
                    ? SEEP_REGION_OTHER
                    : seep_options.role,
    };
    uint64_t bytes =
        reason != SEEP_INERT_NONE ? SEEP_LAYOUT_LEAST_BYTES : size_bytes();
    int result;

    if (bytes == 0) {
        return -ENOMEM;
    }
    memset((void *)&head, 0, sizeof(head));
    result = seep_layout_make(bytes, seep_options.sample_log2 == 0,
                              reason != SEEP_INERT_NONE, &head);
    if (result < 0) { /* Not tested: the options have no size that is none. */
        return result;
    }
    describe_process(reason);
    describe_machine();
    options.host = head.host;
    options.start_s = head.start_realtime_ns / UINT64_C(1000000000);
    options.pid = head.pid;
    if (is_fork && head.pid % CLEANING_FORKS == 0) {
        seep_keep_clean(seep_options.pattern, &seep_options.keep);
    }
    return seep_region_create(&options, &head, ret_mapping);
}

void seep_identity_create_inert(enum seep_inert_reason reason)
{
    void *mapping = NULL;

    if (seep_identity_create(reason, &mapping) == 0) {
        seep_region_drop(mapping, head.file_bytes);
    }
}
