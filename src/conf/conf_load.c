/* Reason for its length: one loader fills all scopes, from the file and the environment. */
#include "conf/conf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "conf/conf_check.h"
#include "conf/conf_env.h"
#include "conf/conf_errors.h"
#include "conf/conf_gates.h"
#include "conf/conf_schedule.h"
#include "conf/conf_unknown.h"
#include "conf/conf_value.h"
#include "conf/yaml.h"

/* Where a value in force was written. line 0 and env NULL: nowhere, it is the built-in default. */
struct setting_source {
    int line;
    const char *env;
};

/* One level of settings while it is filled: the daemon's, the defaults, a queue's, a limit's. */
struct scope {
    enum conf_scope kind;
    size_t index; /* of the queue or limit */
    const struct conf_row *rows;
    size_t nrows;
    void *base;                  /* what the rows' offsets count from */
    struct setting_source *from; /* by row */
};

struct loading {
    struct conf *conf;
    const char *file; /* for messages; NULL without a file */
    const struct yaml_node *root;
    struct conf_env env;
    struct setting_source top[CONF_TOP_ROWS];
    struct setting_source defaults[CONF_QUEUE_ROWS];
    int line;                   /* that was blamed last */
    struct conf_errors *errors; /* NULL: the first error ends the loading */
};

/* An error: 0 if it was kept and loading goes on, else -1. */
static int on_error(struct loading *load, struct err *err)
{
    if (load->errors == NULL || err->code != ERR_CONFIG)
        return -1;
    conf_errors_add(load->errors, load->line, err);
    return 0;
}

static void *field(void *base, const struct conf_row *row)
{
    return (char *)base + row->offset;
}

/* Put where a value was written before the text of *err. Returns -1. */
static int blame(struct loading *load, struct setting_source at, struct err *err)
{
    char text[sizeof(err->text)];

    load->line = at.line;
    memcpy(text, err->text, sizeof(text));
    if (at.env != NULL)
        return err_set(err, err->code, "%s: %s", conf_show(at.env).s, text);
    if (load->file != NULL && at.line > 0)
        return err_set(err, err->code, "%s:%d: %s", load->file, at.line, text);
    return -1;
}

/* The mappings of the top level that have a reader of their own. */
static bool is_section(const char *key)
{
    return strcmp(key, "defaults") == 0 || strcmp(key, "limits") == 0 ||
           strcmp(key, "queues") == 0 || strcmp(key, "schedules") == 0;
}

static bool is_group(const struct scope *s, const char *path)
{
    size_t n = strlen(path);

    for (size_t i = 0; i < s->nrows; i++)
        if (strncmp(s->rows[i].path, path, n) == 0 && s->rows[i].path[n] == '.')
            return true;
    return false;
}

static int read_map(struct loading *load, const struct scope *s, const struct yaml_node *map,
                    const char *group, struct err *err);

static int read_key(struct loading *load, const struct scope *s, const struct yaml_node *node,
                    const char *path, struct err *err)
{
    /* A key with a dot in it would be a second spelling of a nested one. */
    const struct conf_row *row =
        strchr(node->key, '.') == NULL ? conf_row_find(s->rows, s->nrows, path) : NULL;
    struct setting_source at = {node->line, NULL};

    if (row != NULL) {
        if (conf_value_read(row, node, field(s->base, row), err) < 0)
            return blame(load, at, err);
        s->from[row - s->rows] = at;
        return 0;
    }
    if (strchr(node->key, '.') == NULL && is_group(s, path))
        return read_map(load, s, node, path, err);
    (void)conf_unknown_refuse(s->kind, s->rows, s->nrows, path, err);
    return blame(load, at, err);
}

/* group is "" or the key that the rows of this mapping start with ("backoff"). */
static int read_map(struct loading *load, const struct scope *s, const struct yaml_node *map,
                    const char *group, struct err *err)
{
    const struct yaml_node *node;

    if (!yaml_node_is_map(map)) {
        (void)err_set(err, ERR_CONFIG, "%s: settings are expected, as lines of KEY: VALUE",
                      map->key != NULL ? conf_show(map->key).s : "the file");
        return blame(load, (struct setting_source){map->line, NULL}, err);
    }
    for (node = map->first; node != NULL; node = node->next) {
        char *path;
        int r;

        if (s->kind == CONF_SCOPE_TOP && group[0] == '\0' && is_section(node->key))
            continue;
        path = mem_printf("%s%s%s", group, group[0] != '\0' ? "." : "", node->key);
        r = read_key(load, s, node, path, err);
        free(path);
        if (r < 0 && on_error(load, err) < 0)
            return -1;
    }
    return 0;
}

static int read_env(struct loading *load, const struct scope *s, struct err *err)
{
    for (size_t i = 0; i < load->env.n; i++) {
        const struct conf_env_setting *set = &load->env.at[i];
        struct setting_source at = {0, set->name};

        if (set->scope != s->kind || set->index != s->index)
            continue;
        if (conf_value_parse(set->row, set->value, field(s->base, set->row), err) == 0)
            s->from[set->row - s->rows] = at;
        else if (blame(load, at, err) < 0 && on_error(load, err) < 0)
            return -1;
    }
    return 0;
}

static int read_scope(struct loading *load, const struct scope *s, const struct yaml_node *map,
                      struct err *err)
{
    if (map != NULL && read_map(load, s, map, "", err) < 0 && on_error(load, err) < 0)
        return -1;
    return read_env(load, s, err);
}

/* Which of two values that do not go together to blame: the one of the environment, else the one
 * further down in the file. */
static struct setting_source source_of(const struct scope *s, const char *path, const char *other)
{
    struct setting_source a = s->from[conf_row_find(s->rows, s->nrows, path) - s->rows];
    struct setting_source b = s->from[conf_row_find(s->rows, s->nrows, other) - s->rows];

    if (a.env != NULL || b.env != NULL)
        return a.env != NULL ? a : b;
    return a.line >= b.line ? a : b;
}

static bool is_inherited(const struct loading *load, const struct scope *s, const char *path)
{
    size_t i = (size_t)(conf_row_find(s->rows, s->nrows, path) - s->rows);

    return i < CONF_DEFAULTS_ROWS && s->from[i].line == load->defaults[i].line &&
           s->from[i].env == load->defaults[i].env && load->defaults[i].line > 0;
}

static int check_queue(struct loading *load, const struct scope *s, const struct conf_queue *q,
                       struct err *err)
{
    const char *at = NULL, *other = NULL;

    if (conf_queue_check(load->conf, q, &at, &other, err) == 0)
        return 0;
    /* The defaults have it, too, and it was told there. */
    if (load->errors != NULL && s->kind == CONF_SCOPE_QUEUE && is_inherited(load, s, at) &&
        is_inherited(load, s, other)) {
        *err = (struct err)ERR_INIT;
        return 0;
    }
    (void)err_wrap(err, "%s", s->kind == CONF_SCOPE_QUEUE ? q->name : "defaults");
    return blame(load, source_of(s, at, other), err);
}

static void keep_lines(const struct setting_source *from, size_t n, int *lines)
{
    for (size_t i = 0; i < n; i++)
        lines[i] = from[i].env != NULL ? CONF_LINE_ENV : from[i].line;
}

static void set_root(struct conf *conf)
{
    if (conf->shard < 0)
        text_copy(conf->root, sizeof(conf->root), conf->namespace);
    else
        (void)shard_root(conf->namespace, (int)conf->shard, conf->root);
}

static int load_top(struct loading *load, struct err *err)
{
    struct conf *conf = load->conf;
    const struct scope s = {.kind = CONF_SCOPE_TOP,
                            .rows = conf_top_rows,
                            .nrows = CONF_TOP_ROWS,
                            .base = conf,
                            .from = load->top};

    if (read_scope(load, &s, load->root, err) < 0)
        return -1;
    keep_lines(load->top, CONF_TOP_ROWS, conf->lines);
    if (conf_shards_check(conf, err) < 0)
        return blame(load, source_of(&s, "shards", "shard"), err);
    set_root(conf);
    if (strcmp(conf->redis, "embedded") != 0 || strcmp(conf->state_dir, "none") != 0)
        return 0;
    (void)err_set(err, ERR_CONFIG,
                  "state_dir: none does not go with redis: embedded, whose data it would hold: "
                  "give a folder");
    return blame(load, source_of(&s, "state_dir", "redis"), err);
}

static int load_defaults(struct loading *load, struct err *err)
{
    const struct scope s = {.kind = CONF_SCOPE_DEFAULTS,
                            .rows = conf_queue_rows,
                            .nrows = CONF_DEFAULTS_ROWS,
                            .base = &load->conf->defaults,
                            .from = load->defaults};

    if (read_scope(load, &s, yaml_node_get(load->root, "defaults"), err) < 0)
        return -1;
    keep_lines(load->defaults, CONF_QUEUE_ROWS, load->conf->defaults.lines);
    return check_queue(load, &s, &load->conf->defaults, err);
}

static int load_queue(struct loading *load, size_t i, const struct yaml_node *map, struct err *err)
{
    struct conf_queue *q = &load->conf->queues[i];
    struct setting_source from[CONF_QUEUE_ROWS];
    const struct scope s = {.kind = CONF_SCOPE_QUEUE,
                            .index = i,
                            .rows = conf_queue_rows,
                            .nrows = CONF_QUEUE_ROWS,
                            .base = q,
                            .from = from};

    memcpy(from, load->defaults, sizeof(from));
    for (size_t r = 0; r < CONF_QUEUE_ROWS; r++)
        conf_value_copy(&conf_queue_rows[r], field(&load->conf->defaults, &conf_queue_rows[r]),
                        field(q, &conf_queue_rows[r]));
    if (read_scope(load, &s, map, err) < 0)
        return -1;
    keep_lines(from, CONF_QUEUE_ROWS, q->lines);
    return check_queue(load, &s, q, err);
}

static void set_default(const struct conf_row *row, void *base)
{
    struct err err = ERR_INIT;
    bool is_unset = row->type == CONF_TYPE_STR && row->def[0] == '\0' && row->min > 0;
    int r = 0;

    /* A text that may not be written empty can still be left out. */
    if (is_unset)
        *(char **)field(base, row) = mem_strdup("");
    else
        r = conf_value_parse(row, row->def, field(base, row), &err);
    assert(r == 0);
    (void)r;
}

/*
 * Fill one entry of a section of names. given: for each row, whether it was written. 0, or -1 with
 * err; 1: it has errors that were kept. Then nothing more is to be checked: what is bad is not
 * missing.
 */
static int read_entry(struct loading *load, const struct scope *s, const struct yaml_node *node,
                      bool *given, struct err *err)
{
    size_t errors_before = load->errors != NULL ? load->errors->n : 0;

    for (size_t r = 0; r < s->nrows; r++)
        set_default(&s->rows[r], s->base);
    if (read_scope(load, s, node, err) < 0)
        return -1;
    for (size_t r = 0; r < s->nrows; r++)
        given[r] = s->from[r].line > 0 || s->from[r].env != NULL;
    return load->errors != NULL && load->errors->n > errors_before;
}

/* Blame a row of an entry, or its name (row below 0). Returns -1. */
static int blame_entry(struct loading *load, const struct scope *s, const struct yaml_node *node,
                       int row, struct err *err)
{
    (void)err_wrap(err, "%s", conf_show(node->key).s);
    return blame(load, row >= 0 ? s->from[row] : (struct setting_source){node->line, NULL}, err);
}

/* `smtp: 20` is a likely first try: say how to write it. */
static int refuse_short_limit(struct loading *load, const struct yaml_node *node, struct err *err)
{
    (void)err_set(err, ERR_CONFIG,
                  "%s: settings are expected: %s: { semaphore: 20 } or "
                  "{ rate: 100/1m }",
                  conf_show(node->key).s, conf_show(node->key).s);
    return blame(load, (struct setting_source){node->line, NULL}, err);
}

static int load_limit(struct loading *load, size_t i, const struct yaml_node *node, struct err *err)
{
    struct conf_limit *limit = &load->conf->limits[i];
    struct setting_source from[CONF_LIMIT_ROWS] = {{0, NULL}};
    bool given[CONF_LIMIT_ROWS];
    const struct scope s = {.kind = CONF_SCOPE_LIMIT,
                            .index = i,
                            .rows = conf_limit_rows,
                            .nrows = CONF_LIMIT_ROWS,
                            .base = limit,
                            .from = from};
    int row, result;

    if (!yaml_node_is_map(node))
        return refuse_short_limit(load, node, err);
    result = read_entry(load, &s, node, given, err);
    if (result != 0)
        return result < 0 ? -1 : 0;
    if (conf_limit_check(limit, given, &row, err) == 0)
        return 0;
    return blame_entry(load, &s, node, row, err);
}

static int limit_by_name(const void *a, const void *b)
{
    return strcmp(((const struct conf_limit *)a)->name, ((const struct conf_limit *)b)->name);
}

static int load_limits(struct loading *load, const struct yaml_node *limits, struct err *err)
{
    const struct yaml_node *node = limits != NULL ? limits->first : NULL;

    /* None was named if it is no mapping, or a too large one. */
    for (size_t i = 0; node != NULL && i < load->conf->nlimits; node = node->next)
        if (load_limit(load, i++, node, err) < 0 && on_error(load, err) < 0)
            return -1;
    if (load->conf->nlimits > 0)
        qsort(load->conf->limits, load->conf->nlimits, sizeof(struct conf_limit), limit_by_name);
    return 0;
}

/* Names are read first: the names of the environment's variables contain them. */
static int name_limits(struct loading *load, const struct yaml_node *limits, struct err *err)
{
    struct conf *conf = load->conf;
    struct setting_source at = {limits != NULL ? limits->line : 0, NULL};

    if (limits == NULL)
        return 0;
    if (!yaml_node_is_map(limits)) {
        (void)err_set(err, ERR_CONFIG,
                      "limits: a mapping of NAME: { semaphore: N } or NAME: "
                      "{ rate: N/D } is expected");
        return blame(load, at, err);
    }
    if (limits->n > CONF_LIMITS_MAX) {
        (void)err_set(err, ERR_CONFIG,
                      "limits: more than %d: one with {key} in its name serves "
                      "many",
                      CONF_LIMITS_MAX);
        return blame(load, at, err);
    }
    conf->limits = mem_new(limits->n * sizeof(*conf->limits));
    for (const struct yaml_node *node = limits->first; node != NULL; node = node->next) {
        if (conf_limit_check_name(node->key, err) < 0) {
            (void)err_wrap(err, "limits");
            (void)blame(load, (struct setting_source){node->line, NULL}, err);
            if (on_error(load, err) < 0)
                return -1;
        }
        conf->limits[conf->nlimits++].name = mem_strdup(node->key);
    }
    return 0;
}

/* ---- schedules: only in the file, there is no environment for them */

static int load_schedule(struct loading *load, const struct yaml_node *node, struct err *err)
{
    struct conf_schedule *schedule = &load->conf->schedules[load->conf->nschedules++];
    struct setting_source from[CONF_SCHEDULE_ROWS] = {{0, NULL}};
    const struct scope s = {.kind = CONF_SCOPE_SCHEDULE,
                            .rows = conf_schedule_rows,
                            .nrows = CONF_SCHEDULE_ROWS,
                            .base = schedule,
                            .from = from};
    int row, result;

    schedule->name = mem_strdup(node->key);
    result = read_entry(load, &s, node, schedule->is_given, err);
    if (result != 0)
        return result < 0 ? -1 : 0;
    if (conf_schedule_check(schedule, &row, err) == 0)
        return 0;
    return blame_entry(load, &s, node, row, err);
}

static int schedule_by_name(const void *a, const void *b)
{
    return strcmp(((const struct conf_schedule *)a)->name, ((const struct conf_schedule *)b)->name);
}

static int load_schedules(struct loading *load, const struct yaml_node *schedules, struct err *err)
{
    struct conf *conf = load->conf;

    if (schedules == NULL)
        return 0;
    conf->has_schedules = true;
    if (!yaml_node_is_map(schedules) || schedules->n > CONF_SCHEDULES_MAX) {
        (void)err_set(err, ERR_CONFIG,
                      "schedules: a mapping of at most %d NAME: { settings } is "
                      "expected",
                      CONF_SCHEDULES_MAX);
        return blame(load, (struct setting_source){schedules->line, NULL}, err);
    }
    conf->schedules = mem_new(schedules->n * sizeof(*conf->schedules));
    for (const struct yaml_node *node = schedules->first; node != NULL; node = node->next)
        if (load_schedule(load, node, err) < 0 && on_error(load, err) < 0)
            return -1;
    if (conf->nschedules > 0)
        qsort(conf->schedules, conf->nschedules, sizeof(*conf->schedules), schedule_by_name);
    return 0;
}

static int name_queues(struct loading *load, const struct yaml_node *queues, struct err *err)
{
    struct conf *conf = load->conf;

    if (queues == NULL)
        return 0;
    if (!yaml_node_is_map(queues)) {
        (void)err_set(err, ERR_CONFIG, "queues: a mapping of NAME: { settings } is expected");
        return blame(load, (struct setting_source){queues->line, NULL}, err);
    }
    conf->queues = mem_new(queues->n * sizeof(*conf->queues));
    for (const struct yaml_node *node = queues->first; node != NULL; node = node->next) {
        if (!text_is_queue_name(node->key, strlen(node->key))) {
            (void)err_set(err, ERR_CONFIG,
                          "\"%s\" is no queue name: up to 64 letters, digits, _ and -, with a "
                          "letter or digit first",
                          conf_show(node->key).s);
            (void)blame(load, (struct setting_source){node->line, NULL}, err);
            if (on_error(load, err) < 0)
                return -1;
        }
        text_copy(conf->queues[conf->nqueues++].name, sizeof(conf->queues->name), node->key);
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct conf_queue *)a)->name, ((const struct conf_queue *)b)->name);
}

static int load_all(struct loading *load, char *const *env, const char *const *only,
                    struct err *err)
{
    const struct yaml_node *queues = yaml_node_get(load->root, "queues");
    const struct yaml_node *limits = yaml_node_get(load->root, "limits");
    size_t i = 0;

    if ((name_queues(load, queues, err) < 0 && on_error(load, err) < 0) ||
        (name_limits(load, limits, err) < 0 && on_error(load, err) < 0) ||
        (conf_env_read(env, load->conf, only, load->errors, &load->env, err) < 0 &&
         on_error(load, err) < 0) ||
        (load_top(load, err) < 0 && on_error(load, err) < 0) ||
        (load_defaults(load, err) < 0 && on_error(load, err) < 0) ||
        (load_limits(load, limits, err) < 0 && on_error(load, err) < 0) ||
        (load_schedules(load, yaml_node_get(load->root, "schedules"), err) < 0 &&
         on_error(load, err) < 0))
        return -1;
    /* None was named if it is no mapping. */
    for (const struct yaml_node *q = queues != NULL ? queues->first : NULL;
         q != NULL && i < load->conf->nqueues; q = q->next)
        if (load_queue(load, i++, q, err) < 0 && on_error(load, err) < 0)
            return -1;
    if (load->conf->nqueues > 0)
        qsort(load->conf->queues, load->conf->nqueues, sizeof(struct conf_queue), by_name);
    return 0;
}

static struct conf *new_conf(void)
{
    struct conf *conf = mem_new(sizeof(*conf));

    for (size_t i = 0; i < CONF_TOP_ROWS; i++)
        set_default(&conf_top_rows[i], conf);
    for (size_t i = 0; i < CONF_QUEUE_ROWS; i++)
        set_default(&conf_queue_rows[i], &conf->defaults);
    return conf;
}

/* only: the settings of the daemon to be read, and no others; NULL: all. Of a file that is no YAML
 * they are read from what stands before the error. */
static struct conf *load_with(const char *path, char *const *env, const char *const *only,
                              struct conf_errors *errors, struct err *err)
{
    struct yaml_node *root = NULL;
    struct loading load = {.conf = new_conf(), .errors = errors};
    int r = 0;

    if (path != NULL) {
        load.conf->path = mem_strdup(path);
        load.file = yaml_short_path(path);
        r = yaml_tree_load(path, &root, err);
    }
    if (only != NULL) {
        yaml_node_keep(root, only);
        r = 0;
    }
    load.root = root;
    if (r == 0)
        r = load_all(&load, env, only, err);
    conf_env_done(&load.env);
    yaml_tree_free(root);
    if (r == 0)
        return load.conf;
    conf_free(load.conf);
    return NULL;
}

struct conf *conf_load(const char *path, char *const *env, struct err *err)
{
    struct err local = ERR_INIT;

    return load_with(path, env, NULL, NULL, err != NULL ? err : &local);
}

int conf_find_errors(const char *path, char *const *env, struct conf_errors *ret)
{
    struct err err = ERR_INIT;

    conf_free(load_with(path, env, NULL, ret, &err));
    if (err.code != ERR_NONE)
        conf_errors_add(ret, 0, &err);
    conf_errors_sort(ret);
    return ret->n > 0 ? -1 : 0;
}

struct conf *conf_load_address(const char *path, char *const *env, struct err *warning,
                               struct err *err)
{
    /* The first one has a default. */
    static const char *const keys[] = {"redis_timeout",
                                       "redis",
                                       "redis_password_file",
                                       "redis_password_command",
                                       "redis_password_every",
                                       "redis_tls_ca",
                                       "redis_tls_cert",
                                       "redis_tls_key",
                                       "redis_tls_name",
                                       "sentinel_user",
                                       "sentinel_password_file",
                                       "announce",
                                       "namespace",
                                       "shards",
                                       "shard",
                                       "state_dir",
                                       NULL};
    struct conf *conf = conf_load(path, env, err);
    struct err ignored = ERR_INIT;

    if (conf != NULL || err->code != ERR_CONFIG)
        return conf;
    conf = load_with(path, env, keys, NULL, &ignored);
    if (conf == NULL)
        conf = load_with(path, env, keys + 1, NULL, &ignored);
    /* A file that does not name a server must not lead to another one: it may be misspelt. */
    if (conf == NULL ||
        conf->lines[conf_row_find(conf_top_rows, CONF_TOP_ROWS, "redis") - conf_top_rows] == 0) {
        conf_free(conf);
        return NULL;
    }
    *warning = *err;
    *err = (struct err)ERR_INIT;
    return conf;
}

static void queue_done(struct conf_queue *q)
{
    for (size_t i = 0; i < CONF_QUEUE_ROWS; i++)
        conf_value_done(&conf_queue_rows[i], field(q, &conf_queue_rows[i]));
}

void conf_free(struct conf *conf)
{
    if (conf == NULL)
        return;
    for (size_t i = 0; i < CONF_TOP_ROWS; i++)
        conf_value_done(&conf_top_rows[i], field(conf, &conf_top_rows[i]));
    queue_done(&conf->defaults);
    for (size_t i = 0; i < conf->nqueues; i++)
        queue_done(&conf->queues[i]);
    for (size_t i = 0; i < conf->nlimits; i++)
        free(conf->limits[i].name);
    for (size_t i = 0; i < conf->nschedules; i++) {
        for (size_t r = 0; r < CONF_SCHEDULE_ROWS; r++)
            conf_value_done(&conf_schedule_rows[r],
                            field(&conf->schedules[i], &conf_schedule_rows[r]));
        free(conf->schedules[i].name);
    }
    free(conf->schedules);
    free(conf->limits);
    free(conf->queues);
    free(conf->path);
    free(conf);
}

int conf_blame(const struct conf *conf, const struct conf_queue *q, const char *path,
               struct err *err)
{
    const struct conf_row *rows = q == NULL ? conf_top_rows : conf_queue_rows;
    const struct conf_row *row =
        conf_row_find(rows, q == NULL ? CONF_TOP_ROWS : CONF_QUEUE_ROWS, path);
    int line = (q == NULL ? conf->lines : q->lines)[row - rows];

    if (q != NULL)
        (void)err_wrap(err, "%s", q->name[0] != '\0' ? q->name : "defaults");
    if (line > 0)
        return err_wrap(err, "%s:%d", yaml_short_path(conf->path), line);
    return line == CONF_LINE_ENV ? err_wrap(err, "environment") : -1;
}

bool conf_queue_says_topics(const struct conf_queue *queue)
{
    const struct conf_row *row = conf_row_find(conf_queue_rows, CONF_QUEUE_ROWS, "topics");

    return queue->lines[row - conf_queue_rows] != 0;
}

const struct conf_queue *conf_queue(const struct conf *conf, const char *queue)
{
    size_t low = 0, high = conf->nqueues;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(queue, conf->queues[middle].name);

        if (order == 0)
            return &conf->queues[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return &conf->defaults;
}
