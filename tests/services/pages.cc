/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Services that keep, or give back, whole mappings: of files, of anonymous
 * memory, of threads' stacks, and by the bare system call.
 *
 * Invariant: what a kind calls kept is resident.
 */
#include "service.hh"

#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace
{

constexpr size_t MIB = 1 << 20;

void *checked(void *address)
{
    if (address == MAP_FAILED) {
        abort();
    }
    return address;
}

struct Mapping {
    void *at;
    size_t bytes;
};

void unmap(const Mapping &mapping)
{
    munmap(mapping.at, mapping.bytes);
}

/* Files of weights in the current folder. */
class Weights
{
    char path[64] = "weights.XXXXXX";
    int file;

  public:
    static constexpr size_t BYTES = 6 * MIB;

    Weights() : file(mkstemp(path))
    {
        if (file < 0 || ftruncate(file, BYTES) != 0) {
            abort();
        }
    }
    ~Weights()
    {
        close(file);
        unlink(path);
    }
    SITE_FUNCTION Mapping map_weights() const
    {
        void *at = checked(
            mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));

        return {touch(at, BYTES), BYTES};
    }
};

/* Weights are mapped at each of so many reloads; if KEEPS, never unmapped. */
template <bool KEEPS> class Reloads : public Service
{
    Weights weights;
    std::vector<Mapping> mappings;

  public:
    ~Reloads() override
    {
        for (const Mapping &mapping : mappings) {
            unmap(mapping);
        }
    }
    void tick(Run &run) override
    {
        if (!run.part_begins(24)) {
            return;
        }
        if (KEEPS) {
            kept(Weights::BYTES);
        } else if (!mappings.empty()) {
            unmap(mappings.back());
            mappings.pop_back();
        }
        mappings.push_back(weights.map_weights());
    }
};

/* Buffers of an accelerator's driver, as big as a mapping each; the first of
 * them are given back when there are MOST, if not 0. */
template <unsigned MOST> class Buffers : public Service
{
    std::deque<Mapping> buffers;

    SITE_FUNCTION void map_buffer(Run &run)
    {
        size_t bytes = run.between(100, 300) * 4096;
        void *at = checked(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

        buffers.push_back({touch(at, bytes), bytes});
        kept(bytes);
    }

  public:
    ~Buffers() override
    {
        for (const Mapping &mapping : buffers) {
            unmap(mapping);
        }
    }
    void tick(Run &run) override
    {
        for (unsigned i = run.due(MOST ? 2 : 0.6); i > 0; i--) {
            map_buffer(run);
        }
        while (MOST > 0 && buffers.size() > MOST) {
            dropped(buffers.front().bytes);
            unmap(buffers.front());
            buffers.pop_front();
        }
    }
};

/* As a communication library maps its rings: past every hook. */
class Bare : public Service
{
    SITE_FUNCTION static void map_ring()
    {
        void *at = reinterpret_cast<void *>(
            syscall(SYS_mmap, nullptr, MIB / 2, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

        touch(checked(at), MIB / 2);
        kept(MIB / 2);
    }

  public:
    void tick(Run &run) override
    {
        for (unsigned i = run.due(0.7); i > 0; i--) {
            map_ring();
        }
    }
};

/* A thread a job; it ends, and nobody joins it: its stack stays. */
class Unjoined : public Service
{
    static constexpr size_t USED_BYTES = 192 << 10;

    SITE_FUNCTION static void *work(void *)
    {
        char scratch[USED_BYTES];

        touch(scratch, sizeof scratch);
        return nullptr;
    }
    SITE_FUNCTION static void start_job()
    {
        pthread_t thread;
        pthread_attr_t attributes;

        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, MIB);
        if (pthread_create(&thread, &attributes, work, nullptr) != 0) {
            abort();
        }
        pthread_attr_destroy(&attributes);
        kept(USED_BYTES);
    }

  public:
    void tick(Run &run) override
    {
        for (unsigned i = run.due(1.5); i > 0; i--) {
            start_job();
        }
    }
};

} // namespace

const Kind page_kinds[] = {
    {"reload-keeps", true, "map_weights", false, make<Reloads<true>>, 0},
    {"map-keeps", true, "map_buffer", true, make<Buffers<0>>, 0},
    {"bare-map", true, nullptr, false, make<Bare>, 0},
    {"unjoined", true, nullptr, false, make<Unjoined>, 0},
    {"reload-frees", false, nullptr, false, make<Reloads<false>>, 0},
    {"map-ring", false, nullptr, false, make<Buffers<12>>, 0},
    {},
};
