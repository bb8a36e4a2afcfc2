/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a verb ends with, the answer for scripts: the numbers are documented
 * and never change.
 */
#ifndef SEEP_TOOL_WORDS_EXIT_H
#define SEEP_TOOL_WORDS_EXIT_H

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

#endif
