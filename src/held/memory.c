/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A living process by process_vm_readv(), /proc/PID/maps and pagemap.
 *
 * Invariant: single reads are of pages that are kept until the next forget, so
 * what is asked twice answers the same; scans read anew each time.
 */
#include "held/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/own.h"
#include "base/sorted.h"
#include "seep/recording.h"

#define WINDOW_BYTES (UINT64_C(1) << 20)
#define WINDOW_PAGES (WINDOW_BYTES / SEEP_HELD_PAGE_BYTES)
/* The kernel locks the process's map for each range that is read: for so long
 * its mmap(), munmap() and page faults wait. */
#define RUN_BYTES (UINT64_C(64) << 10)
#define PAGE_SLOTS 4096U  /* 16 MiB */
#define READS_A_LOOK 256U /* at the clock */
#define PAGES_KEPT 8192U  /* of a core: each may have mapped 15 beside it */

/* Of an entry of pagemap. */
#define PAGE_IS_PRESENT (UINT64_C(1) << 63)
#define PAGE_IS_SWAPPED (UINT64_C(1) << 62)

struct seep_held_page {
    uint64_t address;
    uint32_t generation;
    bool is_there;
    uint8_t bytes[SEEP_HELD_PAGE_BYTES];
};

/* @return how many of the bytes came, up to the first that did not; -1 */
static ssize_t read_runs(const struct seep_held_memory *memory,
                         const struct iovec *here, const struct iovec *there,
                         int count)
{
    ssize_t all = 0;

    if (!memory->is_by_file) {
        return process_vm_readv(memory->pid, here, (unsigned long)count, there,
                                (unsigned long)count, 0);
    }
    for (int i = 0; i < count; i++) {
        ssize_t got = pread(memory->file, here[i].iov_base, here[i].iov_len,
                            (off_t)(uintptr_t)there[i].iov_base);

        if (got <= 0) {
            return all > 0 ? all : got;
        }
        all += got;
        if ((size_t)got < here[i].iov_len) {
            break;
        }
    }
    return all;
}

static bool read_process(const struct seep_held_memory *memory,
                         uint64_t address, void *to, size_t bytes)
{
    struct iovec here = {to, bytes};
    struct iovec there = {(void *)(uintptr_t)address, bytes};

    return read_runs(memory, &here, &there, 1) == (ssize_t)bytes;
}

/* Of pagemap. @return false: nothing is known; the process may be gone */
static bool find_entry(const struct seep_held_memory *memory, uint64_t address,
                       uint64_t *ret_entry)
{
    uint64_t entry;
    off_t where = (off_t)(address / SEEP_HELD_PAGE_BYTES * sizeof(entry));

    if (pread(memory->pagemap, &entry, sizeof(entry), where) !=
        (ssize_t)sizeof(entry)) {
        return false;
    }
    *ret_entry = entry;
    return true;
}

static bool is_present(const struct seep_held_memory *memory, uint64_t address)
{
    uint64_t entry;

    return find_entry(memory, address, &entry) &&
           (entry & PAGE_IS_PRESENT) != 0;
}

/* What the process would see there, had it touched it. */
static bool read_file(const struct seep_held_memory *memory,
                      const struct seep_held_map *map, uint64_t page, void *to)
{
    char path[4400];
    struct stat status;
    ssize_t got = -1;
    int fd;

    seep_held_path(memory, map->path, path, sizeof(path));
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_ino == map->inode) {
        memset(to, 0, SEEP_HELD_PAGE_BYTES);
        got = pread(fd, to, SEEP_HELD_PAGE_BYTES,
                    (off_t)(map->file_offset + page - map->start));
    }
    close(fd);
    return got > 0;
}

/*
 * A page as the process has it. One that it does not have is not given to it:
 * of a file of its own that is what the file has, of no file 0. What is shared
 * may be of a file system that hangs, and of a device it may do something.
 */
static bool read_page(struct seep_held_memory *memory, uint64_t page, void *to)
{
    const struct seep_held_map *map = seep_held_map_at(memory, page);
    uint64_t entry;

    if (memory->core != NULL) {
        return seep_held_core_read_page(memory, page, to);
    }
    if ((map != NULL && seep_held_is_of_device(map->path)) ||
        !find_entry(memory, page, &entry)) {
        return false;
    }
    if ((entry & PAGE_IS_PRESENT) != 0) {
        return read_process(memory, page, to, SEEP_HELD_PAGE_BYTES);
    }
    if (map == NULL || map->is_shared || !map->is_readable ||
        (entry & PAGE_IS_SWAPPED) != 0) {
        return false;
    }
    if (*map->path == '/') {
        return read_file(memory, map, page, to);
    }
    memset(to, 0, SEEP_HELD_PAGE_BYTES);
    return true;
}

/* The recording that the process has mapped names all blocks. Who asks from
 * another mount namespace, or with a copy, does not know its inode: then what
 * is in it tells. */
static void mark_recording(struct seep_held_memory *memory)
{
    uint64_t inode = 0;

    for (size_t i = 0; i < memory->map_count; i++) {
        struct seep_held_map *map = &memory->maps[i];
        char magic[sizeof(SEEP_MAGIC) - 1];
        struct seep_own_head head;

        if (*map->path == '\0' && map->is_writable && !map->is_shared &&
            is_present(memory, map->start) &&
            read_process(memory, map->start, &head, sizeof(head))) {
            map->is_own |= seep_own_is_head(&head);
        }
        if (map->is_shared && map->is_readable && map->file_offset == 0 &&
            !seep_held_is_of_device(map->path) &&
            is_present(memory, map->start) &&
            read_process(memory, map->start, magic, sizeof(magic)) &&
            memcmp(magic, SEEP_MAGIC, sizeof(magic)) == 0) {
            inode = map->inode;
        }
        map->is_own |= inode != 0 && map->inode == inode;
    }
}

int seep_held_memory_reload(struct seep_held_memory *memory)
{
    int error;

    seep_held_memory_forget(memory);
    if (memory->core != NULL) {
        return 0;
    }
    seep_held_process_forget(memory);
    error = seep_held_process_maps(memory);
    mark_recording(memory);
    return error < 0 ? error : seep_held_process_threads(memory);
}

int seep_held_memory_extend(struct seep_held_memory *memory)
{
    struct seep_held_memory before = *memory;
    int error;

    seep_held_memory_forget(memory);
    if (memory->core != NULL) {
        return 0;
    }
    memory->maps = NULL;
    memory->map_count = 0;
    memory->texts = NULL;
    error = seep_held_process_maps(memory);
    mark_recording(memory);
    for (size_t i = 0; i < before.map_count; i++) {
        struct seep_held_map *map =
            seep_held_map_at(memory, before.maps[i].start);

        if (map != NULL) {
            seep_held_scan_keep(&before, map, &before.maps[i]);
        }
    }
    seep_held_process_forget(&before);
    memory->points_bytes = before.points_bytes;
    return error;
}

static bool is_refused(int error)
{
    return error == EPERM || error == EACCES || error == ENOSYS;
}

/* What may not be read would look as if nobody held anything. Where only the
 * call is refused (yama, a seccomp filter) the file does. */
static int try_to_read(struct seep_held_memory *memory, int memory_fd)
{
    char path[48];
    uint64_t word;
    struct iovec here = {&word, sizeof(word)};
    struct iovec there = {NULL, sizeof(word)};

    for (size_t i = 0; i < memory->map_count; i++) {
        if (memory->maps[i].is_readable && memory->maps[i].is_writable &&
            is_present(memory, memory->maps[i].start)) {
            there.iov_base = (void *)(uintptr_t)memory->maps[i].start;
            break;
        }
    }
    if (read_runs(memory, &here, &there, 1) >= 0 || !is_refused(errno)) {
        return 0;
    }
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)memory->pid);
    memory->file = memory_fd > 0 ? fcntl(memory_fd, F_DUPFD_CLOEXEC, 3)
                                 : open(path, O_RDONLY | O_CLOEXEC);
    if (memory->file < 0) {
        return errno == ENOENT ? -ESRCH : -EPERM;
    }
    memory->is_by_file = true;
    mark_recording(memory);
    return 0;
}

int seep_held_memory_open(const struct seep_held_source *source,
                          struct seep_held_memory *ret_memory)
{
    struct seep_held_memory memory = {
        .pid = source->pid,
        .pagemap = -1,
        .file = -1,
        .recording_inode = source->recording_inode,
        .generation = 1,
    };
    char path[48];
    int error = 0;

    memory.pages = calloc(PAGE_SLOTS, sizeof(*memory.pages));
    if (source->core_path == NULL) {
        memory.window = aligned_alloc(SEEP_HELD_PAGE_BYTES, WINDOW_BYTES);
    }
    if (memory.pages == NULL ||
        (source->core_path == NULL && memory.window == NULL)) {
        error = -ENOMEM;
    } else if (source->core_path != NULL) {
        error = seep_held_core_open(&memory, source->core_path);
    } else {
        snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)memory.pid);
        memory.pagemap = open(path, O_RDONLY | O_CLOEXEC);
        error = memory.pagemap < 0 ? (errno == ENOENT ? -ESRCH : -errno)
                                   : seep_held_memory_reload(&memory);
        error = error < 0 ? error : try_to_read(&memory, source->memory_fd);
        memory.present_bytes = seep_held_process_bytes(memory.pid);
    }
    if (error < 0) {
        seep_held_memory_close(&memory);
        return error;
    }
    *ret_memory = memory;
    return 0;
}

void seep_held_memory_close(struct seep_held_memory *memory)
{
    if (memory->core != NULL) {
        seep_held_core_close(memory);
    }
    if (memory->pagemap >= 0) {
        close(memory->pagemap);
    }
    if (memory->file >= 0) {
        close(memory->file);
    }
    seep_held_process_forget(memory);
    free(memory->nameless_path);
    free(memory->threads);
    free(memory->pages);
    free(memory->window);
    *memory = (struct seep_held_memory){.pagemap = -1, .file = -1};
}

static double cpu_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void seep_held_memory_allow(struct seep_held_memory *memory, double seconds)
{
    memory->cpu_until_s = seconds > 0 ? cpu_now() + seconds : 0;
    memory->is_late = false;
}

bool seep_held_memory_is_late(struct seep_held_memory *memory)
{
    if (memory->cpu_until_s > 0 && !memory->is_late) {
        memory->is_late = cpu_now() > memory->cpu_until_s;
    }
    return memory->is_late;
}

double seep_held_memory_left_s(const struct seep_held_memory *memory)
{
    double left = memory->cpu_until_s - cpu_now();

    return memory->cpu_until_s <= 0 ? 0 : left > 1e-3 ? left : 1e-3;
}

void seep_held_memory_spend(struct seep_held_memory *memory, double seconds)
{
    if (memory->cpu_until_s > 0) {
        memory->cpu_until_s -= seconds;
    }
}

/* For what is done often: the clock costs more than a page that is known. */
static bool may_read(struct seep_held_memory *memory)
{
    if (++memory->read_count % READS_A_LOOK == 0) {
        seep_held_memory_is_late(memory);
    }
    return !memory->is_late;
}

void seep_held_memory_forget(struct seep_held_memory *memory)
{
    memory->generation++;
}

struct seep_held_map *seep_held_map_at(const struct seep_held_memory *memory,
                                       uint64_t address)
{
    size_t low =
        SEEP_SORTED_UP_TO(memory->maps, memory->map_count, start, address);

    return low > 0 && address < memory->maps[low - 1].end
               ? &memory->maps[low - 1]
               : NULL;
}

static const uint8_t *page_of(struct seep_held_memory *memory, uint64_t page)
{
    struct seep_held_page *slot =
        &memory->pages[seep_hash_mix(page) & (PAGE_SLOTS - 1)];

    if (slot->address != page || slot->generation != memory->generation) {
        if (!may_read(memory)) {
            return NULL;
        }
        slot->address = page;
        slot->generation = memory->generation;
        slot->is_there = read_page(memory, page, slot->bytes);
    }
    return slot->is_there ? slot->bytes : NULL;
}

static bool read_core(struct seep_held_memory *memory, uint64_t address,
                      void *to, size_t bytes)
{
    const struct seep_held_map *map = seep_held_map_at(memory, address);
    uint64_t offset = map == NULL ? 0 : address - map->start;

    if (map == NULL || offset > map->core_bytes ||
        bytes > map->core_bytes - offset || !may_read(memory)) {
        return false;
    }
    if (address / SEEP_HELD_PAGE_BYTES != memory->last_page) {
        memory->last_page = address / SEEP_HELD_PAGE_BYTES;
        if (++memory->core_reads % PAGES_KEPT == 0) {
            seep_held_core_let_go(memory);
        }
    }
    memcpy(to, memory->core + map->core_at + offset, bytes);
    return true;
}

#define ENTRIES SEEP_HELD_THERE_MOST

static bool are_present(const struct seep_held_memory *memory, uint64_t address,
                        size_t bytes)
{
    uint64_t entries[ENTRIES];
    uint64_t first = address / SEEP_HELD_PAGE_BYTES;
    size_t count =
        (size_t)((address + bytes - 1) / SEEP_HELD_PAGE_BYTES - first) + 1;
    bool all = count <= ENTRIES &&
               pread(memory->pagemap, entries, count * sizeof(entries[0]),
                     (off_t)(first * sizeof(entries[0]))) ==
                   (ssize_t)(count * sizeof(entries[0]));

    for (size_t i = 0; all && i < count; i++) {
        all = (entries[i] & PAGE_IS_PRESENT) != 0;
    }
    return all;
}

bool seep_held_read(struct seep_held_memory *memory, uint64_t address, void *to,
                    size_t bytes)
{
    uint8_t *at = to;

    if (address < SEEP_HELD_PAGE_BYTES || address >= SEEP_HELD_ADDRESS_END ||
        bytes > SEEP_HELD_ADDRESS_END - address) {
        return false;
    }
    if (memory->core != NULL && read_core(memory, address, to, bytes)) {
        return true;
    }
    if (memory->core == NULL && bytes > 16U * SEEP_HELD_PAGE_BYTES &&
        may_read(memory) && are_present(memory, address, bytes)) {
        return read_process(memory, address, to, bytes);
    }
    while (bytes > 0) {
        uint64_t offset = address % SEEP_HELD_PAGE_BYTES;
        size_t part = SEEP_HELD_PAGE_BYTES - offset;
        const uint8_t *page = page_of(memory, address - offset);

        if (page == NULL) {
            return false;
        }
        part = part < bytes ? part : bytes;
        memcpy(at, page + offset, part);
        at += part;
        address += part;
        bytes -= part;
    }
    return true;
}

void seep_held_read_heads(struct seep_held_memory *memory, uint64_t address,
                          size_t pages, uint64_t (*ret_heads)[2])
{
    struct iovec here[SEEP_HELD_HEADS_MOST];
    struct iovec there[SEEP_HELD_HEADS_MOST];
    uint64_t entries[SEEP_HELD_HEADS_MOST] = {0};
    off_t where = (off_t)(address / SEEP_HELD_PAGE_BYTES * sizeof(entries[0]));
    int count = 0;

    memset(ret_heads, 0, pages * sizeof(*ret_heads));
    if (memory->core == NULL && pread(memory->pagemap, entries,
                                      pages * sizeof(entries[0]), where) < 0) {
        return;
    }
    for (size_t i = 0; i < pages && !memory->is_late; i++) {
        uint64_t page = address + i * SEEP_HELD_PAGE_BYTES;

        if (memory->core != NULL) {
            seep_held_read(memory, page, ret_heads[i], sizeof(*ret_heads));
        } else if ((entries[i] & PAGE_IS_PRESENT) != 0) {
            here[count] = (struct iovec){ret_heads[i], sizeof(*ret_heads)};
            there[count++] =
                (struct iovec){(void *)(uintptr_t)page, sizeof(*ret_heads)};
        }
    }
    if (count > 0) {
        read_runs(memory, here, there, count);
    }
}

uint64_t seep_held_word(struct seep_held_memory *memory, uint64_t address)
{
    uint64_t word;

    return seep_held_read(memory, address, &word, sizeof(word)) ? word : 0;
}

int32_t seep_held_int(struct seep_held_memory *memory, uint64_t address)
{
    int32_t number;

    return seep_held_read(memory, address, &number, sizeof(number)) ? number
                                                                    : 0;
}

bool seep_held_string(struct seep_held_memory *memory, uint64_t address,
                      char *text, size_t capacity)
{
    size_t wanted = capacity - 1;
    size_t in_page = SEEP_HELD_PAGE_BYTES - address % SEEP_HELD_PAGE_BYTES;

    if (!seep_held_read(memory, address, text, wanted)) {
        wanted = in_page < wanted ? in_page : wanted;
        if (!seep_held_read(memory, address, text, wanted)) {
            return false;
        }
    }
    text[wanted] = '\0';
    return true;
}

bool seep_held_map_is_searched(const struct seep_held_map *map)
{
    const char *path = map->path;

    return map->is_readable && map->is_writable && !map->is_own &&
           strncmp(path, "[v", 2) != 0 && !seep_held_is_of_device(path);
}

size_t seep_held_pages_there(const struct seep_held_memory *memory,
                             uint64_t address, size_t pages, bool *ret_there)
{
    uint64_t entries[ENTRIES] = {0};
    size_t count = pages < ENTRIES ? pages : ENTRIES;
    bool is_known =
        memory->core == NULL &&
        pread(memory->pagemap, entries, count * sizeof(entries[0]),
              (off_t)(address / SEEP_HELD_PAGE_BYTES * sizeof(entries[0]))) > 0;

    for (size_t i = 0; i < count; i++) {
        ret_there[i] = !is_known || (entries[i] & PAGE_IS_PRESENT) != 0;
    }
    return count;
}

/* Which pages of the window to read, as pairs of ranges. */
struct runs {
    struct iovec here[WINDOW_PAGES];
    struct iovec there[WINDOW_PAGES];
    int count;
};

static void add_page(struct runs *runs, uint8_t *to, uint64_t address)
{
    if (runs->count > 0) {
        struct iovec *last = &runs->here[runs->count - 1];

        if ((uint8_t *)last->iov_base + last->iov_len == to &&
            last->iov_len < RUN_BYTES) {
            last->iov_len += SEEP_HELD_PAGE_BYTES;
            runs->there[runs->count - 1].iov_len += SEEP_HELD_PAGE_BYTES;
            return;
        }
    }
    runs->here[runs->count] = (struct iovec){to, SEEP_HELD_PAGE_BYTES};
    runs->there[runs->count] =
        (struct iovec){(void *)(uintptr_t)address, SEEP_HELD_PAGE_BYTES};
    runs->count++;
}

/* Those of the window that have words, and such as @scan looks for.
 * @return how many */
static size_t choose_wanted(const struct seep_held_map *map,
                            struct seep_held_scan *scan, uint64_t at,
                            size_t pages, bool *ret_wanted)
{
    uint64_t first = (at - map->start) / SEEP_HELD_PAGE_BYTES;
    size_t count = 0;

    for (size_t i = 0; i < pages; i++) {
        uint64_t number = first + i;

        ret_wanted[i] =
            (map->no_word == NULL ||
             (map->no_word[number / 8] >> number % 8 & 1) == 0) &&
            (scan == NULL || seep_held_scan_wants(scan, map, number));
        count += ret_wanted[i];
    }
    return count;
}

/* @return false: there is nothing, not even in swap */
static bool choose_pages(struct seep_held_memory *memory,
                         const struct seep_held_map *map,
                         struct seep_held_scan *scan, uint64_t at, size_t pages,
                         struct runs *runs)
{
    uint64_t entries[WINDOW_PAGES];
    bool wanted[WINDOW_PAGES];
    off_t where = (off_t)(at / SEEP_HELD_PAGE_BYTES * sizeof(entries[0]));
    bool known;
    bool any = false;

    runs->count = 0;
    if (choose_wanted(map, scan, at, pages, wanted) == 0) {
        return true;
    }
    known = pread(memory->pagemap, entries, pages * sizeof(entries[0]),
                  where) == (ssize_t)(pages * sizeof(entries[0]));
    for (size_t i = 0; i < pages; i++) {
        uint64_t address = at + i * SEEP_HELD_PAGE_BYTES;

        any |=
            !known || (entries[i] & (PAGE_IS_PRESENT | PAGE_IS_SWAPPED)) != 0;
        if (!wanted[i]) {
            continue;
        }
        if (!known || (entries[i] & PAGE_IS_PRESENT) != 0) {
            add_page(runs, memory->window + i * SEEP_HELD_PAGE_BYTES, address);
        } else if ((entries[i] & PAGE_IS_SWAPPED) != 0) {
            memory->stats.swapped_bytes += SEEP_HELD_PAGE_BYTES;
        } else {
            memory->stats.absent_bytes += SEEP_HELD_PAGE_BYTES;
        }
    }
    return any;
}

/* Of the kernel, from 6.7 on: which pages of a range are there. */
struct page_region {
    uint64_t start;
    uint64_t end;
    uint64_t categories;
};

struct page_scan {
    uint64_t bytes;
    uint64_t flags;
    uint64_t start;
    uint64_t end;
    uint64_t walk_end;
    uint64_t regions;
    uint64_t region_count;
    uint64_t pages_most;
    uint64_t category_inverted;
    uint64_t category_mask;
    uint64_t category_any;
    uint64_t return_mask;
};

#define PAGEMAP_SCAN _IOWR('f', 16, struct page_scan)
#define CATEGORY_PRESENT (UINT64_C(1) << 3)
#define CATEGORY_SWAPPED (UINT64_C(1) << 4)

/* The first page from @at on that is there, or in swap; @end: none is. What was
 * mapped and never used, hundreds of GiB of it, costs nothing so. */
static uint64_t skip_hole(struct seep_held_memory *memory, uint64_t at,
                          uint64_t end)
{
    struct page_region region = {.start = end};
    struct page_scan scan = {
        .bytes = sizeof(scan),
        .start = at,
        .end = end,
        .regions = (uint64_t)(uintptr_t)&region,
        .region_count = 1,
        .pages_most = 1,
        .category_any = CATEGORY_PRESENT | CATEGORY_SWAPPED,
        .return_mask = CATEGORY_PRESENT | CATEGORY_SWAPPED,
    };

    if (at >= end || ioctl(memory->pagemap, PAGEMAP_SCAN, &scan) < 0 ||
        region.start < at || region.start > end) {
        return at;
    }
    memory->stats.absent_bytes += region.start - at;
    return region.start;
}

static void visit_runs(struct seep_held_memory *memory,
                       struct seep_held_map *map, const struct runs *runs,
                       seep_held_visitor *visit, void *context)
{
    size_t wanted = 0;
    size_t left;
    ssize_t got;

    for (int i = 0; i < runs->count; i++) {
        wanted += runs->here[i].iov_len;
    }
    got = read_runs(memory, runs->here, runs->there, runs->count);
    left = got > 0 ? (size_t)got : 0;
    memory->stats.read_bytes += left;
    memory->stats.failed_bytes += wanted - left;
    for (int i = 0; i < runs->count && left > 0; i++) {
        size_t part =
            runs->here[i].iov_len < left ? runs->here[i].iov_len : left;

        visit(context, map, runs->here[i].iov_base,
              (uint64_t)(uintptr_t)runs->there[i].iov_base, part / 8);
        left -= part;
    }
}

#define CORE_WINDOWS_KEPT 64U

/* Runs of pages of a window that are wanted; what is no page counts as one. */
static void visit_core_window(struct seep_held_memory *memory,
                              struct seep_held_map *map,
                              struct seep_held_scan *scan, uint64_t at,
                              uint64_t bytes, seep_held_visitor *visit,
                              void *context)
{
    bool wanted[WINDOW_PAGES];
    size_t pages =
        (size_t)((bytes + SEEP_HELD_PAGE_BYTES - 1) / SEEP_HELD_PAGE_BYTES);
    size_t i = 0;

    choose_wanted(map, scan, map->start + at, pages, wanted);
    while (i < pages) {
        const uint8_t *from =
            memory->core + map->core_at + at + i * SEEP_HELD_PAGE_BYTES;
        uint64_t run = i * SEEP_HELD_PAGE_BYTES;
        size_t end = i;

        while (end < pages && wanted[end]) {
            end++;
        }
        run = (end < pages ? end * SEEP_HELD_PAGE_BYTES : bytes) - run;
        if (end > i) {
            memory->stats.read_bytes += run;
            visit(context, map, (const uint64_t *)(const void *)from,
                  map->start + at + i * SEEP_HELD_PAGE_BYTES, run / 8);
        }
        i = end + 1;
    }
}

static void visit_core(struct seep_held_memory *memory,
                       struct seep_held_map *map, struct seep_held_scan *scan,
                       seep_held_visitor *visit, void *context)
{
    uint32_t windows = 0;

    for (uint64_t at = 0;
         at < map->core_bytes && !seep_held_memory_is_late(memory);) {
        uint64_t left = map->core_bytes - at;
        uint64_t bytes = left < WINDOW_BYTES ? left : WINDOW_BYTES;

        visit_core_window(memory, map, scan, at, bytes, visit, context);
        at += bytes;
        if (++windows % CORE_WINDOWS_KEPT == 0) {
            seep_held_core_let_go(memory);
        }
    }
}

void seep_held_each_page(struct seep_held_memory *memory,
                         struct seep_held_map *map, struct seep_held_scan *scan,
                         seep_held_visitor *visit, void *context)
{
    struct runs runs;

    if (memory->core != NULL) {
        visit_core(memory, map, scan, visit, context);
        return;
    }
    for (uint64_t at = map->start;
         at < map->end && !seep_held_memory_is_late(memory);) {
        uint64_t bytes = WINDOW_BYTES - at % WINDOW_BYTES;
        bool is_hole;

        bytes = map->end - at < bytes ? map->end - at : bytes;
        is_hole = !choose_pages(memory, map, scan, at,
                                bytes / SEEP_HELD_PAGE_BYTES, &runs);
        if (runs.count > 0) {
            visit_runs(memory, map, &runs, visit, context);
        }
        at += bytes;
        at = is_hole ? skip_hole(memory, at, map->end) : at;
    }
}

void seep_held_path(const struct seep_held_memory *memory, const char *path,
                    char *text, size_t capacity)
{
    if (memory->core != NULL) {
        snprintf(text, capacity, "%s", path);
    } else {
        snprintf(text, capacity, "/proc/%d/root%s", (int)memory->pid, path);
    }
}
