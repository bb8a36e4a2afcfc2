/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Who holds what, in words, for people and for machines.
 *
 * Pure functions; any thread. Texts are to be freed; NULL without memory. What
 * is taken from the target process is not cleaned here.
 */
#ifndef SEEP_TOOL_WORDS_HELD_H
#define SEEP_TOOL_WORDS_HELD_H

#include "held/held.h"
#include "held/kept.h"
#include "reader/report/report.h"

/** Under so many blocks nothing is said, and under this share of them that
 * agree it is not clear. */
#define SEEP_WORDS_HELD_LEAST 8U
#define SEEP_WORDS_HELD_CLEAR 0.5

/** Does a row have its holder beside it? By its class, or as the verdict is
 * about it. */
bool seep_words_held_is_wanted(const struct seep_report *report,
                               const struct seep_report_site *site);

/** Where the holder is, as the program has it: "Handler.model.audit"; "" where
 * it has no name. */
char *seep_words_holder(const struct seep_held_group *group);

/** "list of 35,411 items", "block of 32 KiB", "app::Service". */
char *seep_words_held_thing(const struct seep_held_step *step);

/** From the block up: "data of numpy.ndarray <- item of list <- ...". */
char *seep_words_held_chain(const struct seep_held_group *group);

/** What holds the blocks of @group, as one line: "Handler.model.audit, a list
 * of 35,411 items"; "lost or hidden: no pointer to it was found". */
char *seep_words_held(const struct seep_held_group *group);

/** The share of the blocks that the first group has; of what is lost all, since
 * how it is lost makes no difference. */
double seep_words_held_share(const struct seep_held_answer *answer);

/** Who has most of the blocks, as seep_words_holder(), where that is clear and
 * has a name; else NULL. */
char *seep_words_held_by(const struct seep_held_kept *kept);

/** Is it clear that no root has it? Then it is lost, and no cache. NULL: no. */
bool seep_words_held_by_nothing(const struct seep_held_kept *kept);

/** The same of a call site, with how many of its blocks agree, as one line;
 * "not clear: ...". NULL: nothing is to be said, or without memory. @param
 * live_bytes  of the site now */
char *seep_words_held_line(const struct seep_held_kept *kept,
                           uint64_t live_bytes);

/** What to do about it: "Handler.model.audit: the list only grows: ..."; NULL:
 * who holds it is not clear, or without memory. */
char *seep_words_held_advice(const struct seep_held_kept *kept);

/** That a process may not be asked, and what to do. */
const char *seep_words_held_refused(void);
const char *seep_words_held_refused_remedy(void);

/** Why nothing can be asked of a process that is gone, and what can be. */
const char *seep_words_held_gone(void);

/** That there is nothing to ask about. */
const char *seep_words_held_nothing(void);

/** What usually mends it; "" where nothing is known. */
const char *seep_words_held_remedy(const struct seep_held_group *group);

/*
 * What keeps free memory apart (pins.c). NULL: nothing is to be said.
 */

/** As far as is known, it is glibc's malloc. */
bool seep_words_is_glibc(const struct seep_report *report);

/** Is it of use to ask: does free memory of glibc's malloc grow? */
bool seep_words_pins_are_wanted(const struct seep_report *report);

/** Where most of the blocks between free pieces were allocated, if enough of
 * them were recorded. */
char *seep_words_pins_where(const struct seep_report *report);

/** How many there are, and where those that were recorded were allocated. */
char *seep_words_pins(const struct seep_report *report);

/** Who holds those that were not recorded. */
char *seep_words_pins_held(const struct seep_report *report);

/** What to do about them. */
char *seep_words_pins_advice(const struct seep_report *report);

#endif
