/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starts the Python that is in the process, runs a line, ends it; three times.
 *
 *     python_restart TEXT
 *
 * Exit code: how often the line failed; 90: there is no Python.
 */
#include <dlfcn.h>
#include <string.h>

typedef void start_function(int signals);
typedef int run_function(const char *text);
typedef int end_function(void);

int main(int argc, char **argv)
{
    start_function *start;
    run_function *run;
    end_function *end;
    void *found[3] = {dlsym(RTLD_DEFAULT, "Py_InitializeEx"),
                      dlsym(RTLD_DEFAULT, "PyRun_SimpleString"),
                      dlsym(RTLD_DEFAULT, "Py_FinalizeEx")};
    int failed = 0;

    if (argc != 2 || found[0] == NULL || found[1] == NULL || found[2] == NULL) {
        return 90;
    }
    memcpy(&start, &found[0], sizeof(start));
    memcpy(&run, &found[1], sizeof(run));
    memcpy(&end, &found[2], sizeof(end));
    for (int i = 0; i < 3; i++) {
        start(0);
        failed += run(argv[1]) != 0;
        failed += end() != 0;
    }
    return failed;
}
