/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One external sample of a process that lives. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reader/process/cgroup.h"
#include "reader/process/sample.h"
#include "seep_test.h"

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static void a_look_at_oneself_sees_what_one_touched(void **state)
{
    struct seep_external_sample sample;
    uint64_t found_bytes = 0;
    uint64_t listed_bytes = 0;
    char *bytes = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(bytes, MAP_FAILED);
    memset(bytes, 1, 3 * MIB);

    assert_int_equal(seep_external_sample_take(getpid(), 0, &sample), 0);

    for (size_t i = 0; i < sample.mapping_count; i++) {
        const struct seep_external_mapping *mapping = &sample.mappings[i];
        listed_bytes += mapping->rss_bytes;
        if ((uintptr_t)bytes >= mapping->start &&
            (uintptr_t)bytes < mapping->end) {
            found_bytes = mapping->rss_bytes;
        }
    }
    assert_true(found_bytes >= 3 * MIB);
    assert_true(found_bytes < 8 * MIB);
    assert_true(sample.anonymous_bytes >= 3 * MIB);
    assert_int_equal(sample.anonymous_bytes + sample.shared_bytes,
                     sample.rss_bytes);
    assert_true(listed_bytes + sample.other_rss_bytes >= sample.rss_bytes);
    assert_true(sample.available_bytes > 0);
    assert_true(sample.t_s > 0);
    seep_external_sample_fini(&sample);
    munmap(bytes, 8 * MIB);
}

/* A memfd twice, a removed file of a tmpfs, and one of a disk. */
static void what_is_in_open_files_without_a_name_is_told(void **state)
{
    static char bytes[3 * MIB];
    char disk[] = "/tmp/seep-open-XXXXXX";
    struct seep_external_sample sample;
    int files[4];

    (void)state;
    assert_int_equal(seep_external_sample_take(getpid(), 0, &sample), 0);
    uint64_t before_bytes = sample.open_file_bytes;
    seep_external_sample_fini(&sample);
    files[0] = memfd_create("seep\033[2J", MFD_CLOEXEC);
    files[1] = dup(files[0]);
    files[2] = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    files[3] = mkstemp(disk);
    assert_int_equal(unlink(disk), 0);
    assert_int_equal(write(files[0], bytes, 3 * MIB), 3 * MIB);
    if (files[2] >= 0) { /* there need be no /dev/shm */
        assert_int_equal(write(files[2], bytes, MIB), MIB);
    }

    assert_int_equal(seep_external_sample_take(getpid(), 0, &sample), 0);

    struct statfs system;
    bool in_memory = fstatfs(files[3], &system) == 0 &&
                     (uint32_t)system.f_type == 0x01021994;
    assert_int_equal(write(files[3], bytes, MIB), MIB);
    assert_int_equal(sample.open_file_bytes - before_bytes,
                     3 * MIB + (files[2] >= 0 ? MIB : 0));
    assert_string_equal(sample.open_file, "memfd:seep\033[2J");
    seep_external_sample_fini(&sample);
    assert_int_equal(seep_external_sample_take(getpid(), 0, &sample), 0);
    assert_int_equal(sample.open_file_bytes - before_bytes,
                     3 * MIB + (files[2] >= 0 ? MIB : 0) +
                         (in_memory ? MIB : 0));
    seep_external_sample_fini(&sample);
    for (int i = 0; i < 4; i++) {
        close(files[i]);
    }
}

static void a_process_that_has_ended_is_not_there(void **state)
{
    struct seep_external_sample sample;
    siginfo_t info;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        _exit(0);
    }
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(seep_external_sample_take(pid, 0, &sample),
                     -ESRCH); /* a zombie */
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(seep_external_sample_take(pid, 0, &sample), -ESRCH);
}

static struct seep_external_mapping range(const char *bytes, size_t from,
                                          size_t to)
{
    uintptr_t start = (uintptr_t)bytes;

    return (struct seep_external_mapping){.start = start + from * PAGE,
                                          .end = start + to * PAGE};
}

/* Larger than a window, several in one window, and not in order. */
static void every_page_is_counted_where_it_lies(void **state)
{
    size_t bytes = 20000 * PAGE;
    char *private = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(private, MAP_FAILED);
    madvise(private, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < 20000; i += i < 9000 ? 3 : 5) {
        private[i * PAGE] = 1;
    }
    struct seep_external_mapping ranges[] = {
        range(private, 0, 30), range(private, 30, 9000),
        range(private, 9000, 20000), range(private, 0, 3)};

    assert_int_equal(seep_external_pages(getpid(), ranges, 4), 0);

    assert_int_equal(ranges[0].rss_bytes, 10 * PAGE);
    assert_int_equal(ranges[1].rss_bytes, 2990 * PAGE);
    assert_int_equal(ranges[2].rss_bytes, 2200 * PAGE);
    assert_int_equal(ranges[2].anonymous_bytes, 2200 * PAGE);
    assert_int_equal(ranges[3].rss_bytes, PAGE);
    munmap(private, bytes);
}

static void shared_memory_is_not_anonymous(void **state)
{
    char *shared = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(shared, MAP_FAILED);
    memset(shared, 1, 5 * PAGE);
    struct seep_external_mapping mapping = range(shared, 0, 8);

    assert_int_equal(seep_external_pages(getpid(), &mapping, 1), 0);

    assert_true(mapping.rss_bytes >= 5 * PAGE);
    assert_int_equal(mapping.anonymous_bytes, 0);
    munmap(shared, 8 * PAGE);
}

/* Until one of the two writes to it. */
static void pages_of_a_fork_are_the_others_as_well(void **state)
{
    char *private = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct seep_external_mapping mapping = range(private, 0, 8);
    int wait[2];
    char byte = 0;
    pid_t child;

    (void)state;
    assert_ptr_not_equal(private, MAP_FAILED);
    memset(private, 1, 5 * PAGE);
    assert_int_equal(seep_external_pages(getpid(), &mapping, 1), 0);
    assert_int_equal(mapping.forked_bytes, 0);
    assert_int_equal(pipe(wait), 0);
    child = fork();
    if (child == 0) {
        _exit(read(wait[0], &byte, 1) != 1);
    }
    mapping = range(private, 0, 8);
    assert_int_equal(seep_external_pages(getpid(), &mapping, 1), 0);
    assert_int_equal(mapping.anonymous_bytes, 5 * PAGE);
    assert_int_equal(mapping.forked_bytes, 5 * PAGE);
    private[0] = 2;
    mapping = range(private, 0, 8);
    assert_int_equal(seep_external_pages(getpid(), &mapping, 1), 0);
    assert_int_equal(mapping.anonymous_bytes, 5 * PAGE);
    assert_int_equal(mapping.forked_bytes, 4 * PAGE);
    assert_int_equal(write(wait[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(wait[0]);
    close(wait[1]);
    munmap(private, 8 * PAGE);
}

static void the_mapping_of_the_recording_is_named(void **state)
{
    struct seep_external_sample sample;
    struct stat status;
    size_t named = 0;

    (void)state;
    assert_int_equal(stat("/proc/self/exe", &status), 0);
    assert_int_equal(seep_external_sample_take(getpid(), 0, &sample), 0);
    seep_external_sample_name_own(&sample, (uint64_t)status.st_ino);
    for (size_t i = 0; i < sample.mapping_count; i++) {
        named += strcmp(sample.mappings[i].name, SEEP_EXTERNAL_OWN) == 0;
    }
    assert_true(named > 0);
    assert_true(named < sample.mapping_count);
    seep_external_sample_fini(&sample);
}

/* A tree of cgroups in a folder. */
struct fixture {
    char root[64];
    uint64_t bytes;
    uint64_t limit_bytes;
};

static int make_root(void **state)
{
    static struct fixture fixture;

    strcpy(fixture.root, "/tmp/seep-cgroup-XXXXXX");
    *state = &fixture;
    return mkdtemp(fixture.root) == NULL ? -1 : 0;
}

static int remove_root(void **state)
{
    const struct fixture *fixture = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", fixture->root);
    return system(command);
}

static void put(const struct fixture *fixture, const char *folder,
                const char *name, const char *text)
{
    char command[512];

    snprintf(command, sizeof(command), "mkdir -p %s%s; echo %s > %s%s/%s",
             fixture->root, folder, text, fixture->root, folder, name);
    assert_int_equal(system(command), 0);
}

static void look_up(struct fixture *fixture, const char *membership)
{
    seep_cgroup_usage(membership, fixture->root, &fixture->bytes,
                      &fixture->limit_bytes);
}

static void the_group_nearest_to_its_limit_counts(void **state)
{
    struct fixture *fixture = *state;

    put(fixture, "/pod/box", "memory.current", "100");
    put(fixture, "/pod/box", "memory.max", "max");
    put(fixture, "/pod", "memory.current", "700");
    put(fixture, "/pod", "memory.max", "1000");
    put(fixture, "", "memory.current", "5000");
    put(fixture, "", "memory.max", "9000");

    look_up(fixture, "0::/pod/box\n");

    assert_int_equal(fixture->bytes, 700);
    assert_int_equal(fixture->limit_bytes, 1000);
}

static void without_a_limit_its_own_use_is_told(void **state)
{
    struct fixture *fixture = *state;

    put(fixture, "/pod/box", "memory.current", "100");
    put(fixture, "/pod/box", "memory.max", "max");
    put(fixture, "/pod", "memory.current", "700");

    look_up(fixture, "0::/pod/box\n");

    assert_int_equal(fixture->bytes, 100);
    assert_int_equal(fixture->limit_bytes, 0);
}

static void version_1_is_known_beside_version_2(void **state)
{
    struct fixture *fixture = *state;

    put(fixture, "/memory/a", "memory.usage_in_bytes", "30");
    put(fixture, "/memory/a", "memory.limit_in_bytes", "50");
    put(fixture, "/memory", "memory.usage_in_bytes", "400");
    put(fixture, "/memory", "memory.limit_in_bytes", "9223372036854771712");

    look_up(fixture, "9:name=systemd:/x\n4:memory:/a\n0::/\n");

    assert_int_equal(fixture->bytes, 30);
    assert_int_equal(fixture->limit_bytes, 50);
}

static void cache_that_can_go_is_room(void **state)
{
    struct fixture *fixture = *state;
    uint64_t left = 0;

    put(fixture, "/pod/box", "memory.current", "900");
    put(fixture, "/pod/box", "memory.max", "1000");
    put(fixture, "/pod/box", "memory.stat",
        "\"$(printf 'anon 5\\ninactive_file 600\\nactive_file 7')\"");
    put(fixture, "/pod", "memory.current", "1500");
    put(fixture, "/pod", "memory.max", "2000");

    seep_cgroup_room("0::/pod/box\n", fixture->root, &left,
                     &fixture->limit_bytes);
    assert_int_equal(left, 500); /* of the pod: of the box 700 are left */
    assert_int_equal(fixture->limit_bytes, 2000);
    look_up(fixture, "0::/pod/box\n");
    assert_int_equal(fixture->limit_bytes, 1000);
}

static void of_version_1_the_cache_of_all_below_counts(void **state)
{
    struct fixture *fixture = *state;
    uint64_t left = 0;

    put(fixture, "/memory/a", "memory.usage_in_bytes", "30");
    put(fixture, "/memory/a", "memory.limit_in_bytes", "50");
    put(fixture, "/memory/a", "memory.stat",
        "\"$(printf 'cache 5\\ninactive_file 1\\n"
        "total_inactive_file 10')\"");

    seep_cgroup_room("4:memory:/a\n", fixture->root, &left,
                     &fixture->limit_bytes);
    assert_int_equal(left, 30);
    assert_int_equal(fixture->limit_bytes, 50);
}

/* Files on a disk can be read again, those in memory cannot. */
static void page_cache_is_not_held_but_that_of_a_tmpfs_is(void **state)
{
    struct fixture *fixture = *state;
    struct seep_cgroup_use use;

    put(fixture, "/pod/box", "memory.current", "900");
    put(fixture, "/pod/box", "memory.max", "1000");
    put(fixture, "/pod/box", "memory.stat",
        "\"$(printf 'anon 5\\nfile 600\\nshmem 150\\n"
        "slab_reclaimable 30')\"");
    seep_cgroup_use_of("0::/pod/box\n", fixture->root, &use);
    assert_int_equal(use.bytes, 900);
    assert_int_equal(use.limit_bytes, 1000);
    assert_int_equal(use.held_bytes, 420);
    assert_int_equal(use.shmem_bytes, 150);
    put(fixture, "/memory/a", "memory.usage_in_bytes", "900");
    put(fixture, "/memory/a", "memory.stat",
        "\"$(printf 'cache 5\\nshmem 2\\ntotal_cache 300\\n"
        "total_rss 500\\ntotal_shmem 100')\"");
    seep_cgroup_use_of("4:memory:/a\n", fixture->root, &use);
    assert_int_equal(use.held_bytes, 600);
    assert_int_equal(use.shmem_bytes, 100);
    /* of the group that is nearest to its limit, or nothing */
    put(fixture, "/pod", "memory.current", "1950");
    put(fixture, "/pod", "memory.max", "2000");
    seep_cgroup_use_of("0::/pod/box\n", fixture->root, &use);
    assert_int_equal(use.bytes, 1950);
    assert_int_equal(use.held_bytes, 0);
}

static void more_cache_than_use_is_no_more_than_the_limit(void **state)
{
    struct fixture *fixture = *state;
    uint64_t left = 0;

    put(fixture, "", "memory.current", "30");
    put(fixture, "", "memory.max", "50");
    put(fixture, "", "memory.stat",
        "\"$(printf 'anon 5\\ninactive_file 99999999999')\"");

    seep_cgroup_room("0::/\n", fixture->root, &left, &fixture->limit_bytes);
    assert_int_equal(left, 50);
}

/* In a container its group is mounted at the root, under a host's path. */
static void a_path_of_the_host_leads_to_the_root(void **state)
{
    struct fixture *fixture = *state;

    put(fixture, "", "memory.current", "30");
    put(fixture, "", "memory.max", "50");

    look_up(fixture, "0::/kubepods/pod1/abc\n");

    assert_int_equal(fixture->bytes, 30);
    assert_int_equal(fixture->limit_bytes, 50);
}

static void what_is_not_there_is_not_known(void **state)
{
    static const char *const texts[] = {"",        "\n",       ":",
                                        "::",      "0::",      "0::/../..",
                                        "4:cpu:/", "0:memory", "0::/a\n"};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        look_up(fixture, texts[i]);
        assert_int_equal(fixture->bytes, 0);
        assert_int_equal(fixture->limit_bytes, 0);
    }
}

#define CGROUP_TEST(name) \
    cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_at_oneself_sees_what_one_touched),
        cmocka_unit_test(what_is_in_open_files_without_a_name_is_told),
        cmocka_unit_test(a_process_that_has_ended_is_not_there),
        cmocka_unit_test(every_page_is_counted_where_it_lies),
        cmocka_unit_test(shared_memory_is_not_anonymous),
        cmocka_unit_test(pages_of_a_fork_are_the_others_as_well),
        cmocka_unit_test(the_mapping_of_the_recording_is_named),
        CGROUP_TEST(the_group_nearest_to_its_limit_counts),
        CGROUP_TEST(without_a_limit_its_own_use_is_told),
        CGROUP_TEST(version_1_is_known_beside_version_2),
        CGROUP_TEST(cache_that_can_go_is_room),
        CGROUP_TEST(of_version_1_the_cache_of_all_below_counts),
        CGROUP_TEST(page_cache_is_not_held_but_that_of_a_tmpfs_is),
        CGROUP_TEST(more_cache_than_use_is_no_more_than_the_limit),
        CGROUP_TEST(a_path_of_the_host_leads_to_the_root),
        CGROUP_TEST(what_is_not_there_is_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
