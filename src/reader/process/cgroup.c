/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What small files of the kernel say of a process. Invariant: a file that is
 * missing or not understood says "unknown", never a figure.
 */
#include "reader/process/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/word.h"
#include "reader/recording/series.h"

ssize_t seep_proc_text(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
    int error = -errno;

    if (fd >= 0) {
        close(fd);
    }
    text[got < 0 ? 0 : got] = '\0';
    return got < 0 ? error : got;
}

ssize_t seep_proc_text_of(pid_t pid, const char *name, char *text, size_t bytes)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return seep_proc_text(path, text, bytes);
}

bool seep_proc_find_bytes(const char *text, const char *key,
                          uint64_t *ret_bytes)
{
    const char *at = strstr(text, key);

    if (at != NULL) {
        *ret_bytes = strtoull(at + strlen(key), NULL, 10) * 1024;
    }
    return at != NULL;
}

/* The memory cgroup of a process, in either version. */

/* Version 1 writes "none" as the largest multiple of a page. */
#define NO_LIMIT_BYTES ((uint64_t)1 << 60)
#define STAT_BYTES 16384

struct version {
    const char *mount; /* below the root */
    const char *usage;
    const char *limit;
};

static const struct version unified = {"", "memory.current", "memory.max"};
static const struct version hybrid = {"/unified", "memory.current",
                                      "memory.max"};
static const struct version first = {"/memory", "memory.usage_in_bytes",
                                     "memory.limit_in_bytes"};

static bool read_text(const char *folder, const char *name, char *text,
                      size_t bytes)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);

    return length < (int)sizeof(path) && seep_proc_text(path, text, bytes) > 0;
}

/* @return false if there is no such file, or no number in it ("max") */
static bool read_number(const char *folder, const char *name,
                        uint64_t *ret_number)
{
    char text[32];
    char *end;

    if (!read_text(folder, name, text, sizeof(text))) {
        return false;
    }
    unsigned long long number = strtoull(text, &end, 10);
    if (end == text || text[0] == '-') {
        return false;
    }
    *ret_number = number;
    return true;
}

/* The path of the line whose controllers are @controllers: "4:memory:/a/b". */
static bool find_path(const char *membership, const char *controllers,
                      char path[PATH_MAX])
{
    for (const char *line = membership; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *name = memchr(line, ':', length);
        const char *end =
            name == NULL
                ? NULL
                : memchr(name + 1, ':', (size_t)(line + length - name - 1));

        if (end != NULL && (size_t)(end - name - 1) == strlen(controllers) &&
            strncmp(name + 1, controllers, strlen(controllers)) == 0 &&
            line + length - end - 1 < PATH_MAX) {
            snprintf(path, PATH_MAX, "%.*s", (int)(line + length - end - 1),
                     end + 1);
            return true;
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

/* "inactive_file 4096", or of version 1 with all groups below. */
static uint64_t read_cache(const char *folder)
{
    char text[STAT_BYTES];
    const char *at = NULL;

    if (read_text(folder, "memory.stat", text, sizeof(text))) {
        at = strstr(text, "\ntotal_inactive_file ");
        at = at != NULL ? at : strstr(text, "\ninactive_file ");
    }
    return at != NULL ? strtoull(strchr(at, ' '), NULL, 10) : 0;
}

struct finding {
    bool cache_is_room;
    bool wants_parts;
    uint64_t held_bytes;
    uint64_t shmem_bytes;
    uint64_t bytes;
    uint64_t limit_bytes;
    uint64_t left_bytes; /* to the limit */
};

/* @param key  "\nshmem " @return 0 also where it is not told */
static uint64_t part_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at != NULL ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/*
 * Of the group that is found, and all below it. What can be given back is page
 * cache of files, of which a tmpfs has none, and what the kernel remembers of
 * names of files. Version 1 does not tell that apart: of it the kernel's own
 * memory is not counted.
 */
static void read_parts(const char *folder, uint64_t bytes,
                       struct finding *finding)
{
    char text[STAT_BYTES];
    uint64_t shmem;
    uint64_t cache;

    finding->held_bytes = 0;
    finding->shmem_bytes = 0;
    if (!finding->wants_parts ||
        !read_text(folder, "memory.stat", text, sizeof(text))) {
        return;
    }
    if (strstr(text, "\ntotal_rss ") != NULL) {
        finding->shmem_bytes = part_of(text, "\ntotal_shmem ");
        finding->held_bytes =
            part_of(text, "\ntotal_rss ") + finding->shmem_bytes;
        return;
    }
    shmem = part_of(text, "\nshmem ");
    cache = part_of(text, "\nfile ");
    cache = cache > shmem ? cache - shmem : 0;
    cache += part_of(text, "\nslab_reclaimable ");
    finding->shmem_bytes = shmem;
    finding->held_bytes = bytes > cache ? bytes - cache : 0;
}

static void measure(const struct version *version, const char *folder,
                    struct finding *finding)
{
    uint64_t bytes;
    uint64_t limit;
    uint64_t left;

    if (!read_number(folder, version->usage, &bytes)) {
        return;
    }
    if (finding->bytes == 0) {
        finding->bytes = bytes; /* its own, should nothing be limited */
        read_parts(folder, bytes, finding);
    }
    if (!read_number(folder, version->limit, &limit) || limit == 0 ||
        limit >= NO_LIMIT_BYTES) {
        return;
    }
    left = limit > bytes ? limit - bytes : 0;
    if (finding->cache_is_room) {
        uint64_t cache = read_cache(folder);
        left += cache < bytes ? cache : bytes;
        left = left < limit ? left : limit;
    }
    if (finding->limit_bytes == 0 || left < finding->left_bytes) {
        finding->bytes = bytes;
        finding->limit_bytes = limit;
        finding->left_bytes = left;
        read_parts(folder, bytes, finding);
    }
}

/* From the group itself up to the mount. In a container the path may be the
 * host's, of which nothing is mounted but what lies at the root. */
static bool climb(const struct version *version, const char *root,
                  const char *path, struct finding *finding)
{
    char folder[2 * PATH_MAX];
    size_t bottom =
        (size_t)snprintf(folder, sizeof(folder), "%s%s", root, version->mount);

    if (bottom >= PATH_MAX || strstr(path, "/..") != NULL) {
        return false; /* outside of the namespace that we see */
    }
    snprintf(folder + bottom, sizeof(folder) - bottom, "%s",
             strcmp(path, "/") == 0 ? "" : path);
    for (;;) {
        measure(version, folder, finding);
        char *slash = strrchr(folder + bottom, '/');
        if (slash == NULL) {
            return finding->bytes != 0;
        }
        *slash = '\0';
    }
}

static void find(const char *membership, const char *root,
                 struct finding *finding)
{
    char path[PATH_MAX];
    bool found = false;

    if (find_path(membership, "memory", path)) {
        found = climb(&first, root, path, finding);
    }
    if (!found && find_path(membership, "", path) &&
        !climb(&unified, root, path, finding)) {
        climb(&hybrid, root, path, finding);
    }
}

void seep_cgroup_usage(const char *membership, const char *root,
                       uint64_t *ret_bytes, uint64_t *ret_limit_bytes)
{
    struct finding finding = {0};

    find(membership, root, &finding);
    *ret_bytes = finding.bytes;
    *ret_limit_bytes = finding.limit_bytes;
}

void seep_cgroup_use_of(const char *membership, const char *root,
                        struct seep_cgroup_use *ret_use)
{
    struct finding finding = {.wants_parts = true};

    find(membership, root, &finding);
    *ret_use = (struct seep_cgroup_use){
        .bytes = finding.bytes,
        .limit_bytes = finding.limit_bytes,
        .held_bytes = finding.held_bytes,
        .shmem_bytes = finding.shmem_bytes,
    };
}

void seep_cgroup_room(const char *membership, const char *root,
                      uint64_t *ret_left_bytes, uint64_t *ret_limit_bytes)
{
    struct finding finding = {.cache_is_room = true};

    find(membership, root, &finding);
    *ret_left_bytes = finding.left_bytes;
    *ret_limit_bytes = finding.limit_bytes;
}

#define STATE_FIELD 3
#define LAST_FIELD 28

int seep_target_read(pid_t pid, struct seep_target *ret_target)
{
    char text[1024];
    uint64_t fields[LAST_FIELD + 1] = {0};
    char state = '?';
    ssize_t length = seep_proc_text_of(pid, "stat", text, sizeof(text));
    /* the second field may hold blanks and brackets */
    char *at = strrchr(text, ')');

    for (int i = STATE_FIELD; at != NULL && i <= LAST_FIELD; i++) {
        at = strchr(at, ' ');
        if (at != NULL && i == STATE_FIELD) {
            state = at[1];
        }
        if (at != NULL) {
            fields[i] = strtoull(++at, NULL, 10);
        }
    }
    if (at == NULL) {
        return length == -ENOENT ? -ESRCH : length < 0 ? (int)length : -EBADMSG;
    }
    *ret_target = (struct seep_target){
        .pid = pid,
        .state = state,
        .start_clock = fields[22],
        .start_code = fields[26],
        .start_stack = fields[28],
    };
    return 0;
}

bool seep_target_is_alive(const struct seep_target *target)
{
    return target->state != 'Z' && target->state != 'X';
}

static uint64_t namespace_of(const char *process, const char *kind)
{
    char path[64];
    struct stat status;

    snprintf(path, sizeof(path), "/proc/%s/ns/%s", process, kind);
    return stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* In another time namespace a process tells another start clock of itself than
 * we see: then it is known by its stack, which no two images have in common. */
static bool has_other_clocks(pid_t pid)
{
    char process[16];
    uint64_t own = namespace_of("self", "time");
    uint64_t its;

    snprintf(process, sizeof(process), "%d", (int)pid);
    its = namespace_of(process, "time");
    return own != 0 && its != 0 && own != its;
}

bool seep_target_is_of(const struct seep_target *target,
                       const struct seep_rec_header *header)
{
    uint64_t stack = seep_word_load(&header->image_stack);
    bool is_told = stack != 0 && target->start_stack != 0;

    if (is_told && target->start_stack != stack) {
        return false;
    }
    return target->start_clock == header->process_start_clock ||
           (is_told && has_other_clocks(target->pid));
}

int seep_process_boot_of(const struct seep_rec_header *header)
{
    char text[64];
    size_t length = strnlen(header->boot_id, sizeof(header->boot_id));

    if (length == 0 || seep_proc_text("/proc/sys/kernel/random/boot_id", text,
                                      sizeof(text)) <= 0) {
        return 0;
    }
    return strcspn(text, "\n") == length &&
                   strncmp(text, header->boot_id, length) == 0
               ? 1
               : -1;
}

uint64_t seep_process_namespace(const char *process)
{
    return namespace_of(process, "pid");
}

enum seep_process_presence
seep_process_presence_of(const struct seep_rec_header *header,
                         bool *ret_stopped)
{
    struct seep_target target;
    uint64_t namespace = seep_process_namespace("self");
    int error;

    if (header->pid == 0 || header->process_start_clock == 0 ||
        seep_process_boot_of(header) <= 0 || namespace == 0 ||
        header->pid_namespace != namespace) {
        return SEEP_PRESENCE_UNKNOWN;
    }
    error = seep_target_read((pid_t)header->pid, &target);
    if (error < 0 && error != -ESRCH) {
        return SEEP_PRESENCE_UNKNOWN;
    }
    if (error == -ESRCH || !seep_target_is_alive(&target) ||
        !seep_target_is_of(&target, header)) {
        return SEEP_PRESENCE_AWAY;
    }
    if (ret_stopped != NULL) {
        *ret_stopped = target.state == 'T' || target.state == 't';
    }
    return SEEP_PRESENCE_HERE;
}

enum seep_process_state
seep_process_state_of(struct seep_rec_header *header,
                      enum seep_process_presence presence)
{
    if (seep_word_load(&header->has_status) != 0) {
        int status = (int)seep_word_load(&header->status);

        return WIFSIGNALED(status) ? SEEP_STATE_KILLED : SEEP_STATE_EXITED;
    }
    if (seep_word_load(&header->exited) != 0) {
        return SEEP_STATE_EXITED;
    }
    return presence == SEEP_PRESENCE_HERE   ? SEEP_STATE_RUNNING
           : presence == SEEP_PRESENCE_AWAY ? SEEP_STATE_GONE
                                            : SEEP_STATE_UNKNOWN;
}

uint64_t seep_process_now_tick(const struct seep_rec_header *header)
{
    uint64_t now_ns = seep_clock_ns(CLOCK_MONOTONIC);

    return now_ns > header->start_monotonic_ns
               ? (now_ns - header->start_monotonic_ns) >> SEEP_TICK_LOG2_NS
               : 0;
}

uint64_t seep_process_end_tick(const struct seep_rec_header *header,
                               enum seep_process_state state, uint64_t now_tick,
                               uint64_t last_tick)
{
    uint64_t end = 0;

    if (seep_word_load(&header->exited) != 0 ||
        seep_word_load(&header->has_status) != 0) {
        end = seep_word_load(&header->exit_tick);
    } else if (state == SEEP_STATE_RUNNING) {
        end = now_tick;
    }
    end = end > last_tick ? end : last_tick;
    return end < SEEP_SITES_TICK_MAX ? end : SEEP_SITES_TICK_MAX;
}
