/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The recording that the model works on: some pages, rings of four slots. */
#ifndef SEEP_TESTS_MODEL_RECORDING_H
#define SEEP_TESTS_MODEL_RECORDING_H

#include "seep/recording.h"

extern struct seep_rec_header *recording;

#endif
