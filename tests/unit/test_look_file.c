/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* reader/look, look_file: looks kept, thinned, written and read again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/look.h"
#include "reader/look_file.h"
#include "seep_test.h"

#define HEADER "{\"schema\":\"seep-looks/1\"}\n"
#define MUTANTS 3000

struct fixture {
    char folder[64];
    char recording[96];
    char file[112];
};

static int make_folder(void **state)
{
    static struct fixture fixture;

    strcpy(fixture.folder, "/tmp/seep-looks-XXXXXX");
    if (mkdtemp(fixture.folder) == NULL) {
        return -1;
    }
    snprintf(fixture.recording, sizeof(fixture.recording), "%s/a.seep",
             fixture.folder);
    snprintf(fixture.file, sizeof(fixture.file), "%s.looks", fixture.recording);
    *state = &fixture;
    return 0;
}

static int remove_folder(void **state)
{
    const struct fixture *fixture = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", fixture->folder);
    return system(command);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static char *read_text(const char *path)
{
    char *text = calloc(1, 65536);
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_true(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

static void add(struct seep_looks *looks, double t_s)
{
    struct seep_look look = {.t_s = t_s, .rss_bytes = 4096};

    assert_int_equal(seep_looks_add(looks, &look), 0);
}

static struct seep_looks make_looks(void)
{
    struct seep_looks looks = {0};

    add(&looks, 1);
    add(&looks, 2.5);
    struct seep_look *look = &looks.looks[1];
    look->anonymous_bytes = 1;
    look->shared_bytes = 2;
    look->swap_bytes = 3;
    look->cgroup_bytes = 4;
    look->cgroup_limit_bytes = 5;
    look->available_bytes = 6;
    look->other_rss_bytes = 7;
    look->mappings = calloc(2, sizeof(*look->mappings));
    look->mapping_count = 2;
    look->mappings[0] = (struct seep_look_mapping){
        .start = 0x1000,
        .end = 0x2000,
        .rss_bytes = 10,
        .anonymous_bytes = 11,
        .swap_bytes = 12,
        .name = strdup("/a \"b\"\n\x1b"),
    };
    look->mappings[1] = (struct seep_look_mapping){
        .start = UINT64_C(0xffffffffff600000),
        .end = UINT64_C(0xffffffffff601000),
        .name = strdup("\xff"),
    };
    return looks;
}

static void what_was_written_is_read(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_looks looks = make_looks();
    struct seep_looks read = {0};

    assert_int_equal(seep_looks_write(fixture->recording, &looks), 0);
    assert_int_equal(seep_looks_read(fixture->recording, &read), 0);

    assert_int_equal(read.count, 2);
    const struct seep_look *look = &read.looks[1];
    assert_true(read.looks[0].t_s == 1);
    assert_true(look->t_s == 2.5);
    assert_int_equal(look->rss_bytes, 4096);
    assert_int_equal(look->anonymous_bytes, 1);
    assert_int_equal(look->shared_bytes, 2);
    assert_int_equal(look->swap_bytes, 3);
    assert_int_equal(look->cgroup_bytes, 4);
    assert_int_equal(look->cgroup_limit_bytes, 5);
    assert_int_equal(look->available_bytes, 6);
    assert_int_equal(look->other_rss_bytes, 7);
    assert_int_equal(look->mapping_count, 2);
    assert_int_equal(look->mappings[0].start, 0x1000);
    assert_int_equal(look->mappings[0].end, 0x2000);
    assert_int_equal(look->mappings[0].rss_bytes, 10);
    assert_int_equal(look->mappings[0].anonymous_bytes, 11);
    assert_int_equal(look->mappings[0].swap_bytes, 12);
    assert_string_equal(look->mappings[0].name, "/a \"b\"\n\x1b");
    assert_true(look->mappings[1].end == UINT64_C(0xffffffffff601000));
    assert_string_equal(look->mappings[1].name, "?");
    seep_looks_fini(&read);
    seep_looks_fini(&looks);
}

static void the_file_is_private_and_alone(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_looks looks = make_looks();
    char command[160];
    struct stat status;

    umask(0);
    assert_int_equal(seep_looks_write(fixture->recording, &looks), 0);
    assert_int_equal(seep_looks_write(fixture->recording, &looks), 0);

    assert_int_equal(stat(fixture->file, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    snprintf(command, sizeof(command), "test $(ls -A %s | wc -l) = 1",
             fixture->folder);
    assert_int_equal(system(command), 0);
    seep_looks_fini(&looks);
}

static void a_link_is_replaced_and_not_followed(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_looks looks = make_looks();
    struct seep_looks read;
    struct stat status;
    char victim[96];

    snprintf(victim, sizeof(victim), "%s/victim", fixture->folder);
    write_text(victim, HEADER);
    assert_int_equal(symlink("victim", fixture->file), 0);

    assert_int_equal(seep_looks_read(fixture->recording, &read), -ELOOP);
    assert_int_equal(seep_looks_write(fixture->recording, &looks), 0);

    char *text = read_text(victim);
    assert_string_equal(text, HEADER);
    free(text);
    assert_int_equal(lstat(fixture->file, &status), 0);
    assert_true(S_ISREG(status.st_mode));
    seep_looks_fini(&looks);
}

static void none_is_no_entry(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_looks read;

    assert_int_equal(seep_looks_read(fixture->recording, &read), -ENOENT);
}

static void a_pipe_is_refused_at_once(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_looks read;

    assert_int_equal(mkfifo(fixture->file, 0600), 0);
    assert_int_equal(seep_looks_read(fixture->recording, &read), -EBADMSG);
}

static void looks_of_an_earlier_recording_are_none(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_looks looks = make_looks();
    struct seep_looks read;

    write_text(fixture->recording,
               "seeprec\n 0123456789 0123456789 0123456789");
    assert_int_equal(seep_looks_write(fixture->recording, &looks), 0);
    assert_int_equal(seep_looks_read(fixture->recording, &read), 0);
    seep_looks_fini(&read);
    write_text(fixture->recording,
               "seeprec\n 0123456789 0123456789 012345678a");

    assert_int_equal(seep_looks_read(fixture->recording, &read), 0);
    seep_looks_fini(&read);
    write_text(fixture->recording,
               "seeprec\n 0123456789 0123456789 ----------");
    assert_int_equal(seep_looks_read(fixture->recording, &read), -ENOENT);
    seep_looks_fini(&looks);
}

static int parse(const char *lines, struct seep_looks *ret_looks)
{
    char text[8192];

    snprintf(text, sizeof(text), HEADER "%s", lines);
    return seep_look_file_parse(text, strlen(text), "/nowhere", ret_looks);
}

static void assert_refused(const char *lines)
{
    struct seep_looks looks = {.count = 77};

    assert_int_equal(parse(lines, &looks), -EBADMSG);
    assert_int_equal(looks.count, 77);
}

#define MAPPING(range, more) "{\"range\":\"" range "\",\"name\":\"\"" more "}"
#define LOOK(more) "{\"t_s\":1,\"mappings\":[]" more "}\n"
#define WITH(mappings) "{\"t_s\":1,\"mappings\":[" mappings "]}\n"

static void what_is_missing_is_not_known(void **state)
{
    struct seep_looks looks;

    (void)state;
    assert_int_equal(
        parse(WITH(MAPPING("1-2", "")) LOOK(",\"new\":[1]"), &looks), 0);
    assert_int_equal(looks.count, 2);
    assert_int_equal(looks.looks[0].cgroup_bytes, 0);
    assert_int_equal(looks.looks[0].mappings[0].rss_bytes, 0);
    seep_looks_fini(&looks);
}

static void half_a_last_line_is_left_out(void **state)
{
    struct seep_looks looks;

    (void)state;
    assert_int_equal(parse(LOOK("") "{\"t_s\":2,\"mappi", &looks), 0);
    assert_int_equal(looks.count, 1);
    seep_looks_fini(&looks);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    assert_refused("[]\n");
    assert_refused("{}\n");
    assert_refused("\n");
    assert_refused("{\"mappings\":[]}\n");
    assert_refused("{\"t_s\":1}\n");
    assert_refused("{\"t_s\":-1,\"mappings\":[]}\n");
    assert_refused("{\"t_s\":NaN,\"mappings\":[]}\n");
    assert_refused("{\"t_s\":1e999,\"mappings\":[]}\n");
    assert_refused("{\"t_s\":1e300,\"mappings\":[]}\n");
    assert_refused("{\"t_s\":\"1\",\"mappings\":[]}\n");
    assert_refused("{\"t_s\":1,\"mappings\":{}}\n");
    assert_refused("{\"t_s\":1,\"t_s\":1,\"mappings\":[]}\n");
    assert_refused(LOOK(",\"rss_bytes\":-1"));
    assert_refused(LOOK(",\"rss_bytes\":1.5"));
    assert_refused(LOOK(",\"swap_bytes\":9223372036854775807"));
    assert_refused(LOOK(",\"swap_bytes\":99999999999999999999999"));
    assert_refused(LOOK(",\"cgroup_bytes\":null"));
    assert_refused(WITH("1"));
    assert_refused(WITH("{}"));
    assert_refused(WITH("{\"range\":\"1-2\"}"));
    assert_refused(WITH("{\"range\":\"1-2\",\"name\":3}"));
    assert_refused(WITH("{\"range\":12,\"name\":\"\"}"));
    assert_refused(WITH(MAPPING("2-1", "")));
    assert_refused(WITH(MAPPING("1-1", "")));
    assert_refused(WITH(MAPPING("1-", "")));
    assert_refused(WITH(MAPPING("1", "")));
    assert_refused(WITH(MAPPING("1-2 ", "")));
    assert_refused(WITH(MAPPING("-1-2", "")));
    assert_refused(WITH(MAPPING("0x1-2", "")));
    assert_refused(WITH(MAPPING("1-11111111111111111", "")));
    assert_refused(WITH(MAPPING("1-2", ",\"rss_bytes\":[]")));
    assert_refused(WITH(MAPPING("1-3", "") "," MAPPING("2-4", "")));
    assert_refused(WITH(MAPPING("3-4", "") "," MAPPING("1-2", "")));
    assert_refused(LOOK("") "{\"t_s\":0.5,\"mappings\":[]}\n");
}

static void other_headers_are_refused(void **state)
{
    static const struct {
        const char *text;
        int error;
    } headers[] = {
        {"", -EBADMSG},
        {"\n", -EBADMSG},
        {"{\"schema\":\"seep-looks/1\"}", -EBADMSG},
        {"{\"schema\":1}\n", -EBADMSG},
        {"{\"schema\":\"seep-report/1\"}\n", -EBADMSG},
        {"{\"schema\":\"seep-looks/2\"}\n", -EPROTO},
    };
    struct seep_looks looks;

    (void)state;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        assert_int_equal(seep_look_file_parse(headers[i].text,
                                              strlen(headers[i].text),
                                              "/nowhere", &looks),
                         headers[i].error);
    }
}

static void more_than_was_promised_is_refused(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_looks looks;
    size_t bytes = 3 << 20;
    char *text = malloc(bytes + sizeof(HEADER));

    strcpy(text, HEADER);
    for (int i = 0; i <= SEEP_LOOK_LIMIT; i++) {
        strcat(text, LOOK(""));
    }
    assert_int_equal(
        seep_look_file_parse(text, strlen(text), "/nowhere", &looks), -EBADMSG);

    strcpy(text, HEADER);
    strcat(text, "{\"t_s\":1,\"mappings\":[");
    for (int i = 0; i <= SEEP_LOOK_MAPPINGS; i++) {
        sprintf(text + strlen(text), "%s" MAPPING("%x-%x", ""),
                i > 0 ? "," : "", i + 1, i + 2);
    }
    strcat(text, "]}\n");
    assert_int_equal(
        seep_look_file_parse(text, strlen(text), "/nowhere", &looks), -EBADMSG);

    memset(text, ' ', bytes);
    memcpy(text, HEADER "{\"t_s\":1,", strlen(HEADER "{\"t_s\":1,"));
    text[bytes - 32] = '\0';
    strcat(text, "\"mappings\":[]}\n");
    assert_int_equal(
        seep_look_file_parse(text, strlen(text), "/nowhere", &looks), -EBADMSG);
    free(text);

    write_text(fixture->file, HEADER);
    assert_int_equal(truncate(fixture->file, (off_t)65 << 20), 0);
    assert_int_equal(seep_looks_read(fixture->recording, &looks), -EBADMSG);
}

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (*seed >> 33) % limit;
}

/* Whatever is read keeps the promises of look.h. */
static void assert_sane(const struct seep_looks *looks)
{
    double last_s = 0;

    assert_true(looks->count <= SEEP_LOOK_LIMIT);
    for (size_t i = 0; i < looks->count; i++) {
        const struct seep_look *look = &looks->looks[i];
        uint64_t end = 0;
        assert_true(look->t_s >= last_s);
        last_s = look->t_s;
        assert_true(look->mapping_count <= SEEP_LOOK_MAPPINGS);
        for (size_t j = 0; j < look->mapping_count; j++) {
            assert_true(look->mappings[j].start >= end);
            assert_true(look->mappings[j].start < look->mappings[j].end);
            assert_non_null(look->mappings[j].name);
            end = look->mappings[j].end;
        }
    }
}

static void damage_is_refused_or_harmless(void **state)
{
    static const char pieces[] = "0123456789-e.,:{}[]\"\n tnul\\u\xff";
    const struct fixture *fixture = *state;
    struct seep_looks looks = make_looks();
    uint64_t seed = 20261121;

    assert_int_equal(seep_looks_write(fixture->recording, &looks), 0);
    seep_looks_fini(&looks);
    char *whole = read_text(fixture->file);
    size_t length = strlen(whole);
    for (int i = 0; i < MUTANTS; i++) {
        char *text = strdup(whole);
        size_t kept = length;
        uint64_t count = random_below(&seed, 4);
        for (uint64_t j = 0; j < count; j++) {
            text[random_below(&seed, length)] =
                pieces[random_below(&seed, sizeof(pieces) - 1)];
        }
        if (count == 0) {
            kept = random_below(&seed, length);
        }
        if (seep_look_file_parse(text, kept, "/nowhere", &looks) == 0) {
            assert_sane(&looks);
            seep_looks_fini(&looks);
        }
        free(text);
    }
    free(whole);
}

static void the_first_and_the_last_always_stay(void **state)
{
    struct seep_looks looks = {0};

    (void)state;
    for (int i = 1; i <= 5000; i++) {
        add(&looks, i);
        assert_true(looks.count <= SEEP_LOOK_LIMIT);
        assert_true(looks.looks[0].t_s == 1);
        assert_true(looks.looks[looks.count - 1].t_s == i);
    }
    assert_int_equal(looks.count, SEEP_LOOK_LIMIT);
    seep_looks_fini(&looks);
}

static void thinned_looks_are_spread_over_the_run(void **state)
{
    struct seep_looks looks = {0};
    double t_s = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        t_s += i < 20 ? 1 : 10;
        add(&looks, t_s);
    }
    for (size_t i = 1; i < looks.count; i++) {
        double gap_s = looks.looks[i].t_s - looks.looks[i - 1].t_s;
        assert_true(gap_s <= 3 * t_s / SEEP_LOOK_LIMIT);
    }
    seep_looks_fini(&looks);
}

static void time_that_goes_back_is_refused(void **state)
{
    struct seep_looks looks = {0};
    struct seep_look look = {.t_s = 1};

    (void)state;
    add(&looks, 2);
    assert_int_equal(seep_looks_add(&looks, &look), -EINVAL);
    assert_int_equal(looks.count, 1);
    seep_looks_fini(&looks);
}

#define TEST(name) \
    cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_is_read),
        TEST(the_file_is_private_and_alone),
        TEST(a_link_is_replaced_and_not_followed),
        TEST(none_is_no_entry),
        TEST(a_pipe_is_refused_at_once),
        TEST(looks_of_an_earlier_recording_are_none),
        cmocka_unit_test(what_is_missing_is_not_known),
        cmocka_unit_test(half_a_last_line_is_left_out),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(other_headers_are_refused),
        TEST(more_than_was_promised_is_refused),
        TEST(damage_is_refused_or_harmless),
        cmocka_unit_test(the_first_and_the_last_always_stay),
        cmocka_unit_test(thinned_looks_are_spread_over_the_run),
        cmocka_unit_test(time_that_goes_back_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
