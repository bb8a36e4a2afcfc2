/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Triton's stub as far as a recorder can tell: a program linked with libpython
 * that ends with 1 if it is given nothing, and else runs a model's Python.
 *
 *     stub MODEL.PY REGION BYTES BYTES PARENT BACKEND HANDLE NAME
 */
#include <stdio.h>

#define WORDS 9
#define PATH_BYTES 4096

/* Python.h needs more of a machine than this. */
extern int Py_BytesMain(int argc, char **argv);

int main(int argc, char **argv)
{
    char script[PATH_BYTES];
    char *words[] = {argv[0], script, NULL, NULL, NULL, NULL};

    if (argc != WORDS) {
        return 1;
    }
    snprintf(script, sizeof(script), "%s/stub.py", argv[6]);
    words[2] = argv[1];
    words[3] = argv[2];
    words[4] = argv[8];
    return Py_BytesMain(5, words);
}
