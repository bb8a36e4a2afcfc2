/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Words that every view uses for the same thing: a process, what it holds, a
 * part of its run (words.c), and the frames of its stacks (frames.c). What is
 * taken from a recording is not cleaned here: the page and the JSON writer do
 * that.
 */
#ifndef SEEP_TOOL_WORDS_WORDS_H
#define SEEP_TOOL_WORDS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "reader/report/report.h"
#include "reader/report/span.h"

/*
 * Texts put together.
 */

/** As asprintf(). To be freed; NULL without memory. */
__attribute__((format(printf, 1, 2))) char *seep_words_make(const char *format,
                                                            ...);

/** A text that is written piece by piece. */
struct seep_words_text {
    char *text;
    size_t size;
    FILE *file;
};

/** @return the stream to write to; NULL without memory */
FILE *seep_words_open(struct seep_words_text *text);
/** @return the text, to be freed; NULL without memory */
char *seep_words_close(struct seep_words_text *text);

/** "41.3 MiB/min", without a sign where the sentence says that it grows. */
void seep_words_put_rate(FILE *file, double bytes_per_s);

/** "41.3 MiB/min (40.1 to 42.5)" */
void seep_words_put_growth(FILE *file, const struct seep_interval *bytes_per_s);

/** "1 leak, 2 steady" of how many there are of each class. */
void seep_words_put_classes(FILE *file,
                            const size_t by_class[SEEP_VERDICT_COUNT]);

#define SEEP_WORDS_LABEL_BYTES 32

/** A name of a class in capitals, "ALLOCATOR RETENTION". */
void seep_words_label(const char *name, char label[SEEP_WORDS_LABEL_BYTES]);

#define SEEP_WORDS_ID_COLUMNS 8 /* of a site's id: enough to find it */

/** "seep report --stack --site 3f9a0b1c PATH", of a row of @report. */
char *seep_words_stack_command(const struct seep_report *report,
                               const struct seep_report_site *site);

/*
 * Processes.
 */

/** How many call sites it has, also of those that were not asked for. */
size_t seep_words_site_total(const struct seep_report *report);

/** What lived less long is no worker. */
#define SEEP_WORDS_BRIEF_S 1.0

/** Helpers of a script come by the dozen, live for a moment, tell nothing. */
bool seep_words_is_brief(const struct seep_report *report);

/** Name of a state as JSON has it: running, exited, killed, gone, unknown. */
const char *seep_words_state_name(enum seep_process_state state);

/** "killed by signal 9", "exited with status 3", "still running". */
void seep_words_state(const struct seep_report *report, char *text,
                      size_t size);

/** "exact", "sampled every 512 KiB", "sampled every 64 KiB (16 KiB at first)",
 * "began exact, now sampled every ..". */
void seep_words_mode(const struct seep_report *report, char *text, size_t size);

/** Name of a mode as JSON has it: exact or sampled. */
const char *seep_words_mode_name(const struct seep_report *report);

/** "python3 serve.py": the command line, its program without the folder. */
char *seep_words_command(const struct seep_report *report);

/** "python3 serve.py", "python3 -m vllm": what tells it from others. */
char *seep_words_program(const struct seep_report *report);

/** "3.11.2", "3.14.0rc1" of @version as PY_VERSION_HEX; of one before 3.11 no
 * more is known than "3.8". */
void seep_words_python_version(uint32_t version, char *text, size_t size);

/** Was a Python seen in the process? */
bool seep_words_has_python(const struct seep_report *report);

/** Are Python's frames missing although there is a Python? */
bool seep_words_is_without_python(const struct seep_report *report);

/** What a row of @report is: "call sites", or one "module". */
const char *seep_words_rows(const struct seep_report *report, size_t count);

const char *seep_words_space(enum seep_space space);

#define SEEP_WORDS_GPU_BYTES 48

/** "GPU 0"; of one that is not known "a GPU". */
void seep_words_gpu(int device, char text[SEEP_WORDS_GPU_BYTES]);

/** Was it asked for long enough? A line through less is no growth. */
bool seep_words_is_followed(const struct seep_report_device *device);

/** Does memory of @space lie on a device? */
bool seep_words_is_gpu(enum seep_space space);

/** "heap", "device"; "device 1" where there is more than one device. */
const char *seep_words_place(const struct seep_report *report,
                             const struct seep_report_site *site,
                             char text[SEEP_WORDS_GPU_BYTES]);

/** What seep_words_memory() says, of all sites that grow as @first does. */
const char *seep_words_growing(const struct seep_report *report,
                               const struct seep_report_site *first,
                               char text[SEEP_WORDS_GPU_BYTES]);

/** Live bytes that calls of the process hold of the host, and of GPUs. */
uint64_t seep_words_host_bytes(const struct seep_report *report);
uint64_t seep_words_gpu_bytes(const struct seep_report *report);

const char *seep_words_unwinder(enum seep_unwinder unwinder);
const char *seep_words_cut(enum seep_cut cut);
const char *seep_words_inert(enum seep_inert_reason reason);

/** Value of a counter by its number, 0 if the report has none such. */
uint64_t seep_words_counter(const struct seep_report *report, unsigned counter);

/** "0.3 % of the run", "at most 1.2 % of the run", "at most 2 ms"; or with
 * both, "12 ms, 0.3 % of the run", where the run is longer than that. And the
 * budget that was given. */
#define SEEP_WORDS_COST_BYTES 96
void seep_words_cost(const struct seep_report *report, bool in_seconds,
                     char *text, size_t size);

/** The next --size for a recording whose tables are full: twice what it could
 * grow to, in whole MiB. */
unsigned long long seep_words_larger_mib(const struct seep_report *report);

/** Why a file beside a recording was left out: "damaged". Static, or of
 * strerror(). @param error  negative errno of reader/process/beside.h */
const char *seep_words_beside(int error);

/** Sum of the counters of events that are missing from the figures. */
uint64_t seep_words_lost_events(const struct seep_report *report);

/** What lies in RSS of the memory that was recorded, if that was not sampled
 * as the sum of its spaces. */
struct seep_report_extent seep_words_tracked(const struct seep_report *report);
/** What the parts of private memory have more than there is of it (never
 * touched), or less, below 0 (handed out since the allocator was asked). */
struct seep_report_extent seep_words_surplus(const struct seep_report *report);
/** Is what the parts have more than there is shared memory that the program
 * mapped? It is tracked, and in .shared as well. */
bool seep_words_is_in_both(const struct seep_report *report);

/** Is that much, and no error of the sampling? */
bool seep_words_has_surplus(const struct seep_report *report);

/** Is memory of a fork copied, since it or the other process writes to it, by
 * more than is worth a word? That much a second; else 0. */
double seep_words_copied(const struct seep_report *report);

/** Is it to be said that its cgroup grows beside it? Of a leak, only if it is
 * full by that, too. */
bool seep_words_grows_beside(const struct seep_report *report);
/** Do threads become more, by so many that it is worth a word? */
bool seep_words_threads_grow(const struct seep_report *report);
/** Does what was never touched shrink by most of what the verdict is about? */
bool seep_words_writes_late(const struct seep_report *report);

/** Do its blocks take a tenth more than was asked for, or more? */
bool seep_words_is_rounded(const struct seep_report_site *site);

/** Is @site the one that is asked for by @site_id, or its beginning; NULL:
 * all are. A stack is asked for by the id of its line, too. */
bool seep_words_is_wanted(const struct seep_report_site *site,
                          const char *site_id);

#define SEEP_WORDS_ENTRY_BYTES 128
#define SEEP_WORDS_ENTRIES_MOST 16

/**
 * The first of the SEEP_ variables in @at, of .rejected of a report, as
 * NAME=VALUE or NAME. A reader stops after SEEP_WORDS_ENTRIES_MOST.
 *
 * @return where the next begins; NULL: there is none
 */
const char *seep_words_next_rejected(const char *at,
                                     char entry[SEEP_WORDS_ENTRY_BYTES]);

/** @path as a shell takes it for one word, whatever a stranger called his file.
 * To be freed; NULL without memory. */
char *seep_words_quote(const char *path);

/*
 * What is said of a process that was judged to the moment before its end, as
 * struct seep_report_end has it.
 */

#define SEEP_WORDS_END_BYTES 256U

/** How long the process lived, also where less of it is judged. */
double seep_words_life_s(const struct seep_report *report);

/** Did its end free so much of what it held that a reader should know? */
bool seep_words_end_is_reported(const struct seep_report *report);

/**
 * ", until it shut down and freed 110 MiB": for a sentence that says what
 * grows. Nothing where the end is not worth a word.
 */
void seep_words_put_until(FILE *file, const struct seep_report *report);

/**
 * "judged to 34 s, before it shut down, and freed 110 MiB", and what is to be
 * said where that moment was out of reach.
 *
 * @return @text, empty where nothing is to be said
 */
const char *seep_words_end(const struct seep_report *report,
                           char text[SEEP_WORDS_END_BYTES]);

/*
 * Why a recording has not the part of a run that was asked for.
 */

/** A phrase with what there is instead, of what seep_span_open() said. To be
 * freed; NULL without memory. */
char *seep_words_span_refused(const struct seep_report *report,
                              const struct seep_span_wish *wish, int error);

/*
 * Frames: a line's worth, in full, and which frames of a stack are told one by
 * one and which as "14 frames in libtorch_cpu.so" (frames.c).
 *
 * Pure functions; any thread.
 */

/** A frame in a few characters: "json.loads", "libpython3.11". */
char *seep_words_frame(const struct seep_report_frame *frame);

/** The same with the file that it is in: "json.loads", "server.handle". */
char *seep_words_frame_with_file(const struct seep_report_frame *frame);

/** The object of a frame in a few characters: "libtorch_cpu", "_json". */
char *seep_words_object(const struct seep_report_frame *frame);

/** What a site's row is named by: the user's frame, "serve.py:31 handle" or
 * "parse in libfoo"; or the function, module or thread that it stands for. */
char *seep_words_where(const struct seep_report *report,
                       const struct seep_report_site *site);

/** The user's frame of the site's stack, whatever its row is named by. */
char *seep_words_user_frame(const struct seep_report_site *site);

/** A frame in full: "function  file:line  (module+0x12)", and one of Python
 * "file:line function".
 * @param brief  without arguments and what templates take */
char *seep_words_frame_long(const struct seep_report_frame *frame, bool brief);

struct seep_fold_piece {
    size_t first; /* index of its first frame, innermost first */
    size_t count; /* 1 unless folded */
    bool folded;
};

/**
 * The pieces of @site's stack, in order, each frame in one of them. Python
 * frames but those of an import, the user's frame, and what stands next to the
 * allocation are pieces of their own; a stack without Python frames is told
 * whole.
 *
 * @param pieces  room for site->frame_count
 * @return their number
 */
size_t seep_fold(const struct seep_report_site *site,
                 struct seep_fold_piece *pieces);

/** "14 frames in libtorch_cpu.so, libc10.so and 2 more", to be freed; NULL
 * without memory. */
char *seep_fold_words(const struct seep_report_frame **frames, size_t count);

/** Is a Python frame the interpreter's own, of its import statement? */
bool seep_fold_is_machinery(const struct seep_report_frame *frame);

/** Index of the frame that speaks for native @frames, innermost first: the
 * last that is no plumbing, else the first of all. */
size_t seep_fold_speaker(const struct seep_report_frame **frames, size_t count);

bool seep_fold_has_python(const struct seep_report_site *site);

/** "serve.py:31 handle > json.loads > libpython3.11 < main", to be freed; NULL
 * without memory. */
char *seep_words_chain(const struct seep_report *report,
                       const struct seep_report_site *site);

#endif
