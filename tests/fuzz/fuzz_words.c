/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for texts that a stranger may have written, each read by
 * the parser that the first byte chooses: a letter of the table below.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/place.h"
#include "base/text.h"
#include "metrics/metrics.h"
#include "reader/compare/suppress.h"
#include "reader/symbols/names.h"
#include "reader/symbols/where.h"

#define TEXT_BYTES_MAX 65536U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct seep_report_frame frames[] = {
    {.module = "/lib/libc.so.6", .function = "malloc", .file = ""},
    {.module = "/opt/libfoo.so", .function = "ns::f(int)", .file = "/s/f.c"},
};
static const struct seep_report_frame *list[] = {&frames[0], &frames[1]};
static const struct seep_report_site site = {
    .id = "12345678", .where = "f.c:7 ns::f", .frames = list, .frame_count = 2};

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

/* A file of ours and no link: others are not read. */
static void write_file(const char *text, size_t length)
{
    static int fd = -1;

    if (fd < 0) {
        const char *folder = getenv("TMPDIR");

        snprintf(path, sizeof(path), "%.40s/seep-fuzz-%d",
                 folder != NULL ? folder : "/tmp", (int)getpid());
        fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        atexit(remove_file);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 ||
        pwrite(fd, text, length, 0) != (ssize_t)length) {
        abort();
    }
}

static void read_perf_map(const char *text, size_t length)
{
    struct seep_perf_map *map = NULL;
    static const uint64_t at[] = {0, 0x1000, 0x1fff, 0x7f0000001000,
                                  UINT64_MAX};

    write_file(text, length);
    if (seep_perf_map_open(path, &map) == 0) {
        for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
            const char *name = seep_perf_map_find(map, at[i]);

            if (name != NULL && name[0] == '\0') {
                abort();
            }
        }
        seep_perf_map_close(map);
    }
}

static void read_suppressions(const char *text, size_t length)
{
    struct seep_refusal refusal = {.error = 0};
    struct seep_rules *rules = NULL;

    write_file(text, length);
    if (seep_suppressions_add_file(&rules, path, &refusal) == 0) {
        (void)seep_suppressions_find(rules, &site);
    } else if (refusal.reason[0] == '\0') {
        abort();
    }
    seep_rules_close(rules);
}

static void read_known(const char *text, size_t length)
{
    struct seep_rules *known = NULL;

    if (seep_known_add(&known, text, length) == 0) {
        (void)seep_known_find(known, &site);
    }
    seep_rules_close(known);
}

/* A pattern, a line end, and what it is held against. */
static void match(const char *text, size_t length)
{
    char *copy = strdup(text);
    char *rest = copy == NULL ? NULL : strchr(copy, '\n');

    (void)length;
    if (rest != NULL) {
        *rest = '\0';
        (void)seep_match_text(copy, rest + 1);
    }
    free(copy);
}

static void demangle(const char *text, size_t length)
{
    char name[257];

    (void)length;
    memset(name, 'x', sizeof(name));
    if (seep_demangle(text, name, sizeof(name) - 1) &&
        memchr(name, '\0', sizeof(name) - 1) == NULL) {
        abort();
    }
}

static void accept_header(const char *text, size_t length)
{
    (void)length;
    (void)seep_metrics_accept(text);
}

/* Labels that become names, and values. */
static void name_label(const char *text, size_t length)
{
    char name[64];

    seep_metrics_text_name(text, length, name, sizeof(name));
    if (name[0] == '\0' || strspn(name, "abcdefghijklmnopqrstuvwxyz"
                                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789_") != strlen(name)) {
        abort();
    }
}

static void read_size(const char *text, size_t length)
{
    struct seep_place_keep keep;
    uint64_t number;

    (void)length;
    (void)seep_size_parse(text, &number);
    (void)seep_size_parse_number(text, &number);
    (void)seep_place_keep_parse(text, &keep);
}

/* Names of a stack: a line each, module, function and file by turns. */
static void look_where(const char *text, size_t length)
{
    struct seep_report_frame some[8];
    const struct seep_report_frame *all[8];
    struct seep_where_pool pool;
    char *copy = strdup(text);
    char *rest = NULL;
    char formatted[128];
    size_t count = 0;

    (void)length;
    for (char *line = copy == NULL ? NULL : strtok_r(copy, "\n", &rest);
         line != NULL && count < 8; line = strtok_r(NULL, "\n", &rest)) {
        char *function = strchrnul(line, '\t');
        char *file =
            *function == '\0' ? function : strchrnul(function + 1, '\t');

        all[count] = &some[count];
        some[count] = (struct seep_report_frame){
            .module = line, .function = "", .file = ""};
        if (*function != '\0') {
            *function = '\0';
            some[count].function = function + 1;
        }
        if (*file != '\0') {
            *file = '\0';
            some[count].file = file + 1;
        }
        count++;
    }
    if (count > 0) {
        size_t at = seep_where_pick(all, count);

        if (at >= count) {
            abort();
        }
        (void)seep_where_format(&some[at], formatted, sizeof(formatted));
        (void)seep_where_is_pool(all, count, &pool);
    }
    free(copy);
}

static const struct {
    char letter;
    void (*read)(const char *text, size_t length);
} parsers[] = {
    {'p', read_perf_map}, {'s', read_suppressions}, {'k', read_known},
    {'m', match},         {'d', demangle},          {'a', accept_header},
    {'n', name_label},    {'z', read_size},         {'w', look_where},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A block of its own, so that a byte too far is seen. */
    char *text;

    if (size == 0 || size > TEXT_BYTES_MAX) {
        return 0;
    }
    text = malloc(size);
    if (text == NULL) {
        abort();
    }
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    for (size_t i = 0; i < sizeof(parsers) / sizeof(parsers[0]); i++) {
        if ((uint8_t)parsers[i].letter == data[0]) {
            parsers[i].read(text, size - 1);
        }
    }
    free(text);
    return 0;
}
