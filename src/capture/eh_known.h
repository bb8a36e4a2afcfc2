/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Code whose rows are missing or not true, known by other means.
 *
 * Invariant: what is not known for sure is answered false.
 */
#ifndef SEEP_CAPTURE_EH_KNOWN_H
#define SEEP_CAPTURE_EH_KNOWN_H

#include "capture/eh_frame.h"

/**
 * The row at @pc, where the sections have none.
 *
 * @param scratch  room to look for other entries in
 */
bool seep_known_row(uintptr_t pc, struct seep_eh_entry *scratch,
                    struct seep_eh_row *ret_row, bool *ret_signal_frame);

/** Has the function of @entry no caller, whatever its rows say? */
bool seep_known_end(const struct seep_eh_entry *entry,
                    struct seep_eh_row *ret_row);

#endif
