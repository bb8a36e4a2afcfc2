/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the fixture says of its own members. */
#ifndef FIXTURE_MEMBERS_H
#define FIXTURE_MEMBERS_H

#include <stddef.h>

#define FIXTURE_HOPS 3

struct fixture_member {
    const char *what; /* the class as its type information has it, or "" */
    const void *at;   /* the variable, or code of the class */
    size_t hops;
    struct {
        size_t offset;
        size_t bytes;
        const char *member;
        const char *type;
    } hop[FIXTURE_HOPS];
};

#endif
