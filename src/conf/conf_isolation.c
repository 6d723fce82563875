#include "conf/conf_isolation.h"

#include <string.h>
#include <sys/resource.h>

#include "base/text.h"
#include "conf/conf_gates.h"

#define LIMIT_NAMES "as, core, cpu, data, fsize, memlock, nofile, nproc, stack"

enum unit { UNIT_BYTES, UNIT_NUMBER, UNIT_SECONDS };

static const struct limit_name {
    const char *name;
    int resource;
    enum unit unit;
} limit_names[] = {
    {"as", RLIMIT_AS, UNIT_BYTES},          {"core", RLIMIT_CORE, UNIT_BYTES},
    {"cpu", RLIMIT_CPU, UNIT_SECONDS},      {"data", RLIMIT_DATA, UNIT_BYTES},
    {"fsize", RLIMIT_FSIZE, UNIT_BYTES},    {"memlock", RLIMIT_MEMLOCK, UNIT_BYTES},
    {"nofile", RLIMIT_NOFILE, UNIT_NUMBER}, {"nproc", RLIMIT_NPROC, UNIT_NUMBER},
    {"stack", RLIMIT_STACK, UNIT_BYTES},
};

int conf_umask_parse(const char *text, int *ret, struct err *err)
{
    size_t n = strlen(text);
    int mask = 0;

    *ret = -1;
    if (n == 0)
        return 0;
    if (n < 3 || n > 4 || text[strspn(text, "01234567")] != '\0' || (n == 4 && text[0] != '0'))
        return err_set(err, ERR_CONFIG, "\"%s\" is not three octal digits such as 027",
                       conf_show(text).s);
    for (; *text != '\0'; text++)
        mask = mask * 8 + (*text - '0');
    *ret = mask;
    return 0;
}

static const struct limit_name *find_limit(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof(limit_names) / sizeof(limit_names[0]); i++)
        if (strlen(limit_names[i].name) == n && memcmp(limit_names[i].name, name, n) == 0)
            return &limit_names[i];
    return NULL;
}

static int parse_limit(enum unit unit, const char *text, int64_t *ret)
{
    switch (unit) {
    case UNIT_NUMBER:
        return text_parse_int(text, 0, INT64_MAX, ret);
    case UNIT_SECONDS:
        if (text_parse_duration(text, ret) < 0)
            return -1;
        /* Round up: never less than was asked for. */
        *ret = *ret / 1000 + (*ret % 1000 > 0);
        return 0;
    case UNIT_BYTES:
    default:
        return text_parse_size(text, ret);
    }
}

int conf_rlimit_parse(const char *pair, int *ret_resource, uint64_t *ret_max, struct err *err)
{
    static const char *const units[] = {"a size such as 64MiB", "a whole number such as 1024",
                                        "a duration such as 60s"};
    size_t n = strcspn(pair, "=");
    const struct limit_name *limit = find_limit(pair, n);
    int64_t max;

    if (limit == NULL)
        return err_set(err, ERR_CONFIG, "\"%s\" is no limit: " LIMIT_NAMES, conf_show(pair).s);
    *ret_resource = limit->resource;
    *ret_max = UINT64_MAX;
    if (strcmp(pair + n, "=unlimited") == 0)
        return 0;
    if (pair[n] != '=' || parse_limit(limit->unit, pair + n + 1, &max) < 0)
        return err_set(err, ERR_CONFIG, "%s: \"%s\" is not %s, or unlimited", limit->name,
                       conf_show(pair[n] == '=' ? pair + n + 1 : "").s, units[limit->unit]);
    *ret_max = (uint64_t)max;
    return 0;
}

bool conf_variable_is_name(const char *name, size_t n)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

    return strspn(name, known) >= n && (n == 0 || name[0] < '0' || name[0] > '9');
}

bool conf_variable_is_ours(const char *name, size_t n)
{
    return strncmp(name, "LATER_", 6) == 0 || strncmp(name, "LATERD_", 7) == 0 ||
           (n == 11 && strncmp(name, "TRACEPARENT", n) == 0);
}

int conf_variable_check(const char *name, size_t n, struct err *err)
{
    const char *refused = NULL;

    if (n == 0 || !conf_variable_is_name(name, n))
        refused = "is not the name of a variable (letters, digits and _, no digit first)";
    else if (conf_variable_is_ours(name, n))
        refused = "is laterd's own: it is made for each job";
    return refused == NULL ? 0
                           : err_set(err, ERR_CONFIG, "\"%.*s\" %s", (int)(n < 40 ? n : 40),
                                     conf_show(name).s, refused);
}

static int check_pair(const struct conf_row *row, const char *item, struct err *err)
{
    size_t n = strcspn(item, "=");
    uint64_t max;
    int resource;

    if (strcmp(row->path, "rlimits") == 0)
        return conf_rlimit_parse(item, &resource, &max, err);
    if (item[n] != '=')
        return err_set(err, ERR_CONFIG, "\"%s\" has no value: write NAME: value",
                       conf_show(item).s);
    if (strcmp(row->path, "weights") == 0)
        return conf_weight_check(item, err);
    if (strcmp(row->path, "announce") == 0)
        return 0; /* redis/sentinel.c knows what an address is */
    return conf_variable_check(item, n, err);
}

/* An entry whose name comes twice, or NULL. */
static const char *find_twin(const char *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            size_t len = strcspn(items[i], "=");

            if (strncmp(items[i], items[k], len) == 0 && items[k][len] == '=')
                return items[i];
        }
    return NULL;
}

int conf_pairs_check(const struct conf_row *row, const char *const *items, size_t n,
                     struct err *err)
{
    const char *twin;

    for (size_t i = 0; i < n; i++)
        if (check_pair(row, items[i], err) < 0)
            return err_wrap(err, "%s", row->path);
    twin = find_twin(items, n);
    return twin == NULL ? 0
                        : err_set(err, ERR_CONFIG, "%s: \"%s\" is there twice", row->path,
                                  conf_show(twin).s);
}
