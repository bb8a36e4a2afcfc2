/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines of source for a pack: those that stacks name, read once.
 *
 * Invariant: a recording is hostile, and names what it likes: only of a regular
 * file whose name ends as that of source does a line is packed.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "pack/pack.h"

#define FILE_BYTES_MAX ((off_t)16 << 20) /* longer ones are no source */

static bool is_source(const char *path)
{
    static const char *const endings[] = {
        "py", "pyx", "pxd", "pyi", "c",   "h",  "cc",  "hh", "cpp", "hpp",
        "cu", "cuh", "cxx", "hxx", "inl", "rs", "tcc", "go", "ipp"};
    const char *name = seep_text_base_name(path);
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot != NULL && i < sizeof(endings) / sizeof(*endings);
         i++) {
        if (strcmp(dot + 1, endings[i]) == 0) {
            return strchr(path, '\n') == NULL;
        }
    }
    return false;
}

int seep_sourcing_add(struct seep_sourcing *sourcing, const char *file,
                      uint32_t line, const char *text)
{
    struct seep_sourced *lines;

    if (line == 0 || !is_source(file)) {
        return 0;
    }
    lines = seep_list_grow(sourcing->lines, sourcing->count, sizeof(*lines));
    if (lines == NULL) {
        return -ENOMEM;
    }
    sourcing->lines = lines;
    file = seep_store_text(&sourcing->store, file);
    text = text == NULL ? NULL : seep_store_text(&sourcing->store, text);
    lines[sourcing->count] = (struct seep_sourced){file, text, line};
    sourcing->count += file != NULL;
    return file == NULL ? -ENOMEM : 0;
}

int seep_sourcing_add_all(struct seep_sourcing *sourcing,
                          const struct seep_sources *sources)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < sources->count; i++) {
        const struct seep_source_line *line = &sources->lines[i];

        error = seep_sourcing_add(sourcing, line->file, line->line, line->text);
    }
    return error;
}

/* By file and line; what is known already before what is to be read. */
static int compare(const void *a, const void *b)
{
    const struct seep_sourced *left = a;
    const struct seep_sourced *right = b;
    int order = strcmp(left->file, right->file);

    if (order == 0) {
        order = (left->line > right->line) - (left->line < right->line);
    }
    return order != 0 ? order : (left->text == NULL) - (right->text == NULL);
}

static FILE *open_source(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    FILE *file = NULL;

    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size <= FILE_BYTES_MAX) {
        file = fdopen(fd, "r");
    }
    if (fd >= 0 && file == NULL) {
        close(fd);
    }
    return file;
}

/* Without what it is indented by, and what is no text. */
static void put_line(FILE *to, uint32_t number, char *text)
{
    while (isspace((unsigned char)*text)) {
        text++;
    }
    text[strcspn(text, "\r\n")] = '\0';
    if (strlen(text) >= SEEP_SOURCE_LINE_BYTES_MAX) {
        text[SEEP_SOURCE_LINE_BYTES_MAX - 1] = '\0';
    }
    if (*text != '\0') {
        fprintf(to, "%u %s\n", number, text);
    }
}

/* The lines [@first, @end) are of one file. */
static void put_file(FILE *to, const struct seep_sourced *first,
                     const struct seep_sourced *end)
{
    FILE *file = open_source(first->file);
    char *text = NULL;
    size_t capacity = 0;
    uint32_t at = 0;
    uint32_t last = 0;

    fprintf(to, "=%s\n", first->file);
    for (const struct seep_sourced *line = first; line < end; line++) {
        if (line->line == last) {
            continue; /* it is there */
        }
        if (line->text != NULL) {
            fprintf(to, "%u %s\n", line->line, line->text);
            last = line->line;
            continue;
        }
        while (file != NULL && at < line->line &&
               getline(&text, &capacity, file) >= 0) {
            at++;
        }
        if (at == line->line) {
            put_line(to, line->line, text);
            last = line->line;
        }
    }
    free(text);
    if (file != NULL) {
        fclose(file);
    }
}

int seep_sourcing_finish(struct seep_sourcing *sourcing, char **ret_text,
                         size_t *ret_bytes)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    struct seep_sourced *lines = sourcing->lines;
    size_t end;

    if (to == NULL) {
        return -ENOMEM;
    }
    if (sourcing->count > 0) {
        qsort(lines, sourcing->count, sizeof(*lines), compare);
    }
    for (size_t i = 0; i < sourcing->count; i = end) {
        end = i + 1;
        while (end < sourcing->count &&
               strcmp(lines[i].file, lines[end].file) == 0) {
            end++;
        }
        put_file(to, &lines[i], &lines[end]);
    }
    if (fclose(to) != 0) {
        free(text);
        return -ENOMEM;
    }
    *ret_text = text;
    *ret_bytes = bytes;
    return 0;
}

void seep_sourcing_fini(struct seep_sourcing *sourcing)
{
    free(sourcing->lines);
    seep_store_fini(&sourcing->store);
}
