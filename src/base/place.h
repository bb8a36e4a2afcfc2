/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Where a recording goes: can one be made there, and if not, why.
 *
 * Decided here alone, for the recorder that makes it and for whoever is asked
 * why there is none. Invariant: a look changes nothing, and leaves nothing
 * behind; raw system calls, no errno, no heap, a few hundred bytes of stack.
 *
 * The mode of a folder is no reason: a recording is made anew, behind no link,
 * for its owner alone, and whoever reads it trusts nothing in it. What others
 * who may write there can do is rename it or take it away.
 */
#ifndef SEEP_BASE_PLACE_H
#define SEEP_BASE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/statfs.h>

#include "base/own.h"

#define SEEP_PLACE_PATH_BYTES 1024U

/** Why no recording can be made: X(SYMBOL, value, "words", "remedy"). The words
 * go on behind the name of the folder, the remedy stands for itself. */
#define SEEP_PLACE_REASONS(X)                                                 \
    X(FINE, 0, "can hold recordings", "")                                     \
    X(MISSING, 1, "does not exist", "create it, or choose another folder")    \
    X(NO_FOLDER, 2, "is not a folder", "choose a folder")                     \
    X(FORBIDDEN, 3, "cannot be written by this user",                         \
      "let this user write there, or choose another folder")                  \
    X(READ_ONLY, 4, "is on a read-only file system",                          \
      "mount a volume there, or choose another folder")                       \
    X(FULL, 5, "is on a full file system",                                    \
      "free some space, or choose another folder")                            \
    X(FLOOR, 6,                                                               \
      "is on a file system that would be left with too little free space",    \
      "free some space, choose another folder, or allow more use "            \
      "(SEEP_FLOOR)")                                                         \
    X(FILE_LIMIT, 7,                                                          \
      "cannot hold a recording: the file size limit is too low",              \
      "raise the limit (ulimit -f), or make recordings smaller (SEEP_SIZE)")  \
    X(NAME_LONG, 8, "makes the name too long", "give a shorter name")         \
    X(TAKEN, 9, "already has a file of every possible name",                  \
      "move the recordings away, or put %p into the name")                    \
    X(UNSAFE_SYSTEM, 10,                                                      \
      "is on a file system where reserved space can still fail, which would " \
      "kill the process",                                                     \
      "choose a folder on a local disk or a tmpfs; or SEEP_OUT_ANY=1 if the " \
      "process may die of it")                                                \
    X(NO_RESERVE, 11, "is on a file system that cannot reserve space",        \
      "choose a folder on a local disk or a tmpfs")                           \
    X(NO_MEMORY, 12,                                                          \
      "cannot be mapped: the process has no address space left",              \
      "raise the limit (ulimit -v), or make recordings smaller (SEEP_SIZE)")  \
    X(DESCRIPTORS, 13, "cannot be opened: out of file descriptors",           \
      "raise the limit (ulimit -n)")                                          \
    X(LINKS, 14, "is behind too many links", "choose another folder")         \
    X(REFUSED, 15, "was denied by the system",                                \
      "check the security policy, or choose another folder")                  \
    X(NO_LOCK, 16,                                                            \
      "cannot be mapped: the process locks all that it maps, and may not "    \
      "lock so much",                                                         \
      "raise the limit (ulimit -l), or make recordings smaller (SEEP_SIZE)")

enum seep_place_reason {
#define SEEP_PLACE_VALUE(symbol, value, words, remedy) \
    SEEP_PLACE_##symbol = (value),
    SEEP_PLACE_REASONS(SEEP_PLACE_VALUE)
#undef SEEP_PLACE_VALUE
        SEEP_PLACE_COUNT = 17
};

/** What must stay free of a file system. All zero: the default, which is the
 * larger of 1 GiB and 5 %, but no more than 25 %; 25 % of a tmpfs. */
struct seep_place_floor {
    uint64_t bytes;
    uint32_t percent; /* used if .given and .bytes is 0 */
    bool given;
};

/** That of this process: SEEP_FLOOR, --floor. Set before anything is asked. */
extern struct seep_place_floor seep_place_floor
    __attribute__((visibility("hidden")));

struct seep_place_terms {
    uint64_t size_bytes;         /* that a recording takes at once */
    uint64_t file_bytes;         /* that its file can have; 0: the same */
    const char *fallback_folder; /* for a pattern that is not absolute; may be
                                    NULL */
    bool any_filesystem;         /* SEEP_OUT_ANY=1 */
};

struct seep_place_found {
    enum seep_place_reason reason;
    int error;            /* negative errno of the system behind it, or 0 */
    uint32_t type;        /* of the file system, as in linux/magic.h */
    bool others_may_move; /* others can rename or remove files there */
    bool is_fallback;
    uint64_t total_bytes; /* of the file system; 0: not known */
    uint64_t free_bytes;
    uint64_t floor_bytes; /* what must stay free */
    char folder[SEEP_PLACE_PATH_BYTES];
};

/**
 * Can a recording be made at @pattern: a SEEP_OUT, placeholders and all, or a
 * folder? Of a folder with placeholders in its name the part before is asked.
 *
 * @return ret_place->reason
 */
enum seep_place_reason seep_place_look(const char *pattern,
                                       const struct seep_place_terms *terms,
                                       struct seep_place_found *ret_place);

/** The same of @fd, a file that was just made to be a recording. Fills all but
 * .folder and what concerns it. */
enum seep_place_reason seep_place_judge(int fd,
                                        const struct seep_place_terms *terms,
                                        struct seep_place_found *ret_place);

/** What @error, a negative errno of making a recording, says; 0 is FINE. */
enum seep_place_reason seep_place_reason_of(int error);

/** An errno for @reason, so that the above gives it back; 0 for FINE. */
int seep_place_error_of(enum seep_place_reason reason);

const char *seep_place_words(enum seep_place_reason reason);
const char *seep_place_remedy(enum seep_place_reason reason);

/** Name of a file system by its type, NULL if it is not of the common ones. */
const char *seep_place_system(uint32_t type);

/** Why reserved room can still fail on such a file system; NULL: it holds. */
const char *seep_place_unsafe(uint32_t type);

/** Is @pattern a folder, by a slash at its end or by what is there? */
bool seep_place_is_folder(const char *pattern);

/** The folder of @pattern, up to the first placeholder. @return false: cut */
bool seep_place_folder(const char *pattern, char *folder, size_t size);

/**
 * "2GiB", "10%" or "0" into *ret_floor.
 *
 * @return false, and *ret_floor untouched, if @text is anything else
 */
bool seep_place_floor_parse(const char *text,
                            struct seep_place_floor *ret_floor);

/** What must stay free of a file system of @total_bytes. */
uint64_t seep_place_floor_of(const struct seep_place_floor *floor,
                             uint64_t total_bytes, bool is_tmpfs);

/** May @bytes more go where @status is from? The floor that is asked is
 * seep_place_floor. */
bool seep_place_floor_allows(const struct statfs *status, uint64_t bytes);

/**
 * Is all of this absolute path, from the root on, on file systems of this
 * machine? Else to look it up again can mean to wait for a server that is gone.
 *
 * @param path  changed, and put back
 */
bool seep_place_is_local(char *path);

/** Would a recording of @bytes be too much for this process: more than a file
 * may have, or a sixteenth of the addresses that it may use? */
bool seep_place_is_tight(uint64_t bytes);

/** The limits of this process, with what the machine would still commit to:
 * reads files, by one thread at a time. */
struct seep_own_limits seep_place_limits(void);

/** The part of it that is left by the texts of two files; UINT64_MAX: no limit.
 */
uint64_t seep_place_commit_left(const char *mode, const char *meminfo);

/** What a folder of recordings may hold, SEEP_KEEP; 0: not bounded. */
struct seep_place_keep {
    uint64_t file_count;
    uint64_t bytes; /* on disk */
};

extern const struct seep_place_keep seep_place_keep_default
    __attribute__((visibility("hidden")));

/**
 * "500", "2GiB", "500,2GiB" or "all".
 *
 * @return false, and *ret_keep untouched, if @text is anything else
 */
bool seep_place_keep_parse(const char *text, struct seep_place_keep *ret_keep);

/*
 * Shells and launchers, which mostly execute the one that is meant: in exact
 * mode every one of them would have something to record. So would we ourselves,
 * asked again and again where a container's environment preloads. By name.
 */

#define SEEP_LAUNCHERS                                                         \
    "sh:dash:bash:zsh:env:nice:ionice:nohup:timeout:setsid:stdbuf:xargs:sudo:" \
    "numactl:taskset:tini:dumb-init:seep:seep-probe"

#endif
