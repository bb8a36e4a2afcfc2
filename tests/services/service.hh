/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Services whose truth is known, in C++: what their main and the kinds share.
 *
 * A run is so many ticks of 20 ms, each of so many requests. What a run does
 * depends on its kind, its seconds and its seed only, never on the clock: a
 * tick that is late is made up for.
 *
 * Invariant: counting and telling the truth allocates nothing.
 * Units: bytes. Only the main thread counts.
 */
#ifndef SEEP_TEST_SERVICE_HH
#define SEEP_TEST_SERVICE_HH

#include <cstddef>
#include <cstdint>
#include <memory>

#if defined(__clang__)
#define SITE_FUNCTION __attribute__((noinline, disable_tail_calls))
#else
#define SITE_FUNCTION                                                          \
    __attribute__((noipa, optimize("no-optimize-sibling-calls")))
#endif

constexpr unsigned TICKS_PER_SECOND = 50;

struct Run {
    unsigned tick = 0;
    unsigned tick_count = 0;
    uint64_t requests = 0;
    uint64_t random = 0;

    double share() const { return double(tick) / tick_count; }
    uint64_t draw();               /* any number */
    double chance();               /* from 0 to below 1 */
    size_t between(size_t least, size_t most);
    unsigned due(double per_second) const; /* evenly: how many this tick */
    /** Is it the first tick of one of @count equal parts of the run? */
    bool part_begins(unsigned count) const;
};

/** A block in a list; the list's links lie in the blocks themselves. */
struct Block {
    Block *next;
    size_t bytes;
};

/** What the kind keeps, or no longer. */
void kept(size_t bytes, size_t blocks = 1);
void dropped(size_t bytes, size_t blocks = 1);

/** Write to every page; ends the program if @address is NULL. */
void *touch(void *address, size_t bytes);

/** Put @address, of so many bytes, in front of @list. */
void push(Block **list, void *address, size_t bytes);
/** Free the first block; returns its bytes, 0 of an empty list. */
size_t pop(Block **list);

class Service
{
  public:
    virtual ~Service();
    virtual unsigned load(const Run &run); /* requests in a tick */
    virtual void request(Run &run);
    virtual void tick(Run &run);

  protected:
    Block *list = nullptr; /* freed with the service */
};

struct Kind {
    const char *name;
    bool leaks;
    const char *functions; /* of the line that keeps, one of them; or NULL */
    bool even;             /* one site, and a rate that does not change */
    std::unique_ptr<Service> (*make)();
    double most_seconds; /* a longer run ends here; 0: as it is asked */
};

template <class T> std::unique_ptr<Service> make()
{
    return std::make_unique<T>();
}

extern const Kind leak_kinds[], step_kinds[], page_kinds[], clean_kinds[],
    cache_kinds[], sqlite_kinds[];

#endif
