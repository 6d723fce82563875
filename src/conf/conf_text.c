#include "conf/conf_text.h"

#include <string.h>

#include "conf/conf_gates.h"
#include "conf/conf_isolation.h"

#define TOPIC_MAX 128 /* as in topic/topics.lua */
#define TOPIC_DOTS_MAX 8
#define FILTER_NAME_MAX 128

/* The message does not show the value: a URL may hold a password. */
static int check_redis(const struct conf_row *row, const char *text, struct err *err)
{
    if (strncmp(text, "redis://", 8) == 0 && text[8] != '\0')
        return 0;
    if (strncmp(text, "rediss://", 9) == 0 && text[9] != '\0')
        return 0;
    if (strncmp(text, "sentinel://", 11) == 0 || strncmp(text, "sentinels://", 12) == 0)
        return 0; /* url_parse has more to say */
    if (strncmp(text, "cluster://", 10) == 0 || strncmp(text, "clusters://", 11) == 0)
        return 0;
    if (strncmp(text, "unix:", 5) == 0 && text[5] != '\0')
        return 0;
    if (strcmp(text, "embedded") == 0)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "%s: not a known address: redis://HOST:PORT, rediss://HOST:PORT, "
                   "sentinel://HOST,HOST/MASTER, cluster://HOST,HOST, unix:PATH or embedded",
                   row->path);
}

static int check_folder(const struct conf_row *row, const char *text, struct err *err)
{
    if (text[0] == '/')
        return 0;
    return err_set(err, ERR_CONFIG, "%s: \"%s\" is not an absolute path such as %s", row->path,
                   conf_show(text).s, row->def[0] == '/' ? row->def : "/etc/laterd/redis.pass");
}

static int check_umask(const struct conf_row *row, const char *text, struct err *err)
{
    int umask;

    return conf_umask_parse(text, &umask, err) < 0 ? err_wrap(err, "%s", row->path) : 0;
}

static int check_folder_or_empty(const struct conf_row *row, const char *text, struct err *err)
{
    return text[0] == '\0' ? 0 : check_folder(row, text, err);
}

static int check_folder_or_none(const struct conf_row *row, const char *text, struct err *err)
{
    return strcmp(text, "none") == 0 ? 0 : check_folder(row, text, err);
}

/* The library takes the same names between the braces of its root key. */
static int check_namespace(const struct conf_row *row, const char *text, struct err *err)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

    if (text[strspn(text, known)] == '\0' && strchr("_.-", text[0]) == NULL)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "%s: \"%s\" is not a name of letters, digits, _ . and -, with a letter or digit "
                   "first",
                   row->path, conf_show(text).s);
}

static int check_gate(const struct conf_row *row, const char *text, struct err *err)
{
    return conf_gate_check_name(text, err) < 0 ? err_wrap(err, "%s", row->path) : 0;
}

typedef int check_f(const struct conf_row *row, const char *text, struct err *err);

int conf_text_check(const struct conf_row *row, const char *text, struct err *err)
{
    static const struct {
        const char *path;
        check_f *check;
    } checks[] = {{"redis", check_redis},
                  {"redis_password_file", check_folder_or_empty},
                  {"redis_tls_ca", check_folder_or_empty},
                  {"redis_tls_cert", check_folder_or_empty},
                  {"redis_tls_key", check_folder_or_empty},
                  {"namespace", check_namespace},
                  {"state_dir", check_folder_or_none},
                  {"handlers_dir", check_folder_or_empty},
                  {"filters_dir", check_folder_or_empty},
                  {"env_file", check_folder_or_empty},
                  {"cwd", check_folder_or_empty},
                  {"umask", check_umask},
                  {"lock", check_gate},
                  {"semaphore", check_gate},
                  {"rate", check_gate}};

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        if (strcmp(checks[i].path, row->path) == 0)
            return checks[i].check(row, text, err);
    return 0;
}

static int check_handler(const struct conf_row *row, const char *const *items, size_t n,
                         struct err *err)
{
    if (n == 0 || items[0][0] == '/')
        return 0;
    return err_set(err, ERR_CONFIG,
                   "%s: \"%s\" is not an absolute path: write [/path/to/program, argument, ...]",
                   row->path, conf_show(items[0]).s);
}

/* A name, or a pattern: a * at its end matches any rest. */
static bool is_variable(const char *s)
{
    size_t n = strlen(s);

    return n > 0 && conf_variable_is_name(s, s[n - 1] == '*' ? n - 1 : n);
}

/* As topic/topics.lua has it. */
static bool is_subscription(const char *s)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t n = strlen(s), dots = 0;

    if (strcmp(s, "*") == 0)
        return true;
    n -= n > 2 && strcmp(s + n - 2, ".*") == 0; /* the rest is the beginning of a topic */
    for (size_t i = 0; i < n; i++)
        dots += s[i] == '.';
    return n > 0 && n <= TOPIC_MAX && dots <= TOPIC_DOTS_MAX && strspn(s, known) >= n &&
           strchr("_.-", s[0]) == NULL;
}

static int check_topics(const struct conf_row *row, const char *const *items, size_t n,
                        struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!is_subscription(items[i]))
            return err_set(
                err, ERR_CONFIG,
                "%s: \"%s\" is no topic: letters, digits, _ . and -, with at most 8 dots "
                "and perhaps .* at the end, or *",
                row->path, conf_show(items[i]).s);
    return 0;
}

static int check_filters(const struct conf_row *row, const char *const *items, size_t n,
                         struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (items[i][0] == '\0' || items[i][0] == '.' || strchr(items[i], '/') != NULL ||
            strlen(items[i]) > FILTER_NAME_MAX)
            return err_set(err, ERR_CONFIG,
                           "%s: \"%s\" is not the name of a program in filters_dir", row->path,
                           conf_show(items[i]).s);
    return 0;
}

int conf_text_check_list(const struct conf_row *row, const char *const *items, size_t n,
                         struct err *err)
{
    if (strcmp(row->path, "handler") == 0 || strcmp(row->path, "redis_password_command") == 0)
        return check_handler(row, items, n, err);
    if (row->type == CONF_TYPE_PAIRS)
        return conf_pairs_check(row, items, n, err);
    if (strcmp(row->path, "filters") == 0)
        return check_filters(row, items, n, err);
    if (strcmp(row->path, "topics") == 0)
        return check_topics(row, items, n, err);
    if (strcmp(row->path, "env_pass") != 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!is_variable(items[i]))
            return err_set(err, ERR_CONFIG,
                           "%s: \"%s\" is not the name of a variable: write [NAME, \"PREFIX_*\"]",
                           row->path, conf_show(items[i]).s);
    return 0;
}
