// SPDX-License-Identifier: LGPL-2.1-or-later
/* Another unit of fixture_members.cc, with a class of a name that that has. */
#include "fixture_members.h"

namespace
{
struct Local {
    virtual ~Local()
    {
    }
    char *other;
    long unused;
};
} // namespace

static Local *other_local = new Local;

[[gnu::visibility("default")]] const void *fixture_other_object()
{
    return other_local;
}
