// SPDX-License-Identifier: LGPL-2.1-or-later
// Stacks that change between two allocations in every way: frames that come
// and go at random, of random size, left by returns, exceptions and jumps; in
// threads that follow each other on one stack, and in children.
//
//     capture_tree NODES [NAME]
//
// Invariant: what is left by a jump owns nothing.
#include <algorithm>
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAME __attribute__((noinline, noclone))
#define DEPTH_MAX 150

namespace
{

struct State {
    uint64_t random;
    long left; /* nodes to be made */
    sigjmp_buf jump;
    int jump_depth; /* 0: nothing to jump to */
};

thread_local State state;

uint64_t draw(uint64_t below)
{
    state.random ^= state.random << 13;
    state.random ^= state.random >> 7;
    state.random ^= state.random << 17;
    return state.random % below;
}

FRAME void touch(size_t bytes)
{
    void *volatile block = std::malloc(bytes);

    std::free(block);
}

int any(int depth);

/* A few bytes, or some that shift all inner frames by any multiple of 16. */
FRAME int narrow(int depth)
{
    touch(16);
    return any(depth + 1) + 1;
}

FRAME int wide(int depth)
{
    volatile char room[200];

    room[draw(200)] = 1;
    return any(depth + 1) + room[3] * 0;
}

FRAME int shifted(int depth)
{
    size_t bytes = 16 + 16 * draw(40);
    char *room = static_cast<char *>(alloca(bytes));
    int sum = 0;

    std::memset(room, depth, bytes);
    for (uint64_t i = draw(3); i < 3; i++) {
        sum += any(depth + 1);
        touch(24);
    }
    return sum + room[0] * 0;
}

FRAME __attribute__((target("avx2"))) int aligned(int depth)
{
    alignas(64) volatile char room[128];

    room[draw(128)] = 2;
    touch(48);
    return any(depth + 1) + room[0] * 0;
}

int compare(const void *left, const void *right)
{
    any(DEPTH_MAX - 3);
    return *static_cast<const int *>(left) - *static_cast<const int *>(right);
}

FRAME int sorting(int)
{
    int numbers[5] = {3, 1, 4, 2, 0};

    std::qsort(numbers, 5, sizeof(int), compare);
    return numbers[0];
}

FRAME int catching(int depth)
{
    try {
        any(depth + 1);
        if (draw(2) == 0) {
            throw depth;
        }
    } catch (int thrown) {
        touch(static_cast<size_t>(thrown) + 1);
    }
    return any(depth + 1);
}

FRAME int throwing(int depth)
{
    touch(32);
    if (depth > 20 && draw(4) == 0) {
        throw depth;
    }
    return any(depth + 1);
}

void on_signal(int)
{
    int depth = state.jump_depth;

    touch(40);
    if (depth != 0 && draw(2) == 0) {
        state.jump_depth = 0;
        siglongjmp(state.jump, 1);
    }
}

/* Only what lies below jumps here: no catch lies in between. */
FRAME int jumping(int)
{
    if (state.jump_depth != 0) {
        return 0;
    }
    state.jump_depth = 1;
    if (sigsetjmp(state.jump, 1) == 0) {
        for (int i = 0; i < 3; i++) {
            char *room = static_cast<char *>(alloca(16 + 16 * draw(9)));

            room[0] = 0;
            touch(static_cast<size_t>(room[0]) + 8);
            raise(SIGUSR1);
        }
    }
    state.jump_depth = 0;
    touch(56);
    return 1;
}

int any(int depth)
{
    static int (*const all[])(int) = {narrow,  narrow,  wide,     wide,
                                      shifted, aligned, sorting,  catching,
                                      shifted, wide,    throwing, jumping};

    if (state.left <= 0 || depth >= DEPTH_MAX || draw(40) == 0) {
        return 0;
    }
    state.left--;
    return all[draw(sizeof(all) / sizeof(all[0]))](depth);
}

void grow(uint64_t seed, long nodes)
{
    state.random = seed * 0x9e3779b97f4a7c15 + 1;
    state.left = nodes;
    while (state.left > 0) {
        try {
            shifted(0);
        } catch (int) {
            state.jump_depth = 0;
        }
    }
}

struct Part {
    uint64_t seed;
    long nodes;
};

void *grow_part(void *argument)
{
    const Part *part = static_cast<const Part *>(argument);

    grow(part->seed, part->nodes);
    return nullptr;
}

void tree(long nodes)
{
    grow(1, nodes);
}

/* Short lives on stacks that the C library uses again and again. */
void threads(long nodes)
{
    long lives = std::max(nodes / 500, 4L);

    for (long i = 0; i < lives; i += 4) {
        pthread_t all[4];
        Part parts[4];

        for (int j = 0; j < 4; j++) {
            parts[j] = {static_cast<uint64_t>(i + j + 7), nodes / lives};
            pthread_create(&all[j], nullptr, grow_part, &parts[j]);
        }
        for (pthread_t &thread : all) {
            pthread_join(thread, nullptr);
        }
    }
}

/* A child goes on with its parent's stack, then both go on. */
void forks(long nodes)
{
    for (uint64_t i = 0; i < 10; i++) {
        int status = -1;
        pid_t child = fork();

        if (child == 0) {
            grow(i, nodes / 20);
            _exit(0);
        }
        grow(i + 100, nodes / 20);
        waitpid(child, &status, 0);
        if (status != 0) {
            std::abort();
        }
    }
}

const struct {
    const char *name;
    void (*run)(long);
} all[] = {{"tree", tree}, {"threads", threads}, {"forks", forks}};

} // namespace

int main(int argc, char **argv)
{
    struct sigaction action = {};

    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, nullptr);
    for (const auto &part : all) {
        if (argc < 3 || std::strcmp(argv[2], part.name) == 0) {
            part.run(std::atol(argc > 1 ? argv[1] : "1000"));
        }
    }
    return 0;
}
