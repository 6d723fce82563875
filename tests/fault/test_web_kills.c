/*
 * Entry W11 of the fault catalogue: kill -9 of later-web at any moment, under each of its writes,
 * under a bulk that it began, and under a live tail. What it was asked is done whole or not at all,
 * and the next later-web answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "../integration/web_fixture.h"
#include "../support/fsck.h"
#include "stage.h"

#define FEW 150  /* a bulk of so many is done at once; */
#define MANY 300 /* this one is left to the workers */
#define ROUNDS 5 /* of all writes */
#define ROUNDS_MAX 50

static char id[16]; /* of what the next write is about */

/* ---- what there is before */

static void take_first(struct reply *r)
{
    const struct reply *first = reply_count(r) > 0 ? reply_at(r, 0) : r;

    (void)snprintf(id, sizeof(id), "%s", reply_str(first));
    assert_int_equal(strlen(id), 12);
    reply_free(r);
}

static void put_nothing(void) {}

static void put_due(void)
{
    take_first(test_fcall(&redis, "later_add", "mail", "in", "1h", "x", NULL));
}

static void put_dead(int n)
{
    static const char script[] =
        "local R, now = KEYS[1], redis.call('TIME')[1] * 1000 "
        "redis.call('SADD', R .. ':names', 'mail') "
        "for i = 1, tonumber(ARGV[1]) do local id = string.format('j%011d', i) "
        "redis.call('HSET', R .. ':jobs', id, '-mail 5\\nx') "
        "redis.call('HSET', R .. ':tries', id, '1 1 0 1000') "
        "redis.call('ZADD', R .. ':dead:mail', now - i, id) "
        "redis.call('HSET', R .. ':errors', id, 'dead 1 1000 1 no route\\n') end";
    CLEANUP_FREE char *text = mem_printf("%d", n);

    do_redis("EVAL", script, "1", ROOT, text);
    (void)snprintf(id, sizeof(id), "j00000000001");
}

static void put_one_dead(void)
{
    put_dead(1);
}

static void put_few_dead(void)
{
    put_dead(FEW);
}

static void put_many_dead(void)
{
    put_dead(MANY);
}

static void put_bulk(void)
{
    put_many_dead();
    take_first(test_fcall(&redis, "later_bulk", "retry", "mail", "dead", NULL));
}

static void put_schedule(void)
{
    reply_free(
        test_fcall(&redis, "later_schedule_set", "s", "every", "1h", "queue", "mail", "x", NULL));
}

/* ---- what there is after */

#define FAR_MS "1900000000000"

/* What any of the writes changes, in numbers. */
static const char summary[] =
    "local R = KEYS[1] "
    "local bulks = redis.call('ZRANGE', R .. ':bulks', 0, -1) "
    "local total, status = 0, '-' "
    "for _, id in ipairs(bulks) do "
    "  total = total + redis.call('HGET', R .. ':bulk:' .. id, 'total') "
    "  status = redis.call('HGET', R .. ':bulk:' .. id, 'status') or 'active' end "
    "return string.format('jobs=%d due=%d far=%d dead=%d paused=%d bulks=%d,%d,%s', "
    "  redis.call('HLEN', R .. ':jobs'), redis.call('ZCARD', R .. ':q:mail:5'), "
    "  redis.call('ZCOUNT', R .. ':q:mail:5', '" FAR_MS "', '+inf'), "
    "  redis.call('ZCARD', R .. ':dead:mail'), redis.call('HLEN', R .. ':paused'), #bulks, total, "
    "  status)";

/* The caller's to free. */
static char *look(void)
{
    struct reply *r = test_redis_call(&redis, "EVAL", summary, "1", ROOT, NULL);
    char *text = mem_strdup(reply_str(r));

    reply_free(r);
    return text;
}

static const struct write {
    const char *path; /* %s: id */
    const char *body;
    void (*put)(void);
    const char *done;
    bool once; /* asked again, it is done again */
} writes[] = {
    {"jobs", "{\"queue\":\"mail\",\"payload\":\"x\",\"in\":\"1h\",\"token\":\"t\"}", put_nothing,
     "jobs=1 due=1 far=0 dead=0 paused=0 bulks=0,0,-", false},
    {"jobs/%s/retry", "{}", put_one_dead, "jobs=1 due=1 far=0 dead=0 paused=0 bulks=0,0,-", false},
    {"jobs/%s/cancel", "{}", put_due, "jobs=0 due=0 far=0 dead=0 paused=0 bulks=0,0,-", false},
    {"jobs/%s/reschedule", "{\"at\":\"" FAR_MS "\"}", put_due,
     "jobs=1 due=1 far=1 dead=0 paused=0 bulks=0,0,-", false},
    {"queues/mail/pause", "{\"reason\":\"deploy\"}", put_nothing,
     "jobs=0 due=0 far=0 dead=0 paused=1 bulks=0,0,-", false},
    {"schedules/s/run", "{}", put_schedule, "jobs=1 due=1 far=0 dead=0 paused=0 bulks=0,0,-", true},
    {"bulks", "{\"verb\":\"retry\",\"queue\":\"mail\",\"state\":\"dead\"}", put_few_dead,
     "jobs=150 due=150 far=0 dead=0 paused=0 bulks=1,150,done", true},
    {"bulks", "{\"verb\":\"retry\",\"queue\":\"mail\",\"state\":\"dead\"}", put_many_dead,
     "jobs=300 due=0 far=0 dead=300 paused=0 bulks=1,300,active", true},
    {"bulks/%s/abort", "{}", put_bulk, "jobs=300 due=0 far=0 dead=300 paused=0 bulks=1,300,aborted",
     false},
};
#define WRITES (sizeof(writes) / sizeof(writes[0]))

/* ---- the kills */

static char *path_of(const struct write *w)
{
    const char *at = strstr(w->path, "%s");

    if (at == NULL)
        return mem_printf("/api/v1/default/%s", w->path);
    return mem_printf("/api/v1/default/%.*s%s%s", (int)(at - w->path), w->path, id, at + 2);
}

/* Send it, and do not wait for the answer. -> the connection */
static int send_write(const struct write *w)
{
    CLEANUP_FREE char *path = path_of(w);
    CLEANUP_FREE char *text =
        mem_printf("POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
                   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                   path, port, token, strlen(w->body), w->body);
    int fd = dial();

    write_all(fd, text, strlen(text));
    return fd;
}

static void put(const struct write *w)
{
    do_redis("FLUSHALL");
    w->put();
}

static bool is_alone(void *arg)
{
    struct reply *r = test_redis_call(&redis, "CLIENT", "LIST", NULL);
    const char *text = reply_str(r), *lf = strchr(text, '\n');
    bool alone = lf == NULL || lf[1] == '\0';

    (void)arg;
    reply_free(r);
    return alone;
}

/* What it had sent before its end, Redis does yet. */
static void kill_web(void)
{
    proc_signal(&web, SIGKILL);
    assert_int_equal(proc_wait(&web, LONG_MS), 128 + SIGKILL);
    proc_done(&web);
    assert_true(test_until(is_alone, NULL, LONG_MS));
}

/* How long one takes that nobody disturbs, in µs. It is all there then. */
static int64_t measure(const struct write *w)
{
    struct timespec a, b;
    CLEANUP_FREE char *after = NULL;

    put(w);
    (void)clock_gettime(CLOCK_MONOTONIC, &a);
    assert_int_equal(read_answer(send_write(w)), 200);
    (void)clock_gettime(CLOCK_MONOTONIC, &b);
    after = look();
    assert_string_equal(after, w->done);
    return (b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000;
}

/* Kill it at any moment of the time that a write takes. -> was it done? */
static bool kill_under(const struct write *w, int64_t us)
{
    struct timespec wait = {.tv_nsec = 1000L * stage_random(0, us < 800000 ? (int)us : 800000)};
    CLEANUP_FREE char *before = NULL, *after = NULL, *again = NULL;
    bool done;
    int fd, status;

    put(w);
    before = look();
    fd = send_write(w);
    (void)nanosleep(&wait, NULL);
    kill_web();
    (void)close(fd);
    after = look();
    done = strcmp(after, w->done) == 0;
    if (!done)
        assert_string_equal(after, before);
    assert_int_equal(test_fsck(&redis), 0);

    /* Whoever had no answer asks the next one again. */
    start_web("--write");
    if (w->once && done)
        return done;
    status = read_answer(send_write(w));
    if (status != 200 && status != 404 && status != 409)
        fail_msg("%s: %s", w->path, buf_str(&out));
    again = look();
    assert_string_equal(again, w->done);
    assert_int_equal(test_fsck(&redis), 0);
    return done;
}

static void W11_killed_under_each_write(void **state)
{
    int64_t us[WRITES];
    int kills = 0, done = 0;

    (void)state;
    (void)stage_seed();
    start_web("--write");
    for (size_t i = 0; i < WRITES; i++)
        us[i] = measure(&writes[i]);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        if (round >= ROUNDS && done > 0 && done < kills)
            break;
        for (size_t i = 0; i < WRITES; i++) {
            done += kill_under(&writes[i], us[i]);
            kills++;
        }
    }
    print_message("figure W11: %d kills under %zu writes: %d were done, %d not, none in part\n",
                  kills, WRITES, done, kills - done);
    assert_true(done > 0 && done < kills);
}

/* ---- a bulk */

static char dir[64];
static struct test_laterd daemon_a;

#define BULK 2000

static bool has_begun(void *arg)
{
    (void)arg;
    return test_int(&redis, "ZCARD", ROOT ":q:other:5") > BULK / 10;
}

/* The daemons go on with it: nothing of it is in later-web. */
static void W11_killed_while_a_bulk_runs(void **state)
{
    CLEANUP_FREE char *of = NULL;
    int64_t at_kill;
    json_t *told;

    (void)state;
    test_folder_make(dir);
    test_handler(dir, "mail", "exit 0\n");
    test_laterd_conf(&daemon_a, dir, "a", redis.url, "concurrency: 1\n");
    test_laterd_start(&daemon_a);
    put_dead(BULK);
    start_web("--write");
    assert_int_equal(post("/api/v1/default/bulks",
                          "{\"verb\":\"retry\",\"queue\":\"mail\",\"state\":\"dead\",\"to\":"
                          "\"other\",\"rate\":\"1000/s\"}"),
                     200);
    told = answer();
    of = mem_printf("/api/v1/default/bulks?%s", text_of(told, "bulk"));
    (void)snprintf(id, sizeof(id), "%s", text_of(told, "bulk"));
    json_decref(told);
    assert_true(test_until(has_begun, NULL, LONG_MS));
    proc_signal(&web, SIGKILL);
    assert_int_equal(proc_wait(&web, LONG_MS), 128 + SIGKILL);
    proc_done(&web);
    at_kill = test_int(&redis, "ZCARD", ROOT ":q:other:5");
    assert_true(at_kill < BULK);
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":q:other:5", BULK, LONG_MS));
    assert_int_equal(count("ZCARD", ROOT ":dead:mail"), 0);
    assert_int_equal(count("HLEN", ROOT ":jobs"), BULK);
    start_web(NULL);
    assert_int_equal(get(of), 200);
    assert_says(&out, id);
    assert_int_equal(test_laterd_stop(&daemon_a), 0);
    assert_int_equal(test_fsck(&redis), 0);
    test_folder_remove(dir);
}

/* ---- a live tail */

/* A stream that told of a job. -> its connection */
static int follow(void)
{
    int fd = open_tail();

    reply_free(test_fcall(&redis, "later_add", "mail", "in", "1h", "x", NULL));
    read_until(fd, "\"event\":\"added\"");
    return fd;
}

static void W11_killed_under_a_live_tail(void **state)
{
    int fd;

    (void)state;
    start_web(NULL);
    fd = follow();
    kill_web();
    assert_true(recv(fd, (char[1]){0}, 1, 0) <= 0);
    (void)close(fd);
    /* Nobody listens, and whoever adds a job does not notice. */
    assert_int_equal(publish("1 1 0"), 0);
    reply_free(test_fcall(&redis, "later_add", "mail", "in", "1h", "x", NULL));
    assert_int_equal(count("HLEN", ROOT ":jobs"), 2);
    start_web(NULL);
    (void)close(follow());
    assert_int_equal(test_fsck(&redis), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WEB_TEST(W11_killed_under_each_write),
        WEB_TEST(W11_killed_while_a_bulk_runs),
        WEB_TEST(W11_killed_under_a_live_tail),
    };

    return cmocka_run_group_tests_name("web_kills", tests, start_all, stop_all);
}
