/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the file of a program or a library tells, without loading it.
 *
 * The file is anybody's: every offset in it is checked before it is followed,
 * and what is not to be found out is left false or empty.
 */
#ifndef SEEP_TOOL_ELF_LOOK_H
#define SEEP_TOOL_ELF_LOOK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

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

#endif
