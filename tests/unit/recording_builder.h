/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Recordings made by hand, for the tests of who reads them: laid out, filled
 * and folded by the format layer alone, in memory, then written to a file.
 *
 * What fails ends the test program by abort(): a builder that cannot build is
 * no result.
 */
#ifndef SEEP_TESTS_RECORDING_BUILDER_H
#define SEEP_TESTS_RECORDING_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/fold.h"
#include "format/view.h"

struct recording_builder {
    void *bytes;
    size_t size_bytes;
    struct seep_view view;
    struct seep_fold fold;
    uint64_t *positions; /* next one in each shard's ring */
};

#define BUILDER_PATH_BYTES 64

/** Ticks of a whole second, rounded down. */
#define BUILDER_TICKS_PER_S 953U

/** A recording of @size_bytes of a process that is not there. */
void builder_init(struct recording_builder *builder, uint64_t size_bytes,
                  bool exact);
/** The same with the sections of @layout; if @fd is not -1, in that file. */
void builder_init_layout(struct recording_builder *builder,
                         const struct seep_rec_header *layout, int fd);

/** The same in a file that is mapped shared, as a worker has it. */
void builder_init_shared(struct recording_builder *builder, const char *path,
                         uint64_t size_bytes, bool exact);
void builder_init_inert(struct recording_builder *builder,
                        enum seep_inert_reason reason);
void builder_fini(struct recording_builder *builder);

/** After a change of the header's fixed part. */
void builder_seal(struct recording_builder *builder);

seep_string builder_string(struct recording_builder *builder, const char *text);
/** @return its id; the build-id is twenty times @build_id */
uint32_t builder_module(struct recording_builder *builder, const char *path,
                        uint8_t build_id);
uint64_t builder_frame(uint32_t module, uint64_t offset);
/** An entry of CODES that is new. @return its index */
uint32_t builder_code(struct recording_builder *builder,
                      enum seep_code_kind kind, const char *file,
                      const char *name, uint32_t first_line);
/** The frame of @line in code @code. */
uint64_t builder_code_frame(uint32_t code, uint32_t line);
uint32_t builder_stack(struct recording_builder *builder,
                       const uint64_t *frames, uint32_t count);
uint32_t builder_site(struct recording_builder *builder, uint32_t stack,
                      enum seep_space space);
/** The same in the memory of a device, by its ordinal. */
uint32_t builder_site_of_device(struct recording_builder *builder,
                                uint32_t stack, enum seep_space space,
                                uint32_t ordinal);

/** Push one event; folds the shard first when its ring is full. */
void builder_push(struct recording_builder *builder, enum seep_event_kind kind,
                  uint64_t address, uint64_t size, uint32_t site,
                  uint32_t tick);
void builder_alloc(struct recording_builder *builder, uint64_t address,
                   uint64_t size, uint32_t site, uint32_t tick);
void builder_free(struct recording_builder *builder, uint64_t address,
                  uint32_t tick);
void builder_fold(struct recording_builder *builder);

/** Entry @index of the timeline. */
void builder_moment(struct recording_builder *builder, uint32_t index,
                    uint32_t tick, uint64_t rss_bytes, uint64_t units);
/** Entry @index of device @ordinal; what is not given is 0. */
void builder_device(struct recording_builder *builder, uint32_t ordinal,
                    uint32_t index, uint32_t tick, uint64_t total_bytes,
                    uint64_t free_bytes);
/** What PyTorch's cache said of itself then. */
void builder_cache(struct recording_builder *builder, uint32_t ordinal,
                   uint32_t index, uint64_t reserved_bytes,
                   uint64_t allocated_bytes);
/** What the program said at @tick; of a moment @text is "". */
void builder_mark(struct recording_builder *builder, enum seep_mark_kind kind,
                  uint32_t tick, const char *name, const char *text);
void builder_exit(struct recording_builder *builder, uint32_t tick);

void builder_write(const struct recording_builder *builder, const char *path);

/** Make an empty file in /tmp, for builder_write(); who asked removes it. */
void builder_temporary(char ret_path[BUILDER_PATH_BYTES]);

/**
 * A small recording with something of everything: modules, stacks, a leak, a
 * cache, churn, a mapping, pending events, a torn site, a timeline, a device
 * with tensors. The run took 100 s.
 */
void builder_init_sample(struct recording_builder *builder);

/**
 * What the series of @site is, or would be: of a brief, or of totals that say
 * all, it is put into @scratch. @return NULL: it has none
 */
const struct seep_rec_series *builder_series(const struct seep_view *view,
                                             uint32_t site,
                                             struct seep_rec_series *scratch);

#endif
