/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why there is no recording. Invariant: a reason is given only when the file
 * shows it; else what is most likely, said as such.
 */
#include "absent.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

static bool is_folder_refused(const char *out)
{
    char folder[PATH_MAX];
    const char *end = strchr(out, '%');
    size_t length = end == NULL ? strlen(out) : (size_t)(end - out);

    while (length > 1 && out[length - 1] != '/') {
        length--;
    }
    snprintf(folder, sizeof(folder), "%.*s", (int)length, out);
    return access(folder, W_OK | X_OK) < 0;
}

/* Why it could not come into the program, if it could not. */
static bool is_refused_by(const struct seep_program *program)
{
    return program->kind != SEEP_PROGRAM_FINE &&
           program->kind != SEEP_PROGRAM_LAUNCHER &&
           program->kind != SEEP_PROGRAM_GO;
}

struct seep_absent seep_absent_explain(const char *command, const char *out)
{
    struct seep_program program;

    seep_program_look(command, getenv("PATH"), &program);
    if (is_refused_by(&program)) {
        return (struct seep_absent){seep_program_reason(program.kind),
                                    seep_program_remedy(program.kind)};
    }
    if (is_folder_refused(out)) {
        return (struct seep_absent){"could not write into the folder of -o",
                                    "name one where it may"};
    }
    return (struct seep_absent){
        "left no recording: it allocated too little to be sampled, or its "
        "folder refused the file (full, or not a local one)",
        "try --exact, or -o with a folder on tmpfs"};
}
