#include "ledger.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/laterd.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "redis/client.h"

#define BATCH 500
#define CALL_MS 20000
#define ATTEMPTED 1
#define ACKED 2

struct ledger_cause {
    char id[16];
    int crashes; /* the highest count in a start line */
    int others;  /* retries, releases, results that were dropped or refused */
};

/* ---- the file and the handler */

void ledger_open(struct ledger *l, const char *dir)
{
    int fd;

    memset(l, 0, sizeof(*l));
    (void)snprintf(l->path, sizeof(l->path), "%s/ledger", dir);
    test_install(dir, "tests/fault/ledger_handler", l->handler);
    fd = open(l->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || fchmod(fd, 0666) < 0)
        test_die(l->path);
    (void)close(fd);
}

void ledger_close(struct ledger *l)
{
    buf_done(&l->numbers);
    free(l->causes);
    l->causes = NULL;
    l->ncauses = 0;
}

void ledger_yaml(const struct ledger *l, struct buf *ret, const char *queue, int min_ms, int max_ms)
{
    buf_printf(ret, "queues: { %s: { handler: [%s, %s, \"%d\", \"%d\"] } }\n", queue, l->handler,
               l->path, min_ms, max_ms);
}

int ledger_lines(const struct ledger *l, const char *what)
{
    return test_lines(l->path, what);
}

bool ledger_until(const struct ledger *l, const char *what, int n, int deadline_ms)
{
    return test_until_lines(l->path, what, n, deadline_ms);
}

/* ---- adding */

/* Add the numbers first to first + n - 1 in one call: all of them or none. */
static bool add_batch(struct client *c, const char *queue, int first, int n, const char *delay)
{
    static char texts[BATCH][16];
    const char *argv[BATCH + 4] = {queue, "in", delay, "--"};
    struct err err = ERR_INIT;
    struct reply *r;
    bool ok;

    for (int i = 0; i < n; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%d", first + i);
        argv[4 + i] = texts[i];
    }
    r = client_fcall(c, "default", "later_add_many", n + 4, argv, NULL, &err);
    ok = r != NULL && reply_count(r) == (size_t)n;
    if (!ok)
        (void)fprintf(stderr, "ledger: add: %s\n", err.text);
    reply_free(r);
    return ok;
}

int ledger_add(struct ledger *l, const struct test_redis *r, const char *queue, int n, int delay_ms)
{
    CLEANUP_FREE char *delay = mem_printf("%dms", delay_ms);
    struct client *c = NULL;
    struct err err = ERR_INIT;
    struct url url;
    int acked = 0;

    if (url_parse(r->url, &url, &err) < 0)
        test_die(r->url);
    for (int done = 0, part; done < n; done += part) {
        int first = (int)l->numbers.len;
        bool ok;

        part = n - done < BATCH ? n - done : BATCH;
        if (c == NULL)
            c = client_open(&url, CALL_MS, &err);
        ok = c != NULL && add_batch(c, queue, first, part, delay);
        memset(buf_reserve(&l->numbers, (size_t)part), ok ? ATTEMPTED | ACKED : ATTEMPTED,
               (size_t)part);
        l->numbers.len += (size_t)part;
        acked += ok ? part : 0;
        if (!ok) {
            client_close(c);
            c = NULL;
        }
    }
    client_close(c);
    return acked;
}

/* ---- what laterd recorded */

static bool job_of(const char *line, char id[16])
{
    const char *at = strstr(line, " job=");

    return at != NULL && sscanf(at, " job=%15[0-9a-z]", id) == 1;
}

static void take_line(struct ledger *l, const char *line)
{
    struct ledger_cause c = {"", 0, 0};
    const char *at;
    long long n;

    if (strstr(line, "event=reaped ") != NULL) {
        if ((at = strstr(line, " jobs=")) != NULL && sscanf(at, " jobs=%lld", &n) == 1)
            l->reaped += n;
        return;
    }
    if (!job_of(line, c.id))
        return;
    if (strstr(line, "event=start ") != NULL) {
        if ((at = strstr(line, " crashes=")) == NULL || sscanf(at, " crashes=%d", &c.crashes) != 1)
            return;
    } else if (strstr(line, "event=late-result-") != NULL ||
               (strstr(line, "event=end ") != NULL &&
                (strstr(line, " outcome=retry ") != NULL ||
                 strstr(line, " outcome=released ") != NULL))) {
        c.others = 1;
    } else {
        return;
    }
    /* Grow when ncauses is 0, 1, 3, 7, …: the array doubles. */
    if ((l->ncauses & (l->ncauses + 1)) == 0)
        l->causes = mem_grow(l->causes, 2 * l->ncauses + 2, sizeof(*l->causes));
    l->causes[l->ncauses++] = c;
}

void ledger_log(struct ledger *l, const char *log_path)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    char *save = NULL;

    test_read(log_path, &all);
    for (char *p = strtok_r(all.data, "\n", &save); p != NULL; p = strtok_r(NULL, "\n", &save))
        take_line(l, p);
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct ledger_cause *)a)->id, ((const struct ledger_cause *)b)->id);
}

/* Sort the causes and join those of one id. */
static void join_causes(struct ledger *l)
{
    size_t kept = 0;

    if (l->ncauses == 0)
        return;
    qsort(l->causes, l->ncauses, sizeof(*l->causes), by_id);
    for (size_t i = 1; i < l->ncauses; i++) {
        struct ledger_cause *k = &l->causes[kept];

        if (strcmp(k->id, l->causes[i].id) != 0) {
            l->causes[++kept] = l->causes[i];
            continue;
        }
        k->crashes = l->causes[i].crashes > k->crashes ? l->causes[i].crashes : k->crashes;
        k->others += l->causes[i].others;
    }
    l->ncauses = kept + 1;
    l->causes = mem_grow(l->causes, 2 * l->ncauses + 2, sizeof(*l->causes));
}

/* ---- the arithmetic */

struct row {
    int number; /* -1: the line cannot be read */
    int line;
    char id[16];
    int attempt;
    long long fence;
    bool is_start;
};

static int by_number(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return x->number != y->number ? (x->number < y->number ? -1 : 1) : x->line - y->line;
}

static struct row *read_rows(const struct ledger *l, size_t *n)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    struct row *rows = NULL;
    char *save = NULL;

    *n = 0;
    test_read(l->path, &all);
    rows = mem_new(((size_t)test_lines(l->path, NULL) + 1) * sizeof(*rows));
    for (char *p = all.len > 0 ? strtok_r(all.data, "\n", &save) : NULL; p != NULL;
         p = strtok_r(NULL, "\n", &save)) {
        struct row *r = &rows[*n];
        char what[8] = "";

        r->line = (int)(*n)++;
        if (sscanf(p, "%d %15s %d %lld %7s", &r->number, r->id, &r->attempt, &r->fence, what) != 5)
            r->number = -1;
        r->is_start = strcmp(what, "start") == 0;
    }
    qsort(rows, *n, sizeof(*rows), by_number);
    return rows;
}

static const struct ledger_cause *cause_of(const struct ledger *l, const char *id)
{
    struct ledger_cause key = {"", 0, 0};

    (void)snprintf(key.id, sizeof(key.id), "%s", id);
    return l->ncauses == 0 ? NULL : bsearch(&key, l->causes, l->ncauses, sizeof(*l->causes), by_id);
}

static void sum_again(const struct ledger *l, const struct row *rows, int starts,
                      struct ledger_sum *s)
{
    const struct ledger_cause *c = cause_of(l, rows[0].id);
    int again = starts - 1;
    int by_crash = c == NULL ? 0 : c->crashes < again ? c->crashes : again;
    int rest = again - by_crash - (c == NULL ? 0 : c->others);

    s->again += again;
    s->crashes += by_crash;
    if (rest <= 0)
        return;
    s->unexplained += rest;
    (void)fprintf(stderr, "ledger: %d starts of job %s, recorded: %d crashes, %d others\n", starts,
                  rows[0].id, c != NULL ? c->crashes : 0, c != NULL ? c->others : 0);
}

/* Add the n rows of one number to the sum. */
static void sum_job(const struct ledger *l, const struct row *rows, size_t n, struct ledger_sum *s)
{
    int starts = 0, ends = 0;
    bool is_twin = false;

    for (size_t i = 0; i < n; i++) {
        starts += rows[i].is_start;
        ends += !rows[i].is_start;
        is_twin = is_twin || strcmp(rows[i].id, rows[0].id) != 0;
        for (size_t k = 0; rows[i].is_start && k < i; k++) {
            if (rows[k].is_start && strcmp(rows[k].id, rows[i].id) == 0 &&
                (rows[k].attempt == rows[i].attempt || rows[k].fence == rows[i].fence)) {
                s->double_starts++;
                (void)fprintf(stderr, "ledger: job %s attempt %d started twice\n", rows[i].id,
                              rows[i].attempt);
                break;
            }
        }
    }
    s->starts += starts;
    s->ends += ends;
    s->twins += is_twin;
    s->duplicates += ends > 1 ? ends - 1 : 0;
    if (rows[0].number < 0 || (size_t)rows[0].number >= l->numbers.len) {
        s->unexpected += (int)n;
        return;
    }
    if (starts > 1)
        sum_again(l, rows, starts, s);
    if (ends > 0)
        l->numbers.data[rows[0].number] |= 4;
}

void ledger_sum(struct ledger *l, struct ledger_sum *ret)
{
    size_t n;
    CLEANUP_FREE struct row *rows = read_rows(l, &n);

    memset(ret, 0, sizeof(*ret));
    join_causes(l);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && rows[k].number == rows[i].number;)
            k++;
        sum_job(l, &rows[i], k - i, ret);
    }
    for (size_t i = 0; i < l->numbers.len; i++) {
        bool is_acked = (l->numbers.data[i] & ACKED) != 0;
        bool has_ended = (l->numbers.data[i] & 4) != 0;

        ret->acked += is_acked;
        if (is_acked && !has_ended && ret->lost++ < 10)
            (void)fprintf(stderr, "ledger: number %zu has not ended\n", i);
        l->numbers.data[i] &= ATTEMPTED | ACKED;
    }
    ret->attempted = (int)l->numbers.len;
}

void ledger_print(const struct ledger_sum *s, struct buf *ret)
{
    buf_printf(ret,
               "%d jobs, %d acknowledged, %d lost, %d unexpected, %d double starts, %d second "
               "executions (%d by a crash, %d without a recorded cause), %d ended twice",
               s->attempted, s->acked, s->lost, s->unexpected + s->twins, s->double_starts,
               s->again, s->crashes, s->unexplained, s->duplicates);
}

bool ledger_is_sound(const struct ledger_sum *s)
{
    CLEANUP_BUF struct buf text = BUF_INIT;

    if (s->lost + s->unexpected + s->twins + s->double_starts + s->unexplained == 0)
        return true;
    ledger_print(s, &text);
    (void)fprintf(stderr, "ledger: %s\n", buf_str(&text));
    return false;
}
