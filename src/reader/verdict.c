/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The verdict on a process. */
#include <stddef.h>

#include "reader/report_build.h"

static void decide(struct seep_report *report, enum seep_verdict_class class,
                   const char *reason)
{
    report->verdict.class = class;
    report->verdict.reason = reason;
}

static const char *const verdict_names[SEEP_VERDICT_COUNT] = {
#define VERDICT_NAME(symbol, name) name,
    SEEP_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
};

const char *seep_verdict_name(enum seep_verdict_class class)
{
    return (unsigned)class < SEEP_VERDICT_COUNT ? verdict_names[class] : "";
}

/* The sites stand in their order already, the worst first. */
static void decide_by_sites(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    const struct seep_sites *sites = &build->sites;
    uint64_t untold_bytes = 0;

    for (size_t i = 0; i < sites->count; i++) {
        const struct seep_report_site *site = &sites->works[i].site;

        if (!seep_sites_space_holds(site->space)) {
            continue;
        }
        switch (site->class) {
        case SEEP_CLASS_LEAK:
            decide(report, SEEP_VERDICT_LEAK, site->class_reason);
            return;
        case SEEP_CLASS_SUSPECT:
        case SEEP_CLASS_WARMING:
        case SEEP_CLASS_AGING:
            decide(report, SEEP_VERDICT_SUSPECT, site->class_reason);
            return;
        case SEEP_CLASS_INSUFFICIENT:
            untold_bytes += site->live_bytes;
            break;
        default:
            break;
        }
    }
    if (untold_bytes > sites->live_bytes / 2) {
        decide(report, SEEP_VERDICT_INSUFFICIENT,
               "most of what it holds is too little of each call site to tell");
        return;
    }
    decide(report, SEEP_VERDICT_STEADY, "no call site grows");
}

void seep_report_add_verdict(struct seep_report_build *build)
{
    const char *too_short = seep_sites_too_short(&build->clock);

    if (build->sites.count == 0) {
        decide(&build->report, SEEP_VERDICT_INSUFFICIENT,
               "nothing was recorded");
    } else if (too_short != NULL) {
        decide(&build->report, SEEP_VERDICT_INSUFFICIENT, too_short);
    } else {
        decide_by_sites(build);
    }
}
