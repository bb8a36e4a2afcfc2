/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Demangling by libiberty, the one library that knows C++ and both manglings
 * of Rust. Its callback form is used: it allocates nothing, so that it can be
 * left in the middle.
 *
 * Invariant: the output is bounded. A few hundred bytes of substitutions can
 * stand for gigabytes of text; printing is left by longjmp once the caller's
 * buffer is full.
 */
#include "reader/demangle.h"

#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

struct output {
    char *text;
    size_t capacity_bytes;
    size_t used_bytes;
    jmp_buf full;
};

static void append(const char *piece, size_t piece_bytes, void *opaque)
{
    struct output *output = opaque;
    size_t room_bytes = output->capacity_bytes - 1 - output->used_bytes;
    size_t taken_bytes = piece_bytes < room_bytes ? piece_bytes : room_bytes;

    memcpy(output->text + output->used_bytes, piece, taken_bytes);
    output->used_bytes += taken_bytes;
    if (taken_bytes < piece_bytes) {
        longjmp(output->full, 1);
    }
}

/*
 * Rust first: its legacy mangling is valid C++ too. libiberty's own limit of
 * recursion refuses C++ names over 1,024 bytes, which templates reach; the
 * cap on the input bounds the recursion as well, so it is lifted there.
 */
static bool print(const char *mangled, struct output *output)
{
    int options = DMGL_PARAMS | DMGL_ANSI;

    if (setjmp(output->full) != 0) {
        return true;
    }
    if (rust_demangle_callback(mangled, options, append, output) != 0) {
        return true;
    }
    output->used_bytes = 0;
    return strncmp(mangled, "_Z", 2) == 0 &&
           cplus_demangle_v3_callback(mangled, options | DMGL_NO_RECURSE_LIMIT,
                                      append, output) != 0;
}

bool seep_demangle(const char *mangled, char *ret_text, size_t text_bytes)
{
    char text[SEEP_DEMANGLE_TEXT_MAX];
    struct output output = {.text = text, .capacity_bytes = sizeof(text)};

    if (text_bytes == 0 || mangled[0] != '_' ||
        strnlen(mangled, SEEP_DEMANGLE_INPUT_MAX + 1) >
            SEEP_DEMANGLE_INPUT_MAX) {
        return false;
    }
    if (text_bytes < output.capacity_bytes) {
        output.capacity_bytes = text_bytes;
    }
    if (!print(mangled, &output)) {
        return false;
    }
    memcpy(ret_text, text, output.used_bytes);
    ret_text[output.used_bytes] = '\0';
    return true;
}
