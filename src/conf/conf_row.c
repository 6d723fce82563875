#include "conf/conf_row.h"

#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

static const char *const words_check_permissions[] = {"strict", "warn", "off", NULL};
static const char *const words_web_write[] = {"false", "true", NULL};
static const char *const words_web_payloads[] = {"false", "true", NULL};
static const char *const words_strict[] = {"false", "true", NULL};
static const char *const words_no_new_privileges[] = {"false", "true", NULL};
static const char *const words_private_tmp[] = {"false", "true", NULL};
static const char *const words_fair[] = {"false", "true", NULL};
static const char *const words_log_level[] = {"error", "warn", "notice", "info", "debug", NULL};
static const char *const words_log_format[] = {"text", "json", NULL};
static const char *const words_mode[] = {"exec", "stream", "plugin", NULL};
static const char *const words_adopt_unit[] = {"none", "s", "ms", NULL};
static const char *const words_on_lost[] = {"keep", "kill", NULL};
static const char *const words_overlap[] = {"allow", "skip", "queue", "replace", NULL};
static const char *const words_catch_up[] = {"none", "last", "all", NULL};
static const char *const words_algorithm[] = {"gcra", "sliding", "fixed", "funnel", NULL};

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

const struct conf_row *conf_row_find(const struct conf_row *rows, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].path, path) == 0)
            return &rows[i];
    return NULL;
}
