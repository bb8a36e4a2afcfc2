// SPDX-License-Identifier: LGPL-2.1-or-later
// A zoo of holders in C++ whose members have names by DWARF alone.
//
//     holders_members_cc READY COUNT
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "holders_members.h"

namespace zoo
{

struct Kept {
    virtual ~Kept() = default;
    long count = 0;
    std::vector<char *> by_base;
};

struct Other {
    virtual ~Other() = default;
    virtual void put(char *block) = 0;
    std::vector<char *> by_other;
};

struct Pool {
    long count;
    char *slots[65536];
};

struct Shelf {
    long number;
    std::vector<char *> books;
    std::unordered_map<int, char *> names;
};

struct Service : Kept, Other {
    std::map<int, char *> by_key;
    std::unique_ptr<Pool> pool = std::make_unique<Pool>();
    std::vector<Pool *> pools{new Pool};
    Shelf shelf;
    Shelf shelves[3];
    std::list<char *> queue;
    struct Hidden;
    Hidden *hidden;
    void put(char *block) override
    {
        by_other.push_back(block);
    }
};

struct Service::Hidden {
    virtual ~Hidden() = default;
    long unused;
    std::vector<char *> entries;
};

template <class T, class... More> struct Box : Kept {
    T value;
    std::vector<char *> items;
    virtual void add(char *block, const T &)
    {
        items.push_back(block);
    }
};

// The same, but another place for its items.
template <> struct Box<int, char> : Kept {
    std::vector<char *> first_of_all;
    long number[7];
    virtual void add(char *block, int)
    {
        first_of_all.push_back(block);
    }
};

struct Static {
    virtual ~Static() = default;
    std::vector<char *> lines;
    static Static &instance()
    {
        static Static only;
        return only;
    }
};

} // namespace zoo

using Text = std::string;

auto *service = new zoo::Service;
auto *texts = new zoo::Box<Text, std::map<Text, long>>;
auto *numbers = new zoo::Box<int, char>;
zoo::Shelf shelf;

void keep_hidden_first(char *at);
void keep_hidden_second(char *at);
void keep_hidden_third(char *at);
void keep_shared_first(char *at);
void keep_shared_third(char *at);

#define BLOCK fill(malloc(BLOCK_BYTES))

// clang-format off
KEEPER(in_a_base, "service.by_base", service->by_base.push_back(BLOCK))
KEEPER(in_a_second_base, "service.by_other", service->put(BLOCK))
KEEPER(in_a_map, "service.by_key", service->by_key[i] = BLOCK)
KEEPER(in_a_unique_pointer, "service.pool.slots[...]", service->pool->slots[i % 65536] = BLOCK)
KEEPER(in_a_vector_of_pointers, "service.pools[...].slots[...]", service->pools[0]->slots[i % 65536] = BLOCK)
KEEPER(in_a_nested_class, "service.shelf.books", service->shelf.books.push_back(BLOCK))
KEEPER(in_a_nested_array, "service.shelves[...].names", service->shelves[2].names[i] = BLOCK)
KEEPER(in_a_list, "service.queue", service->queue.push_back(BLOCK))
KEEPER(in_an_implementation, "service.hidden.entries", service->hidden->entries.push_back(BLOCK))
KEEPER(in_a_template, "texts[abi:cxx11].items", texts->add(BLOCK, "of it"))
KEEPER(in_a_specialised_one, "numbers.first_of_all", numbers->add(BLOCK, i))
KEEPER(in_a_global, "shelf.books", shelf.books.push_back(BLOCK))
KEEPER(in_a_static, "zoo::Static::instance()::only.lines", zoo::Static::instance().lines.push_back(BLOCK))
KEEPER(in_a_hidden_one, "hidden_first.of_first", keep_hidden_first(BLOCK))
KEEPER(in_another_of_its_name, "hidden_second.of_second", keep_hidden_second(BLOCK))
KEEPER(in_one_of_a_library, "hidden_third.of_third", keep_hidden_third(BLOCK))
KEEPER(in_a_class_of_two_modules, "shared_first.of_first", keep_shared_first(BLOCK))
KEEPER(in_the_other_module, "shared_third.of_third", keep_shared_third(BLOCK))
// clang-format on

#define KEEPERS(X)               \
    X(in_a_base)                 \
    X(in_a_second_base)          \
    X(in_a_map)                  \
    X(in_a_unique_pointer)       \
    X(in_a_vector_of_pointers)   \
    X(in_a_nested_class)         \
    X(in_a_nested_array)         \
    X(in_a_list)                 \
    X(in_an_implementation)      \
    X(in_a_template)             \
    X(in_a_specialised_one)      \
    X(in_a_global)               \
    X(in_a_static)               \
    X(in_a_hidden_one)           \
    X(in_another_of_its_name)    \
    X(in_one_of_a_library)       \
    X(in_a_class_of_two_modules) \
    X(in_the_other_module)

int main(int, char **arguments)
{
    static const struct keeper keepers[] = {
#define TOLD(name) {#name, name##_line, name##_holder, name},
        KEEPERS(TOLD)};

    service->hidden = new zoo::Service::Hidden;
    go_on(keepers, sizeof(keepers) / sizeof(*keepers), arguments);
}
