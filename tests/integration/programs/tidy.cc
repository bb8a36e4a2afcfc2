// SPDX-License-Identifier: LGPL-2.1-or-later
// A service that leaks or not, and that ends in one of the ways programs end.
//
//     tidy KIND END SECONDS
//
// The work is the same, in every END, up to the last moment of the run; only
// "abrupt" does not give back what it has. Prints bytes kept for good a second.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace
{

using Block = std::unique_ptr<char[]>;

constexpr long kTickNs = 5000000;

volatile std::sig_atomic_t stop_asked;
unsigned long long random_state = 1;

unsigned pick(unsigned below)
{
    random_state =
        random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<unsigned>((random_state >> 33) % below);
}

double now_s()
{
    timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_nsec) / 1e9;
}

__attribute__((noinline)) Block make(size_t bytes)
{
    Block block(new char[bytes]);

    std::memset(block.get(), 1, bytes);
    return block;
}

// A line of its own: rows are lines, and this one does not grow.
__attribute__((noinline)) Block load(size_t bytes)
{
    Block block(new char[bytes]);

    std::memset(block.get(), 2, bytes);
    return block;
}

struct Service {
    std::vector<Block> weights;
    std::vector<Block> kept;
    std::deque<Block> cache;
    std::vector<Block> batch;
    std::vector<Block> buffers;
    size_t kept_bytes = 0;
    long ticks = 0;

    // A leaf of the container, so that the line is the same wherever it lies.
    __attribute__((noinline)) void keep_request()
    {
        size_t bytes = 2000 + pick(8000);

        kept.push_back(make(bytes));
        kept_bytes += bytes;
    }

    __attribute__((noinline)) void fill_cache()
    {
        cache.push_back(make(2000 + pick(8000)));
        if (cache.size() > 1500) {
            cache.pop_front();
        }
    }

    __attribute__((noinline)) void add_to_batch()
    {
        batch.push_back(make(20000 + pick(10000)));
        if (batch.size() == 200) {
            batch.clear();
        }
    }

    // As large as malloc() maps, and nothing is ever written to it.
    __attribute__((noinline)) void hold_buffer()
    {
        buffers.push_back(Block(new char[512 << 10]));
    }

    __attribute__((noinline)) void start()
    {
        kept.reserve(1 << 16); // its steps are another test's
        for (int i = 0; i < 100; i++) {
            weights.push_back(load(100000));
        }
    }

    void tick(const std::string &kind)
    {
        Block request = make(500 + pick(3000));
        Block reply = make(500 + pick(20000));

        ticks++;
        if (kind == "leak" || kind == "beside") {
            keep_request();
            if (kind == "beside" && ticks % 20 == 0) {
                hold_buffer();
            }
        } else if (kind == "cache") {
            fill_cache();
        } else if (kind == "batch") {
            add_to_batch();
        }
    }
};

Service global_service; // its destructor runs behind exit()

void run(Service &service, const std::string &kind, double seconds)
{
    double start = now_s();

    service.start();
    while (!stop_asked && now_s() - start < seconds) {
        timespec pause = {0, kTickNs};

        service.tick(kind);
        nanosleep(&pause, nullptr);
    }
    std::printf("{\"leaked_per_s\": %.0f}\n",
                static_cast<double>(service.kept_bytes) / (now_s() - start));
    std::fflush(stdout);
}

// Two seconds in which nothing comes in any more and all is given back.
void drain(Service &service)
{
    std::vector<Block> *const lists[] = {&service.kept, &service.weights,
                                         &service.batch, &service.buffers};

    for (int step = 20; step > 0; step--) {
        timespec pause = {0, 100000000};

        for (std::vector<Block> *list : lists) {
            list->resize(list->size() -
                         list->size() / static_cast<size_t>(step));
        }
        service.cache.resize(service.cache.size() -
                             service.cache.size() / static_cast<size_t>(step));
        nanosleep(&pause, nullptr);
    }
}

void handle(int)
{
    stop_asked = 1;
}

} // namespace

int main(int argc, char **argv)
{
    std::string kind = argc > 1 ? argv[1] : "leak";
    std::string end = argc > 2 ? argv[2] : "return";
    double seconds = argc > 3 ? std::atof(argv[3]) : 1;
    Service local;

    if (end == "abrupt") {
        run(local, kind, seconds);
        kill(getpid(), SIGKILL);
    } else if (end == "static") {
        run(global_service, kind, seconds);
    } else if (end == "exit") {
        run(global_service, kind, seconds);
        std::exit(0);
    } else if (end == "sigterm") {
        std::thread([seconds] {
            timespec time = {static_cast<time_t>(seconds), 0};

            nanosleep(&time, nullptr);
            kill(getpid(), SIGTERM);
        }).detach();
        std::signal(SIGTERM, handle);
        run(local, kind, seconds + 60);
    } else if (end == "drain") {
        run(local, kind, seconds);
        drain(local);
    } else {
        run(local, kind, seconds);
    }
    return 0;
}
