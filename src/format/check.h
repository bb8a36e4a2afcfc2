/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Is this a recording? Pure: bytes in, valid or the reason out.
 *
 * After SEEP_CHECK_VALID no pointer of a seep_view of these bytes leaves them.
 * It says nothing of the changing part: indices and counts found there are
 * checked where they are used.
 */
#ifndef SEEP_FORMAT_CHECK_H
#define SEEP_FORMAT_CHECK_H

#include <stddef.h>
#include <stdint.h>

/** X(SYMBOL, "reason", "remedy") */
#define SEEP_RECORDING_CHECKS(X)                                            \
    X(VALID, "is a recording", "")                                          \
    X(EMPTY, "is empty",                                                    \
      "give the file that SEEP_OUT names; an empty one was never written")  \
    X(NOT_A_RECORDING, "is not a seep recording",                           \
      "give a .seep file written by `seep run` or SEEP_OUT")                \
    X(BYTE_ORDER, "was written on a machine with the other byte order",     \
      "read it on a machine of the same kind")                              \
    X(NEWER, "has a newer format than this seep reads",                     \
      "read it with the seep that wrote it, or a newer one")                \
    X(OLDER, "has an older format than this seep reads",                    \
      "read it with the seep that wrote it, or record it again")            \
    X(TRUNCATED, "is truncated",                                            \
      "copy it again: a recording has its full size from the start")        \
    X(DAMAGED, "is damaged: its header contradicts itself",                 \
      "copy it again from where it was recorded")                           \
    X(UNFINISHED, "was never finished: the process died while creating it", \
      "nothing was recorded; run the program again")

enum seep_recording_check {
#define SEEP_CHECK_VALUE(symbol, reason, remedy) SEEP_CHECK_##symbol,
    SEEP_RECORDING_CHECKS(SEEP_CHECK_VALUE)
#undef SEEP_CHECK_VALUE
};

/** Check @size bytes at @bytes (aligned to 8), of which all can be read. */
enum seep_recording_check seep_check(const void *bytes, size_t size);

/** Words for @result, and what to do. Static strings. */
const char *seep_check_reason(enum seep_recording_check result);
const char *seep_check_remedy(enum seep_recording_check result);

#endif
