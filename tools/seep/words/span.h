/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Why a recording has not the part of a run that was asked for.
 */
#ifndef SEEP_TOOL_WORDS_SPAN_H
#define SEEP_TOOL_WORDS_SPAN_H

#include "reader/report/span.h"

/** A phrase with what there is instead, of what seep_span_open() said. To be
 * freed; NULL without memory. */
char *seep_words_span_refused(const struct seep_report *report,
                              const struct seep_span_wish *wish, int error);

#endif
