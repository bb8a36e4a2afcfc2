/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Members by DWARF: by which member of its class, or of the variable that it
 * is, a holder has what it has. Where DWARF says nothing an answer stays as it
 * is.
 */
#ifndef SEEP_TOOL_READ_MEMBERS_H
#define SEEP_TOOL_READ_MEMBERS_H

#include "held/held.h"

struct seep_ask;

/** Name the members in @answer, which was just given to @ask. */
void seep_members_name(const struct seep_ask *ask,
                       struct seep_held_answer *answer);

#endif
