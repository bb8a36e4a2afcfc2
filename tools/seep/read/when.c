/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Times of a run on the command line. Invariant: what begins with "mark:" is a
 * mark, whatever its name is.
 */
#include "read/when.h"

#include <errno.h>
#include <string.h>

#include "words/units.h"

static int parse_mark(const char *name, struct seep_span_time *ret_time)
{
    if (*name == '\0') {
        return -EINVAL;
    }
    *ret_time = (struct seep_span_time){.when = SEEP_SPAN_MARK, .mark = name};
    return 0;
}

int seep_when_parse(const char *text, struct seep_span_time *ret_time)
{
    static const char mark[] = "mark:";
    bool before = *text == '-';
    struct seep_span_time time = {.when = before ? SEEP_SPAN_BEFORE
                                                 : SEEP_SPAN_TIME};

    if (strncmp(text, mark, strlen(mark)) == 0) {
        return parse_mark(text + strlen(mark), ret_time);
    }
    if (seep_units_parse_duration(text + before, &time.seconds) == 0) {
        *ret_time = time;
        return 0;
    }
    if (strcmp(text, "peak") == 0 || strcmp(text, "end") == 0) {
        *ret_time = (struct seep_span_time){
            .when = *text == 'p' ? SEEP_SPAN_PEAK : SEEP_SPAN_END};
        return 0;
    }
    return parse_mark(text, ret_time);
}

int seep_when_take(const char *verb, const char *value, void *target)
{
    return seep_when_parse(value, target) == 0
               ? 0
               : seep_say_value(verb, value, SEEP_WHEN_EXPECTED);
}

const struct seep_option seep_when_options[] = {
    SEEP_OPTION("since", "TIME", seep_when_take,
                offsetof(struct seep_span_wish, since),
                "only what happened since: 90s, 1h30m, -5m (before the\n"
                "end), peak, end, or the name of a mark"),
    SEEP_OPTION("until", "TIME", seep_when_take,
                offsetof(struct seep_span_wish, until),
                "only what happened until then"),
    SEEP_OPTION("at", "TIME", seep_when_take,
                offsetof(struct seep_span_wish, at), "what stood then"),
    {0},
};

int seep_when_check(const char *verb, const struct seep_span_wish *wish)
{
    return wish->at.when == SEEP_SPAN_NONE ||
                   (wish->since.when == SEEP_SPAN_NONE &&
                    wish->until.when == SEEP_SPAN_NONE)
               ? 0
               : seep_say_usage(
                     verb, "--at cannot be combined with --since or --until");
}
