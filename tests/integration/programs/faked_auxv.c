/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One answer of getauxval() is another: FAKED_AUXV=TYPE=VALUE. What a kernel
 * says of a set-uid program, that is, or does not say.
 */
#include <stdlib.h>

unsigned long __getauxval(unsigned long type); /* glibc's, by its own name */

__attribute__((visibility("default"))) unsigned long
getauxval(unsigned long type)
{
    const char *faked = getenv("FAKED_AUXV");
    char *value = NULL;

    if (faked != NULL && strtoul(faked, &value, 10) == type) {
        return strtoul(value + 1, NULL, 10);
    }
    return __getauxval(type);
}
