/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Services that do not leak, and hold memory for a time, or once.
 *
 * Invariant: what a kind holds has a bound that it has reached before the run
 * ends, or goes again.
 */
#include "service.hh"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <thread>
#include <vector>

namespace
{

constexpr size_t KIB = 1024, MIB = 1024 * KIB;

/* Much is allocated, and nothing kept. */
class Churn : public Service
{
    SITE_FUNCTION static void churn(Run &run)
    {
        size_t bytes = run.between(1 * KIB, 60 * KIB);

        free(touch(malloc(bytes), bytes));
    }

  public:
    void request(Run &run) override
    {
        for (unsigned i = 0; i < 4; i++) {
            churn(run);
        }
    }
};

/* Garbage is found twenty times in the run. */
class Collected : public Service
{
    SITE_FUNCTION void make_garbage(Run &run)
    {
        size_t bytes = run.between(500, 3000);

        push(&list, malloc(bytes), bytes);
    }

  public:
    void request(Run &run) override { make_garbage(run); }
    void tick(Run &run) override
    {
        if (run.part_begins(20)) {
            while (pop(&list) > 0) {
            }
        }
    }
};

/* Requests in flight; each lives a while, and their number follows the load.
 */
class Flights : public Service
{
    std::vector<Block *> by_tick;

  protected:
    SITE_FUNCTION void start_flight(Run &run, double mean_ticks)
    {
        size_t bytes = run.between(4 * KIB, 20 * KIB);
        double life = -std::log(1 - run.chance()) * mean_ticks;

        by_tick.resize(run.tick_count + 1);
        push(&by_tick[std::min<size_t>(run.tick_count,
                                       run.tick + 1 + size_t(life))],
             malloc(bytes), bytes);
    }

  public:
    ~Flights() override
    {
        for (Block *&due : by_tick) {
            while (pop(&due) > 0) {
            }
        }
    }
    void tick(Run &run) override
    {
        if (!by_tick.empty()) {
            while (pop(&by_tick[run.tick]) > 0) {
            }
        }
    }
};

/* A day and a half: the load rises and falls, and ends on a flank. */
class Daily : public Flights
{
  public:
    unsigned load(const Run &run) override
    {
        return unsigned(8 + 7 * std::sin(run.share() * 1.5 * 2 * M_PI - 1));
    }
    void request(Run &run) override { start_flight(run, 100); }
};

/* The load becomes ever less. */
class Falling : public Flights
{
  public:
    unsigned load(const Run &run) override
    {
        return unsigned(14 - 12 * run.share());
    }
    void request(Run &run) override { start_flight(run, 100); }
};

/* Lives are short mostly, and a few are long: Pareto's, to 1/8 of the run. */
class Tails : public Flights
{
  public:
    void request(Run &run) override
    {
        double life = 10 / std::pow(1 - run.chance(), 1 / 1.5);

        start_flight(run, std::min(life, run.tick_count / 8.0) / 2);
    }
};

/* As many wait as chance has it: up one, down one, between two bounds. */
class Queue : public Service
{
    std::deque<void *> waiting;

    SITE_FUNCTION void enter(Run &run)
    {
        size_t bytes = run.between(2 * KIB, 6 * KIB);

        waiting.push_back(touch(malloc(bytes), bytes));
    }

  public:
    ~Queue() override
    {
        while (!waiting.empty()) {
            leave();
        }
    }
    void leave()
    {
        free(waiting.front());
        waiting.pop_front();
    }
    void request(Run &run) override
    {
        if (waiting.size() < 500 ||
            (waiting.size() < 2500 && run.chance() < 0.5)) {
            enter(run);
        } else {
            leave();
        }
    }
};

/* Scratch of so many as work at once; kept for the next. */
class Pool : public Service
{
    std::vector<void *> scratch;

    SITE_FUNCTION void grow_pool()
    {
        scratch.push_back(touch(malloc(512 * KIB), 512 * KIB));
    }

  public:
    ~Pool() override
    {
        for (void *each : scratch) {
            free(each);
        }
    }
    void tick(Run &run) override
    {
        size_t most = run.share() < 0.45 ? size_t(run.share() / 0.45 * 40) : 40;

        if (scratch.size() < std::min(most, run.draw() % 60)) {
            grow_pool();
        }
    }
};

/* A second model is asked for once, in the middle. */
class OneOff : public Service
{
    SITE_FUNCTION void load_model()
    {
        for (unsigned i = 0; i < 60; i++) {
            push(&list, malloc(600 * KIB), 600 * KIB);
        }
    }

  public:
    void tick(Run &run) override
    {
        if (run.tick == run.tick_count * 2 / 5) {
            load_model();
        }
    }
};

/* Each of so many reloads frees the model that was. */
class Reload : public Service
{
    SITE_FUNCTION void load_weights(Run &run)
    {
        for (unsigned i = 0; i < 40; i++) {
            size_t bytes = run.between(300 * KIB, 700 * KIB);

            push(&list, malloc(bytes), bytes);
        }
    }

  public:
    void tick(Run &run) override
    {
        if (run.part_begins(14)) {
            while (pop(&list) > 0) {
            }
            load_weights(run);
        }
    }
};

/* All that it holds is there after the first second. */
class StartUp : public Service
{
    SITE_FUNCTION void build_index(Run &run)
    {
        for (unsigned i = 0; i < 20000; i++) {
            size_t bytes = run.between(500, 3000);

            push(&list, malloc(bytes), bytes);
        }
    }

  public:
    void tick(Run &run) override
    {
        if (run.tick == 5) {
            build_index(run);
        }
    }
};

/* It serves nobody. */
class Idle : public Service
{
  public:
    unsigned load(const Run &) override { return 0; }
    void tick(Run &run) override
    {
        if (run.tick == 0) {
            push(&list, malloc(8 * MIB), 8 * MIB);
        }
    }
};

/* A batch collects its results, writes them, and frees them; seven times. */
class Batch : public Service
{
    SITE_FUNCTION void add_result(Run &run)
    {
        size_t bytes = run.between(2 * KIB, 8 * KIB);

        push(&list, malloc(bytes), bytes);
    }

  public:
    void request(Run &run) override { add_result(run); }
    void tick(Run &run) override
    {
        if (run.part_begins(7)) {
            while (pop(&list) > 0) {
            }
        }
    }
};

/* It leaked, until its configuration was read again at 40 %. */
class Stops : public Service
{
    SITE_FUNCTION void keep_warning(Run &run)
    {
        size_t bytes = run.between(4 * KIB, 12 * KIB);

        push(&list, malloc(bytes), bytes);
        kept(bytes);
    }

  public:
    void tick(Run &run) override
    {
        for (unsigned i = run.due(20); run.share() < 0.4 && i > 0; i--) {
            keep_warning(run);
        }
    }
};

/* A burst of small blocks at the start; what stays of them between the holes
 * keeps the heap from being given back. */
class Burst : public Service
{
    SITE_FUNCTION void do_burst(Run &run)
    {
        Block *most = nullptr;

        for (unsigned i = 0; i < 60000; i++) {
            size_t bytes = run.between(400, 1200);

            push(i % 50 == 0 ? &list : &most, malloc(bytes), bytes);
        }
        while (pop(&most) > 0) {
        }
    }

  public:
    void tick(Run &run) override
    {
        if (run.tick == run.tick_count / 10) {
            do_burst(run);
        }
    }
};

/* Long and short lives side by side, of sizes that become larger: holes that
 * nothing fits into. */
class Holes : public Service
{
    std::deque<void *> replies;

    SITE_FUNCTION void read_reply(Run &run)
    {
        size_t bytes = 500 + size_t(run.share() * 4000) + run.between(0, 200);

        replies.push_back(touch(malloc(bytes), bytes));
        if (run.draw() % 8 == 0) {
            push(&list, malloc(48), 48);
        }
    }

  public:
    ~Holes() override
    {
        for (void *reply : replies) {
            free(reply);
        }
    }
    void request(Run &run) override
    {
        read_reply(run);
        while (replies.size() > 3000) {
            free(replies.front());
            replies.pop_front();
        }
        if (list != nullptr && run.requests % 4 == 0) {
            pop(&list);
        }
    }
};

/* Threads come and go, each with scratch of its own, freed with it. */
class Workers : public Service
{
    SITE_FUNCTION static void do_job(uint64_t seed)
    {
        thread_local std::vector<char> scratch;

        scratch.resize(200 * KIB + seed % (400 * KIB), 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(seed % 300));
    }

  public:
    void tick(Run &run) override
    {
        for (unsigned i = run.due(3); i > 0; i--) {
            std::thread(do_job, run.draw()).detach();
        }
    }
};

} // namespace

const Kind clean_kinds[] = {
    {"churn", false, nullptr, false, make<Churn>, 0},
    {"collected", false, nullptr, false, make<Collected>, 0},
    {"daily", false, nullptr, false, make<Daily>, 0},
    {"falling", false, nullptr, false, make<Falling>, 0},
    {"tails", false, nullptr, false, make<Tails>, 0},
    {"queue", false, nullptr, false, make<Queue>, 0},
    {"pool", false, nullptr, false, make<Pool>, 0},
    {"one-off", false, nullptr, false, make<OneOff>, 0},
    {"reload", false, nullptr, false, make<Reload>, 0},
    {"start-up", false, nullptr, false, make<StartUp>, 0},
    {"idle", false, nullptr, false, make<Idle>, 0},
    {"batch", false, nullptr, false, make<Batch>, 0},
    {"stops", false, nullptr, false, make<Stops>, 0},
    {"burst", false, nullptr, false, make<Burst>, 0},
    {"holes", false, nullptr, false, make<Holes>, 0},
    {"workers", false, nullptr, false, make<Workers>, 0},
    {},
};
