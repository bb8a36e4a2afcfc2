/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Writing packs: what of recordings goes into one (write.c), the names and the
 * lines of source of what is in their stacks (names.c), and what takes the
 * place of what is not to leave the house (redact.c).
 *
 * Errors: 0 or negative errno; ret_* untouched on failure, save a refusal.
 * Nothing is printed. Threads: one at a time.
 */
#ifndef SEEP_TOOL_PACK_PACK_H
#define SEEP_TOOL_PACK_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/view.h"
#include "held/kept.h"
#include "reader/process/sample.h"
#include "reader/recording/store.h"
#include "reader/report/report.h"
#include "reader/symbols/packed.h"
#include "reader/symbols/symbolise.h"

/*
 * Redaction. Invariant: what is equal is replaced by what is equal, over all
 * recordings of a pack, and what call sites are told by stays: the names of
 * functions, files and modules, lines, offsets.
 */

/** Start from an all-zero struct. */
struct seep_redaction {
    struct seep_store store;
    struct seep_store_table texts; /* by kind and text: what stands for it */
    unsigned counts[8];            /* of each kind so far */
};

void seep_redaction_fini(struct seep_redaction *redaction);

/** A path whose folders are replaced but for the system's, and what is behind
 * site-packages or lib/python3.11. NULL: no memory. */
const char *seep_redact_path(struct seep_redaction *redaction,
                             const char *path);

/** The name of a recording. */
const char *seep_redact_recording(struct seep_redaction *redaction,
                                  const struct seep_view *view);

/** Of a copy of a recording: its header and its strings, in place. @return
 * -ENOSPC if what stands for its strings does not fit in */
int seep_redact_view(struct seep_redaction *redaction,
                     const struct seep_view *view);

/** Names of mappings. */
int seep_redact_samples(struct seep_redaction *redaction,
                        struct seep_external_samples *samples);

/** Files, threads, and names that are no identifiers: they may be data. */
int seep_redact_held(struct seep_redaction *redaction,
                     struct seep_held_book *book);

/*
 * The lines of source of a pack: see reader/symbols/packed.h.
 */

struct seep_sourced {
    const char *file;
    const char *text; /* NULL: it is to be read */
    uint32_t line;
};

/** Start from an all-zero struct. */
struct seep_sourcing {
    struct seep_store store;
    struct seep_sourced *lines;
    size_t count;
};

void seep_sourcing_fini(struct seep_sourcing *sourcing);

/** One line of a file, which is read later where @text is NULL; what is no
 * source is left out. */
int seep_sourcing_add(struct seep_sourcing *sourcing, const char *file,
                      uint32_t line, const char *text);
/** All that was packed before. */
int seep_sourcing_add_all(struct seep_sourcing *sourcing,
                          const struct seep_sources *sources);

/** @param ret_text  to be freed */
int seep_sourcing_finish(struct seep_sourcing *sourcing, char **ret_text,
                         size_t *ret_bytes);

/*
 * The names of a pack: see reader/symbols/packed.h.
 */

struct seep_naming;

/**
 * @param redaction  NULL: names are as they are
 * @param sourcing   what lines are added to; NULL: none
 */
int seep_naming_open(struct seep_redaction *redaction,
                     struct seep_sourcing *sourcing,
                     struct seep_naming **ret_naming);
void seep_naming_close(struct seep_naming *naming);

/**
 * Add all that is in the stacks of @view.
 *
 * @param options   .perf_map is set here
 * @param nameless  called with each file that gave up its names; NULL: is not
 */
int seep_naming_add(struct seep_naming *naming, const struct seep_view *view,
                    const struct seep_symboliser_options *options,
                    void (*nameless)(const struct seep_report_nameless *));

/** @param ret_bytes  to be freed */
int seep_naming_finish(struct seep_naming *naming, void **ret_bytes,
                       size_t *ret_size);

/*
 * The pack.
 */

struct seep_pack_options {
    bool redact;
    bool source;    /* lines of it, too */
    bool is_folder; /* PACK/NAME each, also if there is one */
    struct seep_symboliser_options symbols;
    void (*nameless)(const struct seep_report_nameless *);
    /* What could not be packed, and why; it is left out. */
    void (*refused)(const char *path, const struct seep_refusal *refusal);
    /* The file of @suffix beside a recording: the pack has the recording
     * without it. @error as of reader/process/beside.h. NULL: is not called */
    void (*left_out)(const char *path, const char *suffix, int error);
};

struct seep_pack_outcome {
    size_t packed_count;
    size_t refused_count;
    size_t left_out_count;
    uint64_t recording_bytes; /* that they take of the disk */
    uint64_t pack_bytes;
};

/**
 * Pack the recordings at @paths into @to, which is not there yet.
 *
 * @return -EEXIST, others of writing; -ENOENT: there was nothing to pack, and
 *         no file is left
 */
int seep_pack_write(const char *to, char *const *paths, size_t count,
                    const struct seep_pack_options *options,
                    struct seep_pack_outcome *ret_outcome);

/**
 * Write what is in the pack at @path into @folder: NAME, NAME.looks, NAME.held,
 * and of all PACK.names.jsonl, a line an address.
 *
 * @param replace     else a name that is taken is -EEXIST
 * @param wrote       called with each path that was written
 * @param ret_failed  on failure the path that it is of, to be freed
 */
int seep_pack_unpack(const char *path, const char *folder, bool replace,
                     void (*wrote)(const char *path), char **ret_failed,
                     struct seep_refusal *ret_refusal);

#endif
