/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which frame of a stack belongs to the user: of Python's the innermost in a
 * file of the user's own, else in a package, else in Python's library; without
 * Python the first frame that is not of libc, the C++ runtime, an allocator,
 * the interpreter, CUDA or seep itself.
 *
 * Pure functions of names; any thread.
 */
#ifndef SEEP_READER_SYMBOLS_WHERE_H
#define SEEP_READER_SYMBOLS_WHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/report/report.h"

/** Is all of the object at @module between a program and its memory? */
bool seep_where_is_plumbing(const char *module);

/** Is it PyTorch's allocator for CUDA? */
bool seep_where_is_cache_of_tensors(const char *module);

bool seep_where_is_user(const struct seep_report_frame *frame);

/** Where the name itself begins in a demangled function: behind the type that
 * it returns, which templates show. */
const char *seep_where_function_name(const char *function);

/** Index of the user's frame; 0 when there is none. */
size_t seep_where_pick(const struct seep_report_frame **frames, size_t count);

/** "file:line function", or as much of it as is known. @return as snprintf */
int seep_where_format(const struct seep_report_frame *frame, char *text,
                      size_t capacity);

/*
 * Threads are numbered as they come ("Thread-12"), and do the same work under
 * another number in the next run: each run of digits counts as one *.
 */
#define SEEP_WHERE_THREAD_BYTES 256U
void seep_where_thread_without_numbers(const char *name,
                                       char text[SEEP_WHERE_THREAD_BYTES]);

/** What begins the name of one that was redacted: behind it stands, in 16
 * hexadecimal digits, the hash of its own. The kernel's names are shorter. */
#define SEEP_WHERE_THREAD "thread #"

/** The hash of a thread's name without numbers, also where it was redacted. */
uint64_t seep_where_thread_hash(const char *name);

/** Was @name redacted? */
bool seep_where_thread_is_redacted(const char *name);

/*
 * An allocator that a library brings along maps memory for itself and hands it
 * out in blocks that no hook sees: whoever needs the next part of its pool need
 * not keep anything in it.
 */
struct seep_where_pool {
    const char *library;   /* "polars"; the object's name where it is of none
                              that is known */
    const char *allocator; /* "jemalloc" */
};

/** Did it make the anonymous mapping of this stack, by the names of objects and
 * functions? ret_pool.library points to the table, or into @frames. */
bool seep_where_is_pool(const struct seep_report_frame **frames, size_t count,
                        struct seep_where_pool *ret_pool);

/*
 * Whose a file of Python is, by its name alone: the user's own, a package that
 * was installed, or Python's own library.
 */

/** In the order in which they are the answer to "where?", the last first. */
enum seep_python_origin {
    SEEP_PYTHON_NAMELESS, /* its name was lost */
    SEEP_PYTHON_FROZEN,   /* "<frozen importlib._bootstrap>" */
    SEEP_PYTHON_LIBRARY,  /* below lib/python3.11 */
    SEEP_PYTHON_COMMAND,  /* bin/gunicorn: what an installer wrote */
    SEEP_PYTHON_PACKAGE,  /* below site-packages or dist-packages */
    SEEP_PYTHON_TEXT,     /* "<string>": exec, python -c, dataclasses */
    SEEP_PYTHON_USER,
};

enum seep_python_origin seep_where_python_origin(const char *file);

/**
 * What of @file is the same wherever things are installed: behind
 * site-packages, behind lib/python3.11, or of the user's own its short name.
 */
const char *seep_where_python_tail(const char *file);

/** The first part of the tail: "torch", "json", "serve.py". @return snprintf */
int seep_where_python_module(const char *file, char *text, size_t capacity);

/** Is it of Python's import machinery? */
bool seep_where_python_imports(const char *file);

/** Is it where asyncio runs a step of a task, or a callback? */
bool seep_where_python_runs_task(const char *file, const char *function);

#endif
