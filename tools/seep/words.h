/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Words that every view uses for the same thing. What is taken from a
 * recording is not cleaned here: the page and the JSON writer do that.
 */
#ifndef SEEP_TOOL_WORDS_H
#define SEEP_TOOL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "reader/report.h"

/** What lived less long is no worker. */
#define SEEP_WORDS_BRIEF_S 1.0

/** Helpers of a script come by the dozen, live for a moment, tell nothing. */
bool seep_words_is_brief(const struct seep_report *report);

/** Name of a state as JSON has it: running, exited, killed, gone, unknown. */
const char *seep_words_state_name(enum seep_process_state state);

/** "killed by signal 9", "exited with status 3", "still running". */
void seep_words_state(const struct seep_report *report, char *text,
                      size_t size);

/** "exact", "sampled every 512 KiB", "began exact, now sampled every ..". */
void seep_words_mode(const struct seep_report *report, char *text, size_t size);

/** Name of a mode as JSON has it: exact or sampled. */
const char *seep_words_mode_name(const struct seep_report *report);

/** "python3 serve.py": the command line, its program without the folder. */
char *seep_words_command(const struct seep_report *report);

/** "python3 serve.py", "python3 -m vllm": what tells it from others. */
char *seep_words_program(const struct seep_report *report);

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

/** Is a row of @report more than one place in the code? */
bool seep_words_is_broad(const struct seep_report *report);

/** "3.11.2", "3.14.0rc1" of @version as PY_VERSION_HEX; of one before 3.11 no
 * more is known than "3.8". */
void seep_words_python_version(uint32_t version, char *text, size_t size);

/** Was a Python seen in the process? */
bool seep_words_has_python(const struct seep_report *report);

/** Are Python's frames missing although there is a Python? */
bool seep_words_is_without_python(const struct seep_report *report);

/** A frame in full: "function  file:line  (module+0x12)", and one of Python
 * "file:line function".
 * @param brief  without arguments and what templates take */
char *seep_words_frame_long(const struct seep_report_frame *frame, bool brief);

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

/** What a site holds: "memory of GPU 0", "pinned host memory"; of NULL "host
 * memory". */
const char *seep_words_memory(const struct seep_report_site *site,
                              char text[SEEP_WORDS_GPU_BYTES]);

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

/** Seconds spent in seep; NAN if too few events were measured to tell. */
double seep_words_cost_s(const struct seep_report *report);

/** Sum of the counters of events that are missing from the figures. */
uint64_t seep_words_lost_events(const struct seep_report *report);

/** @path as a shell takes it for one word, whatever a stranger called his file.
 * To be freed; NULL without memory. */
char *seep_words_quote(const char *path);

#endif
