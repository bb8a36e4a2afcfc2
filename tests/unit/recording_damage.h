/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The sample recording, damaged, then read in full: what the mutation test
 * and the fuzzer share.
 */
#ifndef SEEP_TESTS_RECORDING_DAMAGE_H
#define SEEP_TESTS_RECORDING_DAMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/report/report.h"
#include "recording_builder.h"

#define RECORDING_DAMAGE_FIELDS 68

struct recording_damage {
    struct recording_builder builder; /* damaged in place */
    void *whole;                      /* as it was */
    size_t *used;                     /* offsets of words that are not 0 */
    size_t used_count;
    int fd;      /* of a file in memory */
    unsigned by; /* which grouping is read next */
};

void recording_damage_init(struct recording_damage *damage);
void recording_damage_fini(struct recording_damage *damage);

/** As it was. */
void recording_damage_reset(struct recording_damage *damage);

/** Overwrite the word that @at chooses, mostly among those in use. */
void recording_damage_word(struct recording_damage *damage, uint64_t at,
                           uint64_t value);

/** Overwrite one field of those that index, count or measure. */
void recording_damage_field(struct recording_damage *damage, int field,
                            uint64_t value);

/** The report of what is there, as recording_damage_read(); NULL: refused. */
struct seep_report *
recording_damage_open(struct recording_damage *damage, size_t size_bytes,
                      bool sealed, const struct seep_report_options *options);

/**
 * Open what is there, as a file of @size_bytes, and read every byte of the
 * report. @sealed: with a header that its hash confirms.
 */
void recording_damage_read(struct recording_damage *damage, size_t size_bytes,
                           bool sealed);

#endif
