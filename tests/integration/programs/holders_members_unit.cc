// SPDX-License-Identifier: LGPL-2.1-or-later
// A unit of holders_members_cc: a class of this name is in each, laid out
// another way. KEEP is what it is called, and WHERE its member.
#include <vector>

namespace
{

struct Hidden {
    virtual ~Hidden() = default;
    virtual void put(char *block);
    long before[BEFORE];
    std::vector<char *> WHERE;
};

void Hidden::put(char *block)
{
    WHERE.push_back(block);
}

} // namespace

// What a library hides is another class than the program's of that name.
struct __attribute__((visibility("hidden"))) SHARED {
    virtual ~SHARED() = default;
    virtual void put(char *block);
    long before[2 * BEFORE];
    std::vector<char *> WHERE;
};

void SHARED::put(char *block)
{
    WHERE.push_back(block);
}

#define JOINED(a, b) a##b
#define NAMED(a, b) JOINED(a, b)

Hidden *NAMED(hidden_, KEEP);
SHARED *NAMED(shared_, KEEP);

__attribute__((visibility("default"))) void NAMED(keep_hidden_, KEEP)(char *at)
{
    if (NAMED(hidden_, KEEP) == nullptr) {
        NAMED(hidden_, KEEP) = new Hidden;
    }
    NAMED(hidden_, KEEP)->put(at);
}

__attribute__((visibility("default"))) void NAMED(keep_shared_, KEEP)(char *at)
{
    if (NAMED(shared_, KEEP) == nullptr) {
        NAMED(shared_, KEEP) = new SHARED;
    }
    NAMED(shared_, KEEP)->put(at);
}
