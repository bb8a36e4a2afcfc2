/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a fuzzer's entry over every file of a folder: what was found once is
 * tried for ever, with any compiler.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* libFuzzer's own, which a target's mutator may call: nothing is mutated here.
 */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most)
{
    (void)data;
    (void)most;
    return size;
}

static int replay(const char *folder, const char *name)
{
    static uint8_t data[65536];
    char path[4096];
    FILE *file;
    size_t size;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    size = fread(data, 1, sizeof(data), file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    return 0;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    struct dirent *entry;
    int replayed = 0;

    if (folder == NULL) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 1;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        if (replay(argv[1], entry->d_name) != 0) {
            return 1;
        }
        replayed++;
    }
    closedir(folder);
    return replayed > 0 ? 0 : 1;
}
