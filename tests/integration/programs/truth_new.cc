// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The C++ twin of truth.c: every form of operator new and delete, on several
 * threads.
 *
 *     truth_new THREADS ROUNDS OUT.json
 *
 * Invariant: each new expression stands in a function of its own with C
 * linkage, whose truth says what a recording in exact mode must say of it.
 */
#include "truth.h"

#include <cstdlib>
#include <new>
#include <pthread.h>

#define SITES(X)                   \
    X(site_new)                    \
    X(site_new_leak)               \
    X(site_new_array)              \
    X(site_new_nothrow)            \
    X(site_new_array_nothrow)      \
    X(site_new_aligned)            \
    X(site_new_array_aligned)      \
    X(site_new_aligned_nothrow)    \
    X(site_new_object)             \
    X(site_new_throws)             \
    X(site_new_constructor_throws) \
    X(site_new_nothrow_fails)

#define DEFINE_SITE(function)                                             \
    static struct truth_site truth_of_##function = {#function, "heap", 0, \
                                                    0,         0,      0};
SITES(DEFINE_SITE)

namespace
{

constexpr std::align_val_t alignment{64};
constexpr unsigned thread_limit = 64;

struct object {
    char bytes[72];
    ~object();
};

object::~object()
{
    bytes[0] = 0;
}

struct refuses {
    char bytes[56];
    refuses()
    {
        throw 1;
    }
};

unsigned round_count;

} // namespace

#define NEW_SITE(function, call)                                        \
    extern "C" SITE_FUNCTION struct truth_block function(size_t bytes); \
    extern "C" struct truth_block function(size_t bytes)                \
    {                                                                   \
        return truth_made(&truth_of_##function, call, bytes);           \
    }

NEW_SITE(site_new, ::operator new(bytes))
NEW_SITE(site_new_leak, ::operator new(bytes))
NEW_SITE(site_new_array, ::operator new[](bytes))
NEW_SITE(site_new_nothrow, ::operator new(bytes, std::nothrow))
NEW_SITE(site_new_array_nothrow, ::operator new[](bytes, std::nothrow))
NEW_SITE(site_new_aligned, ::operator new(bytes, alignment))
NEW_SITE(site_new_array_aligned, ::operator new[](bytes, alignment))
NEW_SITE(site_new_aligned_nothrow,
         ::operator new(bytes, alignment, std::nothrow))
NEW_SITE(site_new_nothrow_fails, ::operator new(bytes, std::nothrow))
NEW_SITE(site_new_object, new object)

extern "C" SITE_FUNCTION bool site_new_throws(size_t bytes);
extern "C" bool site_new_throws(size_t bytes)
{
    try {
        truth_made(&truth_of_site_new_throws, ::operator new(bytes), bytes);
        return false;
    } catch (const std::bad_alloc &) {
        return true;
    }
}

extern "C" SITE_FUNCTION bool site_new_constructor_throws();
extern "C" bool site_new_constructor_throws()
{
    struct truth_site *site = &truth_of_site_new_constructor_throws;

    try {
        new refuses;
        return false;
    } catch (int) {
        struct truth_block block = truth_made(site, site, sizeof(refuses));
        truth_gone(&block);
        return true;
    }
}

static void plain(size_t bytes)
{
    struct truth_block block = site_new(bytes);
    truth_gone(&block);
    ::operator delete(block.address);

    block = site_new(bytes);
    truth_gone(&block);
    ::operator delete(block.address, bytes);

    block = site_new_array(bytes);
    truth_gone(&block);
    ::operator delete[](block.address);

    block = site_new_array(bytes);
    truth_gone(&block);
    ::operator delete[](block.address, bytes);

    block = site_new_nothrow(bytes);
    truth_gone(&block);
    ::operator delete(block.address, std::nothrow);

    block = site_new_array_nothrow(bytes);
    truth_gone(&block);
    ::operator delete[](block.address, std::nothrow);
}

static void aligned(size_t bytes)
{
    struct truth_block block = site_new_aligned(bytes);
    truth_gone(&block);
    ::operator delete(block.address, alignment);

    block = site_new_aligned(bytes);
    truth_gone(&block);
    ::operator delete(block.address, bytes, alignment);

    block = site_new_array_aligned(bytes);
    truth_gone(&block);
    ::operator delete[](block.address, bytes, alignment);

    block = site_new_aligned_nothrow(bytes);
    truth_gone(&block);
    ::operator delete(block.address, alignment, std::nothrow);
}

static void *work(void *)
{
    for (unsigned round = 0; round < round_count; round++) {
        size_t bytes = 8 + round * 37 % 900;

        plain(bytes);
        /* libstdc++ rounds up to the alignment before it asks the heap */
        aligned((bytes + 63) / 64 * 64);
        struct truth_block block = site_new_object(sizeof(object));
        truth_gone(&block);
        delete static_cast<object *>(block.address);
        site_new_nothrow_fails(SIZE_MAX / 4);
        if (round % 16 == 0) {
            site_new_leak(bytes);
            site_new_array(bytes);
        }
        if (round % 50 == 0 && (!site_new_throws(SIZE_MAX / 4) ||
                                !site_new_constructor_throws())) {
            abort();
        }
    }
    return nullptr;
}

int main(int argument_count, char **arguments)
{
    static struct truth_site *sites[64];
    static pthread_t threads[thread_limit];
    size_t count = 0;

    if (argument_count != 4) {
        return 2;
    }
    unsigned thread_count = static_cast<unsigned>(atoi(arguments[1]));
    round_count = static_cast<unsigned>(atoi(arguments[2]));
    if (thread_count == 0 || thread_count > thread_limit) {
        return 2;
    }
    for (unsigned i = 1; i < thread_count; i++) {
        if (pthread_create(&threads[i], nullptr, work, nullptr) != 0) {
            return 3;
        }
    }
    work(nullptr);
    for (unsigned i = 1; i < thread_count; i++) {
        pthread_join(threads[i], nullptr);
    }
#define LIST_SITE(function) sites[count++] = &truth_of_##function;
    SITES(LIST_SITE)
#undef LIST_SITE
    truth_write(arguments[3], sites, count);
    return 0;
}
