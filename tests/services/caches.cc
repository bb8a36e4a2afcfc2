/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Services with a cache or another store that fills to its bound, in time.
 *
 * Invariant: once it is full, what comes in and what goes out are the same.
 */
#include "service.hh"

#include <cstdlib>
#include <deque>
#include <vector>

namespace
{

constexpr size_t KIB = 1024, MIB = 1024 * KIB;

/* The oldest goes when it is full, at this share of the run. */
template <unsigned PERCENT> class Oldest : public Service
{
    std::deque<void *> entries;

    SITE_FUNCTION void fill_cache(Run &run)
    {
        size_t bytes = run.between(1 * KIB, 5 * KIB);

        entries.push_back(touch(malloc(bytes), bytes));
    }

  public:
    ~Oldest() override
    {
        for (void *entry : entries) {
            free(entry);
        }
    }
    void request(Run &run) override
    {
        size_t most = size_t(run.tick_count) * load(run) * PERCENT / 100;

        fill_cache(run);
        if (entries.size() > most) {
            free(entries.front());
            entries.pop_front();
        }
    }
};

/* A catalogue of 6000, some asked for often, most seldom; any one goes. */
class Catalogue : public Service
{
    static constexpr size_t COUNT = 6000, MOST = 2500;
    std::vector<void *> values{COUNT};
    std::vector<size_t> present;

    SITE_FUNCTION void *load_value(Run &run)
    {
        size_t bytes = run.between(2 * KIB, 6 * KIB);

        return touch(malloc(bytes), bytes);
    }

  public:
    ~Catalogue() override
    {
        for (void *value : values) {
            free(value);
        }
    }
    void request(Run &run) override
    {
        double chance = run.chance();
        size_t key = size_t(chance * chance * chance * COUNT);

        if (values[key] != nullptr) {
            return;
        }
        if (present.size() >= MOST) {
            size_t &any = present[run.draw() % present.size()];

            free(values[any]);
            values[any] = nullptr;
            any = present.back();
            present.pop_back();
        }
        values[key] = load_value(run);
        present.push_back(key);
    }
};

/* Entries live for a sixth of the run, whatever is asked for. */
class Aged : public Service
{
    struct Entry {
        void *value;
        unsigned tick;
    };
    std::deque<Entry> entries;

    SITE_FUNCTION void store(Run &run)
    {
        size_t bytes = run.between(1 * KIB, 9 * KIB);

        entries.push_back({touch(malloc(bytes), bytes), run.tick});
    }

  public:
    ~Aged() override
    {
        for (const Entry &entry : entries) {
            free(entry.value);
        }
    }
    void request(Run &run) override { store(run); }
    void tick(Run &run) override
    {
        while (!entries.empty() &&
               run.tick - entries.front().tick > run.tick_count / 6) {
            free(entries.front().value);
            entries.pop_front();
        }
    }
};

/* A vector doubles to what it may hold, at a third of the run. */
class Doubling : public Service
{
    std::vector<float> values;

    SITE_FUNCTION void append_values()
    {
        values.insert(values.end(), 1024, 1.0F);
    }

  public:
    void request(Run &run) override
    {
        if (run.requests < uint64_t(run.tick_count) * 8 / 3) {
            append_values();
        }
    }
};

/* Scores of many pictures: each size of picture has a plan, 300 sizes. */
class Plans : public Service
{
    std::vector<void *> plans{300};

    SITE_FUNCTION void make_plan(size_t size)
    {
        plans[size] = touch(malloc(48 * KIB), 48 * KIB);
    }

  public:
    ~Plans() override
    {
        for (void *plan : plans) {
            free(plan);
        }
    }
    void tick(Run &run) override
    {
        double chance = run.chance();
        size_t size = size_t(chance * chance * 300);

        if (plans[size] == nullptr) {
            make_plan(size);
        }
    }
};

} // namespace

const Kind cache_kinds[] = {
    {"lru-15", false, nullptr, false, make<Oldest<15>>, 0},
    {"lru-50", false, nullptr, false, make<Oldest<50>>, 0},
    {"lru-75", false, nullptr, false, make<Oldest<75>>, 0},
    {"ring-88", false, nullptr, false, make<Oldest<88>>, 0},
    {"catalogue", false, nullptr, false, make<Catalogue>, 0},
    {"aged", false, nullptr, false, make<Aged>, 0},
    {"doubles-to-bound", false, nullptr, false, make<Doubling>, 0},
    {"plans", false, nullptr, false, make<Plans>, 0},
    {},
};
