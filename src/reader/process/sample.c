/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The external samples of a process, and their file.
 *
 * Invariant: they are by time, never more than SEEP_EXTERNAL_SAMPLES_MAX, and
 * the first and the last that came are among them.
 */
#include "reader/process/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/process/beside.h"
#include "reader/recording/pack.h"
#include "seep/recording.h"

void seep_external_sample_fini(struct seep_external_sample *sample)
{
    struct seep_smaps smaps = {sample->mappings, sample->mapping_count};

    seep_smaps_fini(&smaps);
    memset(sample, 0, sizeof(*sample));
}

void seep_external_sample_name_own(struct seep_external_sample *sample,
                                   uint64_t inode)
{
    for (size_t i = 0; i < sample->mapping_count; i++) {
        struct seep_external_mapping *mapping = &sample->mappings[i];
        char *name = NULL;

        if (mapping->inode == inode && inode != 0 &&
            (name = strdup(SEEP_EXTERNAL_OWN)) != NULL) {
            free(mapping->name);
            mapping->name = name;
        }
    }
}

void seep_external_samples_fini(struct seep_external_samples *samples)
{
    for (size_t i = 0; i < samples->count; i++) {
        seep_external_sample_fini(&samples->samples[i]);
    }
    free(samples->samples);
    samples->samples = NULL;
    samples->count = 0;
}

/* Drop the one whose neighbours are nearest to each other: what was looked at
 * often, the beginning, is thinned first, and then all evenly. */
static void thin(struct seep_external_samples *samples)
{
    size_t victim = 1;
    double least_s = samples->samples[2].t_s - samples->samples[0].t_s;

    for (size_t i = 2; i + 1 < samples->count; i++) {
        double width_s =
            samples->samples[i + 1].t_s - samples->samples[i - 1].t_s;
        if (width_s < least_s) {
            least_s = width_s;
            victim = i;
        }
    }
    seep_external_sample_fini(&samples->samples[victim]);
    memmove(&samples->samples[victim], &samples->samples[victim + 1],
            (samples->count - victim - 1) * sizeof(*samples->samples));
    samples->count--;
}

int seep_external_samples_add(struct seep_external_samples *samples,
                              struct seep_external_sample *sample)
{
    if (samples->count > 0 &&
        !(sample->t_s >= samples->samples[samples->count - 1].t_s)) {
        return -EINVAL;
    }
    if (samples->samples == NULL) {
        samples->samples =
            calloc(SEEP_EXTERNAL_SAMPLES_MAX + 1, sizeof(*samples->samples));
        if (samples->samples == NULL) {
            return -ENOMEM;
        }
    }
    samples->samples[samples->count++] = *sample;
    memset(sample, 0, sizeof(*sample));
    if (samples->count > SEEP_EXTERNAL_SAMPLES_MAX) {
        thin(samples);
    }
    return 0;
}

/* The sizes of a sample, and of a mapping, in the order of the file. */
struct size {
    const char *key;
    size_t offset;
};

#define SAMPLE(member) offsetof(struct seep_external_sample, member)
#define MAPPING(member) offsetof(struct seep_external_mapping, member)

static const struct size sample_sizes[] = {
    {"rss_bytes", SAMPLE(rss_bytes)},
    {"anonymous_bytes", SAMPLE(anonymous_bytes)},
    {"shared_bytes", SAMPLE(shared_bytes)},
    {"swap_bytes", SAMPLE(swap_bytes)},
    {"cgroup_bytes", SAMPLE(cgroup_bytes)},
    {"cgroup_limit_bytes", SAMPLE(cgroup_limit_bytes)},
    {"cgroup_held_bytes", SAMPLE(cgroup_held_bytes)},
    {"cgroup_shmem_bytes", SAMPLE(cgroup_shmem_bytes)},
    {"available_bytes", SAMPLE(available_bytes)},
    {"other_rss_bytes", SAMPLE(other_rss_bytes)},
    {"forked_bytes", SAMPLE(forked_bytes)},
    {"thread_count", SAMPLE(thread_count)},
    {"open_file_bytes", SAMPLE(open_file_bytes)},
    {NULL, 0},
};

static const struct size mapping_sizes[] = {
    {"rss_bytes", MAPPING(rss_bytes)},
    {"anonymous_bytes", MAPPING(anonymous_bytes)},
    {"swap_bytes", MAPPING(swap_bytes)},
    {NULL, 0},
};

/*
 * The file, written: see beside.h.
 */

static const struct seep_beside_kind kind = {
    .suffix = SEEP_EXTERNAL_SUFFIX,
    .schema = "seep-looks/1",
    .file_bytes_most = (size_t)64 << 20,
    .line_bytes_most = (size_t)2 << 20,
};

static void put_sizes(json_t *object, const struct size *sizes,
                      const void *from)
{
    for (; sizes->key != NULL; sizes++) {
        const uint64_t *bytes =
            (const void *)((const char *)from + sizes->offset);

        json_object_set_new(object, sizes->key,
                            json_integer((json_int_t)*bytes));
    }
}

static json_t *make_mapping(const struct seep_external_mapping *mapping)
{
    char range[40];
    json_t *object;

    snprintf(range, sizeof(range), "%" PRIx64 "-%" PRIx64, mapping->start,
             mapping->end);
    object = json_pack("{s:s}", "range", range);
    put_sizes(object, mapping_sizes, mapping);
    if (json_object_set_new(object, "name", seep_beside_text(mapping->name)) !=
        0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *make_sample(const struct seep_external_sample *sample)
{
    json_t *mappings = json_array();
    json_t *object = json_pack("{s:f}", "t_s", sample->t_s);

    for (size_t i = 0; i < sample->mapping_count; i++) {
        json_array_append_new(mappings, make_mapping(&sample->mappings[i]));
    }
    put_sizes(object, sample_sizes, sample);
    json_object_set_new(object, "open_file",
                        seep_beside_text(sample->open_file));
    json_object_set_new(object, "mappings", mappings);
    return object;
}

int seep_external_samples_print(FILE *file, const char *recording_path,
                                const struct seep_external_samples *samples)
{
    json_t *header = seep_beside_header(&kind, recording_path);
    double last_s =
        samples->count > 0 ? samples->samples[samples->count - 1].t_s : 0;

    json_object_set_new(header, "looks",
                        json_integer((json_int_t)samples->count));
    json_object_set_new(header, "last_s", json_real(last_s));
    int error = seep_beside_put_line(file, header);
    for (size_t i = 0; error == 0 && i < samples->count; i++) {
        error = seep_beside_put_line(file, make_sample(&samples->samples[i]));
    }
    return error;
}

static int print(FILE *file, const char *recording_path, const void *samples)
{
    return seep_external_samples_print(file, recording_path, samples);
}

int seep_external_samples_write(const char *recording_path,
                                const struct seep_external_samples *samples)
{
    return seep_beside_write(&kind, recording_path, print, samples);
}

/*
 * The file, read. Invariant: nothing of it is believed: what is given
 * out is finite, not negative, in order, and bounded in number and length.
 * A fault refuses the file as a whole.
 */

#define NAME_BYTES_MAX 4096U
#define SIZE_BYTES_MAX ((json_int_t)1 << 55) /* 256 of them are a word */
#define TIME_S_MAX 1e11

/* A size that is not there is not known: 0. */
static bool take_sizes(const json_t *object, const struct size *sizes, void *to)
{
    for (; sizes->key != NULL; sizes++) {
        const json_t *value = json_object_get(object, sizes->key);
        uint64_t *bytes = (void *)((char *)to + sizes->offset);

        if (value != NULL &&
            (!json_is_integer(value) || json_integer_value(value) < 0 ||
             json_integer_value(value) > SIZE_BYTES_MAX)) {
            return false;
        }
        *bytes = (uint64_t)json_integer_value(value);
    }
    return true;
}

/* "7f00-7f10", small digits only */
static bool take_range(const json_t *object,
                       struct seep_external_mapping *mapping)
{
    const char *text = json_string_value(json_object_get(object, "range"));
    uint64_t ends[2] = {0, 0};

    for (int i = 0; text != NULL && i < 2; i++) {
        size_t digits = strspn(text, "0123456789abcdef");
        if (digits == 0 || digits > 16 || text[digits] != (i == 0 ? '-' : 0)) {
            return false;
        }
        ends[i] = strtoull(text, NULL, 16);
        text += digits + 1;
    }
    mapping->start = ends[0];
    mapping->end = ends[1];
    return text != NULL && ends[0] < ends[1];
}

static bool take_mapping(const json_t *object,
                         struct seep_external_mapping *mapping)
{
    const char *name = json_string_value(json_object_get(object, "name"));

    if (!json_is_object(object) || name == NULL ||
        strlen(name) > NAME_BYTES_MAX || !take_range(object, mapping) ||
        !take_sizes(object, mapping_sizes, mapping)) {
        return false;
    }
    mapping->name = strdup(name);
    return mapping->name != NULL;
}

static bool take_mappings(const json_t *array,
                          struct seep_external_sample *sample)
{
    size_t count = json_array_size(array);

    if (!json_is_array(array) || count > SEEP_EXTERNAL_MAPPINGS_MAX) {
        return false;
    }
    sample->mappings = calloc(count + 1, sizeof(*sample->mappings));
    for (size_t i = 0; sample->mappings != NULL && i < count; i++) {
        struct seep_external_mapping *mapping = &sample->mappings[i];
        if (!take_mapping(json_array_get(array, i), mapping)) {
            return false;
        }
        sample->mapping_count++;
        if (i > 0 && mapping->start < sample->mappings[i - 1].end) {
            return false;
        }
    }
    return sample->mappings != NULL;
}

/* Samples of before have none. */
static bool take_open_file(const json_t *name,
                           struct seep_external_sample *sample)
{
    const char *text = json_string_value(name);

    if (text != NULL && strlen(text) < sizeof(sample->open_file)) {
        memcpy(sample->open_file, text, strlen(text) + 1);
    }
    return name == NULL || text != NULL;
}

static bool take_sample(const json_t *object,
                        struct seep_external_sample *sample)
{
    const json_t *time = json_object_get(object, "t_s");

    sample->t_s = json_number_value(time);
    return json_is_number(time) && sample->t_s >= 0 &&
           sample->t_s <= TIME_S_MAX &&
           take_sizes(object, sample_sizes, sample) &&
           take_open_file(json_object_get(object, "open_file"), sample) &&
           take_mappings(json_object_get(object, "mappings"), sample);
}

static int add_sample(const json_t *object,
                      struct seep_external_samples *samples)
{
    struct seep_external_sample sample = {0};
    int error = -EBADMSG;

    if (samples->count < SEEP_EXTERNAL_SAMPLES_MAX &&
        take_sample(object, &sample)) {
        error = seep_external_samples_add(samples, &sample);
    }
    seep_external_sample_fini(&sample);
    return error == -EINVAL ? -EBADMSG : error;
}

int seep_external_samples_parse(const char *bytes, size_t length,
                                const char *recording_path,
                                struct seep_external_samples *ret_samples)
{
    struct seep_beside_lines lines = {bytes, bytes + length};
    struct seep_external_samples samples = {0};
    json_t *object;
    int error = seep_beside_check(&kind, &lines, recording_path);

    while (error == 0 &&
           (error = seep_beside_next(&kind, &lines, &object)) > 0) {
        error = add_sample(object, &samples);
        json_decref(object);
    }
    if (error < 0) {
        seep_external_samples_fini(&samples);
        return error;
    }
    *ret_samples = samples;
    return 0;
}

int seep_external_samples_read(const char *recording_path,
                               struct seep_external_samples *ret_samples)
{
    char *bytes = NULL;
    size_t length = 0;
    int error = seep_beside_read(&kind, recording_path, &bytes, &length);

    if (error == 0) {
        error = seep_external_samples_parse(bytes, length, recording_path,
                                            ret_samples);
    }
    free(bytes);
    return error;
}

int seep_external_samples_read_of(const char *recording_path,
                                  const struct seep_packed *packed,
                                  struct seep_external_samples *ret_samples)
{
    const struct seep_pack_part *part;
    void *text;
    int error;

    if (packed->pack == NULL) {
        return seep_external_samples_read(recording_path, ret_samples);
    }
    part = seep_pack_find(packed->pack, SEEP_PACK_SAMPLES, packed->process);
    error =
        part == NULL ? -ENOENT : seep_pack_inflate(packed->pack, part, &text);
    if (error == 0) {
        error = seep_external_samples_parse(text, part->bytes, "", ret_samples);
        free(text);
    }
    return error;
}
