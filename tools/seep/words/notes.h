/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Notes of tables and pages: what stands beside a row, below it, or where rows
 * were left out. Formats, so that the compiler checks what is put into them.
 */
#ifndef SEEP_TOOL_WORDS_NOTES_H
#define SEEP_TOOL_WORDS_NOTES_H

/* Memory: beside the rows of the balance. */

#define SEEP_NOTE_ESTIMATED "estimated: %s does not report it"
#define SEEP_NOTE_RETAINED "%s, plus %s retained"
#define SEEP_NOTE_FREE_PIECES "%s, %s free piece%s"
#define SEEP_NOTE_UNTOUCHED "allocated, but never written to"
#define SEEP_NOTE_IN_BOTH \
    "shared memory that it mapped: tracked, and in shared as well"
#define SEEP_NOTE_NEWER "allocated since %s was last asked"
#define SEEP_NOTE_UNSEEN "not seen by any hook"
#define SEEP_NOTE_UNSEEN_BY_FORK "of before the fork, or not seen by any hook"
#define SEEP_NOTE_FORKED "as at the fork; copied when written to"
#define SEEP_NOTE_SHARED "files and shared memory"
#define SEEP_NOTE_OWN "its recording, mapped"
#define SEEP_NOTE_FILES "mapped; pages that were read are in shared"
#define SEEP_NOTE_MAPPING_GREW "%s at 0x%llx: %s to %s, %s"
#define SEEP_NOTE_BLOCK_FILLS "%s of %s, at 0x%llx: %s to %s in use, %s"

/* Devices. */

#define SEEP_NOTE_DEVICE_LOW "of %s, %s free, %s at the lowest"
#define SEEP_NOTE_DEVICE_FREE "of %s, %s free"
#define SEEP_NOTE_DEVICE_TRACKED "by calls of this process"
#define SEEP_NOTE_DEVICE_PEAK \
    "by calls of this process, %s at their peak, after %s"
#define SEEP_NOTE_DEVICE_FRAGMENTS "grows, but its tensors do not"
#define SEEP_NOTE_DEVICE_CACHE_GROWS "grows by more than its tensors"
#define SEEP_NOTE_DEVICE_OTHERS "contexts, code, other processes"
#define SEEP_NOTE_DEVICE_POOL "kept by the driver for cuMemAllocAsync"
#define SEEP_NOTE_DEVICE_GRAPHS "of CUDA graphs, %s of it in use"
#define SEEP_NOTE_DEVICE_UNTOLD \
    "unknown: the driver is asked only when it has served a call, and it served too few"

/* Call sites: below a row, and what the table left out. */

#define SEEP_NOTE_GROUP "%stogether %s, in step"
#define SEEP_NOTE_GROUP_LENT \
    "%stogether %s, in step: CPython hands freed dicts, lists, tuples and floats on to the next line that makes one. Of the blocks made at the first line %s are live, at the one that lends %s"
#define SEEP_NOTE_SEGMENTS \
    "segments of PyTorch's cache, by the line that missed it: the rows of space tensor show which lines keep their contents"
#define SEEP_NOTE_SUPPRESSED_BY "suppressed by leak:%s"
#define SEEP_NOTE_KNOWN_BOUND "known bound: %s"
#define SEEP_NOTE_PATTERN "known: %s. %s %s (%s)"
#define SEEP_NOTE_LARGEST_STACK \
    "the largest of %zu stacks, %s live (--by stack lists them)"
#define SEEP_NOTE_REQUESTED " (%s were asked for)"
#define SEEP_NOTE_NO_SITE " no site %s here"
#define SEEP_NOTE_SUPPRESSED \
    "%zu suppressed (%s)%s%s: --show-suppressed shows %s"
#define SEEP_NOTE_MINOR "%zu that grew by less than %s each, %s together"
#define SEEP_NOTE_START_UP "imports and start-up, %zu %s"
#define SEEP_NOTE_MORE_SITES "%zu more %s (--sites 0 shows all)"

/* Parts of a run. */

#define SEEP_NOTE_WHOLE_RUN "Of the whole run:"
#define SEEP_NOTE_MOMENT "%s after the start, %s was live"
#define SEEP_NOTE_HIGHEST "the most at any step of the run%s%s"
#define SEEP_NOTE_PEAK_WAS "the peak was %s, %s after the start"
#define SEEP_NOTE_PART "from %s to %s: live %s, from %s to %s, %s"
#define SEEP_NOTE_FLOWS "%s were allocated in it, and %s freed"
#define SEEP_NOTE_BORDERS "known by steps of %s%s%s%s%s"
#define SEEP_NOTE_UNKNOWN \
    "of %zu %s, at most %s, it is not known what stood then: the tables were full"
#define SEEP_NOTE_UNTOLD \
    "%zu %s allocated up to %s more at a time that is not known, and may be in it"
#define SEEP_NOTE_MORE_IN_PART "%zu more %s, %s (--sites 0 shows all)"
#define SEEP_NOTE_UNCHANGED "%zu %s that did not change, %s live"
#define SEEP_NOTE_TREE_DOWN "callers, down to what allocates"
#define SEEP_NOTE_TREE_UP "what allocates, up to its callers"
#define SEEP_NOTE_THIN "%zu thinner branch%s"
#define SEEP_NOTE_CALLS "… %zu calls …"
#define SEEP_NOTE_ITSELF "by itself"
#define SEEP_NOTE_THIS_WAY "by this way"
#define SEEP_NOTE_NOT_HERE "no such site here"
#define SEEP_NOTE_NOTHING_STOOD "nothing was live then"
#define SEEP_NOTE_NOTHING_HAPPENED "nothing was allocated or freed in it"

/* Processes. */

#define SEEP_NOTE_BEGAN "the work began %s after the start: %s%s%s"

#define SEEP_NOTE_FAILED \
    "%s allocation%s found no room, the last of %s%s%s, %s before the end"
#define SEEP_NOTE_FAILED_AGO \
    "%s allocation%s found no room, the last of %s%s%s, %s ago"

#define SEEP_NOTE_LAST "in its last %s it allocated %s and gave back %s%s%s%s%s"
#define SEEP_NOTE_LAST_KEPT "; it kept most at "
#define SEEP_NOTE_LAST_GROUP "its cgroup held %s of %s when it was last seen"

#define SEEP_NOTE_LOOKS_UNREAD \
    "%s.looks: %s; what was seen of the process from outside is left out"
#define SEEP_NOTE_HELD_UNREAD \
    "%s.held: %s; who held what before the end is left out"
#define SEEP_NOTE_REMOVED \
    "%u older recording%s, %s, when this one began: the folder held more than SEEP_KEEP allows"
#define SEEP_NOTE_PROCESSES "%zu processes: %s; first to look at: pid %u, %s"
#define SEEP_NOTE_TOGETHER \
    "%zu processes: one by one %s, together %s; first to look at: pid %u, %s"
#define SEEP_NOTE_BRIEF_PROCESSES \
    "%zu process%s that lived less than %.0f s (--processes 0 shows all)"
#define SEEP_NOTE_RECORDER "%s; %s events lost; cost %s"

/* Checks and diffs. */

#define SEEP_NOTE_CHECK_MORE_SITES "and %zu more call sites"
#define SEEP_NOTE_CHECK_LIMIT_KEPT "%s: the limit holds"
#define SEEP_NOTE_CHECK_LIMITS_KEPT "%s: all %zu limits hold"
#define SEEP_NOTE_CHECK_BESIDE \
    "the cgroup of pid %u grows by %s/min beside it, which no limit is about: seep report %s"
#define SEEP_NOTE_DIFF_MORE " and %zu more that grow%s: --sites 0"
#define SEEP_NOTE_DIFF_STILL " %zu call site%s neither before nor now"
#define SEEP_NOTE_DIFF_EXCUSED " %zu suppressed, or below a known bound"
#define SEEP_NOTE_DIFF_AGE \
    " the processes lived for different times: what they hold is compared at the age of %s"
#define SEEP_NOTE_DIFF_PACE \
    " %.1f times as much was freed in the same time: what grows faster by the clock may be more work"
#define SEEP_NOTE_DIFF_ALONE "%s ran %s only, and is not compared"

#endif
