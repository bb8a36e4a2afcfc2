/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for what is shown: a damaged recording is reported, and the
 * report shown in one of the views below, which the first byte chooses; by any
 * kind of row and in any width. SEEP_FUZZ_VIEW=NAME takes one view alone,
 * "all" shows the one report in each: to make it is most of a view's time.
 *
 * Invariant: what is shown is of its kind: a page has no byte that a terminal
 * could take for more than colour, a document can be parsed.
 */
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ci/ci.h"
#include "export/export.h"
#include "html/html.h"
#include "kind.h"
#include "metrics/metrics.h"
#include "read/gather.h"
#include "small.h"
#include "text/page.h"
#include "text/report.h"
#include "top/top.h"
#include "words/clean.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);

/* What is shown, and where. */
struct shown {
    const struct seep_report *report;
    const struct seep_report *honest; /* of the same seed */
    struct seep_page page;
    size_t size; /* of the input */
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed)
{
    return small_mutate(data, size, most, seed);
}

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void show_text(struct shown *shown, const struct seep_text_options *how)
{
    seep_view_text_reports(&shown->page, &shown->report, 1, how);
}

static void view_text(struct shown *shown)
{
    show_text(shown, &(struct seep_text_options){.site_limit = 0});
}

static void view_stacks(struct shown *shown)
{
    show_text(shown, &(struct seep_text_options){.stacks = true,
                                                 .whole_stacks = true});
}

static void view_brief(struct shown *shown)
{
    show_text(shown,
              &(struct seep_text_options){.brief = true, .site_limit = 2});
    seep_view_text_verdict(&shown->page, shown->report);
}

/* Where what is printed goes: in memory, from its start each time. */
struct output {
    FILE *file;
    char *text;
    size_t length;
};

static void output_begin(struct output *output)
{
    if (output->file == NULL) {
        output->file = open_memstream(&output->text, &output->length);
        must(output->file != NULL);
    }
    rewind(output->file);
}

/* @return how much there is, with a NUL behind it */
static size_t output_end(struct output *output)
{
    long length;

    must(fputc('\0', output->file) == 0 && fflush(output->file) == 0);
    length = ftell(output->file);
    must(length > 0);
    return (size_t)length - 1;
}

/* Not on the page: JSON has DEL as it is, which is no code of a terminal. */
static void show_json(const struct shown *shown,
                      const struct seep_json_options *options)
{
    static struct output output;
    size_t length;

    output_begin(&output);
    must(seep_json_reports(output.file, &shown->report, 1, 0, options) == 0);
    length = output_end(&output);
    must(kind_is_json(output.text, length));
}

/*
 * Parts of every kind, of what is no honest course; one of them as a document,
 * which one is of the damage. What is in that beside the part is what that of
 * all of the run has, so that most of it is left out.
 */
static void view_span(struct shown *shown)
{
    static const struct seep_span_wish wishes[] = {
        {.at.when = SEEP_SPAN_PEAK},
        {.since = {SEEP_SPAN_BEFORE, 5, NULL}},
        {.since = {SEEP_SPAN_TIME, 1, NULL}, .until.when = SEEP_SPAN_PEAK},
        {.at = {SEEP_SPAN_MARK, 0, "warm-up done"}},
    };

    const size_t count = sizeof(wishes) / sizeof(wishes[0]);
    const struct seep_json_options json = {
        .wish = wishes[shown->size / 2 % count], .no_series = true};

    for (size_t i = 0; i < count; i++) {
        show_text(shown, &(struct seep_text_options){.wish = wishes[i],
                                                     .temporary = i % 2 != 0});
    }
    show_json(shown, &json);
}

static void view_tree(struct shown *shown)
{
    show_text(shown, &(struct seep_text_options){.tree = SEEP_TREE_DOWN});
    show_text(shown,
              &(struct seep_text_options){.tree = SEEP_TREE_UP,
                                          .site_limit = 3,
                                          .wish.at.when = SEEP_SPAN_PEAK});
}

static void view_info(struct shown *shown)
{
    seep_view_text_info(&shown->page, shown->report);
}

static void view_info_json(struct shown *shown)
{
    must(seep_json_info(shown->page.file, &shown->report, 1, 0) == 0);
}

static void view_json(struct shown *shown)
{
    const struct seep_json_options options = {.site_limit = 0};

    must(seep_json_reports(shown->page.file, &shown->report, 1, 0, &options) ==
         0);
}

static void view_digest(struct shown *shown)
{
    must(seep_json_digest(shown->page.file, shown->report) == 0);
}

static void view_html(struct shown *shown)
{
    const struct seep_json_options options = {.site_limit = 0};
    int error = seep_html_write_reports(shown->page.file, &shown->report, 1, 0,
                                        &options);

    must(error == 0 || error == -ENOTSUP);
}

/* Two processes of one program. */
static void view_pair(struct shown *shown)
{
    const struct seep_report *both[] = {shown->report, shown->honest};
    const struct seep_text_options text = {.site_limit = 0};

    seep_view_text_reports(&shown->page, both, 2, &text);
}

static void view_pair_json(struct shown *shown)
{
    const struct seep_report *both[] = {shown->report, shown->honest};
    const struct seep_json_options json = {.no_series = true};

    must(seep_json_reports(shown->page.file, both, 2, 0, &json) == 0);
}

/* Every limit, on what is no report of an honest run. */
static void check(const struct shown *shown,
                  void (*show)(const struct shown *shown,
                               const struct seep_check_set *set))
{
    struct seep_check_limit limits[SEEP_CHECK_COUNT];
    struct seep_check_options options = {
        .limits = limits,
        .count = SEEP_CHECK_COUNT,
        .warmup_s = SEEP_CHECK_WARMUP_UNKNOWN,
        .baseline = &shown->honest,
        .baseline_count = 1,
    };
    struct seep_check_result *results;
    struct seep_check_set set = {.reports = &shown->report, .report_count = 1};

    for (int i = 0; i < SEEP_CHECK_COUNT; i++) {
        limits[i] = (struct seep_check_limit){.kind = (enum seep_check_kind)i,
                                              .space = SEEP_CHECK_ALL_SPACES};
    }
    if (seep_check_run(&options, &shown->report, 1, &results, &set.count) !=
        0) {
        abort();
    }
    set.results = results;
    show(shown, &set);
    free(results);
}

static void check_page(const struct shown *shown,
                       const struct seep_check_set *set)
{
    struct seep_page page = shown->page;

    seep_view_check(&page, set);
}

static void check_json(const struct shown *shown,
                       const struct seep_check_set *set)
{
    must(seep_json_check(shown->page.file, set) == 0);
}

static void check_github(const struct shown *shown,
                         const struct seep_check_set *set)
{
    must(seep_ci_github(shown->page.file, NULL, set) == 0);
}

/* What goes to a path goes to a file in memory, and from there to be read. */
static int memory_fd;

static const char *memory_path(void)
{
    static char path[64];

    if (path[0] == '\0') {
        memory_fd = memfd_create("seep-fuzz-out", MFD_CLOEXEC);
        must(memory_fd >= 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", memory_fd);
    }
    return path;
}

static void take_memory(FILE *file)
{
    char bytes[4096];
    off_t at = 0;
    ssize_t got;

    while ((got = pread(memory_fd, bytes, sizeof(bytes), at)) > 0) {
        fwrite(bytes, 1, (size_t)got, file);
        at += got;
    }
}

static void check_sarif(const struct shown *shown,
                        const struct seep_check_set *set)
{
    must(seep_ci_sarif(memory_path(), set) == 0);
    take_memory(shown->page.file);
}

static void check_junit(const struct shown *shown,
                        const struct seep_check_set *set)
{
    int error = seep_ci_junit(memory_path(), set);

    must(error == 0 || error == -ENOTSUP);
    if (error == 0) {
        take_memory(shown->page.file);
    }
}

static void view_check(struct shown *shown)
{
    check(shown, check_page);
}

static void view_check_json(struct shown *shown)
{
    check(shown, check_json);
}

static void view_github(struct shown *shown)
{
    check(shown, check_github);
}

static void view_sarif(struct shown *shown)
{
    check(shown, check_sarif);
}

static void view_junit(struct shown *shown)
{
    check(shown, check_junit);
}

/* Whatever a recording says, no line is of another's making. */
static void view_metrics(struct shown *shown)
{
    const struct seep_followed followed = {.path = "x",
                                           .report = shown->report};
    const struct seep_followed *list[] = {&followed};
    struct seep_metrics_input input = {
        .list = list, .count = 1, .site_limit = 10};
    struct seep_metrics_totals totals = {0};

    for (int format = 0; format < 2; format++) {
        struct seep_metrics_text text = {.format =
                                             (enum seep_metrics_format)format};
        char *rest = NULL;

        if (seep_metrics_make(&input, &totals, &text) != 0) {
            abort();
        }
        for (char *line = strtok_r(text.text, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest)) {
            if (strncmp(line, "seep_", 5) != 0 && strncmp(line, "# ", 2) != 0) {
                abort();
            }
        }
        free(text.text);
    }
    seep_metrics_totals_fini(&totals);
}

/* The report against one of an honest run, and the other way round. */
static void compare(struct shown *shown, bool json,
                    const struct seep_report *before,
                    const struct seep_report *now)
{
    struct seep_diff_set set;

    must(seep_diff_set_make(&before, 1, &now, 1, &set) == 0);
    set.before_name = strdup("before");
    set.now_name = strdup("now");
    if (json) {
        must(seep_json_diff(shown->page.file, &set, 0) == 0);
    } else {
        seep_view_diff(&shown->page, &set, 0);
    }
    seep_diff_set_close(&set);
}

static void view_diff(struct shown *shown)
{
    compare(shown, false, shown->honest, shown->report);
}

static void view_diff_json(struct shown *shown)
{
    compare(shown, true, shown->report, shown->honest);
}

/* Keys that look at everything; no line is wider than the terminal. */
static void view_top(struct shown *shown)
{
    static const int keys[] = {
        'n', 'w', 'l', SEEP_TOP_KEY_DOWN, SEEP_TOP_KEY_ENTER, 's'};
    const struct seep_top_size size = {
        .columns = shown->page.columns, .lines = 24, .target = "x"};
    struct seep_top_model model;

    seep_top_model_init(&model, 1);
    seep_top_model_take(&model, &shown->report, 1);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct seep_top_frame frame;

        if (seep_top_frame_make(&model, &size, &frame) != 0) {
            abort();
        }
        seep_top_frame_print(&frame, shown->page.file, true);
        seep_top_frame_fini(&frame);
        seep_top_model_press(&model, keys[i]);
    }
    seep_top_model_fini(&model);
}

/*
 * What must hold of what was printed.
 */

static void is_page(const char *text, size_t length)
{
    must(kind_is_page(text, length));
}

/* Some by another's reader as well: it takes longer than to print it. */
static void is_json(const char *text, size_t length)
{
    json_error_t error;
    json_t *value;

    must(kind_is_json(text, length));
    if (length % 64 == 0) {
        value = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
        must(value != NULL);
        json_decref(value);
    }
}

/* One document a line. */
static void is_json_lines(const char *text, size_t length)
{
    const char *end = text + length;

    while (text < end) {
        const char *line = memchr(text, '\n', (size_t)(end - text));

        must(line != NULL);
        is_json(text, (size_t)(line - text));
        text = line + 1;
    }
}

/* A table of CSV, whose lines end in two characters. */
static void is_table(const char *text, size_t length)
{
    must(kind_is_markup(text, length));
}

/* The rest of XML is libxml2's. */
static void is_xml(const char *text, size_t length)
{
    must(length == 0 || strncmp(text, "<?xml", 5) == 0);
    must(kind_is_markup(text, length));
}

/*
 * All that is not data is what it was in the first page, which is looked
 * through. Of what a recording says, no character but base64's is in a page.
 */
static void is_html(const char *text, size_t length)
{
    static const char begins[] = "id=\"data\">\n";
    static const char ends[] = "</script>\n";
    static char *first;
    static size_t head_bytes;
    static size_t tail_bytes;
    size_t data_bytes;

    if (length == 0) {
        return; /* it was built without a page */
    }
    if (first == NULL) {
        const char *data = strstr(text, begins);

        must(kind_is_markup(text, length) && data != NULL);
        head_bytes = (size_t)(data - text) + strlen(begins);
        tail_bytes = length - head_bytes -
                     kind_base64(text + head_bytes, length - head_bytes);
        must((first = malloc(head_bytes + tail_bytes)) != NULL);
        memcpy(first, text, head_bytes);
        memcpy(first + head_bytes, text + length - tail_bytes, tail_bytes);
        must(strncmp(first + head_bytes, ends, strlen(ends)) == 0);
    }
    must(length > head_bytes + tail_bytes);
    data_bytes = length - head_bytes - tail_bytes;
    must(memcmp(text, first, head_bytes) == 0);
    must(kind_base64(text + head_bytes, data_bytes) == data_bytes);
    must(memcmp(text + head_bytes + data_bytes, first + head_bytes,
                tail_bytes) == 0);
}

/* Keys of ncurses would be no text: the frames are what is drawn. */
static void is_any(const char *text, size_t length)
{
    must(strlen(text) == length);
}

/* What of a format can be told; of the others, which are binary, nothing. */
static void is_export(const char *name, const char *text, size_t length)
{
    static const struct {
        const char *name;
        void (*must_be)(const char *text, size_t length);
    } kinds[] = {
        {"folded", is_page}, {"speedscope", is_json},  {"perfetto", is_json},
        {"csv", is_table},   {"jsonl", is_json_lines},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            kinds[i].must_be(text, length);
        }
    }
}

/* Two processes in every format, by every weight. */
static void view_export(struct shown *shown)
{
    static struct output output;
    const struct seep_export_format *format;

    for (size_t i = 0; (format = seep_export_format_at(i)) != NULL; i++) {
        size_t length;
        struct seep_export export = {
            .weight = (enum seep_export_weight)(shown->page.columns %
                                                SEEP_EXPORT_WEIGHT_COUNT),
            .process_count = 2};

        output_begin(&output);
        export.file = output.file;
        if (format->add == NULL || /* the page is a view of its own */
            (format->begin != NULL && format->begin(&export) == -ENOTSUP)) {
            continue;
        }
        must(format->add(&export, shown->report) == 0);
        must(format->add(&export, shown->honest) == 0);
        must(format->end == NULL || format->end(&export) == 0);
        length = output_end(&output);
        is_export(format->name, output.text, length);
    }
}

/* One a line: what shows a report in another way is a view here. */
static const struct view {
    const char *name;
    void (*show)(struct shown *shown);
    void (*must_be)(const char *text, size_t length);
} views[] = {
    {"text", view_text, is_page},
    {"stacks", view_stacks, is_page},
    {"brief", view_brief, is_page},
    {"info", view_info, is_page},
    {"info-json", view_info_json, is_json},
    {"json", view_json, is_json},
    {"pair", view_pair, is_page},
    {"pair-json", view_pair_json, is_json},
    {"check", view_check, is_page},
    {"check-json", view_check_json, is_json},
    {"github", view_github, is_page},
    {"sarif", view_sarif, is_json},
    {"junit", view_junit, is_xml},
    {"metrics", view_metrics, is_any},
    {"diff", view_diff, is_page},
    {"diff-json", view_diff_json, is_json},
    {"top", view_top, is_any},
    {"html", view_html, is_html},
    {"span", view_span, is_page},
    {"tree", view_tree, is_page},
    {"digest", view_digest, is_json_lines},
    {"export", view_export, is_any},
};

#define VIEWS (sizeof(views) / sizeof(views[0]))

static const struct view *choose(uint8_t byte, const char *name)
{
    for (size_t i = 0; i < VIEWS && name != NULL; i++) {
        if (strcmp(views[i].name, name) == 0) {
            return &views[i];
        }
    }
    return &views[byte % VIEWS];
}

static struct seep_report *report_of(const struct small *small,
                                     const struct seep_report_options *options)
{
    struct seep_refusal refusal = {.error = 0};
    struct seep_report *report = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", small->fd);
    must(seep_report_open(path, options, &refusal, &report) == 0 ||
         (refusal.reason[0] != '\0' && refusal.error != 0));
    return report;
}

/* The seed as it is, by line. */
static const struct seep_report *honest_of(uint8_t seed)
{
    static const struct seep_report *all[SMALL_SEEDS_MAX];
    const struct seep_report_options options = {.symbols = false};
    const uint8_t input[] = {0, seed};
    struct small small;

    if (small_damage(input, sizeof(input), &small) && all[small.seed] == NULL) {
        all[small.seed] = report_of(&small, &options);
        must(all[small.seed] != NULL);
    }
    return all[small.seed];
}

/*
 * Values of jansson's, which is not looked at, are very many and small, and the
 * sanitizer takes long for each: while there is fuzzing (SEEP_FUZZ_ARENA) they
 * have a room that is theirs alone, empty for each view.
 */

#define ARENA_BYTES ((size_t)64 << 20)
#define ARENA_ALIGN 16U

static struct {
    char *bytes;
    size_t used;
} arena;

static void *take_room(size_t bytes)
{
    size_t at = arena.used;

    must(bytes <= ARENA_BYTES - at - ARENA_ALIGN);
    arena.used += (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    return arena.bytes + at;
}

static void give_room(void *bytes)
{
    (void)bytes;
}

static void arena_begin(void)
{
    if (getenv("SEEP_FUZZ_ARENA") != NULL) {
        arena.bytes = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(arena.bytes != MAP_FAILED);
        json_set_alloc_funcs(take_room, give_room);
    }
}

static void init(void)
{
    static bool is_done;

    if (!is_done) {
        seep_clean_init();
        seep_json_init();
        arena_begin();
        is_done = true;
    }
}

/* In any width: of the damage, so that it is the same for the same input. */
static void show(const struct view *view, struct shown *shown)
{
    static struct output output;
    size_t length;

    arena.used = 0;
    output_begin(&output);
    seep_page_init(&shown->page, output.file, SEEP_COLOR_ALWAYS);
    shown->page.columns = shown->size % 3 == 0 ? 80 : shown->size * 7 % 256;
    view->show(shown);
    length = output_end(&output);
    view->must_be(output.text, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seep_report_options options = {.symbols = false};
    const char *name = getenv("SEEP_FUZZ_VIEW");
    bool all = name != NULL && strcmp(name, "all") == 0;
    const struct view *view;
    struct shown shown;
    struct seep_report *report;
    struct small small;

    if (size < 2) {
        return 0;
    }
    init();
    shown.honest = honest_of(data[1] & SMALL_SEED_MASK);
    (void)small_damage(data, size, &small);
    options.by = (enum seep_grouping)(data[0] / VIEWS % SEEP_GROUPING_COUNT);
    view = choose(data[0], name);
    options.stacks =
        all || view->show == view_html || view->show == view_export;
    report = report_of(&small, &options);
    if (report != NULL) {
        shown.report = report;
        shown.size = size;
        for (size_t i = 0; i < VIEWS && all; i++) {
            show(&views[i], &shown);
        }
        if (!all) {
            show(view, &shown);
        }
        seep_report_close(report);
    }
    return 0;
}
