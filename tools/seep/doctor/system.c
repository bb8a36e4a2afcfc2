/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the system allows a process: the folder, and whether logrotate cuts what
 * lies there; sizes of files and of the address space, mappings; the container
 * around; and who forbids system calls.
 *
 * Invariant: a limit is reported when it is below what seep needs, not because
 * it is there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/syscall.h"
#include "base/text.h"
#include "doctor/doctor.h"
#include "format/layout.h"
#include "options/variables.h"
#include "reader/process/cgroup.h"
#include "run/launch.h"
#include "run/run.h"
#include "words/units.h"

static void find_failed(const struct seep_doctor_facts *facts,
                        struct seep_doctor *doctor)
{
    const struct seep_launch_trial *folder = &facts->folder;
    enum seep_place_reason reason = seep_place_reason_of(folder->error);

    seep_doctor_find(doctor, "folder", SEEP_DOCTOR_NO,
                     seep_place_remedy(reason),
                     "in %s a recording cannot %s: %s", folder->place.folder,
                     folder->step, strerror(-folder->error));
}

static void find_missing(const struct seep_doctor_facts *facts,
                         struct seep_doctor *doctor)
{
    seep_doctor_find(
        doctor, "folder", SEEP_DOCTOR_WARN,
        "create it before starting a process with the variables alone",
        "%s does not exist: `seep run` creates it, SEEP_OUT alone does not, and nothing would be recorded",
        facts->folder.missing);
}

static void find_unsafe(const struct seep_doctor_facts *facts,
                        struct seep_doctor *doctor)
{
    const struct seep_place_found *place = &facts->folder.place;

    seep_doctor_find(
        doctor, "folder", SEEP_DOCTOR_WARN,
        "choose a folder on a local disk or a tmpfs with -o",
        "%s is %s: reserved space there can still fail (%s), which kills the process",
        place->folder, seep_place_system(place->type),
        seep_place_unsafe(place->type));
}

static void find_fine(const struct seep_doctor_facts *facts,
                      struct seep_doctor *doctor)
{
    const struct seep_place_found *place = &facts->folder.place;
    const char *system = seep_place_system(place->type);
    const char *name = system == NULL ? "a local file system" : system;
    const char *left = SEEP_UNITS_BYTES((double)place->free_bytes);

    if (place->free_bytes < SEEP_LAYOUT_EXACT_BYTES) {
        seep_doctor_find(
            doctor, "folder", SEEP_DOCTOR_WARN,
            "free some space, or choose another folder with -o",
            "%s (%s) has %s free: a recording in exact mode may take up to 256 MiB",
            place->folder, name, left);
    } else if (place->type == (uint32_t)TMPFS_MAGIC) {
        seep_doctor_find(
            doctor, "folder", SEEP_DOCTOR_WARN,
            "allow for it in the memory limit, or choose a disk with -o",
            "%s is a tmpfs, %s free: recordings there count as memory, and are lost at a reboot",
            place->folder, left);
    } else if (place->type == (uint32_t)OVERLAYFS_SUPER_MAGIC) {
        seep_doctor_find(
            doctor, "folder", SEEP_DOCTOR_WARN,
            "name a volume with -o or SEEP_OUT",
            "%s is an overlay, %s free: recordings there are lost with the container",
            place->folder, left);
    } else {
        seep_doctor_find(doctor, "folder", SEEP_DOCTOR_OK, NULL,
                         "%s (%s), %s free: a recording was reserved there%s",
                         place->folder, name, left,
                         place->others_may_move
                             ? "; others can rename or remove files there"
                             : "");
    }
}

void seep_doctor_check_folder(const struct seep_doctor_facts *facts,
                              struct seep_doctor *doctor)
{
    const struct seep_launch_trial *folder = &facts->folder;
    struct seep_why why;

    if (folder->error < 0) {
        find_failed(facts, doctor);
    } else if (seep_why_place(&folder->place, &why)) {
        seep_doctor_find(doctor, "folder", SEEP_DOCTOR_NO, why.remedy, "%s %s",
                         why.thing, why.reason);
    } else if (folder->missing[0] != '\0') {
        find_missing(facts, doctor);
    } else if (seep_place_unsafe(folder->place.type) != NULL) {
        find_unsafe(facts, doctor);
    } else {
        find_fine(facts, doctor);
    }
}

/*
 * Does logrotate cut recordings? By copytruncate it truncates files that are
 * being written, and a process whose recording is cut dies by SIGBUS.
 *
 * Invariant: only what would be cut is told; nothing is read but logrotate's
 * configuration.
 */

#define CONFIGURATION_BYTES (1U << 16)
#define BLANKS " \t\r"

/** Where in a configuration we are; see logrotate.conf(5). */
struct rules {
    const char *path; /* of a recording */
    bool in_block;
    bool in_script;
    bool matches;       /* a pattern of the block is of .path */
    bool cuts;          /* copytruncate, in the block */
    bool cuts_unless;   /* the same before all blocks */
    bool cuts_its_path; /* the result */
};

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words != NULL && strcmp(*words, word) != 0) {
        words++;
    }
    return *words != NULL;
}

/* A pattern may be in quotes, and the brace may follow it at once. */
static void read_pattern(struct rules *rules, char *word)
{
    size_t length = strlen(word);
    bool opens = length > 0 && word[length - 1] == '{';

    if (opens) {
        word[--length] = '\0';
    }
    if (length > 1 && word[0] == '"' && word[length - 1] == '"') {
        word[length - 1] = '\0';
        word++;
    }
    rules->matches |= word[0] == '/' && fnmatch(word, rules->path,
                                                FNM_PATHNAME | FNM_PERIOD) == 0;
    if (opens) {
        rules->in_block = true;
        rules->cuts = rules->cuts_unless;
    }
}

static void read_directive(struct rules *rules, const char *word)
{
    static const char *const scripts[] = {"prerotate",   "postrotate",
                                          "firstaction", "lastaction",
                                          "preremove",   NULL};
    bool *cuts = rules->in_block ? &rules->cuts : &rules->cuts_unless;

    if (is_one_of(word, scripts)) {
        rules->in_script = true;
    } else if (strcmp(word, "copytruncate") == 0) {
        *cuts = true;
    } else if (strcmp(word, "nocopytruncate") == 0) {
        *cuts = false;
    } else if (strcmp(word, "}") == 0) {
        rules->cuts_its_path |= rules->matches && rules->cuts;
        rules->in_block = false;
        rules->matches = false;
    }
}

static void read_line(struct rules *rules, char *line)
{
    char *state = NULL;
    char *word = strtok_r(line, BLANKS, &state);

    if (word == NULL || word[0] == '#') {
        return;
    }
    if (rules->in_script) {
        rules->in_script = strcmp(word, "endscript") != 0;
    } else if (!rules->in_block && strchr("/\"{", word[0]) != NULL) {
        for (; word != NULL; word = strtok_r(NULL, BLANKS, &state)) {
            read_pattern(rules, word);
        }
    } else {
        read_directive(rules, word);
    }
}

/* One file of the configuration; what it says before all blocks is for those
 * that follow, as logrotate has it. */
static bool cuts(const struct seep_doctor_facts *facts, const char *file,
                 struct rules *rules)
{
    char *text = malloc(CONFIGURATION_BYTES);
    char *state = NULL;

    if (text != NULL &&
        seep_doctor_read(facts, file, text, CONFIGURATION_BYTES)) {
        for (char *line = strtok_r(text, "\n", &state); line != NULL;
             line = strtok_r(NULL, "\n", &state)) {
            read_line(rules, line);
        }
    }
    free(text);
    rules->in_block = false;
    rules->in_script = false;
    rules->matches = false;
    return rules->cuts_its_path;
}

static bool find_file(const struct seep_doctor_facts *facts,
                      struct rules *rules, char file[PATH_MAX])
{
    static const char folder[] = "/etc/logrotate.d";
    char path[PATH_MAX];
    bool found = false;
    const struct dirent *entry;
    DIR *entries;

    snprintf(file, PATH_MAX, "/etc/logrotate.conf");
    if (cuts(facts, file, rules)) {
        return true;
    }
    entries = opendir(seep_doctor_path(facts, folder, path));
    while (entries != NULL && !found && (entry = readdir(entries)) != NULL) {
        found = entry->d_name[0] != '.' &&
                snprintf(file, PATH_MAX, "%s/%s", folder, entry->d_name) <
                    PATH_MAX &&
                cuts(facts, file, rules);
    }
    if (entries != NULL) {
        closedir(entries);
    }
    return found;
}

void seep_doctor_check_rotation(const struct seep_doctor_facts *facts,
                                struct seep_doctor *doctor)
{
    const char *folder = facts->folder.place.folder;
    char path[PATH_MAX];
    char file[PATH_MAX];
    struct rules rules = {.path = path};

    snprintf(path, sizeof(path), "%s/python3.1.seep", folder);
    if (find_file(facts, &rules, file)) {
        seep_doctor_find(
            doctor, "folder", SEEP_DOCTOR_WARN,
            "leave *.seep out of its pattern, or choose another folder with -o",
            "%s cuts what lies in %s (copytruncate): a process whose recording is cut while it is written dies by SIGBUS",
            file, folder);
    }
}

/*
 * The SEEP_* variables that are set: would the recorder understand them?
 */

static void find_one(void *context, const struct seep_variable_words *words)
{
    seep_doctor_find(context, "variables", SEEP_DOCTOR_WARN,
                     words->remedy[0] == '\0' ? NULL : words->remedy, "%s: %s",
                     words->thing, words->reason);
}

void seep_doctor_check_variables(const struct seep_doctor_facts *facts,
                                 struct seep_doctor *doctor)
{
    size_t before = doctor->count;

    if (facts->environment != NULL) {
        seep_variables_visit(facts->environment, find_one, doctor);
    }
    if (doctor->count == before) {
        seep_doctor_find(doctor, "variables", SEEP_DOCTOR_OK, NULL,
                         "every SEEP_ variable that is set is valid");
    }
}

/*
 * The command that was given: would it be recorded? And the debug information
 * that makes its native frames readable.
 *
 * Invariant: the command is not run.
 */

static enum seep_doctor_level level_of(enum seep_program_kind kind)
{
    switch (kind) {
    case SEEP_PROGRAM_FINE:
    case SEEP_PROGRAM_LAUNCHER:
        return SEEP_DOCTOR_OK;
    case SEEP_PROGRAM_GO:
        return SEEP_DOCTOR_WARN;
    default:
        return SEEP_DOCTOR_NO;
    }
}

void seep_doctor_check_command(const struct seep_doctor_facts *facts,
                               struct seep_doctor *doctor)
{
    struct seep_program program;

    if (facts->command == NULL) {
        return;
    }
    seep_program_look(facts->command[0], facts->variable("PATH"), &program);
    bool other =
        program.path[0] != '\0' && strcmp(program.path, facts->command[0]) != 0;
    seep_doctor_find(doctor, "command", level_of(program.kind), program.remedy,
                     "%s%s%s%s %s", facts->command[0], other ? " (" : "",
                     other ? program.path : "", other ? ")" : "",
                     program.reason);
}

/* Has the object at @path lines, in itself or in a file beside? */
static bool has_lines(const struct seep_doctor_facts *facts, const char *path)
{
    struct seep_elf_look look;
    char debug[PATH_MAX];

    if (seep_elf_look(path, &look) < 0) {
        return true; /* nothing is known, so nothing is missed */
    }
    if (look.has_lines || strlen(look.build_id) < 4) {
        return look.has_lines;
    }
    snprintf(debug, sizeof(debug), "/usr/lib/debug/.build-id/%.2s/%s.debug",
             look.build_id, look.build_id + 2);
    return seep_doctor_can(facts, debug, R_OK);
}

static void add_name(char *text, size_t size, const char *name)
{
    size_t length = strlen(text);

    snprintf(text + length, size - length, "%s%s", length == 0 ? "" : " and ",
             name);
}

void seep_doctor_check_symbols(const struct seep_doctor_facts *facts,
                               struct seep_doctor *doctor)
{
    const char *servers = facts->variable("DEBUGINFOD_URLS");
    char without[PATH_MAX] = "";

    if (facts->python_count > 0 && !has_lines(facts, facts->pythons[0].path)) {
        add_name(without, sizeof(without),
                 seep_text_base_name(facts->pythons[0].path));
    }
    if (facts->libc_path[0] != '\0' && !has_lines(facts, facts->libc_path)) {
        add_name(without, sizeof(without), "libc");
    }
    if (without[0] == '\0') {
        seep_doctor_find(
            doctor, "symbols", SEEP_DOCTOR_OK, NULL,
            "debug information of the interpreter and libc is installed");
    } else if (servers != NULL && *servers != '\0') {
        seep_doctor_find(
            doctor, "symbols", SEEP_DOCTOR_OK, NULL,
            "no debug information of %s here; `seep report --debuginfod` asks %s",
            without, servers);
    } else {
        seep_doctor_find(
            doctor, "symbols", SEEP_DOCTOR_WARN,
            "install python3-dbg and libc6-dbg, or set DEBUGINFOD_URLS and give `seep report --debuginfod`",
            "no debug information of %s: native frames there show the nearest exported name; lines of Python and of your own code are not affected",
            without);
    }
}

#define MAPS_LEAST 1024U

static bool find_low(const struct seep_doctor_facts *facts,
                     struct seep_doctor *doctor, uint64_t limit_bytes,
                     uint64_t need_bytes, const char *what, const char *remedy)
{
    if (limit_bytes >= need_bytes) {
        return false;
    }
    seep_doctor_find(doctor, "limits", SEEP_DOCTOR_NO, remedy,
                     "%s is limited to %s, and a recording of %s needs %s",
                     what, SEEP_UNITS_BYTES((double)limit_bytes),
                     SEEP_UNITS_BYTES((double)facts->size_bytes),
                     SEEP_UNITS_BYTES((double)need_bytes));
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

/* The recorder takes a sixteenth of a limit at the most, or nothing. */
static bool find_lacking(const struct seep_doctor_facts *facts,
                         struct seep_doctor *doctor)
{
    const struct seep_own_limits *limits = &facts->limits;
    uint64_t tables = SEEP_OWN_TABLES_BYTES;
    uint64_t private = tables + facts->size_bytes / 16;
    bool is_all = facts->lacking == SEEP_OWN_ADDRESSES;
    uint64_t least =
        SEEP_OWN_SHARE * (is_all ? private + facts->size_bytes : private);
    char limit[64];
    char remedy[128];

    if (facts->lacking == SEEP_OWN_NO_LIMIT) {
        return false;
    }
    if (facts->lacking == SEEP_OWN_COMMIT) {
        snprintf(limit, sizeof(limit), "of what the machine commits to (%s",
                 SEEP_UNITS_BYTES((double)limits->commit_bytes));
        snprintf(remedy, sizeof(remedy),
                 "leave %s of it free, or vm.overcommit_memory=0",
                 SEEP_UNITS_BYTES((double)least));
    } else {
        snprintf(limit, sizeof(limit), "of %s (ulimit -%c %llu",
                 is_all ? "address space" : "data", is_all ? 'v' : 'd',
                 (unsigned long long)(is_all ? limits->address_bytes
                                             : limits->data_bytes) >>
                     10);
        snprintf(remedy, sizeof(remedy), "raise it to %s (ulimit -%c %llu)",
                 SEEP_UNITS_BYTES((double)least), is_all ? 'v' : 'd',
                 (unsigned long long)least >> 10);
    }
    seep_doctor_find(doctor, "limits", SEEP_DOCTOR_NO, remedy,
                     "the limit %s) leaves no room to record: a recording "
                     "takes a sixteenth of it at the most",
                     limit);
    return true;
}

void seep_doctor_check_limits(const struct seep_doctor_facts *facts,
                              struct seep_doctor *doctor)
{
    uint64_t maps = number_in(facts, "/proc/sys/vm/max_map_count", UINT64_MAX);
    bool low =
        find_low(facts, doctor, facts->file_limit_bytes, facts->size_bytes,
                 "the size of a file", "raise it (ulimit -f), or --size 2MiB");

    low |= find_lacking(facts, doctor);
    if (maps < MAPS_LEAST) {
        seep_doctor_find(
            doctor, "limits", SEEP_DOCTOR_WARN, "raise vm.max_map_count",
            "a process may have only %llu mappings: it will fail, with seep or without",
            (unsigned long long)maps);
    } else if (!low) {
        seep_doctor_find(
            doctor, "limits", SEEP_DOCTOR_OK, NULL,
            "limits of files, address space and mappings are high enough%s",
            number_in(facts, "/proc/sys/vm/overcommit_memory", 0) == 2
                ? "; memory is not overcommitted, but recordings on a disk do not count"
                : "");
    }
}

/* The name of what runs the container; NULL if this is none. */
static const char *container_of(const struct seep_doctor_facts *facts)
{
    return facts->variable("KUBERNETES_SERVICE_HOST") != NULL ? "Kubernetes"
           : seep_doctor_can(facts, "/.dockerenv", F_OK)      ? "Docker"
           : seep_doctor_can(facts, "/run/.containerenv", F_OK)
               ? "Podman"
               : facts->variable("container");
}

static void describe_memory(const struct seep_doctor_facts *facts, char *text,
                            size_t size)
{
    char membership[4096] = "";
    char below[PATH_MAX];
    uint64_t used;
    uint64_t limit;

    seep_doctor_read(facts, "/proc/self/cgroup", membership,
                     sizeof(membership));
    seep_cgroup_usage(membership,
                      seep_doctor_path(facts, "/sys/fs/cgroup", below), &used,
                      &limit);
    bool unified = strncmp(membership, "0::", 3) == 0;
    const char *version = membership[0] == '\0' ? "no cgroup"
                          : unified             ? "cgroup v2"
                                                : "cgroup v1";
    if (limit > 0) {
        snprintf(text, size, "%s limits memory to %s, which forecasts use",
                 version, SEEP_UNITS_BYTES((double)limit));
    } else {
        snprintf(text, size, "%s, without a memory limit", version);
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
        seep_doctor_find(
            doctor, "container", SEEP_DOCTOR_WARN,
            "mount it (mount -t proc proc /proc)",
            "/proc is missing: recordings have no RSS, no thread names and no program name");
        return;
    }
    describe_memory(facts, memory, sizeof(memory));
    if (hides_processes(facts)) {
        seep_doctor_find(
            doctor, "container", SEEP_DOCTOR_WARN,
            "run `seep report` and `seep top` as the user of the process",
            "/proc hides the processes of other users (hidepid): whether their processes are running is not known");
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
        seep_doctor_find(
            doctor, "security", SEEP_DOCTOR_WARN,
            "if a service leaves no recording: run ausearch -m avc, and label libseep.so lib_t",
            "SELinux is enforcing: a confined service may have no access to libseep.so or to the folder");
    }
    seep_doctor_read(facts, "/proc/self/attr/current", profile,
                     sizeof(profile));
    profile[strcspn(profile, "\n")] = '\0';
    if (strstr(profile, "(enforce)") != NULL) {
        seep_doctor_find(
            doctor, "security", SEEP_DOCTOR_OK, NULL,
            "AppArmor profile %s: its files rule must allow the folder of recordings",
            profile);
    }
}

/* As many filters as process 1: the recorder takes them for a container's. */
static bool is_as_first(const struct seep_doctor_facts *facts,
                        const char *status)
{
    char first[8192] = "";
    int count = status_number(status, "\nSeccomp_filters:");

    seep_doctor_read(facts, "/proc/1/status", first, sizeof(first));
    return count > 0 && status_number(first, "\nSeccomp_filters:") == count;
}

/* What a killing filter costs, but process_vm_readv, which has a row. */
static bool find_killed(const struct seep_doctor_facts *facts,
                        struct seep_doctor *doctor)
{
    uint64_t denied = facts->denied_calls & ~SEEP_CALL_BIT(process_vm_readv);
    bool needed = (denied & SEEP_CALLS_ALL_NEEDED) != 0;
    char names[384];

    if (denied == 0) {
        return false;
    }
    seep_launch_name_calls(needed ? denied & SEEP_CALLS_ALL_NEEDED : denied,
                           names, sizeof(names));
    seep_doctor_find(
        doctor, "security", needed ? SEEP_DOCTOR_NO : SEEP_DOCTOR_WARN,
        "allow these system calls in the seccomp profile, or let it return an error",
        "a seccomp filter kills for %s: %s", names,
        needed
            ? "nothing would be recorded"
            : "`seep run` records without them, and LD_PRELOAD alone nothing");
    return true;
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
            "process_vm_readv is refused (%s): Python's first stacks are read in a slower way, and without the GIL not at all",
            facts->vm_readv_error == -ECANCELED
                ? "seccomp kills"
                : strerror(-facts->vm_readv_error));
        return;
    }
    if (find_killed(facts, doctor)) {
        return;
    }
    seep_doctor_find(
        doctor, "security", SEEP_DOCTOR_OK, NULL,
        "%s; neither ptrace nor privileges are needed; set-uid programs are never recorded",
        status_number(status, "\nSeccomp:") != 2 ? "no seccomp filter"
        : is_as_first(facts, status)
            ? "a seccomp filter that does not matter"
            : "a seccomp filter that does not matter to `seep run`, but with LD_PRELOAD alone nothing is recorded");
}

/*
 * May the memory of another process be read, to see who holds what it keeps?
 */

#define CAP_SYS_PTRACE 19

static bool may_trace_all(const struct seep_doctor_facts *facts)
{
    static const char key[] = "\nCapEff:";
    char status[8192] = "";
    const char *line;

    seep_doctor_read(facts, "/proc/self/status", status, sizeof(status));
    line = strstr(status, key);
    return line != NULL &&
           (strtoull(line + strlen(key), NULL, 16) >> CAP_SYS_PTRACE & 1) != 0;
}

void seep_doctor_check_holders(const struct seep_doctor_facts *facts,
                               struct seep_doctor *doctor)
{
    uint64_t scope = number_in(facts, "/proc/sys/kernel/yama/ptrace_scope", 0);
    bool may_all = may_trace_all(facts);

    if (facts->vm_readv_error == -ECANCELED) {
        seep_doctor_find(
            doctor, "holders", SEEP_DOCTOR_WARN,
            "allow process_vm_readv in the seccomp profile",
            "a seccomp filter kills who reads a process: who holds what leaks is not told");
    } else if (scope >= 3) {
        seep_doctor_find(
            doctor, "holders", SEEP_DOCTOR_WARN,
            "set kernel.yama.ptrace_scope below 3 at boot, or ask a core file: seep held --core",
            "yama lets nobody read a process (ptrace_scope 3): who holds what leaks is not told");
    } else if (scope == 2 && !may_all) {
        seep_doctor_find(
            doctor, "holders", SEEP_DOCTOR_WARN,
            "run seep with CAP_SYS_PTRACE, or set kernel.yama.ptrace_scope to 1",
            "yama lets only CAP_SYS_PTRACE read a process (ptrace_scope 2): who holds what leaks is not told");
    } else if (scope == 1 && !may_all) {
        seep_doctor_find(
            doctor, "holders", SEEP_DOCTOR_WARN,
            "start the process by `seep run`, which may and asks by itself; or run `seep held` with CAP_SYS_PTRACE",
            "yama lets only ancestors read a process (ptrace_scope 1): `seep held` and `seep report` of one that others started cannot tell who holds what leaks");
    } else {
        seep_doctor_find(
            doctor, "holders", SEEP_DOCTOR_OK, NULL,
            "who holds what leaks can be asked, of processes of %s%s",
            may_all ? "all users" : "the same user",
            container_of(facts) != NULL
                ? " in this container; of another one's with shareProcessNamespace and the same user"
                : "");
    }
}
