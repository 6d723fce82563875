#include "cli/step/step_call.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "job/step.h"

#define ASK_MS 60000 /* so long it is asked again */
#define FIRST_MS 50  /* the first wait between two questions; it doubles up to LAST_MS */
#define LAST_MS 1000
#define ANSWER_MS 30000 /* the daemon answers within its redis_timeout */
#define READ_BYTES 4096

#define OVER "; nothing more is run, nothing more is kept"

struct question {
    struct sockaddr_un address;
    socklen_t address_len;
    const char *token, *name, *output;
    size_t n;
};

/* ---- one connection */

static int connect_to(const struct question *q, struct err *err)
{
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&q->address, q->address_len) < 0)
        return err_sys(err, errno, "the daemon's socket for steps");
    return TAKE_FD(fd);
}

static int send_all(int fd, const struct buf *b, struct err *err)
{
    for (size_t at = 0; at < b->len;) {
        ssize_t n = send(fd, b->data + at, b->len - at, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR)
            return err_sys(err, errno, "the daemon's socket for steps");
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Until the daemon closes the connection. */
static int read_all(int fd, struct buf *b, struct err *err)
{
    struct mono end = mono_add_ms(mono_now(), ANSWER_MS);

    for (;;) {
        int64_t left_us = mono_until_us(mono_now(), end);
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t n;

        if (left_us <= 0)
            return err_set(err, ERR_TEMP, "the daemon has not answered for %d s", ANSWER_MS / 1000);
        if (poll(&p, 1, (int)(left_us / 1000) + 1) <= 0)
            continue;
        n = read(fd, buf_reserve(b, READ_BYTES), READ_BYTES);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_sys(err, errno, "the daemon's socket for steps");
        b->len += n > 0 ? (size_t)n : 0;
    }
}

static int exchange(const struct question *q, struct buf *answer, struct err *err)
{
    CLEANUP_BUF struct buf request = BUF_INIT;
    CLEANUP_CLOSE int fd = connect_to(q, err);

    if (fd < 0)
        return -1;
    buf_printf(&request, "%s %s", q->token, q->name);
    if (q->output != NULL)
        buf_printf(&request, " %zu", q->n);
    buf_add(&request, "\n", 1);
    buf_add(&request, q->output != NULL ? q->output : "", q->output != NULL ? q->n : 0);
    return send_all(fd, &request, err) < 0 ? -1 : read_all(fd, answer, err);
}

/* ---- the answer */

/* "WORD rest" -> the rest; NULL: it is another word. The text ends with a NUL. */
static const char *behind(const char *line, const char *word)
{
    size_t n = strlen(word);

    if (strncmp(line, word, n) != 0 || (line[n] != ' ' && line[n] != '\0'))
        return NULL;
    return line + n + (line[n] == ' ');
}

/* 1: ask again; 0: *ret; -1: err. */
static int judge(struct buf *answer, enum step_answer *ret, struct buf *kept, struct err *err)
{
    char *lf = answer->len > 0 ? memchr(answer->data, '\n', answer->len) : NULL;
    size_t line = lf != NULL ? (size_t)(lf - answer->data) + 1 : 0;
    const char *text;
    int64_t n;

    if (lf == NULL) { /* the daemon has ended, or closed the connection: somebody else's flood */
        (void)err_set(err, ERR_TEMP, "the daemon closed the connection without an answer");
        return 1;
    }
    *lf = '\0';
    if ((text = behind(answer->data, "again")) != NULL) {
        (void)err_set(err, ERR_TEMP, "%s", text);
        return 1;
    }
    if ((text = behind(answer->data, "gone")) != NULL)
        return err_set(err, ERR_TEMP, "%s" OVER, text);
    if ((text = behind(answer->data, "refused")) != NULL)
        return err_set(err, ERR_DATA, "%s", text);
    if (behind(answer->data, "run") != NULL) {
        *ret = STEP_RUN;
        return 0;
    }
    text = behind(answer->data, "kept");
    if (text == NULL || text_parse_int(text, 0, STEP_OUTPUT_MAX, &n) < 0 ||
        (size_t)n != answer->len - line)
        return err_set(err, ERR_SOFTWARE, "the daemon's answer makes no sense");
    buf_clear(kept);
    buf_add(kept, answer->data + line, (size_t)n);
    *ret = STEP_KEPT;
    return 0;
}

/* ---- the question */

static int read_where(const char *where, char *name, size_t size, const char **token,
                      struct err *err)
{
    const char *colon = strrchr(where, ':');

    if (colon == NULL || colon == where || (size_t)(colon - where) >= size ||
        strlen(colon + 1) > STEP_TOKEN_MAX)
        return err_set(err, ERR_USAGE, "LATER_STEP is none that a daemon gives to a handler");
    memcpy(name, where, (size_t)(colon - where));
    name[colon - where] = '\0';
    *token = colon + 1;
    return 0;
}

static void wait_ms(int64_t ms)
{
    (void)poll(NULL, 0, (int)ms);
}

int step_call(const char *where, const char *name, const char *output, size_t n, struct buf *kept,
              struct err *err)
{
    struct question q = {.name = name, .output = output, .n = n};
    char socket[sizeof(q.address.sun_path) - 1];
    struct mono end = mono_add_ms(mono_now(), ASK_MS);
    enum step_answer ret = STEP_RUN;

    if (strcmp(where, STEP_NONE) == 0) {
        buf_add(kept, output != NULL ? output : "", n);
        return output != NULL ? STEP_KEPT : STEP_RUN;
    }
    if (read_where(where, socket, sizeof(socket), &q.token, err) < 0)
        return -1;
    q.address.sun_family = AF_UNIX;
    memcpy(q.address.sun_path + 1, socket, strlen(socket));
    q.address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(socket));
    for (int64_t ms = FIRST_MS;; ms = 2 * ms < LAST_MS ? 2 * ms : LAST_MS) {
        CLEANUP_BUF struct buf answer = BUF_INIT;
        int more;

        /* Without the daemon this attempt is over: another worker takes the job back. */
        if (exchange(&q, &answer, err) < 0)
            return err->code == ERR_TEMP ? -1 : err_set(err, ERR_TEMP, "%s" OVER, err->text);
        more = judge(&answer, &ret, kept, err);
        if (more == 0)
            *err = (struct err)ERR_INIT; /* of an earlier question */
        if (more <= 0)
            return more < 0 ? -1 : (int)ret;
        if (!mono_before(mono_now(), end))
            return err_set(err, ERR_TEMP, "%s, for a minute now", err->text);
        wait_ms(ms);
    }
}
