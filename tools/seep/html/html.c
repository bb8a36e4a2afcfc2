/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A page: what was put together when seep was built, with data in its middle.
 *
 * Invariant: of what a recording says there is nothing in a page but letters,
 * digits, +, / and = of base64.
 */
#include "html/html.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options/option.h"

#ifdef SEEP_HAVE_HTML
#define IS_THERE true
#else
#define IS_THERE false
#endif

int seep_html_check(const char *verb, const char *path, const char *other)
{
    if (path == NULL) {
        return 0;
    }
    if (other != NULL) {
        return seep_say_usage(verb, "--%s cannot be combined with --html",
                              other);
    }
    if (!IS_THERE) {
        seep_say(
            "html", "this seep was built without a page",
            "build it with -Dhtml=enabled, which names what it needs: d3 and zlib");
        return SEEP_EXIT_FAILED;
    }
    return 0;
}

#ifndef SEEP_HAVE_HTML

int seep_html_write_reports(FILE *file,
                            const struct seep_report *const *reports,
                            size_t count, size_t refused_count,
                            const struct seep_json_options *options)
{
    (void)file;
    (void)reports;
    (void)count;
    (void)refused_count;
    (void)options;
    return -ENOTSUP;
}

int seep_html_reports(const char *path,
                      const struct seep_report *const *reports, size_t count,
                      size_t refused_count,
                      const struct seep_json_options *options)
{
    (void)path;
    (void)reports;
    (void)count;
    (void)refused_count;
    (void)options;
    return -ENOTSUP;
}

int seep_html_diff(const char *path, const struct seep_diff_set *set,
                   const struct seep_report *const *before, size_t before_count,
                   const struct seep_report *const *now, size_t now_count)
{
    (void)path;
    (void)set;
    (void)before;
    (void)before_count;
    (void)now;
    (void)now_count;
    return -ENOTSUP;
}

#else

#define ZLIB_CONST
#include <zlib.h>

/* Made by embed.py: all before the data, and all behind them. */
extern const unsigned char seep_html_head[];
extern const size_t seep_html_head_bytes;
extern const unsigned char seep_html_tail[];
extern const size_t seep_html_tail_bytes;

/*
 * A stream whose text goes compressed and in base64 into another.
 */

#define LINE_BYTES 57U /* of data: 76 characters */
#define GZIP_WINDOW (15 + 16)

struct squeeze {
    FILE *file;
    z_stream zlib;
    int error;
    unsigned char line[LINE_BYTES];
    size_t filled;
};

static void put_line(struct squeeze *squeeze)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[LINE_BYTES / 3 * 4 + 1];
    size_t length = 0;

    for (size_t i = 0; i < squeeze->filled; i += 3) {
        size_t left = squeeze->filled - i;
        unsigned bits = (unsigned)squeeze->line[i] << 16;

        bits |= left > 1 ? (unsigned)squeeze->line[i + 1] << 8 : 0;
        bits |= left > 2 ? (unsigned)squeeze->line[i + 2] : 0;
        text[length++] = digits[bits >> 18];
        text[length++] = digits[bits >> 12 & 63];
        text[length++] = left > 1 ? digits[bits >> 6 & 63] : '=';
        text[length++] = left > 2 ? digits[bits & 63] : '=';
    }
    text[length++] = '\n';
    squeeze->filled = 0;
    if (fwrite(text, 1, length, squeeze->file) != length) {
        squeeze->error = -EIO;
    }
}

static void put(struct squeeze *squeeze, const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        squeeze->line[squeeze->filled++] = data[i];
        if (squeeze->filled == LINE_BYTES) {
            put_line(squeeze);
        }
    }
}

/* Take @size bytes of @data; at the end, all that is left. */
static void press(struct squeeze *squeeze, const char *data, size_t size,
                  int flush)
{
    unsigned char out[16384];
    int answer;

    squeeze->zlib.next_in = (const Bytef *)data;
    squeeze->zlib.avail_in = (uInt)size;
    do {
        squeeze->zlib.next_out = out;
        squeeze->zlib.avail_out = sizeof(out);
        answer = deflate(&squeeze->zlib, flush);
        put(squeeze, out, sizeof(out) - squeeze->zlib.avail_out);
    } while (squeeze->zlib.avail_out == 0 && answer == Z_OK &&
             squeeze->error == 0);
}

static ssize_t squeeze_write(void *cookie, const char *data, size_t size)
{
    struct squeeze *squeeze = cookie;
    size_t taken = size < (size_t)1 << 30 ? size : (size_t)1 << 30;

    press(squeeze, data, taken, Z_NO_FLUSH);
    return squeeze->error == 0 ? (ssize_t)taken : 0;
}

/* @return the stream to write to, to be closed by squeeze_close(); NULL: no
 * memory */
static FILE *squeeze_open(struct squeeze *squeeze, FILE *file)
{
    static const cookie_io_functions_t functions = {.write = squeeze_write};
    FILE *stream;

    memset(squeeze, 0, sizeof(*squeeze));
    squeeze->file = file;
    if (deflateInit2(&squeeze->zlib, Z_BEST_COMPRESSION, Z_DEFLATED,
                     GZIP_WINDOW, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        return NULL;
    }
    stream = fopencookie(squeeze, "w", functions);
    if (stream == NULL) {
        deflateEnd(&squeeze->zlib);
    }
    return stream;
}

static int squeeze_close(struct squeeze *squeeze, FILE *stream)
{
    bool failed = fclose(stream) != 0;

    press(squeeze, "", 0, Z_FINISH);
    if (squeeze->filled > 0) {
        put_line(squeeze);
    }
    deflateEnd(&squeeze->zlib);
    return failed && squeeze->error == 0 ? -EIO : squeeze->error;
}

/*
 * Pages.
 */

/* What a page shows: one of the two. */
struct content {
    const struct seep_diff_set *diff; /* NULL: one run */
    const struct seep_report *const *before;
    size_t before_count;
    const struct seep_report *const *reports;
    size_t count;
    size_t refused_count;
    const struct seep_json_options *options;
};

static int put_text(FILE *file, const char *text)
{
    return fputs(text, file) == EOF ? -EIO : 0;
}

static int put_data(FILE *file, const struct content *content)
{
    struct seep_json_options options = *content->options;
    int error = put_text(file, "{\"schema\": \"seep-page/1\",\n\"diff\": ");

    options.for_page = true;
    if (error == 0) {
        error = content->diff != NULL ? seep_json_diff(file, content->diff, 0)
                                      : put_text(file, "null");
    }
    error = error == 0 ? put_text(file, ",\n\"before\": ") : error;
    if (error == 0) {
        error = content->diff != NULL
                    ? seep_json_reports(file, content->before,
                                        content->before_count, 0, &options)
                    : put_text(file, "null");
    }
    error = error == 0 ? put_text(file, ",\n\"report\": ") : error;
    if (error == 0) {
        error = seep_json_reports(file, content->reports, content->count,
                                  content->refused_count, &options);
    }
    return error == 0 ? put_text(file, "}\n") : error;
}

static int write_page(FILE *file, const struct content *content)
{
    struct squeeze squeeze;
    FILE *stream;
    int error;
    int closed;

    fwrite(seep_html_head, 1, seep_html_head_bytes, file);
    stream = squeeze_open(&squeeze, file);
    if (stream == NULL) {
        return -ENOMEM;
    }
    error = put_data(stream, content);
    closed = squeeze_close(&squeeze, stream);
    fwrite(seep_html_tail, 1, seep_html_tail_bytes, file);
    error = error == 0 ? closed : error;
    return error == 0 && (fflush(file) != 0 || ferror(file)) ? -EIO : error;
}

static int write_file(const char *path, const struct content *content)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    struct stat stat;
    bool is_file;
    int error;

    if (file == NULL) {
        return -errno;
    }
    is_file = fstat(fileno(file), &stat) == 0 && S_ISREG(stat.st_mode);
    error = write_page(file, content);
    if (file == stdout) {
        return error;
    }
    if (fclose(file) != 0 && error == 0) {
        error = -errno;
    }
    if (error != 0 && is_file) {
        unlink(path);
    }
    return error;
}

int seep_html_write_reports(FILE *file,
                            const struct seep_report *const *reports,
                            size_t count, size_t refused_count,
                            const struct seep_json_options *options)
{
    struct content content = {
        .reports = reports,
        .count = count,
        .refused_count = refused_count,
        .options = options,
    };

    return write_page(file, &content);
}

int seep_html_reports(const char *path,
                      const struct seep_report *const *reports, size_t count,
                      size_t refused_count,
                      const struct seep_json_options *options)
{
    struct content content = {
        .reports = reports,
        .count = count,
        .refused_count = refused_count,
        .options = options,
    };

    return write_file(path, &content);
}

int seep_html_diff(const char *path, const struct seep_diff_set *set,
                   const struct seep_report *const *before, size_t before_count,
                   const struct seep_report *const *now, size_t now_count)
{
    struct seep_json_options options = {.site_limit = 0};
    struct content content = {
        .diff = set,
        .before = before,
        .before_count = before_count,
        .reports = now,
        .count = now_count,
        .refused_count = set->refused_count,
        .options = &options,
    };

    return write_file(path, &content);
}

#endif
