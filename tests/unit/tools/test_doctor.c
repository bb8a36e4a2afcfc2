/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/doctor_*: checks on machines that are made up. */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/syscall.h"
#include "doctor_world.h"
#include "seep_test.h"

#define MIB (UINT64_C(1) << 20)

static struct doctor_world world;

static int setup(void **state)
{
    (void)state;
    doctor_world_setup(&world);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    doctor_world_teardown(&world);
    return 0;
}

static void expect(doctor_world_check *check, enum seep_doctor_level level,
                   const char *words)
{
    doctor_world_run(&world, check);
    doctor_world_expect(&world, level, words);
}

static void on_a_machine_that_is_well_nothing_is_a_limit(void **state)
{
    char *sentence;

    (void)state;
    doctor_world_run(&world, seep_doctor_check);
    assert_int_equal(seep_doctor_count(&world.doctor, SEEP_DOCTOR_NO), 0);
    assert_int_equal(seep_doctor_count(&world.doctor, SEEP_DOCTOR_WARN), 0);
    sentence = seep_doctor_sentence(&world.facts, &world.doctor);
    assert_string_equal(sentence, "seep works here");
    free(sentence);
}

static void what_does_not_work_is_the_answer(void **state)
{
    char *sentence;

    (void)state;
    world.facts.library = NULL;
    world.facts.library_error = -ENOENT;
    doctor_world_run(&world, seep_doctor_check);
    sentence = seep_doctor_sentence(&world.facts, &world.doctor);
    assert_string_equal(sentence, "seep does not work here: libseep.so was not "
                                  "found beside this program");
    free(sentence);
}

static void limits_are_counted_in_the_answer(void **state)
{
    char *sentence;

    (void)state;
    world.facts.folder.place.type = TMPFS_MAGIC;
    doctor_world_run(&world, seep_doctor_check);
    sentence = seep_doctor_sentence(&world.facts, &world.doctor);
    assert_string_equal(sentence, "seep works here, with 1 limit");
    free(sentence);
    world.facts.vm_readv_error = -EPERM;
    doctor_world_run(&world, seep_doctor_check);
    sentence = seep_doctor_sentence(&world.facts, &world.doctor);
    assert_string_equal(sentence, "seep works here, with 2 limits");
    free(sentence);
}

static void
a_library_that_cannot_be_loaded_is_told_in_the_loaders_words(void **state)
{
    (void)state;
    world.facts.trial = (struct seep_doctor_trial){
        .complaint = "ERROR: ld.so: object 'x' cannot be preloaded"};
    expect(seep_doctor_check_recording, SEEP_DOCTOR_NO,
           "left no recording: ERROR: ld.so");
    world.facts.library_noexec = true;
    expect(seep_doctor_check_recording, SEEP_DOCTOR_NO, "noexec");
}

static void a_library_that_does_nothing_does_not_work(void **state)
{
    (void)state;
    world.facts.trial.inert = SEEP_INERT_SANITIZER;
    expect(seep_doctor_check_recording, SEEP_DOCTOR_NO, "does nothing");
}

static void a_child_that_dies_or_records_nothing_does_not_work(void **state)
{
    (void)state;
    world.facts.trial.status = 11; /* by SIGSEGV */
    expect(seep_doctor_check_recording, SEEP_DOCTOR_NO, "status 11");
    world.facts.trial.status = 0;
    world.facts.trial.event_count = 0;
    expect(seep_doctor_check_recording, SEEP_DOCTOR_NO, "0 events");
}

static void a_trial_without_a_place_is_told_as_that(void **state)
{
    (void)state;
    world.facts.trial = (struct seep_doctor_trial){.error = -EROFS};
    expect(seep_doctor_check_recording, SEEP_DOCTOR_NO, "Read-only");
}

static void another_c_library_or_an_old_one_does_not_work(void **state)
{
    (void)state;
    world.facts.glibc = "2.34";
    expect(seep_doctor_check_glibc, SEEP_DOCTOR_OK, "2.34");
    world.facts.glibc = "2.31";
    expect(seep_doctor_check_glibc, SEEP_DOCTOR_NO, "older than 2.34");
    world.facts.glibc = "";
    expect(seep_doctor_check_glibc, SEEP_DOCTOR_NO, "not glibc");
}

static void a_preloaded_allocator_is_named(void **state)
{
    (void)state;
    doctor_world_write(&world, "/usr/lib/libjemalloc.so.2", "");
    doctor_world_variable("LD_PRELOAD", "/usr/lib/libjemalloc.so.2");
    expect(seep_doctor_check_allocator, SEEP_DOCTOR_OK, "jemalloc");
}

static void an_allocator_of_the_whole_system_is_named(void **state)
{
    (void)state;
    doctor_world_write(&world, "/usr/lib/libmimalloc.so.2", "");
    doctor_world_write(&world, "/etc/ld.so.preload",
                       "/usr/lib/libmimalloc.so.2\n");
    expect(seep_doctor_check_allocator, SEEP_DOCTOR_WARN, "mimalloc");
}

static void a_preloaded_sanitizer_does_not_work(void **state)
{
    (void)state;
    doctor_world_variable("LD_PRELOAD", "libasan.so.8");
    doctor_world_run(&world, seep_doctor_check_allocator);
    assert_int_equal(seep_doctor_count(&world.doctor, SEEP_DOCTOR_NO), 1);
}

static void a_preloaded_file_that_is_not_there_is_a_limit(void **state)
{
    (void)state;
    doctor_world_variable("LD_PRELOAD", "/usr/lib/libgone.so");
    doctor_world_run(&world, seep_doctor_check_allocator);
    assert_int_equal(seep_doctor_count(&world.doctor, SEEP_DOCTOR_WARN), 1);
    assert_non_null(strstr(world.doctor.findings[0].reason, "libgone"));
}

static void stacks_that_end_early_are_a_limit(void **state)
{
    (void)state;
    world.facts.trial.whole_count = 1;
    expect(seep_doctor_check_unwinder, SEEP_DOCTOR_WARN, "of 4 stacks, 3");
}

static void an_unwinder_that_is_asked_for_must_be_there(void **state)
{
    (void)state;
    doctor_world_variable("SEEP_UNWINDER", "libunwind");
    expect(seep_doctor_check_unwinder, SEEP_DOCTOR_WARN, "not installed");
    doctor_world_write(&world, "/usr/lib/libunwind.so.8", "");
    expect(seep_doctor_check_unwinder, SEEP_DOCTOR_OK,
           "libunwind is also installed");
}

static void a_folder_that_refuses_is_told_with_the_step(void **state)
{
    (void)state;
    world.facts.folder.error = -ENOSPC;
    world.facts.folder.step = "be reserved";
    expect(seep_doctor_check_folder, SEEP_DOCTOR_NO,
           "in /data a recording cannot be reserved: No space left");
    world.facts.folder.error = -EROFS;
    world.facts.folder.step = "be created";
    expect(seep_doctor_check_folder, SEEP_DOCTOR_NO, "Read-only");
}

static void a_folder_that_everybody_writes_is_no_fault_and_is_told(void **state)
{
    (void)state;
    world.facts.folder.place.others_may_move = true;
    expect(seep_doctor_check_folder, SEEP_DOCTOR_OK, "others can rename");
}

static void a_place_that_is_refused_is_told_in_its_words(void **state)
{
    (void)state;
    for (unsigned i = 1; i < SEEP_PLACE_COUNT; i++) {
        world.facts.folder.place.reason = (enum seep_place_reason)i;
        expect(seep_doctor_check_folder, SEEP_DOCTOR_NO,
               seep_place_words((enum seep_place_reason)i));
    }
}

static size_t findings_of(const char *configuration, const char *rule)
{
    doctor_world_write(&world, "/etc/logrotate.conf", configuration);
    doctor_world_write(&world, "/etc/logrotate.d/service", rule);
    doctor_world_run(&world, seep_doctor_check_rotation);
    return world.doctor.count;
}

static void logrotate_that_would_cut_a_recording_is_a_limit(void **state)
{
    (void)state;
    doctor_world_write(&world, "/etc/logrotate.d/service",
                       "/var/log/*.log\n\"/data/*\" {\n  daily\n"
                       "  copytruncate\n}\n");
    expect(seep_doctor_check_rotation, SEEP_DOCTOR_WARN,
           "/etc/logrotate.d/service cuts what lies in /data (copytruncate)");
    assert_int_equal(findings_of("copytruncate\n", "/data/*.seep{\n}\n"), 1);
    assert_int_equal(findings_of("", "/data/* {\n postrotate\n  }\n"
                                     " endscript\n copytruncate\n}\n"),
                     1);
}

static void logrotate_that_moves_or_leaves_recordings_is_none(void **state)
{
    (void)state;
    doctor_world_run(&world, seep_doctor_check_rotation);
    assert_int_equal(world.doctor.count, 0);
    assert_int_equal(findings_of("weekly\n", "/data/* {\n  create\n}\n"), 0);
    assert_int_equal(
        findings_of("", "/data/*.log {\n  copytruncate\n}\n/data/* {\n}\n"), 0);
    assert_int_equal(
        findings_of("copytruncate\n", "/data/* {\n  nocopytruncate\n}\n"), 0);
    assert_int_equal(findings_of("", "# /data/* {\n#  copytruncate\n#}\n"), 0);
    assert_int_equal(findings_of("", "/data/* {\n  copytruncate"), 0);
}

static void a_folder_that_is_not_there_yet_is_a_limit(void **state)
{
    (void)state;
    strcpy(world.facts.folder.missing, "/data/new");
    expect(seep_doctor_check_folder, SEEP_DOCTOR_WARN,
           "/data/new does not exist");
}

static void
file_systems_that_break_their_word_are_told_where_allowed(void **state)
{
    static const uint32_t types[] = {NFS_SUPER_MAGIC, 0x65735546, 0xff534d42,
                                     0xfe534d42,      0x9123683e, 0x2fc12fc1,
                                     0xca451a4e};

    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        world.facts.folder.place.type = types[i];
        expect(seep_doctor_check_folder, SEEP_DOCTOR_WARN, "kills the process");
    }
}

static void variables_that_are_not_understood_are_limits(void **state)
{
    char *environment[] = {(char[]){"SEEP_EXACT=1"}, NULL};

    (void)state;
    expect(seep_doctor_check_variables, SEEP_DOCTOR_OK, "is valid");
    world.facts.environment = environment;
    expect(seep_doctor_check_variables, SEEP_DOCTOR_WARN,
           "SEEP_EXACT=1: unknown variable");
}

static void folders_that_do_not_last_and_little_room_are_limits(void **state)
{
    (void)state;
    world.facts.folder.place.type = TMPFS_MAGIC;
    expect(seep_doctor_check_folder, SEEP_DOCTOR_WARN, "count as memory");
    world.facts.folder.place.type = OVERLAYFS_SUPER_MAGIC;
    expect(seep_doctor_check_folder, SEEP_DOCTOR_WARN,
           "lost with the container");
    world.facts.folder.place.type = 0xef53;
    expect(seep_doctor_check_folder, SEEP_DOCTOR_OK, "ext4");
    world.facts.folder.place.free_bytes = 100 * MIB;
    expect(seep_doctor_check_folder, SEEP_DOCTOR_WARN, "100 MiB free");
}

static void a_limit_below_a_recording_does_not_work(void **state)
{
    (void)state;
    expect(seep_doctor_check_limits, SEEP_DOCTOR_OK, "high enough");
    world.facts.file_limit_bytes = MIB;
    expect(seep_doctor_check_limits, SEEP_DOCTOR_NO, "size of a file");
    world.facts.file_limit_bytes = 16 * MIB;
    world.facts.limits =
        (struct seep_own_limits){40000 << 10, 30000 << 10, MIB};
    world.facts.lacking = SEEP_OWN_ADDRESSES;
    expect(seep_doctor_check_limits, SEEP_DOCTOR_NO,
           "the limit of address space (ulimit -v 40000) leaves no room");
    world.facts.lacking = SEEP_OWN_DATA;
    expect(seep_doctor_check_limits, SEEP_DOCTOR_NO,
           "the limit of data (ulimit -d 30000) leaves no room");
    world.facts.lacking = SEEP_OWN_COMMIT;
    expect(seep_doctor_check_limits, SEEP_DOCTOR_NO,
           "the limit of what the machine commits to (1 MiB) leaves no room");
    world.facts.lacking = SEEP_OWN_NO_LIMIT;
    expect(seep_doctor_check_limits, SEEP_DOCTOR_OK, "high enough");
    doctor_world_write(&world, "/proc/sys/vm/overcommit_memory", "2\n");
    expect(seep_doctor_check_limits, SEEP_DOCTOR_OK, "not overcommitted");
}

static void few_mappings_are_a_limit(void **state)
{
    (void)state;
    doctor_world_write(&world, "/proc/sys/vm/max_map_count", "200\n");
    expect(seep_doctor_check_limits, SEEP_DOCTOR_WARN, "200 mappings");
}

static void a_container_is_named_with_its_limit(void **state)
{
    (void)state;
    expect(seep_doctor_check_container, SEEP_DOCTOR_OK, "no container");
    doctor_world_write(&world, "/.dockerenv", "");
    doctor_world_write(&world, "/sys/fs/cgroup/memory.current", "4096\n");
    doctor_world_write(&world, "/sys/fs/cgroup/memory.max", "8589934592\n");
    expect(seep_doctor_check_container, SEEP_DOCTOR_OK,
           "in Docker; cgroup v2 limits memory to 8 GiB");
    doctor_world_variable("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    expect(seep_doctor_check_container, SEEP_DOCTOR_OK, "in Kubernetes");
}

static void cgroups_of_the_first_version_are_read_too(void **state)
{
    (void)state;
    doctor_world_write(&world, "/proc/self/cgroup", "5:memory:/\n");
    doctor_world_write(&world, "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                       "4096\n");
    doctor_world_write(&world, "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                       "1073741824\n");
    expect(seep_doctor_check_container, SEEP_DOCTOR_OK,
           "cgroup v1 limits memory to 1 GiB");
}

static void a_proc_that_hides_or_is_not_there_is_a_limit(void **state)
{
    (void)state;
    doctor_world_write(&world, "/proc/self/mounts",
                       "proc /proc proc rw,hidepid=invisible 0 0\n");
    doctor_world_run(&world, seep_doctor_check_container);
    assert_int_equal(seep_doctor_count(&world.doctor, SEEP_DOCTOR_WARN), 1);
    doctor_world_remove(&world, "/proc/self/status");
    expect(seep_doctor_check_container, SEEP_DOCTOR_WARN, "/proc is missing");
}

static void a_refused_system_call_is_a_limit(void **state)
{
    (void)state;
    world.facts.vm_readv_error = -ENOSYS;
    expect(seep_doctor_check_security, SEEP_DOCTOR_WARN, "process_vm_readv");
    world.facts.vm_readv_error = -ECANCELED;
    expect(seep_doctor_check_security, SEEP_DOCTOR_WARN, "seccomp kills");
    world.facts.vm_readv_error = 0;
    doctor_world_write(&world, "/proc/self/status", "Name:\tx\nSeccomp:\t2\n");
    expect(seep_doctor_check_security, SEEP_DOCTOR_OK, "does not matter");
}

static void what_a_filter_kills_for_is_named(void **state)
{
    (void)state;
    doctor_world_write(&world, "/proc/self/status",
                       "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t2\n");
    doctor_world_write(&world, "/proc/1/status",
                       "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n");
    expect(seep_doctor_check_security, SEEP_DOCTOR_OK, "LD_PRELOAD alone");
    world.facts.denied_calls = SEEP_CALL_BIT(linkat) | SEEP_CALL_BIT(statfs);
    expect(seep_doctor_check_security, SEEP_DOCTOR_WARN,
           "kills for linkat, statfs: `seep run` records without them");
    world.facts.denied_calls |= SEEP_CALL_BIT(openat);
    expect(seep_doctor_check_security, SEEP_DOCTOR_NO,
           "kills for openat: nothing would be recorded");
}

static void who_may_ask_for_holders_is_told(void **state)
{
    static const char scope[] = "/proc/sys/kernel/yama/ptrace_scope";

    (void)state;
    expect(seep_doctor_check_holders, SEEP_DOCTOR_OK, "of the same user");
    doctor_world_write(&world, scope, "1\n");
    expect(seep_doctor_check_holders, SEEP_DOCTOR_WARN, "only ancestors");
    doctor_world_write(&world, scope, "2\n");
    expect(seep_doctor_check_holders, SEEP_DOCTOR_WARN, "only CAP_SYS_PTRACE");
    doctor_world_write(&world, "/proc/self/status",
                       "Name:\tx\nCapEff:\t0000000000080000\n");
    expect(seep_doctor_check_holders, SEEP_DOCTOR_OK, "of all users");
    doctor_world_variable("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    expect(seep_doctor_check_holders, SEEP_DOCTOR_OK, "shareProcessNamespace");
    doctor_world_write(&world, scope, "3\n");
    expect(seep_doctor_check_holders, SEEP_DOCTOR_WARN, "nobody");
    world.facts.vm_readv_error = -ECANCELED;
    expect(seep_doctor_check_holders, SEEP_DOCTOR_WARN, "kills who reads");
}

static void mandatory_access_control_is_hinted_at(void **state)
{
    (void)state;
    doctor_world_write(&world, "/sys/fs/selinux/enforce", "1");
    doctor_world_run(&world, seep_doctor_check_security);
    assert_int_equal(world.doctor.findings[0].level, SEEP_DOCTOR_WARN);
    assert_non_null(strstr(world.doctor.findings[0].reason, "SELinux"));
    doctor_world_write(&world, "/sys/fs/selinux/enforce", "0");
    doctor_world_write(&world, "/proc/self/attr/current",
                       "docker-default (enforce)\n");
    doctor_world_run(&world, seep_doctor_check_security);
    assert_non_null(strstr(world.doctor.findings[0].reason, "docker-default"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(on_a_machine_that_is_well_nothing_is_a_limit),
        TEST(what_does_not_work_is_the_answer),
        TEST(limits_are_counted_in_the_answer),
        TEST(a_library_that_cannot_be_loaded_is_told_in_the_loaders_words),
        TEST(a_library_that_does_nothing_does_not_work),
        TEST(a_child_that_dies_or_records_nothing_does_not_work),
        TEST(a_trial_without_a_place_is_told_as_that),
        TEST(another_c_library_or_an_old_one_does_not_work),
        TEST(a_preloaded_allocator_is_named),
        TEST(an_allocator_of_the_whole_system_is_named),
        TEST(a_preloaded_sanitizer_does_not_work),
        TEST(a_preloaded_file_that_is_not_there_is_a_limit),
        TEST(stacks_that_end_early_are_a_limit),
        TEST(an_unwinder_that_is_asked_for_must_be_there),
        TEST(a_folder_that_refuses_is_told_with_the_step),
        TEST(a_folder_that_everybody_writes_is_no_fault_and_is_told),
        TEST(a_place_that_is_refused_is_told_in_its_words),
        TEST(logrotate_that_would_cut_a_recording_is_a_limit),
        TEST(logrotate_that_moves_or_leaves_recordings_is_none),
        TEST(a_folder_that_is_not_there_yet_is_a_limit),
        TEST(file_systems_that_break_their_word_are_told_where_allowed),
        TEST(variables_that_are_not_understood_are_limits),
        TEST(folders_that_do_not_last_and_little_room_are_limits),
        TEST(a_limit_below_a_recording_does_not_work),
        TEST(few_mappings_are_a_limit),
        TEST(a_container_is_named_with_its_limit),
        TEST(cgroups_of_the_first_version_are_read_too),
        TEST(a_proc_that_hides_or_is_not_there_is_a_limit),
        TEST(a_refused_system_call_is_a_limit),
        TEST(what_a_filter_kills_for_is_named),
        TEST(who_may_ask_for_holders_is_told),
        TEST(mandatory_access_control_is_hinted_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
