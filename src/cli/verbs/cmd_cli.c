#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "worker/password.h"

#define OWN_MAX 20 /* argv[0] and the arguments that name the server */

struct numbers {
    char port[12], db[12];
};

/* redis-cli checks the chain of the server's certificate, but not its name. */
static size_t put_tls(const struct url *url, const char **argv)
{
    const struct {
        const char *option, *value;
    } of[] = {{"--cacert", url->tls.ca},
              {"--cert", url->tls.cert},
              {"--key", url->tls.key},
              {"--sni", url->tls.name[0] != '\0' ? url->tls.name : url->name}};
    size_t n = 0;

    if (!url->is_tls)
        return 0;
    argv[n++] = "--tls";
    for (size_t i = 0; i < 4; i++) {
        if (of[i].value[0] == '\0')
            continue;
        argv[n++] = of[i].option;
        argv[n++] = of[i].value;
    }
    return n;
}

/* Returns how many arguments it set. They point into url and numbers. */
static size_t put_server(const struct url *url, struct numbers *numbers, const char **argv)
{
    size_t n = 0;

    (void)snprintf(numbers->port, sizeof(numbers->port), "%d", url->port);
    (void)snprintf(numbers->db, sizeof(numbers->db), "%d", url->db);
    argv[n++] = "redis-cli";
    argv[n++] = url->is_unix ? "-s" : "-h";
    argv[n++] = url->host;
    if (!url->is_unix) {
        argv[n++] = "-p";
        argv[n++] = numbers->port;
    }
    if (url->db != 0) {
        argv[n++] = "-n";
        argv[n++] = numbers->db;
    }
    if (url->user[0] != '\0') {
        argv[n++] = "--user";
        argv[n++] = url->user;
    }
    return n + put_tls(url, argv + n);
}

static int run(struct cli *cli, struct err *err)
{
    CLEANUP_FREE const char **argv = mem_new((OWN_MAX + (size_t)cli->argc + 1) * sizeof(*argv));
    struct numbers numbers;
    size_t n;

    if (ask_target(&cli->server, err) < 0)
        return -1;
    if (cli->server.target.url.ask_password != NULL &&
        password_ask(&cli->server.target.url, err) < 0)
        return -1;
    if (url_is_guided(&cli->server.target.url)) { /* redis-cli does not ask them */
        if (ask_connect(&cli->server, err) < 0)
            return -1;
        client_get_url(cli->server.client, &cli->server.target.url);
        ask_disconnect(&cli->server);
    }
    n = put_server(&cli->server.target.url, &numbers, argv);
    for (int i = 0; i < cli->argc; i++)
        argv[n++] = cli->argv[i];
    /* The password goes into the environment, which only this user can read: ps shows arguments. */
    if ((cli->server.target.url.password[0] != '\0' || cli->server.target.url.user[0] != '\0') &&
        setenv("REDISCLI_AUTH", cli->server.target.url.password, 1) < 0)
        return err_sys(err, errno, "cannot hand the password on");
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)execvp(argv[0], (char *const *)argv);
    if (errno == ENOENT)
        return err_set(err, ERR_SYSTEM,
                       "there is no redis-cli here (Debian: apt install redis-tools)");
    return err_sys(err, errno, "cannot run redis-cli");
}

const struct cli_verb cmd_cli = {
    "cli",
    "[ARGUMENT...]",
    "run redis-cli on the server that is meant",
    "Run redis-cli on the very server that the other verbs talk to, so that nobody looks\n"
    "into the wrong one by accident. Everything behind `cli` is redis-cli's; options\n"
    "that name the server stand in front of it:\n"
    "\n"
    "  later --config /etc/laterd/laterd.yaml cli --latency",
    0,
    CLI_MANY,
    true,
    NULL,
    run,
};
