/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file behind a recording: how it grows, then how it is made and named.
 *
 * A bit of room.pages is set when the kernel has written to the page.
 */
#include "record/region.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/place.h"
#include "base/proc.h"
#include "base/syscall.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/word.h"
#include "format/layout.h"
#include "record/sites.h"

#define STEP_MOST_BYTES (UINT64_C(256) << 10)
/* What is reserved ahead of a filter of system calls, besides the rings. */
#define RESTRICTED_BYTES (UINT64_C(16) << 20)
/* After a refusal so long nothing is asked; twice as long after the next. */
#define PATIENCE_LEAST_NS UINT64_C(1000000000)
#define PATIENCE_MOST_NS UINT64_C(64000000000)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static struct seep_view_room room;
static struct seep_rec_header *reserved;
static uint64_t reserved_bytes; /* of its mapping */
static uint64_t memory_bytes;   /* of .pages and the index behind them */
static struct statfs system_at_start;
static char folder_path[SEEP_PLACE_PATH_BYTES];
static _Atomic uint32_t way;
static _Atomic uint32_t restricted;
static _Atomic uint64_t patience_ns;
static _Atomic uint64_t refused_until_ns;

void seep_room_set_way(enum seep_room_way wanted)
{
    seep_word_store(&way, (uint32_t)wanted);
}

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + SEEP_PAGE_BYTES - 1) & ~(uint64_t)(SEEP_PAGE_BYTES - 1);
}

static void set_pages(uint64_t from, uint64_t end)
{
    for (uint64_t page = from / SEEP_PAGE_BYTES; page < end / SEEP_PAGE_BYTES;
         page++) {
        atomic_fetch_or_explicit(&room.pages[page / 64],
                                 UINT64_C(1) << (page % 64),
                                 memory_order_relaxed);
    }
}

/* Linux before 5.14: an addition of nothing, page by page. The kernel does it
 * as one step, so it may come between any two of another thread's. */
static long touch(uint64_t address, uint64_t bytes)
{
    const long add_nothing = (long)FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0);
    long result = 0;

    for (uint64_t at = 0; at < bytes && result >= 0; at += SEEP_PAGE_BYTES) {
        result = seep_syscall6(SYS_futex, (long)(address + at),
                               FUTEX_WAKE_OP_PRIVATE, 1, 1,
                               (long)(address + at), add_nothing);
    }
    return result;
}

/*
 * Of a hole that is written to the kernel first reads what lies around: zeros,
 * 128 KiB of them or, as the disk is set, 8 MiB for each page. Not while pages
 * are made; but only so long, since it takes what lies in such a mapping for
 * unused when memory is short.
 */
static void read_ahead(const void *mapping, uint64_t bytes, bool wanted)
{
    seep_syscall3(SYS_madvise, (long)(uintptr_t)mapping, (long)bytes,
                  wanted ? MADV_NORMAL : MADV_RANDOM);
}

static long populate(uint64_t address, uint64_t bytes)
{
    if (seep_word_load(&way) == SEEP_ROOM_POPULATE) {
        long result = seep_syscall3(SYS_madvise, (long)address, (long)bytes,
                                    MADV_POPULATE_WRITE);

        if (result != -EINVAL && result != -EPERM && result != -ENOSYS) {
            return result;
        }
        seep_room_set_way(SEEP_ROOM_TOUCH);
    }
    return touch(address, bytes);
}

static bool make_pages(uint64_t from, uint64_t end)
{
    long result;

    read_ahead(reserved, reserved_bytes, false);
    result = populate((uint64_t)(uintptr_t)reserved + from, end - from);
    read_ahead(reserved, reserved_bytes, true);
    if (result >= 0) {
        set_pages(from, end);
    }
    return result >= 0;
}

/* Would enough be left for others? Where the folder is not to be seen from
 * here any more, or is another one, nobody knows: then it would. */
static bool floor_allows(uint64_t bytes)
{
    struct statfs now;

    return folder_path[0] == '\0' ||
           seep_syscall2(SYS_statfs, (long)folder_path, (long)&now) < 0 ||
           now.f_type != system_at_start.f_type ||
           memcmp(&now.f_fsid, &system_at_start.f_fsid, sizeof(now.f_fsid)) !=
               0 ||
           seep_place_floor_allows(&now, bytes);
}

static bool try_pages(uint64_t from, uint64_t end)
{
    return floor_allows(end - from) && make_pages(from, end);
}

static void refuse(const struct seep_view *view, uint64_t now_ns)
{
    uint64_t patience = seep_word_load(&patience_ns);

    patience = patience == 0                  ? PATIENCE_LEAST_NS
               : patience >= PATIENCE_MOST_NS ? PATIENCE_MOST_NS
                                              : patience * 2;
    seep_word_store(&patience_ns, patience);
    seep_word_store(&refused_until_ns, now_ns + patience);
    seep_view_count(view, SEEP_COUNT_ROOM_REFUSED, 1);
}

static bool reserve(const struct seep_view *view, uint64_t from, uint64_t end,
                    uint64_t most)
{
    uint64_t now_ns;

    from &= ~(uint64_t)(SEEP_PAGE_BYTES - 1);
    end = page_up(end);
    most =
        page_up(most < from + STEP_MOST_BYTES ? most : from + STEP_MOST_BYTES);
    most = most < end ? end : most;
    /* In a child of a fork the header may be gone by now: zeros, or none. */
    if (reserved == NULL || most > reserved->file_bytes ||
        seep_word_load(&restricted) != 0) {
        return false;
    }
    /* Asked for each page that there is none for: mostly the clock. */
    now_ns = seep_clock_monotonic_ns();
    if (now_ns < seep_word_load(&refused_until_ns)) {
        return false;
    }
    if (!try_pages(from, most) && !try_pages(from, end)) {
        refuse(view, now_ns);
        return false;
    }
    seep_word_store(&patience_ns, 0);
    seep_view_count(view, SEEP_COUNT_ROOM_STEPS, 1);
    return true;
}

/* The folder in which to ask for the floor; none where that could mean to wait:
 * there only what the file begins with is held to it. */
static void note_folder(int fd, const char *folder)
{
    struct seep_text text;

    seep_text_init(&text, folder_path, sizeof(folder_path));
    if (folder[0] != '/' && seep_syscall2(SYS_getcwd, (long)folder_path,
                                          (long)sizeof(folder_path)) > 0) {
        text.length = strlen(folder_path);
        seep_text_add_char(&text, '/');
    }
    seep_text_add(&text, folder);
    if (text.cut || !seep_place_is_local(folder_path) ||
        seep_syscall2(SYS_fstatfs, fd, (long)&system_at_start) < 0) {
        folder_path[0] = '\0';
    }
}

/* What is there without being given, and what must not be wanting later: a ring
 * that can take no event loses frees, too. Those of exact mode are too large.
 */
static bool reserve_first(const struct seep_view *view)
{
    uint64_t rings = view->header->sections[SEEP_SECTION_RINGS].bytes;

    return seep_view_reserve_entry(view, SEEP_SECTION_STRINGS, 0) &&
           seep_view_reserve_entry(view, SEEP_SECTION_SITES, 0) &&
           seep_view_reserve_entry(view, SEEP_SECTION_CODES, 0) &&
           (view->header->exact != 0 ||
            seep_view_reserve(view, view->rings, rings, view->rings, rings));
}

/*
 * Begin with the file behind @fd, mapped at @header, of which the first
 * @start_bytes are reserved; reserve what a recorder needs besides.
 *
 * @param folder  where it is; relative to the current one, or not
 * @return 0 or a negative errno
 */
static int room_begin(struct seep_rec_header *header, int fd,
                      const char *folder, uint64_t start_bytes)
{
    uint64_t bitmap =
        page_up((header->file_bytes / SEEP_PAGE_BYTES + 64) / 8 + 8);
    uint64_t bytes = bitmap + page_up(seep_index_bytes(header));
    long memory = seep_syscall_zeros(bytes);
    struct seep_view view;

    if (seep_syscall_failed(memory)) {
        return (int)memory;
    }
    memory_bytes = bytes;
    reserved = header;
    reserved_bytes = header->file_bytes;
    room.pages = (_Atomic uint64_t *)(uintptr_t)memory;
    room.reserve = reserve;
    seep_word_store(&restricted, 0);
    seep_word_store(&patience_ns, 0);
    seep_word_store(&refused_until_ns, 0);
    note_folder(fd, folder);
    /* They are on the disk: a refusal, which is none, changes nothing. */
    make_pages(0, page_up(start_bytes));
    set_pages(0, page_up(start_bytes));
    seep_view_init(&view, header);
    seep_room_attach(&view);
    seep_index_start(&view, (char *)(uintptr_t)memory + bitmap);
    return header->inert != SEEP_INERT_NONE || reserve_first(&view) ? 0
                                                                    : -ENOSPC;
}

static void drop_memory(void)
{
    if (room.pages != NULL) {
        seep_index_start(NULL, NULL);
        seep_syscall2(SYS_munmap, (long)room.pages, (long)memory_bytes);
        room.pages = NULL;
    }
}

/* Nothing is touched any more: the mapping at @header goes. */
static void room_end(const void *header)
{
    if (reserved != NULL && header == (const void *)reserved) {
        reserved = NULL;
        drop_memory();
    }
}

static uint64_t bytes_behind_start(void)
{
    return reserved == NULL || room.pages == NULL
               ? 0
               : reserved_bytes - page_up(seep_layout_start_bytes(reserved));
}

uint64_t seep_region_held_bytes(uint64_t *ret_private_bytes)
{
    *ret_private_bytes = room.pages != NULL ? memory_bytes : 0;
    return bytes_behind_start() + *ret_private_bytes;
}

void seep_region_shrink(void)
{
    uint64_t bytes = bytes_behind_start();

    if (bytes != 0) {
        drop_memory();
        reserved_bytes -= bytes;
        seep_syscall2(SYS_munmap, (long)((uintptr_t)reserved + reserved_bytes),
                      (long)bytes);
    }
}

void seep_room_attach(struct seep_view *view)
{
    if (reserved != NULL && view->header == reserved) {
        view->room = &room;
    }
}

bool seep_room_is_in(const void *address, size_t bytes, char **ret_start,
                     char **ret_end)
{
    uintptr_t start = (uintptr_t)reserved;
    uintptr_t from = (uintptr_t)address;

    if (reserved == NULL || from >= start + reserved_bytes ||
        (from < start && bytes <= start - from)) {
        return false;
    }
    *ret_start = (char *)reserved;
    *ret_end = *ret_start + reserved_bytes;
    return true;
}

/* Of each of @count pieces that lie one after the other one of @share parts,
 * besides what is there. */
static void prepare(const struct seep_view *view, uint64_t offset,
                    uint64_t bytes, uint64_t count, uint64_t share)
{
    const char *file = (const char *)view->header;

    for (uint64_t i = 0; i < count && bytes != 0; i++) {
        uint64_t from = offset + i * bytes;
        uint64_t most = from + bytes;
        uint64_t end;

        while (from < most && seep_view_has(view, file + from, 1)) {
            from += SEEP_PAGE_BYTES;
        }
        end = from + bytes / share < most ? from + bytes / share : most;
        for (; from < end; from += STEP_MOST_BYTES) {
            reserve(view, from, from + 1, end);
        }
    }
}

/* The tables of the shards, and behind them the one of ranges. */
static void prepare_live(const struct seep_view *view, uint64_t share)
{
    const struct seep_rec_header *header = view->header;
    const struct seep_rec_section *live = &header->sections[SEEP_SECTION_LIVE];
    uint64_t shard = (uint64_t)header->live_slots * live->entry_bytes;
    uint64_t ranges = (uint64_t)header->range_slots * live->entry_bytes;

    prepare(view, live->offset_bytes, shard, header->shard_count, share);
    prepare(view, live->offset_bytes + shard * header->shard_count, ranges, 1,
            share);
}

void seep_room_restrict(void)
{
    struct seep_view view;
    uint64_t share;

    if (reserved == NULL || seep_word_load(&restricted) != 0) {
        return;
    }
    seep_view_init(&view, reserved);
    seep_room_attach(&view);
    share = reserved->file_bytes / RESTRICTED_BYTES + 1;
    for (unsigned i = 0; i < SEEP_SECTION_COUNT; i++) {
        const struct seep_rec_section *section = &reserved->sections[i];

        if (i == SEEP_SECTION_RINGS) {
            /* A ring must go round: behind what it lacks it would stop. */
            prepare(&view, section->offset_bytes, section->bytes, 1, 1);
        } else if (i == SEEP_SECTION_LIVE) {
            prepare_live(&view, share);
        } else if (i != SEEP_SECTION_DEVICES) {
            prepare(&view, section->offset_bytes, section->bytes, 1, share);
        }
    }
    seep_word_store(&restricted, 1);
}

/*
 * Making the file.
 */

#define PATH_BYTES 1024U
#define SEQUENCE_MAX 4096U
#define NS_PER_S UINT64_C(1000000000)

/* What a creation holds, until seep_region_settle(). */
static struct {
    volatile int fd;
    void *volatile mapping;
    volatile size_t size_bytes;
    volatile dev_t device; /* of the file, which may have its name */
    volatile ino_t inode;  /* 0: there is none */
    const struct seep_rec_header *volatile header;
} held = {.fd = -1};

static char last_path[PATH_BYTES]; /* one thread at a time creates */

const char *seep_region_path(void)
{
    return last_path;
}

static void close_held(void)
{
    int fd = held.fd;

    held.fd = -1;
    if (fd >= 0) {
        seep_syscall1(SYS_close, fd);
    }
}

void seep_region_settle(void)
{
    held.inode = 0;
    held.mapping = NULL;
}

void seep_region_leave(void)
{
    void *mapping = held.mapping;

    seep_region_settle();
    close_held();
    seep_region_drop(mapping, held.size_bytes);
}

void seep_region_forsake(void)
{
    void *mapping = held.mapping;
    int fd = held.fd;
    long nothing;
    long spare;

    if (mapping != NULL && seep_region_replace(mapping, held.size_bytes)) {
        memcpy(mapping, (const void *)held.header, sizeof(*held.header));
    }
    if (fd < 0) {
        return;
    }
    /* Whatever is asked of it fails, and the number stays taken: first it is
     * seen that one of that size can be had. */
    nothing = seep_syscall4(SYS_openat, AT_FDCWD, (long)"/",
                            O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    spare = nothing < 0
                ? nothing
                : seep_syscall3(SYS_fcntl, nothing, F_DUPFD_CLOEXEC, fd);
    if (spare >= 0) {
        seep_syscall1(SYS_close, fd);
        seep_syscall3(SYS_fcntl, nothing, F_DUPFD_CLOEXEC, fd);
        seep_syscall1(SYS_close, spare);
    }
    if (nothing >= 0) {
        seep_syscall1(SYS_close, nothing);
    }
}

void seep_region_abandon(void)
{
    ino_t inode = held.inode;
    struct stat status;

    if (inode != 0 &&
        seep_syscall4(SYS_newfstatat, AT_FDCWD, (long)last_path, (long)&status,
                      AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_ino == inode && status.st_dev == held.device) {
        seep_syscall3(SYS_unlinkat, AT_FDCWD, (long)last_path, 0);
    }
    seep_region_leave();
}

/* Make the name another one, before its ".seep" if it has that. */
static void add_number(struct seep_text *path, uint32_t sequence)
{
    bool has_suffix = path->length > 5 &&
                      strcmp(path->bytes + path->length - 5, ".seep") == 0;

    if (has_suffix) {
        path->length -= 5;
        path->bytes[path->length] = '\0';
    }
    seep_text_add_char(path, '.');
    seep_text_add_number(path, sequence);
    seep_text_add(path, has_suffix ? ".seep" : "");
}

/* Replace the placeholders of the pattern. @return false: it did not fit */
static bool expand(const struct seep_region_options *options, uint32_t sequence,
                   struct seep_text *path)
{
    bool numbered = false;

    for (const char *at = options->pattern; *at != '\0'; at++) {
        if (*at != '%' || at[1] == '\0') {
            seep_text_add_char(path, *at);
            continue;
        }
        at++;
        switch (*at) {
        case 'p':
            seep_text_add_number(path, options->pid);
            break;
        case 'e':
            seep_text_add(path, options->executable);
            break;
        case 'h':
            seep_text_add(path, options->host);
            break;
        case 't':
            seep_text_add_number(path, options->start_s);
            break;
        case 'n':
            seep_text_add_number(path, sequence);
            numbered = true;
            break;
        default:
            seep_text_add_char(path, *at);
            break;
        }
    }
    if (!numbered && sequence > 0) {
        add_number(path, sequence);
    }
    return !path->cut;
}

/* The folder of @path into @folder. */
static void folder_of(const char *path, char *folder, size_t size)
{
    size_t length = (size_t)(seep_text_base_name(path) - path);
    struct seep_text text;

    seep_text_init(&text, folder, size);
    seep_text_add_bytes(&text, length == 0 ? "." : path,
                        length == 0 ? 1 : length);
}

/* Away from 0 to 2: a program started with those closed will open its own. */
static int above_standard(int fd)
{
    long moved;

    if (fd < 0 || fd > 2) {
        return fd;
    }
    moved = seep_syscall3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
    seep_syscall1(SYS_close, fd);
    return (int)moved;
}

/* On btrfs what is reserved is written to where it lies only if the file says
 * so, while it is empty (and until a snapshot shares it). */
static void write_in_place(int fd)
{
    int flags = 0;

    if (seep_syscall3(SYS_ioctl, fd, FS_IOC_GETFLAGS, (long)&flags) == 0) {
        flags |= FS_NOCOW_FL;
        seep_syscall3(SYS_ioctl, fd, FS_IOC_SETFLAGS, (long)&flags);
    }
}

/* May the file behind @fd be a recording? @return 0 or negative errno */
static int judge(int fd, const struct seep_region_options *options,
                 uint64_t start_bytes, uint64_t file_bytes)
{
    const struct seep_place_terms terms = {
        .size_bytes = start_bytes,
        .file_bytes = file_bytes,
        .any_filesystem = options->any_filesystem,
    };
    static struct seep_place_found place; /* one thread at a time creates */
    enum seep_place_reason reason = seep_place_judge(fd, &terms, &place);

    if (reason == SEEP_PLACE_FINE && seep_place_unsafe(place.type) != NULL) {
        write_in_place(fd);
    }
    return seep_place_error_of(reason);
}

/* A file system that cannot reserve gives what is written to it. */
static int write_zeros(int fd, uint64_t bytes)
{
    static const char zeros[SEEP_PAGE_BYTES];

    for (uint64_t at = 0; at < bytes;) {
        uint64_t left = bytes - at;
        long result = seep_syscall4(
            SYS_pwrite64, fd, (long)zeros,
            (long)(left < sizeof(zeros) ? left : sizeof(zeros)), (long)at);

        if (result == -EINTR) {
            continue;
        }
        if (result <= 0) {
            return result < 0 ? (int)result : -ENOSPC;
        }
        at += (uint64_t)result;
    }
    return 0;
}

/* The whole as a hole, and @start_bytes of it on the disk. */
static int reserve_start(int fd, uint64_t size, uint64_t start_bytes)
{
    long result;

    result = seep_syscall2(SYS_ftruncate, fd, (long)size);
    if (result < 0) {
        return (int)result;
    }
    result = seep_syscall4(SYS_fallocate, fd, 0, 0, (long)start_bytes);
    if (result == -EOPNOTSUPP || result == -ENOSYS || result == -EPERM) {
        return write_zeros(fd, start_bytes);
    }
    return (int)result;
}

/* Reserve and map, into held. The file is complete when this returns 0. */
static int fill(int fd, const char *folder,
                const struct seep_region_options *options,
                const struct seep_rec_header *header)
{
    uint64_t size = header->file_bytes;
    uint64_t start_bytes = seep_layout_start_bytes(header);
    struct seep_rec_header *mapped;
    long result = judge(fd, options, start_bytes, size);

    if (result == 0) {
        result = seep_syscall2(SYS_fchmod, fd, 0600);
    }
    if (result == 0) {
        result = reserve_start(fd, size, start_bytes);
    }
    if (result < 0) {
        return (int)result;
    }
    result = seep_syscall6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
                           MAP_SHARED, fd, 0);
    if (seep_syscall_failed(result)) {
        return (int)result;
    }
    mapped = (struct seep_rec_header *)(uintptr_t)result;
    read_ahead(mapped, size, false);
    held.size_bytes = size;
    held.mapping = mapped;
    memcpy((void *)mapped, (const void *)header, sizeof(*header));
    result = room_begin(mapped, fd, folder, start_bytes);
    if (result < 0) {
        return (int)result;
    }
    seep_layout_start(mapped);
    options->complete(mapped);
    /* Release: all of the above; pairs with the acquire of whoever opens the
     * file once it has a name. */
    atomic_store_explicit(&mapped->ready, SEEP_PUBLISHED, memory_order_release);
    return 0;
}

/* Give the nameless file behind @fd the name @path. */
static int name_file(int fd, const char *path)
{
    char link[SEEP_PROC_PATH_BYTES];

    seep_proc_path(link, "/proc/self/fd/", (uint64_t)fd, "");
    return (int)seep_syscall6(SYS_linkat, AT_FDCWD, (long)link, AT_FDCWD,
                              (long)path, AT_SYMLINK_FOLLOW, 0);
}

/* Hold the file that was opened as @fd. Where it may not be asked what that is
 * (a filter), a start that is left leaves its file. */
static void hold(int fd)
{
    struct stat status;

    held.fd = fd;
    if (seep_syscall2(SYS_fstat, fd, (long)&status) == 0) {
        held.device = status.st_dev;
        held.inode = status.st_ino;
    }
}

/* The file at last_path; without a name until it is complete if @nameless. */
static int create_file(const char *folder, bool nameless,
                       const struct seep_region_options *options,
                       const struct seep_rec_header *header, void **ret_mapping)
{
    const char *target = nameless ? folder : last_path;
    int flags = nameless ? O_TMPFILE | O_RDWR | O_CLOEXEC
                         : O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC;
    int result;
    int fd;

    if (!options->is_wanted()) {
        return -ECANCELED;
    }
    fd = above_standard(
        (int)seep_syscall4(SYS_openat, AT_FDCWD, (long)target, flags, 0600));
    if (fd < 0) {
        return fd;
    }
    hold(fd);
    result = fill(fd, folder, options, header);
    if (result == 0 && !options->is_wanted()) {
        result = -ECANCELED; /* a child since it was opened */
    }
    if (result == 0 && nameless) {
        result = name_file(fd, last_path);
    }
    if (result < 0) {
        seep_region_leave();
        if (!nameless && options->is_wanted()) {
            seep_syscall3(SYS_unlinkat, AT_FDCWD, (long)last_path, 0);
        }
        return result;
    }
    close_held();
    *ret_mapping = held.mapping;
    return 0;
}

/* Nameless first, so that no reader meets a half-made file; where the file
 * system, a missing /proc or a filter of calls refuses that, under its name
 * from the start. */
static int create_at(const struct seep_region_options *options,
                     const struct seep_rec_header *header, void **ret_mapping)
{
    static char folder[PATH_BYTES]; /* one thread at a time creates */
    struct stat status;
    int result;

    if (seep_syscall4(SYS_newfstatat, AT_FDCWD, (long)last_path, (long)&status,
                      AT_SYMLINK_NOFOLLOW) == 0) {
        return -EEXIST;
    }
    folder_of(last_path, folder, sizeof(folder));
    result = create_file(folder, true, options, header, ret_mapping);
    if (result == -EOPNOTSUPP || result == -EISDIR || result == -EINVAL ||
        result == -ENOENT || result == -EPERM || result == -ENOSYS) {
        result = create_file(folder, false, options, header, ret_mapping);
    }
    return result;
}

/* Is @old of an image that this process was before an exec? */
static bool is_former(const struct seep_rec_header *old,
                      const struct seep_rec_header *header)
{
    return memcmp(old->magic, SEEP_MAGIC, sizeof(old->magic)) == 0 &&
           old->fixed_hash == seep_layout_fixed_hash(old) &&
           old->pid == header->pid &&
           old->process_start_clock == header->process_start_clock &&
           old->pid_namespace == header->pid_namespace &&
           memcmp(old->boot_id, header->boot_id, sizeof(old->boot_id)) == 0;
}

static bool read_header(const char *path, struct seep_rec_header *ret_header)
{
    long fd = seep_syscall4(SYS_openat, AT_FDCWD, (long)path,
                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    long length;

    if (fd < 0) {
        return false;
    }
    length = seep_syscall3(SYS_read, fd, (long)ret_header, sizeof(*ret_header));
    seep_syscall1(SYS_close, fd);
    return length == (long)sizeof(*ret_header);
}

/* The path for @sequence. @return false: it does not fit */
static bool make_path(const struct seep_region_options *options,
                      const char *folder, uint32_t sequence, char *path)
{
    struct seep_text text;

    seep_text_init(&text, path, PATH_BYTES);
    if (folder != NULL) {
        seep_text_add(&text, folder);
        seep_text_add_char(&text, '/');
    }
    return expand(options, sequence, &text);
}

/*
 * The name at @path is for the command. If it went to what this process was
 * before an exec, that one gets the next number; or none, if it was so short
 * that it can only have been on its way to the command.
 */
static bool make_way(const struct seep_region_options *options,
                     const char *folder, const struct seep_rec_header *header,
                     const char *path)
{
    static struct seep_rec_header old; /* one thread at a time creates */
    static char other[PATH_BYTES];
    long result = -EEXIST;

    if (!read_header(path, &old) || !is_former(&old, header)) {
        return false;
    }
    if (header->start_monotonic_ns - old.start_monotonic_ns < NS_PER_S) {
        result = 0;
    }
    for (uint32_t i = 1; i < SEQUENCE_MAX && result == -EEXIST; i++) {
        result = make_path(options, folder, i, other)
                     ? seep_syscall6(SYS_linkat, AT_FDCWD, (long)path, AT_FDCWD,
                                     (long)other, 0, 0)
                     : -ENAMETOOLONG;
    }
    return result == 0 &&
           seep_syscall3(SYS_unlinkat, AT_FDCWD, (long)path, 0) == 0;
}

/* Would every process of a run make the same name of the pattern? */
static bool is_one_name(const char *pattern)
{
    for (; *pattern != '\0'; pattern++) {
        if (pattern[0] == '%' && pattern[1] != '\0') {
            if (strchr("peht", pattern[1]) != NULL) {
                return false;
            }
            pattern++;
        }
    }
    return true;
}

static int create_by_pattern(const struct seep_region_options *options,
                             const char *folder,
                             const struct seep_rec_header *header,
                             void **ret_mapping)
{
    bool is_one = is_one_name(options->pattern);
    bool is_other = is_one && options->role == SEEP_REGION_OTHER;
    bool is_command = is_one && options->role == SEEP_REGION_COMMAND;
    int result = -EEXIST;

    for (uint32_t i = is_other; i < SEQUENCE_MAX && result == -EEXIST; i++) {
        if (!make_path(options, folder, i, last_path)) {
            return -ENAMETOOLONG;
        }
        result = create_at(options, header, ret_mapping);
        if (result == -EEXIST && i == 0 && is_command &&
            make_way(options, folder, header, last_path)) {
            result = create_at(options, header, ret_mapping);
        }
    }
    return result;
}

int seep_region_create(const struct seep_region_options *options,
                       const struct seep_rec_header *header, void **ret_mapping)
{
    int result;

    seep_region_settle(); /* of one that was made before, by who drops it */
    held.header = header;
    result = create_by_pattern(options, NULL, header, ret_mapping);
    if (result < 0 && result != -ENOSPC &&
        result != seep_place_error_of(SEEP_PLACE_FLOOR) &&
        options->pattern[0] != '/' && options->fallback_folder != NULL) {
        result = create_by_pattern(options, options->fallback_folder, header,
                                   ret_mapping);
    }
    return result;
}

void seep_region_drop(void *mapping, size_t size_bytes)
{
    if (mapping != NULL) {
        if (mapping == held.mapping) {
            seep_region_settle();
        }
        size_bytes = mapping == (void *)reserved ? reserved_bytes : size_bytes;
        room_end(mapping);
        seep_syscall2(SYS_munmap, (long)mapping, (long)size_bytes);
    }
}

bool seep_region_replace(void *mapping, size_t size_bytes)
{
    /* In two steps: mmap over what is there can fail when that is gone. */
    long zeros = seep_syscall_zeros(size_bytes);
    long result;

    if (seep_syscall_failed(zeros)) {
        return false;
    }
    result =
        seep_syscall6(SYS_mremap, zeros, (long)size_bytes, (long)size_bytes,
                      MREMAP_MAYMOVE | MREMAP_FIXED, (long)mapping, 0);
    if (seep_syscall_failed(result)) {
        seep_syscall2(SYS_munmap, zeros, (long)size_bytes);
        return false;
    }
    return true;
}
