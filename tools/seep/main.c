/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep VERB ...: find the verb and hand over; and whether the command had the
 * memory that it asked for. Invariant: where what was printed may not be whole,
 * that is said.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/thread.h"
#include "options/option.h"
#include "probe/probe.h"
#include "text/page.h"
#include "verbs.h"
#include "json/json.h"

/*
 * How the command takes memory, and whether an allocation has failed. Of a
 * hundred of them most are of one cell or one sentence, which is left out then:
 * what was printed is not whole, and whoever reads it must know.
 *
 * Invariant: the linker sends each call of seep's own code through here (--wrap
 * in meson.build, which has the same names); what libraries do is theirs.
 */

/* From here on an array has pages of its own, which go back when it is freed:
 * without it glibc keeps up to 55 MB that a large report has done with. */
#define ARRAY_BYTES (1 << 20)

/* So much of the rest is kept for what comes next: of 10,000 recordings each
 * took half of its pages anew. */
#define KEPT_BYTES (4 << 20)

static atomic_bool has_failed;

/* Once, before what is large. */
static void init_memory(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, ARRAY_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
#endif
}

/* Has any allocation of this process failed? For who ends with an answer that
 * may not be whole. Any thread. */
static bool memory_has_failed(void)
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

/*
 * The verbs.
 */

static const struct {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
} verbs[] = {
#define VERB_ENTRY(name, summary) {#name, summary, seep_cmd_##name},
    SEEP_VERBS(VERB_ENTRY)
#undef VERB_ENTRY
};
#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

static void print_help(FILE *file)
{
    fputs("seep finds slow memory leaks: where memory grows, how fast, and\n"
          "whether it is a leak.\n\n"
          "usage: seep COMMAND [OPTIONS] [ARGUMENTS]\n\n",
          file);
    for (size_t i = 0; i < VERB_COUNT; i++) {
        fprintf(file, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
    }
    fputs(
        "\n`seep help COMMAND` lists the options of a command; `man seep` has the details.\n"
        "To begin: seep run -- python3 serve.py; if nothing is recorded: seep doctor\n",
        file);
}

static int refuse_option(const char *word)
{
    static const char *const names[] = {"--help", "--version"};
    const char *nearest = seep_nearest(word, names, 2);
    char remedy[96] = "options follow a command: see `seep --help`";

    if (nearest != NULL) {
        snprintf(remedy, sizeof(remedy), "did you mean `seep %s`?", nearest);
    }
    return seep_say_meant("unknown option", word, "", remedy);
}

static int refuse(const char *word)
{
    static const char *const names[] = {
#define VERB_NAME(name, summary) #name,
        SEEP_VERBS(VERB_NAME)
#undef VERB_NAME
    };
    const char *nearest = seep_nearest(word, names, VERB_COUNT);
    char remedy[96] = "`seep --help` lists the commands";

    if (*word == '-') {
        return refuse_option(word);
    }
    if (nearest != NULL) {
        snprintf(remedy, sizeof(remedy), "did you mean `seep %s`?", nearest);
    }
    return seep_say_meant("unknown command", word, "", remedy);
}

/* What was printed lacks what there was no memory for. The status of a run is
 * its command's, and that of a probe decides whether a process is restarted. */
static int finish_in_memory(const char *verb, int code)
{
    if (!memory_has_failed()) {
        return code;
    }
    seep_say(verb, "not enough memory: what it printed may not be whole",
             "give it more, or fewer recordings at once");
    return code == SEEP_EXIT_FINE && strcmp(verb, "run") != 0 &&
                   strcmp(verb, "probe") != 0
               ? SEEP_EXIT_FAILED
               : code;
}

static int finish(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        seep_say("stdout", "could not be written",
                 "check the disk or the pipe that it goes to");
        return code == SEEP_EXIT_FINE ? SEEP_EXIT_FAILED : code;
    }
    return code;
}

struct work {
    size_t verb;
    int argc;
    char **argv;
    int *code; /* shared with a child */
};

static int run(const struct work *work)
{
    return finish_in_memory(
        work->argv[0], finish(verbs[work->verb].run(work->argc, work->argv)));
}

static void run_behind(void *context)
{
    const struct work *work = context;

    *work->code = run(work);
}

#define APART_NS UINT64_C(300000000000)

/* In a child: what is read may hurt it, or never come. */
static int run_apart(struct work *work)
{
    int signal = 0;
    int result = -ENOMEM;

    work->code = mmap(NULL, sizeof(*work->code), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (work->code != MAP_FAILED) {
        *work->code = SEEP_EXIT_FAILED;
        result = seep_deadline_run(run_behind, work,
                                   seep_clock_ns(CLOCK_MONOTONIC) + APART_NS,
                                   &signal);
    }
    if (result < 0) {
        return run(work);
    }
    if (result == SEEP_DEADLINE_LATE) {
        seep_say(work->argv[0], "what it reads did not come within 5 min",
                 "look whether the process, or a file system of its, hangs");
    } else if (result == SEEP_DEADLINE_DIED && signal == SIGPIPE) {
        (void)raise(SIGPIPE); /* as it would have died by itself */
    } else if (result == SEEP_DEADLINE_DIED) {
        char reason[64];

        snprintf(reason, sizeof(reason), "was ended by signal %d", signal);
        seep_say(work->argv[0], reason, "please report what it was asked");
    }
    return *work->code;
}

/* @argv begins with the verb. */
static int run_verb(int argc, char **argv)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(argv[0], verbs[i].name) == 0) {
            struct work work = {i, argc, argv, NULL};

            return strcmp(argv[0], "held") == 0 ? run_apart(&work) : run(&work);
        }
    }
    return refuse(argv[0]);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
           strcmp(word, "help") == 0;
}

/* `seep help VERB` is `seep VERB --help`. */
static int help(const char *verb)
{
    static char option[] = "--help";
    char *words[] = {(char *)verb, option, NULL};

    if (verb == NULL || is_help(verb)) {
        print_help(stdout);
        return finish(SEEP_EXIT_FINE);
    }
    return run_verb(2, words);
}

/* The clock that no library in front of libc fakes. libc is not closed again:
 * it stays. */
static void find_clock(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = libc == NULL ? NULL : dlsym(libc, "clock_gettime");

    if (symbol != NULL) {
        memcpy(&seep_clock_gettime, &symbol, sizeof(symbol));
    }
}

int main(int argc, char **argv)
{
    init_memory();
    seep_json_init();
    find_clock();
    seep_clean_init();
    seep_clean_follow_locale();
    if (argc < 2) {
        print_help(stderr);
        return SEEP_EXIT_USAGE;
    }
    if (is_help(argv[1])) {
        return help(argv[2]);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts("seep " SEEP_VERSION);
        return finish(SEEP_EXIT_FINE);
    }
    return run_verb(argc - 1, argv + 1);
}
