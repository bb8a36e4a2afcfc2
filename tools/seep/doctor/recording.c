/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The whole way once: a child under libseep.so, and what it recorded. With it
 * the C library, the allocator beneath and the unwinder.
 *
 * Invariant: what is said to work was seen to work.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "doctor/doctor.h"
#include "words/words.h"

#define GLIBC_LEAST "2.34"

static void find_missing(const struct seep_doctor_facts *facts,
                         struct seep_doctor *doctor)
{
    seep_doctor_find(
        doctor, "recording", SEEP_DOCTOR_NO,
        "set SEEP_PRELOAD to the path of libseep.so",
        facts->library_error == -EINVAL
            ? "the path of libseep.so has a blank, a colon or a dollar sign, which LD_PRELOAD cannot hold"
            : "libseep.so was not found beside this program");
}

/* Why there is nothing to read back. */
static void find_unrecorded(const struct seep_doctor_facts *facts,
                            struct seep_doctor *doctor)
{
    const struct seep_doctor_trial *trial = &facts->trial;

    if (trial->error < 0) {
        seep_doctor_find(doctor, "recording", SEEP_DOCTOR_NO,
                         "set TMPDIR to a writable folder",
                         "cannot set up a trial: %s", strerror(-trial->error));
    } else if (facts->library_noexec) {
        seep_doctor_find(
            doctor, "recording", SEEP_DOCTOR_NO,
            "mount it without noexec, or set SEEP_PRELOAD to a copy elsewhere",
            "%s is on a file system mounted noexec", facts->library);
    } else if (trial->complaint[0] != '\0') {
        seep_doctor_find(
            doctor, "recording", SEEP_DOCTOR_NO,
            "set SEEP_PRELOAD to a libseep.so built for this machine",
            "a child under %s left no recording: %s", facts->library,
            trial->complaint);
    } else {
        seep_doctor_find(doctor, "recording", SEEP_DOCTOR_NO,
                         "see the rows below: folder, limits, security",
                         "a child under %s left no recording", facts->library);
    }
}

void seep_doctor_check_recording(const struct seep_doctor_facts *facts,
                                 struct seep_doctor *doctor)
{
    const struct seep_doctor_trial *trial = &facts->trial;

    if (facts->library == NULL) {
        find_missing(facts, doctor);
    } else if (!trial->recorded) {
        find_unrecorded(facts, doctor);
    } else if (trial->inert != SEEP_INERT_NONE) {
        seep_doctor_find(
            doctor, "recording", SEEP_DOCTOR_NO, "take it out of LD_PRELOAD",
            "libseep.so does nothing: %s", seep_words_inert(trial->inert));
    } else if (!WIFEXITED(trial->status) || WEXITSTATUS(trial->status) != 0 ||
               trial->event_count == 0) {
        seep_doctor_find(
            doctor, "recording", SEEP_DOCTOR_NO,
            "report it, with the rows below",
            "a child under %s ended with status %d, and %llu events were recorded",
            facts->library, trial->status,
            (unsigned long long)trial->event_count);
    } else {
        seep_doctor_find(doctor, "recording", SEEP_DOCTOR_OK, NULL,
                         "%s: a child was recorded, and %llu events read back",
                         facts->library,
                         (unsigned long long)trial->event_count);
    }
}

void seep_doctor_check_glibc(const struct seep_doctor_facts *facts,
                             struct seep_doctor *doctor)
{
    if (facts->glibc[0] == '\0') {
        seep_doctor_find(doctor, "glibc", SEEP_DOCTOR_NO,
                         "use an image with glibc (Debian, Ubuntu, Red Hat)",
                         "the C library is not glibc");
    } else if (strverscmp(facts->glibc, GLIBC_LEAST) < 0) {
        seep_doctor_find(doctor, "glibc", SEEP_DOCTOR_NO,
                         "use an image with " GLIBC_LEAST " or newer",
                         "glibc %s is older than " GLIBC_LEAST, facts->glibc);
    } else {
        seep_doctor_find(doctor, "glibc", SEEP_DOCTOR_OK, NULL, "%s",
                         facts->glibc);
    }
}

/* Libraries that are known by their names. */
static const struct known {
    const char *prefix;
    enum seep_doctor_level level;
    const char *reason;
    const char *remedy;
} known[] = {
    {"libjemalloc", SEEP_DOCTOR_OK,
     "jemalloc is preloaded: it stays beneath libseep.so, and reports what is live, cached and fragmented",
     NULL},
    {"libtcmalloc", SEEP_DOCTOR_OK,
     "tcmalloc is preloaded: it stays beneath libseep.so", NULL},
    {"libmimalloc", SEEP_DOCTOR_WARN,
     "mimalloc is preloaded: it does not report what it has handed out, so fragmentation cannot be told from retention",
     "--allocator jemalloc, if you can choose"},
    {"libasan", SEEP_DOCTOR_NO, "a sanitizer is preloaded",
     "take it out of LD_PRELOAD"},
    {"libtsan", SEEP_DOCTOR_NO, "a sanitizer is preloaded",
     "take it out of LD_PRELOAD"},
    {"vgpreload", SEEP_DOCTOR_NO, "this runs under valgrind",
     "run it without valgrind"},
    {"libheaptrack", SEEP_DOCTOR_WARN,
     "heaptrack is preloaded too: it hooks the same functions, and its cost is taken for the program's",
     "use one at a time"},
    {"libbytehound", SEEP_DOCTOR_WARN,
     "bytehound is preloaded too: it hooks the same functions",
     "use one at a time"},
    {"libseep", SEEP_DOCTOR_OK,
     "libseep.so is in LD_PRELOAD already: all that is started here is recorded",
     NULL},
};

/* @return whether an allocator was named by @path */
static bool find_preloaded(const struct seep_doctor_facts *facts,
                           struct seep_doctor *doctor, const char *path)
{
    const char *name = seep_text_base_name(path);

    if (*path == '/' && !seep_doctor_can(facts, path, R_OK)) {
        seep_doctor_find(
            doctor, "allocator", SEEP_DOCTOR_WARN,
            "take it out of LD_PRELOAD, or install it",
            "LD_PRELOAD names %s, which cannot be read: the loader prints an error in every program",
            path);
        return false;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strncmp(name, known[i].prefix, strlen(known[i].prefix)) == 0) {
            seep_doctor_find(doctor, "allocator", known[i].level,
                             known[i].remedy, "%s", known[i].reason);
            return strstr(name, "malloc") != NULL;
        }
    }
    return false;
}

static bool find_words(const struct seep_doctor_facts *facts,
                       struct seep_doctor *doctor, const char *list)
{
    char *words = strdup(list == NULL ? "" : list);
    bool has_allocator = false;
    char *state = NULL;

    for (char *word = words == NULL ? NULL : strtok_r(words, " :\n", &state);
         word != NULL; word = strtok_r(NULL, " :\n", &state)) {
        has_allocator |= find_preloaded(facts, doctor, word);
    }
    free(words);
    return has_allocator;
}

void seep_doctor_check_allocator(const struct seep_doctor_facts *facts,
                                 struct seep_doctor *doctor)
{
    char system[4096] = "";
    bool has_allocator =
        find_words(facts, doctor, facts->variable("LD_PRELOAD"));

    seep_doctor_read(facts, "/etc/ld.so.preload", system, sizeof(system));
    has_allocator |= find_words(facts, doctor, system);
    if (!has_allocator) {
        seep_doctor_find(doctor, "allocator", SEEP_DOCTOR_OK, NULL,
                         "glibc's malloc, unless a program brings another");
    }
}

void seep_doctor_check_unwinder(const struct seep_doctor_facts *facts,
                                struct seep_doctor *doctor)
{
    const struct seep_doctor_trial *trial = &facts->trial;
    const char *asked = facts->variable("SEEP_UNWINDER");
    char path[PATH_MAX];
    bool has_libunwind =
        seep_doctor_find_library(facts, "libunwind.so.8", path);

    if (asked != NULL && strcmp(asked, "libunwind") == 0 && !has_libunwind) {
        seep_doctor_find(
            doctor, "unwinder", SEEP_DOCTOR_WARN,
            "install libunwind8, or unset SEEP_UNWINDER",
            "SEEP_UNWINDER asks for libunwind, which is not installed");
    } else if (!trial->recorded || trial->stack_count == 0) {
        seep_doctor_find(doctor, "unwinder", SEEP_DOCTOR_ABSENT, NULL,
                         "not tried: nothing was recorded");
    } else if (trial->whole_count < trial->stack_count) {
        seep_doctor_find(
            doctor, "unwinder", SEEP_DOCTOR_WARN,
            has_libunwind
                ? "compare with --unwinder libunwind"
                : "install libunwind8 and compare with --unwinder libunwind",
            "%s: of %llu stacks, %llu end too early",
            seep_words_unwinder(trial->unwinder),
            (unsigned long long)trial->stack_count,
            (unsigned long long)(trial->stack_count - trial->whole_count));
    } else {
        seep_doctor_find(doctor, "unwinder", SEEP_DOCTOR_OK, NULL,
                         "%s: all stacks of the trial are complete%s",
                         seep_words_unwinder(trial->unwinder),
                         has_libunwind ? "; libunwind is also installed" : "");
    }
}
