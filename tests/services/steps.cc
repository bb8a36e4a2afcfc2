/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Services that leak in steps: what grows by doubling, or in chunks of a
 * library, holds ever more.
 *
 * Invariant: what a kind calls kept is in use, not only reserved.
 */
#include "service.hh"

#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

constexpr size_t KIB = 1024, MIB = 1024 * KIB;

/* Scores of every request, at the end of a vector. */
class Vector : public Service
{
    std::vector<float> scores;

    SITE_FUNCTION void append_scores(Run &run)
    {
        for (unsigned i = 0; i < 512; i++) {
            scores.push_back(float(run.requests + i));
        }
        kept(512 * sizeof(float));
    }

  public:
    unsigned load(const Run &) override { return 10; }
    void request(Run &run) override { append_scores(run); }
};

/* Open addressing: at three quarters full it moves to a table twice as big. */
class Table : public Service
{
    struct Slot {
        uint64_t key;
        char value[56];
    };
    Slot *slots = nullptr;
    size_t slot_count = 0, used = 0;

    SITE_FUNCTION void grow_table()
    {
        size_t count = slot_count ? slot_count * 2 : 4096;
        Slot *bigger = static_cast<Slot *>(calloc(count, sizeof(Slot)));

        if (bigger == nullptr) {
            abort();
        }
        for (size_t i = 0; i < slot_count; i++) {
            if (slots[i].key != 0) {
                put(bigger, count, slots[i].key);
            }
        }
        free(slots);
        slots = bigger;
        slot_count = count;
    }

    static void put(Slot *in, size_t count, uint64_t key)
    {
        size_t at = key % count;

        while (in[at].key != 0) {
            at = (at + 1) % count;
        }
        in[at].key = key;
        memset(in[at].value, 1, sizeof in[at].value);
    }

  public:
    ~Table() override { free(slots); }
    unsigned load(const Run &) override { return 40; }
    void request(Run &run) override
    {
        if (used * 4 >= slot_count * 3) {
            grow_table();
        }
        put(slots, slot_count, run.draw() | 1);
        used++;
        kept(sizeof(Slot));
    }
};

/* A std::unordered_map: nodes one by one, buckets by doubling. */
class Hash : public Service
{
    std::unordered_map<uint64_t, uint64_t> seen;

    SITE_FUNCTION void remember_key(Run &run)
    {
        seen.emplace(run.draw(), run.requests);
        kept(3 * sizeof(uint64_t) + sizeof(void *));
    }

  public:
    unsigned load(const Run &) override { return 20; }
    void request(Run &run) override
    {
        for (unsigned i = 0; i < 4; i++) {
            remember_key(run);
        }
    }
};

/* A library's arena: each chunk is twice as big as that before; what is given
 * back goes on a list by size, and chunks are freed with the arena only. */
class Arena
{
    struct Chunk {
        char *at;
        size_t bytes, used;
    };
    std::vector<Chunk> chunks;
    std::vector<void *> free_pieces;

    SITE_FUNCTION void extend()
    {
        size_t bytes = chunks.empty() ? MIB : 2 * chunks.back().bytes;

        bytes = bytes > 64 * MIB ? 64 * MIB : bytes;
        chunks.push_back({static_cast<char *>(malloc(bytes)), bytes, 0});
    }

  public:
    static constexpr size_t PIECE_BYTES = 16 * KIB;

    ~Arena()
    {
        for (const Chunk &chunk : chunks) {
            free(chunk.at);
        }
    }
    void *take()
    {
        if (!free_pieces.empty()) {
            void *piece = free_pieces.back();

            free_pieces.pop_back();
            return piece;
        }
        if (chunks.empty() ||
            chunks.back().used + PIECE_BYTES > chunks.back().bytes) {
            extend();
        }
        Chunk &chunk = chunks.back();

        chunk.used += PIECE_BYTES;
        return touch(chunk.at + chunk.used - PIECE_BYTES, PIECE_BYTES);
    }
    void give(void *piece) { free_pieces.push_back(piece); }
};

/* Outputs of an engine with an arena; the caller keeps one of eight. */
class Outputs : public Service
{
    Arena arena;
    std::vector<void *> outputs;

    SITE_FUNCTION void keep_output(void *output)
    {
        outputs.push_back(output);
        kept(Arena::PIECE_BYTES);
    }
    SITE_FUNCTION void *infer() { return arena.take(); }

  public:
    unsigned load(const Run &) override { return 3; }
    void request(Run &run) override
    {
        void *scratch = infer();
        void *output = infer();

        arena.give(scratch);
        if (run.draw() % 4 == 0) {
            keep_output(output);
        } else {
            arena.give(output);
        }
    }
};

/* Every tenant's list of messages grows by so many hundredths when full. */
template <unsigned TENANTS, unsigned FACTOR, unsigned MESSAGE, unsigned RATE>
class Lists : public Service
{
    struct List {
        char *at;
        size_t used, bytes;
    };
    std::vector<List> tenants{TENANTS};

    SITE_FUNCTION void grow_list(List &list_of)
    {
        size_t bytes = list_of.bytes * FACTOR / 100 + MESSAGE;

        list_of.at = static_cast<char *>(realloc(list_of.at, bytes));
        list_of.bytes = bytes;
        if (list_of.at == nullptr) {
            abort();
        }
    }

    void append(List &list_of)
    {
        if (list_of.used + MESSAGE > list_of.bytes) {
            grow_list(list_of);
        }
        memset(list_of.at + list_of.used, 1, MESSAGE);
        list_of.used += MESSAGE;
        kept(MESSAGE);
    }

  public:
    ~Lists() override
    {
        for (const List &each : tenants) {
            free(each.at);
        }
    }
    void tick(Run &run) override
    {
        for (unsigned i = run.due(RATE); i > 0; i--) {
            append(tenants[run.draw() % TENANTS]);
        }
    }
};

/* The history of a model: one string that only becomes longer. */
class History : public Service
{
    std::string history;

    SITE_FUNCTION void append_turn(Run &run)
    {
        size_t bytes = run.between(100, 500);

        history.append(bytes, 't');
        kept(bytes);
    }

  public:
    unsigned load(const Run &) override { return 10; }
    void request(Run &run) override { append_turn(run); }
};

} // namespace

const Kind step_kinds[] = {
    {"vector", true, "append_scores", false, make<Vector>, 0},
    {"table", true, "grow_table", false, make<Table>, 0},
    {"hash", true, "remember_key", false, make<Hash>, 0},
    {"arena", true, "keep_output|infer", false, make<Outputs>, 0},
    {"lists-10-1.125", true, "grow_list", false, make<Lists<10, 112, 800, 600>>,
     0},
    {"lists-40-1.5", true, "grow_list", false, make<Lists<40, 150, 1500, 400>>,
     0},
    {"lists-200-2", true, "grow_list", false, make<Lists<200, 200, 1500, 300>>,
     0},
    {"lists-200-1.125", true, "grow_list", false,
     make<Lists<200, 112, 1500, 250>>, 0},
    {"history", true, "append_turn", false, make<History>, 0},
    {},
};
