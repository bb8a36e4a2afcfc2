/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What /proc says of a living process: mappings, threads, how large it is.
 *
 * Invariant: what makes no sense there is left out; nothing of the process is
 * read.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "held/memory.h"

#define MAPS_BYTES_MOST (64U << 20)
#define THREADS_MOST 4096U
#define WAITS_MOST 2000U /* of 0.5 ms, for threads that run */

/* All of a file of /proc, whose size is not known; NULL: errno says why. */
static char *read_all(const char *path, size_t most)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t capacity = 65536;
    size_t used = 0;
    char *text = fd < 0 ? NULL : malloc(capacity + 1);
    ssize_t got = 1;

    while (text != NULL && got > 0 && used < most) {
        if (used == capacity) {
            char *more = realloc(text, 2 * capacity + 1);

            if (more == NULL) {
                break;
            }
            text = more;
            capacity *= 2;
        }
        got = read(fd, text + used, capacity - used);
        used += got > 0 ? (size_t)got : 0;
    }
    if (text != NULL) {
        text[used] = '\0';
    }
    if (fd >= 0) {
        int error = errno;

        close(fd);
        errno = error;
    }
    return text;
}

/* One line of maps, which is cut up; false: it makes no sense. */
static bool parse_map(char *line, struct seep_held_map *map)
{
    unsigned long long start;
    unsigned long long end;
    unsigned long long offset;
    unsigned long long inode;
    char rights[5];
    int at = 0;

    if (sscanf(line, "%llx-%llx %4s %llx %*x:%*x %llu %n", &start, &end, rights,
               &offset, &inode, &at) < 5 ||
        start >= end) {
        return false;
    }
    *map = (struct seep_held_map){
        .start = start,
        .end = end,
        .file_offset = offset,
        .inode = inode,
        .path = at > 0 ? line + at : "",
        .is_readable = rights[0] == 'r',
        .is_writable = rights[1] == 'w',
        .is_code = rights[2] == 'x',
        .is_shared = rights[3] == 's',
    };
    return true;
}

static bool is_of_libseep(const char *path)
{
    const char *name = strrchr(path, '/');

    return name != NULL && strncmp(name, "/libseep.so", 11) == 0;
}

/* What a driver maps is its device's: reading it may do something. */
bool seep_held_is_of_device(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0 &&
           strncmp(path, "/dev/zero", 9) != 0 &&
           strncmp(path, "/dev/shm/", 9) != 0;
}

void seep_held_process_forget(struct seep_held_memory *memory)
{
    for (size_t i = 0; i < memory->map_count; i++) {
        seep_held_scan_forget(memory, &memory->maps[i]);
    }
    free(memory->maps);
    free(memory->texts);
    memory->maps = NULL;
    memory->texts = NULL;
    memory->map_count = 0;
}

int seep_held_process_maps(struct seep_held_memory *memory)
{
    char path[48];
    char *text;
    size_t lines = 0;
    char *rest;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)memory->pid);
    text = read_all(path, MAPS_BYTES_MOST);
    if (text == NULL) {
        return errno == ENOENT ? -ESRCH : -errno;
    }
    for (const char *at = text; *at != '\0'; at++) {
        lines += *at == '\n';
    }
    memory->texts = text;
    memory->maps = calloc(lines + 1, sizeof(*memory->maps));
    rest = text;
    while (memory->maps != NULL && memory->map_count < lines) {
        struct seep_held_map *map = &memory->maps[memory->map_count];
        char *line = strsep(&rest, "\n");

        if (line == NULL) {
            break;
        }
        if (parse_map(line, map)) {
            map->is_own =
                is_of_libseep(map->path) ||
                (map->inode != 0 && map->inode == memory->recording_inode);
            memory->map_count++;
        }
    }
    /* Of a process that has none it may be that nobody may see them. */
    return memory->maps == NULL ? -ENOMEM : lines == 0 ? -ESRCH : 0;
}

int seep_held_process_writes(pid_t pid, uint64_t inode)
{
    struct seep_held_memory memory = {.pid = pid, .recording_inode = inode};
    int answer = seep_held_process_maps(&memory);

    for (size_t i = 0; answer == 0 && i < memory.map_count; i++) {
        const struct seep_held_map *map = &memory.maps[i];

        answer = inode != 0 && map->inode == inode && map->is_shared &&
                 map->is_writable;
    }
    free(memory.texts);
    free(memory.maps);
    return answer;
}

/* "0 0x7f.. ... 0xSP 0xPC" of one that waits, "running" of one that runs. */
static uint64_t stack_pointer_of(pid_t pid, const char *thread, uint32_t *waits)
{
    char path[300];
    char *text;
    char *last = NULL;
    char *before = NULL;
    uint64_t pointer = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%s/syscall", (int)pid, thread);
    for (int i = 0; i < 20 && pointer == 0; i++) {
        text = read_all(path, 4096);
        if (text == NULL) {
            return 0;
        }
        last = strrchr(text, ' ');
        if (last != NULL) {
            *last = '\0';
            before = strrchr(text, ' ');
            pointer = before == NULL ? 0 : strtoull(before + 1, NULL, 16);
        }
        free(text);
        if (pointer == 0 && *waits >= WAITS_MOST) {
            break;
        }
        if (pointer == 0) {
            (*waits)++;
            usleep(500);
        }
    }
    return pointer;
}

int seep_held_process_threads(struct seep_held_memory *memory)
{
    char path[300];
    DIR *tasks;
    const struct dirent *entry;
    uint32_t waits = 0;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)memory->pid);
    tasks = opendir(path);
    free(memory->threads);
    memory->thread_count = 0;
    memory->threads = calloc(THREADS_MOST, sizeof(*memory->threads));
    if (tasks == NULL || memory->threads == NULL) {
        int error = tasks == NULL ? -errno : -ENOMEM;

        if (tasks != NULL) {
            closedir(tasks);
        }
        return error;
    }
    while (memory->thread_count < THREADS_MOST &&
           (entry = readdir(tasks)) != NULL) {
        struct seep_held_thread *thread =
            &memory->threads[memory->thread_count];
        char *name;

        thread->id = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread->id <= 0) {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)memory->pid,
                 entry->d_name);
        name = read_all(path, 64);
        snprintf(thread->name, sizeof(thread->name), "%.*s",
                 name == NULL ? 0 : (int)strcspn(name, "\n"),
                 name == NULL ? "" : name);
        free(name);
        thread->stack_pointer =
            stack_pointer_of(memory->pid, entry->d_name, &waits);
        memory->thread_count++;
    }
    closedir(tasks);
    return 0;
}

/* Resident, of which no process says more than it costs the machine. */
uint64_t seep_held_process_bytes(pid_t pid)
{
    char path[48];
    char *text;
    uint64_t pages = 0;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    text = read_all(path, 4096);
    if (text != NULL && strchr(text, ' ') != NULL) {
        pages = strtoull(strchr(text, ' '), NULL, 10);
    }
    free(text);
    return pages * SEEP_HELD_PAGE_BYTES;
}
