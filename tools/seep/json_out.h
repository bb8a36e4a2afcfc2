/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A JSON document that is printed piece by piece, so that its size is no
 * matter of memory: what lies between the pieces is the caller's to write.
 *
 * The first error stays and stops everything after it.
 */
#ifndef SEEP_TOOL_JSON_OUT_H
#define SEEP_TOOL_JSON_OUT_H

#include <jansson.h>
#include <stdio.h>

struct seep_json_out {
    FILE *file;
    int error; /* 0; -ENOMEM; -EIO if the stream took less */
};

/** As it is: brackets, commas, keys. */
void seep_json_out_raw(struct seep_json_out *out, const char *text);
/** Takes @value, on one line. */
void seep_json_out_line(struct seep_json_out *out, json_t *value);
/** The same without its own brackets: members of an object begun by hand. */
void seep_json_out_members(struct seep_json_out *out, json_t *object);
/** Takes @value, indented. */
void seep_json_out_value(struct seep_json_out *out, json_t *value);

/** The last line end. @return .error */
int seep_json_out_finish(struct seep_json_out *out);

#endif
