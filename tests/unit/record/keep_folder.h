/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A folder of recordings whose ends and ages a test decides, to be cleaned.
 *
 * Invariant: what is put there is a head and a page, 8 KiB on disk; the folder
 * goes with all that is in it.
 */
#ifndef SEEP_TESTS_KEEP_FOLDER_H
#define SEEP_TESTS_KEEP_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "seep_test.h"

#include "format/layout.h"
#include "record/keep.h"

#define DEAD_PID 4194301U /* beyond the default of pid_max */

static char folder[64];

static inline int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/dev/shm/seep-keep-XXXXXX"); /* never an overlay */
    if (mkdtemp(folder) == NULL) {
        strcpy(folder, "/tmp/seep-keep-XXXXXX");
        return mkdtemp(folder) == NULL;
    }
    return 0;
}

static inline int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static inline const char *below(const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static inline void read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_non_null(fgets(line, (int)size, file));
    line[strcspn(line, "\n")] = '\0';
    fclose(file);
}

/* Of a process that this test decides about: seen from here, and gone. */
static inline struct seep_rec_header make_header(void)
{
    struct seep_rec_header header = {0};
    struct stat space;

    assert_int_equal(
        seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, false, false, &header), 0);
    assert_int_equal(stat("/proc/self/ns/pid", &space), 0);
    header.pid_namespace = space.st_ino;
    header.pid = DEAD_PID;
    header.process_start_clock = 1;
    read_line("/proc/sys/kernel/random/boot_id", header.boot_id,
              sizeof(header.boot_id));
    return header;
}

/* The younger the higher @age_rank. */
static inline void put(const char *name, struct seep_rec_header *header,
                       int age_rank)
{
    struct timespec times[2] = {{.tv_sec = 1000000 + age_rank},
                                {.tv_sec = 1000000 + age_rank}};
    int fd = open(below(name), O_CREAT | O_EXCL | O_WRONLY, 0600);
    char rest[4096] = {0};

    assert_true(fd >= 0);
    header->fixed_hash = seep_layout_fixed_hash(header);
    assert_int_equal(write(fd, (void *)header, sizeof(*header)),
                     sizeof(*header));
    assert_int_equal(write(fd, rest, sizeof(rest)), sizeof(rest));
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static inline void put_ended(const char *name, bool minor, int age_rank)
{
    struct seep_rec_header header = make_header();

    atomic_store(&header.exited, 1);
    atomic_store(&header.minor, minor);
    put(name, &header, age_rank);
}

static inline bool is_there(const char *name)
{
    return access(below(name), F_OK) == 0;
}

static inline int count_files(void)
{
    DIR *stream = opendir(folder);
    int count = 0;

    assert_non_null(stream);
    while (readdir(stream) != NULL) {
        count++;
    }
    closedir(stream);
    return count - 2;
}

static inline void clean(uint64_t file_count)
{
    const struct seep_place_keep limits = {file_count, 0};

    seep_keep_clean(below("seep.%e.%p.seep"), &limits);
}

#endif
