/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See small.h: geometry, damage, mutation; what is shrunk is in shrink.c. */
#include "small.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "format/layout.h"

#define INPUT_HEAD_BYTES 2U

static_assert(sizeof(struct small_patch) == 14, "a patch has no gaps");

struct seed {
    struct recording_builder damaged; /* of the file */
    struct seep_view honest;
    int fd;
    uint32_t used[SEEP_SECTION_COUNT + 1]; /* entries with something in them */
};

struct undo {
    void *at;
    uint64_t bytes;
    size_t count;
};

static struct seed seeds[SMALL_SEEDS_MAX];
static size_t seed_count;

static bool is_zero(const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Entries up to the last that is not zero. */
static void count_used(struct seed *seed)
{
    const struct seep_rec_header *header = seed->honest.header;

    for (unsigned i = 0; i < SEEP_SECTION_COUNT; i++) {
        const struct seep_rec_section *part = &header->sections[i];
        const char *at = (const char *)header + part->offset_bytes;
        uint32_t used = part->entry_count;

        while (used > 0 && is_zero(at + (size_t)(used - 1) * part->entry_bytes,
                                   part->entry_bytes)) {
            used--;
        }
        seed->used[i] = used;
    }
    seed->used[SEEP_SECTION_COUNT] = 1;
}

static void add_seed(const char *path)
{
    struct seed *seed = &seeds[seed_count];
    struct recording_builder small;

    if (seed_count >= SMALL_SEEDS_MAX) {
        return;
    }
    if (!small_shrink(path, &small)) {
        fprintf(stderr, "%s: not of this format: tests/fuzz/record\n", path);
        return;
    }
    seed->fd = memfd_create("seep-fuzz", MFD_CLOEXEC);
    builder_init_layout(&seed->damaged, small.view.header, seed->fd);
    memcpy(seed->damaged.bytes, small.bytes, small.size_bytes);
    seed->honest = small.view; /* its memory stays */
    free(small.positions);
    count_used(seed);
    seed_count++;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* By name, so that a number means the same seed every day. */
static void add_folder(const char *folder)
{
    struct dirent *entry;
    char *paths[SMALL_SEEDS_MAX];
    size_t count = 0;
    DIR *open = opendir(folder);

    while (open != NULL && (entry = readdir(open)) != NULL) {
        if (entry->d_name[0] != '.' && count < SMALL_SEEDS_MAX - 1 &&
            asprintf(&paths[count], "%s/%s", folder, entry->d_name) > 0) {
            count++;
        }
    }
    if (open != NULL) {
        closedir(open);
    }
    qsort(paths, count, sizeof(*paths), compare_names);
    for (size_t i = 0; i < count; i++) {
        add_seed(paths[i]);
        free(paths[i]);
    }
}

size_t small_seeds(void)
{
    const char *folder = getenv("SEEP_FUZZ_SEEDS");

    if (seed_count == 0) {
        add_seed(NULL);
        add_folder(folder != NULL ? folder : SEEP_FUZZ_SEEDS);
    }
    return seed_count;
}

const struct seep_view *small_honest(size_t seed)
{
    return &seeds[seed].honest;
}

static uint64_t read_bytes(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0;

    memcpy(&value, bytes, count);
    return value;
}

/* Where @patch goes; NULL: nowhere. Mostly to what is in use, at times to the
 * first that is not. */
static char *place(const struct seed *seed, const struct small_patch *patch,
                   size_t bytes)
{
    unsigned which = patch->section % (SEEP_SECTION_COUNT + 1);
    const struct seep_rec_header *header = seed->honest.header;
    struct seep_rec_section whole = {.entry_bytes = SEEP_PAGE_BYTES,
                                     .entry_count = 1};
    const struct seep_rec_section *part =
        which < SEEP_SECTION_COUNT ? &header->sections[which] : &whole;
    uint32_t most = seed->used[which] + 1 < part->entry_count
                        ? seed->used[which] + 1
                        : part->entry_count;
    size_t at = part->offset_bytes;

    if (most == 0) {
        return NULL;
    }
    at += read_bytes(patch->entry, 2) % most * (size_t)part->entry_bytes;
    at += read_bytes(patch->half_word, 2) * 2 % part->entry_bytes;
    return at + bytes <= seed->damaged.size_bytes
               ? (char *)seed->damaged.bytes + at
               : NULL;
}

static void apply(const struct seed *seed, const struct small_patch *patch,
                  struct undo *ret_undo)
{
    size_t bytes = (size_t)1 << (patch->how & 3);
    char *at = place(seed, patch, bytes);
    uint64_t value = read_bytes(patch->value, 8);

    *ret_undo = (struct undo){.at = at, .count = bytes};
    if (at == NULL) {
        return;
    }
    memcpy(&ret_undo->bytes, at, bytes);
    if ((patch->how & SMALL_ADDS) != 0) {
        value += ret_undo->bytes;
    }
    memcpy(at, &value, bytes);
}

/* What says where everything is, as it was; or a hash that confirms it. */
static void mend(const struct seed *seed, uint8_t flags)
{
    struct seep_rec_header *header = seed->damaged.view.header;
    const struct seep_rec_header *whole = seed->honest.header;

    if ((flags & SMALL_KEEPS_LAYOUT) == 0) {
        memcpy(header, whole, offsetof(struct seep_rec_header, fixed_hash));
        memcpy(header->sections, whole->sections, sizeof(whole->sections));
        header->file_bytes = whole->file_bytes;
        header->inert = whole->inert;
        header->shard_count = whole->shard_count;
        header->ring_slots = whole->ring_slots;
        header->live_slots = whole->live_slots;
        header->range_slots = whole->range_slots;
        seep_word_store(&header->ready, SEEP_PUBLISHED);
    }
    if ((flags & SMALL_KEEPS_HASH) == 0) {
        header->fixed_hash = seep_layout_fixed_hash(header);
    }
}

bool small_damage(const uint8_t *data, size_t size, struct small *ret_small)
{
    static struct undo undone[SMALL_PATCHES_MAX];
    static size_t undo_count;
    static struct seed *last;
    struct seed *seed;

    if (size < INPUT_HEAD_BYTES) {
        return false;
    }
    while (undo_count > 0) {
        const struct undo *undo = &undone[--undo_count];

        if (undo->at != NULL) {
            memcpy(undo->at, &undo->bytes, undo->count);
        }
    }
    seed = &seeds[(data[1] & SMALL_SEED_MASK) % small_seeds()];
    if (last != NULL) {
        memcpy(last->damaged.bytes, last->honest.header, SEEP_PAGE_BYTES);
    }
    last = seed;
    for (size_t at = INPUT_HEAD_BYTES; at + sizeof(struct small_patch) <= size;
         at += sizeof(struct small_patch)) {
        struct small_patch patch;

        if (undo_count == SMALL_PATCHES_MAX) {
            break;
        }
        memcpy(&patch, data + at, sizeof(patch));
        apply(seed, &patch, &undone[undo_count++]);
    }
    mend(seed, data[1]);
    *ret_small = (struct small){.view = &seed->damaged.view,
                                .bytes = seed->damaged.bytes,
                                .size_bytes = seed->damaged.size_bytes,
                                .fd = seed->fd,
                                .seed = (size_t)(seed - seeds),
                                .first = data[0]};
    return true;
}

/*
 * Mutation.
 */

static uint32_t next(uint32_t *random, uint32_t below)
{
    *random = *random * 1103515245U + 12345U;
    return (*random >> 8) % below;
}

/* An index, a count, a size, a tick, a float: what fields are made of. */
static uint64_t value_for(uint32_t *random)
{
    static const uint64_t odd[] = {
        0, 1, 2, 3, 5, 6, 7, 8, 31, 32, 63, 64, 127, 128, 255, 256, 4095, 4096,
        INT32_MAX, UINT32_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 48) - 1,
        UINT64_C(1) << 52, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX,
        SEEP_SERIES_IS_BRIEF, SEEP_SERIES_IS_BRIEF | 1, SEEP_FRAME_IS_CODE,
        /* floats: NaN, infinity, the largest, -1, each twice in a word */
        UINT64_C(0x7fc000007fc00000), UINT64_C(0x7f8000007f800000),
        UINT64_C(0x7f7fffff7f7fffff), UINT64_C(0xbf800000bf800000)};
    uint64_t value;

    switch (next(random, 5)) {
    case 0:
        return next(random, 40);
    case 1:
        return UINT64_C(1) << next(random, 64);
    case 2:
        value = (uint64_t)next(random, 1 << 24) << 24 | next(random, 1 << 24);
        return value >> next(random, 48);
    default:
        return odd[next(random, sizeof(odd) / sizeof(odd[0]))];
    }
}

static void write_value(struct small_patch *patch, uint64_t value)
{
    memcpy(patch->value, &value, sizeof(patch->value));
}

static struct small_patch make_patch(uint32_t *random)
{
    struct small_patch patch = {
        .section = (uint8_t)next(random, SEEP_SECTION_COUNT + 1),
        .how = (uint8_t)next(random, 8),
        .entry = {(uint8_t)next(random, 40), 0},
        .half_word = {(uint8_t)next(random, 256), 0},
    };

    if (next(random, 4) == 0) {
        patch.entry[0] = (uint8_t)next(random, 256);
        patch.entry[1] = (uint8_t)next(random, 16);
        patch.half_word[1] = (uint8_t)next(random, 24);
    }
    write_value(&patch, value_for(random));
    return patch;
}

static void change(struct small_patch *patch, uint32_t *random)
{
    switch (next(random, 5)) {
    case 0:
        write_value(patch, value_for(random));
        break;
    case 1:
        patch->entry[0] = (uint8_t)(patch->entry[0] + next(random, 3) - 1);
        break;
    case 2:
        patch->half_word[0] =
            (uint8_t)(patch->half_word[0] + 2 * next(random, 5) - 4);
        break;
    case 3:
        patch->how = (uint8_t)next(random, 8);
        break;
    default:
        LLVMFuzzerMutate(patch->value, sizeof(patch->value),
                         sizeof(patch->value));
        break;
    }
}

size_t small_mutate(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    const size_t bytes = sizeof(struct small_patch);
    uint32_t random = seed;
    size_t count =
        size < INPUT_HEAD_BYTES ? 0 : (size - INPUT_HEAD_BYTES) / bytes;
    struct small_patch patch;
    uint8_t *at;

    if (size < INPUT_HEAD_BYTES) {
        memset(data, 0, INPUT_HEAD_BYTES);
    }
    at = data + INPUT_HEAD_BYTES +
         bytes * (count == 0 ? 0 : next(&random, (uint32_t)count));
    switch (next(&random, 8)) {
    case 0: /* another view, or another seed */
        data[next(&random, 2)] ^= (uint8_t)(1U << next(&random, 6));
        return INPUT_HEAD_BYTES + count * bytes;
    case 1:
        data[1] ^=
            next(&random, 8) == 0 ? SMALL_KEEPS_HASH : SMALL_KEEPS_LAYOUT;
        return INPUT_HEAD_BYTES + count * bytes;
    case 2: /* one less */
        if (count > 1) {
            memmove(at, at + bytes,
                    (size_t)(data + INPUT_HEAD_BYTES + count * bytes - at) -
                        bytes);
            count--;
        }
        return INPUT_HEAD_BYTES + count * bytes;
    case 3:
    case 4:
        if (count > 0) {
            memcpy(&patch, at, bytes);
            change(&patch, &random);
            memcpy(at, &patch, bytes);
            return INPUT_HEAD_BYTES + count * bytes;
        }
        break;
    default:
        break;
    }
    if (count < SMALL_PATCHES_MAX &&
        INPUT_HEAD_BYTES + (count + 1) * bytes <= most) {
        patch = make_patch(&random);
        memcpy(data + INPUT_HEAD_BYTES + count * bytes, &patch, bytes);
        count++;
    }
    return INPUT_HEAD_BYTES + count * bytes;
}
