/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What an interpreter exports of itself.
 *
 * Invariant: nothing of the interpreter is called or read here; what it is
 * called for later takes no lock and makes no object.
 */
#ifndef SEEP_CAPTURE_PYTHON_SYMBOLS_H
#define SEEP_CAPTURE_PYTHON_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/python_offsets.h"

/** A way to look up a name, in one object or in several in their order. */
typedef bool seep_python_lookup(const void *data, const char *name,
                                uintptr_t *ret_address, size_t *ret_bytes);

/** An interpreter: never changed once another thread can see it. */
struct seep_python {
    struct seep_python_offsets offsets;
    uint32_t hex;        /* as PY_VERSION_HEX; 0: see Py_Version */
    uintptr_t version;   /* Py_Version (3.11 and later), or 0 */
    uintptr_t runtime;   /* _PyRuntime */
    uintptr_t code_type; /* PyCode_Type and so on */
    uintptr_t text_type;
    uintptr_t bytes_type;
    uintptr_t frame_type;
    uintptr_t evaluate_low; /* _PyEval_EvalFrameDefault */
    uintptr_t evaluate_high;
    void *(*current_state)(
        void);                /* from 3.12 on of the thread; before that of
                                 whoever holds the GIL: never to be walked */
    void *(*own_state)(void); /* of the thread, with the GIL or without */
    int (*is_finalizing)(void);
    int (*is_initialized)(void);
    uintptr_t start; /* the object it lies in */
    uintptr_t end;
    bool late; /* dlopened after the start: it may be unloaded */
};

/**
 * Find the symbols. Sets all but .offsets, .start, .end and .late.
 *
 * @return SEEP_PYTHON_ON; SEEP_PYTHON_NONE if there is no interpreter at all;
 *         else why this one is not for us
 */
enum seep_python_state seep_python_symbols_find(seep_python_lookup *lookup,
                                                const void *data,
                                                struct seep_python *ret_python);

#endif
