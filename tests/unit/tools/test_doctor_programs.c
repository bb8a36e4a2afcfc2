/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tools/seep/doctor_{command,python,cuda}, program and elf_look: what files of
 * programs and libraries tell, each made up from a header.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor_world.h"
#include "run/run.h"
#include "seep_test.h"

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

/* A program of this machine with one segment for each of what is not NULL. */
struct shape {
    const char *loader;
    const char *note_owner; /* of four bytes with its NUL */
    unsigned char class;
    bool dynamic;
};

static char *make(const char *name, const struct shape *shape)
{
    static char path[PATH_MAX];
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segments[3];
        char loader[64];
        Elf64_Nhdr note;
        char owner[4];
        char body[4];
    } file = {0};
    Elf64_Ehdr own;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    assert_int_equal(read(fd, &own, sizeof(own)), sizeof(own));
    close(fd);
    file.header = own;
    file.header.e_phoff = sizeof(file.header);
    file.header.e_phnum = 0;
    file.header.e_shnum = 0;
    if (shape->class != 0) {
        file.header.e_ident[EI_CLASS] = shape->class;
    }
    if (shape->loader != NULL) {
        Elf64_Phdr *segment = &file.segments[file.header.e_phnum++];
        segment->p_type = PT_INTERP;
        segment->p_offset = (uint64_t)((char *)file.loader - (char *)&file);
        segment->p_filesz = strlen(shape->loader) + 1;
        snprintf(file.loader, sizeof(file.loader), "%s", shape->loader);
    }
    if (shape->note_owner != NULL) {
        Elf64_Phdr *segment = &file.segments[file.header.e_phnum++];
        segment->p_type = PT_NOTE;
        segment->p_offset = (uint64_t)((char *)&file.note - (char *)&file);
        segment->p_filesz = sizeof(file.note) + 8;
        file.note = (Elf64_Nhdr){4, 4, NT_GNU_BUILD_ID};
        memcpy(file.body, "\x5e\xed\x01\x02", sizeof(file.body));
        memcpy(file.owner, shape->note_owner, strlen(shape->note_owner));
    }
    if (shape->dynamic) {
        file.segments[file.header.e_phnum++].p_type = PT_DYNAMIC;
    }
    snprintf(path, sizeof(path), "%s/%s", world.root, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    assert_int_equal(write(fd, &file, sizeof(file)), sizeof(file));
    close(fd);
    return path;
}

static enum seep_program_kind kind_of(const char *command)
{
    static struct seep_program program;

    seep_program_look(command, world.root, &program);
    return program.kind;
}

static void a_program_is_known_by_its_file(void **state)
{
    (void)state;
    assert_int_equal(kind_of("/bin/ls"), SEEP_PROGRAM_FINE);
    assert_int_equal(kind_of(make("static", &(struct shape){0})),
                     SEEP_PROGRAM_STATIC);
    assert_int_equal(kind_of(make("go", &(struct shape){.note_owner = "Go"})),
                     SEEP_PROGRAM_GO_STATIC);
    assert_int_equal(
        kind_of(make("cgo", &(struct shape){.loader = "/proc/self/exe",
                                            .note_owner = "Go"})),
        SEEP_PROGRAM_GO);
    assert_int_equal(
        kind_of(make("musl",
                     &(struct shape){.loader = "/lib/ld-musl-x86_64.so.1"})),
        SEEP_PROGRAM_MUSL);
    assert_int_equal(
        kind_of(make("nix", &(struct shape){.loader = "/nowhere/ld.so"})),
        SEEP_PROGRAM_NO_LOADER);
    assert_int_equal(kind_of(make("old", &(struct shape){.class = ELFCLASS32})),
                     SEEP_PROGRAM_FOREIGN);
}

static void a_launcher_is_known_by_its_name(void **state)
{
    (void)state;
    assert_int_equal(
        kind_of(make("bash", &(struct shape){.loader = "/proc/self/exe"})),
        SEEP_PROGRAM_LAUNCHER);
}

static void what_cannot_be_run_is_told_apart(void **state)
{
    char path[PATH_MAX];

    (void)state;
    assert_int_equal(kind_of("gone"), SEEP_PROGRAM_MISSING);
    assert_int_equal(kind_of("/nowhere/gone"), SEEP_PROGRAM_MISSING);
    doctor_world_write(&world, "/data", "1,2,3\n");
    snprintf(path, sizeof(path), "%s/data", world.root);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(kind_of(path), SEEP_PROGRAM_FORBIDDEN);
    assert_int_equal(kind_of("data"), SEEP_PROGRAM_FORBIDDEN);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(kind_of(path), SEEP_PROGRAM_ODD);
}

static void a_script_is_what_runs_it(void **state)
{
    static const struct {
        const char *text;
        enum seep_program_kind kind;
    } cases[] = {
        {"#!/usr/bin/env -S A=1 inner --fast\n", SEEP_PROGRAM_STATIC},
        {"#! /usr/bin/env inner", SEEP_PROGRAM_STATIC},
        {"#!/usr/bin/env gone\n", SEEP_PROGRAM_MISSING},
        {"#!/usr/bin/env\n", SEEP_PROGRAM_MISSING},
        {"#!/nowhere/python3\n", SEEP_PROGRAM_MISSING},
        {"#!\n", SEEP_PROGRAM_MISSING},
        {"#!/bin/ls -x\n", SEEP_PROGRAM_FINE},
    };
    char path[PATH_MAX];

    (void)state;
    make("inner", &(struct shape){0});
    snprintf(path, sizeof(path), "%s/script", world.root);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        doctor_world_write(&world, "/script", cases[i].text);
        assert_int_equal(chmod(path, 0700), 0);
        assert_int_equal(kind_of(path), cases[i].kind);
    }
    /* one script can run another */
    char loop[PATH_MAX + 4];
    char outer[PATH_MAX];
    doctor_world_write(&world, "/script", "#!/usr/bin/env inner\n");
    snprintf(loop, sizeof(loop), "#!%s\n", path);
    doctor_world_write(&world, "/outer", loop);
    snprintf(outer, sizeof(outer), "%s/outer", world.root);
    assert_int_equal(chmod(outer, 0700), 0);
    assert_int_equal(kind_of(outer), SEEP_PROGRAM_STATIC);
    /* one that leads to itself ends all the same */
    snprintf(loop, sizeof(loop), "#!%s\n", path);
    doctor_world_write(&world, "/script", loop);
    assert_int_not_equal(kind_of(path), SEEP_PROGRAM_FINE);
}

/* Each field with each odd value: nothing may be read outside of the file. */
static void a_damaged_file_is_looked_at_without_harm(void **state)
{
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    struct seep_elf_look look;
    char path[PATH_MAX];

    (void)state;
    snprintf(path, sizeof(path), "%s",
             make("damaged", &(struct shape){.loader = "/proc/self/exe",
                                             .note_owner = "Go"}));
    for (off_t at = 16; at < 256; at++) {
        for (size_t i = 0; i < sizeof(values); i++) {
            int fd = open(path, O_RDWR | O_CLOEXEC);
            unsigned char before;
            assert_int_equal(pread(fd, &before, 1, at), 1);
            assert_int_equal(pwrite(fd, &values[i], 1, at), 1);
            seep_elf_look(path, &look);
            assert_int_equal(pwrite(fd, &before, 1, at), 1);
            close(fd);
        }
    }
    assert_int_equal(truncate(path, 40), 0);
    assert_int_equal(seep_elf_look(path, &look), -ENOEXEC);
    assert_int_equal(seep_elf_look("/dev/zero", &look), -ENOEXEC);
    assert_int_equal(seep_elf_look(world.root, &look), -ENOEXEC);
}

/* As many tables as a header can tell of, all of them the same symbols. */
static void many_tables_of_symbols_cost_no_more_than_one(void **state)
{
    enum { TABLES = 4000, BYTES = 8 << 20 };
    static Elf64_Shdr tables[TABLES];
    struct seep_elf_look look;
    Elf64_Ehdr header;
    int fd = open(make("tables", &(struct shape){0}), O_RDWR | O_CLOEXEC);
    char path[PATH_MAX];

    (void)state;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
    header.e_shoff = 4096;
    header.e_shnum = TABLES;
    header.e_shstrndx = 0;
    for (size_t i = 0; i < TABLES; i++) {
        tables[i] = (Elf64_Shdr){
            .sh_type = SHT_DYNSYM, .sh_offset = 1 << 20, .sh_size = 6 << 20};
    }
    assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    assert_int_equal(pwrite(fd, tables, sizeof(tables), 4096), sizeof(tables));
    assert_int_equal(ftruncate(fd, BYTES), 0);
    alarm(60); /* each in full would be a thousand million symbols */
    assert_int_equal(seep_elf_look(path, &look), 0);
    alarm(0);
    close(fd);
}

static void the_command_decides_what_the_answer_is(void **state)
{
    char *argv[] = {make("static", &(struct shape){0}), NULL};
    char ls[] = "/bin/ls";
    char *sentence;

    (void)state;
    world.facts.command = argv;
    expect(seep_doctor_check_command, SEEP_DOCTOR_NO, "is a static program");
    sentence = seep_doctor_sentence(&world.facts, &world.doctor);
    assert_non_null(strstr(sentence, "seep cannot record it: "));
    free(sentence);
    argv[0] = ls;
    expect(seep_doctor_check_command, SEEP_DOCTOR_OK, "dynamically");
    sentence = seep_doctor_sentence(&world.facts, &world.doctor);
    assert_string_equal(sentence, "seep works here, and can record /bin/ls");
    free(sentence);
}

static void pythons_are_told_apart_by_how_the_trial_went(void **state)
{
    struct seep_doctor_python *python = &world.facts.pythons[0];

    (void)state;
    expect(seep_doctor_check_python, SEEP_DOCTOR_ABSENT, "no Python");
    world.facts.python_count = 1;
    strcpy(python->path, "/usr/bin/python3");
    python->trial.error = -ETIMEDOUT;
    expect(seep_doctor_check_python, SEEP_DOCTOR_WARN,
           "did not answer in time");
    python->trial.error = 0;
    python->trial.status = 1 << 8;
    strcpy(python->trial.complaint, "no module named encodings");
    expect(seep_doctor_check_python, SEEP_DOCTOR_WARN,
           "exit status 1, no module named encodings");
    python->trial.status = 9;
    expect(seep_doctor_check_python, SEEP_DOCTOR_WARN, "signal 9");
    strcpy(python->name, "cpython");
    strcpy(python->version, "3.16.0");
    python->trial = (struct seep_doctor_trial){.recorded = true,
                                               .python_state = SEEP_PYTHON_NEW};
    expect(seep_doctor_check_python, SEEP_DOCTOR_WARN,
           "off: this Python is too new");
    python->trial.recorded = false;
    expect(seep_doctor_check_python, SEEP_DOCTOR_WARN, "left no recording");
    strcpy(python->name, "pypy");
    expect(seep_doctor_check_python, SEEP_DOCTOR_WARN, "only native frames");
    strcpy(python->name, "cpython");
    python->trial.recorded = true;
    python->trial.python_count = 3;
    expect(seep_doctor_check_python, SEEP_DOCTOR_OK, "in the stacks");
}

static void torch_is_told_with_and_without_its_gpu_part(void **state)
{
    struct seep_doctor_python *python = &world.facts.pythons[0];

    (void)state;
    expect(seep_doctor_check_torch, SEEP_DOCTOR_ABSENT, "no PyTorch");
    world.facts.python_count = 1;
    snprintf(python->torch, sizeof(python->torch), "%s/torch/__init__.py",
             world.root);
    doctor_world_write(&world, "/torch/version.py",
                       "__version__ = '2.5.1+cu124'\ndebug = False\n");
    expect(seep_doctor_check_torch, SEEP_DOCTOR_OK, "without CUDA");
    doctor_world_write(&world, "/torch/lib/libc10_cuda.so", "");
    expect(seep_doctor_check_torch, SEEP_DOCTOR_OK, "PyTorch 2.5.1+cu124");
}

/* libcuda.so.1 as the vendor installs it: a link to a file with the version */
static void plant_driver(const char *version)
{
    char from[PATH_MAX];
    char to[PATH_MAX];

    doctor_world_write(&world, "/usr/lib64/empty", "");
    snprintf(to, sizeof(to), "usr/lib64/libcuda.so.%s", version);
    make(to, &(struct shape){.dynamic = true});
    snprintf(from, sizeof(from), "%s/usr/lib64/libcuda.so.1", world.root);
    snprintf(to, sizeof(to), "libcuda.so.%s", version);
    assert_int_equal(symlink(to, from), 0);
}

static void plant_module(const char *version)
{
    char text[256];

    snprintf(text, sizeof(text),
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  Thu\n",
             version);
    doctor_world_write(&world, "/proc/driver/nvidia/version", text);
}

static void halves_of_a_driver_are_told_apart(void **state)
{
    (void)state;
    expect(seep_doctor_check_cuda, SEEP_DOCTOR_ABSENT, "no NVIDIA driver");
    plant_module("550.54.14");
    expect(seep_doctor_check_cuda, SEEP_DOCTOR_WARN,
           "kernel module 550.54.14, and no libcuda.so.1");
    plant_driver("550.54.14");
    expect(seep_doctor_check_cuda, SEEP_DOCTOR_WARN, "no /dev/nvidia0");
    doctor_world_write(&world, "/dev/nvidia0", "");
    expect(seep_doctor_check_cuda, SEEP_DOCTOR_OK, "1 GPU:");
    plant_module("535.183.01");
    expect(seep_doctor_check_cuda, SEEP_DOCTOR_WARN,
           "libcuda is 550.54.14 and the kernel module 535.183.01");
    doctor_world_remove(&world, "/proc/driver/nvidia/version");
    expect(seep_doctor_check_cuda, SEEP_DOCTOR_OK, "driver 550.54.14");
    doctor_world_remove(&world, "/dev/nvidia0");
    expect(seep_doctor_check_cuda, SEEP_DOCTOR_WARN, "kernel module is not");
    doctor_world_write(&world, "/dev/dxg", "");
    expect(seep_doctor_check_cuda, SEEP_DOCTOR_OK, "WSL");
}

static void a_library_that_is_none_is_no_driver(void **state)
{
    char folder[PATH_MAX];

    (void)state;
    plant_module("550.54.14");
    doctor_world_write(&world, "/opt/stubs/libcuda.so.1", "INPUT(x)\n");
    snprintf(folder, sizeof(folder), "/opt/stubs");
    doctor_world_variable("LD_LIBRARY_PATH", folder);
    expect(seep_doctor_check_cuda, SEEP_DOCTOR_WARN, "is not a library");
}

static void a_folder_of_the_loaders_configuration_is_looked_into(void **state)
{
    (void)state;
    plant_module("550.54.14");
    doctor_world_write(&world, "/etc/ld.so.conf.d/gpu.conf",
                       "# ours\n/opt/gpu\n");
    doctor_world_write(&world, "/opt/gpu/libcuda.so.1", "is not a library");
    expect(seep_doctor_check_cuda, SEEP_DOCTOR_WARN, "/opt/gpu/libcuda.so.1");
}

static void missing_debug_information_is_a_limit(void **state)
{
    (void)state;
    expect(seep_doctor_check_symbols, SEEP_DOCTOR_OK, "is installed");
    world.facts.python_count = 1;
    strcpy(world.facts.pythons[0].path, make("python3", &(struct shape){0}));
    expect(seep_doctor_check_symbols, SEEP_DOCTOR_WARN, "of python3:");
    doctor_world_variable("DEBUGINFOD_URLS", "https://debuginfod.example");
    expect(seep_doctor_check_symbols, SEEP_DOCTOR_OK, "debuginfod.example");
}

static void debug_information_is_found_by_the_build_id(void **state)
{
    (void)state;
    world.facts.python_count = 1;
    strcpy(world.facts.pythons[0].path,
           make("python3", &(struct shape){.note_owner = "GNU"}));
    expect(seep_doctor_check_symbols, SEEP_DOCTOR_WARN, "of python3:");
    doctor_world_write(&world, "/usr/lib/debug/.build-id/5e/ed0102.debug", "");
    expect(seep_doctor_check_symbols, SEEP_DOCTOR_OK, "is installed");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_program_is_known_by_its_file),
        TEST(a_launcher_is_known_by_its_name),
        TEST(what_cannot_be_run_is_told_apart),
        TEST(a_script_is_what_runs_it),
        TEST(a_damaged_file_is_looked_at_without_harm),
        TEST(many_tables_of_symbols_cost_no_more_than_one),
        TEST(the_command_decides_what_the_answer_is),
        TEST(pythons_are_told_apart_by_how_the_trial_went),
        TEST(torch_is_told_with_and_without_its_gpu_part),
        TEST(halves_of_a_driver_are_told_apart),
        TEST(a_library_that_is_none_is_no_driver),
        TEST(a_folder_of_the_loaders_configuration_is_looked_into),
        TEST(missing_debug_information_is_a_limit),
        TEST(debug_information_is_found_by_the_build_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
