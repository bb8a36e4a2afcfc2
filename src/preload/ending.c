/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of the run; see ending.h. */
#include "preload/ending.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* Reads one word of the runtime's state: no GIL, no lock, at any time. */
static int (*is_finalizing)(void);

void seep_ending_init(void)
{
    /* CPython 3.13 and later; 3.7 to 3.12. */
    void *symbol = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");

    if (symbol == NULL) {
        symbol = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    }
    memcpy(&is_finalizing, &symbol, sizeof(is_finalizing));
    dlerror();
}

bool seep_ending_has_begun(void)
{
    return is_finalizing != NULL && is_finalizing() != 0;
}
