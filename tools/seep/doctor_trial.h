/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A program run under libseep.so for a moment, and its recording read back.
 *
 * Invariant: it ends within its limit, with all that it started in its process
 * group, and of its recording nothing stays.
 */
#ifndef SEEP_TOOL_DOCTOR_TRIAL_H
#define SEEP_TOOL_DOCTOR_TRIAL_H

#include "doctor.h"

/**
 * @param library  NULL: it runs without, and nothing is recorded
 * @param sample   as SEEP_SAMPLE
 */
void seep_doctor_try(char *const *argv, const char *library, const char *sample,
                     double limit_s, struct seep_doctor_trial *ret_trial);

#endif
