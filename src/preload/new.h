/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** operator new and delete: what the constructor decides for them. */
#ifndef SEEP_PRELOAD_NEW_H
#define SEEP_PRELOAD_NEW_H

/** Once everything is looked up: who defines operator new? */
void seep_new_init(void);

#endif
