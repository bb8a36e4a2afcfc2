/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One external sample, taken. Invariant: only files of /proc and of its cgroup
 * are read; the process is neither stopped nor written to.
 *
 * The sums are of statm, as the timeline samples have them. Which
 * mappings there are is asked of maps, and what is in them of the page map.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "reader/process/cgroup.h"
#include "reader/process/sample.h"
#include "reader/recording/open.h"
#include "reader/recording/store.h"

/* More mappings than this go into the sums only. */
#define SEEP_SMAPS_LIMIT ((size_t)1 << 20)

/*
 * The text of /proc/PID/smaps, or maps. Invariant: a mapping is kept when the
 * line that opens the next one was read, so one that was cut short has what was
 * read.
 */

#define NAME_BYTES 512U
/* A model of 140 GB, mapped read-only, is no leak, and costs a second. */
#define READ_ONLY_BYTES_MAX ((uint64_t)64 << 20)
/* What is larger is address space that was set aside. */
#define BYTES_MAX ((uint64_t)1 << 40)

struct parser {
    enum seep_smaps_kind kind;
    struct seep_smaps *smaps;
    struct seep_external_mapping open; /* whose lines are being read */
    bool is_open;
    bool is_worth; /* of maps: it is kept */
    char name[NAME_BYTES];
};

void seep_smaps_fini(struct seep_smaps *smaps)
{
    for (size_t i = 0; i < smaps->count; i++) {
        free(smaps->mappings[i].name);
    }
    free(smaps->mappings);
    *smaps = (struct seep_smaps){.count = 0};
}

static int close_mapping(struct parser *parser)
{
    struct seep_smaps *smaps = parser->smaps;
    struct seep_external_mapping *open = &parser->open;
    bool kept = parser->kind == SEEP_MAPS
                    ? parser->is_worth
                    : open->rss_bytes > 0 || open->swap_bytes > 0;
    struct seep_external_mapping *mappings;

    if (!parser->is_open || !kept || smaps->count == SEEP_SMAPS_LIMIT) {
        return 0;
    }
    mappings = seep_list_grow(smaps->mappings, smaps->count, sizeof(*mappings));
    if (mappings == NULL) {
        return -ENOMEM;
    }
    smaps->mappings = mappings;
    open->name = strdup(parser->name);
    if (open->name == NULL) {
        return -ENOMEM;
    }
    mappings[smaps->count++] = *open;
    return 0;
}

/* @permissions: "rw-p". Memory of a device is not the process's. */
static bool can_grow(const struct parser *parser, const char *permissions)
{
    uint64_t bytes = parser->open.end - parser->open.start;

    if (strncmp(permissions, "---", 3) == 0 || bytes > BYTES_MAX) {
        return false;
    }
    if (permissions[1] != 'w' && parser->open.inode != 0 &&
        bytes > READ_ONLY_BYTES_MAX) {
        return false;
    }
    return strncmp(parser->name, "/dev/", 5) != 0 ||
           strncmp(parser->name, "/dev/shm/", 9) == 0 ||
           strncmp(parser->name, "/dev/zero", 9) == 0;
}

/* "55d0-55e0 r--p 00000000 fe:00 247498    /usr/bin/head" */
static bool open_mapping(struct parser *parser, const char *line,
                         int *ret_error)
{
    struct seep_external_mapping open = {.start = 0};
    char permissions[8];
    int name = 0;

    if (strspn(line, "0123456789abcdef") == 0 ||
        sscanf(line, "%16" SCNx64 "-%16" SCNx64 " %7s %*s %*s %" SCNu64 " %n",
               &open.start, &open.end, permissions, &open.inode, &name) < 3 ||
        open.end <= open.start) {
        return false;
    }
    *ret_error = close_mapping(parser);
    parser->open = open;
    parser->is_open = true;
    snprintf(parser->name, sizeof(parser->name), "%s",
             name > 0 ? line + name : "");
    parser->is_worth = can_grow(parser, permissions);
    return true;
}

/* "Rss:      12 kB" */
static int take_line(struct parser *parser, const char *line)
{
    struct seep_external_mapping *open = &parser->open;
    const struct {
        const char *key;
        uint64_t *bytes;
    } values[] = {
        {"Rss:", &open->rss_bytes},
        {"Anonymous:", &open->anonymous_bytes},
        {"Swap:", &open->swap_bytes},
    };
    int error = 0;

    if (open_mapping(parser, line, &error)) {
        return error;
    }
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        size_t length = strlen(values[i].key);

        if (strncmp(line, values[i].key, length) == 0) {
            *values[i].bytes = strtoull(line + length, NULL, 10) * 1024;
        }
    }
    return 0;
}

int seep_smaps_read(FILE *file, enum seep_smaps_kind kind,
                    struct seep_smaps *ret_smaps)
{
    struct seep_smaps smaps = {.count = 0};
    struct parser parser = {.kind = kind, .smaps = &smaps};
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    int error = 0;

    while (error == 0 && (length = getline(&line, &capacity, file)) > 0 &&
           line[length - 1] == '\n') { /* half a line says nothing */
        line[length - 1] = '\0';
        error = take_line(&parser, line);
    }
    if (error == 0) {
        error = feof(file) ? close_mapping(&parser) : -errno;
    }
    free(line);
    if (error < 0) {
        seep_smaps_fini(&smaps);
        return error;
    }
    *ret_smaps = smaps;
    return 0;
}

/*
 * Pages of mappings. Invariant: no more is read than windows
 * that begin in a mapping, and neighbours share them: a system call a mapping
 * would cost as much as smaps.
 */

#define WINDOW_PAGES 8192U
#define ENTRY_PRESENT ((uint64_t)1 << 63)
#define ENTRY_SWAP ((uint64_t)1 << 62)
#define ENTRY_FILE ((uint64_t)1 << 61)  /* or shared memory */
#define ENTRY_ALONE ((uint64_t)1 << 56) /* no other process has it as well */

struct window {
    int fd;
    uint64_t page_bytes;
    uint64_t start; /* pages */
    uint64_t end;
    uint64_t entries[WINDOW_PAGES];
};

static void load(struct window *window, uint64_t start, uint64_t end)
{
    ssize_t length =
        seep_open_read(window->fd, window->entries, start * sizeof(uint64_t),
                       (end - start) * sizeof(uint64_t));

    window->start = start;
    window->end =
        start + (length < 0 ? 0 : (uint64_t)length / sizeof(uint64_t));
}

/* Up to where mappings reach that begin in the window at @page; the kernel
 * lists them by address, but no count may hang on that. */
static uint64_t reach(const struct window *window,
                      const struct seep_external_mapping *mappings,
                      size_t count, uint64_t page)
{
    uint64_t limit = page + WINDOW_PAGES;
    uint64_t end = page;

    for (size_t i = 0; i < count; i++) {
        if (mappings[i].start / window->page_bytes >= limit) {
            break;
        }
        uint64_t mapping_end = mappings[i].end / window->page_bytes;
        end = mapping_end > end ? mapping_end : end;
    }
    return end < limit ? end : limit;
}

static void count_pages(const struct window *window, uint64_t start,
                        uint64_t end, struct seep_external_mapping *mapping)
{
    uint64_t present = 0;
    uint64_t anonymous = 0;
    uint64_t swapped = 0;
    uint64_t forked = 0;

    for (uint64_t i = start; i < end; i++) {
        uint64_t entry = window->entries[i - window->start];
        bool is_present = (entry & ENTRY_PRESENT) != 0;
        present += is_present;
        anonymous += is_present && (entry & ENTRY_FILE) == 0;
        swapped += (entry & ENTRY_SWAP) != 0;
        forked += is_present && (entry & (ENTRY_FILE | ENTRY_ALONE)) == 0;
    }
    mapping->rss_bytes += present * window->page_bytes;
    mapping->anonymous_bytes += anonymous * window->page_bytes;
    mapping->swap_bytes += swapped * window->page_bytes;
    mapping->forked_bytes += forked * window->page_bytes;
}

static void fill(struct window *window, struct seep_external_mapping *mappings,
                 size_t count)
{
    uint64_t page = mappings->start / window->page_bytes;
    uint64_t end = mappings->end / window->page_bytes;

    while (page < end) {
        if (page < window->start || page >= window->end) {
            load(window, page, reach(window, mappings, count, page));
        }
        uint64_t stop = end < window->end ? end : window->end;
        if (stop <= page) {
            return; /* beyond what a process can have */
        }
        count_pages(window, page, stop, mappings);
        page = stop;
    }
}

int seep_external_pages(pid_t pid, struct seep_external_mapping *mappings,
                        size_t count)
{
    char path[64];
    struct window *window = calloc(1, sizeof(*window));

    if (window == NULL) {
        return -ENOMEM;
    }
    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
    window->fd = open(path, O_RDONLY | O_CLOEXEC);
    window->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    int error = window->fd < 0 ? -errno : 0;
    for (size_t i = 0; error == 0 && i < count; i++) {
        fill(window, &mappings[i], count - i);
    }
    if (window->fd >= 0) {
        close(window->fd);
    }
    free(window);
    return error;
}

/*
 * Which mappings of a sample are kept: seep_smaps_select(). Invariant: what
 * is joined keeps its bytes, and nothing that goes is larger than what stays.
 *
 * A program that maps 64 KiB at a time has ten thousand mappings, of which none
 * is large: were they not joined before the largest are taken, its growth would
 * be in no mapping at all.
 */

#define SMALL_BYTES ((uint64_t)4 << 20)
#define GAP_BYTES ((uint64_t)64 << 20)

static uint64_t bytes_of(const struct seep_external_mapping *mapping)
{
    return mapping->rss_bytes + mapping->swap_bytes;
}

/* A large anonymous one stays alone: it may be an allocator's, and what lies
 * beside it the program's own. */
static bool is_small(const struct seep_external_mapping *mapping)
{
    return mapping->name[0] != '\0' || bytes_of(mapping) <= SMALL_BYTES;
}

static size_t join(struct seep_external_mapping *mappings, size_t count)
{
    size_t kept = 0;
    bool small_before = false;

    for (size_t i = 0; i < count; i++) {
        struct seep_external_mapping *now = &mappings[i];
        struct seep_external_mapping *last =
            kept == 0 ? NULL : &mappings[kept - 1];
        bool small = is_small(now);

        if (small && small_before && now->start - last->end <= GAP_BYTES &&
            strcmp(now->name, last->name) == 0) {
            last->end = now->end;
            last->rss_bytes += now->rss_bytes;
            last->anonymous_bytes += now->anonymous_bytes;
            last->swap_bytes += now->swap_bytes;
            free(now->name);
        } else {
            mappings[kept++] = *now;
        }
        small_before = small;
    }
    return kept;
}

static int compare_addresses(const void *a, const void *b)
{
    const struct seep_external_mapping *left = a;
    const struct seep_external_mapping *right = b;

    return (left->start > right->start) - (left->start < right->start);
}

/* The largest first; of equal ones the first. */
static int compare_sizes(const void *a, const void *b)
{
    uint64_t left = bytes_of(a);
    uint64_t right = bytes_of(b);

    return left != right ? (left < right ? 1 : -1) : compare_addresses(a, b);
}

static size_t drop_empty(struct seep_external_mapping *mappings, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (bytes_of(&mappings[i]) > 0) {
            mappings[kept++] = mappings[i];
        } else {
            free(mappings[i].name);
        }
    }
    return kept;
}

size_t seep_smaps_select(struct seep_external_mapping *mappings, size_t count,
                         size_t limit)
{
    count = drop_empty(mappings, count);
    count = count > limit ? join(mappings, count) : count;
    if (count > limit) {
        qsort(mappings, count, sizeof(*mappings), compare_sizes);
        while (count > limit) {
            free(mappings[--count].name);
        }
        qsort(mappings, count, sizeof(*mappings), compare_addresses);
    }
    return count;
}

/* The sample itself. */

#define READ_BYTES 32768
#define TEXT_BYTES 8192
#define CGROUP_ROOT "/sys/fs/cgroup"

static int read_mappings(pid_t pid, enum seep_smaps_kind kind,
                         struct seep_smaps *ret_smaps)
{
    char path[64];
    char buffer[READ_BYTES];
    FILE *file;
    int error;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid,
             kind == SEEP_MAPS ? "maps" : "smaps");
    file = fopen(path, "re");
    if (file == NULL) {
        return errno == ENOENT ? -ESRCH : -errno;
    }
    setvbuf(file, buffer, _IOFBF, sizeof(buffer));
    error = seep_smaps_read(file, kind, ret_smaps);
    fclose(file);
    return error;
}

static int take_sums(pid_t pid, struct seep_external_sample *sample)
{
    char text[TEXT_BYTES];
    unsigned long long resident = 0;
    unsigned long long shared = 0;
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    ssize_t got = seep_proc_text_of(pid, "statm", text, sizeof(text));

    if (got <= 0 || sscanf(text, "%*u %llu %llu", &resident, &shared) != 2) {
        return got < 0 && got != -ENOENT ? (int)got : -ESRCH;
    }
    sample->rss_bytes = resident * page_bytes;
    sample->shared_bytes = (shared < resident ? shared : resident) * page_bytes;
    sample->anonymous_bytes = sample->rss_bytes - sample->shared_bytes;
    sample->other_rss_bytes = sample->rss_bytes;
    if (seep_proc_text_of(pid, "status", text, sizeof(text)) > 0) {
        const char *threads = strstr(text, "\nThreads:");

        seep_proc_find_bytes(text, "\nVmSwap:", &sample->swap_bytes);
        sample->thread_count =
            threads == NULL ? 0
                            : strtoul(threads + strlen("\nThreads:"), NULL, 10);
    }
    return 0;
}

static int find_mappings(pid_t pid, struct seep_smaps *smaps)
{
    int error = read_mappings(pid, SEEP_MAPS, smaps);

    if (error == 0 &&
        seep_external_pages(pid, smaps->mappings, smaps->count) < 0) {
        seep_smaps_fini(smaps);
        error = read_mappings(pid, SEEP_SMAPS, smaps);
    }
    return error;
}

static int take_mappings(pid_t pid, struct seep_external_sample *sample)
{
    struct seep_smaps smaps = {.count = 0};
    uint64_t listed_bytes = 0;
    int error = find_mappings(pid, &smaps);

    if (error < 0) {
        return error;
    }
    for (size_t i = 0; i < smaps.count; i++) {
        sample->forked_bytes += smaps.mappings[i].forked_bytes;
    }
    sample->mappings = smaps.mappings;
    sample->mapping_count = seep_smaps_select(smaps.mappings, smaps.count,
                                              SEEP_EXTERNAL_MAPPINGS_MAX);
    for (size_t i = 0; i < sample->mapping_count; i++) {
        listed_bytes += sample->mappings[i].rss_bytes;
    }
    sample->other_rss_bytes =
        sample->rss_bytes > listed_bytes ? sample->rss_bytes - listed_bytes : 0;
    return 0;
}

static double seconds_since(uint64_t start_ns)
{
    uint64_t now_ns = seep_clock_ns(CLOCK_MONOTONIC);

    return now_ns > start_ns ? (double)(now_ns - start_ns) * 1e-9 : 0;
}

int seep_external_sample_take(pid_t pid, uint64_t start_monotonic_ns,
                              struct seep_external_sample *ret_sample)
{
    struct seep_external_sample sample = {
        .t_s = seconds_since(start_monotonic_ns)};
    char text[TEXT_BYTES];
    int error = take_sums(pid, &sample);

    if (error == 0 && sample.rss_bytes == 0) {
        error = -ESRCH; /* it has ended and was not waited for */
    }
    if (error == 0) {
        error = take_mappings(pid, &sample);
        if (error == -EACCES || error == -EPERM) {
            error = 0; /* the sums may be seen all the same */
        }
    }
    if (error < 0) {
        seep_external_sample_fini(&sample);
        return error;
    }
    seep_external_files_take(pid, &sample.open_file_bytes, sample.open_file);
    if (seep_proc_text_of(pid, "cgroup", text, sizeof(text)) > 0) {
        struct seep_cgroup_use use;

        seep_cgroup_use_of(text, CGROUP_ROOT, &use);
        sample.cgroup_bytes = use.bytes;
        sample.cgroup_limit_bytes = use.limit_bytes;
        sample.cgroup_held_bytes = use.held_bytes;
        sample.cgroup_shmem_bytes = use.shmem_bytes;
    }
    if (seep_proc_text("/proc/meminfo", text, sizeof(text)) > 0) {
        seep_proc_find_bytes(text, "\nMemAvailable:", &sample.available_bytes);
    }
    *ret_sample = sample;
    return 0;
}
