/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The PyTorch that a Python of PATH would import, by its files.
 *
 * Invariant: it is not imported: that takes seconds, and touches the driver.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

/* __version__ of the version.py that lies beside @origin. */
static void read_version(const char *origin, char *version, size_t size)
{
    char path[PATH_MAX];
    char line[256];
    const char *slash = strrchr(origin, '/');

    version[0] = '\0';
    snprintf(path, sizeof(path), "%.*s/version.py", (int)(slash - origin),
             origin);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *quote = strpbrk(line, "'\"");
        if (strncmp(line, "__version__", 11) == 0 && quote != NULL) {
            snprintf(version, size, "%.*s", (int)strcspn(quote + 1, "'\""),
                     quote + 1);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static bool has_gpu_part(const char *origin)
{
    char path[PATH_MAX];
    const char *slash = strrchr(origin, '/');

    snprintf(path, sizeof(path), "%.*s/lib/libc10_cuda.so",
             (int)(slash - origin), origin);
    return access(path, F_OK) == 0;
}

void seep_doctor_check_torch(const struct seep_doctor_facts *facts,
                             struct seep_doctor *doctor)
{
    char version[64];
    bool found = false;

    for (size_t i = 0; i < facts->python_count; i++) {
        const struct seep_doctor_python *python = &facts->pythons[i];
        if (strchr(python->torch, '/') == NULL) {
            continue;
        }
        found = true;
        read_version(python->torch, version, sizeof(version));
        seep_doctor_find(doctor, "torch", SEEP_DOCTOR_OK, NULL,
                         "PyTorch %s for %s: %s", version, python->path,
                         has_gpu_part(python->torch)
                             ? "tensors on GPUs are recorded as such"
                             : "built without CUDA, its tensors are host "
                               "memory");
    }
    if (!found) {
        seep_doctor_find(doctor, "torch", SEEP_DOCTOR_ABSENT, NULL,
                         "no PyTorch in a Python of PATH");
    }
}
