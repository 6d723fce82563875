#include "conf/conf_env.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define PREFIX "LATERD_"
#define NAMES_SUGGESTED 50 /* most queues, and limits, tried for a suggestion */

/* The letter that stands for c in a variable's name; the name of a limit may have any. */
static char env_letter(char c)
{
    bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

    return is_plain ? (char)toupper((unsigned char)c) : '_';
}

/* If name starts with word, written as in the environment: what follows it; else NULL. */
static const char *skip_word(const char *name, const char *word)
{
    assert(name != NULL);
    for (; *word != '\0'; name++, word++)
        if (*name != env_letter(*word))
            return NULL;
    return name;
}

static const struct conf_row *find_row(const struct conf_row *rows, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        const char *rest = skip_word(name, rows[i].path);

        if (rest != NULL && *rest == '\0')
            return &rows[i];
    }
    return NULL;
}

/* How many things a queue's variable can mean: MAIL_DEAD_KEEP is dead_keep of mail, or keep of
 * mail-dead. */
static size_t find_queue_row(const char *name, const struct conf *conf,
                             struct conf_env_setting *setting)
{
    size_t found = 0;

    for (size_t i = 0; i < conf->nqueues; i++) {
        const char *rest = skip_word(name, conf->queues[i].name);
        const struct conf_row *row;

        if (rest == NULL || *rest != '_')
            continue;
        row = find_row(conf_queue_rows, CONF_QUEUE_ROWS, rest + 1);
        if (row == NULL)
            continue;
        setting->index = i;
        setting->row = row;
        found++;
    }
    return found;
}

static size_t find_limit_row(const char *name, const struct conf *conf,
                             struct conf_env_setting *setting)
{
    size_t found = 0;

    for (size_t i = 0; i < conf->nlimits; i++) {
        const char *rest = skip_word(name, conf->limits[i].name);
        const struct conf_row *row = rest != NULL && *rest == '_'
                                         ? find_row(conf_limit_rows, CONF_LIMIT_ROWS, rest + 1)
                                         : NULL;

        if (row == NULL)
            continue;
        setting->index = i;
        setting->row = row;
        found++;
    }
    return found;
}

static size_t find_setting(const struct conf *conf, struct conf_env_setting *setting)
{
    const char *name = setting->name + strlen(PREFIX);
    const char *rest;

    setting->scope = CONF_SCOPE_TOP;
    setting->row = find_row(conf_top_rows, CONF_TOP_ROWS, name);
    if (setting->row != NULL)
        return 1;
    rest = skip_word(name, "defaults.");
    if (rest != NULL) {
        setting->scope = CONF_SCOPE_DEFAULTS;
        setting->row = find_row(conf_queue_rows, CONF_DEFAULTS_ROWS, rest);
        return setting->row != NULL;
    }
    rest = skip_word(name, "limits.");
    setting->scope = CONF_SCOPE_LIMIT;
    if (rest != NULL)
        return find_limit_row(rest, conf, setting);
    rest = skip_word(name, "queues.");
    setting->scope = CONF_SCOPE_QUEUE;
    return rest != NULL ? find_queue_row(rest, conf, setting) : 0;
}

struct env_names {
    char **at; /* NULL-ended */
    size_t n;
};

static void add_names(struct env_names *names, const char *scope, const char *queue,
                      const struct conf_row *rows, size_t n)
{
    names->at = mem_grow(names->at, names->n + n + 1, sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        char *name =
            mem_printf(PREFIX "%s%s%s%s", scope, queue, queue[0] != '\0' ? "_" : "", rows[i].path);

        for (char *c = name; *c != '\0'; c++)
            *c = env_letter(*c);
        names->at[names->n++] = name;
    }
    names->at[names->n] = NULL;
}

static int refuse_unknown(const char *name, const struct conf *conf, struct err *err)
{
    struct env_names names = {NULL, 0};
    const char *near;

    add_names(&names, "", "", conf_top_rows, CONF_TOP_ROWS);
    add_names(&names, "DEFAULTS_", "", conf_queue_rows, CONF_DEFAULTS_ROWS);
    for (size_t i = 0; i < conf->nqueues && i < NAMES_SUGGESTED; i++)
        add_names(&names, "QUEUES_", conf->queues[i].name, conf_queue_rows, CONF_QUEUE_ROWS);
    for (size_t i = 0; i < conf->nlimits && i < NAMES_SUGGESTED; i++)
        add_names(&names, "LIMITS_", conf->limits[i].name, conf_limit_rows, CONF_LIMIT_ROWS);
    near = text_nearest(name, (const char *const *)names.at);
    if (near != NULL)
        (void)err_set(err, ERR_CONFIG, "%s: no such setting in the environment: did you mean %s?",
                      conf_show(name).s, near);
    else
        (void)err_set(err, ERR_CONFIG,
                      "%s: no such setting in the environment: LATERD_<KEY>, "
                      "LATERD_DEFAULTS_<KEY>, or LATERD_QUEUES_<NAME>_<KEY> for a queue that the "
                      "file names (LIMITS for a limit)",
                      conf_show(name).s);
    for (size_t i = 0; i < names.n; i++)
        free(names.at[i]);
    free(names.at);
    return -1;
}

static int add_setting(struct conf_env *ret, const char *entry, const struct conf *conf,
                       struct err *err)
{
    struct conf_env_setting *setting;
    size_t n = strcspn(entry, "=");
    size_t found;

    ret->at = mem_grow(ret->at, ret->n + 1, sizeof(*ret->at));
    setting = &ret->at[ret->n++];
    *setting = (struct conf_env_setting){.name = mem_dup(entry, n)};
    setting->value = entry + n + (entry[n] == '=' ? 1 : 0);
    found = find_setting(conf, setting);
    if (found == 1)
        return 0;
    if (found > 1)
        (void)err_set(err, ERR_CONFIG,
                      "%s: may mean more than one setting of the queues in the file: write it "
                      "there",
                      conf_show(setting->name).s);
    else
        (void)refuse_unknown(setting->name, conf, err);
    free(setting->name);
    ret->n--;
    return -1;
}

static bool is_one_of(const char *entry, const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        const char *rest = skip_word(entry, *keys);

        if (rest != NULL && *rest == '=')
            return true;
    }
    return false;
}

int conf_env_read(char *const *env, const struct conf *conf, const char *const *only,
                  struct conf_errors *errors, struct conf_env *ret, struct err *err)
{
    *ret = (struct conf_env){NULL, 0};
    for (; env != NULL && *env != NULL; env++) {
        if (strncmp(*env, PREFIX, strlen(PREFIX)) != 0)
            continue;
        if (strncmp(*env, PREFIX "CONFIG=", strlen(PREFIX "CONFIG=")) == 0)
            continue;
        if (only != NULL && !is_one_of(*env + strlen(PREFIX), only))
            continue;
        if (add_setting(ret, *env, conf, err) == 0)
            continue;
        if (errors == NULL)
            return -1;
        conf_errors_add(errors, 0, err);
    }
    return 0;
}

void conf_env_done(struct conf_env *env)
{
    for (size_t i = 0; i < env->n; i++)
        free(env->at[i].name);
    free(env->at);
    *env = (struct conf_env){NULL, 0};
}
