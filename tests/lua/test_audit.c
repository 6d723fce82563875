/*
 * later_v1_audit and later_v1_repair: each kind of damage is made by hand, found by its name and
 * repaired once. A sound namespace has no findings.
 *
 * Reason for its length: one small test for each kind of damage.
 */
#include "fixture.h"

#include "store/keys.h"

#define MAIL "mail 10 1048576"
#define BIG_BYTES 20000

/* ---- the whole audit, as `later fsck` does it */

/* Append "kind name", and "+" when it was repaired, for each finding of the last reply. */
static void take(struct buf *found)
{
    for (int i = 2; i < len_at(-1); i++) {
        buf_printf(found, "%s%s %s%s", found->len > 0 ? ", " : "", at(i, 0, -1), at(i, 1, -1),
                   int_at(i, 4, -1) == 1 ? "+" : "");
    }
}

/* All pages of a phase, which are so small that there are many. */
static void phase(struct buf *found, const char *function, const char *name, const char *names)
{
    const char *cursor = "''";

    do {
        const char *reply =
            fcall("%s %s %s 2%s%s", function, name, cursor, *names ? " " : "", names);

        assert_starts(reply, "[");
        cursor = at(0, -1);
        take(found);
    } while (cursor[0] != '\0');
}

static bool is_big(const char *name)
{
    return strncmp(name, "big:", 4) == 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of all keys without "R:", sorted; *n: how many. */
static const char **key_names(int *n)
{
    static const char *names[500];

    (void)redis("KEYS R:*");
    *n = len_at(-1);
    assert_true(*n < 500);
    for (int i = 0; i < *n; i++)
        names[i] = at(i, -1) + strlen(ROOT ":");
    qsort(names, (size_t)*n, sizeof(names[0]), compare);
    return names;
}

static void each_key(struct buf *found, const char *function, bool big)
{
    int n;
    const char **names = key_names(&n);

    for (int i = 0; i < n; i++) {
        const char *type = keys_type(names[i], strlen(names[i]));

        assert_non_null(type);
        if (is_big(names[i]) == big)
            phase(found, function, "keys", text("%s %s", names[i], *type ? type : "''"));
    }
}

/* All phases, in the order that the head comment of calls/audit.lua asks for. -> the findings */
static const char *run(const char *function)
{
    static const char *const phases[] = {"running", "jobs",   "tries",    "errors", "failures",
                                         "results", "cancel", "progress", "workers"};
    struct buf found = BUF_INIT;
    const char **names;
    size_t len;
    int n;

    each_key(&found, function, false);
    names = key_names(&n);
    for (int i = 0; i < n; i++) {
        if (keys_queue_of_set(names[i], strlen(names[i]), &len) != NULL)
            phase(&found, function, "set", names[i]);
    }
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
        phase(&found, function, phases[i], "");
    phase(&found, function, "queue", "mail");
    phase(&found, function, "queue", "work");
    each_key(&found, function, true);
    buf_add(&found, NULL, 0);
    (void)buf_str(&found);
    return keep(buf_take(&found));
}

/* The audit finds exactly this and writes nothing. */
static void assert_found(const char *want)
{
    const char *before = snapshot();

    assert_string_equal(run("later_v1_audit"), want);
    assert_string_equal(snapshot(), before);
}

static void assert_clean(void)
{
    assert_found("");
}

/* The damage is found and repaired, and after that there is no finding. */
static void assert_cured(const char *want)
{
    assert_found(want);
    assert_string_equal(run("later_v1_repair"), text("%s+", want));
    assert_clean();
}

/* The finding stays: a repair writes nothing. */
static void assert_left(const char *want)
{
    const char *before = snapshot();

    assert_found(want);
    assert_string_equal(run("later_v1_repair"), want);
    assert_string_equal(snapshot(), before);
}

/* The job is the only dead one of this queue, and has died for this reason. */
static void assert_buried(const char *id, const char *queue, const char *why)
{
    assert_starts(fcall("later_show %s", id), "[");
    assert_string_equal(named("state"), "dead");
    assert_string_equal(named("queue"), queue);
    assert_string_equal(redis("ZCARD R:dead:%s", queue), "1");
    if (strstr(redis("HGET R:errors %s", id), text(" fsck: %s", why)) == NULL)
        fail_msg("%s is not in: %s", why, redis("HGET R:errors %s", id));
}

static const char *add_big(const char *options)
{
    char *payload = mem_new(BIG_BYTES + 1);

    memset(payload, 'b', BIG_BYTES);
    (void)keep(payload);
    assert_starts(fcall_bytes(text("later_add mail%s", options), payload, BIG_BYTES), "[j");
    return at(0, -1);
}

/* A worker that holds a job of queue mail. */
struct held_job {
    const char *w, *id;
};

static struct held_job holder(void)
{
    struct held_job h;

    h.w = worker();
    h.id = add("mail x");
    assert_string_equal(claim(h.w, "mail", 1), h.id);
    return h;
}

static void set_record(const char *id, const char *record)
{
    const char *argv[] = {"HSET", ROOT ":jobs", id, record};

    (void)send_args(4, argv, NULL);
}

/* ---- sound namespaces */

/* A job of mail under which n workers have died. */
static const char *crashed(int n)
{
    struct held_job h;
    const char *id = add("mail x");

    for (int i = 0; i < n; i++) {
        h.w = worker();
        assert_string_equal(claim(h.w, "mail", 1), id);
        (void)fcall("later_v1_reap %s %s 1 9 100", worker(), h.w);
        assert_string_equal(at(0, -1), "clear");
    }
    return id;
}

/* Jobs in every state that there is. */
static void fill(void)
{
    const char *id, *w;

    (void)crashed(2);
    assert_string_equal(redis("ZCARD R:solo:mail"), "1");
    w = worker();
    for (int i = 0; i < 4; i++)
        (void)add("work priority %d keep 1h x", i);
    (void)add_big(" in 1h");
    (void)fcall_sync("%s 1 0 4 0 1 work 4 1048576", w);
    assert_int_equal(count_claimed(), 4);
    (void)settle(w, claimed(0, CLAIM_ID), 1, "done", 60000);
    (void)redis("ZRANGE R:running 0 -1");
    (void)settle(w, at(0, -1), 1, "retry", 60000);
    (void)redis("ZRANGE R:running 0 -1");
    id = at(0, -1);
    (void)settle(w, id, 1, "progress", 0);
    (void)fcall("later_cancel %s", id);
    (void)add_big(" priority 0");
    (void)fcall_sync("%s 1 9 1 0 1 mail 1 1048576", w);
    assert_int_equal(count_claimed(), 1);
    (void)settle(w, claimed(0, CLAIM_ID), 1, "dead", 100);
    (void)add("mail in 1h token t x");
    (void)add("mail priority 9 x");
    (void)redis("ZADD R:due:mail 5 raw 1e300 never");
    (void)redis("ZADD R:due:raw-only 5 raw");
    (void)fcall("later_pause work for 1h");
    (void)fcall("later_v1_await %s", id);
    (void)fcall("later_v1_note stray-key x");
}

static void test_a_namespace_in_order(void **state)
{
    (void)state;
    assert_clean();
    fill();
    assert_left("");
}

/* A due suspect that only an idle worker may take is left out of the heads on purpose. */
static void test_a_suspect_that_waits_for_an_idle_worker(void **state)
{
    const char *w;

    (void)state;
    (void)crashed(2);
    w = worker();
    (void)fcall_sync("%s 1 1 4 0 1 %s", w, MAIL);
    assert_string_equal(redis("ZSCORE R:heads mail"), "nil");
    assert_clean();
}

static void test_a_worker_that_is_being_reaped(void **state)
{
    struct held_job h = holder();

    (void)state;
    (void)redis("HSET R:workers %s dead", h.w);
    assert_clean();
}

static void test_read_only(void **state)
{
    (void)state;
    (void)redis("HSET R:tries jaaaaaaaaaaa 1");
    assert_starts(redis("FCALL_RO later_v1_audit 1 " ROOT " tries '' 200"), "[ 1 [leftover ");
    assert_starts(redis("FCALL_RO later_v1_repair 1 " ROOT " tries '' 200"), "!");
    assert_string_equal(redis("HLEN R:tries"), "1");
}

static void test_bad_arguments(void **state)
{
    (void)state;
    assert_refused("ELATER_ARGS", "later_v1_audit");
    assert_refused("ELATER_ARGS", "later_v1_audit jobs");
    assert_refused("ELATER_ARGS", "later_v1_audit jobs ''");
    assert_refused("ELATER_ARGS", "later_v1_audit jobs '' 0");
    assert_refused("ELATER_ARGS", "later_v1_audit jobs '' 201");
    assert_refused("ELATER_ARGS", "later_v1_audit jobs x 200");
    assert_refused("ELATER_ARGS", "later_v1_audit jobs -1 200");
    assert_refused("ELATER_ARGS", "later_v1_repair nothing '' 200");
    assert_refused("ELATER_ARGS", "later_v1_repair set '' 200");
    assert_refused("ELATER_ARGS", "later_v1_repair set '' 200 jobs");
    assert_refused("ELATER_ARGS", "later_v1_repair set '' 200 q:mail:10");
    assert_refused("ELATER_ARGS", "later_v1_repair keys '' 200 jobs");
    assert_refused("ELATER_ARGS", "later_v1_repair queue '' 1 a b");
    assert_refused("ELATER_QUEUE", "later_v1_repair queue '' 1 a:b");
}

/* Pages that follow each other check each job once. */
static void test_pages(void **state)
{
    const char *cursor = "''";
    int64_t looked = 0;
    int pages = 0;

    (void)state;
    for (int i = 0; i < 700; i++)
        (void)add("mail x");
    do {
        (void)fcall("later_v1_audit jobs %s 50", cursor);
        cursor = at(0, -1);
        looked += int_at(1, -1);
        pages++;
        assert_int_equal(len_at(-1), 2);
    } while (cursor[0] != '\0');
    assert_int_equal(looked, 700);
    assert_in_range(pages, 7, 28);
}

/* ---- records and sets */

static void P10_fsck_finds_a_member_without_a_record(void **state)
{
    const char *id = add("mail x");

    (void)state;
    (void)redis("HDEL R:jobs %s", id);
    assert_cured(text("no-record %s", id));
    assert_buried(id, "mail", "its record is missing");
}

/* Its payload has a key of its own and is still there: it is buried with the job. */
static void test_a_member_without_a_record_keeps_its_payload(void **state)
{
    const char *id = add_big("");

    (void)state;
    (void)redis("HDEL R:jobs %s", id);
    assert_found(text("no-record %s, orphan-payload %s", id, id));
    assert_string_equal(run("later_v1_repair"), text("no-record %s+", id));
    assert_clean();
    assert_buried(id, "mail", "its record is missing");
    (void)fcall("later_show %s", id);
    assert_string_equal(named("payload_bytes"), text("%d", BIG_BYTES));
}

static void test_a_done_one_without_a_record_is_forgotten(void **state)
{
    struct held_job h = holder();

    (void)state;
    assert_string_equal(settle(h.w, h.id, 1, "done", 60000), "ok");
    (void)redis("HDEL R:jobs %s", h.id);
    assert_found(text("no-record %s, leftover %s, leftover %s", h.id, h.id, h.id));
    assert_string_equal(run("later_v1_repair"), text("no-record %s+", h.id));
    assert_clean();
    assert_string_equal(redis("EXISTS R:done:mail R:dead:mail R:results R:tries"), "0");
}

static void P10_fsck_finds_a_record_in_no_set(void **state)
{
    const char *id = add("mail x");

    (void)state;
    (void)redis("ZREM R:q:mail:5 %s", id);
    assert_cured(text("no-place %s", id));
    assert_buried(id, "mail", "it is in no set");
    assert_starts(fcall("later_retry %s", id), "[");
    assert_clean();
}

static void P10_fsck_finds_corrupt_records(void **state)
{
    static const char *const records[] = {"-mail 12",   "-mail five\nx", "-mail 5 t=1e9\nx",
                                          "-mail 55\n", "-mail 5",       "+mail 5 a=-1\n"};
    char queue[65 + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        const char *id = add("mail x");

        set_record(id, records[i]);
        assert_cured(text("broken-record %s", id));
        assert_buried(id, "mail", "its record is corrupt");
        (void)redis("FLUSHALL");
    }
    memset(queue, 'q', sizeof(queue));
    queue[65] = '\0';
    {
        const char *id = add("mail x");

        set_record(id, text("-%s 5\nx", queue));
        assert_found(text("broken-record %s, broken-record %s", id, id));
        assert_string_equal(run("later_v1_repair"), text("broken-record %s+", id));
        assert_clean();
        assert_buried(id, "mail", "its record is corrupt");
    }
}

/* Its queue is not known: the job is buried in the queue lost-found. */
static void test_a_record_that_names_no_queue(void **state)
{
    (void)state;
    set_record("jaaaaaaaaaaa", "garbage");
    assert_cured("broken-record jaaaaaaaaaaa");
    assert_buried("jaaaaaaaaaaa", "lost-found", "its record is corrupt");
    assert_string_equal(named("payload"), "nil");
    (void)fcall("later_show jaaaaaaaaaaa");
    assert_string_equal(named("payload"), "garbage");
}

/* The set knows the queue, which the record does not tell any more. */
static void test_a_member_with_garbage_for_a_record(void **state)
{
    const char *id = add("mail priority 3 x");

    (void)state;
    set_record(id, "garbage");
    assert_found(text("broken-record %s, broken-record %s", id, id));
    assert_string_equal(run("later_v1_repair"), text("broken-record %s+", id));
    assert_clean();
    assert_buried(id, "mail", "its record is corrupt");
    assert_string_equal(redis("EXISTS R:q:mail:3"), "0");
}

static void test_two_sets(void **state)
{
    static const char *const other[] = {"q:mail:3", "solo:mail", "dead:mail", "done:mail"};

    (void)state;
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        const char *id = add("mail x");

        (void)add("mail priority 3 x"); /* so that the queue has a mark */
        (void)redis("HSET R:prio mail 3s");
        (void)redis("ZADD R:%s 5 %s", other[i], id);
        assert_cured(text("two-places %s", id));
        assert_buried(id, "mail", "it is in ");
        (void)redis("FLUSHALL");
    }
}

static void test_running_and_elsewhere(void **state)
{
    static const char *const other[] = {"q:mail:5", "dead:mail"};

    (void)state;
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        struct held_job h = holder();

        (void)redis("ZADD R:%s 5 %s", other[i], h.id);
        (void)redis("ZADD R:heads 5 mail");
        assert_cured(text("two-places %s", h.id));
        assert_string_equal(redis("ZSCORE R:running %s", h.id), h.w);
        assert_string_equal(settle(h.w, h.id, 1, "done", 0), "ok");
        assert_clean();
        (void)redis("FLUSHALL");
    }
}

static void test_a_member_of_another_queues_set(void **state)
{
    const char *id = add("mail x"), *lost = add("mail x");

    (void)state;
    (void)redis("SADD R:names work");
    (void)redis("ZADD R:dead:work 5 %s 6 %s", id, lost);
    (void)redis("ZREM R:q:mail:5 %s", lost);
    assert_found(text("misplaced %s, misplaced %s, no-place %s", id, lost, lost));
    assert_string_equal(run("later_v1_repair"), text("misplaced %s+, misplaced %s+", id, lost));
    assert_clean();
    assert_buried(lost, "mail", "it was in dead:work");
    assert_starts(fcall("later_show %s", id), "[");
    assert_string_equal(named("state"), "waiting");
}

static void test_suspects_and_others_in_the_wrong_set(void **state)
{
    const char *suspect = crashed(2), *other = add("mail in 1h x");
    const char *due = redis("ZSCORE R:q:mail:5 %s", other);

    (void)state;
    (void)redis("ZREM R:solo:mail %s", suspect);
    (void)redis("ZADD R:q:mail:5 5 %s", suspect);
    (void)redis("ZREM R:q:mail:5 %s", other);
    (void)redis("ZADD R:solo:mail %s %s", due, other);
    (void)redis("ZADD R:heads 5 mail");
    assert_true(strstr(run("later_v1_audit"), text("wrong-set %s", suspect)) != NULL);
    assert_true(strstr(run("later_v1_audit"), text("wrong-set %s", other)) != NULL);
    (void)run("later_v1_repair");
    assert_clean();
    assert_string_equal(redis("ZSCORE R:q:mail:5 %s", other), due);
    assert_string_equal(redis("ZSCORE R:solo:mail %s", suspect), "5");
}

static void test_payloads(void **state)
{
    const char *id = add_big("");

    (void)state;
    (void)redis("DEL R:big:%s", id);
    assert_cured(text("no-payload %s", id));
    assert_buried(id, "mail", "its payload is missing");
    /* A retry must not run the job without its payload: the record still says that the payload is
     * apart, so the worker notices. */
    assert_starts(redis("HGET R:jobs %s", id), "+mail");
    (void)redis("SET R:big:jaaaaaaaaaaa x");
    assert_cured("orphan-payload jaaaaaaaaaaa");
    assert_buried("jaaaaaaaaaaa", "lost-found", "its payload is all that is left of it");
    (void)fcall("later_show jaaaaaaaaaaa");
    assert_string_equal(named("payload"), "x");
    id = add("mail x");
    (void)redis("SET R:big:%s x", id);
    assert_cured(text("orphan-payload %s", id));
    assert_string_equal(redis("EXISTS R:big:%s", id), "0");
}

static void test_the_payload_of_a_dead_job(void **state)
{
    const char *w = worker(), *id = add_big("");

    (void)state;
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(settle(w, id, 1, "dead", 100), "ok");
    (void)redis("DEL R:big:%s", id);
    assert_cured(text("no-payload %s", id));
    assert_buried(id, "mail", "its payload is missing");
    if (strstr(redis("HGET R:errors %s", id), "it died of: T") == NULL)
        fail_msg("%s", at(-1));
}

static void test_broken_tries(void **state)
{
    const char *id = add("mail x");

    (void)state;
    (void)redis("HSET R:tries %s 1,2,3", id);
    assert_cured(text("broken-tries %s", id));
    assert_buried(id, "mail", "its tries are corrupt");
    (void)redis("HSET R:tries %s x", id);
    assert_cured(text("broken-tries %s", id));
}

static void test_scores(void **state)
{
    static const char *const bad[] = {"inf", "-inf", "1e300"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *id = add("mail x");

        (void)redis("ZADD R:q:mail:5 %s %s", bad[i], id);
        assert_cured(text("bad-score %s", id));
        assert_buried(id, "mail", "it can never be due");
        (void)redis("ZADD R:dead:mail %s %s", bad[i], id);
        assert_cured(text("bad-score %s", id));
        (void)redis("FLUSHALL");
    }
}

/* The job is buried with all that is wrong with it, so that a second audit finds nothing more. */
static void test_one_job_with_many_findings(void **state)
{
    const char *id = add_big(" priority 3");

    (void)state;
    (void)redis("DEL R:big:%s", id);
    (void)redis("HSET R:tries %s x", id);
    (void)redis("ZADD R:q:mail:4 inf %s", id);
    (void)redis("HSET R:prio mail 34");
    assert_cured(text("two-places %s", id));
    assert_buried(id, "mail", "it is in q:mail:3 and q:mail:4; its payload is missing");
}

/* ---- running */

static void test_what_a_worker_holds_is_left_to_it(void **state)
{
    struct held_job h = holder();
    const char *big = add_big("");

    (void)state;
    assert_string_equal(claim(h.w, "mail", 1), big);
    (void)redis("DEL R:big:%s", big);
    assert_left(text("no-payload %s", big));
    assert_string_equal(settle(h.w, big, 1, "done", 0), "ok");
    set_record(h.id, "garbage");
    assert_left(text("broken-record %s", h.id));
    (void)redis("HDEL R:jobs %s", h.id);
    assert_left(text("no-record %s", h.id));
    (void)redis("HDEL R:tries %s", h.id);
    assert_left(text("no-record %s, no-start %s", h.id, h.id));
}

static void test_a_stranger_is_left_to_the_reaper(void **state)
{
    struct held_job h = holder();

    (void)state;
    (void)redis("DEL R:workers R:worker:%s", h.w);
    assert_left(text("stranger %s", h.id));
    (void)fcall("later_v1_reap %s %s ? 9 100", worker(), h.w);
    assert_clean();
}

static void test_running_under_what_is_no_worker(void **state)
{
    static const char *const owners[] = {"1.5", "-3", "inf", "1e300"};

    (void)state;
    for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
        struct held_job h = holder();

        (void)redis("ZADD R:running %s %s", owners[i], h.id);
        assert_cured(text("bad-owner %s", h.id));
        assert_buried(h.id, "mail", "it is running, and ");
        (void)redis("FLUSHALL");
    }
    (void)redis("ZADD R:running 1.5 jaaaaaaaaaaa");
    assert_cured("bad-owner jaaaaaaaaaaa");
    assert_buried("jaaaaaaaaaaa", "lost-found", "it is running, and ");
}

/* ---- keys beside the jobs */

static void test_leftovers(void **state)
{
    static const char *const sides[] = {"tries",   "errors", "failures",
                                        "results", "cancel", "progress"};
    const char *id;

    (void)state;
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        (void)redis("HSET R:%s jaaaaaaaaaaa x", sides[i]);
        assert_cured("leftover jaaaaaaaaaaa");
    }
    id = add("mail x");
    (void)redis("HSET R:cancel %s 5", id);
    assert_cured(text("leftover %s", id));
}

static void test_workers(void **state)
{
    struct held_job h = holder();
    const char *idle = worker();

    (void)state;
    (void)redis("DEL R:worker:%s", idle);
    assert_cured(text("broken-worker %s", idle));
    (void)redis("DEL R:worker:%s", h.w);
    assert_left(text("broken-worker %s", h.w));
    (void)redis("HSET R:worker:5 link 1");
    assert_found(text("leftover 5, broken-worker %s", h.w));
    assert_string_equal(run("later_v1_repair"), text("leftover 5+, broken-worker %s", h.w));
    (void)redis("HSET R:workers what 1");
    (void)redis("HDEL R:workers %s", h.w);
    (void)redis("ZREM R:running %s", h.id);
    assert_found(text("no-place %s, broken-worker what", h.id));
}

static void test_queues(void **state)
{
    (void)state;
    (void)add("mail x");
    (void)add("mail priority 2 x");
    (void)add("mail priority 7 in 1h x");
    (void)redis("DEL R:prio");
    assert_cured("bad-flag mail");
    assert_string_equal(redis("HGET R:prio mail"), "27");
    (void)redis("DEL R:heads");
    assert_cured("bad-head mail");
    (void)redis("ZADD R:heads %lld mail", (long long)now_ms() + 1000000);
    assert_cured("bad-head mail");
    (void)redis("DEL R:names");
    assert_cured("no-name mail");
    (void)redis("ZADD R:heads 5 mail"); /* a head that is too early only costs a sync */
    assert_clean();
}

/* The repair of a head publishes a wake. */
static void test_a_mended_head_wakes(void **state)
{
    struct client *c;

    (void)state;
    (void)add("mail x");
    (void)redis("DEL R:heads");
    c = listen_to(ROOT ":wake");
    (void)run("later_v1_repair");
    assert_string_equal(heard(c, ROOT ":wake"), "mail");
    client_close(c);
}

/* ---- foreign types: nothing is judged by a key that cannot be read */

static void P10_fsck_survives_wrong_types(void **state)
{
    static const char *const great[] = {"jobs", "running", "tries", "workers", "errors"};
    static const char *const others[] = {"heads",    "names",     "prio",      "results",
                                         "cancel",   "progress",  "await",     "stats",
                                         "q:mail:4", "solo:mail", "dead:mail", "done:mail"};

    (void)state;
    for (size_t i = 0; i < sizeof(great) / sizeof(great[0]); i++) {
        fill();
        (void)redis("DEL R:%s", great[i]);
        (void)redis("SETEX R:%s 1000 x", great[i]);
        assert_left(text("wrong-type %s", great[i]));
        (void)redis("FLUSHALL");
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const char *id = add("mail x");

        (void)redis("DEL R:%s", others[i]);
        (void)redis("SETEX R:%s 1000 x", others[i]);
        assert_true(strstr(run("later_v1_audit"), text("wrong-type %s", others[i])) != NULL);
        (void)run("later_v1_repair");
        assert_starts(fcall("later_show %s", id), "[");
        assert_string_equal(named("state"), "waiting");
        (void)redis("FLUSHALL");
    }
}

/* The set that may have the job cannot be read, so nobody knows whether the job is in any set. */
static void test_a_set_behind_a_foreign_key(void **state)
{
    const char *id = add("mail x");

    (void)state;
    (void)redis("DEL R:q:mail:5");
    (void)redis("SET R:q:mail:5 x");
    assert_left("wrong-type q:mail:5");
    (void)redis("DEL R:q:mail:5");
    assert_cured(text("no-place %s", id));
}

/* A job that cannot be buried stays as it is, and the finding says why. */
static void test_a_burial_that_fails(void **state)
{
    const char *id = add("mail x");

    (void)state;
    set_record(id, "-mail x");
    (void)redis("SET R:dead:mail x");
    assert_left(text("wrong-type dead:mail, broken-record %s", id));
    (void)fcall("later_v1_repair jobs '' 200");
    assert_true(strstr(at(2, 3, -1), "not repaired: ELATER_TYPE key") != NULL);
}

/* More burials than dead_max: no dead job is forgotten for their sake. */
static void test_many_burials(void **state)
{
    (void)state;
    (void)fcall("later_add_many mail -- a b c d e f g h i j");
    for (int i = 0; i < 10100; i += 100) {
        struct buf args = BUF_INIT;

        for (int k = 0; k < 100; k++)
            buf_printf(&args, " %d j%011d", i + k, i + k);
        (void)redis("ZADD R:q:mail:5%s", buf_str(&args));
        buf_done(&args);
    }
    (void)redis("ZADD R:heads 0 mail");
    for (const char *cursor = "''"; cursor[0] != '\0'; cursor = at(0, -1))
        (void)fcall("later_v1_repair set %s 200 q:mail:5", cursor);
    assert_string_equal(redis("ZCARD R:dead:mail"), "10100");
    assert_string_equal(redis("ZCARD R:q:mail:5"), "10");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_a_namespace_in_order),
        FX_TEST(test_a_suspect_that_waits_for_an_idle_worker),
        FX_TEST(test_a_worker_that_is_being_reaped),
        FX_TEST(test_read_only),
        FX_TEST(test_bad_arguments),
        FX_TEST(test_pages),
        FX_TEST(P10_fsck_finds_a_member_without_a_record),
        FX_TEST(test_a_member_without_a_record_keeps_its_payload),
        FX_TEST(test_a_done_one_without_a_record_is_forgotten),
        FX_TEST(P10_fsck_finds_a_record_in_no_set),
        FX_TEST(P10_fsck_finds_corrupt_records),
        FX_TEST(test_a_record_that_names_no_queue),
        FX_TEST(test_a_member_with_garbage_for_a_record),
        FX_TEST(test_two_sets),
        FX_TEST(test_running_and_elsewhere),
        FX_TEST(test_a_member_of_another_queues_set),
        FX_TEST(test_suspects_and_others_in_the_wrong_set),
        FX_TEST(test_payloads),
        FX_TEST(test_the_payload_of_a_dead_job),
        FX_TEST(test_broken_tries),
        FX_TEST(test_scores),
        FX_TEST(test_one_job_with_many_findings),
        FX_TEST(test_what_a_worker_holds_is_left_to_it),
        FX_TEST(test_a_stranger_is_left_to_the_reaper),
        FX_TEST(test_running_under_what_is_no_worker),
        FX_TEST(test_leftovers),
        FX_TEST(test_workers),
        FX_TEST(test_queues),
        FX_TEST(test_a_mended_head_wakes),
        FX_TEST(P10_fsck_survives_wrong_types),
        FX_TEST(test_a_set_behind_a_foreign_key),
        FX_TEST(test_a_burial_that_fails),
        FX_TEST(test_many_burials),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
