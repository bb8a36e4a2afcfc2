/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* External samples: kept, thinned, written and read again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/process/sample.h"
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

static void add(struct seep_external_samples *samples, double t_s)
{
    struct seep_external_sample sample = {.t_s = t_s, .rss_bytes = 4096};

    assert_int_equal(seep_external_samples_add(samples, &sample), 0);
}

static struct seep_external_samples make_samples(void)
{
    struct seep_external_samples samples = {0};

    add(&samples, 1);
    add(&samples, 2.5);
    struct seep_external_sample *sample = &samples.samples[1];
    sample->anonymous_bytes = 1;
    sample->shared_bytes = 2;
    sample->swap_bytes = 3;
    sample->cgroup_bytes = 4;
    sample->cgroup_limit_bytes = 5;
    sample->available_bytes = 6;
    sample->other_rss_bytes = 7;
    sample->forked_bytes = 8;
    sample->thread_count = 9;
    sample->mappings = calloc(2, sizeof(*sample->mappings));
    sample->mapping_count = 2;
    sample->mappings[0] = (struct seep_external_mapping){
        .start = 0x1000,
        .end = 0x2000,
        .rss_bytes = 10,
        .anonymous_bytes = 11,
        .swap_bytes = 12,
        .name = strdup("/a \"b\"\n\x1b"),
    };
    sample->mappings[1] = (struct seep_external_mapping){
        .start = UINT64_C(0xffffffffff600000),
        .end = UINT64_C(0xffffffffff601000),
        .name = strdup("\xff"),
    };
    return samples;
}

static void what_was_written_is_read(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_external_samples samples = make_samples();
    struct seep_external_samples read = {0};

    assert_int_equal(seep_external_samples_write(fixture->recording, &samples),
                     0);
    assert_int_equal(seep_external_samples_read(fixture->recording, &read), 0);

    assert_int_equal(read.count, 2);
    const struct seep_external_sample *sample = &read.samples[1];
    assert_true(read.samples[0].t_s == 1);
    assert_true(sample->t_s == 2.5);
    assert_int_equal(sample->rss_bytes, 4096);
    assert_int_equal(sample->anonymous_bytes, 1);
    assert_int_equal(sample->shared_bytes, 2);
    assert_int_equal(sample->swap_bytes, 3);
    assert_int_equal(sample->cgroup_bytes, 4);
    assert_int_equal(sample->cgroup_limit_bytes, 5);
    assert_int_equal(sample->available_bytes, 6);
    assert_int_equal(sample->other_rss_bytes, 7);
    assert_int_equal(sample->forked_bytes, 8);
    assert_int_equal(sample->thread_count, 9);
    assert_int_equal(sample->mapping_count, 2);
    assert_int_equal(sample->mappings[0].start, 0x1000);
    assert_int_equal(sample->mappings[0].end, 0x2000);
    assert_int_equal(sample->mappings[0].rss_bytes, 10);
    assert_int_equal(sample->mappings[0].anonymous_bytes, 11);
    assert_int_equal(sample->mappings[0].swap_bytes, 12);
    assert_string_equal(sample->mappings[0].name, "/a \"b\"\n\x1b");
    assert_true(sample->mappings[1].end == UINT64_C(0xffffffffff601000));
    assert_string_equal(sample->mappings[1].name, "?");
    seep_external_samples_fini(&read);
    seep_external_samples_fini(&samples);
}

static void the_file_is_private_and_alone(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_external_samples samples = make_samples();
    char command[160];
    struct stat status;

    umask(0);
    assert_int_equal(seep_external_samples_write(fixture->recording, &samples),
                     0);
    assert_int_equal(seep_external_samples_write(fixture->recording, &samples),
                     0);

    assert_int_equal(stat(fixture->file, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    snprintf(command, sizeof(command), "test $(ls -A %s | wc -l) = 1",
             fixture->folder);
    assert_int_equal(system(command), 0);
    seep_external_samples_fini(&samples);
}

static void a_link_is_replaced_and_not_followed(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_external_samples samples = make_samples();
    struct seep_external_samples read;
    struct stat status;
    char victim[96];

    snprintf(victim, sizeof(victim), "%s/victim", fixture->folder);
    write_text(victim, HEADER);
    assert_int_equal(symlink("victim", fixture->file), 0);

    assert_int_equal(seep_external_samples_read(fixture->recording, &read),
                     -ENOTSUP);
    assert_int_equal(seep_external_samples_write(fixture->recording, &samples),
                     0);

    char *text = read_text(victim);
    assert_string_equal(text, HEADER);
    free(text);
    assert_int_equal(lstat(fixture->file, &status), 0);
    assert_true(S_ISREG(status.st_mode));
    seep_external_samples_fini(&samples);
}

static void none_is_no_entry(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_external_samples read;

    assert_int_equal(seep_external_samples_read(fixture->recording, &read),
                     -ENOENT);
}

static void a_pipe_is_refused_at_once(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_external_samples read;

    assert_int_equal(mkfifo(fixture->file, 0600), 0);
    assert_int_equal(seep_external_samples_read(fixture->recording, &read),
                     -ENOTSUP);
}

static void looks_of_an_earlier_recording_are_none(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_external_samples samples = make_samples();
    struct seep_external_samples read;

    write_text(fixture->recording,
               "seeprec\n 0123456789 0123456789 0123456789");
    assert_int_equal(seep_external_samples_write(fixture->recording, &samples),
                     0);
    assert_int_equal(seep_external_samples_read(fixture->recording, &read), 0);
    seep_external_samples_fini(&read);
    write_text(fixture->recording,
               "seeprec\n 0123456789 0123456789 012345678a");

    assert_int_equal(seep_external_samples_read(fixture->recording, &read), 0);
    seep_external_samples_fini(&read);
    write_text(fixture->recording,
               "seeprec\n 0123456789 0123456789 ----------");
    assert_int_equal(seep_external_samples_read(fixture->recording, &read),
                     -ENOENT);
    seep_external_samples_fini(&samples);
}

static int parse(const char *lines, struct seep_external_samples *ret_samples)
{
    char text[8192];

    snprintf(text, sizeof(text), HEADER "%s", lines);
    return seep_external_samples_parse(text, strlen(text), "/nowhere",
                                       ret_samples);
}

static void assert_refused(const char *lines)
{
    struct seep_external_samples samples = {.count = 77};

    assert_int_equal(parse(lines, &samples), -EBADMSG);
    assert_int_equal(samples.count, 77);
}

#define MAPPING(range, more) "{\"range\":\"" range "\",\"name\":\"\"" more "}"
#define LOOK(more) "{\"t_s\":1,\"mappings\":[]" more "}\n"
#define WITH(mappings) "{\"t_s\":1,\"mappings\":[" mappings "]}\n"

static void what_is_missing_is_not_known(void **state)
{
    struct seep_external_samples samples;

    (void)state;
    assert_int_equal(
        parse(WITH(MAPPING("1-2", "")) LOOK(",\"new\":[1]"), &samples), 0);
    assert_int_equal(samples.count, 2);
    assert_int_equal(samples.samples[0].cgroup_bytes, 0);
    assert_int_equal(samples.samples[0].mappings[0].rss_bytes, 0);
    seep_external_samples_fini(&samples);
}

static void half_a_last_line_is_left_out(void **state)
{
    struct seep_external_samples samples;

    (void)state;
    assert_int_equal(parse(LOOK("") "{\"t_s\":2,\"mappi", &samples), 0);
    assert_int_equal(samples.count, 1);
    seep_external_samples_fini(&samples);
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
    struct seep_external_samples samples;

    (void)state;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        assert_int_equal(seep_external_samples_parse(headers[i].text,
                                                     strlen(headers[i].text),
                                                     "/nowhere", &samples),
                         headers[i].error);
    }
}

static void more_than_was_promised_is_refused(void **state)
{
    const struct fixture *fixture = *state;
    struct seep_external_samples samples;
    size_t bytes = 3 << 20;
    char *text = malloc(bytes + sizeof(HEADER));

    strcpy(text, HEADER);
    for (int i = 0; i <= SEEP_EXTERNAL_SAMPLES_MAX; i++) {
        strcat(text, LOOK(""));
    }
    assert_int_equal(
        seep_external_samples_parse(text, strlen(text), "/nowhere", &samples),
        -EBADMSG);

    strcpy(text, HEADER);
    strcat(text, "{\"t_s\":1,\"mappings\":[");
    for (int i = 0; i <= SEEP_EXTERNAL_MAPPINGS_MAX; i++) {
        sprintf(text + strlen(text), "%s" MAPPING("%x-%x", ""),
                i > 0 ? "," : "", i + 1, i + 2);
    }
    strcat(text, "]}\n");
    assert_int_equal(
        seep_external_samples_parse(text, strlen(text), "/nowhere", &samples),
        -EBADMSG);

    memset(text, ' ', bytes);
    memcpy(text, HEADER "{\"t_s\":1,", strlen(HEADER "{\"t_s\":1,"));
    text[bytes - 32] = '\0';
    strcat(text, "\"mappings\":[]}\n");
    assert_int_equal(
        seep_external_samples_parse(text, strlen(text), "/nowhere", &samples),
        -EBADMSG);
    free(text);

    write_text(fixture->file, HEADER);
    assert_int_equal(truncate(fixture->file, (off_t)65 << 20), 0);
    assert_int_equal(seep_external_samples_read(fixture->recording, &samples),
                     -EBADMSG);
}

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (*seed >> 33) % limit;
}

/* Whatever is read keeps the promises of reader/process/sample.h. */
static void assert_sane(const struct seep_external_samples *samples)
{
    double last_s = 0;

    assert_true(samples->count <= SEEP_EXTERNAL_SAMPLES_MAX);
    for (size_t i = 0; i < samples->count; i++) {
        const struct seep_external_sample *sample = &samples->samples[i];
        uint64_t end = 0;
        assert_true(sample->t_s >= last_s);
        last_s = sample->t_s;
        assert_true(sample->mapping_count <= SEEP_EXTERNAL_MAPPINGS_MAX);
        for (size_t j = 0; j < sample->mapping_count; j++) {
            assert_true(sample->mappings[j].start >= end);
            assert_true(sample->mappings[j].start < sample->mappings[j].end);
            assert_non_null(sample->mappings[j].name);
            end = sample->mappings[j].end;
        }
    }
}

static void damage_is_refused_or_harmless(void **state)
{
    static const char pieces[] = "0123456789-e.,:{}[]\"\n tnul\\u\xff";
    const struct fixture *fixture = *state;
    struct seep_external_samples samples = make_samples();
    uint64_t seed = 20261121;

    assert_int_equal(seep_external_samples_write(fixture->recording, &samples),
                     0);
    seep_external_samples_fini(&samples);
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
        if (seep_external_samples_parse(text, kept, "/nowhere", &samples) ==
            0) {
            assert_sane(&samples);
            seep_external_samples_fini(&samples);
        }
        free(text);
    }
    free(whole);
}

static void the_first_and_the_last_always_stay(void **state)
{
    struct seep_external_samples samples = {0};

    (void)state;
    for (int i = 1; i <= 5000; i++) {
        add(&samples, i);
        assert_true(samples.count <= SEEP_EXTERNAL_SAMPLES_MAX);
        assert_true(samples.samples[0].t_s == 1);
        assert_true(samples.samples[samples.count - 1].t_s == i);
    }
    assert_int_equal(samples.count, SEEP_EXTERNAL_SAMPLES_MAX);
    seep_external_samples_fini(&samples);
}

static void thinned_looks_are_spread_over_the_run(void **state)
{
    struct seep_external_samples samples = {0};
    double t_s = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        t_s += i < 20 ? 1 : 10;
        add(&samples, t_s);
    }
    for (size_t i = 1; i < samples.count; i++) {
        double gap_s = samples.samples[i].t_s - samples.samples[i - 1].t_s;
        assert_true(gap_s <= 3 * t_s / SEEP_EXTERNAL_SAMPLES_MAX);
    }
    seep_external_samples_fini(&samples);
}

static void time_that_goes_back_is_refused(void **state)
{
    struct seep_external_samples samples = {0};
    struct seep_external_sample sample = {.t_s = 1};

    (void)state;
    add(&samples, 2);
    assert_int_equal(seep_external_samples_add(&samples, &sample), -EINVAL);
    assert_int_equal(samples.count, 1);
    seep_external_samples_fini(&samples);
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
