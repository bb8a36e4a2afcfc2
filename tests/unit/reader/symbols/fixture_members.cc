// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Classes and variables whose members are known: the fixture says itself where
 * they lie and what they are called.
 *
 * Invariant: what is expected is by the layout that the compiler chose, and no
 * number is written down.
 */
#include <list>
#include <map>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include "fixture_members.h"

#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#pragma GCC diagnostic ignored "-Wpedantic" // an array without an end

struct node {
    node *next;
    char *payload;
};

namespace zoo
{
struct Base {
    virtual ~Base();
    int number;
    std::vector<int *> of_base;
};

struct Empty {
};

struct Inner : Empty {
    long first;
    std::map<int, std::string> by_id;
    struct {
        char *raw;
    } unnamed;
    union {
        char *text;
        long value;
    } either;
    union {
        char *letters;
        long digits;
    };
};

struct Second {
    virtual ~Second();
    node *head;
};

struct Cache : Base, Second {
    Inner inner;
    std::unique_ptr<node> owned;
    Inner slots[3];
    const volatile std::string name;
    node **table;
    std::vector<Inner> cells;
    std::vector<node *> rows;
    std::list<Inner> queue;
    void *anything;
    struct Hidden;
    Hidden *hidden;
    static std::vector<int> shared;
    virtual void go();
};

struct Cache::Hidden {
    virtual ~Hidden();
    long unused[2];
    std::list<int> tasks;
};

template <class T, int count = 4, class U = std::vector<T>> struct Box : Base {
    T value;
    U items;
    virtual void put(const T &more);
};

template <class T, int count, class U> void Box<T, count, U>::put(const T &more)
{
    items.push_back(more);
}

// Another layout, by arguments alone.
template <> struct Box<int, 7> : Base {
    long before[5];
    std::vector<int> specialised;
    virtual void put(const int &more);
};

void Box<int, 7>::put(const int &more)
{
    specialised.push_back(more);
}

struct Virtual : virtual Second {
    long own;
    char *text;
};

struct Flexible {
    size_t count;
    node *rows[];
};

Base::~Base()
{
}
Second::~Second()
{
}
Cache::Hidden::~Hidden()
{
}
void Cache::go()
{
    hidden = new Hidden();
}
} // namespace zoo

namespace
{
struct Local {
    virtual ~Local()
    {
    }
    long unused;
    char *mine;
};
} // namespace

static struct {
    long count;
    node *head;
    zoo::Flexible *flexible;
} registry;
zoo::Cache cache;
zoo::Cache *pointer;
thread_local node per_thread;
zoo::Base *boxes[] = {new zoo::Box<std::string>, new zoo::Box<int, 7>,
                      new zoo::Box<int>};
Local *local = new Local;
zoo::Virtual *with_virtual = new zoo::Virtual;

static node *function_node()
{
    static node inside;

    return &inside;
}

const void *fixture_other_object();

/* The first of its virtual functions. */
static const void *code_of(const void *object)
{
    return (*static_cast<const void *const *const *>(object))[0];
}

extern "C" [[gnu::visibility("default")]] const fixture_member *
fixture_members(size_t *ret_count)
{
    using zoo::Cache;
    using Texts = zoo::Box<std::string>;
    using Numbers = zoo::Box<int, 7>;
    using Plain = zoo::Box<int>;
    const size_t item = sizeof(zoo::Inner);

#define CLASS(type, ...)                          \
    {                                             \
        typeid(type).name(), nullptr, __VA_ARGS__ \
    }
#define VARIABLE(name, ...)      \
    {                            \
        "", &(name), __VA_ARGS__ \
    }
#define AT(type, member) offsetof(type, member), sizeof(type)
    static const fixture_member all[] = {
        CLASS(Cache, 1, {{AT(Cache, of_base), "of_base", "Cache"}}),
        CLASS(Cache, 2,
              {{AT(Cache, head), "head", "Cache"},
               {AT(node, payload), "payload", "node"}}),
        CLASS(Cache, 1, {{AT(Cache, inner), "inner.first", "Cache"}}),
        CLASS(Cache, 1, {{AT(Cache, inner.by_id), "inner.by_id", "Cache"}}),
        CLASS(Cache, 1,
              {{AT(Cache, inner.unnamed), "inner.unnamed.raw", "Cache"}}),
        CLASS(Cache, 1, {{AT(Cache, inner.either), "inner.either", "Cache"}}),
        CLASS(Cache, 1, {{AT(Cache, inner.letters), "inner", "Cache"}}),
        CLASS(Cache, 2,
              {{AT(Cache, owned), "owned", "Cache"},
               {AT(node, payload), "payload", "node"}}),
        CLASS(Cache, 1,
              {{AT(Cache, slots[2].by_id), "slots[...].by_id", "Cache"}}),
        CLASS(Cache, 1, {{AT(Cache, name), "name", "Cache"}}),
        CLASS(Cache, 3,
              {{AT(Cache, table), "table", "Cache"},
               {72, 800, "[...]", ""},
               {AT(node, payload), "payload", "node"}}),
        CLASS(Cache, 2,
              {{AT(Cache, cells), "cells", "Cache"},
               {3 * item + offsetof(zoo::Inner, by_id), 8 * item, "[...].by_id",
                "Inner"}}),
        CLASS(Cache, 3,
              {{AT(Cache, rows), "rows", "Cache"},
               {72, 800, "[...]", ""},
               {AT(node, next), "next", "node"}}),
        // behind a node of a list is what nobody knows
        CLASS(Cache, 2,
              {{AT(Cache, queue), "queue", "Cache"}, {16, 16 + item, "", ""}}),
        CLASS(Cache, 2,
              {{AT(Cache, anything), "anything", "Cache"}, {8, 16, "", ""}}),
        // what points to it may have more behind it than it says
        CLASS(Cache, 2,
              {{AT(Cache, head), "head", "Cache"},
               {sizeof(node), 2 * sizeof(node), "", "node"}}),
        // a class that is larger than what there is is another of that name
        CLASS(Cache, 1, {{offsetof(Cache, head), sizeof(Cache) - 8, "", ""}}),
        CLASS(Cache, 1, {{sizeof(Cache), 2 * sizeof(Cache), "", "Cache"}}),
        CLASS(Cache::Hidden, 1,
              {{AT(Cache::Hidden, tasks), "tasks", "Hidden"}}),
        CLASS(Texts, 1, {{AT(Texts, items), "items", nullptr}}),
        CLASS(Numbers, 1, {{AT(Numbers, specialised), "specialised", nullptr}}),
        CLASS(Plain, 1, {{AT(Plain, items), "items", nullptr}}),
        // two units have one of this name, which do not agree
        CLASS(Local, 1, {{AT(Local, mine), "", ""}}),
        {typeid(Local).name(),
         code_of(local),
         1,
         {{AT(Local, mine), "mine", "Local"}}},
        {typeid(Local).name(),
         code_of(fixture_other_object()),
         1,
         {{8, sizeof(Local), "other", "Local"}}},
        CLASS(zoo::Virtual, 1, {{AT(zoo::Virtual, text), "text", "Virtual"}}),
        {"N3zoo7NowhereE", nullptr, 1, {{0, 0, "", ""}}},
        {"not even one", nullptr, 1, {{0, 0, "", ""}}},
        VARIABLE(registry, 2,
                 {{AT(decltype(registry), head), "head", ""},
                  {AT(node, payload), "payload", "node"}}),
        VARIABLE(registry, 2,
                 {{AT(decltype(registry), flexible), "flexible", ""},
                  {offsetof(zoo::Flexible, rows) + 80, 800, "rows[...]",
                   "Flexible"}}),
        VARIABLE(
            cache, 1,
            {{AT(Cache, slots[1].unnamed), "slots[...].unnamed.raw", "Cache"}}),
        VARIABLE(pointer, 2,
                 {{0, 8, "", ""}, {AT(Cache, of_base), "of_base", "Cache"}}),
        VARIABLE(*function_node(), 1, {{AT(node, payload), "payload", "node"}}),
        VARIABLE(boxes, 1, {{16, sizeof(boxes), "[...]", ""}}),
    };

    cache.go();
    pointer = &cache;
    per_thread.next = registry.head;
    *ret_count = sizeof(all) / sizeof(*all);
    return all;
}
