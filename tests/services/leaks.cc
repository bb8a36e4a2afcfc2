/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Services that leak block by block: what nobody frees, or nobody erases.
 *
 * Invariant: what a kind calls kept is never freed while it works.
 */
#include "service.hh"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace
{

constexpr size_t KIB = 1024;

/* Lost: nobody has its address any more. */
void lose(void *address, size_t bytes)
{
    touch(address, bytes);
    kept(bytes);
}

/* A descriptor a call of a mathematics library, never destroyed. */
class Descriptor : public Service
{
    SITE_FUNCTION static void create_descriptor() { lose(malloc(304), 304); }

  public:
    void request(Run &) override { create_descriptor(); }
};

/* A decoded picture every other second stays in the session's history. */
class Pictures : public Service
{
    SITE_FUNCTION void keep_picture(Run &run)
    {
        size_t bytes = run.between(700 * KIB, 1100 * KIB);

        push(&list, malloc(bytes), bytes);
        kept(bytes);
    }

  public:
    void tick(Run &run) override
    {
        for (unsigned i = run.due(0.45); i > 0; i--) {
            keep_picture(run);
        }
    }
};

/* One reply in 150 keeps its buffer, in heavy churn at the same line. */
class ChurnKeeps : public Service
{
    SITE_FUNCTION void *make_buffer(size_t bytes) { return malloc(bytes); }

    void handle(Run &run)
    {
        size_t bytes = run.between(2 * KIB, 6 * KIB);
        void *buffer = touch(make_buffer(bytes), bytes);

        if (run.draw() % 150 == 0) {
            push(&list, buffer, bytes);
            kept(bytes);
        } else {
            free(buffer);
        }
    }

  public:
    unsigned load(const Run &) override { return 150; }
    void request(Run &run) override { handle(run); }
};

/* The request of a server that keeps 3 KB of each. */
class EachRequest : public Service
{
    SITE_FUNCTION void keep_context()
    {
        push(&list, malloc(3000), 3000);
        kept(3000);
    }

  public:
    unsigned load(const Run &) override { return 14; }
    void request(Run &) override { keep_context(); }
};

/* One request in a hundred fails, and returns without its clean-up. */
class ErrorPath : public Service
{
    SITE_FUNCTION static void open_request(Run &run, bool fails)
    {
        size_t bytes = run.between(16 * KIB, 40 * KIB);
        void *scratch = touch(malloc(bytes), bytes);

        if (fails) {
            kept(bytes);
            return;
        }
        free(scratch);
    }

  public:
    void request(Run &run) override { open_request(run, run.chance() < 0.01); }
};

/* One tenant of twenty, who comes in nine bursts, is never forgotten. */
class Tenant : public Service
{
    unsigned until = 0, next = 0;

    SITE_FUNCTION void keep_prompt(Run &run)
    {
        size_t bytes = run.between(8 * KIB, 24 * KIB);

        push(&list, malloc(bytes), bytes);
        kept(bytes);
    }

  public:
    void tick(Run &run) override
    {
        if (run.part_begins(9)) {
            next = run.tick + unsigned(run.chance() * run.tick_count * 0.08);
        }
        if (run.tick == next) {
            until = run.tick + run.tick_count / 40;
        }
        for (unsigned i = run.due(50); run.tick < until && i > 0; i--) {
            keep_prompt(run);
        }
    }
};

/* A job that runs twelve times, and leaves a part of its work each time. */
class Hourly : public Service
{
    SITE_FUNCTION void *make_part(size_t bytes) { return malloc(bytes); }

    void do_job(Run &run)
    {
        Block *parts = nullptr;

        for (unsigned i = 0; i < 120; i++) {
            size_t bytes = run.between(16 * KIB, 48 * KIB);
            void *part = make_part(bytes);

            if (i % 5 == 0) {
                push(&list, part, bytes);
                kept(bytes);
            } else {
                push(&parts, part, bytes);
            }
        }
        while (pop(&parts) > 0) {
        }
    }

  public:
    void tick(Run &run) override
    {
        if (run.part_begins(12)) {
            do_job(run);
        }
    }
};

/* It begins when this share of the run is past. */
template <int PERCENT> class Late : public Service
{
    SITE_FUNCTION void keep_result(Run &run)
    {
        size_t bytes = run.between(2 * KIB, 10 * KIB);

        push(&list, malloc(bytes), bytes);
        kept(bytes);
    }

  public:
    void tick(Run &run) override
    {
        for (unsigned i = run.due(60);
             run.share() >= PERCENT / 100.0 && i > 0; i--) {
            keep_result(run);
        }
    }
};

/* 33 s of work, then 10 MiB a second stay. */
class Flood : public Service
{
    SITE_FUNCTION void keep_batch()
    {
        push(&list, malloc(256 * KIB), 256 * KIB);
        kept(256 * KIB);
    }

  public:
    void tick(Run &run) override
    {
        for (unsigned i = run.due(40); run.tick >= 33 * TICKS_PER_SECOND &&
                                       i > 0; i--) {
            keep_batch();
        }
    }
};

/* A timer keeps as much each second, while the load rises from 1 to 4. */
class Timer : public Service
{
    SITE_FUNCTION void keep_statistics()
    {
        push(&list, malloc(24 * KIB), 24 * KIB);
        kept(24 * KIB);
    }

  public:
    unsigned load(const Run &run) override
    {
        return unsigned(5 + 15 * run.share());
    }
    void tick(Run &run) override
    {
        for (unsigned i = run.due(5); i > 0; i--) {
            keep_statistics();
        }
    }
};

/* A collector finds most of the garbage, and one object in eight never. */
class RisingFloor : public Service
{
    Block *young = nullptr;

    SITE_FUNCTION void make_object(Run &run)
    {
        size_t bytes = run.between(300, 1500);

        push(&young, malloc(bytes), bytes);
    }

    void collect()
    {
        for (unsigned i = 0; young != nullptr; i++) {
            if (i % 8 == 0) {
                Block *block = young;

                young = block->next;
                kept(block->bytes);
                block->next = list;
                list = block;
            } else {
                pop(&young);
            }
        }
    }

  public:
    ~RisingFloor() override { collect(); }
    void request(Run &run) override
    {
        make_object(run);
        make_object(run);
    }
    void tick(Run &run) override
    {
        if (run.part_begins(22)) {
            collect();
        }
    }
};

/* The rate at the end is FROM : TO of that at the start. */
template <int FROM, int TO> class Changing : public Service
{
    double owed = 0;

    SITE_FUNCTION void keep_message(Run &run)
    {
        size_t bytes = run.between(1 * KIB, 7 * KIB);

        push(&list, malloc(bytes), bytes);
        kept(bytes);
    }

  public:
    void tick(Run &run) override
    {
        double rate = FROM + (TO - FROM) * run.share();

        for (owed += rate * 12 / TICKS_PER_SECOND; owed >= 1; owed--) {
            keep_message(run);
        }
    }
};

/* A cache of 12 MiB fills in the first quarter; beside it, replies stay. */
class CacheAndLeak : public Service
{
    Block *cache = nullptr;
    size_t cache_bytes = 0;

    SITE_FUNCTION void fill_cache()
    {
        push(&cache, malloc(16 * KIB), 16 * KIB);
        cache_bytes += 16 * KIB;
    }
    SITE_FUNCTION void keep_reply(Run &run)
    {
        size_t bytes = run.between(1 * KIB, 3 * KIB);

        push(&list, malloc(bytes), bytes);
        kept(bytes);
    }

  public:
    ~CacheAndLeak() override
    {
        while (pop(&cache) > 0) {
        }
    }
    void tick(Run &run) override
    {
        double due = run.share() / 0.25 * 12 * KIB * KIB;

        while (cache_bytes < 12 * KIB * KIB && double(cache_bytes) < due) {
            fill_cache();
        }
        for (unsigned i = run.due(50); i > 0; i--) {
            keep_reply(run);
        }
    }
};

/* Lines of a log that is never written; a static container. */
std::vector<std::string> log_lines;

class Strings : public Service
{
    SITE_FUNCTION void remember_line(Run &run)
    {
        log_lines.push_back(std::string(run.between(200, 600), 'x'));
        kept(log_lines.back().capacity() + 1);
    }

  public:
    void request(Run &run) override { remember_line(run); }
};

/* Sessions by name, and none is erased; a static container. */
struct Session {
    std::string user;
    std::vector<char> history;
};
std::unordered_map<std::string, Session> sessions;

class Sessions : public Service
{
    SITE_FUNCTION void open_session(Run &run)
    {
        std::string name = "session-" + std::to_string(run.draw());
        Session &session = sessions[name];

        session.user = "user-" + std::to_string(run.draw());
        session.history.resize(run.between(500, 3500), 1);
        kept(session.history.size() + 120, 3);
    }

  public:
    void tick(Run &run) override
    {
        for (unsigned i = run.due(70); i > 0; i--) {
            open_session(run);
        }
    }
};

/* A parent and a child that own each other. */
struct Node {
    std::shared_ptr<Node> other;
    char state[1500];
};

class Cycle : public Service
{
    SITE_FUNCTION static void make_pair(Run &run)
    {
        std::shared_ptr<Node> parent = std::make_shared<Node>();

        parent->other = std::make_shared<Node>();
        parent->other->other = parent;
        parent->state[0] = char(run.draw());
        kept(2 * (sizeof(Node) + 16), 2);
    }

  public:
    void tick(Run &run) override
    {
        for (unsigned i = run.due(60); i > 0; i--) {
            make_pair(run);
        }
    }
};

/* Each worker keeps in a variable of its own all that it has done. */
class Locals : public Service
{
    static constexpr unsigned WORKERS = 4;
    std::vector<std::thread> workers;
    bool ends = false;
    unsigned pieces = 0;

    SITE_FUNCTION static void note_piece(std::deque<std::string> &notes)
    {
        notes.emplace_back(4000, 'n');
    }

    void work()
    {
        thread_local std::deque<std::string> notes;
        unsigned done = 0;

        while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
            for (unsigned due = __atomic_load_n(&pieces, __ATOMIC_RELAXED);
                 done < due; done++) {
                note_piece(notes);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }

  public:
    Locals()
    {
        for (unsigned i = 0; i < WORKERS; i++) {
            workers.emplace_back([this] { work(); });
        }
    }
    ~Locals() override
    {
        __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
        for (std::thread &worker : workers) {
            worker.join();
        }
    }
    void tick(Run &run) override
    {
        unsigned more = run.due(8);

        __atomic_store_n(&pieces, pieces + more, __ATOMIC_RELAXED);
        kept(size_t(more) * WORKERS * 4001, more * WORKERS);
    }
};

/* Churn of one site, mean life 1/20 of the run; one of twelve stays. The last
 * tenth of the run is idle, and drains all but that. */
class DrainedTail : public Service
{
    std::vector<Block *> by_tick;

    SITE_FUNCTION void *make_state(size_t bytes) { return malloc(bytes); }

    void handle(Run &run)
    {
        size_t bytes = run.between(1 * KIB, 5 * KIB);
        void *state = make_state(bytes);

        if (run.draw() % 12 == 0) {
            push(&list, state, bytes);
            kept(bytes);
            return;
        }
        double life = -std::log(1 - run.chance()) * run.tick_count / 20;
        unsigned then = run.tick + 1 + unsigned(life);
        unsigned last = run.tick_count - run.tick_count / 20;

        by_tick.resize(run.tick_count + 1);
        push(&by_tick[then < last ? then : last], state, bytes);
    }

  public:
    ~DrainedTail() override
    {
        for (Block *&due : by_tick) {
            while (pop(&due) > 0) {
            }
        }
    }
    unsigned load(const Run &run) override { return run.share() < 0.9 ? 8 : 0; }
    void request(Run &run) override { handle(run); }
    void tick(Run &run) override
    {
        if (!by_tick.empty()) {
            while (pop(&by_tick[run.tick]) > 0) {
            }
        }
    }
};

/* Work comes in six spells, 60 % of the time there is none. */
class Spells : public Service
{
    SITE_FUNCTION void keep_answer(Run &run)
    {
        size_t bytes = run.between(1 * KIB, 6 * KIB);

        push(&list, malloc(bytes), bytes);
        kept(bytes);
    }

  public:
    unsigned load(const Run &run) override
    {
        return std::fmod(run.share() * 6, 1) < 0.4 ? 10 : 0;
    }
    void request(Run &run) override
    {
        if (run.draw() % 4 == 0) {
            keep_answer(run);
        }
    }
};

/* A cache whose entries die by age; one renewed early loses its old value. */
class Orphans : public Service
{
    std::deque<Block *> entries;

    SITE_FUNCTION void *make_value(size_t bytes) { return malloc(bytes); }

    void store(Run &run)
    {
        size_t bytes = run.between(2 * KIB, 6 * KIB);
        Block *entry = nullptr;

        push(&entry, make_value(bytes), bytes);
        entries.push_back(entry);
        if (run.draw() % 10 == 0) {
            kept(entries.front()->bytes);
            push(&list, entries.front(), entries.front()->bytes);
            entries.pop_front();
        }
    }

  public:
    ~Orphans() override
    {
        for (Block *entry : entries) {
            free(entry);
        }
    }
    void tick(Run &run) override
    {
        for (unsigned i = run.due(150); i > 0; i--) {
            store(run);
        }
        while (entries.size() > 900) {
            pop(&entries.front());
            entries.pop_front();
        }
    }
};

/* A little stays of much: fewer samples than can be told by default. */
class Faint : public Service
{
    SITE_FUNCTION void keep_label(Run &run)
    {
        size_t bytes = run.between(500, 1500);

        push(&list, malloc(bytes), bytes);
        kept(bytes);
    }

  public:
    void tick(Run &run) override
    {
        for (unsigned i = run.due(55); i > 0; i--) {
            keep_label(run);
        }
    }
};

} // namespace

const Kind leak_kinds[] = {
    {"descriptor", true, "create_descriptor", true, make<Descriptor>, 0},
    {"pictures", true, "keep_picture", true, make<Pictures>, 0},
    {"churn-keeps", true, "make_buffer", true, make<ChurnKeeps>, 0},
    {"each-request", true, "keep_context", true, make<EachRequest>, 0},
    {"error-path", true, "open_request", true, make<ErrorPath>, 0},
    {"tenant", true, "keep_prompt", false, make<Tenant>, 0},
    {"hourly", true, "make_part", false, make<Hourly>, 0},
    {"late-35", true, "keep_result", false, make<Late<35>>, 0},
    {"late-60", true, "keep_result", false, make<Late<60>>, 0},
    {"flood", true, "keep_batch", false, make<Flood>, 55},
    {"timer", true, "keep_statistics", true, make<Timer>, 0},
    {"rising-floor", true, "make_object", false, make<RisingFloor>, 0},
    {"accelerates", true, "keep_message", false, make<Changing<2, 8>>, 0},
    {"slows", true, "keep_message", false, make<Changing<9, 3>>, 0},
    {"cache-and-leak", true, "keep_reply", true, make<CacheAndLeak>, 0},
    {"strings", true, "remember_line", false, make<Strings>, 0},
    {"sessions", true, "open_session", false, make<Sessions>, 0},
    {"cycle", true, "make_pair", false, make<Cycle>, 0},
    {"thread-locals", true, "note_piece", false, make<Locals>, 0},
    {"drained-tail", true, "make_state", false, make<DrainedTail>, 0},
    {"spells", true, "keep_answer", false, make<Spells>, 0},
    {"orphans", true, "make_value", false, make<Orphans>, 0},
    {"faint", true, "keep_label", true, make<Faint>, 0},
    {},
};
