/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** Copy again what changed while it was copied; see snapshot.h. */
#ifndef SEEP_READER_SNAPSHOT_SETTLE_H
#define SEEP_READER_SNAPSHOT_SETTLE_H

#include "reader/snapshot.h"

/** @return 0; -ENODATA if the file shrank; else negative errno */
int seep_snapshot_settle(struct seep_snapshot *snapshot, int fd);

#endif
