/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Shells and launchers, which mostly execute the one that is meant: in exact
 * mode every one of them would have something to record. So would we ourselves,
 * asked again and again where a container's environment preloads. By name.
 */
#ifndef SEEP_BASE_LAUNCHERS_H
#define SEEP_BASE_LAUNCHERS_H

#define SEEP_LAUNCHERS                                                         \
    "sh:dash:bash:zsh:env:nice:ionice:nohup:timeout:setsid:stdbuf:xargs:sudo:" \
    "numactl:taskset:tini:dumb-init:seep:seep-probe"

#endif
