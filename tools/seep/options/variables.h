/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The SEEP_* variables of this environment that the recorder would not
 * understand, and what was meant: for who asks before a run, and for what a
 * recording keeps of them.
 */
#ifndef SEEP_TOOL_OPTIONS_VARIABLES_H
#define SEEP_TOOL_OPTIONS_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/own.h"
#include "base/place.h"
#include "reader/report/report.h"

enum seep_variable_state {
    SEEP_VARIABLE_FINE,
    SEEP_VARIABLE_FOREIGN, /* no SEEP_, or not for the recorder */
    SEEP_VARIABLE_UNKNOWN, /* SEEP_ and no name of ours */
    SEEP_VARIABLE_WRONG,   /* its value is not understood */
    SEEP_VARIABLE_ROUNDED, /* it is, and is not what is taken */
};

struct seep_variable_words {
    char thing[96];   /* "SEEP_SAMPLE=exact" */
    char reason[128]; /* "is not understood, and is as if it were not set" */
    char remedy[128]; /* "give a size like 64KiB, or 1 for every block" */
};

/**
 * What is @entry, "NAME=value", to the recorder? An empty value is as none.
 *
 * @param ret_words  filled for UNKNOWN, WRONG and ROUNDED
 */
enum seep_variable_state
seep_variable_check(const char *entry, struct seep_variable_words *ret_words);

/** The same for "NAME" alone or "NAME=value", known to have been rejected. */
void seep_variable_explain(const char *entry,
                           struct seep_variable_words *ret_words);

/** All of the environment that is not FINE or FOREIGN, through @visit. */
void seep_variables_visit(
    char *const *environment,
    void (*visit)(void *context, const struct seep_variable_words *words),
    void *context);

/*
 * Why nothing can be recorded in a place, in words: every verb that is asked
 * says it from here. What is decided is base/place's, as in the recorder.
 */

struct seep_why {
    bool is_place; /* the folder is at fault, and nothing can be recorded */
    char thing[SEEP_PLACE_PATH_BYTES]; /* the folder, or a program */
    char reason[320];
    char remedy[192];
};

/** How large a recording can become, by the variables and limits of this
 * process, and what it takes at once. @ret_lacking: the limit that leaves no
 * room even for that. */
uint64_t seep_why_recording_bytes(enum seep_own_limit *ret_lacking);
uint64_t seep_why_first_bytes(void);

/** What the recorder would find at @out, a SEEP_OUT, with the variables of this
 * process and as its user. */
void seep_why_look(const char *out, struct seep_place_found *ret_place);

/** @return false, and *ret_why untouched, if recordings can be made there */
bool seep_why_place(const struct seep_place_found *place,
                    struct seep_why *ret_why);

/**
 * @path is no recording, and no folder that has any: what more is known, for
 * who only reads there, perhaps as another user and from another container.
 *
 * @param refusal  of it; changed where its .error is -ENOENT and there is more
 */
void seep_why_refine(const char *path, struct seep_refusal *refusal);

#endif
