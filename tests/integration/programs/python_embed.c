/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that brings Python by dlopen, runs it, and gives it back.
 *
 *     python_embed LIBPYTHON FRAMES_LIBRARY ARGUMENTS OF PYTHON...
 *
 * Exit code: Python's; 90 and more: what went wrong here.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int main_function(int argc, char **argv);
typedef int capture_function(char *buffer, size_t size);

int main(int argc, char **argv)
{
    static char text[1 << 16];
    main_function *run;
    capture_function *capture;
    void *frames;
    void *library;
    void *found;
    int status;

    if (argc < 4) {
        return 90;
    }
    library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    frames = dlopen(argv[2], RTLD_NOW);
    if (library == NULL || frames == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 91;
    }
    found = dlsym(library, "Py_BytesMain");
    memcpy(&run, &found, sizeof(run));
    found = dlsym(frames, "python_frames_capture");
    memcpy(&capture, &found, sizeof(capture));
    if (run == NULL || capture == NULL) {
        return 92;
    }
    argv[2] = argv[0];
    status = run(argc - 2, argv + 2);
    dlclose(library);
    /* Nothing of it may be touched now. */
    capture(text, sizeof(text));
    return strstr(text, "P ") != NULL || text[0] != 'N' ? 93 : status;
}
