/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The terminal of `seep top`: the one place that knows ncurses.
 *
 * Between open and close the terminal is ours; close, and suspend, leave it
 * as it was found. One screen at a time, one thread. Signals are the caller's:
 * those that would end or stop the process must be blocked meanwhile.
 */
#ifndef SEEP_TOOL_TOP_SCREEN_H
#define SEEP_TOOL_TOP_SCREEN_H

#include <stdbool.h>

#include "reader/report.h"
#include "top_frame.h"

/**
 * Take the terminal of stdin and stdout.
 *
 * @param ret_refusal  why not, and what to do
 * @return 0; -ENOTTY; -ENOSYS: built without ncurses
 */
int seep_top_screen_open(bool color, struct seep_refusal *ret_refusal);
void seep_top_screen_close(void);

/** Follow the terminal's size. @ret_size has it; only .columns and .lines. */
void seep_top_screen_fit(struct seep_top_size *ret_size);

void seep_top_screen_draw(const struct seep_top_frame *frame);

/**
 * A key that was pressed, without waiting.
 *
 * @return a character or one of enum seep_top_key; -EAGAIN: none
 */
int seep_top_screen_key(void);

/** Leave the terminal to others, and take it back as it was left. */
void seep_top_screen_suspend(void);
void seep_top_screen_resume(void);

#endif
