#include "conf/conf_row.h"

#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_gates.h"
#include "conf/conf_isolation.h"

static const char *const words_check_permissions[] = {"strict", "warn", "off", NULL};
static const char *const words_strict[] = {"false", "true", NULL};
static const char *const words_no_new_privileges[] = {"false", "true", NULL};
static const char *const words_private_tmp[] = {"false", "true", NULL};
static const char *const words_log_level[] = {"error", "warn", "notice", "info", "debug", NULL};
static const char *const words_log_format[] = {"text", "json", NULL};
static const char *const words_mode[] = {"exec", "stream", "plugin", NULL};
static const char *const words_adopt_unit[] = {"none", "s", "ms", NULL};
static const char *const words_on_lost[] = {"keep", "kill", NULL};
static const char *const words_overlap[] = {"allow", "skip", "queue", "replace", NULL};
static const char *const words_catch_up[] = {"none", "last", "all", NULL};
static const char *const words_algorithm[] = {"gcra", "sliding", "fixed", "funnel", NULL};

#define TOPIC_MAX 128 /* as in topic/topic.lua */
#define TOPIC_DOTS_MAX 8
#define FILTER_NAME_MAX 128

/* Planned keys and modes: refused as not in this version, not as misspelt. */
static const char *const later_words[] = {"unique", "ionice", NULL};

#define RELOAD_yes true
#define RELOAD_no false
#define WORDS_STR(name) NULL
#define WORDS_DUR(name) NULL
#define WORDS_DUR_OR_NONE(name) NULL
#define WORDS_SIZE(name) NULL
#define WORDS_INT(name) NULL
#define WORDS_PCT(name) NULL
#define WORDS_FACTOR(name) NULL
#define WORDS_CHOICE(name) words_##name
#define WORDS_RATE(name) NULL
#define WORDS_STRS(name) NULL
#define WORDS_PAIRS(name) NULL
#define WORDS_INTS(name) NULL

const struct conf_row conf_top_rows[CONF_TOP_ROWS] = {
#define TOP(name, path, type, def, min, max, reload, prose)                                        \
    {path,  CONF_TYPE_##type,  offsetof(struct conf, name), def, min, max, RELOAD_##reload,        \
     prose, WORDS_##type(name)},
#include "conf/conf.def"
};

const struct conf_row conf_queue_rows[CONF_QUEUE_ROWS] = {
#define QUEUE(name, path, type, def, min, max, prose)                                              \
    {path,  CONF_TYPE_##type,  offsetof(struct conf_queue, name), def, min, max, true,             \
     prose, WORDS_##type(name)},
#define OWN(...) QUEUE(__VA_ARGS__)
#include "conf/conf.def"
};

const struct conf_row conf_limit_rows[CONF_LIMIT_ROWS] = {
#define LIMIT(name, path, type, def, min, max, prose)                                              \
    {path,  CONF_TYPE_##type,  offsetof(struct conf_limit, name), def, min, max, true,             \
     prose, WORDS_##type(name)},
#include "conf/conf.def"
};

const struct conf_row conf_schedule_rows[CONF_SCHEDULE_ROWS] = {
#define SCHEDULE(name, path, type, def, min, max, prose)                                           \
    {path,  CONF_TYPE_##type,  offsetof(struct conf_schedule, name), def, min, max, true,          \
     prose, WORDS_##type(name)},
#include "conf/conf.def"
};

bool conf_is_later_word(const char *word)
{
    for (const char *const *w = later_words; *w != NULL; w++)
        if (strcmp(*w, word) == 0)
            return true;
    return false;
}

struct conf_shown conf_show(const char *text)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    struct conf_shown shown = {""};

    text_escape(&b, text, strnlen(text, sizeof(shown.s)));
    text_cut(&b, 48);
    text_copy(shown.s, sizeof(shown.s), buf_str(&b));
    return shown;
}

/* The message does not show the value: a URL may hold a password. */
static int check_redis(const struct conf_row *row, const char *text, struct err *err)
{
    if (strncmp(text, "redis://", 8) == 0 && text[8] != '\0')
        return 0;
    if (strncmp(text, "rediss://", 9) == 0 && text[9] != '\0')
        return 0;
    if (strncmp(text, "sentinel://", 11) == 0 || strncmp(text, "sentinels://", 12) == 0)
        return 0; /* url_parse has more to say */
    if (strncmp(text, "unix:", 5) == 0 && text[5] != '\0')
        return 0;
    if (strcmp(text, "embedded") == 0)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "%s: not a known address: redis://HOST:PORT, rediss://HOST:PORT, "
                   "sentinel://HOST,HOST/MASTER, unix:PATH or "
                   "embedded",
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

int conf_row_check_text(const struct conf_row *row, const char *text, struct err *err)
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

/* As topic/topic.lua has it. */
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

int conf_row_check_list(const struct conf_row *row, const char *const *items, size_t n,
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

const struct conf_row *conf_row_find(const struct conf_row *rows, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].path, path) == 0)
            return &rows[i];
    return NULL;
}
