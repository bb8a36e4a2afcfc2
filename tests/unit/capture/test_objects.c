/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects by address: what we answer against what the loader says itself, by
 * _dl_find_object and without it.
 */
#include "seep_test.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "capture/native/elf.h"

/* What dl_iterate_phdr says of the object of an address. */
struct truth {
    uintptr_t address;
    uintptr_t bias;
    uintptr_t eh_frame_hdr;
    char path[512];
    size_t header_count;
    size_t seen;
};

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
    struct truth *truth = data;
    uintptr_t hdr = 0;
    int inside = 0;

    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;

        if (header->p_type == PT_GNU_EH_FRAME) {
            hdr = start;
        }
        inside |= header->p_type == PT_LOAD && truth->address >= start &&
                  truth->address < start + header->p_memsz;
    }
    if (inside) {
        truth->bias = info->dlpi_addr;
        truth->eh_frame_hdr = hdr;
        truth->header_count = info->dlpi_phnum;
        strncpy(truth->path, info->dlpi_name, sizeof(truth->path) - 1);
        truth->seen++;
    }
    return 0;
}

static void compare(const void *code)
{
    struct truth truth = {.address = (uintptr_t)code};
    struct seep_elf_image object;
    const uint8_t *build_id;
    size_t bytes;

    dl_iterate_phdr(look, &truth);
    assert_int_equal(truth.seen, 1);
    assert_true(seep_objects_find((uintptr_t)code, &object));
    assert_true(object.start <= truth.address && truth.address < object.end);
    assert_true(object.bias == truth.bias);
    assert_true((uintptr_t)object.eh_frame_hdr == truth.eh_frame_hdr);
    assert_string_equal(object.path, truth.path);
    build_id = seep_elf_build_id(&object, &bytes);
    assert_non_null(build_id);
    assert_int_equal(bytes, 20);
    assert_true((uintptr_t)build_id >= object.start &&
                (uintptr_t)build_id < object.end);
}

static void every_object_is_as_the_loader_says(void **state)
{
    (void)state;
    compare((const void *)(uintptr_t)compare);
    compare(dlsym(RTLD_DEFAULT, "malloc"));
    compare(dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests"));
    compare(dlsym(RTLD_DEFAULT, "__tls_get_addr"));
}

static void an_address_of_no_object_is_not_found(void **state)
{
    struct seep_elf_image object;
    uintptr_t on_the_stack = 0;

    (void)state;
    assert_false(seep_objects_find(0, &object));
    assert_false(seep_objects_find((uintptr_t)&on_the_stack, &object));
    assert_false(seep_objects_find(UINTPTR_MAX, &object));
}

static void a_thread_is_served_the_object_of_its_pc_alone(void **state)
{
    struct truth truth = {.address = (uintptr_t)dlsym(RTLD_DEFAULT, "malloc")};
    struct truth served = {.address = truth.address};

    (void)state;
    dl_iterate_phdr(look, &truth);
    assert_false(seep_objects_serves_this_thread());
    seep_objects_serve(truth.address);
    assert_true(seep_objects_serves_this_thread());
    assert_int_equal(seep_objects_iterate(look, &served), 0);
    seep_objects_serve(0);
    assert_int_equal(served.seen, 1);
    assert_true(served.bias == truth.bias);
    assert_int_equal(served.header_count, truth.header_count);
}

/* Made-up images: the first page of one, and notes in it. */
static struct {
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[2];
    ElfW(Nhdr) note;
    char name[4];
    uint8_t id[20];
    uint8_t rest[4096];
} made_up __attribute__((aligned(4096)));

static void make_up(struct seep_elf_image *image)
{
    memset(&made_up, 0, sizeof(made_up));
    memcpy(made_up.header.e_ident, ELFMAG, SELFMAG);
    made_up.header.e_phentsize = sizeof(ElfW(Phdr));
    made_up.header.e_phoff = sizeof(ElfW(Ehdr));
    made_up.header.e_phnum = 2;
    made_up.segments[0].p_type = PT_LOAD;
    made_up.segments[0].p_flags = PF_R;
    made_up.segments[0].p_memsz = sizeof(made_up);
    made_up.segments[1].p_type = PT_NOTE;
    made_up.segments[1].p_vaddr = offsetof(__typeof__(made_up), note);
    made_up.segments[1].p_memsz = sizeof(ElfW(Nhdr)) + 24;
    made_up.note.n_namesz = 4;
    made_up.note.n_descsz = 20;
    made_up.note.n_type = NT_GNU_BUILD_ID;
    memcpy(made_up.name, "GNU", 4);
    *image = (struct seep_elf_image){
        .start = (uintptr_t)&made_up,
        .end = (uintptr_t)(&made_up + 1),
        .bias = (uintptr_t)&made_up,
    };
}

static void a_build_id_is_read_from_the_notes(void **state)
{
    struct seep_elf_image image;
    size_t bytes = 0;

    (void)state;
    make_up(&image);
    seep_elf_headers(&image);
    assert_int_equal(image.header_count, 2);
    assert_ptr_equal(seep_elf_build_id(&image, &bytes), made_up.id);
    assert_int_equal(bytes, 20);
}

/* By words that lie across two, which not every machine reads. */
static void tables_that_are_not_aligned_are_not_read(void **state)
{
    static unsigned char page[4096] __attribute__((aligned(4096)));
    const uintptr_t base = (uintptr_t)page;
    ElfW(Dyn) entries[] = {
        {.d_tag = DT_SYMTAB, .d_un.d_val = 2048},
        {.d_tag = DT_HASH, .d_un.d_val = 2560},
        {.d_tag = DT_STRTAB, .d_un.d_val = 3000},
        {.d_tag = DT_STRSZ, .d_un.d_val = 1},
        {.d_tag = DT_NULL},
    };
    ElfW(Phdr) headers[] = {
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = sizeof(page)},
        {.p_type = PT_DYNAMIC, .p_vaddr = 1024, .p_memsz = sizeof(entries)},
    };
    const struct seep_elf_image image = {.start = base,
                                         .end = base + sizeof(page),
                                         .bias = base,
                                         .headers = headers,
                                         .header_count = 2};
    struct seep_elf_symbols symbols;

    (void)state;
    memcpy(page + 1024, entries, sizeof(entries));
    assert_true(seep_elf_symbols_open(&image, &symbols));
    headers[1].p_vaddr = 1028;
    memcpy(page + 1028, entries, sizeof(entries));
    assert_false(seep_elf_symbols_open(&image, &symbols));
    headers[1].p_vaddr = 1024;
    entries[0].d_un.d_val = 2052;
    memcpy(page + 1024, entries, sizeof(entries));
    assert_false(seep_elf_symbols_open(&image, &symbols));
}

static void headers_that_do_not_add_up_are_not_believed(void **state)
{
    struct seep_elf_image image;
    size_t bytes = 0;

    (void)state;
    make_up(&image);
    made_up.header.e_phoff = 4090;
    seep_elf_headers(&image);
    assert_null(image.headers);
    make_up(&image);
    made_up.header.e_phnum = 0xffff;
    seep_elf_headers(&image);
    assert_null(image.headers);
    make_up(&image);
    made_up.header.e_ident[0] = 0;
    seep_elf_headers(&image);
    assert_null(image.headers);
    make_up(&image);
    seep_elf_headers(&image);
    made_up.note.n_descsz = 0xfffffff0;
    assert_null(seep_elf_build_id(&image, &bytes));
    made_up.note.n_descsz = 20;
    made_up.note.n_namesz = 0xffffffff;
    assert_null(seep_elf_build_id(&image, &bytes));
    made_up.note.n_namesz = 4;
    made_up.segments[1].p_memsz = sizeof(made_up) * 2;
    assert_null(seep_elf_build_id(&image, &bytes));
    made_up.segments[1].p_memsz = sizeof(ElfW(Nhdr)) + 24;
    made_up.segments[0].p_memsz = sizeof(made_up) * 2;
    assert_null(seep_elf_build_id(&image, &bytes));
    made_up.segments[0].p_memsz = sizeof(made_up);
    made_up.segments[1].p_vaddr = UINT64_MAX - 15;
    assert_null(seep_elf_build_id(&image, &bytes));
}

/* An object that defines one name, by a table of DT_HASH. */
static struct {
    ElfW(Phdr) segments[2];
    ElfW(Dyn) dynamic[5];
    ElfW(Sym) symbols[2];
    uint32_t hash[5];
    char strings[6];
} definer = {
    .segments = {{.p_type = PT_LOAD, .p_flags = PF_R}, {.p_type = PT_DYNAMIC}},
    .symbols =
        {{0},
         {.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 16}},
    .hash = {1, 2, 1, 0, 0},
    .strings = "\0name",
};

#define AT(member) offsetof(__typeof__(definer), member)

static void a_name_ends_with_the_table_of_strings(void **state)
{
    const ElfW(Dyn) dynamic[] = {{DT_SYMTAB, {AT(symbols)}},
                                 {DT_STRTAB, {AT(strings)}},
                                 {DT_STRSZ, {sizeof(definer.strings)}},
                                 {DT_HASH, {AT(hash)}},
                                 {DT_NULL, {0}}};
    const struct seep_elf_image image = {
        .start = (uintptr_t)&definer,
        .end = (uintptr_t)(&definer + 1),
        .bias = (uintptr_t)&definer,
        .headers = definer.segments,
        .header_count = 2,
    };

    (void)state;
    memcpy(definer.dynamic, dynamic, sizeof(dynamic));
    definer.segments[0].p_memsz = sizeof(definer);
    definer.segments[1].p_vaddr = AT(dynamic);
    definer.segments[1].p_memsz = sizeof(dynamic);
    assert_true(seep_elf_definition(&image, "name") == image.bias + 16);
    assert_true(seep_elf_definition(&image, "nam") == 0);
    definer.strings[5] = 's';
    assert_true(seep_elf_definition(&image, "name") == 0);
    assert_true(seep_elf_definition(&image, "names") == 0);
}

/* As patchelf leaves it, which puts a new segment before the first one. */
static void a_table_may_go_on_in_the_next_segment(void **state)
{
    const ElfW(Dyn) dynamic[] = {{DT_SYMTAB, {AT(symbols)}},
                                 {DT_STRTAB, {AT(strings)}},
                                 {DT_STRSZ, {sizeof(definer.strings)}},
                                 {DT_HASH, {AT(hash)}},
                                 {DT_NULL, {0}}};
    const size_t middle = AT(strings) + 3;
    ElfW(Phdr) headers[] = {
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = middle},
        {.p_type = PT_DYNAMIC,
         .p_vaddr = AT(dynamic),
         .p_memsz = sizeof(dynamic)},
        {.p_type = PT_LOAD,
         .p_flags = PF_R,
         .p_vaddr = middle,
         .p_memsz = sizeof(definer) - middle},
    };
    const struct seep_elf_image image = {
        .start = (uintptr_t)&definer,
        .end = (uintptr_t)(&definer + 1),
        .bias = (uintptr_t)&definer,
        .headers = headers,
        .header_count = 3,
    };

    (void)state;
    memcpy(definer.dynamic, dynamic, sizeof(dynamic));
    definer.strings[5] = '\0';
    assert_true(seep_elf_definition(&image, "name") == image.bias + 16);
    headers[2].p_vaddr++;
    headers[2].p_memsz--;
    assert_true(seep_elf_definition(&image, "name") == 0);
    headers[2].p_vaddr--;
    headers[2].p_memsz = 2;
    assert_true(seep_elf_definition(&image, "name") == 0);
}

static void without_dl_find_object_the_answers_are_the_same(void **state)
{
    (void)state;
    seep_objects_use_snapshot();
    every_object_is_as_the_loader_says(state);
    an_address_of_no_object_is_not_found(state);
    a_thread_is_served_the_object_of_its_pc_alone(state);
}

static void an_object_loaded_later_is_seen_after_a_dlclose(void **state)
{
    void *handle = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    struct seep_elf_image object;
    uintptr_t code;

    (void)state;
    if (handle == NULL) {
        return;
    }
    code = (uintptr_t)dlsym(handle, "dwarf_begin");
    assert_false(seep_objects_find(code, &object));
    seep_objects_unload_begin();
    seep_objects_unload_end();
    assert_true(seep_objects_find(code, &object));
    assert_non_null(strstr(object.path, "libdw"));
    seep_objects_unload_begin();
    dlclose(handle);
    seep_objects_unload_end();
    assert_false(seep_objects_find(code, &object));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_object_is_as_the_loader_says),
        cmocka_unit_test(an_address_of_no_object_is_not_found),
        cmocka_unit_test(a_thread_is_served_the_object_of_its_pc_alone),
        cmocka_unit_test(a_build_id_is_read_from_the_notes),
        cmocka_unit_test(tables_that_are_not_aligned_are_not_read),
        cmocka_unit_test(headers_that_do_not_add_up_are_not_believed),
        cmocka_unit_test(a_name_ends_with_the_table_of_strings),
        cmocka_unit_test(a_table_may_go_on_in_the_next_segment),
        cmocka_unit_test(without_dl_find_object_the_answers_are_the_same),
        cmocka_unit_test(an_object_loaded_later_is_seen_after_a_dlclose),
    };

    seep_objects_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
