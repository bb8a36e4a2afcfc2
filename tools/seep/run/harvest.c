/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings of a run. Invariant: nothing is opened for writing but a valid
 * recording of the child, and nothing in it is written but its status.
 */
#include "run/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/word.h"
#include "format/layout.h"
#include "reader/recording/open.h"

struct identity {
    dev_t device;
    ino_t inode;
};

struct seep_harvest {
    char *glob;
    struct identity *before;
    size_t before_count;
    struct seep_open_list found;
};

char *seep_harvest_glob(const char *pattern)
{
    /* each byte becomes two at most; a taken name gets ".1", ".2" */
    char *text = malloc(strlen(pattern) * 2 + 1);
    char *out = text;

    for (; text != NULL && *pattern != '\0'; pattern++) {
        if (*pattern == '%' && pattern[1] != '\0') {
            pattern++;
            if (strchr("pehtn", *pattern) != NULL) {
                *out++ = '*';
                continue;
            }
        }
        if (strchr("*?[]\\", *pattern) != NULL) {
            *out++ = '\\';
        }
        *out++ = *pattern;
    }
    if (text != NULL) {
        *out = '\0';
    }
    return text;
}

/*
 * What a glob matches. libc's frees a name twice if there is no memory to put
 * its folder before it (glibc 2.36).
 */

struct match {
    struct seep_open_list *list;
    char path[PATH_MAX];
};

static int match_from(struct match *match, size_t length, const char *rest);

/* @name lies below the first @length bytes of the path. */
static int match_name(struct match *match, size_t length, const char *name,
                      const char *rest)
{
    size_t bytes = strlen(name);
    struct stat status;

    if (length + bytes + 2 > sizeof(match->path)) {
        return 0;
    }
    memcpy(match->path + length, name, bytes + 1);
    if (*rest == '/') {
        strcpy(match->path + length + bytes, "/");
        return match_from(match, length + bytes + 1, rest + strspn(rest, "/"));
    }
    return lstat(match->path, &status) < 0
               ? 0
               : seep_open_list_add(match->list, strdup(match->path));
}

static int match_folder(struct match *match, size_t length, const char *part,
                        const char *rest)
{
    DIR *folder = opendir(length == 0 ? "." : match->path);
    const struct dirent *entry;
    int error = 0;

    if (folder == NULL) {
        return errno == ENOMEM ? -ENOMEM : 0;
    }
    while (error == 0 && (entry = readdir(folder)) != NULL) {
        if (fnmatch(part, entry->d_name, FNM_PERIOD) == 0) {
            error = match_name(match, length, entry->d_name, rest);
        }
    }
    closedir(folder);
    return error;
}

static int match_from(struct match *match, size_t length, const char *rest)
{
    size_t bytes = strcspn(rest, "/");
    char *part = strndup(rest, bytes);
    int error = -ENOMEM;

    if (part != NULL) {
        error = (strpbrk(part, "*?[\\") == NULL ? match_name : match_folder)(
            match, length, part, rest + bytes);
    }
    free(part);
    return error;
}

int seep_harvest_match(const char *glob, struct seep_open_list *list)
{
    struct match match = {.list = list};
    size_t slashes = strspn(glob, "/");

    strcpy(match.path, slashes > 0 ? "/" : "");
    return match_from(&match, slashes > 0, glob + slashes);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

#define SUFFIX ".seep"
#define SUFFIX_BYTES (sizeof(SUFFIX) - 1)

/* The names that are taken where @pattern's is there already: NAME.1.seep, or
 * NAME.1 of a name without that end. */
static char *number(const char *pattern)
{
    size_t length = strlen(pattern);
    size_t stem = length;
    char *text = NULL;

    if (length > SUFFIX_BYTES &&
        strcmp(pattern + length - SUFFIX_BYTES, SUFFIX) == 0) {
        stem = length - SUFFIX_BYTES;
    }
    return asprintf(&text, "%.*s.[0-9]*%s", (int)stem, pattern,
                    pattern + stem) < 0
               ? NULL
               : text;
}

/* One that both patterns match is there twice, and next to itself. */
static void drop_repeated(struct seep_open_list *found)
{
    size_t kept = 0;

    for (size_t i = 0; i < found->count; i++) {
        if (kept > 0 && strcmp(found->paths[kept - 1], found->paths[i]) == 0) {
            free(found->paths[i]);
        } else {
            found->paths[kept++] = found->paths[i];
        }
    }
    if (kept < found->count) {
        found->paths[kept] = NULL;
    }
    found->count = kept;
}

/* What matches the pattern, and with a number in it, sorted. */
static int look(const char *pattern, struct seep_open_list *found)
{
    char *numbered = number(pattern);
    int error;

    if (numbered == NULL) {
        return -ENOMEM;
    }
    error = seep_harvest_match(pattern, found);
    if (error == 0) {
        error = seep_harvest_match(numbered, found);
    }
    free(numbered);
    if (error < 0) {
        seep_report_list_free(found->paths);
    } else if (found->count > 0) {
        qsort(found->paths, found->count, sizeof(*found->paths), compare_paths);
        drop_repeated(found);
    }
    return error;
}

static int compare_identities(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct identity));
}

static bool identify(const char *path, struct identity *ret_identity)
{
    struct stat status;

    if (lstat(path, &status) < 0 || !S_ISREG(status.st_mode)) {
        return false;
    }
    memset(ret_identity, 0, sizeof(*ret_identity)); /* compared as bytes */
    ret_identity->device = status.st_dev;
    ret_identity->inode = status.st_ino;
    return true;
}

static int remember(struct seep_harvest *harvest)
{
    struct seep_open_list found = {.paths = NULL};
    int error = look(harvest->glob, &found);

    if (error < 0) {
        return error;
    }
    harvest->before = calloc(found.count + 1, sizeof(*harvest->before));
    for (size_t i = 0; harvest->before != NULL && i < found.count; i++) {
        harvest->before_count +=
            identify(found.paths[i], &harvest->before[harvest->before_count]);
    }
    seep_report_list_free(found.paths);
    if (harvest->before == NULL) {
        return -ENOMEM;
    }
    qsort(harvest->before, harvest->before_count, sizeof(*harvest->before),
          compare_identities);
    return 0;
}

int seep_harvest_open(const char *pattern, struct seep_harvest **ret_harvest)
{
    struct seep_harvest *harvest = calloc(1, sizeof(*harvest));

    if (harvest == NULL) {
        return -ENOMEM;
    }
    harvest->glob = seep_harvest_glob(pattern);
    int error = harvest->glob == NULL ? -ENOMEM : remember(harvest);
    if (error < 0) {
        seep_harvest_close(harvest);
        return error;
    }
    *ret_harvest = harvest;
    return 0;
}

void seep_harvest_close(struct seep_harvest *harvest)
{
    if (harvest == NULL) {
        return;
    }
    seep_report_list_free(harvest->found.paths);
    free(harvest->before);
    free(harvest->glob);
    free(harvest);
}

static bool is_new(const struct seep_harvest *harvest, const char *path)
{
    struct identity identity;

    return identify(path, &identity) &&
           bsearch(&identity, harvest->before, harvest->before_count,
                   sizeof(identity), compare_identities) == NULL;
}

/* The header of a valid recording, by pread: of a file that is cut short
 * meanwhile a mapping would be a SIGBUS. A stranger's file under a name of ours
 * is looked at, never written. */
bool seep_harvest_read_header(const char *path,
                              struct seep_rec_header *ret_header)
{
    struct stat status;
    int fd = seep_open_regular(path, O_NOFOLLOW, &status);
    bool valid =
        fd >= 0 &&
        pread(fd, (void *)ret_header, sizeof(*ret_header), 0) ==
            (ssize_t)sizeof(*ret_header) &&
        seep_check(ret_header, (size_t)status.st_size) == SEEP_CHECK_VALID;

    if (fd >= 0) {
        close(fd);
    }
    return valid;
}

/* Both can name one file: sorted, the second one is dropped. */
int seep_harvest_visit(const struct seep_harvest *harvest,
                       void (*visit)(void *context, const char *path),
                       void *context)
{
    struct seep_open_list found = {.paths = NULL};
    int error = look(harvest->glob, &found);

    if (error < 0) {
        return error;
    }
    for (size_t i = 0; i < found.count; i++) {
        const char *path = found.paths[i];
        bool again = i > 0 && strcmp(path, found.paths[i - 1]) == 0;
        if (!again && is_new(harvest, path)) {
            visit(context, path);
        }
    }
    seep_report_list_free(found.paths);
    return 0;
}

static void add_path(void *context, const char *path)
{
    struct seep_harvest *harvest = context;
    struct seep_rec_header header;

    if (seep_harvest_read_header(path, &header)) {
        seep_open_list_add(&harvest->found, strdup(path));
    }
}

int seep_harvest_collect(struct seep_harvest *harvest, char ***ret_paths,
                         size_t *ret_count)
{
    int error = seep_harvest_visit(harvest, add_path, harvest);

    if (error == 0) {
        *ret_paths = harvest->found.paths;
        *ret_count = harvest->found.count;
    }
    return error;
}

static bool is_of(const struct seep_rec_header *header,
                  const struct seep_child *child)
{
    struct stat space;

    if (header->pid != (uint32_t)child->pid) {
        return false;
    }
    if (header->pid_namespace != 0 && stat("/proc/self/ns/pid", &space) == 0 &&
        header->pid_namespace != space.st_ino) {
        return false;
    }
    /* Its clock may be one of another time namespace. */
    return child->start_clock == 0 || header->process_start_clock == 0 ||
           header->process_start_clock == child->start_clock ||
           (child->image_stack != 0 &&
            seep_word_load(&header->image_stack) == child->image_stack);
}

/* Another image was seen there since this one began: it ended by an exec. */
static bool is_replaced(struct seep_rec_header *header,
                        const struct seep_child *child)
{
    uint64_t stack = seep_word_load(&header->image_stack);

    return child->image_stack != 0 && stack != 0 &&
           child->image_stack != stack &&
           child->image_ns > header->start_monotonic_ns;
}

static int put_word(int fd, size_t offset, uint32_t word)
{
    ssize_t length = pwrite(fd, &word, sizeof(word), (off_t)offset);

    return length == (ssize_t)sizeof(word) ? 0 : -EIO;
}

/* When it ended, as a tick; 0: it said so itself, or that is not known. */
static uint32_t end_tick_of(struct seep_rec_header *header,
                            const struct seep_child *child)
{
    uint64_t ticks =
        (child->end_ns - header->start_monotonic_ns) >> SEEP_TICK_LOG2_NS;

    if (seep_word_load(&header->exit_tick) != 0 ||
        child->end_ns <= header->start_monotonic_ns) {
        return 0;
    }
    return ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}

static int put_end(const char *path, const struct seep_child *child)
{
    struct seep_rec_header header;
    uint32_t end_tick = seep_harvest_read_header(path, &header)
                            ? end_tick_of(&header, child)
                            : 0;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        return -errno;
    }
    /* A reader that sees the flag must see the rest. */
    int error = put_word(fd, offsetof(struct seep_rec_header, status),
                         (uint32_t)child->status);
    if (error == 0 && end_tick > 0) {
        error =
            put_word(fd, offsetof(struct seep_rec_header, exit_tick), end_tick);
    }
    if (error == 0) {
        error = put_word(fd, offsetof(struct seep_rec_header, has_status), 1);
    }
    close(fd);
    return error;
}

int seep_harvest_put_status(char *const *paths, size_t count,
                            const struct seep_child *child)
{
    const char *last = NULL;
    uint64_t newest_ns = 0;

    for (size_t i = 0; i < count; i++) {
        struct seep_rec_header header;
        /* One pid, several images by exec: the last one ended so. */
        if (seep_harvest_read_header(paths[i], &header) &&
            is_of(&header, child) && !is_replaced(&header, child) &&
            header.start_realtime_ns >= newest_ns) {
            newest_ns = header.start_realtime_ns;
            last = paths[i];
        }
    }
    return last == NULL ? -ENOENT : put_end(last, child);
}
