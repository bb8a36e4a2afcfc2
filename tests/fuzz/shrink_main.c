/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* shrink RECORDING SEED: a recording that fuzzers begin from. */
#include <stdio.h>

#include "small.h"

/* Of libFuzzer, which is not here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most)
{
    (void)data;
    (void)most;
    return size;
}

int main(int argc, char **argv)
{
    struct recording_builder small;

    if (argc != 3 || !small_shrink(argv[1], &small)) {
        fprintf(stderr, "usage: shrink RECORDING SEED\n");
        return 1;
    }
    builder_write(&small, argv[2]);
    return 0;
}
