/*
 * What the end of a job causes, by both protocols, on every way on which a job ends: `then`,
 * `on_dead`, and children.
 */
#include "sync.h"

/* Claim the one job of this queue that is due; -> its id. What is told of it is in fx.last. */
static const char *take(const char *w, const char *queue)
{
    (void)do_sync(w, "0", queue, "0");
    assert_int_equal(len_at(3, -1), 1);
    assert_int_equal(len_at(3, 0, -1), 9);
    return at(3, 0, 6, -1);
}

/* Its record, as the last sync told it. */
static const char *record(void)
{
    return at(3, 0, 8, -1);
}

static void end_well(const char *w, const char *id, const char *queue)
{
    (void)do_sync(w, "0", "none", text("1 %s 1 1 %s", queue, id));
    assert_string_equal(at(9, -1), "[]");
}

static void test_a_chain_goes_on(void **state)
{
    const char *w = worker(), *a, *b, *c;

    (void)state;
    a = add("fetch then resize then upload on_dead alert key k priority 3 trace " TRACE
            " attempts 2 "
            "timeout 1m lock l keep 0s hello");
    assert_string_equal(take(w, "fetch"), a);
    end_well(w, a, "fetch");
    assert_string_equal(redis("HEXISTS R:jobs %s", a), "0");
    b = take(w, "resize");
    assert_string_equal(record(),
                        text("-resize 3 K=k T=" TRACE " n=upload d=alert p=%s\\nhello", a));
    end_well(w, b, "resize");
    c = take(w, "upload");
    assert_string_equal(record(), text("-upload 3 K=k T=" TRACE " d=alert p=%s\\nhello", b));
    end_well(w, c, "upload");
    assert_string_equal(redis("HLEN R:jobs"), "0");
    assert_string_equal(redis("EXISTS R:holds R:running R:heads"), "0");
}

/* A record may be from before traces were checked. */
static void test_an_older_trace_goes_along(void **state)
{
    const char *w = worker(), *a = add("a then b x");
    const char *record_of[] = {"HSET", ROOT ":jobs", a, "-a T=t n=b\nx"};

    (void)state;
    (void)send_args(4, record_of, NULL);
    assert_string_equal(take(w, "a"), a);
    (void)fcall("later_show %s", a);
    assert_string_equal(named("trace"), "t");
    end_well(w, a, "a");
    (void)take(w, "b");
    assert_string_equal(record(), text("-b T=t p=%s\\nx", a));
}

/* The job that was added last, in this queue. */
static const char *only(const char *queue)
{
    (void)redis("ZRANGE R:q:%s:5 0 -1", queue);
    assert_int_equal(len_at(-1), 1);
    return at(0, -1);
}

static void test_the_result_is_the_payload(void **state)
{
    const char *w = worker(), *a = add("a then b old");

    (void)state;
    assert_string_equal(take(w, "a"), a);
    (void)do_sync(w, text("1 %s 1 result a 0 0 ok new", a), "b", "0");
    assert_string_equal(at(2, -1), "[ok]");
    assert_string_equal(record(), text("-b p=%s\\nnew", a));
    /* Output that is no result is not handed on. */
    a = add("c then d old");
    assert_string_equal(take(w, "c"), a);
    (void)do_sync(w, text("1 %s 1 done c 0 0 ok output", a), "d", "0");
    assert_string_equal(record(), text("-d p=%s\\nold", a));
    /* A result of a job without `then` is kept as its output. */
    a = add("e old");
    assert_string_equal(take(w, "e"), a);
    (void)do_sync(w, text("1 %s 1 result e 60000 0 ok new", a), "e", "0");
    (void)fcall("later_result %s", a);
    assert_non_null(strstr(shown(fx.last), "new"));
}

static void test_a_large_payload_goes_along(void **state)
{
    const char *w = worker(), *big = text("%020000d", 7), *a, *b, *c;

    (void)state;
    a = add("a then b then c on_dead d %s", big);
    assert_string_equal(take(w, "a"), a);
    (void)do_sync(w, text("1 %s 1 done a 0 0 ok ''", a), "none", "0");
    b = only("b");
    assert_string_equal(redis("EXISTS R:big:%s", a), "0");
    assert_string_equal(redis("GET R:big:%s", b), big);
    assert_string_equal(take(w, "b"), b);
    /* It is kept: so the next job has a copy. */
    (void)do_sync(w, text("1 %s 1 done b 60000 0 ok ''", b), "none", "0");
    c = only("c");
    assert_string_equal(redis("GET R:big:%s", b), big);
    assert_string_equal(redis("GET R:big:%s", c), big);
    assert_string_equal(take(w, "c"), c);
    (void)do_sync(w, text("1 %s 1 dead c 10 7 no ''", c), "none", "0");
    assert_string_equal(redis("GET R:big:%s", c), big);
    assert_string_equal(redis("GET R:big:%s", only("d")), big);
}

/* It was to get a gate by its key and has none: the same call adds it, moves its payload and
 * buries it. */
static void test_the_next_job_dies_at_once(void **state)
{
    const char *w = worker(), *big = text("%020000d", 7), *a, *d;
    const char *ends[] = {"done a 0 0 ok ''", "done a 60000 0 ok ''",
                          text("result a 0 0 ok %s", big)};

    (void)state;
    (void)redis("HSET R:queues b lock=user:{key}");
    for (int i = 0; i < 3; i++) {
        a = add("a then b on_dead d %s", big);
        assert_string_equal(take(w, "a"), a);
        (void)do_sync(w, text("1 %s 1 %s", a, ends[i]), "b", "0");
        d = only("d");
        assert_string_equal(redis("ZCARD R:dead:b"), text("%d", i + 1));
        assert_string_equal(redis("GET R:big:%s", d), big);
        assert_string_equal(take(w, "d"), d);
        (void)do_sync(w, text("1 %s 1 done d 0 0 ok ''", d), "none", "0");
    }
}

/* A result is at most 16 KiB, but a client may send more. */
static void test_a_large_result_is_kept_apart(void **state)
{
    const char *w = worker(), *a = add("a then b x");

    (void)state;
    assert_string_equal(take(w, "a"), a);
    (void)do_sync(w, text("1 %s 1 result a 0 0 ok %020000d", a, 1), "none", "0");
    assert_string_equal(redis("STRLEN R:big:%s", only("b")), "20000");
}

static void test_only_done_goes_on(void **state)
{
    static const char *const ends[] = {"dead a 10 7 T O", "release a 60000 0 T ''",
                                       "retry a 60000 7 T O"};
    const char *w = worker(), *a;

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        a = add("a then b x");
        assert_string_equal(take(w, "a"), a);
        (void)do_sync(w, text("1 %s 1 %s", a, ends[i]), "none", "0");
        assert_string_equal(at(2, -1), "[ok]");
        assert_string_equal(redis("EXISTS R:q:b:5 R:holds"), "0");
    }
    a = add("a then b x");
    (void)fcall("later_cancel %s", a);
    assert_string_equal(redis("EXISTS R:q:b:5"), "0");
    a = add("a then b x");
    assert_string_equal(take(w, "a"), a);
    (void)fcall("later_cancel %s", a);
    (void)do_sync(w, text("1 %s 1 release a 0 0 T ''", a), "none", "0");
    assert_string_equal(redis("EXISTS R:q:b:5"), "0");
    /* It was told to end, and has finished its work all the same. */
    a = add("a then b x");
    assert_string_equal(take(w, "a"), a);
    (void)fcall("later_cancel %s", a);
    end_well(w, a, "a");
    (void)only("b");
}

static void test_it_goes_on_once(void **state)
{
    const char *w = worker(), *a = add("a then b x");

    (void)state;
    assert_string_equal(take(w, "a"), a);
    end_well(w, a, "a");
    (void)do_sync(w, text("1 %s 1 done a 0 0 ok ''", a), "none", "0");
    assert_string_equal(at(2, -1), "[settled]");
    (void)do_sync(w, "0", "none", text("1 a 1 1 %s", a));
    assert_string_equal(at(9, -1), "[1 settled]");
    (void)only("b");
}

/* ---- deaths */

static void test_a_death_is_told(void **state)
{
    const char *w = worker(), *a = add("a then b on_dead d key k priority 2 x"), *d;

    (void)state;
    assert_string_equal(take(w, "a"), a);
    (void)do_sync(w, text("1 %s 1 dead a 10 65 50%%~off O", a), "none", "0");
    d = take(w, "d");
    assert_string_equal(record(), text("-d 2 K=k p=%s m=50%%25~off\\nx", a));
    (void)fcall("later_show %s", d);
    assert_string_equal(named("reason"), "50%~off");
    assert_string_equal(named("parent"), a);
    (void)fcall("later_show %s", a);
    assert_string_equal(named("state"), "dead");
    assert_string_equal(named("then"), "b");
    assert_string_equal(named("on_dead"), "d");
    assert_string_equal(named("caused"), d);
    /* It is retried, and is done: then the chain goes on. */
    (void)fcall("later_retry %s", a);
    assert_string_equal(take(w, "a"), a);
    (void)do_sync(w, "0", "none", text("1 a 2 1 %s", a));
    assert_string_equal(redis("HLEN R:jobs"), "2");
    assert_string_equal(redis("ZCARD R:q:b:2"), "1");
}

/* A job that expires is buried by the claim that meets it, and may name its own queue. */
static void test_a_claim_tells_of_deaths(void **state)
{
    const char *w = worker(), *ids[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        ids[i] = add("a expire 1ms on_dead a priority %d x", i + 4);
        (void)redis("ZADD R:q:a:%d 1000 %s", i + 4, ids[i]);
    }
    (void)do_sync(w, "0", "a", "0");
    assert_string_equal(redis("ZCARD R:dead:a"), "3");
    (void)redis("ZRANGE R:running 0 -1");
    assert_int_equal(len_at(-1), 3);
    for (int i = 0; i < 3; i++)
        assert_null(strstr(shown(fx.last), ids[i]));
    (void)do_sync(w, "0", "a", "0");
    assert_string_equal(redis("EXISTS R:heads R:prio"), "0");
}

/* A sync without room for them leaves them where the next sync finds them. */
static void test_a_claim_without_room(void **state)
{
    const char *w = worker();

    (void)state;
    (void)redis("ZADD R:q:a:5 1000 %s", add("a expire 1ms on_dead a x"));
    (void)add("a y");
    (void)redis("ZADD R:q:a:5 1001 %s", add("a z"));
    assert_starts(fcall("later_v1_sync %s 1 0 1 0 1 a 1 1048576 0", w), "[");
    assert_string_equal(redis("ZCARD R:dead:a"), "1");
    assert_string_equal(redis("ZCARD R:q:a:5"), "2");
    assert_true(reply_int(node(-1)) == 2 && redis("ZSCORE R:heads a")[0] != 'n');
}

static void test_a_reap_tells_of_deaths(void **state)
{
    const char *w = worker(), *v = worker(), *a = add("a attempts 1 on_dead d x");

    (void)state;
    assert_string_equal(take(v, "a"), a);
    assert_starts(fcall("later_v1_reap %s %s 1 1 100", w, v), "[clear");
    (void)take(w, "d");
    assert_non_null(strstr(record(), text("p=%s m=", a)));
}

/* ---- children */

/* Claim a job of queue a, and end it well with these children, which follow NC's number and how
 * many they are. -> the answer */
static const char *end_with(const char *w, const char *id, const char *children)
{
    (void)do_sync(w, text("1 %s 1 done a 0 0 ok ''", id), "none", text("0 0 1 1 %s", children));
    return at(2, 0, -1);
}

static void test_children_come_with_the_end(void **state)
{
    const char *w = worker(), *a = add("a then c x");

    (void)state;
    assert_string_equal(take(w, "a"), a);
    assert_string_equal(end_with(w, a, "3 2 b one 6 b key k priority 3 two 4 b in 1h three"), "ok");
    (void)redis("ZRANGE R:q:b:5 0 -1");
    assert_int_equal(len_at(-1), 2);
    assert_string_equal(redis("HGET R:jobs %s", at(0, -1)), text("-b p=%s\\none", a));
    (void)redis("ZRANGE R:q:b:3 0 -1");
    assert_string_equal(redis("HGET R:jobs %s", at(0, -1)), text("-b 3 K=k p=%s\\ntwo", a));
    (void)only("c");
    assert_string_equal(redis("HLEN R:jobs"), "4");
    /* The answer was lost, and it is told again. */
    assert_string_equal(end_with(w, a, "1 2 b one"), "settled");
    assert_string_equal(redis("HLEN R:jobs"), "4");
}

/* What later_add would refuse makes the end fail, and leaves nothing of its siblings. */
static void test_a_refused_child(void **state)
{
    static const struct {
        const char *children, *says;
    } rows[] = {{"2 2 b x 4 b priority 77 y", "child 2: ELATER_OPTION priority '77'"},
                {"1 2 -b x", "child 1: ELATER_QUEUE"},
                {"1 3 b x y", "child 1: ELATER_ARGS"},
                {"1 1 b", "child 1: ELATER_ARGS"},
                {"1 4 b sem none x", "child 1: ELATER_LIMIT"},
                {"2 2 b x 4 b in never y", "child 2: ELATER_TIME"}};
    const char *w = worker(), *a = add("a then c x"), *before;

    (void)state;
    assert_string_equal(take(w, "a"), a);
    before = snapshot();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_starts(end_with(w, a, rows[i].children), text("refused %s", rows[i].says));
        assert_string_equal(snapshot(), before);
    }
    /* A result that came with it is not touched. */
    assert_string_equal(redis("HGET R:jobs %s", a), "-a n=c\\nx");
    (void)do_sync(w, text("1 %s 1 dead a 10 65 refused ''", a), "none", "0");
    assert_string_equal(at(2, -1), "[ok]");
    assert_string_equal(redis("EXISTS R:q:b:5 R:q:c:5"), "0");
}

/* A foreign key is not the doing of the handler: the end is told again. */
static void test_a_child_and_a_foreign_key(void **state)
{
    const char *w = worker(), *a = add("a x");

    (void)state;
    assert_string_equal(take(w, "a"), a);
    (void)redis("SET R:q:b:5 x");
    assert_starts(end_with(w, a, "1 2 b x"), "error ELATER_TYPE");
    (void)redis("DEL R:q:b:5");
    assert_string_equal(end_with(w, a, "1 2 b x"), "ok");
}

static void test_children_of_each_kind(void **state)
{
    const char *w = worker(), *a = add("a x"), *b, *big = text("%020000d", 7);

    (void)state;
    b = add("b unique u old");
    assert_string_equal(take(w, "a"), a);
    assert_string_equal(end_with(w, a,
                                 text("4 6 b unique u unique_mode replace new "
                                      "4 b token t x 4 b token t x 2 d %s",
                                      big)),
                        "ok");
    assert_string_equal(redis("HGET R:jobs %s", b), text("-b u=u p=%s\\nnew", a));
    assert_string_equal(redis("ZCARD R:q:b:5"), "2");
    assert_string_equal(redis("GET R:big:%s", only("d")), big);
}

/* Nobody else has the unique key of this job, which has ended, and it will expire. */
static void assert_stays_taken(const char *key, const char *id)
{
    assert_string_equal(redis("HLEN R:jobs"), "0");
    assert_string_equal(redis("GET R:uniq:%s", key), id);
    assert_true(atoi(redis("PTTL R:uniq:%s", key)) > 0);
}

/* A kept job tells which jobs it caused: as many as fit into its header, the last ones. */
static void test_a_kept_job_names_its_children(void **state)
{
    const char *w = worker(), *id = add("a then b x"), *child, *next, *words = "";

    (void)state;
    assert_string_equal(take(w, "a"), id);
    (void)do_sync(w, text("1 %s 1 done a 3600000 0 ok ''", id), "none", "0 0 1 1 1 2 c y");
    (void)redis("ZRANGE R:q:c:5 0 -1");
    child = at(0, -1);
    (void)redis("ZRANGE R:q:b:5 0 -1");
    next = at(0, -1);
    assert_string_equal(redis("HGET R:jobs %s", id), text("-a n=b c=%s,%s\\nx", child, next));
    (void)fcall("later_show %s", id);
    assert_string_equal(named("caused"), text("%s,%s", child, next));
    assert_string_equal(named("payload"), "x");
    id = add("a y");
    (void)fcall("later_v1_sync %s 1 0 1 0 1 a 1 1048576 0", w);
    for (int i = 0; i < 200; i++)
        words = text("%s 2 d y", words);
    (void)do_sync(w, text("1 %s 1 done a 3600000 0 ok ''", id), "none",
                  text("0 0 1 1 200%s", words));
    (void)redis("ZRANGE R:q:d:5 -1 -1");
    child = at(0, -1);
    (void)fcall("later_show %s", id);
    assert_int_equal(strlen(named("caused")) % 13, 12);
    assert_in_range(strlen(named("caused")), 2048 - 13 - 10, 2048 - 5);
    assert_string_equal(strrchr(named("caused"), ',') + 1, child);
}

/* The key of a job with unique_for stays taken when it ends, also for the children of the same
 * call. */
static void test_a_child_and_a_key_that_stays_taken(void **state)
{
    const char *w = worker(), *x = add("a unique u unique_for 1h x"), *y, *z;

    (void)state;
    assert_string_equal(take(w, "a"), x);
    y = add("b y");
    assert_string_equal(take(w, "b"), y);
    (void)do_sync(w, text("2 %s 1 done a 0 0 ok '' %s 1 done b 0 0 ok ''", x, y), "none",
                  "0 0 1 2 1 6 a unique u unique_mode replace new");
    assert_string_equal(at(2, -1), "[ok ok]");
    assert_stays_taken("a:u", x);
    /* So it does for the children of the job itself. */
    z = add("a unique v unique_for 1h z");
    assert_string_equal(take(w, "a"), z);
    assert_string_equal(end_with(w, z, "1 4 a unique v new"), "ok");
    assert_stays_taken("a:v", z);
    /* Without unique_for the key is free. */
    z = add("a unique w z");
    assert_string_equal(take(w, "a"), z);
    assert_string_equal(end_with(w, z, "1 4 a unique w new"), "ok");
    assert_string_equal(redis("GET R:uniq:a:w"), only("a"));
}

static void test_children_of_several(void **state)
{
    const char *w = worker(), *x = add("a x"), *y = add("a y"), *z = add("a z");

    (void)state;
    (void)do_sync(w, "0", "a", "0");
    (void)do_sync(w, text("2 %s 1 done a 0 0 ok '' %s 1 done a 0 0 ok ''", y, z), "none",
                  text("1 a 1 1 %s 0 2 2 1 2 b of-z 1 1 2 b of-y", x));
    assert_string_equal(at(2, -1), "[ok ok]");
    assert_string_equal(redis("ZCARD R:q:b:5"), "2");
    assert_non_null(strstr(redis("HVALS R:jobs"), text("p=%s\\nof-z", z)));
    assert_non_null(strstr(shown(fx.last), text("p=%s\\nof-y", y)));
}

/* Children of any other end are not added. */
static void test_only_done_adds_children(void **state)
{
    static const char *const ends[] = {"retry a 1000 7 T ''", "dead a 10 7 T ''",
                                       "release a 1000 0 T ''"};
    const char *w = worker();

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const char *a = add("a x");

        assert_string_equal(take(w, "a"), a);
        (void)do_sync(w, text("1 %s 1 %s", a, ends[i]), "none", "0 0 1 1 1 2 b x");
        assert_string_equal(redis("EXISTS R:q:b:5"), "0");
    }
}

static void test_children_that_do_not_add_up(void **state)
{
    static const char *const rows[] = {"1",           "1 1",         "1 2 1 2 b x",
                                       "1 1 1 3 b x", "1 1 2 2 b x", "1 1 1 2 b x y",
                                       "2 1 1 2 b x", "x 1 1 2 b x", "1 1 1001 2 b x"};

    const char *w = worker(), *a = add("a x");

    (void)state;
    assert_string_equal(take(w, "a"), a);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_refused("ELATER_ARGS",
                       "later_v1_sync %s 1 0 50 1 %s 1 done a 0 0 ok '' 1 none 50 1048576 0 0 %s",
                       w, a, rows[i]);
}

/* ---- keys and rights that are not as they should be */

/* Nothing is told in a queue with a foreign key, but the job dies, and others of its queue start.
 */
static void test_a_death_and_a_foreign_key(void **state)
{
    const char *w = worker(), *a = add("a expire 1ms on_dead d x"), *b;

    (void)state;
    (void)redis("ZADD R:q:a:5 1000 %s", a);
    (void)redis("SET R:q:d:5 foreign");
    b = add("a y");
    assert_string_equal(take(w, "a"), b);
    assert_string_equal(at(6, -1), "[]");
    assert_string_equal(redis("ZCARD R:dead:a"), "1");
    (void)do_sync(w, text("1 %s 1 dead a 10 7 no ''", b), "none", "0");
    assert_string_equal(at(2, -1), "[ok]");
}

/* A next job whose queue takes smaller payloads dies, also when the same sync claims it. */
static void test_a_payload_that_the_next_queue_refuses(void **state)
{
    const char *w = worker(), *a = add("a then b %050000d", 1);

    (void)state;
    (void)redis("HSET R:config max_payload:b 20000");
    assert_string_equal(take(w, "a"), a);
    assert_starts(fcall("later_v1_sync %s 1 0 50 1 %s 1 done a 0 0 ok '' 1 b 50 20000 0", w, a),
                  "[");
    assert_string_equal(at(3, -1), "[]");
    assert_string_equal(redis("ZCARD R:dead:b"), "1");
}

static int large_payloads(void)
{
    (void)redis("KEYS R:big:*");
    return len_at(-1);
}

/* A sync ends a job, claims the next one, and buries it: its death is told with the payload, which
 * has not moved yet. */
static void test_a_payload_that_goes_on_twice(void **state)
{
    const char *w = worker(), *big = text("%050000d", 1), *a = add("a then b on_dead d %s", big);

    (void)state;
    (void)redis("HSET R:config max_payload:b 20000");
    assert_string_equal(take(w, "a"), a);
    assert_starts(fcall("later_v1_sync %s 1 0 50 1 %s 1 done a 0 0 ok '' 1 b 50 20000 0", w, a),
                  "[");
    assert_string_equal(redis("ZCARD R:dead:b"), "1");
    assert_string_equal(redis("GET R:big:%s", only("d")), big);
    assert_int_equal(large_payloads(), 2);
}

/* A sync of a user who has all rights but this one. -> the reply */
static const char *without(const char *right, const char *w, const char *result)
{
    assert_string_equal(redis("ACL SETUSER u on nopass ~* &* +@all -%s", right), "OK");
    assert_string_equal(redis("AUTH u x"), "OK");
    (void)fcall("later_v1_sync %s 1 0 0 1 %s 0 0", w, result);
    result = shown(fx.last);
    assert_string_equal(redis("AUTH default x"), "OK");
    return result;
}

/* What failed is undone, and a worker that lacks a right ends all its other jobs. */
static void test_a_right_that_is_missing(void **state)
{
    const char *w = worker(), *a = add("a then n on_dead d %050000d", 1), *got;

    (void)state;
    assert_string_equal(take(w, "a"), a);
    got = without("rename", w, text("%s 1 done a 0 0 ok ''", a));
    assert_non_null(strstr(got, "[error NOPERM"));
    assert_int_equal(large_payloads(), 1);
    got = without("pexpire", w, text("%s 1 dead a 0 7 why ''", a));
    assert_null(strstr(got, "[ok]"));
    assert_int_equal(large_payloads(), 1);
    assert_string_equal(redis("ZSCORE R:running %s", a), w);
    got = without("copy", w, text("%s 1 dead a 9 7 why ''", a));
    assert_non_null(strstr(got, "[ok]"));
    assert_int_equal(large_payloads(), 1);
    assert_string_equal(redis("ZCARD R:dead:a"), "1");
}

/* A next job must not be lost with the record of the one before. */
static void test_a_broken_record_in_a_chain(void **state)
{
    const char *w = worker(), *a = add("a then b x"), *c = add("c x");

    (void)state;
    assert_string_equal(take(w, "a"), a);
    assert_string_equal(take(w, "c"), c);
    (void)redis("HSET R:jobs %s garbage %s garbage", a, c);
    (void)do_sync(w, text("1 %s 1 done a 0 0 ok ''", a), "none", text("1 c 1 1 %s", c));
    assert_string_equal(redis("ZCARD R:dead:a"), "1");
    assert_string_equal(redis("EXISTS R:dead:c R:q:b:5"), "0");
}

/* ---- bad input */

static void test_refusals(void **state)
{
    char options[4096] = "";

    (void)state;
    assert_refused("ELATER_QUEUE", "later_add a then -b x");
    assert_refused("ELATER_QUEUE", "later_add a on_dead '' x");
    assert_refused("ELATER_OPTION", "later_add a on_dead b on_dead c x");
    for (int i = 0; i < 9; i++)
        (void)strcat(options, " then q");
    assert_refused("ELATER_OPTION", "later_add a%s x", options);
    assert_refused("ELATER_OPTION", "later_add_many a%s x y", options);
    options[0] = '\0';
    for (int i = 0; i < 8; i++)
        (void)strcat(options, text(" then %064d", i));
    (void)add("a key %0256d trace " LONG_TRACE "%s x", 1, options);
    assert_starts(fcall("later_limit_set %0256d semaphore 1", 1), "set");
    assert_starts(fcall("later_limit_set %0256d rate 1/1s", 2), "set");
    assert_refused("ELATER_SIZE",
                   "later_add a key %0256d trace " LONG_TRACE
                   " unique %0256d lock %0256d sem %0256d "
                   "rate %0256d%s on_dead %064d x",
                   1, 1, 1, 1, 2, options, 1);
}

static void test_names_are_bounded(void **state)
{
    static const char *const fill[] = {
        "EVAL", "for i = 1, 9999 do redis.call('SADD', KEYS[1], 'q' .. i) end", "1", ROOT ":names"};

    (void)state;
    (void)send_args(4, (const char **)(uintptr_t)fill, NULL);
    (void)add("q1 then q2 then last x"); /* which reserves it: test_uses.c */
    assert_refused("ELATER_FULL", "later_add q1 then other x");
    assert_refused("ELATER_FULL", "later_add q1 on_dead other x");
}

/* A chain may lead back to its own queue; its list bounds it. */
static void test_a_chain_to_itself(void **state)
{
    const char *w = worker();

    (void)state;
    (void)add("a then a then a x");
    for (int i = 0; i < 3; i++)
        end_well(w, take(w, "a"), "a");
    assert_string_equal(redis("HLEN R:jobs"), "0");
}

static void test_many_at_once(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_add_many a then b x y z");
    (void)add("a p");
    (void)do_sync(w, "0", "a", "0");
    assert_string_equal(redis("HLEN R:holds"), "3");
    (void)redis("ZRANGE R:running 0 -1");
    (void)do_sync(w, "0", "none",
                  text("1 a 1 4 %s %s %s %s", at(0, -1), at(1, -1), at(2, -1), at(3, -1)));
    assert_string_equal(redis("ZCARD R:q:b:5"), "3");
    assert_string_equal(redis("HGET R:stats done:a"), "4");
    assert_string_equal(redis("EXISTS R:running R:holds"), "0");
}

/* An import has all of it, as an export wrote it. */
static void test_import(void **state)
{
    const char *w = worker();
    char percent[257] = "";

    (void)state;
    assert_string_equal(
        fcall("later_v1_import a 4 then b,c on_dead d parent j00000000001 reason no%%~way x"),
        "[1 added]");
    (void)take(w, "a");
    assert_string_equal(record(), "-a n=b,c d=d p=j00000000001 m=no%25~way\\nx");
    assert_refused("ELATER_OPTION", "later_v1_import a 1 parent x y");
    assert_refused("ELATER_QUEUE", "later_v1_import a 1 then b,,c y");
    assert_starts(fcall("later_limit_set %0256d semaphore 1", 1), "set");
    memset(percent, '%', sizeof(percent) - 1);
    assert_refused("ELATER_SIZE",
                   "later_v1_import a 6 key %0256d trace " LONG_TRACE " unique %0256d lock %0256d "
                   "sem %0256d reason %s x",
                   1, 1, 1, 1, percent);
    assert_refused("ELATER_OPTION", "later_v1_import a 1 then q,q,q,q,q,q,q,q,q y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_a_chain_goes_on),
                                       FX_TEST(test_an_older_trace_goes_along),
                                       FX_TEST(test_the_result_is_the_payload),
                                       FX_TEST(test_a_large_payload_goes_along),
                                       FX_TEST(test_the_next_job_dies_at_once),
                                       FX_TEST(test_a_large_result_is_kept_apart),
                                       FX_TEST(test_only_done_goes_on),
                                       FX_TEST(test_it_goes_on_once),
                                       FX_TEST(test_a_death_is_told),
                                       FX_TEST(test_a_claim_tells_of_deaths),
                                       FX_TEST(test_a_claim_without_room),
                                       FX_TEST(test_a_reap_tells_of_deaths),
                                       FX_TEST(test_children_come_with_the_end),
                                       FX_TEST(test_a_refused_child),
                                       FX_TEST(test_a_child_and_a_foreign_key),
                                       FX_TEST(test_children_of_each_kind),
                                       FX_TEST(test_a_child_and_a_key_that_stays_taken),
                                       FX_TEST(test_a_kept_job_names_its_children),
                                       FX_TEST(test_children_of_several),
                                       FX_TEST(test_only_done_adds_children),
                                       FX_TEST(test_children_that_do_not_add_up),
                                       FX_TEST(test_a_death_and_a_foreign_key),
                                       FX_TEST(test_a_payload_that_the_next_queue_refuses),
                                       FX_TEST(test_a_payload_that_goes_on_twice),
                                       FX_TEST(test_a_right_that_is_missing),
                                       FX_TEST(test_a_broken_record_in_a_chain),
                                       FX_TEST(test_refusals),
                                       FX_TEST(test_names_are_bounded),
                                       FX_TEST(test_a_chain_to_itself),
                                       FX_TEST(test_many_at_once),
                                       FX_TEST(test_import)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
