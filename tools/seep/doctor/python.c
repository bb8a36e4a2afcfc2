/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The Python that the command runs in, or without a command those of PATH: each
 * is run under libseep.so, and has its lines in the stacks or has not.
 *
 * Invariant: all of them together take no more than TOTAL_LIMIT_S.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/thread.h"
#include "doctor/doctor.h"
#include "reader/report/report.h"
#include "run/run.h"

/*
 * The PyTorch that a Python of PATH would import, by its files.
 *
 * Invariant: it is not imported: that takes seconds, and touches the driver.
 */

/* __version__ of the version.py that lies beside @origin. */
static void read_version(const char *origin, char *version, size_t size)
{
    char path[PATH_MAX];
    char line[256];
    const char *slash = strrchr(origin, '/');

    version[0] = '\0';
    snprintf(path, sizeof(path), "%.*s/version.py", (int)(slash - origin),
             origin);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *quote = strpbrk(line, "'\"");
        if (strncmp(line, "__version__", 11) == 0 && quote != NULL) {
            snprintf(version, size, "%.*s", (int)strcspn(quote + 1, "'\""),
                     quote + 1);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static bool has_gpu_part(const char *origin)
{
    char path[PATH_MAX];
    const char *slash = strrchr(origin, '/');

    snprintf(path, sizeof(path), "%.*s/lib/libc10_cuda.so",
             (int)(slash - origin), origin);
    return access(path, F_OK) == 0;
}

void seep_doctor_check_torch(const struct seep_doctor_facts *facts,
                             struct seep_doctor *doctor)
{
    char version[64];
    bool found = false;

    for (size_t i = 0; i < facts->python_count; i++) {
        const struct seep_doctor_python *python = &facts->pythons[i];
        if (strchr(python->torch, '/') == NULL) {
            continue;
        }
        found = true;
        read_version(python->torch, version, sizeof(version));
        seep_doctor_find(
            doctor, "torch", SEEP_DOCTOR_OK, NULL, "PyTorch %s for %s: %s",
            version, python->path,
            has_gpu_part(python->torch)
                ? "tensors on GPUs are recorded as such"
                : "built without CUDA, its tensors are in host memory");
    }
    if (!found) {
        seep_doctor_find(doctor, "torch", SEEP_DOCTOR_ABSENT, NULL,
                         "no PyTorch in any Python that was tried");
    }
}

/*
 * NVIDIA's driver, by its files: the library, the kernel's half, the devices.
 *
 * Invariant: the library is not loaded and no device is opened: cuInit can
 * hang on a sick GPU, and a context costs memory of a well one.
 */

#define SONAME "libcuda.so.1"
#define WSL_DEVICE "/dev/dxg" /* of Windows' own driver, from a Linux in it */

/* In one of the folders of @list, which a colon or the end of a line parts? */
static bool is_in(const struct seep_doctor_facts *facts, const char *list,
                  const char *name, char found[PATH_MAX])
{
    char path[PATH_MAX];

    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ":\n");

        if (length > 0 &&
            snprintf(path, sizeof(path), "%.*s/%s", (int)length, list, name) <
                PATH_MAX &&
            access(seep_doctor_path(facts, path, found), R_OK) == 0) {
            return true;
        }
        list += length;
        list += *list != '\0';
    }
    return false;
}

/* Folders of the lines of the loader's configuration. */
static bool find_configured(const struct seep_doctor_facts *facts,
                            const char *name, char found[PATH_MAX])
{
    static const char folder[] = "/etc/ld.so.conf.d";
    char path[PATH_MAX];
    char text[4096];
    bool there = false;
    DIR *entries = opendir(seep_doctor_path(facts, folder, path));
    const struct dirent *entry;

    while (entries != NULL && !there && (entry = readdir(entries)) != NULL) {
        there = entry->d_name[0] != '.' &&
                snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) <
                    PATH_MAX &&
                seep_doctor_read(facts, path, text, sizeof(text)) &&
                is_in(facts, text, name, found);
    }
    if (entries != NULL) {
        closedir(entries);
    }
    return there;
}

bool seep_doctor_find_library(const struct seep_doctor_facts *facts,
                              const char *name, char found[PATH_MAX])
{
    return is_in(facts, facts->variable("LD_LIBRARY_PATH"), name, found) ||
           is_in(facts,
                 "/usr/lib/" SEEP_TRIPLET ":/lib/" SEEP_TRIPLET
                 ":/usr/lib64:/usr/lib:/usr/local/nvidia/lib64:"
                 "/usr/local/nvidia/lib:/usr/lib/wsl/lib:/usr/local/lib",
                 name, found) ||
           find_configured(facts, name, found);
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

    *ret_forbidden = false;
    for (unsigned i = 0; i < 64; i++) {
        snprintf(name, sizeof(name), "/dev/nvidia%u", i);
        if (seep_doctor_can(facts, name, F_OK)) {
            count++;
            *ret_forbidden |= !seep_doctor_can(facts, name, R_OK | W_OK);
        }
    }
    return count;
}

/* A sandbox can have the devices and not the file that tells the version. */
static bool has_devices(const struct seep_doctor_facts *facts)
{
    bool forbidden;

    return seep_doctor_can(facts, WSL_DEVICE, F_OK) ||
           count_devices(facts, &forbidden) > 0;
}

static void find_devices(const struct seep_doctor_facts *facts,
                         struct seep_doctor *doctor, const char *path,
                         const char *version)
{
    bool forbidden;
    unsigned count = count_devices(facts, &forbidden);

    if (seep_doctor_can(facts, WSL_DEVICE, F_OK)) {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_OK, NULL,
                         "driver of WSL at %s: its memory is recorded", path);
    } else if (count == 0) {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_WARN,
                         "give the container its devices (--gpus all)",
                         "driver %s, but no /dev/nvidia0: no GPU can be used",
                         version);
    } else if (forbidden) {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_WARN,
                         "add the user to the group of /dev/nvidia0",
                         "driver %s, but this user may not open its devices",
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
                         "%s is not a library for this architecture", path);
    } else if (strstr(path, "/stubs/") != NULL) {
        seep_doctor_find(doctor, "cuda", SEEP_DOCTOR_WARN,
                         "take the folder out of LD_LIBRARY_PATH",
                         "%s is the toolkit's stub, which is for linking only",
                         path);
    } else if (!kernel_version(facts, kernels, sizeof(kernels)) &&
               !has_devices(facts)) {
        seep_doctor_find(
            doctor, "cuda", SEEP_DOCTOR_WARN,
            "start the container with --gpus all, or load the module",
            "%s is present, but NVIDIA's kernel module is not: no GPU can be used",
            path);
    } else if (ours[0] != '\0' && kernels[0] != '\0' &&
               strcmp(ours, kernels) != 0) {
        seep_doctor_find(
            doctor, "cuda", SEEP_DOCTOR_WARN,
            "restart the machine or the container",
            "libcuda is %s and the kernel module %s: CUDA will refuse to start",
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

    if (seep_doctor_find_library(facts, SONAME, path)) {
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

#define ONE_LIMIT_S 5.0
#define TOTAL_LIMIT_S 12.0

/* Python's objects of one kind are dense enough to be sampled; torch is looked
 * for without importing it. In words that Python 2 knows, too. */
static char script[] =
    "import sys\n"
    "kept = [bytearray(1 << 20) for _ in range(16)]\n"
    "name = getattr(getattr(sys, 'implementation', None), 'name', 'python2')\n"
    "torch = None\n"
    "try:\n"
    "    import importlib.util\n"
    "    torch = importlib.util.find_spec('torch')\n"
    "except Exception:\n"
    "    pass\n"
    "sys.stdout.write('%s\\n%d.%d.%d\\n%s\\n%s\\n' % ((name,) +\n"
    "    tuple(sys.version_info[:3]) + (sys.executable or '',\n"
    "    torch and torch.origin or '')))\n";

/* "python", "python3", "python3.11", "python3.13t": no python3-config. */
static bool is_name(const char *name)
{
    if (strncmp(name, "python", 6) != 0) {
        return false;
    }
    name += 6;
    if (*name == '\0') {
        return true;
    }
    if (*name++ != '3') {
        return false;
    }
    if (*name == '.') {
        for (name++; isdigit((unsigned char)*name); name++) {
        }
    }
    return *name == '\0' || strcmp(name, "t") == 0;
}

/* pyenv and its like have a script of every name, also of what is not there;
 * only one that people type is worth a trial. */
static bool is_placeholder(const char *path, const char *name)
{
    struct seep_elf_look look;

    return strchr(name, '.') != NULL && seep_elf_look(path, &look) == -ENOEXEC;
}

static bool is_one_file(const char *path, const char *other)
{
    char *real = realpath(path, NULL);
    char *other_real = realpath(other, NULL);
    bool same =
        real != NULL && other_real != NULL && strcmp(real, other_real) == 0;

    free(real);
    free(other_real);
    return same;
}

/* Names of one folder lead to the same file: the first that PATH has counts,
 * for of two environments each has modules of its own. */
static bool is_known(const struct seep_doctor_facts *facts, const char *path)
{
    for (size_t i = 0; i < facts->python_count; i++) {
        if (is_one_file(path, facts->pythons[i].path)) {
            return true;
        }
    }
    return false;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_candidate(const struct dirent *entry)
{
    return is_name(entry->d_name);
}

/* @param path  shorter than PATH_MAX */
static void add_python(const char *path, struct seep_doctor_facts *facts)
{
    struct seep_doctor_python *python = &facts->pythons[facts->python_count++];

    *python = (struct seep_doctor_python){0};
    memcpy(python->path, path, strlen(path) + 1);
}

/* An environment's Python has modules of its own, and is often not in PATH. */
static bool add_commands(struct seep_doctor_facts *facts)
{
    struct seep_program program;

    if (facts->command == NULL) {
        return false;
    }
    seep_program_look(facts->command[0], facts->variable("PATH"), &program);
    if (program.path[0] == '\0' ||
        !is_name(seep_text_base_name(program.path)) ||
        access(program.path, X_OK) < 0) {
        return false;
    }
    add_python(program.path, facts);
    return true;
}

static void look_into(const char *folder, struct seep_doctor_facts *facts)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_candidate, compare_names);

    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        int length =
            snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (length < PATH_MAX &&
            facts->python_count < SEEP_DOCTOR_PYTHONS_MOST &&
            access(path, X_OK) == 0 &&
            !is_placeholder(path, entries[i]->d_name) &&
            !is_known(facts, path)) {
            add_python(path, facts);
        }
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
}

/* A line of what it printed; @return the next one. */
static const char *take_line(const char *text, char *line, size_t size)
{
    size_t length = strcspn(text, "\n");

    snprintf(line, size, "%.*s", (int)length, text);
    return text + length + (text[length] == '\n');
}

static void run(struct seep_doctor_python *python, const char *library,
                double limit_s)
{
    char option[] = "-c";
    char *argv[] = {python->path, option, script, NULL};
    char executable[PATH_MAX];
    const char *rest;

    seep_doctor_try(argv, library, "65536", limit_s, &python->trial);
    if (python->trial.error == 0 && WIFEXITED(python->trial.status) &&
        WEXITSTATUS(python->trial.status) == 0) {
        rest =
            take_line(python->trial.output, python->name, sizeof(python->name));
        rest = take_line(rest, python->version, sizeof(python->version));
        rest = take_line(rest, executable, sizeof(executable));
        if (executable[0] == '/') {
            memcpy(python->path, executable, sizeof(executable));
        }
        take_line(rest, python->torch, sizeof(python->torch));
    }
}

/* One interpreter under two names: what a launcher starts calls itself by the
 * launcher's. In another folder it may be that of an environment. */
static bool is_same(const char *path, const char *other)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path) + 1;

    return strcmp(path, other) == 0 ||
           (strncmp(path, other, length) == 0 &&
            strchr(other + length, '/') == NULL && is_one_file(path, other));
}

/* Two names can be launchers of the same one. */
static void drop_doubles(struct seep_doctor_facts *facts)
{
    size_t kept = 0;

    for (size_t i = 0; i < facts->python_count; i++) {
        bool again = false;
        for (size_t j = 0; j < kept; j++) {
            again |= is_same(facts->pythons[j].path, facts->pythons[i].path);
        }
        if (!again) {
            facts->pythons[kept++] = facts->pythons[i];
        }
    }
    facts->python_count = kept;
}

static void look_into_path(struct seep_doctor_facts *facts)
{
    const char *folders = facts->variable("PATH");
    char *copy = strdup(folders == NULL ? "/bin:/usr/bin" : folders);
    char *state;

    for (char *folder = copy == NULL ? NULL : strtok_r(copy, ":", &state);
         folder != NULL; folder = strtok_r(NULL, ":", &state)) {
        look_into(folder, facts);
    }
    free(copy);
}

void seep_doctor_python_take(struct seep_doctor_facts *facts)
{
    uint64_t start_ns = seep_clock_ns(CLOCK_MONOTONIC);

    if (!add_commands(facts)) {
        look_into_path(facts);
    }
    for (size_t i = 0; i < facts->python_count; i++) {
        double left_s =
            TOTAL_LIMIT_S -
            (double)(seep_clock_ns(CLOCK_MONOTONIC) - start_ns) / 1e9;
        run(&facts->pythons[i], facts->library,
            left_s < 0             ? 0
            : left_s < ONE_LIMIT_S ? left_s
                                   : ONE_LIMIT_S);
    }
    drop_doubles(facts);
}

static void find_broken(const struct seep_doctor_python *python,
                        struct seep_doctor *doctor)
{
    const struct seep_doctor_trial *trial = &python->trial;

    if (trial->error == -ETIMEDOUT) {
        seep_doctor_find(doctor, "python", SEEP_DOCTOR_WARN,
                         "run it by hand, and take it out of PATH if it hangs",
                         "%s did not answer in time", python->path);
    } else if (trial->error < 0) {
        seep_doctor_find(doctor, "python", SEEP_DOCTOR_WARN, NULL,
                         "%s was not tried: %s", python->path,
                         strerror(-trial->error));
    } else {
        seep_doctor_find(
            doctor, "python", SEEP_DOCTOR_WARN,
            "repair it, or take it out of PATH", "%s does not work: %s %d%s%s",
            python->path, WIFSIGNALED(trial->status) ? "signal" : "exit status",
            WIFSIGNALED(trial->status) ? WTERMSIG(trial->status)
                                       : WEXITSTATUS(trial->status),
            trial->complaint[0] == '\0' ? "" : ", ", trial->complaint);
    }
}

/* It works, but its lines are not in the stacks. */
static void find_unseen(const struct seep_doctor_python *python,
                        struct seep_doctor *doctor)
{
    const struct seep_doctor_trial *trial = &python->trial;

    if (strcmp(python->name, "cpython") != 0) {
        seep_doctor_find(doctor, "python", SEEP_DOCTOR_WARN,
                         "use CPython 3.8 to 3.15",
                         "%s %s at %s: no lines of Python, only native frames",
                         python->name, python->version, python->path);
    } else if (trial->recorded) {
        seep_doctor_find(
            doctor, "python", SEEP_DOCTOR_WARN,
            "use a released CPython from 3.8 to 3.15, not a free-threaded or debug build",
            "%s at %s: no lines of Python (%s)", python->version, python->path,
            seep_python_state_words(trial->python_state));
    } else {
        seep_doctor_find(doctor, "python", SEEP_DOCTOR_WARN,
                         "if the other rows are fine: seep doctor -- its path",
                         "%s at %s ran but left no recording%s%s",
                         python->version, python->path,
                         trial->complaint[0] == '\0' ? "" : ": ",
                         trial->complaint);
    }
}

void seep_doctor_check_python(const struct seep_doctor_facts *facts,
                              struct seep_doctor *doctor)
{
    for (size_t i = 0; i < facts->python_count; i++) {
        const struct seep_doctor_python *python = &facts->pythons[i];
        if (python->name[0] == '\0') {
            find_broken(python, doctor);
        } else if (python->trial.python_count > 0) {
            seep_doctor_find(doctor, "python", SEEP_DOCTOR_OK, NULL,
                             "%s at %s: its lines are in the stacks",
                             python->version, python->path);
        } else if (facts->library == NULL) {
            seep_doctor_find(
                doctor, "python", SEEP_DOCTOR_ABSENT, NULL,
                "%s at %s: not tried, because libseep.so is missing",
                python->version, python->path);
        } else {
            find_unseen(python, doctor);
        }
    }
    if (facts->python_count == 0) {
        seep_doctor_find(doctor, "python", SEEP_DOCTOR_ABSENT, NULL,
                         "no Python in PATH");
    }
}
