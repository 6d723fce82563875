/* laterd: the program. Options, then daemon_run. */
#include <fcntl.h>
#include <getopt.h>
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
#include "daemon/daemon.h"
#include "daemon/notify.h"
#include "daemon/password.h"
#include "lua/lua_lib.h"
#include "run/caps.h"
#include "run/guard.h"
#include "run/init.h"
#include "run/isolation.h"

#define DEFAULT_CONFIG SYSCONFDIR "/laterd/laterd.yaml"

extern char **environ;

static const char help[] =
    "Usage: laterd [--config FILE] [--check-config | --print-config]\n"
    "Runs jobs that Redis holds when they are due. Stays in the foreground, logs to stderr.\n"
    "\n"
    "  -c, --config FILE   configuration (default " DEFAULT_CONFIG ",\n"
    "                      then /etc/laterd/laterd.yaml, if there is one)\n"
    "      --check-config  check file, environment, handlers; say what is wrong; exit 0 or 78\n"
    "      --print-config  print what is in force, as a configuration file\n"
    "  -V, --version       version of the program and of its function library\n"
    "  -h, --help          this\n"
    "\n"
    "Each setting can also be given as LATERD_<KEY> in the environment.\n"
    "Signals: TERM stop in order, twice: now; USR1 claim no more; HUP reload.\n"
    "See also: later help\n";

enum mode { MODE_RUN, MODE_CHECK, MODE_PRINT };

struct options {
    const char *config;
    enum mode mode;
};

static int usage(void)
{
    (void)fputs("Try: laterd --help\n", stderr);
    return EX_USAGE;
}

/* -1: go on; else exit with it. */
static int read_options(int argc, char **argv, struct options *opt)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'c'}, {"check-config", no_argument, NULL, 'k'},
        {"print-config", no_argument, NULL, 'p'}, {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "c:Vh", longs, NULL)) != -1) {
        switch (c) {
        case 'c':
            opt->config = optarg;
            break;
        case 'k':
            opt->mode = MODE_CHECK;
            break;
        case 'p':
            opt->mode = MODE_PRINT;
            break;
        case 'V':
            (void)printf("laterd %s (function library %ld, %s)\n", PACKAGE_VERSION, lua_lib_number,
                         lua_lib_hash);
            return EX_OK;
        case 'h':
            (void)fputs(help, stdout);
            return EX_OK;
        default:
            return usage();
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "laterd: unexpected argument '%s'\n", argv[optind]);
        return usage();
    }
    return -1;
}

/* A file that was named must exist; the default ones may be missing. */
static const char *find_config(const struct options *opt)
{
    static const char *const places[] = {DEFAULT_CONFIG, "/etc/laterd/laterd.yaml"};
    const char *named = opt->config != NULL ? opt->config : getenv("LATERD_CONFIG");

    if (named != NULL)
        return named;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (access(places[i], F_OK) == 0)
            return places[i];
    }
    return NULL;
}

/* A descriptor of ours must never be taken for standard input, output or error. */
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

static int print(const struct conf *conf)
{
    CLEANUP_BUF struct buf out = BUF_INIT;

    conf_print(conf, &out);
    return fwrite(out.data, 1, out.len, stdout) == out.len && fflush(stdout) == 0 ? EX_OK
                                                                                  : EX_IOERR;
}

static int run_as_init(char **argv)
{
    struct err err = ERR_INIT;
    int status = init_main(argv, environ, &err);

    return status < 0 ? fail(&err) : status;
}

int main(int argc, char **argv)
{
    struct options opt = {NULL, MODE_RUN};
    struct err err = ERR_INIT;
    struct conf *conf;
    int rc;

    /* Handlers have our user: they must not read our memory, environment or descriptors, and a core
     * file must not leave the password and payloads behind. */
    (void)prctl(PR_SET_DUMPABLE, 0);
    /* Whoever starts it then would have the rights of the file, and can say what to run. */
    if (getauxval(AT_SECURE) != 0) {
        (void)fputs("laterd: its file must not be setuid or have capabilities: a service gives "
                    "it rights, as users.conf does\n",
                    stderr);
        return EX_CONFIG;
    }
    if (argc > 1 && strcmp(argv[1], GUARD_ARG) == 0)
        return guard_main();
    if (argc > 1 && strcmp(argv[1], ISOLATION_ARG) == 0)
        return isolation_main(argc, argv);
    caps_init();
    open_stdio();
    rc = read_options(argc, argv, &opt);
    if (rc >= 0)
        return rc;
    log_init(LOG_LEVEL_INFO);
    if (opt.mode == MODE_RUN && init_is_needed())
        return run_as_init(argv);
    notify_init();
    password_init();
    conf = conf_load(find_config(&opt), environ, &err);
    if (conf == NULL)
        return fail(&err);
    if (opt.mode == MODE_RUN)
        return daemon_run(conf, environ, &err) < 0 ? fail(&err) : EX_OK;
    rc = opt.mode == MODE_PRINT ? print(conf) : daemon_check(conf, environ) < 0 ? EX_CONFIG : EX_OK;
    if (opt.mode == MODE_CHECK && rc == EX_OK)
        (void)printf("%s: ok\n", conf->path != NULL ? conf->path : "built-in configuration");
    conf_free(conf);
    return rc;
}
