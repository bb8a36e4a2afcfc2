/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The parts of a frame of `seep top`, each a text of whole lines with the
 * colours of page.h. To be freed; NULL without memory.
 */
#ifndef SEEP_TOOL_TOP_DRAW_H
#define SEEP_TOOL_TOP_DRAW_H

#include "top_frame.h"

/** Rows that are shown of many. */
struct seep_top_window {
    size_t first;
    size_t end;
};

/** At most @most of @count rows, @selected among them and in the middle where
 * it can be; at least one. */
struct seep_top_window seep_top_draw_window(size_t selected, size_t count,
                                            size_t most);

char *seep_top_draw_head(const struct seep_top_model *model,
                         const struct seep_top_size *size);
char *seep_top_draw_answer(const struct seep_report *report,
                           const struct seep_top_size *size);

/** A title, and one line each of the processes in @window. */
char *seep_top_draw_processes(const struct seep_top_model *model,
                              const struct seep_top_size *size,
                              const struct seep_top_window *window);

/** What is live, what the process holds, and how far the limits are. */
char *seep_top_draw_memory(const struct seep_report *report,
                           const struct seep_top_size *size);

/** A title, and one line each of the rows in @window. */
char *seep_top_draw_sites(const struct seep_top_model *model,
                          const struct seep_top_size *size,
                          const struct seep_top_window *window);

/** How many more there are than the @shown; "" if none. */
char *seep_top_draw_left_out(const struct seep_top_model *model,
                             const struct seep_top_size *size, size_t shown);

/** Why there are none. */
char *seep_top_draw_no_sites(const struct seep_top_model *model,
                             const struct seep_top_size *size);

char *seep_top_draw_stack(const struct seep_top_model *model,
                          const struct seep_top_size *size);
char *seep_top_draw_help(const struct seep_top_size *size);

/** What was noticed, if anything, then what keys do now. */
char *seep_top_draw_keys(const struct seep_top_model *model,
                         const struct seep_top_size *size);

#endif
