/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a command is before it is run: the file that would be executed at last,
 * and whether libseep.so can come into it.
 */
#ifndef SEEP_TOOL_RUN_PROGRAM_H
#define SEEP_TOOL_RUN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
