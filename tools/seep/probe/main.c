/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep-probe: `seep probe` in a file of its own, for containers that have
 * nothing else of ours. Linked statically, so that it starts at once, and is
 * not itself loaded with what the environment says to preload.
 */
#include <stdio.h>

#include "verbs.h"
#include "words/clean.h"

int main(int argc, char **argv)
{
    int code;

    seep_clean_init();
    seep_clean_follow_locale();
    code = seep_cmd_probe(argc, argv);
    fflush(stdout);
    return code;
}
