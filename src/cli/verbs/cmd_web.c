/* later web: the page, for a look. It is a program of its own, later-web(8). */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"

#define PROGRAM "later-web"
#define ARGS_MAX 12

/* The one beside this program, if there is one: a tree that was built has both. */
static char *find_program(void)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash, *path;

    if (n <= 0)
        return mem_strdup(PROGRAM);
    self[n] = '\0';
    slash = strrchr(self, '/');
    *slash = '\0';
    path = mem_printf("%s/" PROGRAM, self);
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return mem_strdup(PROGRAM);
}

/* Append option and value, if it was given. */
static void put(const char **argv, size_t *n, const char *option, const char *value)
{
    if (value == NULL)
        return;
    argv[(*n)++] = option;
    argv[(*n)++] = value;
}

/* What names the server's certificate has no option there; the environment says the same. */
static int put_tls(const struct target_flags *flags, struct err *err)
{
    const struct {
        const char *variable, *value;
    } of[] = {{"LATER_TLS_CA", flags->tls_ca},
              {"LATER_TLS_CERT", flags->tls_cert},
              {"LATER_TLS_KEY", flags->tls_key},
              {"LATER_TLS_NAME", flags->tls_name}};

    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
        if (of[i].value != NULL && setenv(of[i].variable, of[i].value, 1) < 0)
            return err_sys(err, errno, "cannot hand on the files of TLS");
    return 0;
}

static int run(struct cli *cli, struct err *err)
{
    CLEANUP_FREE char *program = find_program();
    const struct target_flags *flags = &cli->server.flags;
    const char *argv[ARGS_MAX] = {PROGRAM};
    size_t n = 1;

    if (put_tls(flags, err) < 0)
        return -1;
    put(argv, &n, "--redis", flags->redis);
    put(argv, &n, "--config", flags->config);
    put(argv, &n, "--namespace", flags->ns);
    put(argv, &n, "--listen", cli_value(cli, "listen"));
    if (cli_value(cli, "write") != NULL)
        argv[n++] = "--write";
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)execvp(program, (char *const *)argv);
    if (errno == ENOENT)
        return err_set(err, ERR_SYSTEM, "there is no later-web here (Debian: its own package)");
    return err_sys(err, errno, "cannot run later-web");
}

static const struct cli_option options[] = {
    {"listen", "ADDRESS", "where the page is (default: 127.0.0.1:8377)"},
    {"write", NULL, "let the page retry, cancel, pause and add, too"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_web = {
    "web",
    "",
    "serve a page that shows all of this",
    "Serve a page with queues, jobs, gates, workers, schedules and batches, until Ctrl-C.\n"
    "It prints an address with a token, and opens nothing: open it in a browser of this\n"
    "host. Nobody without the token is answered.\n"
    "\n"
    "  later web\n"
    "  ssh -L 8377:127.0.0.1:8377 HOST later web     # from elsewhere\n"
    "\n"
    "later-web(8) says how it runs as a service, behind a proxy.",
    0,
    0,
    false,
    options,
    run,
};
