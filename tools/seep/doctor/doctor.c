/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The checks one after the other, and what they come to.
 */
#include "doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/thread.h"
#include "options/option.h"
#include "options/variables.h"
#include "reader/process/cgroup.h"
#include "reader/report/report.h"
#include "words/words.h"
#include "json/json.h"

/*
 * A trial. Invariant: who is waited for is ours, and a
 * child that does not end is killed with its group and reaped, or left if it
 * cannot even die.
 */

#define STEP_MS 20
#define DEATH_LIMIT_NS UINT64_C(2000000000)
#define SECOND_NS 1e9

/* Of all launchers those that a Python is often wrapped in; seep is a launcher
 * as well, and here it is what is recorded. */
#define SKIPPED "sh:dash:bash:zsh:env"

struct run {
    pid_t pid;
    int fds[2]; /* its stdout and stderr */
    uint64_t due_ns;
};

/* In the child: the environment that `seep run` would give it. */
static void set_environment(const char *library, const char *sample,
                            const char *folder)
{
    char *text = library == NULL
                     ? NULL
                     : seep_launch_join(library, getenv("LD_PRELOAD"));

    if (text == NULL) {
        return;
    }
    setenv("LD_PRELOAD", text, 1);
    if (asprintf(&text, "%s/%%n.seep", folder) >= 0) {
        setenv("SEEP_OUT", text, 1);
    }
    setenv("SEEP_OUT_ANY", "1", 1); /* a trial may lie anywhere */
    setenv("SEEP_SAMPLE", sample, 1);
    setenv("SEEP_SIZE", "4MiB", 1);
    setenv("SEEP_PYTHON", "frames", 1);
    setenv("SEEP_SKIP", SKIPPED, 1);
}

static void become(char *const *argv, const int out[2], const int error[2])
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    setpgid(0, 0);
    dup2(null < 0 ? out[0] : null, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(error[1], STDERR_FILENO);
    execv(argv[0], argv);
    _exit(127);
}

static int start(char *const *argv, const char *library, const char *sample,
                 const char *folder, struct run *run)
{
    int out[2];
    int error[2];

    if (pipe2(out, O_CLOEXEC) < 0) {
        return -errno;
    }
    if (pipe2(error, O_CLOEXEC) < 0) {
        close(out[0]);
        close(out[1]);
        return -errno;
    }
    fflush(stdout);
    run->pid = fork();
    int result = run->pid < 0 ? -errno : 0;
    if (run->pid == 0) {
        set_environment(library, sample, folder);
        become(argv, out, error);
    }
    close(out[1]);
    close(error[1]);
    run->fds[0] = out[0];
    run->fds[1] = error[0];
    return result;
}

/* What came, behind what there is; more than fits is thrown away. */
static bool take(int fd, char *text, size_t size)
{
    size_t length = strlen(text);
    char bytes[512];
    ssize_t got = read(fd, bytes, sizeof(bytes));

    for (ssize_t i = 0; i < got && length + 1 < size; i++) {
        text[length++] = bytes[i] == '\0' ? ' ' : bytes[i];
    }
    text[length] = '\0';
    return got > 0;
}

/* Read until both are at their end, or the child has gone and nothing is left
 * in them: one that it started can hold them open. */
static bool follow(struct run *run, struct seep_doctor_trial *trial)
{
    bool ended = false;

    for (;;) {
        struct pollfd polled[2] = {{run->fds[0], POLLIN, 0},
                                   {run->fds[1], POLLIN, 0}};
        bool came = poll(polled, 2, ended ? 0 : STEP_MS) > 0;
        for (int i = 0; came && i < 2; i++) {
            if (polled[i].revents != 0 &&
                !take(run->fds[i], i == 0 ? trial->output : trial->complaint,
                      i == 0 ? sizeof(trial->output)
                             : sizeof(trial->complaint))) {
                close(run->fds[i]);
                run->fds[i] = -1;
            }
        }
        if (ended && !came) {
            return true;
        }
        if (!ended) {
            ended = waitpid(run->pid, &trial->status, WNOHANG) == run->pid;
        }
        if (seep_clock_ns(CLOCK_MONOTONIC) >= run->due_ns) {
            return ended;
        }
        if (!ended && run->fds[0] < 0 && run->fds[1] < 0) {
            poll(NULL, 0, STEP_MS);
        }
    }
}

static void end(struct run *run, bool ended)
{
    struct timespec step = {0, STEP_MS * 1000000L};
    uint64_t due_ns = seep_clock_ns(CLOCK_MONOTONIC) + DEATH_LIMIT_NS;
    int status;

    kill(-run->pid, SIGKILL);
    while (!ended && seep_clock_ns(CLOCK_MONOTONIC) < due_ns) {
        ended = waitpid(run->pid, &status, WNOHANG) == run->pid;
        nanosleep(&step, NULL);
    }
    for (int i = 0; i < 2; i++) {
        if (run->fds[i] >= 0) {
            close(run->fds[i]);
        }
    }
}

static void read_back(const struct seep_report *report,
                      struct seep_doctor_trial *trial)
{
    trial->recorded = true;
    trial->inert = report->inert;
    trial->unwinder = report->unwinder;
    trial->python_state = report->python_state;
    trial->event_count = report->pending_events;
    for (size_t i = 0; i < report->counter_count; i++) {
        if (strcmp(report->counters[i].name, "events") == 0) {
            trial->event_count += report->counters[i].value;
        }
    }
    trial->stack_count = report->site_count;
    trial->whole_count = 0;
    trial->python_count = 0;
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];
        trial->whole_count +=
            site->cut == SEEP_CUT_NONE || site->cut == SEEP_CUT_DEPTH;
        trial->python_count += seep_fold_has_python(site);
    }
}

/* Of several images (a launcher, and what it started) the last one that has a
 * Python counts, else the last. */
static void take_recording(const char *path, struct seep_doctor_trial *trial)
{
    struct seep_report_options options = {.symbols = false};
    struct seep_report *report;

    if (seep_report_open(path, &options, NULL, &report) == 0) {
        if (report->python_state != SEEP_PYTHON_NONE ||
            trial->python_state == SEEP_PYTHON_NONE) {
            read_back(report, trial);
        }
        seep_report_close(report);
    }
}

/* Read what lies in @folder and take it away. */
static void harvest(const char *folder, struct seep_doctor_trial *trial)
{
    char **paths;

    if (seep_report_list(folder, NULL, &paths) == 0) {
        for (size_t i = 0; paths[i] != NULL; i++) {
            take_recording(paths[i], trial);
            unlink(paths[i]);
        }
        seep_report_list_free(paths);
    }
    rmdir(folder);
}

static int make_folder(char folder[PATH_MAX])
{
    const char *temporary = getenv("TMPDIR");

    snprintf(folder, PATH_MAX, "%s/seep-doctor-XXXXXX",
             temporary != NULL && *temporary == '/' ? temporary : "/tmp");
    if (mkdtemp(folder) != NULL) {
        return 0;
    }
    /* a root that is read-only still has this, mostly */
    snprintf(folder, PATH_MAX, "/dev/shm/seep-doctor-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -errno;
}

void seep_doctor_try(char *const *argv, const char *library, const char *sample,
                     double limit_s, struct seep_doctor_trial *ret_trial)
{
    struct run run = {.due_ns = seep_clock_ns(CLOCK_MONOTONIC) +
                                (uint64_t)(limit_s * SECOND_NS)};
    char folder[PATH_MAX];

    *ret_trial = (struct seep_doctor_trial){.error = make_folder(folder)};
    if (ret_trial->error < 0) {
        return;
    }
    ret_trial->error = start(argv, library, sample, folder, &run);
    if (ret_trial->error == 0) {
        bool ended = follow(&run, ret_trial);
        end(&run, ended);
        ret_trial->error = ended ? 0 : -ETIMEDOUT;
    }
    harvest(folder, ret_trial);
    ret_trial->complaint[strcspn(ret_trial->complaint, "\n")] = '\0';
}

/*
 * Facts about this machine, this user and this installation.
 *
 * Invariant: what could end this process is tried in a child.
 */

#define TRIAL_LIMIT_S 10.0

static char own_path[PATH_MAX]; /* argv of a child is not const */

static const char *variable(const char *name)
{
    return getenv(name);
}

static uint64_t limit_of(int resource)
{
    struct rlimit limit;

    return getrlimit((__rlimit_resource_t)resource, &limit) < 0 ||
                   limit.rlim_cur == RLIM_INFINITY
               ? UINT64_MAX
               : limit.rlim_cur;
}

static int take_libc(struct dl_phdr_info *info, size_t size, void *path)
{
    (void)size;
    if (strncmp(seep_text_base_name(info->dlpi_name), "libc.so", 7) == 0) {
        snprintf(path, PATH_MAX, "%s", info->dlpi_name);
        return 1;
    }
    return 0;
}

static bool has_flag(const char *path, unsigned long flag)
{
    struct statvfs status;

    return statvfs(path, &status) == 0 && (status.f_flag & flag) != 0;
}

/* In a child: a filter may end who calls it. */
static int try_vm_readv(void)
{
    uint64_t from = 42;
    uint64_t to = 0;
    struct iovec local = {&to, sizeof(to)};
    struct iovec remote = {&from, sizeof(from)};
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
        _exit(got == (ssize_t)sizeof(to) && to == from ? 0
              : errno < 128                            ? errno
                                                       : EIO);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return 0;
    }
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECANCELED;
}

static void take_trial(struct seep_doctor_facts *facts)
{
    static char option[] = "--version";
    ssize_t length = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);
    char *argv[] = {own_path, option, NULL};

    own_path[length < 0 ? 0 : length] = '\0';
    if (facts->library != NULL) {
        facts->library_noexec = has_flag(facts->library, ST_NOEXEC);
        seep_doctor_try(argv, facts->library, "1", TRIAL_LIMIT_S,
                        &facts->trial);
    }
}

int seep_doctor_facts_take(const char *out, char *const *command,
                           struct seep_doctor_facts *ret_facts)
{
    static char libc_path[PATH_MAX];
    char *library = NULL;
    char *pattern = seep_launch_out(out);

    if (pattern == NULL) {
        seep_say("current folder", strerror(errno), "choose one with -o");
        return SEEP_EXIT_FAILED;
    }

    *ret_facts = (struct seep_doctor_facts){
        .root = "",
        .variable = variable,
        .environment = environ,
        .command = command,
        .glibc = gnu_get_libc_version(),
        .libc_path = libc_path,
        .file_limit_bytes = limit_of(RLIMIT_FSIZE),
        .limits = seep_place_limits(),
        .root_read_only = has_flag("/", ST_RDONLY),
    };
    ret_facts->size_bytes = seep_why_recording_bytes(&ret_facts->lacking);
    ret_facts->library_error = seep_launch_find_preload(&library);
    ret_facts->library = library;
    dl_iterate_phdr(take_libc, libc_path);
    seep_launch_try(pattern, ret_facts->file_limit_bytes, &ret_facts->folder);
    free(pattern);
    seep_launch_put_filter(&ret_facts->denied_calls); /* the trial's, too */
    ret_facts->vm_readv_error = try_vm_readv();
    take_trial(ret_facts);
    seep_doctor_python_take(ret_facts);
    return 0;
}

void seep_doctor_facts_close(struct seep_doctor_facts *facts)
{
    free((char *)(uintptr_t)facts->library);
}

static void (*const all_checks[])(const struct seep_doctor_facts *,
                                  struct seep_doctor *) = {
#define CHECK_ENTRY(name) seep_doctor_check_##name,
    SEEP_DOCTOR_CHECKS(CHECK_ENTRY)
#undef CHECK_ENTRY
};

void seep_doctor_check(const struct seep_doctor_facts *facts,
                       struct seep_doctor *doctor)
{
    for (size_t i = 0; i < sizeof(all_checks) / sizeof(all_checks[0]); i++) {
        all_checks[i](facts, doctor);
    }
}

void seep_doctor_find(struct seep_doctor *doctor, const char *check,
                      enum seep_doctor_level level, const char *remedy,
                      const char *reason, ...)
{
    struct seep_doctor_finding finding = {.check = check, .level = level};
    struct seep_doctor_finding *grown = reallocarray(
        doctor->findings, doctor->count + 1, sizeof(*doctor->findings));
    va_list arguments;

    va_start(arguments, reason);
    int length = vasprintf(&finding.reason, reason, arguments);
    va_end(arguments);
    finding.remedy = remedy == NULL ? NULL : strdup(remedy);
    doctor->findings = grown == NULL ? doctor->findings : grown;
    if (grown == NULL || length < 0 ||
        (remedy != NULL && finding.remedy == NULL)) {
        free(length < 0 ? NULL : finding.reason);
        free(finding.remedy);
        doctor->failed = true;
        return;
    }
    doctor->findings[doctor->count++] = finding;
}

void seep_doctor_close(struct seep_doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++) {
        free(doctor->findings[i].reason);
        free(doctor->findings[i].remedy);
    }
    free(doctor->findings);
}

size_t seep_doctor_count(const struct seep_doctor *doctor,
                         enum seep_doctor_level level)
{
    size_t count = 0;

    for (size_t i = 0; i < doctor->count; i++) {
        count += doctor->findings[i].level == level;
    }
    return count;
}

const char *seep_doctor_level_name(enum seep_doctor_level level)
{
    static const char *const names[] = {
        [SEEP_DOCTOR_OK] = "ok",
        [SEEP_DOCTOR_ABSENT] = "absent",
        [SEEP_DOCTOR_WARN] = "warn",
        [SEEP_DOCTOR_NO] = "no",
    };

    return names[level];
}

/* What does not work is said before what does. */
static const struct seep_doctor_finding *
first_no(const struct seep_doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++) {
        if (doctor->findings[i].level == SEEP_DOCTOR_NO) {
            return &doctor->findings[i];
        }
    }
    return NULL;
}

char *seep_doctor_sentence(const struct seep_doctor_facts *facts,
                           const struct seep_doctor *doctor)
{
    const struct seep_doctor_finding *no = first_no(doctor);
    size_t warn_count = seep_doctor_count(doctor, SEEP_DOCTOR_WARN);
    const char *command = facts->command == NULL ? "" : facts->command[0];
    char limits[48] = "";
    char *text = NULL;
    int length;

    if (warn_count > 0) {
        snprintf(limits, sizeof(limits), ", with %zu limit%s", warn_count,
                 warn_count == 1 ? "" : "s");
    }
    if (no != NULL && strcmp(no->check, "command") == 0) {
        length = asprintf(&text, "seep cannot record it: %s", no->reason);
    } else if (no != NULL) {
        length = asprintf(&text, "seep does not work here: %s", no->reason);
    } else if (*command != '\0') {
        length = asprintf(&text, "seep works here, and can record %s%s",
                          command, limits);
    } else {
        length = asprintf(&text, "seep works here%s", limits);
    }
    return length < 0 ? NULL : text;
}

const char *seep_doctor_path(const struct seep_doctor_facts *facts,
                             const char *path, char text[PATH_MAX])
{
    snprintf(text, PATH_MAX, "%s%s", facts->root, path);
    return text;
}

bool seep_doctor_can(const struct seep_doctor_facts *facts, const char *path,
                     int mode)
{
    char below[PATH_MAX];

    return access(seep_doctor_path(facts, path, below), mode) == 0;
}

bool seep_doctor_read(const struct seep_doctor_facts *facts, const char *path,
                      char *text, size_t bytes)
{
    char below[PATH_MAX];

    return seep_proc_text(seep_doctor_path(facts, path, below), text, bytes) >=
           0;
}

/*
 * What the checks found, for people and for machines: the answer, a row for
 * each finding, the next step.
 */

#define INDENT 18

static enum seep_style style_of(enum seep_doctor_level level)
{
    return level == SEEP_DOCTOR_NO       ? SEEP_STYLE_BAD
           : level == SEEP_DOCTOR_WARN   ? SEEP_STYLE_WARNING
           : level == SEEP_DOCTOR_ABSENT ? SEEP_STYLE_FAINT
                                         : SEEP_STYLE_PLAIN;
}

static enum seep_doctor_level worst_of(const struct seep_doctor *doctor)
{
    return seep_doctor_count(doctor, SEEP_DOCTOR_NO) > 0     ? SEEP_DOCTOR_NO
           : seep_doctor_count(doctor, SEEP_DOCTOR_WARN) > 0 ? SEEP_DOCTOR_WARN
                                                             : SEEP_DOCTOR_OK;
}

static void print_finding(struct seep_page *page,
                          const struct seep_doctor_finding *finding)
{
    char label[INDENT + 8];

    snprintf(label, sizeof(label), " %-5s %-10s",
             finding->level == SEEP_DOCTOR_ABSENT
                 ? "-"
                 : seep_doctor_level_name(finding->level),
             finding->check);
    seep_page_paragraph(page, style_of(finding->level), label, INDENT, "%s",
                        finding->reason);
    if (finding->remedy != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, "                  > ",
                            INDENT + 2, "%s", finding->remedy);
    }
}

/* What to do first about what is in the way; else how to begin. */
static void print_next(struct seep_page *page,
                       const struct seep_doctor_facts *facts,
                       const struct seep_doctor *doctor)
{
    const struct seep_doctor_finding *no = first_no(doctor);

    if (no != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, " next", 8, "%s: %s",
                            no->check,
                            no->remedy == NULL ? "see its row" : no->remedy);
        return;
    }
    seep_page_paragraph(page, SEEP_STYLE_STRONG, " next", 8, "seep run -- %s",
                        facts->command == NULL ? "python3 serve.py"
                                               : facts->command[0]);
}

/* The answer itself stands out, what follows it does not. */
static void print_sentence(struct seep_page *page, enum seep_style style,
                           const char *sentence)
{
    size_t length = strcspn(sentence, ",:");
    char *answer;

    if (sentence[length] != '\0') {
        length += sentence[length + 1] == ' ' ? 2U : 1U;
    }
    answer = strndup(sentence, length);
    if (answer != NULL) {
        seep_page_paragraph(page, style, answer, 2, "%s", sentence + length);
        free(answer);
    }
}

void seep_doctor_print(struct seep_page *page,
                       const struct seep_doctor_facts *facts,
                       const struct seep_doctor *doctor)
{
    enum seep_doctor_level worst = worst_of(doctor);
    char *sentence = seep_doctor_sentence(facts, doctor);

    print_sentence(page,
                   worst == SEEP_DOCTOR_OK ? SEEP_STYLE_GOOD : style_of(worst),
                   sentence == NULL ? "?" : sentence);
    free(sentence);
    for (size_t i = 0; i < doctor->count; i++) {
        print_finding(page, &doctor->findings[i]);
    }
    print_next(page, facts, doctor);
}

static json_t *finding_of(const struct seep_doctor_finding *finding)
{
    json_t *object = json_object();

    seep_json_put(object, "check", json_string(finding->check));
    seep_json_put(object, "level",
                  json_string(seep_doctor_level_name(finding->level)));
    seep_json_put(object, "reason", seep_json_text(finding->reason));
    seep_json_put(object, "remedy",
                  finding->remedy == NULL ? json_null()
                                          : seep_json_text(finding->remedy));
    return object;
}

int seep_doctor_print_json(FILE *file, const struct seep_doctor_facts *facts,
                           const struct seep_doctor *doctor)
{
    struct seep_json_out out = {.file = file};
    json_t *document = json_object();
    json_t *checks = json_array();
    char *sentence = seep_doctor_sentence(facts, doctor);

    for (size_t i = 0; i < doctor->count; i++) {
        json_array_append_new(checks, finding_of(&doctor->findings[i]));
    }
    seep_json_put(document, "schema", json_string("seep-doctor/1"));
    seep_json_put(document, "version", json_string(SEEP_VERSION));
    seep_json_put(document, "works",
                  json_boolean(worst_of(doctor) != SEEP_DOCTOR_NO));
    seep_json_put(document, "limits",
                  seep_json_count(seep_doctor_count(doctor, SEEP_DOCTOR_WARN)));
    seep_json_put(document, "sentence",
                  sentence == NULL ? json_null() : seep_json_text(sentence));
    seep_json_put(document, "checks", checks);
    seep_json_out_value(&out, document);
    free(sentence);
    return seep_json_out_finish(&out);
}
