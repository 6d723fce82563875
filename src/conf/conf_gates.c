#include "conf/conf_gates.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "conf/conf_row.h"

#define KEY "{key}"
#define NAME_MAX_BYTES 256
#define WEIGHT_MAX 1000
#define SLIDING_MAX 10000 /* the library keeps every start of its period */

int conf_gate_check_name(const char *name, struct err *err)
{
    size_t n = strlen(name);
    const char *brace;
    bool has_key = false;

    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] <= 0x20 || name[i] == 0x7f)
            return err_set(err, ERR_CONFIG,
                           "\"%s\" is no name of a gate: it has a space or a control character",
                           conf_show(name).s);
    if (n < 1 || n > NAME_MAX_BYTES)
        return err_set(err, ERR_CONFIG, "\"%s\" is no name of a gate: 1 to %d bytes",
                       conf_show(name).s, NAME_MAX_BYTES);
    for (brace = strchr(name, '{'); brace != NULL; brace = strchr(brace + 1, '{')) {
        if (strncmp(brace, KEY, strlen(KEY)) != 0)
            return err_set(err, ERR_CONFIG, "\"%s\": nothing but " KEY " may stand in braces",
                           conf_show(name).s);
        if (has_key)
            return err_set(err, ERR_CONFIG, "\"%s\": " KEY " may stand in a name once",
                           conf_show(name).s);
        has_key = true;
    }
    return 0;
}

int conf_limit_check_name(const char *name, struct err *err)
{
    if (conf_gate_check_name(name, err) < 0)
        return -1;
    if (strcmp(name, KEY) == 0)
        return err_set(err, ERR_CONFIG,
                       KEY " alone would define every name: put something beside it, as user:" KEY);
    return 0;
}

/* The index of the row of this path if it was written; else -1. */
static int given_row(const bool *given, const char *path)
{
    for (int i = 0; i < CONF_LIMIT_ROWS; i++)
        if (strcmp(conf_limit_rows[i].path, path) == 0)
            return given[i] ? i : -1;
    return -1;
}

static int check_semaphore(const bool *given, int *ret_row, struct err *err)
{
    *ret_row = given_row(given, "burst");
    if (*ret_row >= 0)
        return err_set(err, ERR_CONFIG, "burst belongs to a rate, this is a semaphore");
    *ret_row = given_row(given, "algorithm");
    if (*ret_row >= 0)
        return err_set(err, ERR_CONFIG, "algorithm belongs to a rate, this is a semaphore");
    return 0;
}

static int check_rate(struct conf_limit *limit, const bool *given, int *ret_row, struct err *err)
{
    *ret_row = given_row(given, "on_lost");
    if (*ret_row >= 0)
        return err_set(err, ERR_CONFIG, "on_lost belongs to a semaphore, this is a rate");
    if (limit->algorithm == CONF_ALGORITHM_FUNNEL)
        limit->algorithm = CONF_ALGORITHM_GCRA;
    *ret_row = given_row(given, "burst");
    if (*ret_row >= 0 && limit->algorithm != CONF_ALGORITHM_GCRA)
        return err_set(err, ERR_CONFIG, "burst belongs to algorithm: gcra");
    *ret_row = given_row(given, "rate");
    if (limit->algorithm == CONF_ALGORITHM_SLIDING && limit->rate.n > SLIDING_MAX)
        return err_set(err, ERR_CONFIG,
                       "rate: sliding keeps every start: at most %d in its time, or take gcra",
                       SLIDING_MAX);
    return 0;
}

int conf_limit_check(struct conf_limit *limit, const bool *given, int *ret_row, struct err *err)
{
    int semaphore = given_row(given, "semaphore");
    int rate = given_row(given, "rate");

    limit->is_rate = rate >= 0;
    if (semaphore >= 0 && rate >= 0) {
        *ret_row = rate;
        return err_set(err, ERR_CONFIG,
                       "both a semaphore and a rate: make it two limits, and name both in the "
                       "queue");
    }
    if (semaphore < 0 && rate < 0) {
        *ret_row = -1;
        return err_set(err, ERR_CONFIG,
                       "neither a semaphore nor a rate: write { semaphore: 20 } or "
                       "{ rate: 100/1m }");
    }
    return limit->is_rate ? check_rate(limit, given, ret_row, err)
                          : check_semaphore(given, ret_row, err);
}

int conf_weight_check(const char *item, struct err *err)
{
    const char *weight = strrchr(item, '=');
    size_t n = weight != NULL ? (size_t)(weight - item) : 0;
    int64_t value;

    for (size_t i = 0; i < n; i++)
        if ((unsigned char)item[i] <= 0x20 || item[i] == 0x7f)
            n = 0;
    if (n < 1 || n > NAME_MAX_BYTES)
        return err_set(err, ERR_CONFIG,
                       "\"%s\": write KEY: WEIGHT, the key of the jobs without blanks, 1 to %d "
                       "bytes",
                       conf_show(item).s, NAME_MAX_BYTES);
    if (text_parse_int(weight + 1, 1, WEIGHT_MAX, &value) < 0)
        return err_set(err, ERR_CONFIG, "\"%s\": a weight is a whole number from 1 to %d",
                       conf_show(item).s, WEIGHT_MAX);
    return 0;
}

static int check_fair(const struct conf_queue *queue, struct err *err)
{
    return queue->weights.n == 0 || queue->fair != 0
               ? 0
               : err_set(err, ERR_CONFIG, "weights belong to a fair queue: write fair: true");
}

int conf_queue_check_gates(const struct conf *conf, const struct conf_queue *queue,
                           const char **ret_path, struct err *err)
{
    const struct conf_limit *semaphore = conf_limit(conf, queue->semaphore);
    const struct conf_limit *rate = conf_limit(conf, queue->rate);

    *ret_path = "weights";
    if (check_fair(queue, err) < 0)
        return -1;
    *ret_path = "semaphore";
    if (semaphore != NULL && semaphore->is_rate)
        return err_set(err, ERR_CONFIG, "semaphore: \"%s\" is a rate in limits: write rate: %s",
                       conf_show(queue->semaphore).s, conf_show(queue->semaphore).s);
    *ret_path = "rate";
    if (rate != NULL && !rate->is_rate)
        return err_set(err, ERR_CONFIG,
                       "rate: \"%s\" is a semaphore in limits: write semaphore: %s",
                       conf_show(queue->rate).s, conf_show(queue->rate).s);
    return 0;
}

static int by_name(const void *name, const void *limit)
{
    return strcmp(name, ((const struct conf_limit *)limit)->name);
}

const struct conf_limit *conf_limit(const struct conf *conf, const char *name)
{
    if (conf->nlimits == 0)
        return NULL;
    return bsearch(name, conf->limits, conf->nlimits, sizeof(conf->limits[0]), by_name);
}

void conf_limit_text(const struct conf_limit *limit, struct buf *out)
{
    static const char *const algorithms[] = {"gcra", "sliding", "fixed", "gcra"};

    if (limit->is_rate)
        buf_printf(out, "rate %s %lld %lld %lld", algorithms[limit->algorithm],
                   (long long)limit->rate.n, (long long)limit->rate.per_ms,
                   (long long)limit->burst);
    else
        buf_printf(out, "semaphore %lld %s", (long long)limit->semaphore,
                   limit->on_lost == CONF_ON_LOST_KILL ? "kill" : "keep");
}

void conf_queue_gates(const struct conf_queue *queue, struct buf *out)
{
    const struct {
        const char *kind, *name;
    } gates[] = {{"lock", queue->lock}, {"sem", queue->semaphore}, {"rate", queue->rate}};
    const char *blank = "";

    if (queue->fair != 0) {
        buf_puts(out, "fair=1");
        blank = " ";
    }
    for (size_t i = 0; i < queue->weights.n; i++) {
        const char *item = queue->weights.at[i], *weight = strrchr(item, '=');

        buf_printf(out, " w=%s:%.*s", weight + 1, (int)(weight - item), item);
    }
    for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]); i++) {
        if (gates[i].name[0] == '\0')
            continue;
        buf_printf(out, "%s%s=%s", blank, gates[i].kind, gates[i].name);
        blank = " ";
    }
}
