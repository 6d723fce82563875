#include "ask/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/shard.h"
#include "base/text.h"
#include "conf/conf.h"
#include "redis/announce.h"
#include "redis/sentinel.h"
#include "worker/password.h"

#ifndef SYSCONFDIR
#define SYSCONFDIR "/etc"
#endif
#define TIMEOUT_MS 5000

extern char **environ; /* unistd.h declares it for GNU sources only */

static const char *env(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* [A-Za-z0-9][A-Za-z0-9_.-]*, at most 64 bytes: the text between the braces of every key. */
static int set_namespace(struct target *t, const char *ns, struct err *err)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    size_t n = strlen(ns);

    if (n == 0 || n >= sizeof(t->ns) || strspn(ns, letters) != n || strchr("_.-", ns[0]) != NULL)
        return err_set(err, ERR_USAGE,
                       "namespace '%.80s': letters, digits, _ . and -, at most 64, a letter or "
                       "digit first",
                       ns);
    memcpy(t->ns, ns, n + 1);
    return 0;
}

/* 0, or -1 with code USAGE. who: the option or the variable */
static int set_shards(struct target *t, const char *text, const char *who, struct err *err)
{
    int64_t n;

    if (text_parse_int(text, 0, SHARDS_MAX, &n) < 0)
        return err_set(err, ERR_USAGE, "%s %.20s: write a number from 0 to %d", who, text,
                       SHARDS_MAX);
    if (n > 0 && !shard_fits(t->ns))
        return err_set(err, ERR_USAGE, "%s: namespace %s is too long to be cut into shards", who,
                       t->ns);
    t->shards = (int)n;
    return 0;
}

static void set_auth(struct target *t)
{
    const char *auth = env("REDISCLI_AUTH");

    if (auth != NULL)
        text_copy(t->url.password, sizeof(t->url.password), auth);
}

/* With an address from elsewhere, the environment tells what a file would. */
static void use_sentinel_env(void)
{
    const char *user = env("LATER_SENTINEL_USER"), *file = env("LATER_SENTINEL_PASSWORD_FILE");

    sentinel_use(user != NULL ? user : "", file != NULL ? file : "");
}

static int from_url(struct target *t, const char *text, const char *who, struct err *err)
{
    if (url_parse(text, &t->url, err) < 0)
        return -1;
    use_sentinel_env();
    text_copy(t->from, sizeof(t->from), who);
    set_auth(t);
    return 0;
}

static int set_url(struct target *t, const struct conf *conf, struct err *err)
{
    CLEANUP_FREE char *embedded = NULL;

    if (strcmp(conf->redis, "embedded") != 0)
        return url_parse(conf->redis, &t->url, err) < 0
                   ? -1
                   : url_set_tls(&t->url, conf->redis_tls_ca, conf->redis_tls_cert,
                                 conf->redis_tls_key, conf->redis_tls_name, err);
    if (strcmp(conf->state_dir, "none") == 0)
        return err_set(err, ERR_CONFIG, "redis: embedded needs a state_dir");
    embedded = mem_printf("unix:%s/redis.sock", conf->state_dir);
    return url_parse(embedded, &t->url, err);
}

static int from_conf(struct target *t, const struct conf *conf, struct err *err)
{
    if (set_url(t, conf, err) < 0 || announce_use(conf->announce.at, err) < 0)
        return -1;
    sentinel_use(conf->sentinel_user, conf->sentinel_password_file);
    t->timeout_ms = conf->redis_timeout;
    if (env("REDISCLI_AUTH") != NULL) {
        set_auth(t);
    } else {
        password_use(conf->redis_password_file, conf->redis_password_command.at);
        t->url.ask_password = password_ask;
        t->password_every_ms = conf->redis_password_every;
    }
    if (conf->shard < 0)
        t->shards = (int)conf->shards;
    return set_namespace(t, conf->root, err);
}

/* 1: the file names the target. 0: no such file. -1 with err. vars: variables that override it. */
static int from_file(struct target *t, const char *path, char *const *vars, struct err *err)
{
    struct conf *conf = conf_load_address(path, vars, &t->warning, err);
    bool by_variable = vars == environ && env("LATERD_REDIS") != NULL;
    int result;

    if (conf == NULL)
        return err->code == ERR_INPUT ? 0 : -1;
    if (by_variable || path != NULL)
        (void)snprintf(t->from, sizeof(t->from), "from %s", by_variable ? "LATERD_REDIS" : path);
    result = from_conf(t, conf, err);
    conf_free(conf);
    return result < 0 ? -1 : 1;
}

/* The user's own file. In a folder that we may not enter it is not ours: sudo keeps HOME. */
static int from_own_file(struct target *t, struct err *err)
{
    static char *const no_vars[] = {NULL};
    const char *home = env("HOME");
    CLEANUP_FREE char *path = NULL;

    if (home == NULL)
        return 0;
    path = mem_printf("%s/.config/later.yaml", home);
    return access(path, F_OK) == 0 ? from_file(t, path, no_vars, err) : 0;
}

/* A file that was named must be there. */
static int from_named_file(struct target *t, const char *path, struct err *err)
{
    return from_file(t, path, environ, err) == 1 ? 0 : -1;
}

/* The first file that exists, in the order of target.h; without any, the default. */
static int from_files(struct target *t, struct err *err)
{
    const char *named = env("LATERD_CONFIG");
    int found = from_own_file(t, err);

    if (found == 0 && named != NULL)
        return from_named_file(t, named, err);
    if (found == 0)
        found = from_file(t, SYSCONFDIR "/laterd/laterd.yaml", environ, err);
    if (found == 0)
        found = from_file(t, "/etc/laterd/laterd.yaml", environ, err);
    if (found == 0)
        found = from_file(t, NULL, environ, err);
    return found < 0 ? -1 : 0;
}

static int find_server(const struct target_flags *flags, struct target *t, struct err *err)
{
    const char *url = env("LATER_REDIS_URL");

    if (flags->redis != NULL && flags->config != NULL)
        return err_set(err, ERR_USAGE, "--redis and --config both name a server: give one");
    if (flags->redis != NULL)
        return from_url(t, flags->redis, "from --redis", err);
    if (flags->config != NULL)
        return from_named_file(t, flags->config, err);
    if (url != NULL)
        return from_url(t, url, "from LATER_REDIS_URL", err);
    return from_files(t, err);
}

/* What the command line says wins over the environment, and that over the file. The environment is
 * of no use to an address without TLS, and no error there: it may be meant for another one. */
static int set_tls(const struct target_flags *flags, struct target *t, struct err *err)
{
    const struct tls_settings file = t->url.tls;
    bool is_tls = t->url.is_tls;
    const struct {
        const char *flag, *variable, *file;
    } of[] = {{flags->tls_ca, "LATER_TLS_CA", file.ca},
              {flags->tls_cert, "LATER_TLS_CERT", file.cert},
              {flags->tls_key, "LATER_TLS_KEY", file.key},
              {flags->tls_name, "LATER_TLS_NAME", file.name}};
    const char *use[4];

    for (size_t i = 0; i < 4; i++) {
        use[i] = of[i].flag;
        if (use[i] == NULL && is_tls)
            use[i] = env(of[i].variable);
        if (use[i] == NULL)
            use[i] = of[i].file;
    }
    return url_set_tls(&t->url, use[0], use[1], use[2], use[3], err);
}

void target_use_shard(struct target *t, int shard)
{
    url_set_namespace(&t->url, shard_root(t->base, shard, t->ns));
}

/* The namespace and its shards. */
static int set_root(const struct target_flags *flags, struct target *t, struct err *err)
{
    const char *from_env = flags->config == NULL ? env("LATER_NAMESPACE") : NULL;
    const char *ns = flags->ns != NULL ? flags->ns : from_env, *shards = env("LATER_SHARDS");

    if (ns != NULL && strcmp(ns, t->ns) != 0) {
        t->shards = 0;
        if (set_namespace(t, ns, err) < 0)
            return -1;
    }
    if (flags->shards != NULL)
        return set_shards(t, flags->shards, "--shards", err);
    if (shards != NULL && flags->config == NULL &&
        (flags->ns == NULL || (from_env != NULL && strcmp(flags->ns, from_env) == 0)))
        return set_shards(t, shards, "LATER_SHARDS", err);
    return 0;
}

int target_find(const struct target_flags *flags, struct target *ret, struct err *err)
{
    memset(ret, 0, sizeof(*ret));
    ret->timeout_ms = TIMEOUT_MS;
    (void)snprintf(ret->ns, sizeof(ret->ns), "default");
    (void)snprintf(ret->from, sizeof(ret->from), "the default, since nothing names another");
    if (find_server(flags, ret, err) < 0 || set_tls(flags, ret, err) < 0 ||
        set_root(flags, ret, err) < 0)
        return -1;
    text_copy(ret->base, sizeof(ret->base), ret->ns);
    if (ret->shards > 0)
        target_use_shard(ret, 0);
    else
        url_set_namespace(&ret->url, ret->ns);
    return 0;
}

void target_show(const struct target *t, struct buf *out)
{
    char where[320];

    buf_printf(out, "%s (%s)", url_show(&t->url, where), t->from);
}

const char *target_user(const struct target *t)
{
    return t->url.user[0] != '\0' ? t->url.user : "default";
}
