/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A run of a command, beside what run/launch.h prepares: what the command is
 * (program.c), the child (child.c), the recordings that it leaves (harvest.c),
 * and what is said beside the report (notice.c).
 */
#ifndef SEEP_TOOL_RUN_RUN_H
#define SEEP_TOOL_RUN_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "seep/recording.h"

/*
 * What a command is before it is run: the file that would be executed at last,
 * and whether libseep.so can come into it (program.c).
 */

/*
 * What the file of a program or a library tells, without loading it.
 *
 * The file is anybody's: every offset in it is checked before it is followed,
 * and what is not to be found out is left false or empty.
 */

struct seep_elf_look {
    bool native;           /* of this program's class and machine */
    bool dynamic;          /* it has a dynamic section */
    char loader[PATH_MAX]; /* PT_INTERP; "" if it has none */
    bool go;               /* made by Go's own linker */
    bool sanitized;        /* it wants a sanitizer's runtime */
    bool defines_malloc;   /* and gives it to everybody */
    bool has_lines;        /* .debug_info, or a compressed one */
    char build_id[65];     /* hexadecimal; "" if it has none */
};

/** @return 0; -ENOEXEC if it is no ELF file; negative errno */
int seep_elf_look(const char *path, struct seep_elf_look *ret_look);

/**
 * X(SYMBOL, "reason", "remedy"); FINE is the only one that is recorded for
 * certain, LAUNCHER is not but what it starts is.
 */
#define SEEP_PROGRAMS(X)                                                     \
    X(FINE, "is linked dynamically: libseep.so comes into it", NULL)         \
    X(LAUNCHER, "is not recorded itself, but what it starts is", NULL)       \
    X(MISSING, "was not found", "check its name and PATH")                   \
    X(FORBIDDEN, "may not be executed by this user",                         \
      "chmod +x it, or run it as its owner")                                 \
    X(ODD, "is not a program or a script", "give the program")               \
    X(PRIVILEGED,                                                            \
      "is set-uid or has capabilities: the loader ignores LD_PRELOAD",       \
      "run it as its owner")                                                 \
    X(FOREIGN, "is for another architecture than libseep.so",                \
      "build seep for that architecture")                                    \
    X(GO_STATIC,                                                             \
      "is a static Go program: no loader, no LD_PRELOAD, and a heap of its " \
      "own",                                                                 \
      "use pprof, which Go brings")                                          \
    X(STATIC, "is a static program: no loader, no LD_PRELOAD",               \
      "link it dynamically")                                                 \
    X(MUSL, "is linked with musl, libseep.so with glibc",                    \
      "run it in an image with glibc, or build seep with musl's compiler")   \
    X(NO_LOADER, "needs a loader that is not installed",                     \
      "install the C library that it was built for")                         \
    X(SANITIZED,                                                             \
      "brings a sanitizer, which tracks every byte itself: "                 \
      "libseep.so does nothing in it",                                       \
      "build it without -fsanitize")                                         \
    X(OWN_MALLOC,                                                            \
      "exports a malloc of its own: libseep.so does nothing in it",          \
      "link it without that, and preload the allocator")                     \
    X(GO, "is a Go program: only what goes through cgo's malloc is seen",    \
      "use pprof, which Go brings, for its own heap")

enum seep_program_kind {
#define SEEP_PROGRAM_VALUE(symbol, reason, remedy) SEEP_PROGRAM_##symbol,
    SEEP_PROGRAMS(SEEP_PROGRAM_VALUE)
#undef SEEP_PROGRAM_VALUE
};

struct seep_program {
    enum seep_program_kind kind;
    char path[PATH_MAX]; /* of what runs: of a script its interpreter */
    const char *reason;  /* of the kind, and what to do about it */
    const char *remedy;  /* NULL: nothing */
};

/**
 * @param command  as execvp() would find it
 * @param folders  as PATH; NULL: as execvp() does without
 */
void seep_program_look(const char *command, const char *folders,
                       struct seep_program *ret_program);

/*
 * Run a command as if we were not there.
 *
 * The child stays in our process group and on our terminal, with the signal
 * mask, the ignored signals and the files that we were started with. We do
 * not die of the terminal's signals, stop and go on when it does, and forward
 * what is sent to us alone.
 */

struct seep_child {
    pid_t pid;
    int status;           /* as wait() gives it */
    uint64_t start_clock; /* field 22 of /proc/PID/stat; 0 unknown */
    uint64_t end_ns;      /* CLOCK_MONOTONIC when it had ended; 0 unknown */
    /* The image that was seen last, by where its stack began, and when. */
    uint64_t image_stack; /* 0: none was seen */
    uint64_t image_ns;
};

/** What is done while the child runs, between two signals. */
struct seep_child_pastime {
    /** @return nanoseconds until it is to be called again; UINT64_MAX: never */
    uint64_t (*call)(void *context);
    /* Does it wait for this child itself? Any other is reaped here. */
    bool (*owns)(void *context, pid_t pid);
    void *context;
};

/**
 * Start @argv and wait until it has ended. One thread only.
 *
 * @param pastime  may be NULL. While it is called signals wait: let it be short
 * @return 0; negative errno of fork or, when nothing was started, of exec
 */
int seep_child_run(char *const *argv, const struct seep_child_pastime *pastime,
                   struct seep_child *ret_child);

/*
 * Which recordings a run made, and the child's status in its own.
 *
 * They are the files that the pattern can name and that were not there
 * before; another run into the same folder at the same time is not told apart.
 */

struct seep_harvest;

/** Remember what is there already. @pattern is an absolute SEEP_OUT. */
int seep_harvest_open(const char *pattern, struct seep_harvest **ret_harvest);
void seep_harvest_close(struct seep_harvest *harvest);

/** Look again. @return the new files, owned by @harvest; NULL: none */
int seep_harvest_collect(struct seep_harvest *harvest, char ***ret_paths,
                         size_t *ret_count);

/** Every new file that can be a recording by its name, valid or not. */
int seep_harvest_visit(const struct seep_harvest *harvest,
                       void (*visit)(void *context, const char *path),
                       void *context);

/** The header of the recording at @path. @return false if it is not valid */
bool seep_harvest_read_header(const char *path,
                              struct seep_rec_header *ret_header);

/**
 * Write the status of @child into the recording of its last image: the two
 * words that the format leaves to `seep run`, and only into a valid recording
 * of that very process.
 *
 * @return 0; -ENOENT if it has none
 */
int seep_harvest_put_status(char *const *paths, size_t count,
                            const struct seep_child *child);

/** The glob that matches what @pattern can name. To be freed. */
char *seep_harvest_glob(const char *pattern);

struct seep_open_list;
/** Add what @glob matches, in no order. @return 0 or -ENOMEM */
int seep_harvest_match(const char *glob, struct seep_open_list *list);

/*
 * What `seep run` says beside the report, on stderr: before, what cannot work;
 * after, what was written, or why nothing was. Each is one line.
 */

/**
 * With the variables of the run in this process's environment.
 *
 * @param out           absolute SEEP_OUT
 * @param folder_error  of creating its folder: negative errno, or 0
 */
void seep_notice_before(const char *command, const char *out, int folder_error);

/**
 * @param paths     what was recorded, if anything
 * @param reported  what to do next is said by the report
 */
void seep_notice_after(char *const *paths, size_t count, const char *command,
                       const char *out, const struct seep_child *child,
                       bool reported);

#endif
