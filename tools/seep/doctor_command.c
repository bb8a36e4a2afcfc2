/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command that was given: would it be recorded? And the debug information
 * that makes its native frames readable.
 *
 * Invariant: the command is not run.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "doctor.h"
#include "elf_look.h"
#include "program.h"

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
    seep_doctor_find(doctor, "command", level_of(program.kind),
                     seep_program_remedy(program.kind), "%s%s%s%s %s",
                     facts->command[0], other ? " (" : "",
                     other ? program.path : "", other ? ")" : "",
                     seep_program_reason(program.kind));
}

/* Has the object at @path lines, in itself or in a file beside? */
static bool has_lines(const struct seep_doctor_facts *facts, const char *path)
{
    struct seep_elf_look look;
    char debug[PATH_MAX];
    char below[PATH_MAX];

    if (seep_elf_look(path, &look) < 0) {
        return true; /* nothing is known, so nothing is missed */
    }
    if (look.has_lines || strlen(look.build_id) < 4) {
        return look.has_lines;
    }
    snprintf(debug, sizeof(debug), "/usr/lib/debug/.build-id/%.2s/%s.debug",
             look.build_id, look.build_id + 2);
    return access(seep_doctor_path(facts, debug, below), R_OK) == 0;
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
        seep_doctor_find(doctor, "symbols", SEEP_DOCTOR_OK, NULL,
                         "debug information of the interpreter and libc is "
                         "there");
    } else if (servers != NULL && *servers != '\0') {
        seep_doctor_find(doctor, "symbols", SEEP_DOCTOR_OK, NULL,
                         "no debug information of %s here; `seep report "
                         "--debuginfod` asks %s",
                         without, servers);
    } else {
        seep_doctor_find(doctor, "symbols", SEEP_DOCTOR_WARN,
                         "install python3-dbg and libc6-dbg, or set "
                         "DEBUGINFOD_URLS and give `seep report --debuginfod`",
                         "no debug information of %s: native frames there are "
                         "the nearest exported name; lines of Python and of "
                         "your own code are not touched by it",
                         without);
    }
}
