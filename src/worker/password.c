#include "worker/password.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/process/spawn.h"

#define CREDENTIAL "redis-password"
#define COMMAND_MS 10000
#define OUTPUT_MAX 4096

extern char **environ; /* unistd.h declares it for GNU sources only */

/* Never freed: threads that connect may ask until the process ends. */
static char *credential; /* its path; NULL: the service manager gave none */
static char *file;
static char **command;

void password_init(void)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");

    if (folder != NULL && folder[0] == '/')
        credential = mem_printf("%s/" CREDENTIAL, folder);
    (void)unsetenv("CREDENTIALS_DIRECTORY");
}

void password_use(const char *named_file, char *const *named_command)
{
    free(file);
    mem_free_list(command);
    file = named_file[0] != '\0' ? mem_strdup(named_file) : NULL;
    command = named_command != NULL && named_command[0] != NULL
                  ? mem_dup_list(named_command, 0, NULL)
                  : NULL;
}

/* ---- the program */

static bool is_ready(int fd, struct mono until)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;

    do {
        int64_t us = mono_until_us(mono_now(), until);

        n = poll(&p, 1, us > 0 ? (int)(us / 1000) + 1 : 0);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

static int read_output(int fd, struct buf *ret, struct mono until, struct err *err)
{
    for (;;) {
        ssize_t n;

        if (!is_ready(fd, until))
            return err_set(err, ERR_CONFIG, "it has not ended in 10 s, and was killed");
        n = read(fd, buf_reserve(ret, OUTPUT_MAX), OUTPUT_MAX);
        if (n <= 0)
            return 0;
        ret->len += (size_t)n;
        if (ret->len > OUTPUT_MAX)
            return err_set(err, ERR_CONFIG, "it prints more than %d bytes, and was killed",
                           OUTPUT_MAX);
    }
}

/* Its end; killed first if it did not end by itself. */
static int await_end(const struct spawned *p, struct mono until, bool is_ill, struct err *err)
{
    bool has_ended = !is_ill && is_ready(p->pidfd, until);
    siginfo_t st = {0};

    if (!has_ended) {
        (void)kill(-p->pid, SIGKILL);
        (void)is_ready(p->pidfd, MONO_NEVER);
    }
    while (waitid(P_PID, (id_t)p->pid, &st, WEXITED) != 0 && errno == EINTR)
        continue;
    (void)close(p->pidfd);
    if (is_ill)
        return -1;
    if (!has_ended)
        return err_set(err, ERR_CONFIG, "it has not ended in 10 s, and was killed");
    if (st.si_code != CLD_EXITED)
        return err_set(err, ERR_CONFIG, "it died of signal %d", st.si_status);
    if (st.si_status != 0)
        return err_set(err, ERR_CONFIG, "it ended with exit status %d", st.si_status);
    return 0;
}

static int run_command(struct buf *ret, struct err *err)
{
    struct mono until = mono_add_ms(mono_now(), COMMAND_MS);
    struct spawned p;
    int ends[2], result;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "no pipe");
    result =
        spawn(command, environ, &(struct spawn_fds){-1, ends[1], STDERR_FILENO, -1}, NULL, &p, err);
    (void)close(ends[1]);
    if (result == 0) {
        result = read_output(ends[0], ret, until, err);
        result = await_end(&p, until, result < 0, err);
    }
    (void)close(ends[0]);
    return result;
}

/* One line of the output into a field; *at moves behind it. */
static int take_line(const char **at, char *to, size_t size, const char *what, struct err *err)
{
    size_t n = strcspn(*at, "\r\n");

    if (n >= size)
        return err_set(err, ERR_CONFIG, "the %s that it prints is longer than %zu bytes", what,
                       size - 1);
    memcpy(to, *at, n);
    to[n] = '\0';
    *at += n;
    *at += strspn(*at, "\r");
    *at += **at == '\n';
    return 0;
}

static int ask_command(struct url *url, struct err *err)
{
    struct buf out = BUF_INIT;
    const char *at;
    int result = run_command(&out, err);

    at = buf_str(&out);
    if (result == 0 && strlen(at) != out.len)
        result = err_set(err, ERR_CONFIG, "it prints a NUL");
    if (result == 0 && strcspn(at, "\r\n") == 0)
        result = err_set(err, ERR_CONFIG, "its first line is empty");
    if (result == 0)
        result = take_line(&at, url->password, sizeof(url->password), "password", err);
    if (result == 0 && *at != '\0')
        result = take_line(&at, url->user, sizeof(url->user), "user", err);
    if (out.data != NULL)
        explicit_bzero(out.data, out.cap);
    buf_done(&out);
    return result == 0 ? 1 : err_wrap(err, "redis_password_command %s", command[0]);
}

int password_ask(struct url *url, struct err *err)
{
    if (command != NULL)
        return ask_command(url, err);
    if (file != NULL)
        return url_read_password(file, url, err) < 0 ? -1 : 1;
    /* It may be out of sight: the --check-config of ExecReload= does not run in the service's own
     * view of the file system. */
    if (credential == NULL || access(credential, F_OK) < 0)
        return 0;
    return url_read_credential(credential, url, err) < 0 ? -1 : 1;
}
