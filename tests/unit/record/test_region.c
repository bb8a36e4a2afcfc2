/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The file of a recording: private, whole, never another's. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seep_test.h"

#include "answered_calls.h"
#include "base/place.h"
#include "base/syscall.h"
#include "format/layout.h"
#include "record/region.h"

static char folder[64];
static struct seep_rec_header header;

static void complete(void *mapping)
{
    struct seep_rec_header *mapped = mapping;

    mapped->pid = 4242;
    mapped->fixed_hash = seep_layout_fixed_hash(mapped);
}

static bool wanted = true;

static bool is_wanted(void)
{
    return wanted;
}

static struct seep_region_options options = {
    .executable = "prog",
    .host = "box",
    .start_s = 99,
    .pid = 4242,
    .complete = complete,
    .is_wanted = is_wanted,
    .any_filesystem = true,
};

static int set_up(void **state)
{
    (void)state;
    wanted = true;
    options.complete = complete;
    strcpy(folder, "/tmp/seep-region-XXXXXX");
    seep_place_floor = (struct seep_place_floor){.given = true};
    memset((void *)&header, 0, sizeof(header));
    return mkdtemp(folder) == NULL ||
           seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, false, false, &header) !=
               0;
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static int create(const char *name, void **ret_mapping)
{
    static char pattern[256];

    snprintf(pattern, sizeof(pattern), "%s/%s", folder, name);
    options.pattern = pattern;
    return seep_region_create(&options, &header, ret_mapping);
}

static const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static const char *path_of_second(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void a_recording_is_valid_private_and_whole(void **state)
{
    struct stat status;
    void *mapping = NULL;
    int lowest = open("/dev/null", O_RDONLY);

    (void)state;
    close(lowest);
    umask(0);
    assert_int_equal(create("%e.%p.%h.%t.seep", &mapping), 0);

    assert_int_equal(seep_check(mapping, header.file_bytes), SEEP_CHECK_VALID);
    assert_int_equal(stat(path_of("prog.4242.box.99.seep"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(status.st_size, header.file_bytes);
    /* What is in use, and no more. */
    assert_true(status.st_blocks * 512 <= 256 << 10);
    /* No descriptor is left. */
    assert_int_equal(open("/dev/null", O_RDONLY), lowest);
    close(lowest);
    seep_region_drop(mapping, header.file_bytes);
}

static void a_taken_name_is_left_alone(void **state)
{
    FILE *other = fopen(path_of("x.seep"), "w");
    char text[8] = "";
    void *mapping = NULL;
    struct stat status;

    (void)state;
    assert_non_null(other);
    fputs("precious", other);
    fclose(other);
    assert_int_equal(create("x.seep", &mapping), 0);

    other = fopen(path_of("x.seep"), "r");
    assert_int_equal(fread(text, 1, 8, other), 8);
    assert_memory_equal(text, "precious", 8);
    fclose(other);
    assert_int_equal(stat(path_of("x.1.seep"), &status), 0);
    assert_int_equal(status.st_size, header.file_bytes);
    seep_region_drop(mapping, header.file_bytes);
}

static void a_number_in_the_pattern_takes_the_next(void **state)
{
    void *mapping = NULL;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(create("r.%n.seep", &mapping), 0);
        seep_region_drop(mapping, header.file_bytes);
    }
    assert_int_equal(access(path_of("r.2.seep"), F_OK), 0);
}

static void a_planted_link_is_not_followed(void **state)
{
    void *mapping = NULL;
    struct stat status;

    (void)state;
    assert_int_equal(symlink("victim", path_of("l.seep")), 0);
    assert_int_equal(symlink("/nonexistent/victim", path_of("l.1.seep")), 0);
    assert_int_equal(create("l.seep", &mapping), 0);

    assert_int_equal(lstat(path_of("victim"), &status), -1);
    assert_int_equal(lstat(path_of("l.2.seep"), &status), 0);
    seep_region_drop(mapping, header.file_bytes);
}

/* A Kubernetes emptyDir is 0777, and 2777 with an fsGroup. */
static void a_folder_that_others_may_write_holds_what_is_private(void **state)
{
    static const mode_t modes[] = {0777, 01777, 02777, 0770};

    (void)state;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        void *mapping = NULL;
        struct stat status;

        assert_int_equal(chmod(folder, modes[i]), 0);
        assert_int_equal(create("x.%n.seep", &mapping), 0);
        assert_int_equal(stat(seep_region_path(), &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        assert_int_equal(status.st_uid, geteuid());
        seep_region_drop(mapping, header.file_bytes);
    }
}

static void the_name_is_the_commands_and_others_have_numbers(void **state)
{
    void *mapping = NULL;

    (void)state;
    options.role = SEEP_REGION_OTHER;
    assert_int_equal(create("x.seep", &mapping), 0);
    seep_region_drop(mapping, header.file_bytes);
    assert_string_equal(seep_region_path(), path_of("x.1.seep"));
    /* What tells processes apart needs no number. */
    assert_int_equal(create("%p.seep", &mapping), 0);
    seep_region_drop(mapping, header.file_bytes);
    assert_string_equal(seep_region_path(), path_of("4242.seep"));
    options.role = SEEP_REGION_COMMAND;
    assert_int_equal(create("x.seep", &mapping), 0);
    seep_region_drop(mapping, header.file_bytes);
    assert_string_equal(seep_region_path(), path_of("x.seep"));
    options.role = SEEP_REGION_ANY;
}

/* What a process was before an exec makes way for what it is. */
static void a_former_image_makes_way_for_the_command(void **state)
{
    void *mapping = NULL;
    uint64_t later_ns[] = {100000000, 3000000000};

    (void)state;
    options.role = SEEP_REGION_COMMAND;
    header.pid = 4242; /* as complete() has it */
    for (size_t i = 0; i < 2; i++) {
        header.start_monotonic_ns = 5;
        assert_int_equal(create("x.seep", &mapping), 0);
        seep_region_drop(mapping, header.file_bytes);
        header.start_monotonic_ns += later_ns[i];
        assert_int_equal(create("x.seep", &mapping), 0);
        assert_string_equal(seep_region_path(), path_of("x.seep"));
        seep_region_drop(mapping, header.file_bytes);
        /* A short one leaves nothing, a longer one has a number. */
        assert_int_equal(access(path_of("x.1.seep"), F_OK), i == 0 ? -1 : 0);
        unlink(path_of("x.seep"));
    }
    options.role = SEEP_REGION_ANY;
}

/* The file at @name, of the command by its name, stays where it is, and what is
 * made has the number 1. */
static void assert_is_left_alone(const char *name, const char *numbered)
{
    struct stat before;
    struct stat after;
    void *mapping = NULL;

    assert_int_equal(lstat(path_of(name), &before), 0);
    options.role = SEEP_REGION_COMMAND;
    assert_int_equal(create(name, &mapping), 0);
    options.role = SEEP_REGION_ANY;
    seep_region_drop(mapping, header.file_bytes);
    assert_string_equal(seep_region_path(), path_of(numbered));
    assert_int_equal(lstat(path_of(name), &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
}

static void put_recording(const char *name)
{
    void *mapping = NULL;

    assert_int_equal(create(name, &mapping), 0);
    seep_region_drop(mapping, header.file_bytes);
}

static void damage(void *mapping)
{
    complete(mapping);
    ((struct seep_rec_header *)mapping)->fixed_hash++;
}

static void what_is_no_former_image_is_left_alone(void **state)
{
    char text[2 * sizeof(header)];
    FILE *other = fopen(path_of("text.seep"), "w");

    (void)state;
    header.pid = 4242; /* as complete() has it */
    memset(text, 'x', sizeof(text));
    assert_int_equal(fwrite(text, 1, sizeof(text), other), sizeof(text));
    fclose(other);
    assert_is_left_alone("text.seep", "text.1.seep");
    assert_int_equal(symlink("text.seep", path_of("link.seep")), 0);
    assert_is_left_alone("link.seep", "link.1.seep");
    options.complete = damage;
    put_recording("damaged.seep");
    options.complete = complete;
    assert_is_left_alone("damaged.seep", "damaged.1.seep");
    put_recording("clock.seep");
    header.process_start_clock++;
    assert_is_left_alone("clock.seep", "clock.1.seep");
    put_recording("space.seep");
    header.pid_namespace++;
    assert_is_left_alone("space.seep", "space.1.seep");
    put_recording("boot.seep");
    header.boot_id[0]++;
    assert_is_left_alone("boot.seep", "boot.1.seep");
}

/* Then it has two names, and the command the next. */
static void a_former_image_that_cannot_go_keeps_its_name(void **state)
{
    (void)state;
    header.pid = 4242;
    put_recording("x.seep");
    header.start_monotonic_ns = 3000000000;
    seep_calls_denied = SEEP_CALL_BIT(unlinkat);
    assert_is_left_alone("x.seep", "x.2.seep");
    seep_calls_denied = 0;
}

/* Make folders below @path, which has room, until it is @length long. */
static void deepen(char *path, size_t length)
{
    for (size_t at = strlen(path); at < length; at = strlen(path)) {
        size_t more = length - at <= 201 ? length - at : 100;

        path[at] = '/';
        memset(path + at + 1, 'd', more - 1);
        path[at + more] = '\0';
        assert_int_equal(mkdir(path, 0700), 0);
    }
}

static void
where_a_number_makes_the_path_too_long_nothing_is_moved(void **state)
{
    static char path[2048];
    struct stat status;
    void *mapping = NULL;

    (void)state;
    header.pid = 4242;
    strcpy(path, folder);
    deepen(path, 1023 - strlen("/x.seep"));
    strcat(path, "/x.seep");
    options.pattern = path;
    options.role = SEEP_REGION_COMMAND;
    assert_int_equal(seep_region_create(&options, &header, &mapping), 0);
    seep_region_drop(mapping, header.file_bytes);
    header.start_monotonic_ns = 3000000000;
    assert_int_equal(seep_region_create(&options, &header, &mapping),
                     -ENAMETOOLONG);
    options.role = SEEP_REGION_ANY;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_nlink, 1);
}

static void the_last_of_a_disk_is_left_alone(void **state)
{
    void *mapping = NULL;

    (void)state;
    seep_place_floor = (struct seep_place_floor){UINT64_MAX / 2, 0, true};
    assert_int_equal(seep_place_reason_of(create("x.seep", &mapping)),
                     SEEP_PLACE_FLOOR);
    assert_int_equal(access(path_of("x.seep"), F_OK), -1);
    seep_place_floor = (struct seep_place_floor){.given = true};
    assert_int_equal(create("x.seep", &mapping), 0);
    seep_region_drop(mapping, header.file_bytes);
}

static int count_files(void)
{
    DIR *entries = opendir(folder);
    int count = -2; /* itself, and the one above it */

    while (entries != NULL && readdir(entries) != NULL) {
        count++;
    }
    closedir(entries);
    return count;
}

static void what_is_left_before_it_is_settled_is_gone(void **state)
{
    void *mapping = NULL;

    (void)state;
    assert_int_equal(create("x.seep", &mapping), 0);
    seep_region_abandon();
    assert_int_equal(access(path_of("x.seep"), F_OK), -1);
    assert_int_equal(msync(mapping, SEEP_PAGE_BYTES, MS_ASYNC), -1);

    /* What came to its name meanwhile is another's. */
    assert_int_equal(create("x.seep", &mapping), 0);
    assert_int_equal(rename(path_of("x.seep"), path_of_second("y.seep")), 0);
    fclose(fopen(path_of("x.seep"), "w"));
    seep_region_abandon();
    assert_int_equal(access(path_of("x.seep"), F_OK), 0);
    assert_int_equal(access(path_of("y.seep"), F_OK), 0);
}

static void what_is_settled_is_not_abandoned(void **state)
{
    void *mapping = NULL;

    (void)state;
    assert_int_equal(create("x.seep", &mapping), 0);
    seep_region_settle();
    seep_region_abandon();
    assert_int_equal(access(path_of("x.seep"), F_OK), 0);
    assert_int_equal(seep_check(mapping, header.file_bytes), SEEP_CHECK_VALID);
    seep_region_drop(mapping, header.file_bytes);
    seep_region_abandon();
    assert_int_equal(access(path_of("x.seep"), F_OK), 0);
}

static void a_child_leaves_what_its_parent_creates(void **state)
{
    void *mapping = NULL;

    (void)state;
    assert_int_equal(create("x.seep", &mapping), 0);
    seep_region_leave();
    assert_int_equal(access(path_of("x.seep"), F_OK), 0);
    assert_int_equal(msync(mapping, SEEP_PAGE_BYTES, MS_ASYNC), -1);
}

static void forsake(void *mapping)
{
    complete(mapping);
    wanted = false;
    seep_region_forsake();
    complete(mapping); /* of its own by now */
}

static void who_forsakes_a_creation_makes_no_file(void **state)
{
    int lowest = open("/dev/null", O_RDONLY);
    void *mapping = NULL;

    (void)state;
    close(lowest);
    options.complete = forsake;
    assert_true(create("x.seep", &mapping) < 0);
    assert_null(mapping);
    assert_int_equal(count_files(), 0);
    assert_int_equal(open("/dev/null", O_RDONLY), lowest);
    close(lowest);
}

static uint64_t mapped_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* So many more bytes may be mapped. @return what it was before */
static struct rlimit limit_addresses(uint64_t more)
{
    uint64_t bytes = mapped_bytes();
    struct rlimit before;
    struct rlimit low;

    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    low = before;
    low.rlim_cur = bytes + more;
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    return before;
}

/* And so many more files be opened. */
static struct rlimit limit_files(uint64_t more)
{
    int lowest = open("/dev/null", O_RDONLY);
    struct rlimit before;
    struct rlimit low;

    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = (uint64_t)lowest + more;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    return before;
}

static uint64_t files_left;

static void forsake_without_files(void *mapping)
{
    struct rlimit before;

    complete(mapping);
    wanted = false;
    before = limit_files(files_left);
    seep_region_forsake();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(((struct seep_rec_header *)mapping)->pid, header.pid);
}

static void forsake_without_addresses(void *mapping)
{
    struct rlimit before;

    complete(mapping);
    wanted = false;
    before = limit_addresses(0);
    seep_region_forsake();
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(((struct seep_rec_header *)mapping)->pid, 4242);
}

/* What cannot be put in the place of the parent's stays as it is: nothing is
 * closed whose number would become another's, nothing unmapped. */
static void who_can_not_forsake_makes_no_file_either(void **state)
{
    int lowest = open("/dev/null", O_RDONLY);
    void *mapping = NULL;

    (void)state;
    close(lowest);
    for (files_left = 0; files_left < 3; files_left++) {
        wanted = true;
        options.complete =
            files_left < 2 ? forsake_without_files : forsake_without_addresses;
        assert_true(create("x.seep", &mapping) < 0);
        assert_null(mapping);
        assert_int_equal(count_files(), 0);
        assert_int_equal(open("/dev/null", O_RDONLY), lowest);
        close(lowest);
    }
}

static void forsake_once_it_has_a_name(void *mapping)
{
    if (count_files() != 0) {
        forsake(mapping);
    }
}

/* Where it has its name from the start, for lack of another way. */
static void who_forsakes_leaves_the_file_that_its_parent_named(void **state)
{
    void *mapping = NULL;

    (void)state;
    options.complete = forsake_once_it_has_a_name;
    seep_calls_denied = SEEP_CALL_BIT(linkat);
    assert_int_equal(create("x.seep", &mapping), -ECANCELED);
    seep_calls_denied = 0;
    assert_null(mapping);
    assert_int_equal(access(path_of("x.seep"), F_OK), 0);
}

static void a_mapping_that_cannot_be_replaced_stays(void **state)
{
    struct rlimit before;
    void *mapping = NULL;

    (void)state;
    assert_int_equal(create("x.seep", &mapping), 0);
    before = limit_addresses(0);
    assert_false(seep_region_replace(mapping, header.file_bytes));
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    seep_calls_denied = SEEP_CALL_BIT(mremap);
    assert_false(seep_region_replace(mapping, header.file_bytes));
    seep_calls_denied = 0;
    assert_int_equal(seep_check(mapping, header.file_bytes), SEEP_CHECK_VALID);
    assert_true(seep_region_replace(mapping, header.file_bytes));
    assert_int_equal(((struct seep_rec_header *)mapping)->pid, 0);
    seep_region_drop(mapping, header.file_bytes);
}

/* For the file or, where that is mapped, for what is kept beside it. What was
 * recorded to before, which is larger, goes on, and goes as a whole. */
static void where_no_addresses_are_left_there_is_no_recording(void **state)
{
    const uint64_t left[] = {0, header.file_bytes + 4096};
    const struct seep_rec_header small = header;
    uint64_t mapped = mapped_bytes();
    void *first = NULL;
    void *mapping = NULL;
    struct seep_view view;

    (void)state;
    memset((void *)&header, 0, sizeof(header));
    assert_int_equal(
        seep_layout_make(SEEP_LAYOUT_EXACT_BYTES / 4, true, false, &header), 0);
    assert_int_equal(create("first.seep", &first), 0);
    header = small;
    for (size_t i = 0; i < 2; i++) {
        struct rlimit before = limit_addresses(left[i]);
        int result = create("x.seep", &mapping);

        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
        assert_int_equal(seep_place_reason_of(result), SEEP_PLACE_NO_MEMORY);
        assert_null(mapping);
        assert_int_equal(count_files(), 1);
    }
    seep_view_init(&view, first);
    seep_room_attach(&view);
    assert_non_null(view.room);
    assert_true(seep_view_reserve_entry(&view, SEEP_SECTION_SERIES, 1));
    seep_region_drop(first, view.header->file_bytes);
    assert_true(mapped_bytes() < mapped + (64 << 10));
}

/** A system call that is answered by an error. */
struct refused_call {
    long number;
    int error;
};

static bool refuse_calls(const struct refused_call calls[2])
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[0].number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)calls[0].error),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[1].number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)calls[1].error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
                                 .filter = filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum outcome { MADE, NOTHING_LEFT, LEFT_OVER, NO_FILTER };

/* In a process of its own: a filter stays. */
static enum outcome created_without(const struct refused_call calls[2])
{
    void *mapping = NULL;
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        int result = refuse_calls(calls) ? create("x.seep", &mapping) : 1;

        if (result > 0) {
            _exit(NO_FILTER);
        }
        if (result < 0) {
            _exit(mapping == NULL && count_files() == 0 ? NOTHING_LEFT
                                                        : LEFT_OVER);
        }
        _exit(seep_check(mapping, header.file_bytes) == SEEP_CHECK_VALID &&
                      count_files() == 1
                  ? MADE
                  : LEFT_OVER);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status)); /* by a signal: it touched a hole */
    unlink(path_of("x.seep"));
    return (enum outcome)WEXITSTATUS(status);
}

static void a_refusal_at_any_step_leaves_nothing_behind(void **state)
{
    static const struct {
        struct refused_call calls[2];
        enum outcome expected;
    } cases[] = {
        {{{SYS_ftruncate, ENOSPC}, {-1, 0}}, NOTHING_LEFT},
        {{{SYS_fallocate, ENOSPC}, {-1, 0}}, NOTHING_LEFT},
        {{{SYS_fallocate, EDQUOT}, {-1, 0}}, NOTHING_LEFT},
        {{{SYS_fallocate, EINTR}, {-1, 0}}, NOTHING_LEFT},
        {{{SYS_fallocate, EOPNOTSUPP}, {SYS_pwrite64, ENOSPC}}, NOTHING_LEFT},
        {{{SYS_fallocate, EOPNOTSUPP}, {SYS_pwrite64, 0}}, NOTHING_LEFT},
        {{{SYS_fchmod, EPERM}, {-1, 0}}, NOTHING_LEFT},
        /* There is another way. */
        {{{SYS_fallocate, EOPNOTSUPP}, {-1, 0}}, MADE},
        {{{SYS_fallocate, EPERM}, {-1, 0}}, MADE},
        {{{SYS_linkat, EPERM}, {-1, 0}}, MADE},
        {{{SYS_madvise, EINVAL}, {-1, 0}}, MADE},
        {{{SYS_madvise, EPERM}, {-1, 0}}, MADE},
        {{{SYS_madvise, ENOSYS}, {-1, 0}}, MADE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum outcome outcome = created_without(cases[i].calls);

        if (outcome == NO_FILTER) {
            skip();
        }
        if (outcome != cases[i].expected) {
            fail_msg("case %zu: %d", i, (int)outcome);
        }
    }
}

/* In a child, for its filter. */
static void assert_in_child(enum outcome (*body)(void))
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        _exit((int)body());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTER) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), MADE);
}

static long written_bytes;

/* No fallocate. Of writes the first is interrupted, the second is short. */
static long write_by_parts(long number, const long *arguments)
{
    static unsigned writes;
    long bytes = arguments[2];
    long result;

    if (number == SYS_fallocate) {
        return -EOPNOTSUPP;
    }
    if (writes++ == 0) {
        return -EINTR;
    }
    bytes = writes == 2 ? 100 : bytes;
    if (arguments[3] != written_bytes ||
        lseek((int)arguments[0], arguments[3], SEEK_SET) != arguments[3]) {
        return -EIO;
    }
    result =
        write((int)arguments[0], (const void *)arguments[1], (size_t)bytes);
    written_bytes += result;
    return result;
}

static enum outcome create_by_parts(void)
{
    void *mapping = NULL;

    if (!answered_calls_begin(SYS_fallocate, SYS_pwrite64, write_by_parts)) {
        return NO_FILTER;
    }
    return create("x.seep", &mapping) == 0 &&
                   seep_check(mapping, header.file_bytes) == SEEP_CHECK_VALID &&
                   written_bytes == (long)seep_layout_start_bytes(&header)
               ? MADE
               : LEFT_OVER;
}

static void what_is_written_by_parts_is_written_once(void **state)
{
    (void)state;
    assert_in_child(create_by_parts);
}

#define BTRFS_TYPE 0x9123683e
#define FLAG_BEFORE FS_NOATIME_FL

static bool has_flags;
static int flags_given; /* 0: none */

/* A btrfs, as far as this asks; or a system of which no flags can be had. */
static long copy_on_write(long number, const long *arguments)
{
    if (number == SYS_fstatfs) {
        struct statfs *status = (struct statfs *)arguments[1];

        memset(status, 0, sizeof(*status));
        status->f_type = BTRFS_TYPE;
        return 0;
    }
    if (!has_flags) {
        return -ENOTTY;
    }
    if ((unsigned long)arguments[1] == FS_IOC_GETFLAGS) {
        *(int *)arguments[2] = FLAG_BEFORE;
    } else {
        flags_given = *(const int *)arguments[2];
    }
    return 0;
}

static enum outcome create_on_btrfs(void)
{
    void *mapping = NULL;

    if (!answered_calls_begin(SYS_fstatfs, SYS_ioctl, copy_on_write)) {
        return NO_FILTER;
    }
    if (create("without.seep", &mapping) != 0 || flags_given != 0) {
        return LEFT_OVER;
    }
    seep_region_drop(mapping, header.file_bytes);
    has_flags = true;
    if (create("with.seep", &mapping) != 0 ||
        flags_given != (FLAG_BEFORE | FS_NOCOW_FL)) {
        return LEFT_OVER;
    }
    options.any_filesystem = false;
    return seep_place_reason_of(create("refused.seep", &mapping)) ==
                   SEEP_PLACE_UNSAFE_SYSTEM
               ? MADE
               : LEFT_OVER;
}

/* Only who says that it may is recorded there. */
static void on_btrfs_a_file_is_written_where_it_lies(void **state)
{
    (void)state;
    assert_in_child(create_on_btrfs);
}

static void a_missing_folder_is_refused(void **state)
{
    void *mapping = NULL;

    (void)state;
    assert_int_equal(create("none/x.seep", &mapping), -ENOENT);
    options.pattern = "seep-no-such-folder/x.seep";
    assert_int_equal(seep_region_create(&options, &header, &mapping), -ENOENT);
    assert_null(mapping);
}

/* A file over the limit would be a SIGXFSZ for the worker. */
static void the_file_size_limit_is_asked_first(void **state)
{
    struct rlimit before;
    struct rlimit small;
    void *mapping = NULL;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(create("x.seep", &mapping), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(access(path_of("x.seep"), F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_recording_is_valid_private_and_whole),
        TEST(a_taken_name_is_left_alone),
        TEST(a_number_in_the_pattern_takes_the_next),
        TEST(a_planted_link_is_not_followed),
        TEST(a_folder_that_others_may_write_holds_what_is_private),
        TEST(the_name_is_the_commands_and_others_have_numbers),
        TEST(a_former_image_makes_way_for_the_command),
        TEST(what_is_no_former_image_is_left_alone),
        TEST(a_former_image_that_cannot_go_keeps_its_name),
        TEST(where_a_number_makes_the_path_too_long_nothing_is_moved),
        TEST(the_last_of_a_disk_is_left_alone),
        TEST(a_refusal_at_any_step_leaves_nothing_behind),
        TEST(what_is_left_before_it_is_settled_is_gone),
        TEST(what_is_settled_is_not_abandoned),
        TEST(a_child_leaves_what_its_parent_creates),
        TEST(who_forsakes_a_creation_makes_no_file),
        TEST(who_can_not_forsake_makes_no_file_either),
        TEST(who_forsakes_leaves_the_file_that_its_parent_named),
        TEST(a_mapping_that_cannot_be_replaced_stays),
        TEST(where_no_addresses_are_left_there_is_no_recording),
        TEST(what_is_written_by_parts_is_written_once),
        TEST(on_btrfs_a_file_is_written_where_it_lies),
        TEST(a_missing_folder_is_refused),
        TEST(the_file_size_limit_is_asked_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
