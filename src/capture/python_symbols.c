/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names, and the versions before 3.11 told apart by what each added.
 *
 * Invariant: as in python_symbols.h.
 */
#include "capture/python_symbols.h"

#include <string.h>

struct names {
    seep_python_lookup *lookup;
    const void *data;
    bool missing;
};

static uintptr_t look(const struct names *names, const char *name)
{
    uintptr_t address = 0;
    size_t bytes;

    return names->lookup(names->data, name, &address, &bytes) ? address : 0;
}

static uintptr_t need(struct names *names, const char *name, const char *older)
{
    uintptr_t address = look(names, name);

    if (address == 0 && older != NULL) {
        address = look(names, older);
    }
    names->missing |= address == 0;
    return address;
}

/* For 3.8 to 3.10, which say their version only by a function that prints. */
static uint32_t version_by_names(const struct names *names)
{
    static const struct {
        const char *name;
        unsigned int minor;
    } added[] = {
        {"Py_NewRef", 10}, {"PyFrame_GetCode", 9}, {"Py_BytesMain", 8}};

    for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
        if (look(names, added[i].name) != 0) {
            return 0x030000f0U | added[i].minor << 16;
        }
    }
    return 0x030700f0U;
}

#define TAKE_FUNCTION(field, address) \
    memcpy(&(field), &(uintptr_t){address}, sizeof(field))

enum seep_python_state seep_python_symbols_find(seep_python_lookup *lookup,
                                                const void *data,
                                                struct seep_python *ret_python)
{
    struct names names = {.lookup = lookup, .data = data};
    struct seep_python found = {0};
    size_t bytes = 0;

    found.code_type = look(&names, "PyCode_Type");
    if (found.code_type == 0) {
        return SEEP_PYTHON_NONE;
    }
    found.version = look(&names, "Py_Version");
    if (found.version == 0) {
        found.hex = version_by_names(&names);
        if (found.hex >> 16 == 0x0307) {
            return SEEP_PYTHON_OLD;
        }
    }
    if (look(&names, "_Py_NegativeRefcount") != 0) {
        return SEEP_PYTHON_DEBUG;
    }
    found.runtime = need(&names, "_PyRuntime", NULL);
    found.text_type = need(&names, "PyUnicode_Type", NULL);
    found.bytes_type = need(&names, "PyBytes_Type", NULL);
    found.frame_type = need(&names, "PyFrame_Type", NULL);
    TAKE_FUNCTION(found.current_state,
                  need(&names, "PyThreadState_GetUnchecked",
                       "_PyThreadState_UncheckedGet"));
    TAKE_FUNCTION(found.own_state,
                  need(&names, "PyGILState_GetThisThreadState", NULL));
    TAKE_FUNCTION(found.is_finalizing,
                  need(&names, "Py_IsFinalizing", "_Py_IsFinalizing"));
    TAKE_FUNCTION(found.is_initialized, need(&names, "Py_IsInitialized", NULL));
    if (names.missing) {
        return SEEP_PYTHON_SYMBOLS;
    }
    if (lookup(data, "_PyEval_EvalFrameDefault", &found.evaluate_low, &bytes)) {
        found.evaluate_high = found.evaluate_low + bytes;
    }
    *ret_python = found;
    return SEEP_PYTHON_ON;
}
