/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the command takes memory, and whether an allocation has failed. Of a
 * hundred of them most are of one cell or one sentence, which is left out then:
 * what was printed is not whole, and whoever reads it must know.
 *
 * Invariant: the linker sends each call of seep's own code through here (--wrap
 * in meson.build, which has the same names); what libraries do is theirs.
 */
#include "memory.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From here on an array has pages of its own, which go back when it is freed:
 * without it glibc keeps up to 55 MB that a large report has done with. */
#define ARRAY_BYTES (1 << 20)

static atomic_bool has_failed;

void seep_memory_init(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, ARRAY_BYTES);
#endif
}

bool seep_memory_has_failed(void)
{
    return atomic_load_explicit(&has_failed, memory_order_relaxed);
}

static void note(bool failed)
{
    if (failed) {
        atomic_store_explicit(&has_failed, true, memory_order_relaxed);
    }
}

/* Of no bytes there may be nothing. */
#define WRAP(function, parameters, arguments, bytes)                      \
    extern void *real_##function parameters __asm__("__real_" #function); \
    extern void *wrap_##function parameters __asm__("__wrap_" #function); \
    void *wrap_##function parameters                                      \
    {                                                                     \
        void *result = real_##function arguments;                         \
                                                                          \
        note(result == NULL && (bytes) != 0);                             \
        return result;                                                    \
    }

WRAP(malloc, (size_t size), (size), size)
WRAP(calloc, (size_t count, size_t size), (count, size), count *size)
WRAP(realloc, (void *block, size_t size), (block, size), size)
WRAP(strdup, (const char *text), (text), 1)
WRAP(strndup, (const char *text, size_t most), (text, most), 1)

extern int real_vasprintf(char **text, const char *format,
                          va_list arguments) __asm__("__real_vasprintf");
extern int wrap_vasprintf(char **text, const char *format,
                          va_list arguments) __asm__("__wrap_vasprintf");
extern int wrap_asprintf(char **text, const char *format,
                         ...) __asm__("__wrap_asprintf");

int wrap_vasprintf(char **text, const char *format, va_list arguments)
{
    int length = real_vasprintf(text, format, arguments);

    note(length < 0);
    return length;
}

int wrap_asprintf(char **text, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = wrap_vasprintf(text, format, arguments);
    va_end(arguments);
    return length;
}

/* libc's does not tell when it can grow no more. */
struct stream {
    char **text;
    size_t *bytes;
};

static ssize_t stream_write(void *cookie, const char *data, size_t size)
{
    const struct stream *stream = cookie;
    char *text = realloc(*stream->text, *stream->bytes + size + 1);

    if (text == NULL) {
        return 0;
    }
    memcpy(text + *stream->bytes, data, size);
    *stream->text = text;
    *stream->bytes += size;
    text[*stream->bytes] = '\0';
    return (ssize_t)size;
}

/* ftell() asks where it is; it goes nowhere else. */
static int stream_seek(void *cookie, off64_t *offset, int whence)
{
    const struct stream *stream = cookie;

    if (whence != SEEK_CUR || *offset != 0) {
        return -1;
    }
    *offset = (off64_t)*stream->bytes;
    return 0;
}

static int stream_close(void *cookie)
{
    free(cookie);
    return 0;
}

extern FILE *
wrap_open_memstream(char **text,
                    size_t *bytes) __asm__("__wrap_open_memstream");

FILE *wrap_open_memstream(char **text, size_t *bytes)
{
    static const cookie_io_functions_t functions = {
        .write = stream_write, .seek = stream_seek, .close = stream_close};
    struct stream *stream = malloc(sizeof(*stream));
    FILE *file = NULL;

    *text = calloc(1, 1);
    *bytes = 0;
    if (stream != NULL && *text != NULL) {
        *stream = (struct stream){.text = text, .bytes = bytes};
        file = fopencookie(stream, "w", functions);
        note(file == NULL);
    }
    if (file == NULL) {
        free(stream);
        free(*text);
        *text = NULL;
    }
    return file;
}
