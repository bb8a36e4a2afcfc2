/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One look at a process. Invariant: only files of /proc and of its cgroup are
 * read; the process is neither stopped nor written to.
 *
 * The sums are of statm, as the process's own moments have them. Which
 * mappings there are is asked of maps, and what is in them of the page map.
 */
#include "reader/look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "reader/look_cgroup.h"
#include "reader/look_pages.h"
#include "reader/look_smaps.h"
#include "reader/proc_text.h"

#define READ_BYTES 32768
#define TEXT_BYTES 8192
#define CGROUP_ROOT "/sys/fs/cgroup"

/* @return its length, or negative errno */
static ssize_t read_text(pid_t pid, const char *name, char *text, size_t bytes)
{
    char path[64];
    ssize_t got;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    got = seep_proc_text(path, text, bytes);
    return got == -ENOENT ? -ESRCH : got;
}

/* "VmSwap:     12 kB" */
static uint64_t find_bytes(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10) * 1024;
}

static int feed_all(int fd, struct seep_smaps *smaps)
{
    char text[READ_BYTES];

    for (;;) {
        ssize_t got = read(fd, text, sizeof(text));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -errno;
        }
        if (got == 0) {
            return seep_smaps_finish(smaps);
        }
        int error = seep_smaps_feed(smaps, text, (size_t)got);
        if (error < 0) {
            return error;
        }
    }
}

static int read_mappings(pid_t pid, enum seep_smaps_kind kind,
                         struct seep_smaps *smaps)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid,
             kind == SEEP_MAPS ? "maps" : "smaps");
    seep_smaps_init(smaps, kind);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? -ESRCH : -errno;
    }
    int error = feed_all(fd, smaps);
    close(fd);
    return error;
}

static int take_sums(pid_t pid, struct seep_look *look)
{
    char text[TEXT_BYTES];
    unsigned long long resident = 0;
    unsigned long long shared = 0;
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    ssize_t got = read_text(pid, "statm", text, sizeof(text));

    if (got <= 0 || sscanf(text, "%*u %llu %llu", &resident, &shared) != 2) {
        return got < 0 ? (int)got : -ESRCH;
    }
    look->rss_bytes = resident * page_bytes;
    look->shared_bytes = (shared < resident ? shared : resident) * page_bytes;
    look->anonymous_bytes = look->rss_bytes - look->shared_bytes;
    look->other_rss_bytes = look->rss_bytes;
    if (read_text(pid, "status", text, sizeof(text)) > 0) {
        look->swap_bytes = find_bytes(text, "\nVmSwap:");
    }
    return 0;
}

static int find_mappings(pid_t pid, struct seep_smaps *smaps)
{
    int error = read_mappings(pid, SEEP_MAPS, smaps);

    if (error == 0) {
        error = seep_look_pages(pid, smaps->mappings, smaps->count);
        if (error < 0) {
            seep_smaps_fini(smaps);
            error = read_mappings(pid, SEEP_SMAPS, smaps);
        }
    }
    return error;
}

static int take_mappings(pid_t pid, struct seep_look *look)
{
    struct seep_smaps smaps;
    uint64_t listed_bytes = 0;
    int error = find_mappings(pid, &smaps);

    if (error == 0) {
        smaps.count = seep_smaps_drop_empty(smaps.mappings, smaps.count);
        smaps.count =
            seep_smaps_select(smaps.mappings, smaps.count, SEEP_LOOK_MAPPINGS);
        for (size_t i = 0; i < smaps.count; i++) {
            listed_bytes += smaps.mappings[i].rss_bytes;
        }
        look->other_rss_bytes =
            look->rss_bytes > listed_bytes ? look->rss_bytes - listed_bytes : 0;
        look->mappings = smaps.mappings;
        look->mapping_count = smaps.count;
        smaps.mappings = NULL;
        smaps.count = 0;
    }
    seep_smaps_fini(&smaps);
    return error;
}

static double seconds_since(uint64_t start_ns)
{
    uint64_t now_ns = seep_clock_ns(CLOCK_MONOTONIC);

    return now_ns > start_ns ? (double)(now_ns - start_ns) * 1e-9 : 0;
}

int seep_look_take(pid_t pid, uint64_t start_monotonic_ns,
                   struct seep_look *ret_look)
{
    struct seep_look look = {.t_s = seconds_since(start_monotonic_ns)};
    char text[TEXT_BYTES];
    int error = take_sums(pid, &look);

    if (error == 0 && look.rss_bytes == 0) {
        error = -ESRCH; /* it has ended and was not waited for */
    }
    if (error == 0) {
        error = take_mappings(pid, &look);
        if (error == -EACCES || error == -EPERM) {
            error = 0; /* the sums may be seen all the same */
        }
    }
    if (error < 0) {
        seep_look_fini(&look);
        return error;
    }
    if (read_text(pid, "cgroup", text, sizeof(text)) > 0) {
        seep_look_cgroup(text, CGROUP_ROOT, &look.cgroup_bytes,
                         &look.cgroup_limit_bytes);
    }
    if (seep_proc_text("/proc/meminfo", text, sizeof(text)) > 0) {
        look.available_bytes = find_bytes(text, "\nMemAvailable:");
    }
    *ret_look = look;
    return 0;
}
