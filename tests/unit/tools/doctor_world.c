/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See doctor_world.h. */
#include "doctor_world.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "seep_test.h"

#define VARIABLES_MOST 8

static struct {
    const char *name;
    const char *value;
} variables[VARIABLES_MOST];
static size_t variable_count;

static const char *variable(const char *name)
{
    for (size_t i = 0; i < variable_count; i++) {
        if (strcmp(variables[i].name, name) == 0) {
            return variables[i].value;
        }
    }
    return NULL;
}

void doctor_world_variable(const char *name, const char *value)
{
    assert_true(variable_count < VARIABLES_MOST);
    variables[variable_count].name = name;
    variables[variable_count++].value = value;
}

void doctor_world_write(struct doctor_world *world, const char *path,
                        const char *text)
{
    char full[PATH_MAX];
    FILE *file;

    snprintf(full, sizeof(full), "%s%s", world->root, path);
    for (char *at = full + strlen(world->root) + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            mkdir(full, 0700);
            *at = '/';
        }
    }
    file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

void doctor_world_remove(struct doctor_world *world, const char *path)
{
    char full[PATH_MAX];

    snprintf(full, sizeof(full), "%s%s", world->root, path);
    assert_int_equal(unlink(full), 0);
}

void doctor_world_setup(struct doctor_world *world)
{
    *world = (struct doctor_world){
        .root = "/tmp/seep-test-XXXXXX",
        .facts =
            {
                .variable = variable,
                .library = "/usr/lib/seep/libseep.so",
                .size_bytes = 16 << 20,
                .glibc = "2.36",
                .libc_path = "",
                .file_limit_bytes = UINT64_MAX,
                .limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX},
                .folder = {.step = "be created",
                           .place = {.folder = "/data",
                                     .type = 0xef53,
                                     .free_bytes = UINT64_C(1) << 40}},
                .trial = {.recorded = true,
                          .event_count = 31,
                          .stack_count = 4,
                          .whole_count = 4},
            },
    };
    variable_count = 0;
    assert_non_null(mkdtemp(world->root));
    world->facts.root = world->root;
    doctor_world_write(world, "/proc/self/status",
                       "Name:\tseep\nNoNewPrivs:\t0\nSeccomp:\t0\n");
    doctor_world_write(world, "/proc/self/cgroup", "0::/\n");
    doctor_world_write(world, "/proc/self/mounts",
                       "proc /proc proc rw,nosuid 0 0\n");
    doctor_world_write(world, "/proc/sys/vm/max_map_count", "65530\n");
}

static int remove_entry(const char *path, const struct stat *status, int type,
                        struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

void doctor_world_teardown(struct doctor_world *world)
{
    seep_doctor_close(&world->doctor);
    nftw(world->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void doctor_world_run(struct doctor_world *world, doctor_world_check *check)
{
    seep_doctor_close(&world->doctor);
    world->doctor = (struct seep_doctor){0};
    check(&world->facts, &world->doctor);
    assert_false(world->doctor.failed);
}

void doctor_world_expect(const struct doctor_world *world,
                         enum seep_doctor_level level, const char *words)
{
    const struct seep_doctor_finding *finding = world->doctor.findings;

    assert_int_equal(world->doctor.count, 1);
    if (finding->level != level || strstr(finding->reason, words) == NULL) {
        fail_msg("%s: \"%s\", not %s: \"%s\"",
                 seep_doctor_level_name(finding->level), finding->reason,
                 seep_doctor_level_name(level), words);
    }
    if (level == SEEP_DOCTOR_WARN || level == SEEP_DOCTOR_NO) {
        assert_non_null(finding->remedy);
    }
}
