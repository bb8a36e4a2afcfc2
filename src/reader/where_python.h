/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Whose a file of Python is, by its name alone: the user's own, a package that
 * was installed, or Python's own library.
 *
 * Pure functions of names; any thread.
 */
#ifndef SEEP_READER_WHERE_PYTHON_H
#define SEEP_READER_WHERE_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

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

/** Its base name; with its folder where that is __init__.py or __main__.py. */
const char *seep_where_python_file(const char *file);

/**
 * What of @file is the same wherever things are installed: behind
 * site-packages, behind lib/python3.11, or of the user's own its short name.
 */
const char *seep_where_python_tail(const char *file);

/** The first part of the tail: "torch", "json", "serve.py". @return snprintf */
int seep_where_python_module(const char *file, char *text, size_t capacity);

/**
 * Does @file run whatever was given to it: an event loop, a pool? What lies
 * outside of such a frame did not call what lies inside.
 */
bool seep_where_python_dispatches(const char *file);

/** Is it where asyncio runs a step of a task, or a callback? */
bool seep_where_python_runs_task(const char *file, const char *function);

#endif
