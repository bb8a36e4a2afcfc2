/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a command is before it is run: the file that would be executed at last,
 * and whether libseep.so can come into it.
 */
#ifndef SEEP_TOOL_PROGRAM_H
#define SEEP_TOOL_PROGRAM_H

#include <limits.h>
#include <stddef.h>

/**
 * X(SYMBOL, "reason", "remedy"); FINE is the only one that is recorded for
 * certain, LAUNCHER is not but what it starts is.
 */
#define SEEP_PROGRAMS(X)                                                     \
    X(FINE, "is linked dynamically: libseep.so comes into it", NULL)         \
    X(LAUNCHER, "is not recorded itself, what it starts is", NULL)           \
    X(MISSING, "was not found", "look at its name and at PATH")              \
    X(FORBIDDEN, "may not be executed by this user",                         \
      "chmod +x it, or run "                                                 \
      "it as its owner")                                                     \
    X(ODD, "is neither a program nor a script", "name the program")          \
    X(PRIVILEGED,                                                            \
      "is set-uid or has capabilities: the loader ignores LD_PRELOAD",       \
      "run it as its owner")                                                 \
    X(FOREIGN, "is of another architecture than libseep.so",                 \
      "build seep for that one")                                             \
    X(GO_STATIC,                                                             \
      "is a static Go program: no loader, no LD_PRELOAD, and a heap of its " \
      "own",                                                                 \
      "use pprof, which Go brings")                                          \
    X(STATIC, "is a static program: no loader, no LD_PRELOAD",               \
      "link it dynamically")                                                 \
    X(MUSL, "is linked with musl, libseep.so with glibc",                    \
      "run it in an image with glibc, or build seep with musl's compiler")   \
    X(NO_LOADER, "wants a loader that is not here",                          \
      "install the C library that it was built for")                         \
    X(SANITIZED,                                                             \
      "brings a sanitizer, which knows every byte itself: "                  \
      "libseep.so does nothing in it",                                       \
      "build it without -fsanitize")                                         \
    X(OWN_MALLOC,                                                            \
      "exports a malloc of its own: libseep.so does nothing in it",          \
      "link it without, and preload the allocator")                          \
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
};

/**
 * @param command  as execvp() would find it
 * @param folders  as PATH; NULL: as execvp() does without
 */
void seep_program_look(const char *command, const char *folders,
                       struct seep_program *ret_program);

/** As execvp() would find @command. @return 0; -ENOENT; -EACCES */
int seep_program_find(const char *command, const char *folders,
                      char ret_path[PATH_MAX]);

const char *seep_program_reason(enum seep_program_kind kind);
const char *seep_program_remedy(enum seep_program_kind kind);

#endif
