/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much a folder of recordings may hold.
 *
 * A cleaning reads the folder once, sorts what it found by age, and removes
 * rank by rank until the folder is within its bounds or the time is over. Each
 * file is looked at again before it goes.
 */
#include "record/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/place.h"
#include "base/proc.h"
#include "base/syscall.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/word.h"
#include "format/fold.h"
#include "format/layout.h"
#include "seep/recording.h"

#define MINOR_BYTES (UINT64_C(1) << 20)

#define FILES_MAX 4096U
#define NAME_BYTES 256U
#define BATCH_BYTES 32768U
/* Heads that a cleaning reads; half from the oldest on, half from anywhere, for
 * the oldest may be of those that are never removed. */
#define HEADS_MAX 64U
/* Events that are folded at the end, in a millisecond or two. */
#define PENDING_MAX 16384U
#define TIME_NS UINT64_C(50000000)
/* What a cleaning does however late it gets: on a machine that is so busy that
 * its time is over at once, every start adds a recording, so two must go. */
#define SIZES_LEAST HEADS_MAX
#define SPARE_LEAST 2U
/* So many files of the largest size are within the smallest bound of bytes that
 * is worth a look at each. */
#define FEW_FILES 8U
#define MANY_FILES 64U

/* What may go, and in which order. */
enum rank {
    RANK_UNKNOWN, /* not looked at */
    RANK_STAYS,
    RANK_ORDERLY, /* ended in order */
    RANK_BRIEF,   /* else, and lived less than SEEP_KEEP_TELLING_NS */
    RANK_TELLING  /* else: what an out-of-memory kill leaves */
};

struct entry {
    uint64_t time_s; /* of its last change */
    uint64_t bytes;  /* on disk */
    uint64_t inode;
    uint32_t name;  /* index in names */
    enum rank rank; /* of those from ORDERLY on the process is gone */
};

/* All that a cleaning needs, in a mapping of its own. */
struct cleaning {
    int folder;
    uint64_t end_ns;
    uint64_t file_count;  /* of the folder, as far as it was read */
    uint32_t spare_count; /* seen to be gone, and first to go */
    uint64_t bytes;
    uint32_t count;
    bool is_cut; /* there was no time for all names or sizes */
    struct seep_place_keep limits;
    struct entry entries[FILES_MAX];
    char names[FILES_MAX][NAME_BYTES];
    char batch[BATCH_BYTES] __attribute__((aligned(8)));
    struct seep_rec_header header;
};

/* One thread cleans: in the constructor, or who begins a recording. */
static struct seep_keep_removed removed;

/* What a cleaning holds at the moment, for seep_keep_abandon(). */
static struct {
    volatile int folder;
    volatile long mapping;
} held = {.folder = -1};

struct kernel_entry { /* struct linux_dirent64 */
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static uint64_t pending_count(const struct seep_view *view)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < view->shard_count; i++) {
        count += seep_fold_backlog(view, i);
    }
    return count;
}

static bool is_short(const struct seep_view *view)
{
    return seep_clock_monotonic_ns() - view->header->start_monotonic_ns <=
           SEEP_KEEP_MINOR_NS;
}

bool seep_keep_may_be_minor(const struct seep_view *view)
{
    uint64_t count = is_short(view) ? pending_count(view) : 0;

    return count > 0 && count <= PENDING_MAX;
}

bool seep_keep_is_minor(const struct seep_view *view)
{
    uint32_t count = seep_word_load(&view->header->site_count);
    uint32_t seen = 0;

    if (!is_short(view) || pending_count(view) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < view->site_capacity && seen < count; i++) {
        const struct seep_rec_site *site = &view->sites[i];
        uint64_t allocated;
        uint64_t freed;

        if (!seep_view_has(view, site, sizeof(*site))) {
            break; /* not in use yet, nor what comes after it */
        }
        allocated = seep_word_load(&site->allocated_bytes);
        freed = seep_word_load(&site->freed_bytes);

        seen += seep_word_load(&site->state) == SEEP_PUBLISHED;
        if ((int64_t)(allocated - freed) >= (int64_t)MINOR_BYTES) {
            return false;
        }
    }
    return true;
}

/* Is the folder above its bounds, less @slack files? */
static bool is_above(const struct cleaning *cleaning, uint64_t slack)
{
    const struct seep_place_keep *limits = &cleaning->limits;

    return (limits->file_count != 0 &&
            cleaning->file_count > limits->file_count - slack) ||
           (limits->bytes != 0 && cleaning->bytes > limits->bytes);
}

/* A folder of many is brought a little below its bounds, or every process that
 * starts there would have to clean. */
static bool is_over(const struct cleaning *cleaning)
{
    uint64_t most = cleaning->limits.file_count;

    return is_above(cleaning, most >= MANY_FILES ? most / 8 : 0);
}

static bool has_time(const struct cleaning *cleaning)
{
    return seep_clock_ns(CLOCK_MONOTONIC) < cleaning->end_ns;
}

static bool is_recording_name(const char *name)
{
    size_t length = strlen(name);

    return length > 5 && length < NAME_BYTES &&
           strcmp(name + length - 5, ".seep") == 0;
}

static void take_batch(struct cleaning *cleaning, size_t length)
{
    for (size_t at = 0; at + sizeof(struct kernel_entry) < length;) {
        const struct kernel_entry *entry =
            (const struct kernel_entry *)(cleaning->batch + at);

        if (cleaning->count < FILES_MAX && is_recording_name(entry->name) &&
            (entry->type == DT_REG || entry->type == DT_UNKNOWN)) {
            uint32_t index = cleaning->count++;

            memcpy(cleaning->names[index], entry->name,
                   strlen(entry->name) + 1);
            cleaning->entries[index].name = index;
        }
        at += entry->bytes;
    }
}

static void take_names(struct cleaning *cleaning)
{
    unsigned batches = 0;
    long length;

    do {
        batches++;
        length = seep_syscall3(SYS_getdents64, cleaning->folder,
                               (long)cleaning->batch, BATCH_BYTES);
        take_batch(cleaning, length > 0 ? (size_t)length : 0);
        /* The second one says of a small folder that it was all. */
    } while (length > 0 && cleaning->count < FILES_MAX &&
             (batches < 2 || has_time(cleaning)));
    cleaning->is_cut = length > 0;
}

static long look_at(const struct cleaning *cleaning, uint32_t name,
                    struct stat *ret_status)
{
    return seep_syscall4(SYS_newfstatat, cleaning->folder,
                         (long)cleaning->names[name], (long)ret_status,
                         AT_SYMLINK_NOFOLLOW);
}

/* Of this user, and only here: a second name could be a record's that somebody
 * put aside. */
static bool is_ours(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_nlink == 1 &&
           status->st_uid == (uid_t)seep_syscall0(SYS_geteuid);
}

static void take_sizes(struct cleaning *cleaning)
{
    uint32_t kept = 0;
    uint32_t seen = 0;

    for (; seen < cleaning->count && (seen < SIZES_LEAST || has_time(cleaning));
         seen++) {
        struct entry *entry = &cleaning->entries[kept];
        struct stat status;

        if (look_at(cleaning, seen, &status) == 0 && is_ours(&status)) {
            entry->name = seen;
            entry->time_s = (uint64_t)status.st_mtim.tv_sec;
            entry->bytes = (uint64_t)status.st_blocks * 512;
            entry->inode = (uint64_t)status.st_ino;
            cleaning->bytes += entry->bytes;
            kept++;
        }
    }
    /* Those that there was no time for count as well. */
    cleaning->is_cut = cleaning->is_cut || seen < cleaning->count;
    cleaning->file_count = kept + (cleaning->count - seen);
    cleaning->count = kept;
}

/* Shell's sort: without memory, and short. */
static void sort_by_time(struct entry *entries, uint32_t count)
{
    for (uint32_t gap = count / 2; gap > 0; gap /= 2) {
        for (uint32_t i = gap; i < count; i++) {
            struct entry taken = entries[i];
            uint32_t at = i;

            for (; at >= gap && entries[at - gap].time_s > taken.time_s;
                 at -= gap) {
                entries[at] = entries[at - gap];
            }
            entries[at] = taken;
        }
    }
}

static bool is_recording(const struct seep_rec_header *header)
{
    return memcmp(header->magic, SEEP_MAGIC, sizeof(header->magic)) == 0 &&
           header->byte_order == SEEP_BYTE_ORDER &&
           header->format_major == SEEP_FORMAT_MAJOR &&
           header->header_bytes == sizeof(*header) &&
           header->fixed_bytes ==
               offsetof(struct seep_rec_header, sample_log2) &&
           header->fixed_hash == seep_layout_fixed_hash(header);
}

static bool read_head(struct cleaning *cleaning, int fd)
{
    long length = seep_syscall3(SYS_read, fd, (long)&cleaning->header,
                                sizeof(cleaning->header));

    return length == (long)sizeof(cleaning->header) &&
           is_recording(&cleaning->header);
}

/* Are pids of this process those of @header? */
static bool is_seen_from_here(const struct seep_rec_header *header)
{
    char boot_id[sizeof(header->boot_id)];

    seep_proc_boot_id(boot_id, sizeof(boot_id));
    return header->pid_namespace != 0 &&
           header->pid_namespace == seep_proc_pid_namespace() &&
           boot_id[0] != '\0' &&
           memcmp(boot_id, header->boot_id, strlen(boot_id) + 1) == 0;
}

/*
 * Does nobody on this machine, in whatever container, have the file behind @fd
 * mapped to write to it? The kernel gives a lease to read only then. What
 * others would be waiting for it ends with @fd, in microseconds; if one comes
 * in between, the signal is one that does nothing. An overlay asks of another
 * file than the one that is mapped.
 */
static bool is_let_go(int fd)
{
    struct statfs system;

    return seep_syscall2(SYS_fstatfs, fd, (long)&system) == 0 &&
           seep_place_system((uint32_t)system.f_type) != NULL &&
           seep_place_unsafe((uint32_t)system.f_type) == NULL &&
           (uint32_t)system.f_type != OVERLAYFS_SUPER_MAGIC &&
           seep_syscall3(SYS_fcntl, fd, F_SETSIG, SIGURG) == 0 &&
           seep_syscall3(SYS_fcntl, fd, F_SETLEASE, F_RDLCK) == 0;
}

/* Is the process of @header gone, as far as can be seen from here? One of its
 * number with another clock may be itself, in another time namespace. */
static bool is_gone(const struct seep_rec_header *header, int fd)
{
    char path[SEEP_PROC_PATH_BYTES];
    struct seep_proc_start now;
    uint64_t stack;

    if (!is_seen_from_here(header)) {
        return seep_word_load(&header->exited) != 0 || is_let_go(fd);
    }
    seep_proc_path(path, "/proc/", header->pid, "/stat");
    now = seep_proc_start_of(path);
    if (header->process_start_clock == 0 ||
        now.clock == header->process_start_clock) {
        return false;
    }
    stack = seep_word_load(&header->image_stack);
    return now.clock == 0 ||
           (stack != 0 && now.stack != 0 && now.stack != stack) ||
           seep_word_load(&header->exited) != 0 || is_let_go(fd);
}

/* In order: by exit() or a return from main, or as `seep run` saw it. */
static bool has_ended_in_order(const struct seep_rec_header *header)
{
    int status = (int)seep_word_load(&header->status);

    if (seep_word_load(&header->has_status) != 0) {
        return WIFEXITED(status);
    }
    return seep_word_load(&header->exited) != 0;
}

static bool is_telling(const struct seep_rec_header *header)
{
    uint64_t last_ns = seep_word_load(&header->last_ns);

    return last_ns > header->start_monotonic_ns &&
           last_ns - header->start_monotonic_ns >= SEEP_KEEP_TELLING_NS;
}

/* What `seep run` wrote beside it goes with it. */
static void remove_beside(const struct cleaning *cleaning, const char *name)
{
    static const char *const suffixes[] = {SEEP_EXTERNAL_SUFFIX,
                                           SEEP_HELD_SUFFIX};
    char path[NAME_BYTES + 16];

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        size_t length = strlen(name) + 1;

        memcpy(path, name, length);
        memcpy(path + length - 1, suffixes[i], strlen(suffixes[i]) + 1);
        seep_syscall3(SYS_unlinkat, cleaning->folder, (long)path, 0);
    }
}

/* Is @entry still the file that was looked at? Then it goes. */
static void remove_file(struct cleaning *cleaning, struct entry *entry)
{
    struct stat status;

    if (look_at(cleaning, entry->name, &status) == 0 && is_ours(&status) &&
        (uint64_t)status.st_ino == entry->inode &&
        seep_syscall3(SYS_unlinkat, cleaning->folder,
                      (long)cleaning->names[entry->name], 0) == 0) {
        remove_beside(cleaning, cleaning->names[entry->name]);
        removed.file_count++;
        removed.bytes += entry->bytes;
    }
    cleaning->file_count--;
    cleaning->bytes -= entry->bytes;
    entry->rank = RANK_STAYS;
}

static enum rank rank_of(struct cleaning *cleaning, const struct entry *entry)
{
    const char *name = cleaning->names[entry->name];
    enum rank rank = RANK_STAYS;
    long fd = seep_syscall4(SYS_openat, cleaning->folder, (long)name,
                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);

    if (fd < 0) {
        return rank;
    }
    if (read_head(cleaning, (int)fd) && is_gone(&cleaning->header, (int)fd)) {
        rank = has_ended_in_order(&cleaning->header) ? RANK_ORDERLY
               : is_telling(&cleaning->header)       ? RANK_TELLING
                                                     : RANK_BRIEF;
    }
    seep_syscall1(SYS_close, fd);
    return rank;
}

/* Look at entries from @first on; what is minor among them goes. */
static void visit(struct cleaning *cleaning, uint32_t first, uint32_t most)
{
    uint32_t end =
        first + most < cleaning->count ? first + most : cleaning->count;

    for (uint32_t i = first;
         i < end && is_over(cleaning) &&
         (has_time(cleaning) || cleaning->spare_count < SPARE_LEAST);
         i++) {
        struct entry *entry = &cleaning->entries[i];

        if (entry->rank != RANK_UNKNOWN) {
            continue;
        }
        entry->rank = rank_of(cleaning, entry);
        cleaning->spare_count +=
            entry->rank == RANK_ORDERLY || entry->rank == RANK_BRIEF;
        if (entry->rank == RANK_ORDERLY &&
            seep_word_load(&cleaning->header.minor) != 0) {
            remove_file(cleaning, entry);
        }
    }
}

static uint32_t count_of(const struct cleaning *cleaning, enum rank rank)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < cleaning->count; i++) {
        count += cleaning->entries[i].rank == rank;
    }
    return count;
}

/* The oldest of @rank, but for the @spared youngest. */
static void remove_oldest(struct cleaning *cleaning, enum rank rank,
                          uint32_t spared)
{
    uint32_t count = count_of(cleaning, rank);

    for (uint32_t i = 0;
         i < cleaning->count && count > spared && is_over(cleaning); i++) {
        if (cleaning->entries[i].rank == rank) {
            remove_file(cleaning, &cleaning->entries[i]);
            count--;
        }
    }
}

/* By their number alone: can the folder be over its bounds? To know the bytes
 * of many is dear, so one in eight asks for them. */
static bool may_be_over(const struct cleaning *cleaning)
{
    const struct seep_place_keep *limits = &cleaning->limits;

    if (limits->file_count != 0 && cleaning->count > limits->file_count) {
        return true;
    }
    return limits->bytes != 0 &&
           (cleaning->count >= FEW_FILES ||
            limits->bytes < FEW_FILES * SEEP_LAYOUT_EXACT_BYTES) &&
           (cleaning->count < MANY_FILES || seep_clock_cycles() / 8 % 8 == 0);
}

/* What did not end in order goes only where nothing else was found; what an
 * out-of-memory kill may have left, only where all was looked at. Among many
 * that is dear, and all of them may be living: so one start in eight does it.
 */
static void clean_deep(struct cleaning *cleaning)
{
    if (!is_above(cleaning, 0) ||
        (cleaning->count > HEADS_MAX && seep_clock_cycles() / 8 % 8 != 0)) {
        return;
    }
    visit(cleaning, 0, cleaning->count);
    remove_oldest(cleaning, RANK_ORDERLY, 0);
    remove_oldest(cleaning, RANK_BRIEF, 0);
    if (!cleaning->is_cut && count_of(cleaning, RANK_UNKNOWN) == 0) {
        remove_oldest(cleaning, RANK_TELLING, SEEP_KEEP_TELLING_FILES);
    }
}

/* As they are behind the lock: who had it before may have removed some. */
static bool take_names_again(struct cleaning *cleaning)
{
    if (seep_syscall3(SYS_lseek, cleaning->folder, 0, SEEK_SET) != 0) {
        return false;
    }
    cleaning->count = 0;
    take_names(cleaning);
    return true;
}

static void clean(struct cleaning *cleaning)
{
    uint32_t half = HEADS_MAX / 2;

    take_names(cleaning);
    /* Whoever holds the lock cleans. It goes with the descriptor, and is not
     * taken for nothing: the program may lock the same folder. */
    if (!may_be_over(cleaning) ||
        seep_syscall2(SYS_flock, cleaning->folder, LOCK_EX | LOCK_NB) < 0 ||
        !take_names_again(cleaning)) {
        return;
    }
    take_sizes(cleaning);
    if (!is_above(cleaning, 0)) {
        return;
    }
    sort_by_time(cleaning->entries, cleaning->count);
    visit(cleaning, 0, half);
    if (cleaning->count > half) {
        uint64_t rest = cleaning->count - half;

        visit(cleaning, half + (uint32_t)(seep_clock_cycles() % rest), half);
    }
    remove_oldest(cleaning, RANK_ORDERLY, 0);
    clean_deep(cleaning);
}

static void clean_folder(int folder, const struct seep_place_keep *limits)
{
    long mapping = seep_syscall_zeros(sizeof(struct cleaning));
    struct cleaning *cleaning;

    if (seep_syscall_failed(mapping)) {
        return;
    }
    held.mapping = mapping;
    cleaning = (struct cleaning *)(uintptr_t)mapping;
    cleaning->folder = folder;
    cleaning->limits = *limits;
    cleaning->end_ns = seep_clock_ns(CLOCK_MONOTONIC) + TIME_NS;
    clean(cleaning);
}

void seep_keep_abandon(void)
{
    int folder = held.folder;
    long mapping = held.mapping;

    held.folder = -1;
    held.mapping = 0;
    if (mapping != 0) {
        seep_syscall2(SYS_munmap, mapping, sizeof(struct cleaning));
    }
    if (folder >= 0) {
        seep_syscall1(SYS_close, folder);
    }
}

void seep_keep_clean(const char *pattern, const struct seep_place_keep *limits)
{
    static char path[SEEP_PLACE_PATH_BYTES]; /* one thread cleans */
    long folder;

    if ((limits->file_count == 0 && limits->bytes == 0) ||
        !is_recording_name(seep_text_base_name(pattern)) ||
        !seep_place_folder(pattern, path, sizeof(path))) {
        return;
    }
    folder = seep_syscall4(SYS_openat, AT_FDCWD, (long)path,
                           O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);
    if (folder >= 0) {
        held.folder = (int)folder;
        clean_folder((int)folder, limits);
        seep_keep_abandon();
    }
}

struct seep_keep_removed seep_keep_take_removed(void)
{
    struct seep_keep_removed taken = removed;

    removed = (struct seep_keep_removed){0};
    return taken;
}
