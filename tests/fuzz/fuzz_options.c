/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for SEEP_* of an environment: the input is one, a variable
 * a line, and the first line the name of the program. What is taken of it is
 * text that ends, and figures within their limits.
 */
#include <stdlib.h>
#include <string.h>

#include "format/layout.h"
#include "preload/options.h"

#define VARIABLES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_end(const char *text, size_t size)
{
    if (memchr(text, '\0', size) == NULL) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *environment[VARIABLES + 1] = {NULL};
    char *text = malloc(size + 1);
    char *rest = NULL;
    char *name;
    int count = 0;

    if (text == NULL) {
        abort();
    }
    memcpy(text, data, size);
    text[size] = '\0';
    name = strtok_r(text, "\n", &rest);
    for (char *line = NULL;
         count < VARIABLES && (line = strtok_r(NULL, "\n", &rest)) != NULL;) {
        environment[count++] = line;
    }
    seep_options_read(environment, name != NULL ? name : "");
    must_end(seep_options.pattern, sizeof(seep_options.pattern));
    must_end(seep_options.fallback_folder,
             sizeof(seep_options.fallback_folder));
    must_end(seep_options.labels, sizeof(seep_options.labels));
    must_end(seep_options.rejected, sizeof(seep_options.rejected));
    if (seep_options.sample_log2 > 63 ||
        seep_options.size_bytes < SEEP_LAYOUT_LEAST_BYTES ||
        seep_options.size_bytes > SEEP_LAYOUT_MOST_BYTES) {
        abort();
    }
    free(text);
    return 0;
}
