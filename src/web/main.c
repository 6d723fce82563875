/* later-web: the program. Options, then the loop until SIGTERM. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "web/listen.h"
#include "web/web.h"
#include "worker/password.h"

extern char **environ;

static const char help[] =
    "usage: later-web [OPTION...]\n"
    "\n"
    "Serve a page that shows what laterd's queues, jobs, gates and workers do.\n"
    "\n"
    "  -c, --config FILE     settings (default: /etc/laterd/later-web.yaml, if it is there)\n"
    "      --redis URL       where Redis is, in place of redis in the file\n"
    "      --namespace NAME  which namespace\n"
    "      --listen ADDRESS  in place of web.listen\n"
    "      --write           let the page change things, as web.write: true\n"
    "      --version\n"
    "  -h, --help\n"
    "\n"
    "Without web.token_file it makes a token and prints the address with it. See later-web(8).\n";

enum { OPT_REDIS = 256, OPT_NAMESPACE, OPT_LISTEN, OPT_WRITE, OPT_VERSION };

struct options {
    struct target_flags flags;
    const char *listen;
    bool may_write;
};

static int fail(const struct err *err)
{
    (void)fprintf(stderr, "later-web: %s\n", err->text);
    return err_exit_status(err);
}

/* -1: go on; else the exit status. */
static int read_options(int argc, char **argv, struct options *o)
{
    static const struct option known[] = {{"config", required_argument, NULL, 'c'},
                                          {"redis", required_argument, NULL, OPT_REDIS},
                                          {"namespace", required_argument, NULL, OPT_NAMESPACE},
                                          {"listen", required_argument, NULL, OPT_LISTEN},
                                          {"write", no_argument, NULL, OPT_WRITE},
                                          {"version", no_argument, NULL, OPT_VERSION},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "c:h", known, NULL)) >= 0) {
        switch (c) {
        case 'c':
            o->flags.config = optarg;
            break;
        case OPT_REDIS:
            o->flags.redis = optarg;
            break;
        case OPT_NAMESPACE:
            o->flags.ns = optarg;
            break;
        case OPT_LISTEN:
            o->listen = optarg;
            break;
        case OPT_WRITE:
            o->may_write = true;
            break;
        case OPT_VERSION:
            return puts("later-web " PACKAGE_VERSION) >= 0 ? 0 : EX_IOERR;
        case 'h':
            return fputs(help, stdout) >= 0 ? 0 : EX_IOERR;
        default:
            return EX_USAGE;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "later-web: '%s' is no option (--help)\n", argv[optind]);
        return EX_USAGE;
    }
    return -1;
}

/* The file of --config, or the usual one if it is there, or the defaults. */
static struct conf *load(struct options *o, struct err *err)
{
    static const char usual[] = SYSCONFDIR "/laterd/later-web.yaml";
    struct conf *conf;

    if (o->flags.config == NULL && o->flags.redis == NULL && access(usual, F_OK) == 0)
        o->flags.config = usual;
    conf = conf_load(o->flags.config, environ, err);
    if (conf == NULL)
        return NULL;
    if (o->listen != NULL) {
        free(conf->web_listen);
        conf->web_listen = mem_strdup(o->listen);
    }
    if (o->may_write)
        conf->web_write = 1;
    return conf;
}

/* The service manager may give the token: %d/web-token. Password of Redis: worker/password.c. */
static void take_credentials(struct conf *conf)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    char path[4096];

    if (folder != NULL && conf->web_token_file[0] == '\0') {
        (void)snprintf(path, sizeof(path), "%s/web-token", folder);
        if (access(path, F_OK) == 0) {
            free(conf->web_token_file);
            conf->web_token_file = mem_strdup(path);
        }
    }
    password_init();
}

static void on_signal(void *arg, int events)
{
    (void)events;
    loop_stop(arg);
}

static void tell_address(const struct conf *conf, const struct web *w)
{
    if (listen_is_unix(conf->web_listen))
        log_notice("event=listening at=%s", conf->web_listen);
    else if (conf->web_token_file[0] != '\0')
        log_notice("event=listening at=http://%s/", conf->web_listen);
    else
        (void)printf("http://%s/#token=%s\n", conf->web_listen, web_token(w));
    (void)fflush(stdout);
}

/* Until a signal stops it. */
static int run(const struct conf *conf, struct loop *loop, const struct web *w,
               const sigset_t *stops)
{
    int fd = signalfd(-1, stops, SFD_CLOEXEC | SFD_NONBLOCK);
    struct loop_fd *watch;
    struct err err;

    if (fd < 0) {
        err_fill_sys(&err, errno, "signalfd");
        return fail(&err);
    }
    watch = loop_fd_new(loop, fd, LOOP_READ, on_signal, loop);
    tell_address(conf, w);
    loop_run(loop);
    loop_fd_free(watch);
    (void)close(fd);
    return 0;
}

static int serve(const struct conf *conf, const struct target_flags *flags, const sigset_t *stops)
{
    struct err err = ERR_INIT;
    struct loop *loop = loop_new();
    struct web *w;
    int status;

    if (loop == NULL) {
        err_fill(&err, ERR_SYSTEM, "no descriptors are left for an event loop");
        return fail(&err);
    }
    w = web_new(loop, conf, flags, &err);
    status = w != NULL ? run(conf, loop, w, stops) : fail(&err);
    web_free(w);
    loop_free(loop);
    return status;
}

int main(int argc, char **argv)
{
    struct options o = {.listen = NULL};
    struct err err = ERR_INIT;
    struct conf *conf;
    sigset_t stops;
    int status = read_options(argc, argv, &o);

    if (status >= 0)
        return status;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTERM);
    (void)sigaddset(&stops, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &stops, NULL);
    conf = load(&o, &err);
    if (conf == NULL)
        return fail(&err);
    take_credentials(conf);
    log_init(LOG_LEVEL_NOTICE);
    status = serve(conf, &o.flags, &stops);
    conf_free(conf);
    return status;
}
