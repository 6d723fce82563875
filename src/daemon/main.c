/* laterd: the program. Options, then daemon_run. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "conf/conf.h"
#include "conf/conf_errors.h"
#include "daemon/daemon.h"
#include "daemon/log_json.h"
#include "daemon/notify.h"
#include "daemon/options.h"
#include "lua/lua_lib.h"
#include "worker/password.h"
#include "run/guard/guard.h"
#include "run/isolation/caps.h"
#include "run/isolation/isolation.h"
#include "run/process/init.h"

#define DEFAULT_CONFIG SYSCONFDIR "/laterd/laterd.yaml"

extern char **environ;

/*
 * laterd@shop.3 names shop.3.yaml. Where there is no such file, but shop.yaml, that of all shards
 * is meant, and this one: its number goes to where a reload finds it, too. NULL: it is not so.
 */
static const char *file_of_shards(const char *named)
{
    static char path[PATH_MAX];
    char shard[8];
    const char *dot = strrchr(named, '.'), *number = dot;

    if (access(named, F_OK) == 0 || dot == NULL || strcmp(dot, ".yaml") != 0)
        return NULL;
    while (number > named && number[-1] >= '0' && number[-1] <= '9')
        number--;
    if (number == dot || number == named || number[-1] != '.' || strlen(named) >= sizeof(path))
        return NULL;
    (void)snprintf(path, sizeof(path), "%.*s.yaml", (int)(number - 1 - named), named);
    if (access(path, F_OK) < 0)
        return NULL;
    (void)snprintf(shard, sizeof(shard), "%.*s", (int)(dot - number < 4 ? dot - number : 4),
                   number);
    (void)setenv("LATERD_SHARD", shard, 1);
    return path;
}

/* A file that was named must exist; the default ones may be missing. */
static const char *find_config(const struct options *opt)
{
    static const char *const paths[] = {DEFAULT_CONFIG, "/etc/laterd/laterd.yaml"};
    const char *named = opt->config != NULL ? opt->config : getenv("LATERD_CONFIG");
    const char *shared = named != NULL ? file_of_shards(named) : NULL;

    if (named != NULL)
        return shared != NULL ? shared : named;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (access(paths[i], F_OK) == 0)
            return paths[i];
    }
    return NULL;
}

/* Open 0 to 2 where they are closed: no descriptor of ours may be taken for one of them. */
static void open_stdio(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

static int fail(const struct err *err)
{
    (void)fprintf(stderr, "laterd: %s\n", err->text);
    return err->code == ERR_INPUT ? EX_CONFIG : err_exit_status(err);
}

/* As fail; of a bad file all errors. */
static int fail_to_load(const struct err *err, enum daemon_mode mode, const char *path)
{
    struct conf_errors errors = {.n = 0};

    if (mode != DAEMON_CHECK || err->code != ERR_CONFIG ||
        conf_find_errors(path, environ, &errors) == 0)
        return fail(err);
    conf_errors_print(&errors);
    conf_errors_done(&errors);
    return err_exit_status(err);
}

/* What was printed has to be written, too. */
static int finish_output(void)
{
    struct err err = ERR_INIT;

    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return EX_OK;
    (void)err_sys(&err, errno, "cannot write the output");
    err.code = ERR_OUTPUT;
    return fail(&err);
}

static int check(const struct conf *conf)
{
    if (daemon_check(conf, environ) < 0)
        return EX_CONFIG;
    (void)printf("%s: ok\n", conf->path != NULL ? conf->path : "built-in configuration");
    return finish_output();
}

static int print(const struct conf *conf)
{
    CLEANUP_BUF struct buf out = BUF_INIT;

    conf_print(conf, &out);
    (void)fwrite(out.data, 1, out.len, stdout);
    return finish_output();
}

static int run_as_init(char **argv)
{
    struct err err = ERR_INIT;
    int status = init_main(argv, environ, &err);

    return status < 0 ? fail(&err) : status;
}

static int tell(enum daemon_mode mode)
{
    if (mode == DAEMON_HELP)
        options_help(DEFAULT_CONFIG);
    else
        (void)printf("laterd %s (function library %ld, %s)\n", PACKAGE_VERSION, lua_lib_number,
                     lua_lib_hash);
    return finish_output();
}

static int need_shard(const struct conf *conf, struct err *err)
{
    if (conf->shards == 0 || conf->shard >= 0)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "namespace %s is cut into %d shards, and a daemon serves one: start laterd@%s.0 "
                   "to laterd@%s.%d, or set LATERD_SHARD",
                   conf->namespace, (int)conf->shards, conf->namespace, conf->namespace,
                   (int)conf->shards - 1);
}

int main(int argc, char **argv)
{
    struct options opt;
    struct err err = ERR_INIT;
    const char *path;
    struct conf *conf;
    int rc;

    /* Handlers may have our user: they must not read our memory, environment or descriptors, and a
     * core file must not leave the password and payloads behind. */
    (void)prctl(PR_SET_DUMPABLE, 0);
    /* If the program file gave rights, anybody who starts it would have them, and could say what to
     * run. */
    if (getauxval(AT_SECURE) != 0) {
        (void)fputs("laterd: its file must not be setuid or have capabilities: a service gives "
                    "it rights, as users.conf does\n",
                    stderr);
        return EX_CONFIG;
    }
    if (argc > 1 && strcmp(argv[1], GUARD_ARG) == 0)
        return guard_main(log_json);
    if (argc > 1 && strcmp(argv[1], ISOLATION_ARG) == 0)
        return isolation_main(argc, argv);
    caps_init();
    open_stdio();
    if (options_parse(&opt, argc, argv, &err) < 0)
        return fail(&err);
    if (opt.mode == DAEMON_HELP || opt.mode == DAEMON_VERSION)
        return tell(opt.mode);
    log_init(LOG_LEVEL_INFO);
    if (opt.mode == DAEMON_RUN && init_is_needed())
        return run_as_init(argv);
    notify_init();
    password_init();
    path = find_config(&opt);
    conf = conf_load(path, environ, &err);
    if (conf == NULL)
        return fail_to_load(&err, opt.mode, path);
    if (opt.mode == DAEMON_RUN && need_shard(conf, &err) < 0) {
        conf_free(conf);
        return fail(&err);
    }
    if (opt.mode == DAEMON_RUN)
        return daemon_run(conf, environ, &err) < 0 ? fail(&err) : EX_OK;
    if (opt.mode == DAEMON_PRINT)
        rc = print(conf);
    else
        rc = check(conf);
    conf_free(conf);
    return rc;
}
