/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Why a command left no recording, as far as its file tells.
 */
#ifndef SEEP_TOOL_ABSENT_H
#define SEEP_TOOL_ABSENT_H

struct seep_absent {
    const char *reason; /* static strings */
    const char *remedy;
};

/** @param out  absolute pattern of the recordings */
struct seep_absent seep_absent_explain(const char *command, const char *out);

#endif
