/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** What the parts of the live view share among themselves: of the model, what
 * keys need of its rows. */
#ifndef SEEP_TOOL_TOP_PARTS_H
#define SEEP_TOOL_TOP_PARTS_H

#include "top_model.h"

/** The rows of the process that is selected now. */
void seep_top_model_show(struct seep_top_model *model);

/** The same rows, filtered and in order. */
void seep_top_model_arrange(struct seep_top_model *model);

#endif
