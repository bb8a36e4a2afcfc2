/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** Memory that lives as long as its report, given back at once. */
#ifndef SEEP_READER_REPORT_STORE_H
#define SEEP_READER_REPORT_STORE_H

#include <stddef.h>

struct seep_store_chunk;

struct seep_store {
    struct seep_store_chunk *chunks;
};

/** Zeroed memory for @count entries of @bytes; NULL when there is none. */
void *seep_store_take(struct seep_store *store, size_t count, size_t bytes);

/** A copy of @text. */
const char *seep_store_text(struct seep_store *store, const char *text);

/** A copy of its first @most bytes: many names of a damaged file may be one
 * that is as long as the file. */
const char *seep_store_text_most(struct seep_store *store, const char *text,
                                 size_t most);

void seep_store_fini(struct seep_store *store);

#endif
