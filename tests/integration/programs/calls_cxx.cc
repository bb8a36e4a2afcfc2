// SPDX-License-Identifier: LGPL-2.1-or-later
// seep.h in C++: it compiles there, and every call is heard.
#include "seep/seep.h"

#include <cstdio>

namespace
{
void speak()
{
    seep_mark("from C++");
    seep_progress(5);
    seep_label("language", "C++");
}
} // namespace

int main()
{
    struct seep_stats stats;

    speak();
    std::puts(::seep_stats(&stats) == 0 ? "recorded" : "nothing");
}
