/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the system allows a process: sizes of files and of the address space,
 * mappings; the container around; and who forbids system calls.
 *
 * Invariant: a limit is told when it is below what seep needs, not because it
 * is there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "reader/look_cgroup.h"
#include "units.h"

/* Beside the recording: the filter, tables of rules, code. */
#define PRIVATE_BYTES (UINT64_C(64) << 20)
#define MAPS_LEAST 1024U

static bool find_low(const struct seep_doctor_facts *facts,
                     struct seep_doctor *doctor, uint64_t limit_bytes,
                     uint64_t need_bytes, const char *what, const char *remedy)
{
    char has[SEEP_UNITS_TEXT_BYTES];
    char needs[SEEP_UNITS_TEXT_BYTES];

    if (limit_bytes >= need_bytes) {
        return false;
    }
    seep_doctor_find(doctor, "limits", SEEP_DOCTOR_NO, remedy,
                     "%s is limited to %s, and a recording of %s needs %s",
                     what, seep_units_bytes((double)limit_bytes, has),
                     seep_units_bytes((double)facts->size_bytes,
                                      (char[SEEP_UNITS_TEXT_BYTES]){0}),
                     seep_units_bytes((double)need_bytes, needs));
    return true;
}

static uint64_t number_in(const struct seep_doctor_facts *facts,
                          const char *path, uint64_t otherwise)
{
    char text[32];
    char *end;

    if (!seep_doctor_read(facts, path, text, sizeof(text))) {
        return otherwise;
    }
    unsigned long long number = strtoull(text, &end, 10);
    return end == text ? otherwise : number;
}

void seep_doctor_check_limits(const struct seep_doctor_facts *facts,
                              struct seep_doctor *doctor)
{
    uint64_t maps = number_in(facts, "/proc/sys/vm/max_map_count", UINT64_MAX);
    bool low =
        find_low(facts, doctor, facts->file_limit_bytes, facts->size_bytes,
                 "the size of a file", "raise it (ulimit -f), or --size 2MiB");

    low |= find_low(facts, doctor, facts->memory_limit_bytes,
                    facts->size_bytes + PRIVATE_BYTES, "the address space",
                    "raise it (ulimit -v), or --size 2MiB");
    if (maps < MAPS_LEAST) {
        seep_doctor_find(doctor, "limits", SEEP_DOCTOR_WARN,
                         "raise vm.max_map_count",
                         "a process may have %llu mappings only: it will fail, "
                         "with seep or without",
                         (unsigned long long)maps);
    } else if (!low) {
        seep_doctor_find(
            doctor, "limits", SEEP_DOCTOR_OK, NULL,
            "none of files, address space or mappings is too low%s",
            number_in(facts, "/proc/sys/vm/overcommit_memory", 0) == 2
                ? "; memory is not overcommitted, and "
                  "recordings on a disk do not count"
                : "");
    }
}

/* The name of what runs the container; NULL if this is none. */
static const char *container_of(const struct seep_doctor_facts *facts)
{
    char path[PATH_MAX];

    if (facts->variable("KUBERNETES_SERVICE_HOST") != NULL) {
        return "Kubernetes";
    }
    if (access(seep_doctor_path(facts, "/.dockerenv", path), F_OK) == 0) {
        return "Docker";
    }
    if (access(seep_doctor_path(facts, "/run/.containerenv", path), F_OK) ==
        0) {
        return "Podman";
    }
    return facts->variable("container");
}

static void describe_memory(const struct seep_doctor_facts *facts, char *text,
                            size_t size)
{
    char membership[4096] = "";
    char below[PATH_MAX];
    char bytes[SEEP_UNITS_TEXT_BYTES];
    uint64_t used;
    uint64_t limit;

    seep_doctor_read(facts, "/proc/self/cgroup", membership,
                     sizeof(membership));
    seep_look_cgroup(membership,
                     seep_doctor_path(facts, "/sys/fs/cgroup", below), &used,
                     &limit);
    bool unified = strncmp(membership, "0::", 3) == 0;
    const char *version = membership[0] == '\0' ? "no cgroup"
                          : unified             ? "cgroup v2"
                                                : "cgroup v1";
    if (limit > 0) {
        snprintf(text, size, "%s limits memory to %s, which forecasts know",
                 version, seep_units_bytes((double)limit, bytes));
    } else {
        snprintf(text, size, "%s, without a limit of memory", version);
    }
}

/* Is /proc mounted with hidepid=1, 2, noaccess, invisible or ptraceable? */
static bool hides_processes(const struct seep_doctor_facts *facts)
{
    static char mounts[65536];

    if (!seep_doctor_read(facts, "/proc/self/mounts", mounts, sizeof(mounts))) {
        return false;
    }
    const char *option = strstr(mounts, "hidepid=");
    return option != NULL && option[8] != '0' &&
           strncmp(option + 8, "off", 3) != 0;
}

void seep_doctor_check_container(const struct seep_doctor_facts *facts,
                                 struct seep_doctor *doctor)
{
    const char *name = container_of(facts);
    char memory[160];
    char text[16];

    if (!seep_doctor_read(facts, "/proc/self/status", text, sizeof(text))) {
        seep_doctor_find(doctor, "container", SEEP_DOCTOR_WARN,
                         "mount it (mount -t proc proc /proc)",
                         "/proc is not there: recordings have no RSS, no "
                         "thread names and no program name");
        return;
    }
    describe_memory(facts, memory, sizeof(memory));
    if (hides_processes(facts)) {
        seep_doctor_find(doctor, "container", SEEP_DOCTOR_WARN,
                         "run `seep report` and `seep top` as the worker's "
                         "user",
                         "/proc hides the processes of other users (hidepid): "
                         "whether their workers live is not known");
    }
    seep_doctor_find(doctor, "container", SEEP_DOCTOR_OK, NULL, "%s%s; %s%s",
                     name == NULL ? "no container" : "in ",
                     name == NULL ? "" : name, memory,
                     facts->root_read_only
                         ? "; the root is read-only, so -o must name a volume"
                         : "");
}

/* A line of /proc/self/status as a number; -1 if there is none. */
static int status_number(const char *status, const char *key)
{
    const char *line = strstr(status, key);

    return line == NULL ? -1 : atoi(line + strlen(key));
}

static void find_mandatory(const struct seep_doctor_facts *facts,
                           struct seep_doctor *doctor)
{
    char profile[128] = "";

    if (number_in(facts, "/sys/fs/selinux/enforce", 0) == 1) {
        seep_doctor_find(doctor, "security", SEEP_DOCTOR_WARN,
                         "if a service leaves no recording: ausearch -m avc, "
                         "and label libseep.so lib_t",
                         "SELinux is enforcing: a confined service may be kept "
                         "from libseep.so or from the folder");
    }
    seep_doctor_read(facts, "/proc/self/attr/current", profile,
                     sizeof(profile));
    profile[strcspn(profile, "\n")] = '\0';
    if (strstr(profile, "(enforce)") != NULL) {
        seep_doctor_find(doctor, "security", SEEP_DOCTOR_OK, NULL,
                         "AppArmor profile %s: its files rule must allow the "
                         "folder of recordings",
                         profile);
    }
}

void seep_doctor_check_security(const struct seep_doctor_facts *facts,
                                struct seep_doctor *doctor)
{
    char status[8192] = "";

    seep_doctor_read(facts, "/proc/self/status", status, sizeof(status));
    find_mandatory(facts, doctor);
    if (facts->vm_readv_error < 0) {
        seep_doctor_find(
            doctor, "security", SEEP_DOCTOR_WARN,
            "allow it for the process itself in the seccomp profile",
            "process_vm_readv is refused (%s): Python's first stacks are read "
            "by a slower way, and without the GIL none is",
            facts->vm_readv_error == -ECANCELED
                ? "seccomp kills"
                : strerror(-facts->vm_readv_error));
        return;
    }
    seep_doctor_find(doctor, "security", SEEP_DOCTOR_OK, NULL,
                     "%s; no ptrace and no privilege is needed; set-uid "
                     "programs are never recorded",
                     status_number(status, "\nSeccomp:") == 2
                         ? "a seccomp filter that is no hindrance"
                         : "no seccomp filter");
}
