/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verdict in one sentence. Invariant: it has figures for all that it
 * claims, and claims nothing that the report did not compute.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"
#include "verdict_words.h"
#include "words.h"

#define ALL_OF_IT 0.995 /* the rest would be printed as 0 % */

/* A rate in a sentence that says by itself that something grows. */
static void put_rate(FILE *file, double bytes_per_s)
{
    char rate[SEEP_UNITS_TEXT_BYTES];

    seep_units_rate(bytes_per_s, rate);
    fputs(*rate == '+' ? rate + 1 : rate, file);
}

static void put_interval(FILE *file, const struct seep_interval *bytes_per_s)
{
    char bounds[SEEP_UNITS_TEXT_BYTES];

    put_rate(file, bytes_per_s->estimate);
    if (bytes_per_s->low < bytes_per_s->high) {
        fprintf(file, " (%s)", seep_units_bounds(bytes_per_s, 60, bounds));
    }
}

static void put_growth(FILE *file, const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    char text[SEEP_UNITS_TEXT_BYTES];

    put_interval(file, &verdict->growth_bytes_per_s);
    if (verdict->has_growth_per_unit) {
        fprintf(
            file, ", %s a unit of work",
            seep_units_bytes(verdict->growth_bytes_per_unit.estimate, text));
    }
}

/* ", 97 % of it at serve.py:31 handle" */
static void put_place(FILE *file, const struct seep_report *report,
                      const struct seep_report_site *site)
{
    double share = report->verdict.first_share;
    char text[SEEP_UNITS_TEXT_BYTES];
    char *where = site == NULL ? NULL : seep_words_where(report, site);

    if (where != NULL && share >= ALL_OF_IT) {
        fprintf(file, ", all of it at %s", where);
    } else if (where != NULL && share > 0) {
        fprintf(file, ", %s of it at %s", seep_units_share(share, text), where);
    } else if (where != NULL) {
        fprintf(file, ", first at %s", where);
    }
    if (report->verdict.growing_count > 1 && share < ALL_OF_IT) {
        size_t others = report->verdict.growing_count - 1;

        fprintf(file, ", the rest at %s other %s",
                seep_units_count((double)others, text),
                seep_words_rows(report, others));
    }
    free(where);
}

static size_t site_total(const struct seep_report *report)
{
    return report->site_total > report->site_count ? report->site_total
                                                   : report->site_count;
}

/* "576 MiB", "576 MiB of host memory and 3 GiB of GPU memory" */
static void put_live_bytes(FILE *file, const struct seep_report *report)
{
    uint64_t gpu = seep_words_gpu_bytes(report);
    char host_text[SEEP_UNITS_TEXT_BYTES];
    char gpu_text[SEEP_UNITS_TEXT_BYTES];

    seep_units_bytes((double)seep_words_host_bytes(report), host_text);
    fputs(host_text, file);
    if (gpu > 0) {
        fprintf(file, " of host memory and %s of GPU memory",
                seep_units_bytes((double)gpu, gpu_text));
    }
}

static void put_live(FILE *file, const struct seep_report *report)
{
    char sites[SEEP_UNITS_TEXT_BYTES];

    put_live_bytes(file, report);
    fprintf(file, " live at %s %s",
            seep_units_count((double)site_total(report), sites),
            seep_words_rows(report, site_total(report)));
}

/* What does not count is said, or "nothing grows" would be a lie. */
static void put_suppressed(FILE *file, const struct seep_report *report,
                           const char *lead)
{
    const struct seep_report_verdict *verdict = &report->verdict;

    if (verdict->suppressed_count > 0 && verdict->suppressed_bytes_per_s > 0) {
        fputs(lead, file);
        put_rate(file, verdict->suppressed_bytes_per_s);
        fprintf(file, " at %zu suppressed %s", verdict->suppressed_count,
                seep_words_rows(report, verdict->suppressed_count));
    }
}

static void put_leak(FILE *file, const struct seep_report *report)
{
    const struct seep_report_site *site = seep_verdict_words_site(report);
    char memory[SEEP_WORDS_GPU_BYTES];

    fprintf(file, "%s grows ", seep_words_growing(report, site, memory));
    put_growth(file, report);
    put_place(file, report, site);
}

static void put_suspect(FILE *file, const struct seep_report *report)
{
    const struct seep_report_site *site = seep_verdict_words_site(report);
    char memory[SEEP_WORDS_GPU_BYTES];

    fprintf(file, "%s may be leaking",
            seep_words_growing(report, site, memory));
    if (report->verdict.has_growth) {
        fputs(": ", file);
        put_growth(file, report);
    }
    put_place(file, report, site);
}

static void put_unexplained(FILE *file, const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;

    fputs(memory->allocator_overhead.valid
              ? "memory that no hook saw (malloc, new, mmap) grows "
              : "memory beyond what live blocks hold grows ",
          file);
    put_growth(file, report);
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const struct seep_report_mapping *mapping = &memory->mappings[i];

        if (!mapping->tracked) {
            fprintf(file, ", the largest part in %s at 0x%llx",
                    *mapping->name == '\0' ? "anonymous memory" : mapping->name,
                    (unsigned long long)mapping->start);
            return;
        }
    }
}

/* What else grows is told by the table, and must not be denied here. */
static bool live_memory_grows(const struct seep_report *report)
{
    const struct seep_report_extent *tracked = &report->memory.tracked;

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->suppressed_by == NULL && site->has_growth &&
            seep_class_may_leak(site->class)) {
            return true;
        }
    }
    return tracked->valid &&
           tracked->slope_bytes_per_s > tracked->slope_error &&
           tracked->slope_bytes_per_s * report->duration_s >=
               report->verdict.floor_bytes;
}

static void put_no_leak(FILE *file, const struct seep_report *report)
{
    fputs(live_memory_grows(report) ? "no leak, for the most part: "
                                    : "no leak: live memory does not grow; ",
          file);
}

/* Tensors come and go, and what is left between them serves no other. */
static void put_fragmented(FILE *file, const struct seep_report *report,
                           const struct seep_report_device *device)
{
    char reserved[SEEP_UNITS_TEXT_BYTES];
    char live[SEEP_UNITS_TEXT_BYTES];

    fprintf(file,
            "no leak: the tensors on GPU %u do not grow; PyTorch's cache there "
            "does",
            device->ordinal);
    if (report->verdict.has_growth) {
        fputs(", ", file);
        put_growth(file, report);
    }
    fprintf(file, ": %s, %s of it in tensors",
            seep_units_bytes(device->tensor_reserved.last_bytes, reserved),
            seep_units_bytes(device->tensor_allocated.last_bytes, live));
}

static void put_fragmentation(FILE *file, const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    const struct seep_report_device *device =
        seep_verdict_words_fragmented(report);
    char held[SEEP_UNITS_TEXT_BYTES];
    char count[SEEP_UNITS_TEXT_BYTES];

    if (device != NULL) {
        put_fragmented(file, report, device);
        return;
    }
    put_no_leak(file, report);
    fprintf(file, "%s holds %s free between live blocks",
            seep_verdict_words_allocator(memory->allocator),
            seep_units_bytes(memory->allocator_overhead.last_bytes, held));
    if (memory->allocator_free_chunks > 0) {
        fprintf(file, ", in %s pieces",
                seep_units_count((double)memory->allocator_free_chunks, count));
    }
    if (report->verdict.has_growth) {
        fputs(", growing ", file);
        put_growth(file, report);
    }
}

static void put_retention(FILE *file, const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    char held[SEEP_UNITS_TEXT_BYTES];
    char rss[SEEP_UNITS_TEXT_BYTES];

    put_no_leak(file, report);
    fprintf(file, "%s keeps %s that the program gave back",
            seep_verdict_words_allocator(memory->allocator),
            seep_units_bytes(memory->allocator_overhead.last_bytes, held));
    if (memory->rss.valid) {
        fprintf(file, ", of %s RSS",
                seep_units_bytes(memory->rss.last_bytes, rss));
    }
    if (report->verdict.has_growth) {
        fputs(", growing ", file);
        put_growth(file, report);
    }
}

static void put_filling(FILE *file, const struct seep_report *report,
                        const struct seep_report_site *site, const char *where)
{
    char live[SEEP_UNITS_TEXT_BYTES];
    char bound[SEEP_UNITS_TEXT_BYTES];
    size_t count = report->verdict.growing_count;
    size_t others = report->verdict.has_growth && count > 1 ? count - 1 : 0;

    fprintf(file, "no leak seen, but not at its bound yet: %s holds %s", where,
            seep_units_bytes((double)site->live_bytes, live));
    if (site->known_bound_bytes > 0) {
        fprintf(file, " of the %s that --known names",
                seep_units_bytes((double)site->known_bound_bytes, bound));
    }
    if (others > 0) {
        fprintf(file, "; with %zu other %s it grows ", others,
                seep_words_rows(report, others));
        put_growth(file, report);
        return;
    }
    if (report->verdict.has_growth) {
        fputs(" and grows ", file);
        put_growth(file, report);
    }
    if (site->has_growth && site->known_bound_bytes == 0 &&
        site->growth_now_bytes_per_s > 0 &&
        site->growth_now_bytes_per_s < site->growth_bytes_per_s.estimate) {
        fputs(", ", file);
        put_rate(file, site->growth_now_bytes_per_s);
        fputs(" now", file);
    }
}

static void put_bounded(FILE *file, const struct seep_report *report)
{
    const struct seep_report_site *site = seep_verdict_words_site(report);
    char *where = site == NULL ? NULL : seep_words_where(report, site);
    char live[SEEP_UNITS_TEXT_BYTES];
    char bound[SEEP_UNITS_TEXT_BYTES];

    if (where == NULL) {
        fputs(report->verdict.filling
                  ? "no leak seen, but not at its bound yet; "
                  : "no leak: what grew has reached its bound; ",
              file);
        put_live(file, report);
    } else if (report->verdict.filling) {
        put_filling(file, report, site, where);
    } else if (site->known_bound_bytes > 0) {
        fprintf(file, "no leak: %s holds %s%s the %s that --known names", where,
                seep_units_bytes((double)site->live_bytes, live),
                site->live_bytes > site->known_bound_bytes
                    ? ", does not grow any more, but exceeds"
                    : " of",
                seep_units_bytes((double)site->known_bound_bytes, bound));
    } else {
        fprintf(file,
                "no leak: what grew has reached its bound; most is "
                "%s at %s",
                seep_units_bytes((double)site->live_bytes, live), where);
    }
    put_suppressed(file, report, "; not counted: ");
    free(where);
}

static void put_insufficient(FILE *file, const struct seep_report *report)
{
    char duration[SEEP_UNITS_TEXT_BYTES];

    fputs("cannot tell yet whether it leaks: ", file);
    put_live(file, report);
    fprintf(file, " after %s",
            seep_units_duration(report->duration_s, duration));
}

/* Rows of what may grow stand below, each too little to count. */
static void put_nothing(FILE *file, const struct seep_report *report)
{
    char least[SEEP_UNITS_TEXT_BYTES];

    if (report->verdict.minor_count == 0 && !live_memory_grows(report)) {
        fputs("no leak: nothing grows", file);
    } else {
        fprintf(file, "no leak: nothing is sure to grow by %s or more",
                seep_units_bytes(report->verdict.floor_bytes, least));
    }
}

static void put_steady(FILE *file, const struct seep_report *report)
{
    char rss[SEEP_UNITS_TEXT_BYTES];

    put_nothing(file, report);
    put_suppressed(file, report, " but ");
    fputs("; ", file);
    put_live(file, report);
    if (report->memory.valid && report->memory.rss.valid) {
        fprintf(file, ", RSS %s",
                seep_units_bytes(report->memory.rss.last_bytes, rss));
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

char *seep_verdict_words_sentence(const struct seep_report *report)
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
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        return NULL;
    }
    put_name(file, report);
    if (report->inert != SEEP_INERT_NONE) {
        fputs(seep_words_inert(report->inert), file);
    } else {
        puts_of[report->verdict.class % SEEP_VERDICT_COUNT](file, report);
    }
    fputc('.', file);
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
