/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which mappings grew. Invariant: every byte of a sample that
 * counts is in one region, so what moves between mappings that the kernel
 * merges or splits grows nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/process/sample.h"

#define GROUP_GAP_BYTES ((uint64_t)64 << 20)
#define PROBE_COUNT 64U
#define PROBE_LEAST_BYTES ((uint64_t)64 << 10)
/* Of what is new, so much holds blocks if it is an allocator's. */
#define TRACKED_SHARE 0.0625

/* A mapping in one sample. */
struct piece {
    const struct seep_external_mapping *mapping;
    size_t sample;
};

/* Pieces of one name that overlap, over all samples. */
struct region {
    const struct piece *pieces; /* by address */
    size_t piece_count;
    const char *name;
    uint64_t start; /* as the last sample has it */
    uint64_t end;
    double *bytes; /* in each sample */
    bool tracked;
};

struct growth {
    const struct seep_external_sample **samples;
    size_t sample_count;
    struct piece *pieces;
    size_t piece_count;
    struct region *regions;
    size_t region_count;
    double *bytes;
    bool (*is_tracked)(void *context, uint64_t start, uint64_t end);
    void *context;
};

/* What a file has of it is no memory that the process must be explained by:
 * to read a model through a mapping is not to allocate. */
static double bytes_of(const struct seep_external_mapping *mapping)
{
    return (double)mapping->anonymous_bytes + (double)mapping->swap_bytes;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct seep_external_mapping *left =
        ((const struct piece *)a)->mapping;
    const struct seep_external_mapping *right =
        ((const struct piece *)b)->mapping;
    int order = strcmp(left->name, right->name);

    if (order == 0) {
        order = (left->start > right->start) - (left->start < right->start);
    }
    return order != 0 ? order
                      : (left->end > right->end) - (left->end < right->end);
}

/* A sample without mappings (they could not be seen) says nothing of them. */
static int collect(struct growth *growth,
                   const struct seep_external_samples *samples, double from_s)
{
    size_t count = 0;

    growth->samples =
        calloc(samples->count + 1, sizeof(struct seep_external_sample *));
    for (size_t i = 0; growth->samples != NULL && i < samples->count; i++) {
        const struct seep_external_sample *sample = &samples->samples[i];
        if (sample->t_s >= from_s && sample->mapping_count > 0) {
            growth->samples[growth->sample_count++] = sample;
            count += sample->mapping_count;
        }
    }
    growth->pieces = calloc(count + 1, sizeof(*growth->pieces));
    growth->regions = calloc(count + 1, sizeof(*growth->regions));
    growth->bytes = calloc(count * growth->sample_count + 1, sizeof(double));
    if (growth->samples == NULL || growth->pieces == NULL ||
        growth->regions == NULL || growth->bytes == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < growth->sample_count; i++) {
        const struct seep_external_sample *sample = growth->samples[i];
        for (size_t j = 0; j < sample->mapping_count; j++) {
            growth->pieces[growth->piece_count++] =
                (struct piece){&sample->mappings[j], i};
        }
    }
    qsort(growth->pieces, growth->piece_count, sizeof(*growth->pieces),
          compare_pieces);
    return 0;
}

static void add_to_region(const struct growth *growth, struct region *region,
                          const struct piece *piece)
{
    const struct seep_external_mapping *mapping = piece->mapping;

    region->piece_count++;
    region->bytes[piece->sample] += bytes_of(mapping);
    if (piece->sample + 1 == growth->sample_count) {
        region->start = region->end == 0 ? mapping->start : region->start;
        region->end = mapping->end > region->end ? mapping->end : region->end;
    }
}

static void make_regions(struct growth *growth)
{
    struct region *region = NULL;
    uint64_t end = 0;

    for (size_t i = 0; i < growth->piece_count; i++) {
        const struct piece *piece = &growth->pieces[i];
        const struct seep_external_mapping *mapping = piece->mapping;

        if (region == NULL || mapping->start >= end ||
            strcmp(mapping->name, region->name) != 0) {
            region = &growth->regions[growth->region_count];
            region->pieces = piece;
            region->name = mapping->name;
            region->bytes =
                growth->bytes + growth->region_count * growth->sample_count;
            growth->region_count++;
            end = mapping->end;
        }
        add_to_region(growth, region, piece);
        end = mapping->end > end ? mapping->end : end;
    }
}

/* Calls @visit for each part that the last sample has and the first has not. */
static void visit_new(const struct growth *growth, const struct region *region,
                      void (*visit)(void *context, uint64_t start,
                                    uint64_t end),
                      void *context)
{
    uint64_t known_end = 0; /* what the first sample has ends here, so far */
    uint64_t last_end = 0;  /* and what the last one has */
    uint64_t at = 0;        /* up to here all was visited or was known */

    for (size_t i = 0; i <= region->piece_count; i++) {
        const struct piece *piece = &region->pieces[i];
        bool is_end = i == region->piece_count;
        uint64_t start = is_end ? UINT64_MAX : piece->mapping->start;
        uint64_t from = at > known_end ? at : known_end;
        uint64_t to = last_end < start ? last_end : start;

        if (from < to) {
            visit(context, from, to);
            at = to;
        }
        if (!is_end && piece->sample == 0 && piece->mapping->end > known_end) {
            known_end = piece->mapping->end;
        }
        if (!is_end && piece->sample + 1 == growth->sample_count) {
            at = at > start ? at : start;
            last_end =
                last_end > piece->mapping->end ? last_end : piece->mapping->end;
        }
    }
}

struct probe {
    const struct growth *growth;
    uint64_t new_bytes;
    uint64_t step_bytes;
    double count;
    double hits;
};

static void measure(void *context, uint64_t start, uint64_t end)
{
    struct probe *probe = context;

    probe->new_bytes += end - start;
}

static void probe_part(void *context, uint64_t start, uint64_t end)
{
    struct probe *probe = context;

    while (start < end) {
        uint64_t stop =
            end - start > probe->step_bytes ? start + probe->step_bytes : end;
        probe->count++;
        probe->hits +=
            probe->growth->is_tracked(probe->growth->context, start, stop);
        start = stop;
    }
}

static double growth_of(const struct growth *growth,
                        const struct region *region)
{
    return region->bytes[growth->sample_count - 1] - region->bytes[0];
}

/*
 * Is what grew an allocator's? If new addresses can hold the growth, then by
 * what lies in them: a stray block does not make the program's own mapping an
 * allocator's, nor one that was there before. Else by the whole range.
 */
static bool judge(const struct growth *growth, const struct region *region)
{
    struct probe probe = {.growth = growth};
    double grown = growth_of(growth, region);

    if (growth->is_tracked == NULL) {
        return false;
    }
    visit_new(growth, region, measure, &probe);
    if ((double)probe.new_bytes < grown / 2 ||
        strcmp(region->name, "[heap]") == 0) {
        return growth->is_tracked(growth->context, region->start, region->end);
    }
    probe.step_bytes = probe.new_bytes / PROBE_COUNT + 1;
    if (probe.step_bytes < PROBE_LEAST_BYTES) {
        probe.step_bytes = PROBE_LEAST_BYTES;
    }
    visit_new(growth, region, probe_part, &probe);
    double filled =
        grown < (double)probe.new_bytes ? grown / (double)probe.new_bytes : 1;
    return probe.hits > 0 && probe.hits >= TRACKED_SHARE * filled * probe.count;
}

static bool belong_together(const struct region *a, const struct region *b)
{
    return a->bytes[0] <= 0 && b->bytes[0] <= 0 && !a->tracked && !b->tracked &&
           strcmp(a->name, b->name) == 0 &&
           b->start <= a->end + GROUP_GAP_BYTES;
}

/* Only what is there at the end stays; what is new becomes fewer. */
static void group(struct growth *growth)
{
    size_t kept = 0;
    struct region *open = NULL; /* the last one that more may be added to */

    for (size_t i = 0; i < growth->region_count; i++) {
        struct region region = growth->regions[i];

        if (region.end == 0 || strcmp(region.name, SEEP_EXTERNAL_OWN) == 0) {
            continue;
        }
        region.tracked = judge(growth, &region);
        if (open != NULL && belong_together(open, &region)) {
            for (size_t j = 0; j < growth->sample_count; j++) {
                open->bytes[j] += region.bytes[j];
            }
            open->end = region.end;
            continue;
        }
        growth->regions[kept] = region;
        if (region.bytes[0] <= 0 && !region.tracked) {
            open = &growth->regions[kept];
        }
        kept++;
    }
    growth->region_count = kept;
}

static double slope_of(const struct growth *growth, const struct region *region)
{
    double count = (double)growth->sample_count;
    double mean_s = 0;
    double mean_bytes = 0;
    double square = 0;
    double product = 0;

    for (size_t i = 0; i < growth->sample_count; i++) {
        mean_s += growth->samples[i]->t_s / count;
        mean_bytes += region->bytes[i] / count;
    }
    for (size_t i = 0; i < growth->sample_count; i++) {
        double off_s = growth->samples[i]->t_s - mean_s;
        square += off_s * off_s;
        product += off_s * (region->bytes[i] - mean_bytes);
    }
    return square > 0 ? product / square : 0;
}

static double growth_of_entry(const struct seep_report_mapping *mapping)
{
    return mapping->last_bytes - mapping->first_bytes;
}

/* Into its place among the first @limit. */
static void insert(struct seep_report_mapping *mappings, size_t limit,
                   size_t *count, const struct seep_report_mapping *mapping)
{
    size_t at = *count;

    while (at > 0 &&
           growth_of_entry(&mappings[at - 1]) < growth_of_entry(mapping)) {
        at--;
    }
    if (at == limit) {
        return;
    }
    *count += *count < limit;
    memmove(&mappings[at + 1], &mappings[at],
            (*count - at - 1) * sizeof(*mappings));
    mappings[at] = *mapping;
}

static void list(const struct growth *growth,
                 struct seep_report_mapping *ret_mappings, size_t limit,
                 size_t *ret_count)
{
    size_t count = 0;

    for (size_t i = 0; i < growth->region_count; i++) {
        const struct region *region = &growth->regions[i];

        if (growth_of(growth, region) < SEEP_EXTERNAL_GROWTH_LEAST_BYTES) {
            continue;
        }
        insert(ret_mappings, limit, &count,
               &(struct seep_report_mapping){
                   .start = region->start,
                   .end = region->end,
                   .name = region->name,
                   .first_bytes = region->bytes[0],
                   .last_bytes = region->bytes[growth->sample_count - 1],
                   .slope_bytes_per_s = slope_of(growth, region),
                   .tracked = region->tracked,
               });
    }
    *ret_count = count;
}

int seep_external_growth(
    const struct seep_external_samples *samples, double from_s,
    bool (*is_tracked)(void *context, uint64_t start, uint64_t end),
    void *context, struct seep_report_mapping *ret_mappings, size_t limit,
    size_t *ret_count)
{
    struct growth growth = {.is_tracked = is_tracked, .context = context};
    int error = collect(&growth, samples, from_s);

    if (error == 0 && growth.sample_count >= 2) {
        make_regions(&growth);
        group(&growth);
        list(&growth, ret_mappings, limit, ret_count);
    } else if (error == 0) {
        *ret_count = 0;
    }
    free(growth.samples);
    free(growth.pieces);
    free(growth.regions);
    free(growth.bytes);
    return error;
}
