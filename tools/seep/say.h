/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Exit codes, and errors: one line on stderr, the thing, the reason and what
 * to do. Foreign strings in it are cleaned.
 */
#ifndef SEEP_TOOL_SAY_H
#define SEEP_TOOL_SAY_H

enum seep_exit {
    SEEP_EXIT_FINE = 0,
    SEEP_EXIT_FAILED = 1,
    SEEP_EXIT_USAGE = 2,
    SEEP_EXIT_OVER_LIMIT = 3,
    SEEP_EXIT_INSUFFICIENT = 4,
    SEEP_EXIT_CANNOT_RUN = 126,
    SEEP_EXIT_NOT_FOUND = 127,
    SEEP_EXIT_SIGNAL = 128, /* plus the signal */
};

/** "seep: THING: REASON; REMEDY"; @remedy may be NULL. */
void seep_say(const char *thing, const char *reason, const char *remedy);

/** The same for a wrong command line of @verb; @return SEEP_EXIT_USAGE. */
int seep_say_usage(const char *verb, const char *thing, const char *reason);

#endif
