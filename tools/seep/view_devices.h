/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** GPUs as text: where the memory of each is, and when it will be full. */
#ifndef SEEP_TOOL_VIEW_DEVICES_H
#define SEEP_TOOL_VIEW_DEVICES_H

#include "page.h"
#include "reader/report.h"

/** One table a device that the driver was asked about; nothing without any. */
void seep_view_devices(struct seep_page *page,
                       const struct seep_report *report);

#endif
