/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Filters of system calls (seccomp) that this process has inherited.
 *
 * What a filter does to a call cannot be asked: it is found out by making it,
 * and one that kills ends the process. `seep run` has children of its own try
 * each call, and hands over what died (SEEP_FILTER). Filters are only ever
 * added, so that this holds for a process with as many of them.
 *
 * Invariant: until it is known what may be called, no call is made but openat,
 * read and close, which the loader has made for every library before us; and
 * fstat and write where SEEP_VERBOSE asks for a word.
 */
#include <stddef.h>
#include <string.h>

#include "base/proc.h"
#include "base/syscall.h"
#include "preload/life.h"
#include "preload/options.h"

#define MODE_FILTER 2
/* Groups stand before the lines that are looked for, up to 65,536 of them: it
 * is read in pieces, the end of one before the next, longer than such a line.
 */
#define PIECE_BYTES 4096U
#define LINE_BYTES 64U

struct filters {
    bool present;
    uint64_t count; /* 0: this kernel does not say */
};

static uint64_t number_behind(const char *text, const char *key)
{
    const char *line = strstr(text, key);

    if (line == NULL || strchr(line + 1, '\n') == NULL) {
        return 0;
    }
    line += strlen(key);
    return seep_proc_number(&line);
}

/* Whole lines alone, of what was read so far. */
static void look_for(const char *text, struct filters *filters)
{
    uint64_t mode = number_behind(text, "\nSeccomp:\t");
    uint64_t count = number_behind(text, "\nSeccomp_filters:\t");

    filters->present = filters->present || mode == MODE_FILTER;
    filters->count = count != 0 ? count : filters->count;
}

static struct filters filters_of(const char *path)
{
    static char text[PIECE_BYTES + 1]; /* the constructor's alone */
    struct filters filters = {0};
    size_t kept = 0;
    long fd = seep_proc_open(path);
    long count;

    while (fd >= 0 && (count = seep_syscall3(SYS_read, fd, (long)(text + kept),
                                             (long)(PIECE_BYTES - kept))) > 0) {
        size_t bytes = kept + (size_t)count;

        text[bytes] = '\0';
        look_for(text, &filters);
        kept = bytes < LINE_BYTES ? bytes : LINE_BYTES;
        memmove(text, text + bytes - kept, kept);
    }
    seep_proc_close_file(fd);
    return filters;
}

static bool parse_digit(char digit, uint64_t *ret_value)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = digit == '\0' ? NULL : strchr(digits, digit);

    if (found == NULL) {
        return false;
    }
    *ret_value = (uint64_t)(found - digits);
    return true;
}

/* "COUNT:SET", the set in hexadecimal. @return false: not of as many */
static bool parse(const char *text, uint64_t count, uint64_t *ret_denied)
{
    uint64_t denied = 0;
    uint64_t digit;

    if (text == NULL || seep_proc_number(&text) != count || *text++ != ':') {
        return false;
    }
    for (; parse_digit(*text, &digit); text++) {
        denied = denied << 4 | digit;
    }
    *ret_denied = denied;
    return *text == '\0';
}

/* Those of a container are its runtime's, which refuses and does not kill. */
static bool is_of_container(const struct filters *own)
{
    struct filters first = filters_of("/proc/1/status");

    return first.present && first.count == own->count && own->count != 0;
}

/* What it takes to say why, if that is asked for (SEEP_VERBOSE). */
static void deny_all_but_telling(uint64_t denied)
{
    seep_calls_denied =
        denied |
        (SEEP_CALLS_ALL & ~(SEEP_CALL_BIT(fstat) | SEEP_CALL_BIT(write)));
}

const char *seep_filter_settle(char *const *environment)
{
    struct filters own = filters_of("/proc/self/status");
    uint64_t denied = 0;

    if (!own.present) {
        return NULL;
    }
    if (!parse(seep_options_find(environment, "SEEP_FILTER"), own.count,
               &denied) &&
        !is_of_container(&own)) {
        deny_all_but_telling(0);
        return "a seccomp filter may kill it for a system call; start it with `seep run`, which tries them";
    }
    if ((denied & SEEP_CALLS_ALL_NEEDED) != 0) {
        deny_all_but_telling(denied);
        return "a seccomp filter kills it for a system call that is needed";
    }
    seep_calls_denied = denied;
    return NULL;
}
