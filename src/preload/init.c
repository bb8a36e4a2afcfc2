/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The beginning and the end: one constructor, one destructor.
 *
 * Invariant: what can fail or allocate is done here, before the program's
 * main; whatever fails leaves the process as it would be without us. The
 * destructor stores flags.
 */
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/place.h"
#include "base/syscall.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/word.h"
#include "capture/native/elf.h"
#include "cuda/resolve.h"
#include "preload/hooks.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "preload/options.h"
#include "preload/real.h"
#include "preload/track.h"
#include "record/keep.h"
#include "record/recorder.h"
#include "record/region.h"

/* SEEP_VERBOSE: one line on stderr. */

static bool armed; /* one line is still to be written */
static struct stat stderr_status;

static bool look(struct stat *ret_status)
{
    return seep_syscall2(SYS_fstat, STDERR_FILENO, (long)ret_status) == 0;
}

/* From the constructor, after the options. */
static void verbose_init(void)
{
    armed = seep_options.verbose && look(&stderr_status);
}

/* A pipe nobody reads from would be a signal, and a full one a wait. Where it
 * may not be asked (a filter), only a file or a terminal is written to. */
static bool takes_a_line(const struct stat *status)
{
    struct pollfd poll_fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct timespec none = {0, 0};

    if ((seep_calls_denied & SEEP_CALL_BIT(ppoll)) != 0) {
        return S_ISREG(status->st_mode) || S_ISCHR(status->st_mode);
    }
    return seep_syscall6(SYS_ppoll, (long)&poll_fd, 1, (long)&none, 0, 0, 0) ==
               1 &&
           poll_fd.revents == POLLOUT;
}

/* The program may have put its own file there. */
static bool may_write(void)
{
    struct stat status;

    return look(&status) && status.st_dev == stderr_status.st_dev &&
           status.st_ino == stderr_status.st_ino && takes_a_line(&status);
}

static void write_line(const char *first, const char *second, const char *third,
                       const char *remedy)
{
    static char line[SEEP_PLACE_PATH_BYTES + 512]; /* written once */
    struct seep_text text;

    if (!armed || !may_write()) {
        return;
    }
    armed = false;
    seep_text_init(&text, line, sizeof(line) - 1);
    seep_text_add(&text, first);
    seep_text_add(&text, second);
    seep_text_add(&text, third);
    seep_text_add(&text, *remedy == '\0' ? "" : "; ");
    seep_text_add(&text, remedy);
    line[text.length] = '\n';
    seep_syscall3(SYS_write, STDERR_FILENO, (long)line, (long)text.length + 1);
}

/* There will be no recording because of @words. */
static void verbose_refused(const char *words)
{
    write_line("seep: not recording: ", words, "", "");
}

void seep_verbose_inert(enum seep_inert_reason reason)
{
    static const char *const words[] = {
#define WORDS(symbol, value, text) [value] = (text),
        SEEP_INERT_REASONS(WORDS)
#undef WORDS
    };

    verbose_refused(words[reason]);
}

static void write_recording(const struct seep_rec_header *header)
{
    uint32_t removed_count = seep_word_load(&header->removed_count);
    static char words[64];
    struct seep_text text;

    seep_text_init(&text, words, sizeof(words));
    if (removed_count > 0) {
        seep_text_add_number(&text, removed_count);
        seep_text_add(&text,
                      removed_count == 1
                          ? " older recording was removed (SEEP_KEEP)"
                          : " older recordings were removed (SEEP_KEEP)");
    }
    write_line("seep: recording to ", seep_region_path(), "", words);
}

void seep_verbose_created(int error, const struct seep_rec_header *header)
{
    static char folder[SEEP_PLACE_PATH_BYTES];
    const char *path = seep_region_path();

    if (error == 0) {
        write_recording(header);
        return;
    }
    if (!armed) {
        return;
    }
    seep_place_folder(path, folder, sizeof(folder));
    seep_text_add(&(struct seep_text){.bytes = folder,
                                      .size = sizeof(folder),
                                      .length = strlen(folder)},
                  " ");
    write_line("seep: not recording: ", folder,
               seep_place_words(seep_place_reason_of(error)),
               seep_place_remedy(seep_place_reason_of(error)));
}

/* At exit: if nothing was said, nothing was recorded. */
static void verbose_ended(void)
{
    write_line("seep: nothing recorded: ",
               "too little was allocated to be sampled", "", "");
}

/* Sanitizers and valgrind replace malloc too, and know every byte of it. */
static enum seep_inert_reason find_reason(char *const *environment)
{
    static const char *const marks[] = {"__asan_init", "__tsan_init",
                                        "__msan_init", "__hwasan_init"};
    bool sanitized = false;

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        sanitized = sanitized || seep_elf_is_defined(marks[i]);
    }
    if (sanitized) {
        return SEEP_INERT_SANITIZER;
    }
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, "LD_PRELOAD=", 11) == 0 &&
            strstr(*environment, "vgpreload") != NULL) {
            return SEEP_INERT_VALGRIND;
        }
    }
    return seep_real_is_behind ? SEEP_INERT_OWN_MALLOC : SEEP_INERT_NONE;
}

/* @return false: nothing will be recorded, and it was said why */
static bool look_at_place(enum seep_inert_reason reason)
{
    if (reason != SEEP_INERT_NONE) {
        seep_verbose_inert(reason);
        return false;
    }
    if (seep_options.skipped) {
        verbose_refused(
            seep_options.name_cut
                ? "SEEP_OUT is too long"
                : "shells, launchers and the tools they call are skipped (SEEP_SKIP)");
        return false;
    }
    seep_keep_clean(seep_options.pattern, &seep_options.keep);
    return true;
}

static void describe_allocator(void)
{
    const void *start;
    const void *end;
    const char *path;

    seep_real_allocator(&start, &end, &path);
    seep_maps_init(start, end);
    seep_identity_set_allocator(path);
    seep_new_init();
    seep_allocator_init(start, end, path);
}

/* The clock that no library in front of libc fakes. The loader is not asked:
 * it would allocate from the program's heap. Not tested: a C library whose
 * symbols cannot be read; then it is the clock that the loader has found. */
static void find_clock(void)
{
    struct seep_elf_symbols libc;
    uintptr_t found = seep_elf_symbols_of_libc(&libc)
                          ? seep_elf_symbols_find(&libc, "clock_gettime", NULL)
                          : 0;

    if (found != 0) {
        memcpy(&seep_clock_gettime, &found, sizeof(found));
    }
}

/* Before it is known who this process is. */
static void give_up(char *const *environment, const char *words)
{
    seep_options_read(environment, "");
    verbose_init();
    verbose_refused(words);
    seep_life_disarm();
}

__attribute__((constructor)) static void begin(int argc, char **argv,
                                               char **environment)
{
    enum seep_inert_reason reason;
    const char *filter;

    (void)argc;
    (void)argv;
    /* The latter by a constructor before ours: whatever we call may kill. */
    if (getauxval(AT_SECURE) != 0 || seep_life_is_restricted()) {
        seep_life_disarm();
        return;
    }
    filter = seep_filter_settle(environment);
    /* Not tested: a thread that somebody made by clone(), before any call of
     * the loader's, is in the middle of the look-up. */
    if (!seep_real_resolve()) {
        give_up(environment, "another thread is looking up what it needs");
        return;
    }
    if (filter != NULL) {
        give_up(environment, filter);
        return;
    }
    if (seep_identity_init() != 0) {
        give_up(environment, "there is no memory for it");
        return;
    }
    find_clock();
    /* Also where nothing is recorded: the wrappers stand there all the same,
     * and know what is behind them without asking the loader. */
    seep_objects_init();
    seep_cuda_prepare();
    seep_malloc_answer();
    seep_options_read(environment,
                      seep_text_base_name(seep_identity_executable()));
    verbose_init();
    reason = find_reason(environment);
    if (!look_at_place(reason)) {
        seep_life_disarm();
        if (reason != SEEP_INERT_NONE && seep_options.pattern_given) {
            seep_identity_create_inert(reason);
        }
        return;
    }
    describe_allocator();
    seep_ending_init();
    seep_stacks_init();
    seep_python_objects_init();
    seep_cuda_events_init();
    seep_life_arm(seep_options.sample_log2 == 0);
}

/* Is what this process leaves worth keeping? For that it must be known what it
 * holds. */
static void settle(void)
{
    const struct seep_view *view = seep_recorder_view();
    struct seep_thread *thread;

    /* Not tested: who is restricted exits so in test_sandbox.py, and may not
     * write what it ran. */
    if (view == NULL || seep_life_state() != SEEP_LIFE_ON ||
        seep_life_is_restricted() || !seep_identity_is_ours() ||
        !seep_identity_is_this_process() || !seep_keep_may_be_minor(view)) {
        return;
    }
    thread = seep_guard_enter(SEEP_GUARD_FRAME);
    if (thread != NULL) {
        /* Not tested: another thread has just closed it. */
        if (seep_recorder_view() != NULL) {
            seep_recorder_settle(thread);
        }
        seep_guard_leave(thread);
    }
}

__attribute__((destructor)) static void end(void)
{
    settle();
    seep_life_exit();
    if (seep_life_state() == SEEP_LIFE_ARMED) {
        verbose_ended();
    }
}
