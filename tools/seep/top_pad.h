/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** A page that is kept as text, with colours. */
#ifndef SEEP_TOOL_TOP_PAD_H
#define SEEP_TOOL_TOP_PAD_H

#include "page.h"
#include "top_frame.h"

struct seep_top_pad {
    struct seep_page page;
    char *text;
    size_t bytes;
};

/** @return false without memory: then it is not to be closed */
bool seep_top_pad_open(struct seep_top_pad *pad,
                       const struct seep_top_size *size);

/** @return the text, to be freed */
char *seep_top_pad_close(struct seep_top_pad *pad);

#endif
