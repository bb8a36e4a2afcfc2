/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Where CPython keeps what a stack needs, version by version.
 *
 * Invariant: what is found is a row of the table, which was taken from the
 * headers of a released version on a 64-bit Linux. From 3.13 on Python says
 * the offsets itself, in _Py_DebugOffsets: they must be the row's.
 */
#ifndef SEEP_CAPTURE_PYTHON_OFFSETS_H
#define SEEP_CAPTURE_PYTHON_OFFSETS_H

#include <stddef.h>
#include <stdint.h>

#include "seep/stack.h"

#define SEEP_PYTHON_MINOR_MIN 8U
#define SEEP_PYTHON_MINOR_MAX 14U
#define SEEP_PYTHON_OFFSET_NONE (-1)

/**
 * The fields: X(name). Frames are PyFrameObject to 3.10, _PyInterpreterFrame
 * from 3.11 on.
 *
 * thread_id          PyThreadState.thread_id, a pthread_t
 * thread_frame       .frame; 3.11, 3.12: .cframe; later: .current_frame
 * cframe_current     _PyCFrame.current_frame (3.11, 3.12)
 * cframe_previous    _PyCFrame.previous
 * frame_back         f_back or previous
 * frame_code         f_code or f_executable
 * frame_instruction  f_lasti; from 3.11 on a pointer into the code
 * frame_owner        owner
 * code_length        3.11 and later: code units, in ob_size
 * code_instructions  co_code, a bytes object; 3.11 and later: where they begin
 * code_lines         co_lnotab; 3.10 and later: co_linetable
 * text_header        bytes of a PyASCIIObject
 */
#define SEEP_PYTHON_FIELDS(X) \
    X(thread_id)              \
    X(thread_frame)           \
    X(cframe_current)         \
    X(cframe_previous)        \
    X(frame_back)             \
    X(frame_code)             \
    X(frame_instruction)      \
    X(frame_owner)            \
    X(code_filename)          \
    X(code_name)              \
    X(code_qualname)          \
    X(code_first_line)        \
    X(code_lines)             \
    X(code_instructions)      \
    X(text_header)

struct seep_python_offsets {
    unsigned int minor;
#define SEEP_PYTHON_FIELD(name) int name;
    SEEP_PYTHON_FIELDS(SEEP_PYTHON_FIELD)
#undef SEEP_PYTHON_FIELD
};

/** The same in every version. */
enum {
    SEEP_PYTHON_OBJECT_TYPE = 8,
    SEEP_PYTHON_OBJECT_SIZE = 16, /* also the length of a str */
    SEEP_PYTHON_BYTES_DATA = 32,
    SEEP_PYTHON_TEXT_STATE = 32,
    SEEP_PYTHON_TYPE_BASIC_SIZE = 32,
    SEEP_PYTHON_TYPE_MEMBERS = 240,
    SEEP_PYTHON_MEMBER_BYTES = 40,
    SEEP_PYTHON_MEMBER_OFFSET = 16,
};

/** How many words of _Py_DebugOffsets are looked at; 0: the version has none */
size_t seep_python_offsets_words(unsigned int minor);

/**
 * The offsets of a version.
 *
 * @param hex    as PY_VERSION_HEX
 * @param words  the first seep_python_offsets_words() of _PyRuntime
 * @return SEEP_PYTHON_ON, or why there are none: then *ret_offsets is untouched
 */
enum seep_python_state
seep_python_offsets_find(uint32_t hex, const uint64_t *words,
                         struct seep_python_offsets *ret_offsets);

#endif
