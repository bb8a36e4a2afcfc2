/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors. Invariant: one error is one line.
 */
#include "say.h"

#include <stdio.h>

#include "page.h"

void seep_say(const char *thing, const char *reason, const char *remedy)
{
    struct seep_page page;

    seep_page_init(&page, stderr, SEEP_COLOR_AUTO);
    seep_page_print(&page, SEEP_INK_PLAIN, "seep: %s: %s%s%s",
                    *thing == '\0' ? "''" : thing, reason,
                    remedy == NULL || *remedy == '\0' ? "" : "; ",
                    remedy == NULL ? "" : remedy);
    seep_page_end_line(&page);
}

int seep_say_usage(const char *verb, const char *thing, const char *reason)
{
    char remedy[64];

    snprintf(remedy, sizeof(remedy), "`seep %s -h` tells how it is used", verb);
    seep_say(thing, reason, remedy);
    return SEEP_EXIT_USAGE;
}
