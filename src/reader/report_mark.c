/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the user and the catalogue know of a site, once it has its frames.
 *
 * Invariant: a mark never makes a site look worse than it was judged, and
 * never hides that the site is there.
 */
#include "reader/catalogue.h"
#include "reader/report_build.h"
#include "reader/suppress.h"

/* Growth up to a bound that was named is what its owner expects of it. */
static void apply_bound(struct seep_report_site *site)
{
    if (site->known_bound_bytes == 0 || !seep_class_may_leak(site->class)) {
        return;
    }
    if (site->live_bytes <= site->known_bound_bytes) {
        site->class = SEEP_CLASS_WARMING;
        site->class_reason = "it fills up to the bound that was named for it";
    } else {
        site->class_reason = "it grows beyond the bound that was named for it";
    }
}

void seep_report_mark_site(const struct seep_report_options *options,
                           struct seep_report_site *site)
{
    if (options == NULL) {
        return;
    }
    if (options->suppressions != NULL) {
        site->suppressed_by =
            seep_suppressions_find(options->suppressions, site);
    }
    if (options->known != NULL) {
        site->known_bound_bytes = seep_known_find(options->known, site);
        apply_bound(site);
    }
    if (options->catalogue != NULL) {
        site->pattern = seep_catalogue_find(options->catalogue, site);
    }
}
