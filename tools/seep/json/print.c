/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How documents go out: printed piece by piece, and processes of a document
 * printed before their turn and copied when it comes. Invariant: what goes out
 * is ASCII and whole, or the answer says that it is not.
 */
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader/recording/store.h"

/*
 * Pieces of a document as they are printed: what jansson would print with
 * JSON_REAL_PRECISION(12) | JSON_ENSURE_ASCII, which took most of a document's
 * time, a call of fwrite() for each comma.
 *
 * Invariant: a value given is given back, printed or not, and what is printed
 * is ASCII: a document may end on a terminal, and U+009B begins an escape
 * there, while \u009b does not.
 */

#define BUFFER_BYTES 8192U
#define LINE_BYTES 512U /* of a frame it is less, mostly */
/* Of a number that is not whole. */
#define DIGITS 12U
/* Below it a whole number has its digits as it is. */
#define WHOLE_MOST 1e12

struct printer {
    FILE *file;
    bool indents;
    bool has_failed;
    unsigned depth;
    size_t used;
    char bytes[BUFFER_BYTES];
};

static void flush(struct printer *printer)
{
    if (fwrite(printer->bytes, 1, printer->used, printer->file) !=
        printer->used) {
        printer->has_failed = true;
    }
    printer->used = 0;
}

static void put(struct printer *printer, const char *bytes, size_t count)
{
    if (count < BUFFER_BYTES - printer->used) {
        memcpy(printer->bytes + printer->used, bytes, count);
        printer->used += count;
        return;
    }
    while (count > 0) {
        size_t room = BUFFER_BYTES - printer->used;
        size_t part = count < room ? count : room;

        memcpy(printer->bytes + printer->used, bytes, part);
        printer->used += part;
        bytes += part;
        count -= part;
        if (printer->used == BUFFER_BYTES) {
            flush(printer);
        }
    }
}

static void put_byte(struct printer *printer, char byte)
{
    if (printer->used == BUFFER_BYTES) {
        flush(printer);
    }
    printer->bytes[printer->used++] = byte;
}

static void put_text(struct printer *printer, const char *text)
{
    put(printer, text, strlen(text));
}

static void put_line(struct printer *printer)
{
    if (printer->indents) {
        put_byte(printer, '\n');
        for (unsigned i = 0; i < printer->depth; i++) {
            put_byte(printer, ' ');
        }
    }
}

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

static void put_unit(struct printer *printer, unsigned unit)
{
    char text[8];

    snprintf(text, sizeof(text), "\\u%04X", unit & 0xffff);
    put_text(printer, text);
}

static void put_code_point(struct printer *printer, unsigned code)
{
    if (code > 0xffff) {
        code -= 0x10000;
        put_unit(printer, 0xd800 | code >> 10);
        code = 0xdc00 | (code & 0x3ff);
    }
    put_unit(printer, code);
}

/* Of UTF-8, which a string of jansson is. @return the bytes that were read */
static size_t put_wide(struct printer *printer, const char *at, size_t left)
{
    unsigned char first = (unsigned char)*at;
    size_t count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    unsigned code = first & (0x7fU >> count);

    for (size_t i = 1; i < count && i < left; i++) {
        code = code << 6 | ((unsigned char)at[i] & 0x3f);
    }
    put_code_point(printer, code);
    return count < left ? count : left;
}

static void put_control(struct printer *printer, char byte)
{
    static const char shorts[] = "\bb\ff\nn\rr\tt\"\"\\\\";

    for (size_t i = 0; i + 1 < sizeof(shorts); i += 2) {
        if (shorts[i] == byte) {
            put_byte(printer, '\\');
            put_byte(printer, shorts[i + 1]);
            return;
        }
    }
    put_unit(printer, (unsigned char)byte);
}

static void put_string(struct printer *printer, const char *text, size_t length)
{
    put_byte(printer, '"');
    for (size_t at = 0; at < length;) {
        size_t plain = at;

        while (plain < length && is_plain((unsigned char)text[plain])) {
            plain++;
        }
        put(printer, text + at, plain - at);
        at = plain;
        if (at < length && (unsigned char)text[at] >= 0x80) {
            at += put_wide(printer, text + at, length - at);
        } else if (at < length) {
            put_control(printer, text[at++]);
        }
    }
    put_byte(printer, '"');
}

static void put_integer(struct printer *printer, long long value)
{
    char text[24];
    size_t at = sizeof(text);
    unsigned long long left = value < 0 ? 0ULL - (unsigned long long)value
                                        : (unsigned long long)value;

    do {
        text[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) {
        text[--at] = '-';
    }
    put(printer, text + at, sizeof(text) - at);
}

/* More than what a product below 1e12 is off, which is 2^-14. */
#define UNSURE 0x1p-9

/* @count figures at the end of @text, with zeros before. @return where */
static char *write_figures(char *text, uint64_t value, unsigned count)
{
    while (count-- > 0) {
        *--text = (char)('0' + value % 10);
        value /= 10;
    }
    return text;
}

/*
 * What "%.12g" prints, of numbers that it prints without an exponent:
 * printf() is a fourth of the time of a document without it.
 * @return false: it is another number, or so near to the middle of two that
 * printf() has to tell which is nearer
 */
static bool put_fixed(struct printer *printer, double value)
{
    static const uint64_t powers[] = {1,
                                      10,
                                      100,
                                      1000,
                                      10000,
                                      100000,
                                      1000000,
                                      10000000,
                                      100000000,
                                      1000000000,
                                      10000000000,
                                      100000000000,
                                      1000000000000,
                                      10000000000000,
                                      100000000000000,
                                      1000000000000000};
    double size = fabs(value);
    unsigned places = DIGITS - 1; /* behind the point */
    char text[48];
    char *at = text + sizeof(text);
    double scaled;
    uint64_t figures;

    if (!(size >= 1e-4 && size < WHOLE_MOST)) {
        return false;
    }
    for (double below = 1; size < below; below /= 10) {
        places++;
    }
    for (unsigned i = 1; size >= (double)powers[i] && places > 0; i++) {
        places--;
    }
    scaled = size * (double)powers[places];
    figures = (uint64_t)scaled;
    scaled -= (double)figures;
    if (fabs(scaled - 0.5) < UNSURE) {
        return false;
    }
    figures += scaled > 0.5;
    if (figures < powers[DIGITS - 1] || figures >= powers[DIGITS]) {
        return false;
    }
    if (places == 0) {
        figures *= 10;
        places = 1;
    }
    while (places > 1 && figures % 10 == 0) {
        figures /= 10;
        places--;
    }
    at = write_figures(at, figures % powers[places], places);
    *--at = '.';
    if (value < 0) {
        put_byte(printer, '-');
    }
    put_integer(printer, (long long)(figures / powers[places]));
    put(printer, at, (size_t)(text + sizeof(text) - at));
    return true;
}

/* "1e+06" is "1e6", and "5" would be read as an integer. */
static void put_real(struct printer *printer, double value)
{
    char text[40];
    char *exponent;

    if (fabs(value) < WHOLE_MOST && value == trunc(value) &&
        !(value == 0 && signbit(value))) {
        put_integer(printer, (long long)value);
        put(printer, ".0", 2);
        return;
    }
    if (put_fixed(printer, value)) {
        return;
    }
    snprintf(text, sizeof(text), "%.12g", value);
    exponent = strchr(text, 'e');
    if (exponent == NULL) {
        put_text(printer, text);
        if (strchr(text, '.') == NULL) {
            put(printer, ".0", 2);
        }
        return;
    }
    put(printer, text, (size_t)(exponent + 1 - text));
    exponent++;
    if (*exponent == '-') {
        put(printer, "-", 1);
    }
    put_text(printer, exponent + strspn(exponent, "+-0"));
}

static void put_value(struct printer *printer, const json_t *value);

static void put_members(struct printer *printer, const json_t *value)
{
    json_t *object = (json_t *)(uintptr_t)value;
    void *at = json_object_iter(object);

    while (at != NULL) {
        const char *key = json_object_iter_key(at);

        put_line(printer);
        put_string(printer, key, strlen(key));
        put_text(printer, printer->indents ? ": " : ":");
        put_value(printer, json_object_iter_value(at));
        at = json_object_iter_next(object, at);
        if (at != NULL) {
            put_byte(printer, ',');
        }
    }
}

static void put_items(struct printer *printer, const json_t *array)
{
    size_t count = json_array_size(array);

    for (size_t i = 0; i < count; i++) {
        put_line(printer);
        put_value(printer, json_array_get(array, i));
        if (i + 1 < count) {
            put_byte(printer, ',');
        }
    }
}

static void put_container(struct printer *printer, const json_t *value)
{
    bool is_object = json_is_object(value);
    size_t count = is_object ? json_object_size(value) : json_array_size(value);

    put_byte(printer, is_object ? '{' : '[');
    printer->depth++;
    if (is_object) {
        put_members(printer, value);
    } else {
        put_items(printer, value);
    }
    printer->depth--;
    if (count > 0) {
        put_line(printer);
    }
    put_byte(printer, is_object ? '}' : ']');
}

static void put_value(struct printer *printer, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        put_container(printer, value);
        break;
    case JSON_STRING:
        put_string(printer, json_string_value(value),
                   json_string_length(value));
        break;
    case JSON_INTEGER:
        put_integer(printer, json_integer_value(value));
        break;
    case JSON_REAL:
        put_real(printer, json_real_value(value));
        break;
    default:
        put_text(printer, json_is_true(value)    ? "true"
                          : json_is_false(value) ? "false"
                                                 : "null");
    }
}

void seep_json_init(void)
{
    json_set_alloc_funcs(malloc, free);
}

void seep_json_out_raw(struct seep_json_out *out, const char *text)
{
    if (out->error == 0 && fputs(text, out->file) == EOF) {
        out->error = -EIO;
    }
}

/* Its bytes are not cleared: they are more than most of what is printed. */
static void begin(struct printer *printer, const struct seep_json_out *out,
                  bool indents)
{
    printer->file = out->file;
    printer->indents = indents;
    printer->has_failed = false;
    printer->depth = 0;
    printer->used = 0;
}

static void end(struct printer *printer, struct seep_json_out *out)
{
    flush(printer);
    out->error = printer->has_failed ? -EIO : 0;
}

static void print(struct seep_json_out *out, json_t *value, bool indents,
                  void (*put_it)(struct printer *, const json_t *))
{
    struct printer printer;

    if (out->error == 0 && value == NULL) {
        out->error = -ENOMEM;
    }
    if (out->error == 0) {
        begin(&printer, out, indents);
        put_it(&printer, value);
        end(&printer, out);
    }
    json_decref(value);
}

void seep_json_out_line(struct seep_json_out *out, json_t *value)
{
    print(out, value, false, put_value);
}

void seep_json_out_members(struct seep_json_out *out, json_t *object)
{
    print(out, object, false, put_members);
}

void seep_json_out_value(struct seep_json_out *out, json_t *value)
{
    print(out, value, true, put_value);
}

static void put_real_or_null(struct printer *printer, double value)
{
    if (isfinite(value)) {
        put_real(printer, value);
    } else {
        put_text(printer, "null");
    }
}

static void put_figure(struct printer *printer, enum seep_json_figure kind,
                       const char *at)
{
    uint64_t count;
    double real;

    if (kind == SEEP_JSON_COUNT) {
        memcpy(&count, at, sizeof(count));
        put_integer(printer, count > INT64_MAX ? INT64_MAX : (long long)count);
        return;
    }
    memcpy(&real, at, sizeof(real));
    put_real_or_null(printer, kind == SEEP_JSON_TOLD && real < 0 ? NAN : real);
}

static void put_row(struct printer *printer, const struct seep_json_rows *rows,
                    const char *row)
{
    put_text(printer, rows->head);
    for (size_t i = 0; i < rows->field_count; i++) {
        const struct seep_json_field *field = &rows->fields[i];

        put_text(printer, field->before);
        put_figure(printer, field->kind, row + field->offset_bytes);
    }
    put_text(printer, rows->tail);
}

void seep_json_out_rows(struct seep_json_out *out,
                        const struct seep_json_rows *rows, const void *first,
                        size_t count)
{
    const char *row = first;
    struct printer printer;

    if (out->error != 0) {
        return;
    }
    begin(&printer, out, false);
    for (size_t i = 0; i < count && !printer.has_failed; i++) {
        put_text(&printer, i == 0 ? "" : rows->between);
        put_row(&printer, rows, row);
        row += rows->row_bytes;
    }
    end(&printer, out);
}

char *seep_json_line(json_t *object)
{
    size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII;
    char room[LINE_BYTES];
    size_t bytes =
        object == NULL ? 0 : json_dumpb(object, room, sizeof(room), flags);
    char *text = bytes == 0 ? NULL : malloc(bytes + 1);

    /* Not json_dumps(): whoever gives jansson its memory, this is ours. */
    if (text != NULL) {
        if (bytes <= sizeof(room)) {
            memcpy(text, room, bytes);
        } else {
            json_dumpb(object, text, bytes, flags);
        }
        text[bytes] = '\0';
    }
    json_decref(object);
    return text;
}

char *seep_json_members(json_t *object)
{
    char *text = seep_json_line(object);

    if (text != NULL) {
        text[strlen(text) - 1] = ',';
    }
    return text;
}

int seep_json_out_finish(struct seep_json_out *out)
{
    seep_json_out_raw(out, "\n");
    if (out->error == 0 && (fflush(out->file) != 0 || ferror(out->file))) {
        out->error = -EIO;
    }
    return out->error;
}

int seep_json_print(FILE *file, json_t *document)
{
    struct seep_json_out out = {.file = file};

    seep_json_out_value(&out, document);
    return seep_json_out_finish(&out);
}

/*
 * Processes of a document, printed in the order in which they were read and
 * copied in that of the document.
 *
 * Invariant: what is not whole in the file is not in the table, and the file
 * has no name.
 */

#define COPY_BYTES 65536U

struct part {
    off_t at;
    off_t bytes;
};

struct seep_json_spool {
    const struct seep_json_options *options;
    struct seep_json_frame *kept;
    struct seep_store store;
    struct seep_store_table parts; /* by the address of the report */
    FILE *file;
    off_t end;
    bool has_failed;
};

static FILE *make_file(void)
{
    const char *folder = getenv("TMPDIR");
    int fd = open(folder != NULL && *folder != '\0' ? folder : "/tmp",
                  O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");

    if (file == NULL && fd >= 0) {
        close(fd);
    }
    return file != NULL ? file : tmpfile();
}

struct seep_json_spool *
seep_json_spool_open(const struct seep_json_options *options)
{
    struct seep_json_spool *spool = calloc(1, sizeof(*spool));

    if (spool != NULL) {
        spool->options = options;
        spool->kept = seep_json_site_open();
        spool->file = make_file();
    }
    if (spool != NULL && (spool->kept == NULL || spool->file == NULL)) {
        seep_json_spool_close(spool);
        spool = NULL;
    }
    return spool;
}

void seep_json_spool_close(struct seep_json_spool *spool)
{
    if (spool == NULL) {
        return;
    }
    if (spool->file != NULL) {
        fclose(spool->file);
    }
    seep_json_site_close(spool->kept);
    seep_store_table_fini(&spool->parts);
    seep_store_fini(&spool->store);
    free(spool);
}

bool seep_json_spool_add(struct seep_json_spool *spool,
                         const struct seep_report *report)
{
    struct seep_json_out out = {.file = spool->file};
    struct seep_store_entry *entry;
    struct part *part;

    if (spool->has_failed) {
        return false;
    }
    seep_json_report_print(&out, spool->kept, report, spool->options);
    part = seep_store_take(&spool->store, 1, sizeof(*part));
    entry =
        seep_store_find(&spool->store, &spool->parts, &report, sizeof(report));
    if (out.error < 0 || fflush(spool->file) != 0 || part == NULL ||
        entry == NULL) {
        spool->has_failed = true;
        return false;
    }
    part->at = spool->end;
    spool->end = ftello(spool->file);
    part->bytes = spool->end - part->at;
    entry->value = part;
    return true;
}

static int copy(struct seep_json_spool *spool, const struct part *part,
                FILE *to)
{
    static char bytes[COPY_BYTES];
    off_t left = part->bytes;

    while (left > 0) {
        size_t wanted = left < COPY_BYTES ? (size_t)left : COPY_BYTES;
        ssize_t got = pread(fileno(spool->file), bytes, wanted,
                            part->at + part->bytes - left);

        if (got <= 0 || fwrite(bytes, 1, (size_t)got, to) != (size_t)got) {
            return -EIO;
        }
        left -= got;
    }
    return 0;
}

bool seep_json_spool_print(struct seep_json_spool *spool,
                           const struct seep_report *report,
                           struct seep_json_out *out)
{
    const struct seep_store_entry *entry =
        seep_store_find(NULL, &spool->parts, &report, sizeof(report));

    if (entry == NULL || entry->value == NULL) {
        return false;
    }
    if (out->error == 0) {
        out->error = copy(spool, entry->value, out->file);
    }
    return true;
}
