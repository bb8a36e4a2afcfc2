/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A machine that is made up, for the checks of `seep doctor`: facts in which
 * all is well, and a folder that stands for the root of its file system.
 */
#ifndef SEEP_TESTS_DOCTOR_WORLD_H
#define SEEP_TESTS_DOCTOR_WORLD_H

#include "doctor/doctor.h"

struct doctor_world {
    char root[64];
    struct seep_doctor_facts facts;
    struct seep_doctor doctor;
};

/** A world that is well; nothing is in its root but what every Linux has. */
void doctor_world_setup(struct doctor_world *world);
void doctor_world_teardown(struct doctor_world *world);

/** Set what the facts' variable() gives; @value NULL: not set. */
void doctor_world_variable(const char *name, const char *value);

/** Write a file below the root, with the folders above it. */
void doctor_world_write(struct doctor_world *world, const char *path,
                        const char *text);
void doctor_world_remove(struct doctor_world *world, const char *path);

/** The findings of one check, afresh. */
typedef void doctor_world_check(const struct seep_doctor_facts *facts,
                                struct seep_doctor *doctor);
void doctor_world_run(struct doctor_world *world, doctor_world_check *check);

/** The one finding is of @level, and says @words; a remedy is there unless all
 * is well. */
void doctor_world_expect(const struct doctor_world *world,
                         enum seep_doctor_level level, const char *words);

#endif
