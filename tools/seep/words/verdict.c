/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verdict in one sentence, and which site it is about. Invariant: it has
 * figures for all that it claims, and claims nothing that the report did not
 * compute. A suppressed site speaks for nothing, nor does one that only backs
 * others.
 */
#include "words/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/compare/patterns.h"
#include "words/held.h"
#include "words/units.h"
#include "words/words.h"

const char *seep_words_allocator(enum seep_allocator_kind kind)
{
    switch (kind) {
    case SEEP_ALLOCATOR_GLIBC:
        return "glibc's malloc";
    case SEEP_ALLOCATOR_JEMALLOC:
        return "jemalloc";
    case SEEP_ALLOCATOR_TCMALLOC:
        return "tcmalloc";
    case SEEP_ALLOCATOR_MIMALLOC:
        return "mimalloc";
    default:
        return "the allocator";
    }
}

__attribute__((format(printf, 4, 0))) static void
add_text(char **texts, size_t most, size_t *count, const char *format,
         va_list arguments)
{
    if (*count < most && vasprintf(&texts[*count], format, arguments) >= 0) {
        ++*count;
    }
}

void seep_words_reason(struct seep_words_verdict *words, const char *format,
                       ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_text(words->reasons, SEEP_WORDS_REASONS_MAX, &words->reason_count,
             format, arguments);
    va_end(arguments);
}

void seep_words_advise(struct seep_words_verdict *words, const char *format,
                       ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_text(words->advice, SEEP_WORDS_ADVICE_MAX, &words->advice_count, format,
             arguments);
    va_end(arguments);
}

/*
 * The site that speaks for the process.
 */

static bool counts(const struct seep_report_site *site)
{
    return site->suppressed_by == NULL && !site->backs_tensors;
}

static const struct seep_report_site *first_of(const struct seep_report *report,
                                               unsigned classes)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (counts(site) && (classes >> site->class & 1U) != 0) {
            return site;
        }
    }
    return NULL;
}

static const struct seep_report_site *
largest_of(const struct seep_report *report, unsigned classes)
{
    const struct seep_report_site *largest = NULL;

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (counts(site) && !site->is_start &&
            (classes >> site->class & 1U) != 0 &&
            (largest == NULL || site->live_bytes > largest->live_bytes)) {
            largest = site;
        }
    }
    return largest;
}

const struct seep_report_site *
seep_words_site_of(const struct seep_report *report, const char *id)
{
    for (size_t i = 0; *id != '\0' && i < report->site_count; i++) {
        if (strcmp(report->sites[i].id, id) == 0) {
            return &report->sites[i];
        }
    }
    return NULL;
}

static const struct seep_report_site *known_of(const struct seep_report *report)
{
    for (size_t i = 0; i < report->site_count; i++) {
        if (counts(&report->sites[i]) && report->sites[i].known_bound_bytes) {
            return &report->sites[i];
        }
    }
    return NULL;
}

static const struct seep_report_site *
bounded_site(const struct seep_report *report)
{
    const struct seep_report_site *site = NULL;

    if (report->verdict.filling) {
        site = first_of(report, 1U << SEEP_CLASS_WARMING);
        return site != NULL ? site : known_of(report);
    }
    site = known_of(report);
    return site != NULL ? site
                        : largest_of(report, 1U << SEEP_CLASS_PLATEAU |
                                                 1U << SEEP_CLASS_STEP);
}

const struct seep_report_site *seep_words_site(const struct seep_report *report)
{
    /* The one that the verdict's figures begin with. */
    const struct seep_report_site *first =
        seep_words_site_of(report, report->verdict.first_id);

    if (first != NULL) {
        return first;
    }
    switch (report->verdict.class) {
    case SEEP_VERDICT_LEAK:
        return first_of(report, 1U << SEEP_CLASS_LEAK);
    case SEEP_VERDICT_SUSPECT:
        return first_of(report,
                        1U << SEEP_CLASS_LEAK | 1U << SEEP_CLASS_SUSPECT |
                            1U << SEEP_CLASS_WARMING | 1U << SEEP_CLASS_AGING);
    case SEEP_VERDICT_BOUNDED:
        return bounded_site(report);
    default:
        return NULL;
    }
}

/*
 * The sentence, by class.
 */

/* What is rarer than one in a million is not told apart. */
#define LN_MOST 13.8
#define ALL_OF_IT 0.995 /* the rest would be printed as 0 % */

static void put_growth(FILE *file, const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;

    seep_words_put_growth(file, &verdict->growth_bytes_per_s);
    if (verdict->has_growth_per_unit) {
        fprintf(file, ", %s per unit of work",
                SEEP_UNITS_BYTES(verdict->growth_bytes_per_unit.estimate));
    }
}

/* The same behind @lead, if there is a growth. */
static void put_growing(FILE *file, const struct seep_report *report,
                        const char *lead)
{
    if (report->verdict.has_growth) {
        fputs(lead, file);
        put_growth(file, report);
    }
}

#define LENDABLE_SHARE 0.9 /* of what it kept: as of who lends for sure */
#define LENDER_KEEPS_MOST 0.5

bool seep_words_may_lend(const struct seep_report_site *site)
{
    return site->space == SEEP_SPACE_PYTHON &&
           site->lendable_share >= LENDABLE_SHARE && site->keeps_share > 0 &&
           site->keeps_share < LENDER_KEEPS_MOST;
}

/* ", kept by server.audit[...]", where the line may have no part in that. */
static void put_keeper(FILE *file, const struct seep_report_site *site)
{
    char *keeper =
        seep_words_may_lend(site) ? seep_words_held_by(site->held) : NULL;

    if (keeper != NULL && *keeper != '\0') {
        fprintf(file, ", kept by %s", keeper);
    }
    free(keeper);
}

/* Of the sites that grow, those that are told with the first. */
static size_t beside_first(const struct seep_report *report,
                           const struct seep_report_site *site)
{
    size_t count = 0;

    for (size_t i = 0; site != NULL && i < report->site_count; i++) {
        const struct seep_report_site *member = &report->sites[i];

        count += member->role == SEEP_ROLE_MEMBER &&
                 (member->class == site->class || member->leaks_in_step) &&
                 strcmp(member->group_id, site->id) == 0;
    }
    return count;
}

/* ", 97 % of it at serve.py:31 handle" */
static void put_place(FILE *file, const struct seep_report *report,
                      const struct seep_report_site *site)
{
    double share = report->verdict.first_share;
    char *where = site == NULL ? NULL : seep_words_where(report, site);
    const char *at = site != NULL && site->pool != NULL ? "in" : "at";
    size_t beside = beside_first(report, site);

    if (where != NULL && share >= ALL_OF_IT) {
        fprintf(file, ", all of it %s %s", at, where);
    } else if (where != NULL && share > 0) {
        fprintf(file, ", %s of it %s %s", SEEP_UNITS_SHARE(share), at, where);
    } else if (where != NULL) {
        fprintf(file, ", first %s %s", at, where);
    }
    if (where != NULL) {
        put_keeper(file, site);
    }
    if (where != NULL && beside > 0) {
        fprintf(file, " and %s %s that %s in step with it",
                SEEP_UNITS_COUNT((double)beside),
                seep_words_rows(report, beside),
                beside == 1 ? "grows" : "grow");
    }
    if (report->verdict.growing_count > 1 + beside && share < ALL_OF_IT) {
        size_t others = report->verdict.growing_count - 1 - beside;

        fprintf(file, ", the rest at %s other %s",
                SEEP_UNITS_COUNT((double)others),
                seep_words_rows(report, others));
    }
    free(where);
}

/* "576 MiB", "576 MiB of host memory and 3 GiB of GPU memory" */
static void put_live_bytes(FILE *file, const struct seep_report *report)
{
    uint64_t gpu = seep_words_gpu_bytes(report);

    const char *host_text =
        SEEP_UNITS_BYTES((double)seep_words_host_bytes(report));
    fputs(host_text, file);
    if (gpu > 0) {
        fprintf(file, " of host memory and %s of GPU memory",
                SEEP_UNITS_BYTES((double)gpu));
    }
}

/* What the parts of private memory have more than there is of it, but what
 * others wrote to: of blocks that are not looked at one by one. */
static double untouched_surplus(const struct seep_report *report)
{
    double bytes = seep_words_surplus(report).last_bytes;

    for (size_t i = 0; i < report->site_count; i++) {
        bytes -= fmax(0, report->sites[i].elsewhere_bytes);
    }
    return seep_words_has_surplus(report) && !seep_words_is_in_both(report)
               ? fmax(0, bytes)
               : 0;
}

/* What lives of the host's memory and was never written to, which takes none;
 * of what is mapped, and of large blocks, that is known by row. */
static double untouched_bytes(const struct seep_report *report)
{
    double bytes = untouched_surplus(report);

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->touched_bytes >= 0 && site->space <= SEEP_SPACE_PINNED) {
            bytes += fmax(0, (double)site->live_bytes - site->touched_bytes);
        }
    }
    /* More than all that lives is of a moment before it was freed. */
    return bytes <= (double)seep_words_host_bytes(report) ? bytes : 0;
}

#define UNTOUCHED_SHARE 0.1 /* of what lives: else no RSS is wondered at */

static void put_live(FILE *file, const struct seep_report *report)
{
    double untouched = untouched_bytes(report);

    put_live_bytes(file, report);
    fprintf(file, " live at %s %s",
            SEEP_UNITS_COUNT((double)seep_words_site_total(report)),
            seep_words_rows(report, seep_words_site_total(report)));
    if (untouched >= UNTOUCHED_SHARE * (double)seep_words_host_bytes(report) &&
        untouched > 0) {
        fprintf(file, " (%s of it never written to)",
                SEEP_UNITS_BYTES(untouched));
    }
}

/* What does not count is said, or "nothing grows" would be a lie. */
static void put_suppressed(FILE *file, const struct seep_report *report,
                           const char *lead)
{
    const struct seep_report_verdict *verdict = &report->verdict;

    if (verdict->suppressed_count > 0 && verdict->suppressed_bytes_per_s > 0) {
        fputs(lead, file);
        seep_words_put_rate(file, verdict->suppressed_bytes_per_s);
        fprintf(file, " at %zu suppressed %s", verdict->suppressed_count,
                seep_words_rows(report, verdict->suppressed_count));
    }
}

static void put_leak(FILE *file, const struct seep_report *report)
{
    const struct seep_report_site *site = seep_words_site(report);
    char memory[SEEP_WORDS_GPU_BYTES];

    fprintf(file, "%s %s by ", seep_words_growing(report, site, memory),
            seep_words_end_is_reported(report) ? "grew" : "grows");
    put_growth(file, report);
    put_place(file, report, site);
    seep_words_put_until(file, report);
}

static void put_suspect(FILE *file, const struct seep_report *report)
{
    const struct seep_report_site *site = seep_words_site(report);
    char memory[SEEP_WORDS_GPU_BYTES];

    fprintf(file, "%s may be leaking",
            seep_words_growing(report, site, memory));
    put_growing(file, report, ": ");
    put_place(file, report, site);
}

/* Of all mappings that grew a hook saw the blocks, or the mapping itself. */
static bool is_in_known_mapping(const struct seep_report_memory *memory)
{
    size_t tracked = 0;

    for (size_t i = 0; i < memory->mapping_count; i++) {
        tracked += memory->mappings[i].tracked;
    }
    return tracked > 0 && tracked == memory->mapping_count;
}

/* What grows is not known to be in blocks, the allocator's, or mapped, nor to
 * be what was allocated before and is written to now. */
static bool is_seen_by_none(const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;

    return report->verdict.unseen ||
           (memory->allocator_overhead.valid && !is_in_known_mapping(memory) &&
            !seep_words_writes_late(report));
}

/* It was allocated before, and is used now. */
static void put_fills(FILE *file, const struct seep_report *report,
                      const struct seep_report_site *site, const char *where)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    double left = verdict->fills_of_bytes - verdict->fills_used_bytes;

    fprintf(file, "memory that %s %s before fills by ", where,
            site->space == SEEP_SPACE_MAPPED ? "mapped" : "allocated");
    put_growth(file, report);
    fprintf(file, ": %s of its %s are in use",
            SEEP_UNITS_BYTES(verdict->fills_used_bytes),
            SEEP_UNITS_BYTES(verdict->fills_of_bytes));
    if (left > 0 && verdict->growth_bytes_per_s.estimate > 0) {
        fprintf(
            file, "; at this rate it is full in %s",
            SEEP_UNITS_DURATION(left / verdict->growth_bytes_per_s.estimate));
    }
}

/* Of the growth, before its place is named: the rest lies elsewhere. */
#define TOLD_SHARE 0.25

static void put_unexplained(FILE *file, const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    const struct seep_report_site *site = seep_words_site(report);
    char *where = site == NULL ? NULL : seep_words_where(report, site);

    if (report->verdict.files) {
        fputs("memory mapped from files, or shared, grows by ", file);
        put_growth(file, report);
        free(where);
        return;
    }
    if (report->verdict.open_files) {
        fputs(
            "memory in files that it has open and that have no name (memfd, removed from a tmpfs) grows by ",
            file);
        put_growth(file, report);
        fprintf(file, ", the largest is %s", memory->open_file);
        free(where);
        return;
    }
    if (where != NULL) {
        put_fills(file, report, site, where);
        free(where);
        return;
    }
    fputs(is_seen_by_none(report)
              ? "memory that no hook saw (malloc, new, mmap) grows by "
              : "memory beyond live blocks grows by ",
          file);
    put_growth(file, report);
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const struct seep_report_mapping *mapping = &memory->mappings[i];

        if (!mapping->tracked &&
            mapping->slope_bytes_per_s >=
                TOLD_SHARE * report->verdict.growth_bytes_per_s.estimate) {
            fprintf(file, ", the largest part in %s at 0x%llx",
                    *mapping->name == '\0' ? "anonymous memory" : mapping->name,
                    (unsigned long long)mapping->start);
            return;
        }
    }
}

static bool rises(const struct seep_report *report,
                  const struct seep_report_extent *extent)
{
    return extent->valid && extent->slope_bytes_per_s > extent->slope_error &&
           extent->slope_bytes_per_s * report->duration_s >=
               report->verdict.floor_bytes;
}

/* What else grows is told by the tables, and must not be denied here. */
static bool live_memory_grows(const struct seep_report *report)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (counts(site) && site->has_growth &&
            (seep_class_may_leak(site->class) ||
             site->growth_bytes_per_s.low > 0)) {
            return true;
        }
    }
    return rises(report, &report->memory.tracked);
}

/* "No leak" is said where the verdict was tested for it, and nowhere else. */
static void put_no_leak(FILE *file, const struct seep_report *report)
{
    if (report->verdict.reassures) {
        fputs("no leak: ", file);
    }
    if (!live_memory_grows(report)) {
        fputs("live memory does not grow; ", file);
    }
}

/* Tensors come and go, and what is left between them serves no other. */
static void put_fragmented(FILE *file, const struct seep_report *report,
                           const struct seep_report_device *device)
{
    fprintf(file,
            "the tensors on GPU %u do not grow, but PyTorch's cache there does",
            device->ordinal);
    put_growing(file, report, ", ");
    fprintf(file, ": %s, %s of it in tensors",
            SEEP_UNITS_BYTES(device->tensor_reserved.last_bytes),
            SEEP_UNITS_BYTES(device->tensor_allocated.last_bytes));
}

/* It grows, and what it does not do is go back. */
static void put_pins(FILE *file, const struct seep_report *report)
{
    char *where = seep_words_pins_where(report);

    if (where != NULL) {
        fprintf(file, ", kept apart by blocks allocated at %s", where);
        free(where);
    }
}

static void put_fragmentation(FILE *file, const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    const struct seep_report_device *device = seep_words_fragmented(report);

    if (device != NULL) {
        put_fragmented(file, report, device);
        return;
    }
    put_no_leak(file, report);
    fprintf(file, "%s holds %s free between live blocks",
            seep_words_allocator(memory->allocator),
            SEEP_UNITS_BYTES(memory->allocator_overhead.last_bytes));
    if (memory->allocator_free_chunks > 0) {
        fprintf(file, ", in %s pieces",
                SEEP_UNITS_COUNT((double)memory->allocator_free_chunks));
    }
    put_growing(file, report, ", growing by ");
    put_pins(file, report);
}

static void put_retention(FILE *file, const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;

    put_no_leak(file, report);
    fprintf(file, "%s keeps %s that the program has freed",
            seep_words_allocator(memory->allocator),
            SEEP_UNITS_BYTES(memory->allocator_overhead.last_bytes));
    if (memory->rss.valid) {
        fprintf(file, ", of %s RSS", SEEP_UNITS_BYTES(memory->rss.last_bytes));
    }
    put_growing(file, report, ", growing by ");
    put_pins(file, report);
}

static void put_filling(FILE *file, const struct seep_report *report,
                        const struct seep_report_site *site, const char *where)
{
    size_t count = report->verdict.growing_count;
    size_t others = report->verdict.has_growth && count > 1 ? count - 1 : 0;

    fprintf(file, "still filling%s: %s holds %s",
            site->known_bound_bytes > 0 ? "" : ", with no known bound", where,
            SEEP_UNITS_BYTES((double)site->live_bytes));
    if (site->known_bound_bytes > 0) {
        fprintf(file, " of the %s given with --known",
                SEEP_UNITS_BYTES((double)site->known_bound_bytes));
    }
    if (others > 0) {
        fprintf(file, "; together with %zu other %s it grows by ", others,
                seep_words_rows(report, others));
        put_growth(file, report);
        return;
    }
    put_growing(file, report, " and grows by ");
    if (site->has_growth && site->known_bound_bytes == 0 &&
        site->growth_now_bytes_per_s > 0 &&
        site->growth_now_bytes_per_s < site->growth_bytes_per_s.estimate) {
        fputs(", ", file);
        seep_words_put_rate(file, site->growth_now_bytes_per_s);
        fputs(" now", file);
    }
}

/* What it is worth: the least that would not have been missed. */
static void put_power(FILE *file, const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;

    if (verdict->reassures && verdict->hidden_bytes_per_s > 0) {
        fputs("; a leak of more than ", file);
        seep_words_put_rate(file, verdict->hidden_bytes_per_s);
        fputs(" would have shown by now", file);
    }
}

/* " 24 s ago, a pause of 1 in 2,000 by chance" */
static void put_since(FILE *file, const struct seep_report *report,
                      const struct seep_report_site *site)
{
    double ago_s = report->duration_s - site->stopped_since_s;

    if (site->stopped_since_s <= 0 || ago_s <= 0) {
        return;
    }
    fprintf(file, " %s ago", SEEP_UNITS_DURATION(ago_s));
    if (site->stopped_ln_p < 0) {
        fprintf(file, " (odds of such a long pause by chance: 1 in %s)",
                SEEP_UNITS_COUNT(exp(fmin(-site->stopped_ln_p, LN_MOST))));
    }
}

/* What stands still may be little of what there is. */
static void put_elsewhere(FILE *file, const struct seep_report *report,
                          const struct seep_report_site *site)
{
    const struct seep_report_site *most = largest_of(report, ~0U);
    char *where = most == NULL || most == site || site->device != most->device
                      ? NULL
                      : seep_words_where(report, most);

    if (where != NULL && most->live_bytes / 2 > site->live_bytes) {
        fprintf(file, "; more memory, %s, is live at %s",
                SEEP_UNITS_BYTES((double)most->live_bytes), where);
    }
    free(where);
}

static void put_stopped(FILE *file, const struct seep_report *report,
                        const struct seep_report_site *site, const char *where)
{
    fprintf(file, "%sgrowth stopped",
            report->verdict.reassures ? "no leak: " : "");
    put_since(file, report, site);
    fprintf(file, "; it was at %s, which holds %s", where,
            SEEP_UNITS_BYTES((double)site->live_bytes));
    put_elsewhere(file, report, site);
    put_power(file, report);
}

static void put_known(FILE *file, const struct seep_report *report,
                      const struct seep_report_site *site, const char *where)
{
    fprintf(file, "%s%s holds %s%s the %s given with --known",
            report->verdict.reassures ? "no leak: " : "", where,
            SEEP_UNITS_BYTES((double)site->live_bytes),
            site->live_bytes > site->known_bound_bytes
                ? ", no longer grows, but exceeds"
                : " of",
            SEEP_UNITS_BYTES((double)site->known_bound_bytes));
}

static void put_bounded(FILE *file, const struct seep_report *report)
{
    const struct seep_report_site *site = seep_words_site(report);
    char *where = site == NULL ? NULL : seep_words_where(report, site);

    if (where == NULL) {
        fputs(report->verdict.filling     ? "still filling; "
              : report->verdict.reassures ? "no leak: growth stopped; "
                                          : "growth stopped; ",
              file);
        put_live(file, report);
    } else if (report->verdict.filling) {
        put_filling(file, report, site, where);
    } else if (site->known_bound_bytes > 0) {
        put_known(file, report, site, where);
    } else {
        put_stopped(file, report, site, where);
    }
    put_suppressed(file, report, "; not counted: ");
    free(where);
}

/* "private memory grows by 229 MiB/min (215 to 243), 12 % of it at ..; " */
static void put_private(FILE *file, const struct seep_report *report)
{
    const struct seep_report_site *site = seep_words_site(report);

    fputs(report->verdict.too_little && site != NULL
              ? "live memory grows by "
              : "private memory grows by ",
          file);
    put_growth(file, report);
    put_place(file, report, site);
    fputs("; ", file);
}

#define WORK_LEAST_S 1.0 /* less is none */

bool seep_words_only_imported(const struct seep_report *report)
{
    return report->begin.mostly_imports &&
           report->duration_s - report->begin.imports_s < WORK_LEAST_S;
}

/* What a run that imported most of its time says of the work behind that. */
static void put_imports(FILE *file, const struct seep_report *report)
{
    double work_s = report->duration_s - report->begin.imports_s;
    double hidden = report->verdict.hidden_bytes_per_s;

    if (!report->begin.mostly_imports) {
        return;
    }
    if (seep_words_only_imported(report)) {
        fprintf(file, "all of the %s %s was imports; ",
                SEEP_UNITS_DURATION(report->duration_s),
                report->end.judged_before ? "that can be judged" : "so far");
        return;
    }
    fprintf(file, "%s of work behind %s of imports is too little",
            SEEP_UNITS_DURATION(work_s),
            SEEP_UNITS_DURATION(report->begin.imports_s));
    if (hidden > 0) {
        fputs(", and a leak of up to ", file);
        seep_words_put_rate(file, hidden);
        fputs(" could hide in it", file);
    }
    fputs("; ", file);
}

static void put_insufficient(FILE *file, const struct seep_report *report)
{
    fputs("cannot tell yet whether it leaks: ", file);
    put_imports(file, report);
    if (report->verdict.has_growth &&
        (report->verdict.private_grows || report->verdict.too_little)) {
        put_private(file, report);
    }
    put_live(file, report);
    fprintf(file, " after %s", SEEP_UNITS_DURATION(report->duration_s));
}

/* Rows of what may grow stand below, each too little to count. */
static void put_nothing(FILE *file, const struct seep_report *report)
{
    bool reassures = report->verdict.reassures;
    bool rises_anyhow = report->verdict.suppressed_count == 0 &&
                        rises(report, &report->memory.anonymous);
    double copied = seep_words_copied(report);
    double beside = copied > 0 ? 0 : report->verdict.beside_bytes_per_s;

    fputs(reassures ? "no leak: " : "", file);
    if (report->verdict.minor_count > 0 || live_memory_grows(report) ||
        rises_anyhow) {
        fprintf(file, "nothing certainly grows by %s or more",
                SEEP_UNITS_BYTES(report->verdict.floor_bytes));
    } else if (copied > 0) {
        fputs("no call site grows", file);
    } else if (beside > 0) {
        fputs(reassures ? "nothing grows in it"
                        : "nothing was seen to grow in it",
              file);
    } else {
        fputs(reassures ? "nothing grows" : "nothing was seen to grow", file);
    }
    if (copied > 0) {
        fputs(", but pages from before the fork are copied by ", file);
        seep_words_put_rate(file, copied);
        fputs(", as they are written to", file);
    }
    if (beside > 0) {
        fputs(", but its cgroup grows beside it by ", file);
        seep_words_put_rate(file, beside);
    }
}

static void put_steady(FILE *file, const struct seep_report *report)
{
    put_nothing(file, report);
    put_suppressed(file, report, " but ");
    put_power(file, report);
    fputs("; ", file);
    put_live(file, report);
    if (report->memory.valid && report->memory.rss.valid) {
        fprintf(file, ", RSS %s",
                SEEP_UNITS_BYTES(report->memory.rss.last_bytes));
    }
}

/* What the class is not about, and nobody knows of: that is no "no leak". */
static void put_open(FILE *file, const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    const struct seep_report_site *site =
        seep_words_site_of(report, verdict->open_id);
    char *where = site == NULL ? NULL : seep_words_where(report, site);

    if (where != NULL) {
        fprintf(file, "; cannot tell yet whether %s (%s) leaks ", where,
                seep_words_space(site->space));
        seep_words_put_growth(file, &verdict->open_bytes_per_s);
    }
    free(where);
}

/* What it grows by beside what the class is about. */
static void put_rest(FILE *file, const struct seep_report *report)
{
    static const char *const words[] = {
        [SEEP_REST_UNKNOWN] = "the rest is where seep does not see",
        [SEEP_REST_SITES] = "most of the rest is live at other call sites",
        [SEEP_REST_FREE] = "most of the rest is free memory of the allocator",
        [SEEP_REST_BLOCKS] = "most of the rest is in blocks that no hook saw",
        [SEEP_REST_MAPPINGS] =
            "most of the rest is in mappings that no hook saw",
    };
    const struct seep_report_verdict *verdict = &report->verdict;

    if (verdict->rest_bytes_per_s > 0) {
        fprintf(file, "; private memory %s by ",
                seep_words_end_is_reported(report) ? "grew" : "grows");
        seep_words_put_rate(file, verdict->private_bytes_per_s);
        fprintf(file, ", and %s", words[verdict->rest % SEEP_REST_COUNT]);
    }
}

/* "python3 serve.py (pid 4242): " */
static void put_name(FILE *file, const struct seep_report *report)
{
    char *name = seep_words_program(report);

    fprintf(file, "%s (pid %u): ", name == NULL || *name == '\0' ? "?" : name,
            report->pid);
    free(name);
}

/* The sentence alone, to be freed. */
static char *sentence_of(const struct seep_report *report)
{
    static void (*const puts_of[])(FILE *, const struct seep_report *) = {
        [SEEP_VERDICT_LEAK] = put_leak,
        [SEEP_VERDICT_SUSPECT] = put_suspect,
        [SEEP_VERDICT_UNEXPLAINED] = put_unexplained,
        [SEEP_VERDICT_FRAGMENTATION] = put_fragmentation,
        [SEEP_VERDICT_RETENTION] = put_retention,
        [SEEP_VERDICT_BOUNDED] = put_bounded,
        [SEEP_VERDICT_INSUFFICIENT] = put_insufficient,
        [SEEP_VERDICT_STEADY] = put_steady,
    };
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return NULL;
    }
    put_name(file, report);
    if (report->inert != SEEP_INERT_NONE) {
        fputs(seep_words_inert(report->inert), file);
    } else {
        puts_of[report->verdict.class % SEEP_VERDICT_COUNT](file, report);
        put_open(file, report);
        put_rest(file, report);
    }
    fputc('.', file);
    return seep_words_close(&text);
}

/*
 * All words of a verdict.
 */

/* The patterns of processes are the host's allocators. */
const struct seep_pattern *
seep_words_pattern(const struct seep_report *report,
                   const struct seep_catalogue *catalogue)
{
    return catalogue == NULL || seep_words_fragmented(report) != NULL
               ? NULL
               : seep_catalogue_find_process(catalogue, report);
}

void seep_words_verdict(const struct seep_report *report,
                        const struct seep_pattern *pattern,
                        struct seep_words_verdict *ret_words)
{
    struct seep_words_verdict words = {0};

    seep_words_label(report->inert != SEEP_INERT_NONE
                         ? "NOT RECORDED"
                         : seep_verdict_name(report->verdict.class),
                     words.label);
    words.sentence = sentence_of(report);
    if (report->inert == SEEP_INERT_NONE) {
        words.forecast = seep_words_forecast(report);
        seep_words_add_reasons(report, pattern, &words);
    }
    seep_words_add_advice(report, pattern, &words);
    *ret_words = words;
}

void seep_words_verdict_fini(struct seep_words_verdict *words)
{
    free(words->sentence);
    free(words->forecast);
    for (size_t i = 0; i < words->reason_count; i++) {
        free(words->reasons[i]);
    }
    for (size_t i = 0; i < words->advice_count; i++) {
        free(words->advice[i]);
    }
    *words = (struct seep_words_verdict){0};
}
