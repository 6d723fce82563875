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
#define BATCH_OF_TENANT 50
#define TOLD 10 /* so many errors of a kind are told one by one */

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
    (void)snprintf(l->dir, sizeof(l->dir), "%s", dir);
    (void)snprintf(l->path, sizeof(l->path), "%s/ledger", dir);
    test_install(dir, "tests/fault/ledger_handler", l->handler);
    fd = open(l->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || fchmod(fd, 0666) < 0)
        test_die(l->path);
    (void)close(fd);
}

void ledger_close(struct ledger *l)
{
    free(l->jobs);
    free(l->causes);
    l->jobs = NULL;
    l->causes = NULL;
    l->njobs = 0;
    l->ncauses = 0;
}

void ledger_yaml(const struct ledger *l, struct buf *ret, const char *queue, int min_ms, int max_ms)
{
    buf_printf(ret, "queues: { %s: { handler: [%s, %s, \"%d\", \"%d\"]%s } }\n", queue, l->handler,
               l->path, min_ms, max_ms, l->tenants > 0 ? ", " LEDGER_FAIR : "");
}

void ledger_script(const struct ledger *l, const char *name, const char *lines)
{
    test_handler(l->dir, name,
                 "read -r n; echo \"$n $LATER_ID $LATER_ATTEMPT $LATER_FENCE start\" >> %s\n%s\n"
                 "echo \"$n $LATER_ID $LATER_ATTEMPT $LATER_FENCE end\" >> %s",
                 l->path, lines, l->path);
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

void ledger_note(struct ledger *l, int number, const char *id)
{
    struct ledger_job *job;

    if (number == l->njobs) {
        /* Grow when njobs is 0, 1, 3, 7, …: the array doubles. */
        if ((l->njobs & (l->njobs + 1)) == 0)
            l->jobs = mem_grow(l->jobs, 2 * (size_t)l->njobs + 2, sizeof(*l->jobs));
        l->jobs[l->njobs++] = (struct ledger_job){"", false, false, false};
    }
    job = &l->jobs[number];
    if (id == NULL)
        return;
    (void)snprintf(job->id, sizeof(job->id), "%s", id);
    job->is_acked = true;
}

char *ledger_tenant(const struct ledger *l, int number)
{
    return mem_printf("t%d", l->tenants > 0 ? number % l->tenants : 0);
}

bool ledger_try_add(struct ledger *l, struct client *c, const char *queue, int number, int pad)
{
    CLEANUP_FREE char *payload = mem_printf("%d\n%*s", number, pad, "");
    CLEANUP_FREE char *token = mem_printf("token-%d", number);
    CLEANUP_FREE char *tenant = ledger_tenant(l, number);
    const char *plain[] = {queue, "token", token, payload};
    const char *keyed[] = {queue, "token", token, "key", tenant, payload};
    const char *const *argv = l->tenants > 0 ? keyed : plain;
    struct err err = ERR_INIT;
    struct reply *r;
    bool ok;

    ledger_note(l, number, NULL);
    r = c != NULL
            ? client_fcall(c, "default", "later_add", l->tenants > 0 ? 6 : 4, argv, NULL, &err)
            : NULL;
    ok = r != NULL;
    if (ok)
        ledger_note(l, number, reply_str(reply_at(r, 0)));
    reply_free(r);
    return ok;
}

/* Add the next n numbers in one call: all of them or none. */
static bool add_batch(struct ledger *l, struct client *c, const char *queue, int n,
                      const char *delay)
{
    static char texts[BATCH][16];
    CLEANUP_FREE char *tenant = ledger_tenant(l, l->njobs / BATCH_OF_TENANT);
    const char *argv[BATCH + 6] = {queue, "in", delay, "key", tenant, "--"};
    int from = l->tenants > 0 ? 6 : 4;
    struct err err = ERR_INIT;
    struct reply *r;
    bool ok;

    argv[from - 1] = "--";
    for (int i = 0; i < n; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%d", l->njobs + i);
        argv[from + i] = texts[i];
    }
    r = client_fcall(c, "default", "later_add_many", n + from, argv, NULL, &err);
    ok = r != NULL && reply_count(r) == (size_t)n;
    if (!ok)
        (void)fprintf(stderr, "ledger: add: %s\n", err.text);
    for (int i = 0; i < n; i++)
        ledger_note(l, l->njobs, ok ? reply_str(reply_at(reply_at(r, (size_t)i), 0)) : NULL);
    reply_free(r);
    return ok;
}

int ledger_add(struct ledger *l, const struct test_redis *r, const char *queue, int n, int delay_ms)
{
    CLEANUP_FREE char *delay = mem_printf("%dms", delay_ms);
    struct client *c = NULL;
    struct err err = ERR_INIT;
    int acked = 0, most = l->tenants > 0 ? BATCH_OF_TENANT : BATCH;

    for (int done = 0, part; done < n; done += part) {
        part = n - done < most ? n - done : most;
        if (c == NULL && (c = test_redis_client(r, &err)) == NULL) {
            for (int i = 0; i < part; i++)
                ledger_note(l, l->njobs, NULL);
        } else if (add_batch(l, c, queue, part, delay)) {
            acked += part;
        } else {
            client_close(c);
            c = NULL;
        }
    }
    client_close(c);
    return acked;
}

void ledger_excuse(struct ledger *l, int from)
{
    for (int i = from; i < l->njobs; i++)
        l->jobs[i].is_excused = true;
}

int ledger_lost_by_redis(struct ledger *l, struct test_redis *r, int from)
{
    CLEANUP_FREE bool *is_gone = mem_new(((size_t)l->njobs + 1) * sizeof(*is_gone));
    struct ledger_sum sum;
    int lost = 0;

    for (int i = from; i < l->njobs; i++) {
        const struct ledger_job *job = &l->jobs[i];
        struct reply *reply;

        if (!job->is_acked || job->is_excused || job->id[0] == '\0')
            continue;
        reply = test_redis_call(r, "HEXISTS", "later:{default}:jobs", job->id, NULL);
        is_gone[i] = reply != NULL && reply_int(reply) == 0;
        reply_free(reply);
    }
    /* Read the ledger only now: a job that ends is written there before Redis forgets it. */
    ledger_sum(l, &sum);
    for (int i = from; i < l->njobs; i++) {
        if (is_gone[i] && !l->jobs[i].has_ended) {
            l->jobs[i].is_excused = true;
            lost++;
        }
    }
    return lost;
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

static int by_id_of_row(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = strcmp(x->id, y->id);

    return order != 0 ? order : by_number(a, b);
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

int ledger_ends_of(const struct ledger *l, int number)
{
    size_t n;
    CLEANUP_FREE struct row *rows = read_rows(l, &n);
    int ends = 0;

    for (size_t i = 0; i < n; i++)
        ends += rows[i].number == number && !rows[i].is_start;
    return ends;
}

void ledger_fences(const struct ledger *l, int from, int to, int64_t *lowest, int64_t *highest)
{
    size_t n;
    CLEANUP_FREE struct row *rows = read_rows(l, &n);

    *lowest = INT64_MAX;
    *highest = 0;
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].is_start || rows[i].line < from || rows[i].line >= to)
            continue;
        *lowest = rows[i].fence < *lowest ? rows[i].fence : *lowest;
        *highest = rows[i].fence > *highest ? rows[i].fence : *highest;
    }
}

static void sum_again(const struct ledger *l, const struct row *rows, int starts,
                      struct ledger_sum *s, bool tells)
{
    const struct ledger_cause *c = cause_of(l, rows[0].id);
    int again = starts - 1;
    int by_crash = c == NULL ? 0 : c->crashes < again ? c->crashes : again;
    int rest = again - by_crash - (c == NULL ? 0 : c->others);

    s->again += again;
    s->crashes += by_crash;
    if (rest <= 0)
        return;
    if (tells && s->unexplained < TOLD)
        (void)fprintf(stderr, "ledger: %d starts of job %s, recorded: %d crashes, %d others\n",
                      starts, rows[0].id, c != NULL ? c->crashes : 0, c != NULL ? c->others : 0);
    s->unexplained += rest;
}

/* Has this start the attempt or the fence of one before it? */
static bool is_double(const struct row *rows, size_t i)
{
    for (size_t k = 0; rows[i].is_start && k < i; k++)
        if (rows[k].is_start && strcmp(rows[k].id, rows[i].id) == 0 &&
            (rows[k].attempt == rows[i].attempt || rows[k].fence == rows[i].fence))
            return true;
    return false;
}

/* Add the n rows of one number to the sum. */
static void sum_job(const struct ledger *l, const struct row *rows, size_t n, struct ledger_sum *s,
                    bool tells)
{
    int starts = 0, ends = 0;
    bool is_twin = false;

    for (size_t i = 0; i < n; i++) {
        starts += rows[i].is_start;
        ends += !rows[i].is_start;
        is_twin = is_twin || strcmp(rows[i].id, rows[0].id) != 0;
        if (is_double(rows, i) && s->double_starts++ < TOLD && tells)
            (void)fprintf(stderr, "ledger: job %s attempt %d started twice\n", rows[i].id,
                          rows[i].attempt);
    }
    s->starts += starts;
    s->ends += ends;
    s->twins += is_twin;
    s->duplicates += ends > 1 ? ends - 1 : 0;
    if (rows[0].number < 0 || rows[0].number >= l->njobs) {
        s->unexpected += (int)n;
        return;
    }
    if (starts > 1)
        sum_again(l, rows, starts, s, tells);
    l->jobs[rows[0].number].has_ended = ends > 0;
}

static void sum_up(struct ledger *l, struct ledger_sum *ret, bool tells)
{
    size_t n;
    CLEANUP_FREE struct row *rows = read_rows(l, &n);

    memset(ret, 0, sizeof(*ret));
    join_causes(l);
    for (int i = 0; i < l->njobs; i++)
        l->jobs[i].has_ended = false;
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && rows[k].number == rows[i].number;)
            k++;
        sum_job(l, &rows[i], k - i, ret, tells);
    }
    for (int i = 0; i < l->njobs; i++) {
        const struct ledger_job *job = &l->jobs[i];

        ret->acked += job->is_acked;
        if (job->is_acked && !job->is_excused && !job->has_ended && ret->lost++ < TOLD && tells)
            (void)fprintf(stderr, "ledger: number %d has not ended\n", i);
    }
    ret->attempted = l->njobs;
    /* Last, for it changes the order. */
    qsort(rows, n, sizeof(*rows), by_id_of_row);
    for (size_t i = 1; i < n; i++)
        ret->twins += rows[i - 1].number >= 0 && rows[i - 1].number != rows[i].number &&
                      strcmp(rows[i - 1].id, rows[i].id) == 0;
}

void ledger_sum(struct ledger *l, struct ledger_sum *ret)
{
    sum_up(l, ret, false);
}

void ledger_print(const struct ledger_sum *s, struct buf *ret)
{
    buf_printf(ret,
               "%d jobs, %d acknowledged, %d lost, %d unexpected, %d double starts, %d second "
               "executions (%d by a crash, %d without a recorded cause), %d ended twice",
               s->attempted, s->acked, s->lost, s->unexpected + s->twins, s->double_starts,
               s->again, s->crashes, s->unexplained, s->duplicates);
}

bool ledger_is_sound(struct ledger *l, int again, struct ledger_sum *ret)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    const struct ledger_sum *s = ret;
    bool is_sound;

    ledger_sum(l, ret);
    is_sound = s->lost + s->unexpected == 0;
    if (again == LEDGER_WITH_CAUSE)
        is_sound = is_sound && s->twins + s->double_starts + s->unexplained == 0;
    else
        is_sound =
            is_sound && s->twins <= again && s->duplicates <= again && s->double_starts <= again;
    if (is_sound)
        return true;
    sum_up(l, ret, true);
    ledger_print(s, &text);
    (void)fprintf(stderr, "ledger: %s\n", buf_str(&text));
    return false;
}
