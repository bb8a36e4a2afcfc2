/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Its constructor is the program's (cuda_locked.c). */
extern void locked_construct(void);

__attribute__((constructor)) static void construct(void)
{
    locked_construct();
}
