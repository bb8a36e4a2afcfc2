// SPDX-License-Identifier: LGPL-2.1-or-later
// A zoo of holders in C++: each keeps blocks of a line of its own, and goes on.
//
//     holders_cc READY COUNT
//
// Each keeper begins with COUNT blocks; then READY is written, a line for each:
// its name, the number of the line that allocates, how it ends, where the root
// is, and what the holder must begin with. It goes on until it is ended.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace {

constexpr size_t kBytes = 4000;
constexpr int kSlots = 1 << 16;
constexpr size_t kFreedBytes = 700;

struct Item {
    Item *next;
    char *data;
};

struct Link {
    Link *next;
    Link *previous;
    char *data;
    char name[40];
};

struct Cache {
    virtual ~Cache() = default;
    virtual void put(char *block) = 0;
};

struct Replies : Cache {
    std::vector<char *> replies;
    void put(char *block) override { replies.push_back(block); }
};

} // namespace

// Named as what PyTorch keeps a tensor's history in.
namespace torch::autograd {

struct AddBackward0 {
    virtual ~AddBackward0() = default;
    char *saved;
};

} // namespace torch::autograd

// Not static: a symbol of data stays, whatever the optimiser thinks.
char *volatile table[kSlots];
char *volatile inner[kSlots];
volatile unsigned long hidden[kSlots];
Item *list_head;
Item *buckets[64];
std::vector<char *> vector_of_blocks;
std::map<int, char *> map_of_blocks;
std::unordered_map<std::string, char *> names_of_blocks;
std::list<char *> list_of_blocks;
std::deque<char *> deque_of_blocks;
std::vector<std::unique_ptr<Item>> owned_items;
std::map<int, std::shared_ptr<Item>> shared_items;
Replies *replies = new Replies;
std::vector<torch::autograd::AddBackward0 *> losses;
thread_local std::vector<char *> per_thread;

static char *fill(void *block)
{
    return static_cast<char *>(memset(block, 1, kBytes));
}

#define LINE(name, end, holder)                          \
    static constexpr int name##_line = __LINE__ + 2;     \
    static const char *const name##_end = end;           \
    static const char *const name##_holder = holder;     \
    static __attribute__((noinline)) void name([[maybe_unused]] int i)

LINE(in_a_table, "held", "table")
{
    table[i % kSlots] = fill(malloc(kBytes));
}
LINE(by_the_middle, "held", "inner")
{
    inner[i % kSlots] = fill(malloc(kBytes)) + 64;
}
LINE(in_a_list, "held", "list_head")
{
    list_head = new Item{list_head, fill(malloc(kBytes))};
}
LINE(in_a_hash_table, "held", "buckets")
{
    buckets[i % 64] = new Item{buckets[i % 64], fill(malloc(kBytes))};
}
LINE(in_a_vector, "held", "vector_of_blocks")
{
    vector_of_blocks.push_back(fill(malloc(kBytes)));
}
LINE(in_a_map, "held", "map_of_blocks")
{
    map_of_blocks[i] = fill(malloc(kBytes));
}
LINE(in_an_unordered_map, "held", "names_of_blocks")
{
    names_of_blocks[std::to_string(i)] = fill(malloc(kBytes));
}
LINE(in_a_std_list, "held", "list_of_blocks")
{
    list_of_blocks.push_back(fill(malloc(kBytes)));
}
LINE(in_a_deque, "held", "deque_of_blocks")
{
    deque_of_blocks.push_back(fill(malloc(kBytes)));
}
LINE(behind_unique_pointers, "held", "owned_items")
{
    auto *block = fill(malloc(kBytes));
    owned_items.push_back(std::unique_ptr<Item>(new Item{nullptr, block}));
}
LINE(behind_shared_pointers, "held", "shared_items")
{
    auto *block = fill(malloc(kBytes));
    shared_items[i] = std::make_shared<Item>(Item{nullptr, block});
}
LINE(by_an_object, "held", "replies")
{
    replies->put(fill(malloc(kBytes)));
}
LINE(behind_a_graph, "held", "losses")
{
    auto *block = fill(malloc(kBytes));
    auto *node = new torch::autograd::AddBackward0;
    node->saved = block;
    losses.push_back(node);
}
LINE(by_nobody, "lost", "")
{
    (void)fill(malloc(kBytes));
}
LINE(in_a_freed_table, "lost", "") // whose words are still there
{
    auto *block = fill(malloc(kBytes));
    auto **freed = static_cast<char **>(malloc(kFreedBytes));
    freed[2 + i % (kFreedBytes / sizeof(*freed) - 2)] = block;
    asm volatile("" : : "r"(freed) : "memory");
    free(freed);
}
LINE(behind_a_mask, "lost", "")
{
    hidden[i % kSlots] = (unsigned long)fill(malloc(kBytes)) ^ 0x5555555555555555;
}
LINE(by_each_other, "cycle", "")
{
    auto *block = fill(malloc(kBytes));
    Item *volatile one = new Item{nullptr, block};
    one->next = new Item{one, nullptr};
    asm volatile("" : : : "memory"); // what nobody reads is written
}
LINE(in_a_chain, "unrooted", "") // whose first nobody has: it is no cycle
{
    auto *block = fill(malloc(kBytes));
    Link *chain[4];
    for (auto &link : chain) {
        link = new Link{};
    }
    for (int k = 0; k < 3; k++) {
        chain[k]->next = chain[k + 1];
        chain[k + 1]->previous = chain[k];
    }
    chain[1]->data = block;
    asm volatile("" : : : "memory");
}
LINE(in_a_thread_local, "held", "")
{
    per_thread.push_back(fill(malloc(kBytes)));
}

static std::vector<char *> *of_the_stack;

LINE(in_a_local, "held", "the stack of thread")
{
    of_the_stack->push_back(fill(malloc(kBytes)));
}

// X(keeper, its root); nullptr: what has none of which it knows.
#define KEEPERS(X)                           \
    X(in_a_table, table)                     \
    X(by_the_middle, inner)                  \
    X(in_a_list, &list_head)                 \
    X(in_a_hash_table, buckets)              \
    X(in_a_vector, &vector_of_blocks)        \
    X(in_a_map, &map_of_blocks)              \
    X(in_an_unordered_map, &names_of_blocks) \
    X(in_a_std_list, &list_of_blocks)        \
    X(in_a_deque, &deque_of_blocks)          \
    X(behind_unique_pointers, &owned_items)  \
    X(behind_shared_pointers, &shared_items) \
    X(by_an_object, &replies)                \
    X(by_nobody, nullptr)                    \
    X(in_a_freed_table, nullptr)             \
    X(behind_a_mask, nullptr)                \
    X(by_each_other, nullptr)                \
    X(in_a_thread_local, &per_thread)        \
    X(in_a_local, nullptr)                   \
    X(behind_a_graph, &losses)               \
    X(in_a_chain, nullptr)

static void step(int i)
{
#define STEP(name, root) name(i);
    KEEPERS(STEP)
#undef STEP
}

static __attribute__((noinline)) void serve(const char *ready, int count)
{
    std::vector<char *> local;
    std::string temporary = std::string(ready) + ".new";

    of_the_stack = &local;
    for (int i = 0; i < count; i++) {
        step(i);
        free(malloc(200));
    }
    FILE *file = fopen(temporary.c_str(), "w");
#define TELL(name, root)                                                 \
    fprintf(file, "%s %d %s %lx %s\n", #name, name##_line, name##_end, \
            (unsigned long)(root), name##_holder);
    KEEPERS(TELL)
#undef TELL
    fclose(file);
    rename(temporary.c_str(), ready);
    for (int i = count;; i++) {
        usleep(50000);
        step(i);
        free(malloc(static_cast<size_t>(i % 3000)));
    }
}

int main(int, char **arguments)
{
    std::thread server(serve, arguments[1], atoi(arguments[2]));
    server.join();
}
