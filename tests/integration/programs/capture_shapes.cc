// SPDX-License-Identifier: LGPL-2.1-or-later
// Stacks of every shape that compiled code leaves on x86-64, each with an
// allocation at its inner end. Run with the name of a shape, or without one
// for all.
#include <algorithm>
#include <alloca.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <ucontext.h>
#include <vector>

#define FRAME __attribute__((noinline, noclone))

#ifdef FAR
/* Linked far from the rest: the program has a hole between its segments, and
 * the loader knows it only in pieces. */
extern const char far_away[64];
__attribute__((section(".far"), used)) const char far_away[64] = "far";
#endif

namespace
{

FRAME void touch(size_t bytes)
{
    void *volatile block = std::malloc(bytes);

    std::free(block);
}

FRAME int recurse(int depth)
{
    if (depth == 0) {
        touch(32);
        return 0;
    }
    return recurse(depth - 1) + 1;
}

int compare(const void *left, const void *right)
{
    touch(24);
    return *static_cast<const int *>(left) - *static_cast<const int *>(right);
}

void sorted()
{
    int numbers[200];

    for (int i = 0; i < 200; i++) {
        numbers[i] = i * 7919 % 200;
    }
    std::qsort(numbers, 200, sizeof(int), compare);
    std::sort(numbers, numbers + 200, [](int left, int right) {
        touch(16);
        return left > right;
    });
}

struct Guard {
    std::string text;
    explicit Guard(int i) : text(64, static_cast<char>('a' + i % 26))
    {
    }
    ~Guard()
    {
        touch(40);
    }
};

FRAME int thrown(int depth)
{
    Guard guard(depth);

    if (depth == 0) {
        throw std::runtime_error(guard.text);
    }
    return thrown(depth - 1) + static_cast<int>(guard.text.size());
}

void exceptions()
{
    for (int i = 0; i < 50; i++) {
        try {
            thrown(i % 20);
        } catch (const std::exception &error) {
            touch(std::strlen(error.what()));
        }
    }
}

FRAME void dynamic(size_t bytes)
{
    char *block = static_cast<char *>(alloca(bytes));

    std::memset(block, 1, bytes);
    touch(static_cast<size_t>(block[bytes / 2]) + 8);
}

/* A frame realigned to 64 bytes: its CFA is loaded through rbp. */
FRAME __attribute__((target("avx2"))) void realigned(size_t bytes)
{
    alignas(64) char block[256];
    char *more = static_cast<char *>(alloca(bytes));

    std::memset(block, 2, sizeof(block));
    std::memset(more, 2, bytes);
    touch(static_cast<size_t>(block[3] + more[0]) + 8);
}

FRAME void large()
{
    char block[2 << 20];

    std::memset(block, 3, sizeof(block));
    touch(static_cast<size_t>(block[5]));
}

void shapes()
{
    for (size_t bytes = 8; bytes < 60000; bytes = bytes * 3 + 1) {
        dynamic(bytes);
        realigned(bytes);
    }
    large();
    for (int depth = 1; depth < 200; depth += 9) {
        recurse(depth);
    }
}

void on_signal(int)
{
    touch(48);
}

/* The handler interrupts a call (kill, in libc) or plain instructions. */
void signals()
{
    struct sigaction action = {};

    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, nullptr);
    for (int i = 0; i < 20; i++) {
        raise(SIGUSR1);
    }
    __asm__ volatile("" ::: "memory");
}

volatile sig_atomic_t ticks;

void on_tick(int)
{
    ticks = ticks + 1;
    touch(56);
}

/* What is interrupted must not allocate itself: the handler does. */
FRAME double spin(double x, int depth)
{
    char text[64];

    for (int i = 0; i < 300; i++) {
        x = x * 1.0000001 + 1e-9;
    }
    std::snprintf(text, sizeof(text), "%d", static_cast<int>(x) + depth);
    if (depth > 0) {
        x = spin(x, depth - 1) + 1e-9;
    }
    return x + static_cast<double>(std::strlen(text));
}

/* Interrupts anywhere: prologues, epilogues, the PLT, leaf functions. */
void interrupts()
{
    struct sigaction action = {};
    timer_t timer;
    struct sigevent event = {};
    struct itimerspec often = {{0, 200000}, {0, 200000}};
    double x = 1;

    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGALRM;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
        return;
    }
    timer_settime(timer, 0, &often, nullptr);
    while (ticks < 300) {
        x = spin(x, 5);
    }
    timer_delete(timer);
}

void alternate_stack()
{
    static char memory[65536];
    stack_t stack = {};
    struct sigaction action = {};

    stack.ss_sp = memory;
    stack.ss_size = sizeof(memory);
    sigaltstack(&stack, nullptr);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, nullptr);
    for (int i = 0; i < 20; i++) {
        raise(SIGUSR2);
    }
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
}

void *thread_body(void *)
{
    sorted();
    exceptions();
    shapes();
    return nullptr;
}

void threads()
{
    pthread_t workers[4];

    for (pthread_t &worker : workers) {
        pthread_create(&worker, nullptr, thread_body, nullptr);
    }
    for (pthread_t &worker : workers) {
        pthread_join(worker, nullptr);
    }
}

ucontext_t main_context;
ucontext_t coroutine_context;

void coroutine_body()
{
    recurse(3);
    recurse(500);
}

/* On a stack that is not the thread's own. */
void coroutine()
{
    static char memory[256 << 10];

    getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = memory;
    coroutine_context.uc_stack.ss_size = sizeof(memory);
    coroutine_context.uc_link = &main_context;
    makecontext(&coroutine_context, coroutine_body, 0);
    swapcontext(&main_context, &coroutine_context);
}

/* A library that comes and goes while rules of it are cached. */
void unloads()
{
    for (int i = 0; i < 5; i++) {
        void *handle = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);

        sorted();
        if (handle != nullptr) {
            dlclose(handle);
        }
        sorted();
    }
}

void *storm_body(void *)
{
    for (int i = 0; i < 300; i++) {
        void *handle = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);

        if (handle != nullptr) {
            dlclose(handle);
        }
    }
    return nullptr;
}

/* Stacks while another thread loads and unloads all the time. */
void storm()
{
    pthread_t worker;

    pthread_create(&worker, nullptr, storm_body, nullptr);
    for (int i = 0; i < 10; i++) {
        sorted();
        exceptions();
    }
    pthread_join(worker, nullptr);
}

const struct {
    const char *name;
    void (*run)();
} all[] = {
    {"sorted", sorted},         {"exceptions", exceptions},
    {"shapes", shapes},         {"signals", signals},
    {"interrupts", interrupts}, {"alternate_stack", alternate_stack},
    {"threads", threads},       {"coroutine", coroutine},
    {"unloads", unloads},       {"storm", storm},
};

} // namespace

int main(int argc, char **argv)
{
    for (const auto &shape : all) {
        if (argc < 2 || std::strcmp(argv[1], shape.name) == 0) {
            shape.run();
        }
    }
    return 0;
}
