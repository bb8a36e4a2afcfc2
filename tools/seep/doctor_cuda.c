/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NVIDIA's driver, by its files: the library, the kernel's half, the devices.
 *
 * Invariant: the library is not loaded and no device is opened: cuInit can
 * hang on a sick GPU, and a context costs memory of a well one.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "doctor.h"
#include "elf_look.h"

#define SONAME "libcuda.so.1"

static bool is_there(const struct seep_doctor_facts *facts, const char *folder,
                     size_t length, char found[PATH_MAX])
{
    char path[PATH_MAX];

    if (length == 0 || snprintf(path, sizeof(path), "%.*s/" SONAME, (int)length,
                                folder) >= PATH_MAX) {
        return false;
    }
    return access(seep_doctor_path(facts, path, found), R_OK) == 0;
}

/* Folders of the lines of the loader's configuration. */
static bool find_configured(const struct seep_doctor_facts *facts,
                            char found[PATH_MAX])
{
    static const char folder[] = "/etc/ld.so.conf.d";
    char path[PATH_MAX];
    char text[4096];
    bool there = false;
    DIR *entries = opendir(seep_doctor_path(facts, folder, path));
    const struct dirent *entry;

    while (entries != NULL && !there && (entry = readdir(entries)) != NULL) {
        if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
                PATH_MAX ||
            entry->d_name[0] == '.' ||
            !seep_doctor_read(facts, path, text, sizeof(text))) {
            continue;
        }
        for (const char *line = text; *line != '\0' && !there;) {
            size_t length = strcspn(line, "\n");
            there = *line == '/' && is_there(facts, line, length, found);
            line += length;
            line += *line == '\n';
        }
    }
    if (entries != NULL) {
        closedir(entries);
    }
    return there;
}

/* In the order of the loader, as far as it matters. */
static bool find_library(const struct seep_doctor_facts *facts,
                         char found[PATH_MAX])
{
    static const char folders[] =
        "/usr/lib/" SEEP_TRIPLET ":/lib/" SEEP_TRIPLET
        ":/usr/lib64:/usr/lib:/usr/local/nvidia/lib64:/usr/local/nvidia/lib:"
        "/usr/lib/wsl/lib";
    const char *lists[] = {facts->variable("LD_LIBRARY_PATH"), folders};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (const char *at = lists[i]; at != NULL && *at != '\0';) {
            size_t length = strcspn(at, ":");
            if (is_there(facts, at, length, found)) {
                return true;
            }
            at += length;
            at += *at == ':';
        }
    }
    return find_configured(facts, found);
}

/* "550.54.14" of the file that libcuda.so.1 stands for; "" if it has none. */
static void library_version(const char *path, char *version, size_t size)
{
    char *real = realpath(path, NULL);
    const char *name = real == NULL ? "" : seep_text_base_name(real);
    const char *number = strncmp(name, "libcuda.so.", 11) == 0 ? name + 11 : "";

    snprintf(version, size, "%s", strchr(number, '.') == NULL ? "" : number);
    free(real);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  ..." */
static bool kernel_version(const struct seep_doctor_facts *facts, char *version,
                           size_t size)
{
    char text[1024];

    version[0] = '\0';
    if (!seep_doctor_read(facts, "/proc/driver/nvidia/version", text,
                          sizeof(text))) {
        return false;
    }
    for (const char *at = strpbrk(text, "0123456789"); at != NULL;
         at = strpbrk(at, "0123456789")) {
        size_t length = strspn(at, "0123456789.");
        if (memchr(at, '.', length) != NULL) {
            snprintf(version, size, "%.*s", (int)length, at);
            break;
        }
        at += length;
    }
    return true;
}

/* /dev/nvidia0 and so on. */
static unsigned count_devices(const struct seep_doctor_facts *facts,
                              bool *ret_forbidden)
{
    unsigned count = 0;
    char name[32];
    char path[PATH_MAX];

    *ret_forbidden = false;
    for (unsigned i = 0; i < 64; i++) {
        snprintf(name, sizeof(name), "/dev/nvidia%u", i);
        seep_doctor_path(facts, name, path);
        count += access(path, F_OK) == 0;
        *ret_forbidden |=
            access(path, F_OK) == 0 && access(path, R_OK | W_OK) < 0;
    }
    return count;
}

/* Windows' own driver, seen from a Linux in it. */
static bool has_wsl(const struct seep_doctor_facts *facts)
{
    char path[PATH_MAX];

    return access(seep_doctor_path(facts, "/dev/dxg", path), F_OK) == 0;
}

/* A sandbox can have the devices and not the file that tells the version. */
static bool has_devices(const struct seep_doctor_facts *facts)
{
    bool forbidden;

    return has_wsl(facts) || count_devices(facts, &forbidden) > 0;
}

static void find_devices(const struct seep_doctor_facts *facts,
                         struct seep_doctor *doctor, const char *path,
                         const char *version)
{
    bool forbidden;
    unsigned count = count_devices(facts, &forbidden);

    if (has_wsl(facts)) {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_OK, NULL,
                         "driver of WSL at %s: its memory is recorded", path);
    } else if (count == 0) {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_WARN,
                         "give the container its devices (--gpus all)",
                         "driver %s, and no /dev/nvidia0: no GPU can be used",
                         version);
    } else if (forbidden) {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_WARN,
                         "add the user to the group of /dev/nvidia0",
                         "driver %s, whose devices this user may not open",
                         version);
    } else {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_OK, NULL,
                         "driver %s at %s, %u GPU%s: their memory is recorded",
                         version, path, count, count == 1 ? "" : "s");
    }
}

static void find_driver(const struct seep_doctor_facts *facts,
                        struct seep_doctor *doctor, const char *path)
{
    struct seep_elf_look look;
    char ours[64];
    char kernels[64];

    library_version(path, ours, sizeof(ours));
    if (seep_elf_look(path, &look) < 0 || !look.native || !look.dynamic) {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_WARN,
                         "install the driver's library for this architecture",
                         "%s is no library of this architecture", path);
    } else if (strstr(path, "/stubs/") != NULL) {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_WARN,
                         "take the folder out of LD_LIBRARY_PATH",
                         "%s is the toolkit's stub, which is for linking only",
                         path);
    } else if (!kernel_version(facts, kernels, sizeof(kernels)) &&
               !has_devices(facts)) {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_WARN,
                         "start the container with --gpus all, or load the "
                         "module",
                         "%s is there, and NVIDIA's kernel module is not: no "
                         "GPU can be used",
                         path);
    } else if (ours[0] != '\0' && kernels[0] != '\0' &&
               strcmp(ours, kernels) != 0) {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_WARN,
                         "restart the machine or the container",
                         "libcuda is %s and the kernel's module %s: CUDA will "
                         "refuse to start",
                         ours, kernels);
    } else {
        find_devices(facts, doctor, path,
                     kernels[0] != '\0' ? kernels
                     : ours[0] != '\0'  ? ours
                                        : "of unknown version");
    }
}

void seep_doctor_check_cuda(const struct seep_doctor_facts *facts,
                            struct seep_doctor *doctor)
{
    char path[PATH_MAX];
    char kernels[64];

    if (find_library(facts, path)) {
        find_driver(facts, doctor, path);
    } else if (kernel_version(facts, kernels, sizeof(kernels))) {
        seep_doctor_find(
            doctor, "cuda", SEEP_DOCTOR_WARN,
            "start the container with --gpus all",
            "kernel module %s, and no " SONAME ": no GPU can be used", kernels);
    } else {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_ABSENT, NULL,
                         "no NVIDIA driver: host memory only");
    }
}
