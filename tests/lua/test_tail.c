/* The events that each function tells to followers (later_v1_tail); without followers, none. */
#include <unistd.h>

#include "fixture.h"

#define CHANNEL ROOT ":events"
#define MAIL "mail 10 1048576"

static struct client *ears;

static int start_listening(void **state)
{
    (void)fx_clear(state);
    ears = listen_to(CHANNEL);
    return 0;
}

static int stop_listening(void **state)
{
    client_close(ears);
    return fx_forget(state);
}

/* The events since the last call, a line each. Ids are #1 #2 … in the order of the arguments, times
 * T. The heads of their messages are checked and left out. */
static const char *told(const char *first, ...)
{
    struct buf b = BUF_INIT;
    char *rest = mem_strdup(heard(ears, CHANNEL)), *line;
    int64_t now = now_ms();

    (void)keep(rest);
    while ((line = strsep(&rest, "\n,")) != NULL) {
        char event[20], id[20], queue[70], due[20];
        const char *name = first;
        int n = 0, k = 1;
        long long at_ms, left;
        va_list ap;

        if (*line == '\0') /* nothing has come */
            continue;
        if (sscanf(line, "1 %lld %lld%n", &at_ms, &left, &n) == 2 && line[n] == '\0') {
            assert_in_range(at_ms, now - 60000, now);
            assert_int_equal(left, 0);
            continue;
        }
        if (sscanf(line, "%19s %19s %69s %19s%n", event, id, queue, due, &n) != 4)
            fail_msg("not understood: %s", line);
        va_start(ap, first);
        for (; name != NULL && strcmp(name, id) != 0; k++)
            name = va_arg(ap, const char *);
        va_end(ap);
        buf_printf(&b, "%s%s #%d %s %s%s", b.len > 0 ? "\n" : "", event, name != NULL ? k : 0,
                   queue, strlen(due) == 13 ? "T" : due, line + n);
    }
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

static void follow(void)
{
    assert_starts(fcall("later_v1_tail 60000"), "[1");
    (void)heard(ears, CHANNEL);
}

/* ---- on and off: these tests come first, since the library remembers */

static void test_nobody_follows(void **state)
{
    const char *w = worker(), *id = add("mail x");

    (void)state;
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    assert_string_equal(heard(ears, CHANNEL), "");
    assert_int_equal(0, strcmp(redis("KEYS *events*"), "[]"));
}

static void test_ends_by_itself(void **state)
{
    const char *id;

    (void)state;
    (void)fcall("later_v1_tail 150");
    assert_string_equal(at(1, -1), "0");
    (void)fcall("later_v1_tail 100");
    assert_string_equal(at(1, -1), "1");
    id = add("mail x");
    assert_string_equal(told(id, NULL), "added #1 mail T - - - -");
    (void)usleep(200000);
    (void)add("mail x");
    assert_string_equal(told(id, NULL), "");
    (void)fcall("later_v1_tail 100");
    assert_string_equal(at(1, -1), "0");
    assert_refused("ELATER_ARGS", "later_v1_tail");
    assert_refused("ELATER_ARGS", "later_v1_tail 0");
    assert_refused("ELATER_ARGS", "later_v1_tail 60001");
    assert_refused("ELATER_ARGS", "later_v1_tail x");
}

/* Another namespace has no followers, and tells nothing. */
static void test_other_namespace(void **state)
{
    (void)state;
    follow();
    (void)redis("FCALL later_add 1 later:{u} mail x");
    assert_string_equal(heard(ears, CHANNEL), "");
}

/* ---- each function */

/* What is no add says where its jobs come from. */
static void test_origins(void **state)
{
    const char *w = serving("mail", 9), *id;

    (void)state;
    (void)fcall("later_subscribe news mail");
    (void)redis("ZADD z 1 member");
    follow();
    (void)fcall("later_publish news x");
    id = at(1, 1, -1);
    assert_string_equal(told(id, NULL), "added #1 mail T - - - topic news");
    (void)fcall("later_broadcast mail x");
    id = at(1, 1, -1);
    assert_string_equal(told(id, NULL), text("added #1 mail T - - - broadcast to %s", w));
    (void)fcall("later_v1_collect %s 1 mail z '' ms - 0", w);
    assert_string_equal(told(NULL), "added #0 mail T - - - adopted from z");
}

static void test_adds(void **state)
{
    const char *a, *b, *c;

    (void)state;
    follow();
    a = add("mail in 1h priority 2 key k x");
    assert_string_equal(told(a, NULL), "added #1 mail T - - - -");
    (void)fcall("later_add_many mail x y");
    b = at(0, 0, -1);
    c = at(1, 0, -1);
    assert_string_equal(told(b, c, NULL), "added #1 mail T - - - -\nadded #2 mail T - - - -");
    a = add("mail token t x");
    (void)told(a, NULL);
    (void)fcall("later_add mail token t x"); /* repeated: nothing has happened */
    assert_string_equal(told(a, NULL), "");
    a = add("mail unique u in 1h x");
    (void)told(a, NULL);
    (void)fcall("later_add mail unique u x");
    assert_string_equal(told(a, NULL), "");
    (void)fcall("later_add mail unique u unique_mode replace y");
    assert_string_equal(told(a, NULL), "replaced #1 mail T - - - -");
    (void)fcall("later_add mail unique u unique_mode move y");
    assert_string_equal(told(a, NULL), "moved #1 mail T - - - -");
    assert_refused("ELATER_QUEUE", "later_add ma/il x");
    assert_string_equal(told(a, NULL), "");
}

static void test_by_hand(void **state)
{
    const char *id, *w;

    (void)state;
    follow();
    w = worker();
    id = add("mail in 1h x");
    (void)fcall("later_reschedule %s +2h", id);
    (void)fcall("later_run_now %s", id);
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(told(id, NULL), "added #1 mail T - - - -\nmoved #1 mail T - - - -\n"
                                        "moved #1 mail T - - - -\nstarted #1 mail T 1 1 - -");
    (void)fcall("later_cancel %s", id);
    assert_string_equal(told(id, NULL), "cancelling #1 mail - 1 - - -");
    (void)settle(w, id, 1, "retry", 1000);
    assert_string_equal(told(id, NULL), "cancelled #1 mail - 1 - 7 cancelled while running");
    id = add("mail in 1h x");
    (void)fcall("later_cancel %s", id);
    assert_string_equal(
        told(id, NULL),
        "added #1 mail T - - - -\ncancelled #1 mail - 0 - 0 cancelled while waiting");
    id = add("mail x");
    (void)claim(w, "mail", 1);
    (void)settle(w, id, 1, "dead", 10);
    (void)told(id, NULL);
    (void)fcall("later_retry %s", id);
    assert_string_equal(told(id, NULL), "retried #1 mail T 1 - - -");
}

static void test_ends(void **state)
{
    const char *id, *w;

    (void)state;
    follow();
    w = worker();
    id = add("mail keep 1h x");
    (void)claim(w, "mail", 1);
    (void)settle(w, id, 1, "retry", 0);
    assert_string_equal(told(id, NULL), "added #1 mail T - - - -\nstarted #1 mail T 1 1 - -\n"
                                        "failed #1 mail T 1 1 7 T");
    (void)claim(w, "mail", 1);
    (void)settle(w, id, 2, "release", 0);
    assert_string_equal(told(id, NULL), "started #1 mail T 2 2 - -\nreleased #1 mail T 2 - - -");
    (void)claim(w, "mail", 1);
    (void)settle(w, id, 2, "done", 0); /* of an old start, so it is settled */
    assert_string_equal(told(id, NULL), "started #1 mail T 3 2 - -");
    (void)settle(w, id, 3, "done", 60000);
    assert_string_equal(told(id, NULL), "done #1 mail - 3 - 7 T");
    id = add("mail x");
    (void)claim(w, "mail", 1);
    (void)settle(w, id, 1, "dead", 10);
    assert_string_equal(told(id, NULL), "added #1 mail T - - - -\nstarted #1 mail T 1 1 - -\n"
                                        "dead #1 mail - 1 - 7 T");
    id = add("mail x");
    (void)claim(w, "mail", 1);
    (void)settle(w, id, 1, "done", 0); /* one that leaves nothing */
    assert_string_equal(told(id, NULL), "added #1 mail T - - - -\nstarted #1 mail T 1 1 - -\n"
                                        "done #1 mail - 1 - 7 T");
}

/* Claims and ends in groups are told, too, in one message a sync. */
static void test_short_form(void **state)
{
    const char *a, *b, *w;

    (void)state;
    follow();
    w = worker();
    (void)fcall("later_add_many mail x y");
    a = at(0, 0, -1);
    b = at(1, 0, -1);
    (void)told(a, b, NULL);
    (void)fcall("later_v1_sync %s 1 0 10 0 1 " MAIL " 0", w);
    assert_string_equal(told(a, b, NULL), "started #1 mail T 1 1 - -\nstarted #2 mail T 1 1 - -");
    (void)fcall("later_add mail z");
    (void)heard(ears, CHANNEL);
    (void)fcall("later_v1_sync %s 1 0 10 0 1 " MAIL " 1 mail 1 2 %s %s", w, a, b);
    assert_string_equal(at(9, -1), "[]");
    assert_starts(told(a, b, NULL), "done #1 mail - 1 - 0 ok\ndone #2 mail - 1 - 0 ok\n"
                                    "started #0 mail T 1 1 - -");
}

static void test_gates_and_reaping(void **state)
{
    const char *a, *b, *w, *other;

    (void)state;
    follow();
    w = worker();
    other = worker();
    a = add("mail lock l x");
    b = add("mail lock l y");
    (void)told(a, b, NULL);
    (void)claim(w, "mail", 10);
    assert_string_equal(told(a, b, NULL), "started #1 mail T 1 1 - -\nparked #2 mail T - - - -");
    (void)redis("HGET R:workers %s", w);
    (void)fcall("later_v1_reap %s %s %s 3 100", other, w, shown(fx.last));
    assert_string_equal(at(0, -1), "clear");
    assert_starts(told(a, b, NULL), "failed #1 mail T 1 1 - worker ");
}

static void test_schedules(void **state)
{
    const char *id, *revision, *w;
    int64_t at_ms = now_ms() - 10000;

    (void)state;
    w = worker();
    (void)fcall("later_schedule_set s every 1s overlap skip queue mail p");
    (void)fcall("later_schedules s");
    revision = named("revision");
    follow();
    (void)fcall("later_v1_fire %s 1 s %s - %lld 2025b 44 0 1 %lld 0", w, revision,
                (long long)at_ms + 2000, (long long)at_ms);
    (void)fcall("later_schedules s");
    id = named("job");
    assert_string_equal(told(id, NULL), "added #1 mail T - - - -\n"
                                        "schedule-fired #1 mail T - - - s\n"
                                        "schedule-missed #0 mail - - - - s 44");
    (void)fcall("later_v1_fire %s 1 s %s %lld %lld 2025b 0 0 1 %lld 0", w, revision,
                (long long)at_ms + 2000, (long long)at_ms + 4000, (long long)at_ms + 2000);
    assert_string_equal(told(id, NULL), "schedule-skipped #0 mail - - - - s 1");
    (void)fcall("later_schedule_pause s");
    (void)fcall("later_v1_fire %s 1 s %s %lld - 2025b 0 0 2 %lld 0 %lld 0", w, revision,
                (long long)at_ms + 4000, (long long)at_ms + 4000, (long long)at_ms + 5000);
    assert_string_equal(told(id, NULL), "schedule-skipped #0 mail - - - - s 2");
    (void)fcall("later_schedule_run s force");
    assert_starts(told(NULL, NULL), "added #0 mail T - - - -\nschedule-fired #0 mail T - - - s");
}

/* A text from a stranger becomes part of one line of limited width. */
static void test_hostile(void **state)
{
    static char wide[3000];
    const char *id, *w;
    const char *argv[] = {"FCALL", "later_v1_sync",
                          "1",     ROOT,
                          NULL,    "1",
                          "0",     "0",
                          "1",     NULL,
                          "1",     "dead",
                          "mail",  "10",
                          "7",     "a\ndone j00000000000 mail\x1b[31m",
                          "tail",  "0",
                          "0"};

    (void)state;
    follow();
    w = worker();
    id = add("mail x");
    (void)claim(w, "mail", 1);
    (void)told(id, NULL);
    argv[4] = w;
    argv[9] = id;
    (void)send_args(19, argv, NULL);
    assert_string_equal(told(id, NULL), "dead #1 mail - 1 - 7 a done j00000000000 mail [31m");
    id = add("mail x");
    (void)claim(w, "mail", 1);
    (void)told(id, NULL);
    memset(wide, 'w', sizeof(wide) - 1);
    argv[9] = id;
    argv[15] = wide;
    (void)send_args(19, argv, NULL);
    assert_true(strlen(told(id, NULL)) < 250);
}

/* Beyond 5,000 events a second only the number of the rest is told, and calls go on as they are. */
static void test_bounds(void **state)
{
    struct buf line = BUF_INIT;
    int64_t left = 0, begin_ms, seconds;
    int events = 0;
    char *rest, *each;

    (void)state;
    follow();
    begin_ms = now_ms();
    buf_puts(&line, "later_add_many mail");
    for (int i = 0; i < 1000; i++)
        buf_puts(&line, " x");
    for (int i = 0; i < 20; i++) {
        assert_starts(call_line(buf_str(&line)), "[");
        assert_int_equal(len_at(-1), 1000);
    }
    buf_done(&line);
    seconds = now_ms() / 1000 - begin_ms / 1000 + 1;
    (void)usleep(1100000);
    /* The second is over: these calls also tell how many events were left out. */
    (void)add("mail x");
    (void)add("mail x");
    rest = mem_strdup(heard(ears, CHANNEL));
    (void)keep(rest);
    while ((each = strsep(&rest, "\n,")) != NULL) {
        long long n;

        if (sscanf(each, "1 %*s %lld", &n) == 1)
            left += n;
        else
            events++;
    }
    assert_int_equal(events + left, 20002);
    assert_in_range(events, 1000, 5000 * seconds + 2);
}

/* A caller that may not publish there does its work all the same; only its events are not told. */
static void test_without_the_right(void **state)
{
    const char *id;

    (void)state;
    follow();
    (void)redis("ACL SETUSER p on nopass ~* resetchannels &%s:wake +@all", ROOT);
    assert_string_equal(redis("AUTH p x"), "OK");
    id = add("mail x");
    assert_string_equal(redis("AUTH default x"), "OK");
    (void)redis("ACL LOG");
    assert_string_equal(shown(fx.last), "[]");
    assert_string_equal(told(id, NULL), "");
    assert_string_equal(redis("HLEN R:jobs"), "1");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start_listening, stop_listening)
    const struct CMUnitTest tests[] = {
        T(test_nobody_follows),
        T(test_ends_by_itself),
        T(test_other_namespace),
        T(test_origins),
        T(test_adds),
        T(test_by_hand),
        T(test_ends),
        T(test_short_form),
        T(test_gates_and_reaping),
        T(test_hostile),
        T(test_schedules),
        T(test_bounds),
        T(test_without_the_right),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
