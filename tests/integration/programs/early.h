/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The two builds of early.c: the program calls the library's check. */
#ifndef SEEP_TEST_EARLY_H
#define SEEP_TEST_EARLY_H

#ifdef EARLY_MAIN
#define EARLY_ANSWER early_program_answer
#define EARLY_CHECK early_program_check
#else
#define EARLY_ANSWER early_library_answer
#define EARLY_CHECK early_library_check
#endif

int early_program_answer(void);
int early_program_check(void);
int early_library_answer(void);

/** @return 1 if every early allocation was given and kept its bytes */
int early_library_check(void);

#endif
