#include "serve/handler_env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "conf/conf_isolation.h"
#include "run/handler/perms.h"
#include "serve/isolation_spec.h"

#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct vars {
    char **at; /* NULL-ended */
    size_t n;
};

/* Add entry, which the list owns then. It replaces the variable of the same name. */
static void put(struct vars *v, char *entry)
{
    size_t len = strcspn(entry, "=") + 1;

    for (size_t i = 0; i < v->n; i++)
        if (strncmp(v->at[i], entry, len) == 0) {
            free(v->at[i]);
            v->at[i] = entry;
            return;
        }
    mem_list_add(&v->at, &v->n, entry);
}

static bool passes(const struct conf_queue *conf, const char *entry, size_t name_len)
{
    static const char *const always[] = {"PATH", "HOME", "USER", "LANG", "TZ"};

    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
        if (strlen(always[i]) == name_len && memcmp(entry, always[i], name_len) == 0)
            return true;
    }
    for (size_t i = 0; i < conf->env_pass.n; i++) {
        const char *pattern = conf->env_pass.at[i];
        size_t n = strlen(pattern);

        if (n > 0 && pattern[n - 1] == '*' ? name_len >= n - 1 && memcmp(entry, pattern, n - 1) == 0
                                           : name_len == n && memcmp(entry, pattern, n) == 0)
            return true;
    }
    return false;
}

static void pass(struct vars *v, const struct conf_queue *conf, char *const *env)
{
    put(v, mem_strdup(DEFAULT_PATH));
    for (; *env != NULL; env++) {
        size_t name_len = strcspn(*env, "=");

        /* Variables of laterd itself are not passed on, whatever a pattern says. */
        if ((*env)[name_len] == '=' && !conf_variable_is_ours(*env, name_len) &&
            passes(conf, *env, name_len))
            put(v, mem_strdup(*env));
    }
}

/* The variables that login(1) sets. */
static void add_user(struct vars *v, const struct isolation_user *user)
{
    put(v, mem_printf("HOME=%s", user->home));
    put(v, mem_printf("USER=%s", user->name));
    put(v, mem_printf("LOGNAME=%s", user->name));
    put(v, mem_printf("SHELL=%s", user->shell));
}

/* ---- env_file */

static int read_all(const char *path, struct buf *out, struct err *err)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, ERR_CONFIG, "env_file %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > HANDLER_ENV_FILE_MAX)
        return err_set(err, ERR_CONFIG, "env_file %s: not a file of at most %d bytes", path,
                       HANDLER_ENV_FILE_MAX);
    for (;;) {
        char part[4096];
        ssize_t n = read(fd, part, sizeof(part));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, ERR_CONFIG, "env_file %s: %s", path, strerror(errno));
        if (n == 0)
            return 0;
        if (out->len + (size_t)n > HANDLER_ENV_FILE_MAX)
            return err_set(err, ERR_CONFIG, "env_file %s: more than %d bytes", path,
                           HANDLER_ENV_FILE_MAX);
        buf_add(out, part, (size_t)n);
    }
}

/* Remove one pair of quotes around the whole value. No other character has a special meaning. */
static char *unquoted(const char *name, size_t len, const char *value)
{
    size_t n = strlen(value);

    if (n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n - 1] == value[0]) {
        value++;
        n -= 2;
    }
    return mem_printf("%.*s=%.*s", (int)len, name, (int)n, value);
}

static int add_line(struct vars *v, char *line, struct err *err)
{
    size_t n = strlen(line), len;

    if (n > 0 && line[n - 1] == '\r')
        line[n - 1] = '\0';
    line += strspn(line, " \t");
    if (line[0] == '\0' || line[0] == '#')
        return 0;
    if (strncmp(line, "export ", 7) == 0)
        line += 7;
    len = strcspn(line, "=");
    if (line[len] != '=')
        return err_set(err, ERR_CONFIG, "a line NAME=value is expected");
    if (conf_variable_check(line, len, err) < 0)
        return -1;
    put(v, unquoted(line, len, line + len + 1));
    return 0;
}

static int add_file(struct vars *v, const char *path, struct err *err)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    char *rest, *line;
    int at = 0;

    if (path[0] == '\0')
        return 0;
    if (read_all(path, &all, err) < 0)
        return -1;
    if (perms_check(path, err) < 0)
        return err_wrap(err, "env_file");
    if (all.len > 0 && memchr(all.data, '\0', all.len) != NULL)
        return err_set(err, ERR_CONFIG, "env_file %s: it has a NUL byte", path);
    buf_add(&all, "", 1);
    for (rest = all.data; (line = strsep(&rest, "\n")) != NULL;) {
        at++;
        if (add_line(v, line, err) < 0)
            return err_wrap(err, "env_file %s:%d", path, at);
    }
    return 0;
}

static size_t bytes(const struct vars *v)
{
    size_t sum = 0;

    for (size_t i = 0; i < v->n; i++)
        sum += strlen(v->at[i]) + 1;
    return sum;
}

char **handler_env(const struct conf_queue *q, const struct isolation_user *user, char *const *env,
                   const char **ret_path, struct err *err)
{
    struct vars v = {NULL, 0};

    pass(&v, q, env);
    if (user != NULL)
        add_user(&v, user);
    *ret_path = "env_file";
    if (add_file(&v, q->env_file, err) < 0) {
        mem_free_list(v.at);
        return NULL;
    }
    *ret_path = "env";
    for (size_t i = 0; i < q->env.n; i++)
        put(&v, mem_strdup(q->env.at[i]));
    if (bytes(&v) > HANDLER_ENV_MAX) {
        (void)err_set(err, ERR_CONFIG, "env: the variables have more than %d bytes together",
                      HANDLER_ENV_MAX);
        mem_free_list(v.at);
        return NULL;
    }
    return v.at;
}
