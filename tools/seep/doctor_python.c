/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The Pythons of PATH: each is run under libseep.so, and has its lines in the
 * stacks or has not.
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

#include "base/clock.h"
#include "doctor.h"
#include "doctor_trial.h"
#include "elf_look.h"
#include "reader/report.h"

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

/* Names of one folder lead to the same file: the first that PATH has counts,
 * for of two environments each has modules of its own. */
static bool is_known(const struct seep_doctor_facts *facts, const char *path)
{
    char *real = realpath(path, NULL);
    bool known = false;

    for (size_t i = 0; real != NULL && !known && i < facts->python_count; i++) {
        char *other = realpath(facts->pythons[i].path, NULL);
        known = other != NULL && strcmp(real, other) == 0;
        free(other);
    }
    free(real);
    return known;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_candidate(const struct dirent *entry)
{
    return is_name(entry->d_name);
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
            struct seep_doctor_python *python =
                &facts->pythons[facts->python_count++];
            *python = (struct seep_doctor_python){0};
            memcpy(python->path, path, (size_t)length + 1);
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
    char *real;
    char *other_real;
    bool same;

    if (strcmp(path, other) == 0) {
        return true;
    }
    if (strncmp(path, other, length) != 0 ||
        strchr(other + length, '/') != NULL) {
        return false;
    }
    real = realpath(path, NULL);
    other_real = realpath(other, NULL);
    same = real != NULL && other_real != NULL && strcmp(real, other_real) == 0;
    free(real);
    free(other_real);
    return same;
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

void seep_doctor_python_take(struct seep_doctor_facts *facts)
{
    const char *folders = facts->variable("PATH");
    char *copy = strdup(folders == NULL ? "/bin:/usr/bin" : folders);
    uint64_t start_ns = seep_clock_ns(CLOCK_MONOTONIC);
    char *state;

    for (char *folder = copy == NULL ? NULL : strtok_r(copy, ":", &state);
         folder != NULL; folder = strtok_r(NULL, ":", &state)) {
        look_into(folder, facts);
    }
    free(copy);
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
                         "%s gave no answer in time", python->path);
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
                         "use CPython 3.8 to 3.14",
                         "%s %s at %s: no lines of Python, native frames only",
                         python->name, python->version, python->path);
    } else if (trial->recorded) {
        seep_doctor_find(doctor, "python", SEEP_DOCTOR_WARN,
                         "use a released CPython from 3.8 to 3.14, not a "
                         "free-threaded or debug build",
                         "%s at %s: no lines of Python (%s)", python->version,
                         python->path,
                         seep_python_state_words(trial->python_state));
    } else {
        seep_doctor_find(doctor, "python", SEEP_DOCTOR_WARN,
                         "if other rows are well: seep doctor -- its path",
                         "%s at %s ran and left no recording%s%s",
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
            seep_doctor_find(doctor, "python", SEEP_DOCTOR_ABSENT, NULL,
                             "%s at %s: not tried, for want of libseep.so",
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
