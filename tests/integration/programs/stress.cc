// SPDX-License-Identifier: LGPL-2.1-or-later
// All that is hard for who captures, at once: threads that allocate in deep
// recursion, around exceptions and between jumps out of handlers, beside
// libraries that come and go in each other's place, threads that live short,
// and children.
//
//     stress ALLOCATIONS PAIRS CHILDREN FOLDER OUT.json
//
// FOLDER holds 0.so to 3.so, of two shapes in turn.
// Invariant: a handler jumps only where the interrupted code is neither the C
// library's nor called by it: elsewhere the program itself would be wrong.
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include "in_libc.h"

#define FRAME __attribute__((noinline, noclone))
#define WORKERS 4
#define LOADERS 2

extern "C" void *site_stress(size_t bytes);

FRAME void *site_stress(size_t bytes)
{
    return std::malloc(bytes);
}

namespace
{

struct Self {
    uint64_t random;
    volatile sig_atomic_t may_jump;
    sigjmp_buf place;
};

thread_local Self self;
std::atomic<long> allocations;
std::atomic<long> jumps;
std::atomic<long> pairs;
std::atomic<long> same_place;
std::atomic<long> lives;
std::atomic<bool> over;
long wanted_allocations;
long wanted_pairs;
long wanted_children;
const char *folder;

uint64_t draw(uint64_t below)
{
    self.random ^= self.random << 13;
    self.random ^= self.random >> 7;
    self.random ^= self.random << 17;
    return self.random % below;
}

FRAME void touch()
{
    void *volatile block = site_stress(16 + draw(500));

    std::free(block);
    allocations.fetch_add(1, std::memory_order_relaxed);
}

FRAME int deep(int depth, int every)
{
    volatile char room[40];

    room[depth % 40] = 1;
    if (depth % every == 0) {
        touch();
    }
    return depth > 0 ? deep(depth - room[depth % 40], every) + room[0] : 0;
}

struct Held {
    ~Held()
    {
        touch();
    }
};

FRAME void thrower(int depth)
{
    Held held;

    if (depth == 0) {
        throw std::runtime_error("a text that is too long to lie in place");
    }
    thrower(depth - 1);
}

void exceptions()
{
    for (int i = 0; i < 20; i++) {
        try {
            thrower(i);
        } catch (const std::exception &) {
            touch();
        }
    }
}

void on_signal(int, siginfo_t *, void *context)
{
    if (self.may_jump != 0 && !in_libc(context)) {
        self.may_jump = 0;
        siglongjmp(self.place, 1);
    }
}

/* Left at any instruction of the hooks. */
FRAME void jumped()
{
    if (sigsetjmp(self.place, 1) == 0) {
        self.may_jump = 1;
        for (int i = 0; i < 3000; i++) {
            std::free(site_stress(32));
            allocations.fetch_add(1, std::memory_order_relaxed);
        }
        self.may_jump = 0;
    } else {
        jumps.fetch_add(1, std::memory_order_relaxed);
    }
}

void one_round()
{
    switch (draw(6)) {
    case 0:
        deep(static_cast<int>(draw(2000)), 50);
        break;
    case 1:
        deep(static_cast<int>(draw(100)), 1);
        break;
    case 2:
        exceptions();
        break;
    default:
        jumped();
        break;
    }
}

void *work(void *seed)
{
    self.random = reinterpret_cast<uintptr_t>(seed) * 0x9e3779b97f4a7c15 + 1;
    while (!over.load(std::memory_order_relaxed)) {
        one_round();
    }
    return nullptr;
}

/* One library, and where it lay. */
void *load(unsigned number)
{
    typedef void *allocate_function(size_t);
    allocate_function *allocate = nullptr;
    char path[512];
    void *library;
    void *found;

    std::snprintf(path, sizeof(path), "%s/%u.so", folder, number);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    found = library != nullptr ? dlsym(library, "unload_allocate") : nullptr;
    if (found == nullptr) {
        std::abort();
    }
    std::memcpy(&allocate, &found, sizeof(found));
    for (int i = 0; i < 3; i++) {
        std::free(allocate(64));
    }
    dlclose(library);
    return found;
}

void *load_and_unload(void *argument)
{
    unsigned which = reinterpret_cast<uintptr_t>(argument) % LOADERS * 2;

    while (pairs.fetch_add(1, std::memory_order_relaxed) < wanted_pairs) {
        uintptr_t first = reinterpret_cast<uintptr_t>(load(which));
        uintptr_t second = reinterpret_cast<uintptr_t>(load(which + 1));

        if ((first ^ second) < 4096) {
            same_place.fetch_add(1, std::memory_order_relaxed);
        }
    }
    return nullptr;
}

void *live_short(void *seed)
{
    self.random = reinterpret_cast<uintptr_t>(seed) + 1;
    deep(20, 1);
    exceptions();
    return nullptr;
}

void *make_threads(void *)
{
    while (!over.load(std::memory_order_relaxed)) {
        pthread_t thread;
        uintptr_t number = static_cast<uintptr_t>(lives.fetch_add(1));

        if (pthread_create(&thread, nullptr, live_short,
                           reinterpret_cast<void *>(number)) == 0) {
            pthread_join(thread, nullptr);
        }
    }
    return nullptr;
}

int make_child()
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        self.random = 99;
        deep(200, 10);
        exceptions();
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/* The main thread: signals to the workers, children, and the end. */
int drive(const pthread_t *workers)
{
    long children = 0;
    int wrong = 0;

    while (allocations.load() < wanted_allocations ||
           pairs.load() < wanted_pairs || children < wanted_children) {
        for (int i = 0; i < WORKERS; i++) {
            pthread_kill(workers[i], SIGUSR1);
        }
        if (children < wanted_children) {
            wrong += make_child() != 0;
            children++;
        }
        usleep(200);
    }
    over = true;
    return wrong;
}

int run()
{
    pthread_t threads[WORKERS + LOADERS + 1];
    int wrong;

    for (uintptr_t i = 0; i < WORKERS + LOADERS + 1; i++) {
        pthread_create(&threads[i], nullptr,
                       i < WORKERS             ? work
                       : i < WORKERS + LOADERS ? load_and_unload
                                               : make_threads,
                       reinterpret_cast<void *>(i));
    }
    wrong = drive(threads);
    for (pthread_t &thread : threads) {
        pthread_join(thread, nullptr);
    }
    return wrong;
}

} // namespace

int main(int argc, char **argv)
{
    struct sigaction action = {};
    FILE *out;

    if (argc != 6) {
        return 2;
    }
    wanted_allocations = std::atol(argv[1]);
    wanted_pairs = std::atol(argv[2]);
    wanted_children = std::atol(argv[3]);
    folder = argv[4];
    in_libc_find();
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    std::printf("wrong %d\n", run());
    out = std::fopen(argv[5], "w");
    if (out != nullptr) {
        std::fprintf(out,
                     "{\"allocations\": %ld, \"jumps\": %ld, \"pairs\": %ld,"
                     " \"same\": %ld, \"lives\": %ld}\n",
                     allocations.load(), jumps.load(), pairs.load() - LOADERS,
                     same_place.load(), lives.load());
        std::fclose(out);
    }
    return 0;
}
