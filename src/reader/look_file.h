/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** Parts of the file of looks, which is written and read in two files. */
#ifndef SEEP_READER_LOOK_FILE_H
#define SEEP_READER_LOOK_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/look.h"

#define SEEP_LOOK_SCHEMA "seep-looks/1"
#define SEEP_LOOK_ID_BYTES 17

/** RECORDING.looks. To be freed; NULL without memory. */
char *seep_look_file_path(const char *recording_path);

/**
 * What tells a recording from another one of that name: the hash of its fixed
 * part, in hexadecimal. @return false, and "", if it cannot be read
 */
bool seep_look_file_id(const char *recording_path, char id[SEEP_LOOK_ID_BYTES]);

/** The text of a file of looks; -ENOENT: of another recording. */
int seep_look_file_parse(const char *bytes, size_t length,
                         const char *recording_path,
                         struct seep_looks *ret_looks);

#endif
