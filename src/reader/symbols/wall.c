/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A child for what a stranger may have written: see wall.h.
 *
 * Invariant: the reader waits for its child no longer than a deadline, and
 * believes nothing that it sends: an answer is checked as a recording is. The
 * child only reads what is below, allocates and ends by _exit(), so that it
 * may be forked where there are threads.
 */
#include "reader/symbols/wall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "seep/recording.h"

#define SECOND_NS UINT64_C(1000000000)
/* A file of some GiB with all its DWARF takes seconds on a busy machine. */
#define MODULE_NS (12 * SECOND_NS)
#define SERVER_NS (120 * SECOND_NS)
/* What modules that fail may cost a reader, all together, and one that is good
 * on a machine with other work; a reader that goes on for ever gets a part of
 * its time back. */
#define LOST_NS (30 * SECOND_NS)
#define LOST_SHARE 64
#define CPU_SECONDS 120U

#define MEMORY_BYTES (UINT64_C(640) << 20) /* beyond what the reader has */
#define FILE_BYTES_MAX (UINT64_C(8) << 30)
#define FILES_BYTES_MAX (UINT64_C(16) << 30)

#define TEXT_BYTES_MAX 8192U /* of a name or a path */
#define TEXTS_BYTES_MAX \
    ((size_t)SEEP_WALL_FRAMES_MAX * 2 * (TEXT_BYTES_MAX + 1))

/* As much of it as its counts of bytes say, each without a 0. */
struct question {
    struct asked {
        uint64_t offset;
        uint64_t most_bytes;
        uint32_t what; /* 0: frames are asked for */
        uint32_t path_bytes;
        uint32_t class_bytes;
        uint32_t is_map;
        uint32_t build_id_bytes;
        uint8_t build_id[SEEP_BUILD_ID_MAX];
        struct seep_symbol_thing thing; /* of no hop: none is asked for */
    } head;
    char path[PATH_MAX];
    char class[SEEP_WALL_CLASS_BYTES_MAX + 1];
};

/* .texts: of each frame the function, a 0, the file, a 0. Bytes that were read
 * follow: they are in no message. */
struct seep_wall_message {
    struct head {
        int32_t error;
        uint32_t count;
        uint32_t text_bytes;
        uint64_t read_bytes;
    } head;
    struct frame {
        uint32_t line;
        uint32_t inlined;
        uint32_t function_bytes;
        uint32_t file_bytes;
    } frames[SEEP_WALL_FRAMES_MAX];
    char texts[TEXTS_BYTES_MAX];
};

static uint64_t time_ns(clockid_t clock)
{
    struct timespec now = {0, 0};

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/*
 * Behind the wall.
 *
 * Invariant: memory is limited before the first file is opened. The limit is of
 * addresses, so each file that is mapped raises it by its size.
 */

static uint64_t allowed_bytes; /* 0: not behind it */

static int allow(uint64_t bytes, uint64_t most)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = most};

    return setrlimit(RLIMIT_AS, &limit) == 0 ? 0 : -errno;
}

int seep_wall_admit(uint64_t size_bytes)
{
    struct rlimit limit;

    if (size_bytes > FILE_BYTES_MAX) {
        return -EFBIG;
    }
    if (allowed_bytes == 0 || getrlimit(RLIMIT_AS, &limit) != 0) {
        return 0;
    }
    allowed_bytes += size_bytes;
    return allowed_bytes > limit.rlim_max
               ? -EFBIG
               : allow(allowed_bytes, limit.rlim_max);
}

static void limit_memory(void)
{
    unsigned long pages = 1UL << 20; /* without /proc: 4 GiB */
    FILE *file = fopen("/proc/self/statm", "re");
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) != 0 ||
        (file != NULL && fscanf(file, "%lu", &pages) != 1)) {
        _exit(1);
    }
    if (file != NULL) {
        fclose(file);
    }
    allowed_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE) + MEMORY_BYTES;
    if (allowed_bytes + FILES_BYTES_MAX < limit.rlim_max) {
        limit.rlim_max = allowed_bytes + FILES_BYTES_MAX;
    }
    if (allowed_bytes < limit.rlim_cur) {
        allow(allowed_bytes, limit.rlim_max);
    } else {
        allowed_bytes = 0; /* the user's own limit is lower */
    }
}

static void limit_rights(void)
{
    static const struct rlimit none = {0, 0};
    static const struct rlimit cpu = {CPU_SECONDS, CPU_SECONDS};

    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_CPU, &cpu);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* A sanitizer makes calls of its own. */
#if defined(ARCHITECTURE) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)

#define LOAD(member) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
#define REFUSE RETURN(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW(number)                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##number, 0, 1), \
        RETURN(SECCOMP_RET_ALLOW)
/* Only where none of @bits is set in the lower half of an argument. */
#define ALLOW_WITHOUT(number, argument, bits)                           \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##number, 0, 4),            \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                              \
                 offsetof(struct seccomp_data, args) + 8 * (argument)), \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0),               \
        RETURN(SECCOMP_RET_ALLOW), REFUSE

/* Little endian both. What is not allowed fails: libraries know how to go on
 * without, and no version of libc is killed for what it has anew. */
static void filter_calls(void)
{
    static struct sock_filter code[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        REFUSE,
        LOAD(nr),
        ALLOW(recvfrom),
        ALLOW(sendto),
        ALLOW(sendmsg),
        ALLOW(pread64),
        ALLOW(read),
        ALLOW(lseek),
        ALLOW(close),
        ALLOW(fstat),
        ALLOW(newfstatat),
#ifdef SYS_statx
        ALLOW(statx),
#endif
        ALLOW(fcntl),
        ALLOW(munmap),
        ALLOW(mremap),
        ALLOW(madvise),
        ALLOW(brk),
        ALLOW(futex),
        ALLOW(getrandom),
        ALLOW(rt_sigreturn),
        ALLOW(rt_sigprocmask),
        ALLOW(exit),
        ALLOW(exit_group),
        ALLOW_WITHOUT(openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC),
        ALLOW_WITHOUT(mmap, 2, PROT_EXEC),
        ALLOW_WITHOUT(mprotect, 2, PROT_EXEC),
        /* its own limits only, and never a higher one than the highest */
        ALLOW_WITHOUT(prlimit64, 0, UINT32_MAX),
        REFUSE,
    };
    struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
#else
static void filter_calls(void)
{
}
#endif

/* The socket is 3, and there is nothing else but what libdw may print to. */
static void keep_socket(const struct seep_wall *wall, int socket)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd < (wall->asks_servers ? 2 : 3); fd++) {
        dup2(null, fd);
    }
    if (socket != 3) {
        dup2(socket, 3);
    }
    syscall(SYS_close_range, 4U, ~0U, 0U);
}

/* @return how much of @text is sent, with its 0 */
static uint32_t append(struct seep_wall_message *message, const char *text)
{
    uint32_t bytes = (uint32_t)strnlen(text, TEXT_BYTES_MAX);

    memcpy(message->texts + message->head.text_bytes, text, bytes);
    message->texts[message->head.text_bytes + bytes] = '\0';
    message->head.text_bytes += bytes + 1;
    return bytes + 1;
}

static bool send_all(int socket, const void *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(socket, from, bytes, MSG_NOSIGNAL);

        if (sent <= 0 && errno != EINTR) {
            return false;
        }
        if (sent > 0) {
            from = (const char *)from + sent;
            bytes -= (size_t)sent;
        }
    }
    return true;
}

static bool send_message(struct seep_wall_message *message)
{
    struct iovec parts[] = {
        {&message->head, sizeof(message->head)},
        {message->frames, message->head.count * sizeof(*message->frames)},
        {message->texts, message->head.text_bytes},
    };
    struct msghdr whole = {.msg_iov = parts, .msg_iovlen = 3};
    ssize_t sent = sendmsg(3, &whole, MSG_NOSIGNAL);

    for (size_t i = 0; sent >= 0 && i < 3; i++) {
        size_t part = parts[i].iov_len;
        size_t gone = (size_t)sent < part ? (size_t)sent : part;

        sent -= (ssize_t)gone;
        if (!send_all(3, (char *)parts[i].iov_base + gone, part - gone)) {
            return false;
        }
    }
    return sent >= 0;
}

static bool reply(struct seep_wall_message *message, int error,
                  const struct seep_symbol_answer *answer)
{
    message->head = (struct head){.error = error};
    for (size_t i = 0; error == 0 && i < answer->count; i++) {
        const struct seep_symbol_frame *frame = &answer->frames[i];

        message->frames[i] = (struct frame){
            frame->line,
            frame->inlined,
            append(message, frame->function),
            append(message, frame->file),
        };
        message->head.count++;
    }
    return send_message(message);
}

static bool reply_bytes(const struct seep_wall *wall,
                        const struct question *taken)
{
    void *bytes = NULL;
    uint64_t count = 0;
    struct head head = {
        .error = wall->read(wall->context, taken->path, taken->head.what,
                            taken->head.most_bytes, &bytes, &count),
    };
    bool is_sent;

    head.read_bytes = head.error == 0 ? count : 0;
    is_sent = send_all(3, &head, sizeof(head)) &&
              send_all(3, bytes, (size_t)head.read_bytes);
    free(bytes);
    return is_sent;
}

static bool receive_all(void *to, size_t bytes)
{
    return bytes == 0 || recv(3, to, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

/* The reader is ours: what it sends is what it had checked. */
static bool take_question(struct question *taken,
                          struct seep_symbol_module *source,
                          struct seep_wall_question *question)
{
    if (!receive_all(&taken->head, sizeof(taken->head)) ||
        !receive_all(taken->path, taken->head.path_bytes) ||
        !receive_all(taken->class, taken->head.class_bytes)) {
        return false;
    }
    taken->path[taken->head.path_bytes] = '\0';
    taken->class[taken->head.class_bytes] = '\0';
    taken->head.thing.class_symbol = taken->class;
    *source = (struct seep_symbol_module){taken->path, taken->head.build_id,
                                          taken->head.build_id_bytes};
    *question = (struct seep_wall_question){
        source, taken->head.is_map != 0, taken->head.offset,
        taken->head.thing.hop_count > 0 ? &taken->head.thing : NULL};
    return true;
}

static _Noreturn void serve(const struct seep_wall *wall, int socket)
{
    static struct question taken;
    struct seep_wall_question question;
    struct seep_symbol_module source;
    sigset_t all;

    sigfillset(&all); /* handlers are the reader's */
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    keep_socket(wall, socket);
    limit_memory();
    limit_rights();
    if (!wall->asks_servers) {
        filter_calls();
    }
    while (take_question(&taken, &source, &question)) {
        struct seep_symbol_answer answer = {NULL, 0};

        if (taken.head.what != 0
                ? !reply_bytes(wall, &taken)
                : !reply(wall->message,
                         wall->answer(wall->context, &question, &answer),
                         &answer)) {
            break;
        }
    }
    _exit(0);
}

/* Before it. */

static int begin(struct seep_wall *wall)
{
    int ends[2];
    pid_t child;

    if (wall->message == NULL) {
        wall->message = malloc(sizeof(*wall->message));
    }
    if (wall->message == NULL ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return -EAGAIN;
    }
    child = fork();
    if (child == 0) {
        serve(wall, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return -EAGAIN;
    }
    wall->child = child;
    wall->socket = ends[0];
    wall->first = 0;
    wall->is_crowded = false;
    return 0;
}

/* A child that hangs in the kernel is left to it. */
void seep_wall_rest(struct seep_wall *wall)
{
    static const struct timespec pause = {.tv_nsec = 1000000};

    if (wall->child == 0) {
        return;
    }
    close(wall->socket);
    kill(wall->child, SIGKILL);
    for (int i = 0; i < 1000 && waitpid(wall->child, NULL, WNOHANG) == 0; i++) {
        nanosleep(&pause, NULL);
    }
    wall->child = 0;
}

void seep_wall_fini(struct seep_wall *wall)
{
    seep_wall_rest(wall);
    free(wall->message);
    wall->message = NULL;
}

/* Of the child so far; 0 where it is not told. */
static uint64_t cpu_ns(const struct seep_wall *wall)
{
    clockid_t clock;

    return clock_getcpuclockid(wall->child, &clock) == 0 ? time_ns(clock) : 0;
}

/* When to give an answer up: by our time, or by the child's. */
struct deadline {
    uint64_t at_ns;
    uint64_t at_cpu_ns;
};

/* Time of the child's passes no faster than ours, so it is asked for when it
 * may be up. @return false: it is too late */
static bool wait_for_more(const struct seep_wall *wall,
                          const struct deadline *deadline)
{
    struct pollfd waits = {.fd = wall->socket, .events = POLLIN};
    uint64_t now = time_ns(CLOCK_MONOTONIC);
    uint64_t used = cpu_ns(wall);
    uint64_t left;

    if (now >= deadline->at_ns || used >= deadline->at_cpu_ns) {
        return false;
    }
    left = deadline->at_ns - now;
    if (deadline->at_cpu_ns - used < left) {
        left = deadline->at_cpu_ns - used;
    }
    poll(&waits, 1, (int)(left / 1000000) + 1);
    return true;
}

static int receive(const struct seep_wall *wall, void *to, size_t bytes,
                   const struct deadline *deadline)
{
    while (bytes > 0) {
        ssize_t got = recv(wall->socket, to, bytes, MSG_DONTWAIT);

        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            return -ECHILD;
        }
        if (got > 0) {
            to = (char *)to + got;
            bytes -= (size_t)got;
        } else if (!wait_for_more(wall, deadline)) {
            return -ETIMEDOUT;
        }
    }
    return 0;
}

/* What is asked, and where the answer goes. */
struct asking {
    struct question sent;
    struct seep_symbol_memory *memory;
    struct seep_symbol_answer *ret_answer;
    void **ret_bytes; /* of what is read */
    uint64_t *ret_count;
    uint64_t most_ns; /* 0: as long as others */
};

static int receive_message(const struct seep_wall *wall,
                           const struct deadline *deadline)
{
    struct seep_wall_message *message = wall->message;
    struct head *head = &message->head;
    int result;

    if ((head->count == 0) == (head->error == 0) ||
        head->count > SEEP_WALL_FRAMES_MAX ||
        head->text_bytes > TEXTS_BYTES_MAX || head->read_bytes > 0) {
        return -EBADMSG;
    }
    result = receive(wall, message->frames,
                     head->count * sizeof(*message->frames), deadline);
    return result != 0
               ? result
               : receive(wall, message->texts, head->text_bytes, deadline);
}

static int receive_bytes(const struct seep_wall *wall,
                         const struct asking *asking,
                         const struct deadline *deadline)
{
    uint64_t count = wall->message->head.read_bytes;
    void *bytes;
    int result;

    if (wall->message->head.error != 0) {
        return 0;
    }
    if (count == 0 || count > asking->sent.head.most_bytes) {
        return -EBADMSG;
    }
    bytes = malloc((size_t)count);
    result =
        bytes == NULL ? -ENOMEM : receive(wall, bytes, (size_t)count, deadline);
    if (result != 0) {
        free(bytes);
        return result;
    }
    *asking->ret_bytes = bytes;
    *asking->ret_count = count;
    return 0;
}

static int receive_reply(const struct seep_wall *wall,
                         const struct asking *asking,
                         const struct deadline *deadline)
{
    const struct head *head = &wall->message->head;
    int result = receive(wall, &wall->message->head, sizeof(*head), deadline);

    if (result != 0) {
        return result;
    }
    if (head->error < -4095 || head->error > 0) {
        return -EBADMSG;
    }
    return asking->ret_bytes != NULL ? receive_bytes(wall, asking, deadline)
                                     : receive_message(wall, deadline);
}

/* The text of @bytes at @at, which is moved behind it; NULL: it is none. */
static const char *take_text(const struct seep_wall_message *message,
                             size_t *at, size_t bytes)
{
    const char *text = message->texts + *at;

    if (bytes == 0 || bytes > message->head.text_bytes - *at ||
        strnlen(text, bytes) != bytes - 1) {
        return NULL;
    }
    *at += bytes;
    return text;
}

static int copy_answer(const struct seep_wall_message *message,
                       struct seep_symbol_memory *memory,
                       struct seep_symbol_answer *ret_answer)
{
    struct seep_symbol_frame frames[SEEP_WALL_FRAMES_MAX];
    struct seep_symbol_answer answer = {frames, message->head.count};
    size_t at = 0;

    for (size_t i = 0; i < answer.count; i++) {
        const struct frame *sent = &message->frames[i];

        frames[i] = (struct seep_symbol_frame){
            .function = take_text(message, &at, sent->function_bytes),
            .line = sent->line,
            .inlined = sent->inlined != 0,
        };
        if (frames[i].function != NULL) {
            frames[i].file = take_text(message, &at, sent->file_bytes);
        }
        if (frames[i].file == NULL) {
            return -EBADMSG;
        }
    }
    answer.frames = seep_symbol_memory_copy(memory, &answer);
    if (answer.frames == NULL) {
        return -ENOMEM;
    }
    *ret_answer = answer;
    return 0;
}

/* Of all readers of this process: a file can be named in many recordings. */
static struct {
    uint64_t ns;
    uint64_t at_ns;
} lost;

static uint64_t lost_by(uint64_t now)
{
    uint64_t back = (now - lost.at_ns) / LOST_SHARE;

    return lost.ns > back ? lost.ns - back : 0;
}

static uint64_t left_of(uint64_t most, uint64_t spent)
{
    return spent < most ? most - spent : 0;
}

static struct deadline deadline_of(const struct seep_wall *wall,
                                   const struct asking *asking,
                                   const struct seep_wall_spent *spent,
                                   uint64_t now, uint64_t cpu)
{
    bool asks = wall->asks_servers;
    uint64_t left = left_of(asks ? SERVER_NS : LOST_NS, spent->wait_ns);
    uint64_t left_cpu = left_of(asks ? SERVER_NS : MODULE_NS, spent->cpu_ns);
    uint64_t gone = lost_by(now);

    if (!asks && left + gone > LOST_NS) {
        left = left_of(LOST_NS, gone);
    }
    if (asking->most_ns > 0 && asking->most_ns < left_cpu) {
        left_cpu = asking->most_ns;
    }
    return (struct deadline){now + left, cpu + left_cpu};
}

static bool send_question(struct seep_wall *wall, const struct question *sent)
{
    uint64_t hash = seep_hash_add(
        seep_hash_bytes(sent->path, sent->head.path_bytes),
        seep_hash_bytes(sent->head.build_id, sent->head.build_id_bytes));

    wall->first = wall->first == 0 ? hash : wall->first;
    wall->is_crowded |= wall->first != hash;
    return send_all(wall->socket, sent,
                    sizeof(sent->head) + sent->head.path_bytes) &&
           send_all(wall->socket, sent->class, sent->head.class_bytes);
}

/* @return of the file, or of the child; then it is gone */
static int ask_once(struct seep_wall *wall, const struct asking *asking,
                    struct seep_wall_spent *spent)
{
    uint64_t start = time_ns(CLOCK_MONOTONIC);
    int result = wall->child == 0 ? begin(wall) : 0;
    uint64_t cpu;

    if (result != 0) {
        return result;
    }
    cpu = cpu_ns(wall);
    struct deadline deadline = deadline_of(wall, asking, spent, start, cpu);
    result = send_question(wall, &asking->sent)
                 ? receive_reply(wall, asking, &deadline)
                 : -ECHILD;
    if (result == 0) {
        result = wall->message->head.error;
        if (result == 0 && asking->ret_bytes == NULL) {
            result =
                copy_answer(wall->message, asking->memory, asking->ret_answer);
        } else if (result != 0 && result != -ENOMEM && result != -EFBIG) {
            return result; /* it is there and well */
        }
    }
    spent->cpu_ns += left_of(cpu_ns(wall), cpu);
    spent->wait_ns += time_ns(CLOCK_MONOTONIC) - start;
    if (result != 0) {
        seep_wall_rest(wall);
    }
    return result;
}

static int ask(struct seep_wall *wall, const struct asking *asking,
               struct seep_wall_spent *spent)
{
    uint64_t start = time_ns(CLOCK_MONOTONIC);
    int result = ask_once(wall, asking, spent);

    if (wall->child == 0 && wall->is_crowded && result != -ETIMEDOUT) {
        /* Others may have taken the room, or done the harm. */
        result = ask_once(wall, asking, spent);
    }
    if (result != 0 && wall->child == 0) {
        lost.ns = lost_by(start) + spent->wait_ns;
        lost.at_ns = start;
    }
    return result;
}

int seep_wall_ask(struct seep_wall *wall,
                  const struct seep_wall_question *question,
                  struct seep_wall_spent *spent,
                  struct seep_symbol_memory *memory,
                  struct seep_symbol_answer *ret_answer)
{
    const struct seep_symbol_module *source = question->source;
    struct asking asking = {.memory = memory, .ret_answer = ret_answer};
    struct question *sent = &asking.sent;

    if (strlen(source->path) >= PATH_MAX ||
        (question->thing != NULL &&
         strlen(question->thing->class_symbol) > SEEP_WALL_CLASS_BYTES_MAX)) {
        return -ENAMETOOLONG;
    }
    sent->head.offset = question->offset;
    sent->head.is_map = question->is_map;
    sent->head.path_bytes = (uint32_t)strlen(source->path);
    memcpy(sent->path, source->path, sent->head.path_bytes);
    if (source->build_id_bytes <= SEEP_BUILD_ID_MAX) {
        sent->head.build_id_bytes = (uint32_t)source->build_id_bytes;
        memcpy(sent->head.build_id, source->build_id, source->build_id_bytes);
    }
    if (question->thing != NULL) {
        sent->head.thing = *question->thing;
        sent->head.class_bytes =
            (uint32_t)strlen(sent->head.thing.class_symbol);
        memcpy(sent->class, sent->head.thing.class_symbol,
               sent->head.class_bytes);
    }
    return ask(wall, &asking, spent);
}

int seep_wall_request(struct seep_wall *wall,
                      const struct seep_wall_request *request,
                      struct seep_wall_spent *spent, void **ret_bytes,
                      uint64_t *ret_count)
{
    struct asking asking = {
        .sent.head = {.what = request->what, .most_bytes = request->most_bytes},
        .ret_bytes = ret_bytes,
        .ret_count = ret_count,
        .most_ns = request->most_ns,
    };

    if (strlen(request->path) >= PATH_MAX) {
        return -ENAMETOOLONG;
    }
    if (wall->is_absent) {
        return wall->read(wall->context, request->path, request->what,
                          request->most_bytes, ret_bytes, ret_count);
    }
    asking.sent.head.path_bytes = (uint32_t)strlen(request->path);
    memcpy(asking.sent.path, request->path, asking.sent.head.path_bytes);
    return ask(wall, &asking, spent);
}
