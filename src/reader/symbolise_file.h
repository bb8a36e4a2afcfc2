/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A module's file and its separate debug file, found, checked and opened.
 *
 * Addresses are those of the file itself: it is reported to libdwfl alone and
 * at bias 0, whatever else was loaded in the process.
 */
#ifndef SEEP_READER_SYMBOLISE_FILE_H
#define SEEP_READER_SYMBOLISE_FILE_H

#include <stdbool.h>

#include <elfutils/libdwfl.h>

#include "reader/symbolise.h"

struct seep_symbolise_file {
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwfl_Callbacks callbacks;
    const char *sysroot; /* "" if none; borrowed */
    const char *path;    /* without it; borrowed */
    bool use_debuginfod;
};

/** Zero @ret_file first. Strings given must live as long as the file. */
int seep_symbolise_file_init(const struct seep_symbol_module *module,
                             const struct seep_symboliser_options *options,
                             struct seep_symbolise_file *ret_file);

void seep_symbolise_file_fini(struct seep_symbolise_file *file);

#endif
