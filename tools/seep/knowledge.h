/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What the user knows beforehand, from the options of `report` and `run`:
 * suppressions, bounds, patterns. The installed patterns come first, so that
 * the user's own count.
 */
#ifndef SEEP_TOOL_KNOWLEDGE_H
#define SEEP_TOOL_KNOWLEDGE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "reader/catalogue.h"
#include "reader/suppress.h"

enum seep_knowledge_option {
    SEEP_KNOWLEDGE_SUPPRESSIONS = 1024,
    SEEP_KNOWLEDGE_KNOWN,
    SEEP_KNOWLEDGE_PATTERNS,
    SEEP_KNOWLEDGE_NO_PATTERNS
};

/* clang-format off */
#define SEEP_KNOWLEDGE_OPTIONS                                             \
    {"suppressions", required_argument, NULL, SEEP_KNOWLEDGE_SUPPRESSIONS}, \
    {"known", required_argument, NULL, SEEP_KNOWLEDGE_KNOWN},              \
    {"patterns", required_argument, NULL, SEEP_KNOWLEDGE_PATTERNS},        \
    {"no-patterns", no_argument, NULL, SEEP_KNOWLEDGE_NO_PATTERNS}
/* clang-format on */

#define SEEP_KNOWLEDGE_HELP                                                   \
    "  --suppressions F  call sites that do not count: lines leak:PATTERN,\n" \
    "                    as LeakSanitizer has them\n"                         \
    "  --known SITE=SIZE a call site is a cache of that size at most; SITE\n" \
    "                    is the beginning of an id or a pattern on frames\n"  \
    "  --patterns F      more known patterns; they go before the installed\n" \
    "  --no-patterns     no hints from the installed patterns\n"

struct seep_knowledge {
    const char *verb;
    struct seep_suppressions *suppressions;
    struct seep_known *known;
    struct seep_catalogue *catalogue;
    bool no_patterns;
    const char **pattern_paths;
    size_t pattern_count;
    const char **suppression_paths;
    size_t suppression_count;
};

/** Take one option. @return 0, or the exit code after saying what is wrong */
int seep_knowledge_take(int option, const char *value,
                        struct seep_knowledge *knowledge);

/**
 * Read the files: those of SEEP_SUPPRESSIONS and of the options.
 *
 * @return 0, or the exit code after saying which cannot be read
 */
int seep_knowledge_load(struct seep_knowledge *knowledge);
void seep_knowledge_close(struct seep_knowledge *knowledge);

/** Is @option one of the above? */
bool seep_knowledge_is_option(int option);

#endif
