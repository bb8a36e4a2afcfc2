/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A service that leaks, or only looks as if it did.
 *
 *     service KIND SECONDS SEED END
 *
 * END is how it goes: kill (as the OOM killer ends it), return (from main,
 * what is kept in a local variable), exit (from a static one), sigterm (which
 * it handles, then returns), drain (it lets go of what it keeps within 2 s,
 * then returns).
 *
 * Before it ends it writes one line of JSON: what it kept, and when.
 * Invariant: what is allocated depends on the arguments only.
 */
#include "service.hh"

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <unistd.h>

namespace
{

constexpr unsigned PARTS = 50;
constexpr unsigned DRAIN_STEPS = 40;
constexpr size_t PAGE_BYTES = 4096;
constexpr long NS_PER_SECOND = 1000000000L;

struct {
    int64_t bytes, blocks;
    int64_t by_part[PARTS];
    uint64_t requests_by_part[PARTS];
} truth;

volatile sig_atomic_t told_to_end;

/* What a static destructor frees. */
std::unique_ptr<Service> of_the_process;

void wait_until(const timespec &start, double seconds)
{
    timespec then = start;

    then.tv_sec += time_t(seconds);
    then.tv_nsec += long((seconds - double(time_t(seconds))) * NS_PER_SECOND);
    if (then.tv_nsec >= NS_PER_SECOND) {
        then.tv_nsec -= NS_PER_SECOND;
        then.tv_sec++;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, nullptr)) {
    }
}

/* What every service does: nothing of it stays. */
SITE_FUNCTION void serve(Run &run)
{
    size_t bytes = run.between(200, 1200);
    void *request = touch(malloc(bytes), bytes);
    void *reply = touch(malloc(bytes / 4), bytes / 4);

    free(request);
    free(reply);
}

void note_part(const Run &run)
{
    unsigned part = unsigned(uint64_t(run.tick) * PARTS / run.tick_count);

    for (; part < PARTS; part++) {
        truth.by_part[part] = truth.bytes;
        truth.requests_by_part[part] = run.requests;
    }
}

void work(Service &service, Run &run)
{
    timespec start;

    clock_gettime(CLOCK_MONOTONIC, &start);
    for (run.tick = 0; run.tick < run.tick_count; run.tick++) {
        wait_until(start, double(run.tick) / TICKS_PER_SECOND);
        unsigned requests = service.load(run);

        for (unsigned i = 0; i < requests; i++) {
            serve(run);
            service.request(run);
        }
        service.tick(run);
        run.requests += requests;
        note_part(run);
    }
    wait_until(start, double(run.tick_count) / TICKS_PER_SECOND);
}

const Kind *find(const char *name)
{
    for (const Kind *kinds : {leak_kinds, step_kinds, page_kinds, clean_kinds,
                              cache_kinds, sqlite_kinds}) {
        for (const Kind *kind = kinds; kind->name; kind++) {
            if (strcmp(kind->name, name) == 0) {
                return kind;
            }
        }
    }
    return nullptr;
}

char line[8192];
size_t line_bytes;

__attribute__((format(printf, 1, 2))) void tell(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    line_bytes += size_t(vsnprintf(line + line_bytes, sizeof line - line_bytes,
                                   format, arguments));
    va_end(arguments);
}

template <class T> void tell_parts(const char *name, const T *parts)
{
    tell("\"%s\": [", name);
    for (unsigned i = 0; i < PARTS; i++) {
        tell("%s%lld", i > 0 ? ", " : "", (long long)parts[i]);
    }
    tell("], ");
}

void tell_truth(const Kind &kind, const Run &run)
{
    tell("{\"pid\": %d, \"leaks\": %s, ", int(getpid()),
         kind.leaks ? "true" : "false");
    tell("\"functions\": \"%s\", ", kind.functions ? kind.functions : "");
    tell("\"even\": %s, ", kind.even ? "true" : "false");
    tell("\"seconds\": %.1f, ", double(run.tick_count) / TICKS_PER_SECOND);
    tell("\"kept_bytes\": %lld, \"kept_blocks\": %lld, ",
         (long long)truth.bytes, (long long)truth.blocks);
    tell_parts("kept_by_part", truth.by_part);
    tell_parts("requests_by_part", truth.requests_by_part);
    tell("\"requests\": %llu}\n", (unsigned long long)run.requests);
    if (write(STDOUT_FILENO, line, line_bytes) != ssize_t(line_bytes)) {
        abort();
    }
}

void heed(int)
{
    told_to_end = 1;
}

/* Each ends as its name says; what is kept goes with @mine, or is lost. */
void end(const char *how, std::unique_ptr<Service> mine)
{
    if (strcmp(how, "kill") == 0) {
        raise(SIGKILL);
    }
    if (strcmp(how, "exit") == 0) {
        of_the_process = std::move(mine);
        exit(0);
    }
    if (strcmp(how, "sigterm") == 0) {
        raise(SIGTERM);
        while (!told_to_end) {
        }
    }
}

class Draining : public Service
{
  public:
    static void drain(Service &service)
    {
        Block *Service::*list = &Draining::list;
        size_t count = 0;
        timespec start;

        for (Block *at = service.*list; at; at = at->next) {
            count++;
        }
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (unsigned step = 1; step <= DRAIN_STEPS; step++) {
            for (size_t i = 0; i < count / DRAIN_STEPS; i++) {
                pop(&(service.*list));
            }
            wait_until(start, step * 0.05);
        }
    }
};

} // namespace

uint64_t Run::draw()
{
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random * 2685821657736338717ULL;
}

double Run::chance()
{
    return double(draw() >> 11) / double(1ULL << 53);
}

size_t Run::between(size_t least, size_t most)
{
    return least + draw() % (most - least + 1);
}

unsigned Run::due(double per_second) const
{
    double per_tick = per_second / TICKS_PER_SECOND;

    return unsigned(uint64_t(per_tick * (tick + 1)) -
                    uint64_t(per_tick * tick));
}

bool Run::part_begins(unsigned count) const
{
    unsigned part = unsigned(uint64_t(tick) * count / tick_count);

    return tick == 0 || part != uint64_t(tick - 1) * count / tick_count;
}

void kept(size_t bytes, size_t blocks)
{
    truth.bytes += int64_t(bytes);
    truth.blocks += int64_t(blocks);
}

void dropped(size_t bytes, size_t blocks)
{
    truth.bytes -= int64_t(bytes);
    truth.blocks -= int64_t(blocks);
}

void *touch(void *address, size_t bytes)
{
    volatile char *at = static_cast<char *>(address);

    if (at == nullptr) {
        abort();
    }
    for (size_t i = 0; i < bytes; i += PAGE_BYTES) {
        at[i] = 1;
    }
    at[bytes - 1] = 1;
    return address;
}

void push(Block **list, void *address, size_t bytes)
{
    Block *block = static_cast<Block *>(touch(address, bytes));

    block->next = *list;
    block->bytes = bytes;
    *list = block;
}

size_t pop(Block **list)
{
    Block *block = *list;

    if (block == nullptr) {
        return 0;
    }
    size_t bytes = block->bytes;
    *list = block->next;
    free(block);
    return bytes;
}

Service::~Service()
{
    while (pop(&list) > 0) {
    }
}

unsigned Service::load(const Run &)
{
    return 8;
}

void Service::request(Run &)
{
}

void Service::tick(Run &)
{
}

int main(int argument_count, char **arguments)
{
    const Kind *kind = argument_count == 5 ? find(arguments[1]) : nullptr;
    Run run;

    if (kind == nullptr) {
        return 2;
    }
    double seconds = atof(arguments[2]);
    if (kind->most_seconds > 0 && seconds > kind->most_seconds) {
        seconds = kind->most_seconds;
    }
    run.tick_count = unsigned(seconds * TICKS_PER_SECOND);
    run.random =
        88172645463325252ULL + strtoull(arguments[3], nullptr, 10) * 2654435761;
    signal(SIGTERM, heed);
    std::unique_ptr<Service> service = kind->make();
    work(*service, run);
    tell_truth(*kind, run);
    if (strcmp(arguments[4], "drain") == 0) {
        Draining::drain(*service);
    }
    end(arguments[4], std::move(service));
    return 0;
}
