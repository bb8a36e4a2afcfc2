/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pieces of a JSON document. Invariant: a value given is given back, printed
 * or not, and what is printed is ASCII: a document may end on a terminal, and
 * U+009B begins an escape there, while \u009b does not.
 */
#include "json_out.h"

#include <errno.h>

#define FORM (JSON_REAL_PRECISION(12) | JSON_ENSURE_ASCII)

void seep_json_out_raw(struct seep_json_out *out, const char *text)
{
    if (out->error == 0 && fputs(text, out->file) == EOF) {
        out->error = -EIO;
    }
}

static void print(struct seep_json_out *out, json_t *value, size_t flags)
{
    if (out->error == 0 && value == NULL) {
        out->error = -ENOMEM;
    }
    if (out->error == 0 && json_dumpf(value, out->file, flags) != 0) {
        out->error = -EIO;
    }
    json_decref(value);
}

void seep_json_out_line(struct seep_json_out *out, json_t *value)
{
    print(out, value, JSON_COMPACT | FORM);
}

void seep_json_out_members(struct seep_json_out *out, json_t *object)
{
    print(out, object, JSON_COMPACT | JSON_EMBED | FORM);
}

void seep_json_out_value(struct seep_json_out *out, json_t *value)
{
    print(out, value, JSON_INDENT(1) | JSON_ENCODE_ANY | FORM);
}

int seep_json_out_finish(struct seep_json_out *out)
{
    seep_json_out_raw(out, "\n");
    if (out->error == 0 && (fflush(out->file) != 0 || ferror(out->file))) {
        out->error = -EIO;
    }
    return out->error;
}
