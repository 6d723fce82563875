/*
 * Schedules: what defines them, that an occurrence gets its job exactly once whoever comes first,
 * what keeps a job out, and which file holds.
 */
#include "fixture.h"

/* Set a schedule; -> its status. */
FX_FMT static const char *set(const char *fmt, ...)
{
    FX_FORMAT(line);
    assert_starts(call_line(text("later_schedule_set %s", line)), "[");
    return at(1, -1);
}

/* The value of a field of schedule s. */
static const char *field(const char *name)
{
    assert_starts(fcall("later_schedules s"), "[");
    return named(name);
}

static const char *revision(void)
{
    return field("revision");
}

/* Fire one schedule; -> status. times: "0", or "1 at" */
static const char *fire(const char *w, const char *next, const char *new_next, const char *times)
{
    const char *at_ms = strchr(times, ' ');

    (void)fcall("later_v1_fire %s 1 s %s %s %s 2025b 0 0 %s%s", w, revision(), next, new_next,
                times, at_ms != NULL ? " 2026330" : "");
    return at(1, 0, -1);
}

/* A schedule s with this first occurrence, whose next one is planned. */
static void plan(const char *w, int64_t first, const char *options)
{
    assert_string_equal(set("s every 1s %s%sp", options, options[0] != '\0' ? " " : ""), "added");
    assert_string_equal(fire(w, "-", text("%lld", (long long)first), "0"), "fired");
}

static int jobs(const char *queue)
{
    (void)redis("ZCARD R:q:%s:5", queue);
    return (int)int_at(-1);
}

static void test_definition(void **state)
{
    const char *was;

    (void)state;
    assert_string_equal(set("s every 90s tz Europe/Berlin queue mail overlap skip p"), "added");
    was = revision();
    assert_string_equal(set("s every 90s tz Europe/Berlin queue mail overlap skip p"), "same");
    assert_string_equal(revision(), was);
    assert_string_equal(set("s every 90s tz Europe/Berlin queue mail priority 3 q"), "changed");
    assert_string_equal(revision(), was); /* the timing is the same */
    assert_string_equal(set("s every 60s tz Europe/Berlin queue mail priority 3 q"), "changed");
    assert_string_not_equal(revision(), was);
    assert_string_equal(field("when"), "every 60s");
    assert_string_equal(field("options"), "priority 3");
    assert_string_equal(field("catch_up_window_ms"), "86400000");
    assert_string_equal(field("origin"), "call");
    assert_string_equal(field("payload"), "q");
    assert_string_equal(set("t cron @daily ''"), "added");
    assert_starts(fcall("later_schedules"), "[[schedule ");
    assert_int_equal(len_at(-1), 2);
    assert_string_equal(fcall("later_schedule_del s"), "[s deleted]");
    assert_refused("ELATER_NOSCHEDULE", "later_schedule_del s");
    assert_refused("ELATER_NOSCHEDULE", "later_schedules s");
}

static void test_refused(void **state)
{
    static const struct {
        const char *code, *words;
    } rows[] = {
        {"ELATER_ARGS", "s every 1s"},
        {"ELATER_ARGS", "s at 5 p"},
        {"ELATER_ARGS", "s every 1s queue p"},
        {"ELATER_SCHEDULE", "-s every 1s p"},
        {"ELATER_SCHEDULE", "s cron 61 p"},
        {"ELATER_SCHEDULE", "s cron @reboot p"},
        {"ELATER_TIME", "s every 0s p"},
        {"ELATER_TIME", "s every 999ms p"},
        {"ELATER_TIME", "s every soon p"},
        {"ELATER_OPTION", "s every 1s tz Europe/.. p"},
        {"ELATER_OPTION", "s every 1s tz +01:00 p"},
        {"ELATER_OPTION", "s every 1s overlap never p"},
        {"ELATER_OPTION", "s every 1s catch_up some p"},
        {"ELATER_OPTION", "s every 1s token t p"},
        {"ELATER_OPTION", "s every 1s in 5m p"},
        {"ELATER_OPTION", "s every 1s tz UTC tz UTC p"},
        {"ELATER_OPTION", "s every 1s lock l overlap queue p"},
        {"ELATER_OPTION", "s every 1s priority 11 p"},
        {"ELATER_QUEUE", "s every 1s queue no.such p"},
        {"ELATER_QUEUE", "s.x every 1s p"},
        {"ELATER_LIMIT", "s every 1s sem none p"},
        {"ELATER_TIME", "s every 1s from 2030-01-01T00:00:00Z until 2029-01-01T00:00:00Z p"},
        {"ELATER_KEY", "s every 1s queue keyed p"},
    };
    char *large = mem_new(16386);

    (void)state;
    (void)redis("HSET R:queues keyed lock=of-{key}");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_refused(rows[i].code, "later_schedule_set %s", rows[i].words);
    memset(large, 'x', 16385);
    assert_starts(fcall_bytes("later_schedule_set s every 1s", large, 16385), "!ELATER_SIZE ");
    assert_starts(fcall_bytes("later_schedule_set s every 1s", large, 16384), "[s added]");
    free(large);
}

/* +DURATION counts from now; past times stay as they are. A file is read again and again, so each
 * worker would have another time. */
static void test_bounds_from_now(void **state)
{
    const char *w = worker();

    (void)state;
    assert_string_equal(set("s every 1s from +1h until +7d p"), "added");
    assert_time(strtoll(field("from_ms"), NULL, 10), 3599000, 3600000);
    assert_time(strtoll(field("until_ms"), NULL, 10), 604799000, 604800000);
    assert_string_equal(set("s every 1s from 2020-01-01T00:00:00Z until +7d p"), "changed");
    assert_string_equal(field("from_ms"), "1577836800000");
    assert_starts(fcall("later_schedule_run s for +1h"), "[j");
    (void)redis("HGET R:jobs %s", field("job"));
    assert_time(strtoll(strstr(reply_str(fx.last), " O=") + 3, NULL, 10), 3599000, 3600000);
    assert_string_equal(
        fcall("later_v1_declare_schedules %s 1 more 1 6 a every 1s until +7d p", w),
        "[[a ELATER_TIME until '+7d' is counted from now, and a file is read again and again: "
        "write it as 2030-01-31T09:00:00Z]]");
}

static void test_too_many(void **state)
{
    char *line = mem_strdup("HSET R:schedules");

    (void)state;
    for (int i = 0; i < 1000; i++) {
        char *more = mem_printf("%s n%d x", line, i);

        free(line);
        line = more;
    }
    for (int i = 0; i < 10; i++) {
        char *command = mem_strdup(line);

        for (char *at = command; (at = strstr(at, " n")) != NULL; at++)
            at[1] = (char)('a' + i);
        (void)redis("%s", command);
        free(command);
    }
    free(line);
    assert_refused("ELATER_FULL", "later_schedule_set one every 1s p");
    (void)redis("HDEL R:schedules a1");
    assert_string_equal(set("one every 1s p"), "added");
}

static void test_fired_once(void **state)
{
    const char *w = worker(), *v = worker();
    int64_t now = now_ms();
    const char *first = text("%lld", (long long)now - 5),
               *second = text("%lld", (long long)now + 1000);

    (void)state;
    plan(w, now - 5, "");
    assert_string_equal(field("next_ms"), first);
    assert_string_equal(fire(w, first, second, text("1 %s", first)), "fired");
    assert_string_equal(at(1, 3, -1), second);
    assert_string_equal(fire(v, first, second, text("1 %s", first)), "moved");
    assert_string_equal(at(1, 3, -1), second); /* the loser is told */
    assert_string_equal(fire(v, second, "-", text("1 %s", second)), "early");
    assert_int_equal(jobs("s"), 1);
    assert_string_equal(field("runs"), "1");
    assert_string_equal(field("last_ms"), first);
    assert_string_equal(field("next_ms"), second);
    assert_starts(redis("HGET R:jobs %s", field("job")), text("-s S=s O=%s Y=2026330\\np", first));
    (void)fcall("later_v1_fire %s 1 nope 1 - - x 0 0 0", w);
    assert_string_equal(at(1, 0, -1), "gone");
}

static void test_edits(void **state)
{
    const char *w = worker(), *first, *old;
    int64_t now = now_ms();

    (void)state;
    first = text("%lld", (long long)now - 5);
    plan(w, now - 5, "");
    old = revision();
    assert_string_equal(set("s every 1s q"), "changed"); /* the payload: next stays */
    assert_string_equal(field("next_ms"), first);
    assert_string_equal(set("s every 2s q"), "changed"); /* the timing: it is planned anew */
    assert_string_equal(field("next_ms"), "nil");
    (void)fcall("later_v1_fire %s 1 s %s %s - 2025b 0 0 1 %s 2026330", w, old, first, first);
    assert_string_equal(at(1, 0, -1), "moved");
    assert_string_equal(at(1, 3, -1), "-");
    assert_string_equal(fire(w, first, "-", text("1 %s", first)), "moved");
    assert_int_equal(jobs("s"), 0);
}

static void test_zones(void **state)
{
    const char *w = worker();
    int64_t next = now_ms() + 60000;
    const char *at_ms = text("%lld", (long long)next);

    (void)state;
    plan(w, next, "");
    assert_string_equal(fire(w, at_ms, "5", "0"), "moved"); /* of the same version: nothing to do */
    (void)fcall("later_v1_fire %s 1 s %s %s %lld 2024a 0 0 0", w, revision(), at_ms,
                (long long)next + 1);
    assert_string_equal(at(1, 0, -1), "moved");
    (void)fcall("later_v1_fire %s 1 s %s %s %lld 2026a 0 0 0", w, revision(), at_ms,
                (long long)next + 1);
    assert_string_equal(at(1, 0, -1), "fired");
    assert_string_equal(field("zones"), "2026a");
    assert_string_equal(field("next_ms"), text("%lld", (long long)next + 1));
}

static void test_pause_and_missed(void **state)
{
    const char *w = worker();
    int64_t now = now_ms();
    const char *first = text("%lld", (long long)now - 5);

    (void)state;
    plan(w, now - 5, "");
    assert_string_equal(fcall("later_schedule_pause s by me reason tea for 1h"), "[s paused]");
    (void)fcall("later_v1_fire %s 1 s %s %s 9 2025b 3 2 2026001 2026366 2 %s 2026330 %lld 2026331",
                w, revision(), first, first, (long long)now - 4);
    assert_string_equal(at(1, 0, -1), "fired");
    assert_int_equal(jobs("s"), 0);
    assert_string_equal(field("skipped"), "2");
    assert_string_equal(field("missed"), "3");
    assert_string_equal(field("next_ms"), "9");
    assert_string_equal(fcall("later_schedule_resume s"), "[s resumed]");
    assert_string_equal(fcall("later_schedule_resume s"), "[s repeated]");
    assert_refused("ELATER_OPTION", "later_schedule_pause s why x");
}

/* Let the next occurrence of s come; -> how many jobs its queue has waiting. */
static int come(const char *w)
{
    static int64_t at_ms;
    const char *next = field("next_ms");

    at_ms = strtoll(next, NULL, 10);
    assert_string_equal(fire(w, next, text("%lld", (long long)at_ms + 1), text("1 %s", next)),
                        "fired");
    return jobs("s");
}

static void test_overlap_skip(void **state)
{
    const char *w = worker(), *id;

    (void)state;
    plan(w, now_ms() - 1000, "overlap skip");
    assert_int_equal(come(w), 1);
    assert_int_equal(come(w), 1); /* it waits */
    id = claim(w, "s", 1);
    assert_int_equal(come(w), 0); /* it runs */
    assert_string_equal(field("skipped"), "2");
    (void)fcall_sync("%s 1 0 0 1 %s 1 retry s 60000 7 T O 0", w, id);
    assert_int_equal(come(w), 1); /* it waits for a retry: superseded */
    assert_string_not_equal(field("job"), id);
    assert_starts(redis("HEXISTS R:jobs %s", id), "0");
}

static void test_overlap_queue_and_replace(void **state)
{
    const char *w = worker(), *id;

    (void)state;
    plan(w, now_ms() - 1000, "overlap queue");
    assert_int_equal(come(w), 1);
    assert_int_equal(come(w), 1);
    id = claim(w, "s", 1);
    assert_int_equal(come(w), 1); /* one behind the running one */
    assert_int_equal(come(w), 1);
    assert_string_equal(claim(w, "s", 1), "nil"); /* the lock of the schedule */
    assert_string_equal(set("s every 1s overlap replace p"), "changed");
    (void)redis("HEXISTS R:cancel %s", id);
    assert_int_equal(int_at(-1), 0);
    assert_int_equal(come(w), 1); /* the parked one gives way */
    assert_string_equal(field("runs"), "3");
}

static void test_run(void **state)
{
    const char *w = worker(), *id;

    (void)state;
    plan(w, now_ms() + 60000, "overlap skip");
    assert_starts(fcall("later_schedule_run s"), "[j");
    assert_string_equal(at(1, -1), "added");
    assert_starts(fcall("later_schedule_run s"), "[ skipped 0]");
    assert_starts(fcall("later_schedule_run s force at +1m"), "[j");
    assert_time(int_at(2, -1), 59000, 60000);
    assert_starts(fcall("later_schedule_run s for 2020-01-01T00:00:00Z at +2m force"), "[j");
    id = at(0, -1);
    assert_time(int_at(2, -1), 119000, 120000);
    assert_starts(redis("HGET R:jobs %s", id), "-s S=s O=1577836800000\\n");
    assert_refused("ELATER_OPTION", "later_schedule_run s now");
    assert_refused("ELATER_OPTION", "later_schedule_run s for");
    assert_refused("ELATER_TIME", "later_schedule_run s for soon");
    assert_refused("ELATER_NOSCHEDULE", "later_schedule_run t");
}

/* A job that was added beside the occurrences, as by a backfill, keeps none of them out, and makes
 * way for none. */
static void test_forced_beside(void **state)
{
    const char *w = worker(), *id, *last;

    (void)state;
    plan(w, now_ms() - 1000, "overlap replace");
    assert_starts(fcall("later_schedule_run s force at +6h"), "[j");
    id = at(0, -1);
    assert_int_equal(come(w), 2);
    assert_string_equal(state_of(id), "waiting");
    last = field("job");
    assert_string_not_equal(last, id);
    assert_string_equal(set("s every 1s overlap skip p"), "changed");
    assert_string_equal(claim(w, "s", 1), last);
    assert_string_equal(settle(w, last, 1, "done", 0), "ok");
    assert_int_equal(come(w), 2); /* not kept out by the one that is due in six hours */
    assert_string_equal(field("skipped"), "0");
    assert_string_equal(field("runs"), "3");
}

/* A job by hand that is still to come neither keeps an occurrence out nor gives way to one, nor is
 * it judged by the last job. Once it has come it counts like the last one. */
static void test_run_that_is_to_come(void **state)
{
    static const char *const overlaps[] = {"skip", "queue", "replace", "allow"};
    const char *w = worker();

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const char *hand, *last;

        plan(w, now_ms() - 1000, text("overlap %s", overlaps[i]));
        assert_starts(fcall("later_schedule_run s at +1h"), "[j");
        hand = at(0, -1);
        assert_time(int_at(2, -1), 3599000, 3600000);
        assert_int_equal(come(w), 2);
        assert_string_equal(state_of(hand), "waiting");
        assert_string_equal(claim(w, "s", 1), field("job"));
        last = field("job");
        assert_string_not_equal(last, hand);
        assert_starts(fcall("later_schedule_run s at +2h"), "[j"); /* beside a running one, too */
        assert_string_equal(field("job"), last);
        (void)redis("HEXISTS R:cancel %s", last);
        assert_int_equal(int_at(-1), 0);
        assert_string_equal(settle(w, last, 1, "done", 0), "ok");
        assert_string_equal(field("skipped"), "0");
        (void)redis("FLUSHDB");
        w = worker();
    }
}

static void test_run_that_has_come(void **state)
{
    const char *w = worker(), *hand;

    (void)state;
    plan(w, now_ms() - 1000, "overlap skip");
    assert_starts(fcall("later_schedule_run s at +1h"), "[j");
    hand = at(0, -1);
    assert_int_equal(come(w), 2);
    assert_string_equal(claim(w, "s", 1), field("job"));
    assert_string_equal(settle(w, field("job"), 1, "done", 0), "ok");
    assert_starts(fcall("later_run_now %s", hand), "[");
    assert_int_equal(come(w), 1); /* it is due */
    assert_string_equal(claim(w, "s", 1), hand);
    assert_int_equal(come(w), 0); /* it runs */
    assert_starts(fcall("later_schedule_run s"), "[ skipped 0]");
    assert_string_equal(field("skipped"), "3");
    assert_string_equal(set("s every 1s overlap replace p"), "changed");
    assert_int_equal(come(w), 1); /* it gives way */
    (void)redis("HEXISTS R:cancel %s", hand);
    assert_int_equal(int_at(-1), 1);
}

/* The job of an occurrence that somebody has moved away is still to come like one by hand. */
static void test_moved_away(void **state)
{
    const char *w = worker(), *moved;

    (void)state;
    plan(w, now_ms() - 1000, "overlap replace");
    assert_int_equal(come(w), 1);
    moved = field("job");
    assert_starts(fcall("later_reschedule %s +1h", moved), "[");
    assert_int_equal(come(w), 2);
    assert_string_equal(state_of(moved), "waiting");
    assert_int_equal(come(w), 2); /* the last one gives way as ever */
    assert_starts(fcall("later_run_now %s", moved), "[");
    assert_int_equal(come(w), 1); /* both give way */
    /* within its splay a job has come */
    assert_string_equal(set("s every 1s overlap skip splay 1d p"), "changed");
    (void)fcall("later_cancel %s", field("job"));
    assert_int_equal(come(w), 1);
    assert_int_equal(come(w), 1);
}

/* What hinders the jobs is noted, and the schedule goes on. */
static void test_refused_later(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_limit_set x semaphore 1");
    plan(w, now_ms() - 1000, "sem x");
    (void)redis("HDEL R:limits x");
    (void)fcall("later_v1_fire %s 1 s %s %s - 2025b 0 0 1 %lld 2026330", w, revision(),
                field("next_ms"), (long long)strtoll(field("next_ms"), NULL, 10));
    assert_string_equal(at(1, 0, -1), "failed");
    assert_string_equal(field("missed"), "1");
    assert_string_equal(field("next_ms"), "nil");
    (void)redis("HKEYS R:notes");
    assert_starts(at(0, -1), "bad-schedule:s ELATER_LIMIT ");
}

static void test_files(void **state)
{
    const char *w = worker();
    int64_t read_ms = now_ms() - 1000;
    long long r = (long long)read_ms;

    (void)state;
    assert_string_equal(set("own every 1s p"), "added");
    assert_string_equal(
        fcall("later_v1_declare_schedules %s %lld last 2 4 a every 1s p 4 b every 0s p", w, r),
        "[[a added] [b ELATER_TIME every '0s' is shorter than 1s]]");
    assert_starts(fcall("later_schedules a"), "[schedule a ");
    assert_string_equal(named("origin"), "file");
    /* the same file, read by another worker later: the same; an older one changes nothing */
    assert_string_equal(fcall("later_v1_declare_schedules %s %lld last 1 4 a every 1s p", w, r + 5),
                        "[[a same]]");
    assert_string_equal(fcall("later_v1_declare_schedules %s %lld last 1 4 a every 9s p", w, r + 4),
                        "[[a older]]");
    assert_string_equal(fcall("later_v1_declare_schedules %s %lld last 0", w, r + 4), "[]");
    assert_starts(fcall("later_schedules a"), "[schedule a ");
    assert_string_equal(named("when"), "every 1s");
    /* taken out */
    (void)redis("HSET R:cursors a runs=7");
    assert_string_equal(fcall("later_v1_declare_schedules %s %lld last 1 4 c every 9s p", w, r + 6),
                        "[[c added]]");
    assert_refused("ELATER_NOSCHEDULE", "later_schedules a");
    assert_starts(fcall("later_schedules own"), "[schedule own ");
    /* and put back: its cursor is still there */
    assert_string_equal(fcall("later_v1_declare_schedules %s %lld more 1 4 a every 1s p", w, r + 7),
                        "[[a added]]");
    (void)fcall("later_schedules a");
    assert_string_equal(named("runs"), "7");
    assert_refused("ELATER_WORKER", "later_v1_declare_schedules 99 1 last 0");
    assert_refused("ELATER_ARGS", "later_v1_declare_schedules %s 1 first 0", w);
    /* read before the clock was set back, and taken out since */
    (void)redis("ZADD R:schedule:file %lld a", r + 3600000);
    assert_string_equal(fcall("later_v1_declare_schedules %s %lld last 1 4 c every 9s p", w, r + 8),
                        "[[c same]]");
    assert_refused("ELATER_NOSCHEDULE", "later_schedules a");
    assert_starts(fcall("later_schedules c"), "[schedule c ");
}

static void test_pages_and_changes(void **state)
{
    const char *w = worker(), *changed;

    (void)state;
    assert_starts(fcall("later_v1_beat %s", w), "[");
    assert_string_equal(at(6, -1), "");
    plan(w, now_ms() - 5, "");
    (void)fcall("later_v1_beat %s", w);
    changed = at(6, -1);
    assert_string_not_equal(changed, "");
    assert_starts(fcall("later_v1_schedules 0"), "[");
    assert_string_equal(at(1, -1), changed);
    assert_string_equal(at(2, -1), "0");
    assert_starts(at(3, -1), "[schedule s revision ");
    (void)fcall("later_v1_beat %s", w);
    assert_string_equal(at(6, -1), changed); /* a schedule that is planned is not changed */
    assert_string_equal(set("s every 1s queue t p"), "changed");
    (void)fcall("later_v1_beat %s", w);
    assert_string_not_equal(at(6, -1), changed);
    assert_refused("ELATER_ARGS", "later_v1_schedules x");
    assert_refused("ELATER_ARGS", "later_v1_fire %s 1 s", w);
    assert_refused("ELATER_WORKER", "later_v1_fire 99 0");
}

/* ---- the calendar */

/* How many days of a row of 2026: 0 due, 1 ok, 2 failed, 3 missed. */
static int days(int row)
{
    (void)redis("BITCOUNT R:cal:s:2026 %d %d", 64 * row, 64 * row + 63);
    return (int)int_at(-1);
}

static void test_calendar(void **state)
{
    const char *w = worker(), *id;

    (void)state;
    plan(w, now_ms() - 1000, "attempts 1");
    assert_int_equal(come(w), 1);
    assert_int_equal(days(0), 1);
    assert_string_equal(redis("GETBIT R:cal:s:2026 329"), "1");
    id = claim(w, "s", 1);
    assert_string_equal(redis("HGET R:holds %s", id), "then");
    (void)fcall_sync("%s 1 0 0 1 %s 1 done s 0 0 T O 0", w, id);
    assert_int_equal(days(1), 1);
    assert_int_equal(days(2), 0);
    assert_int_equal(come(w), 1);
    id = claim(w, "s", 1);
    (void)fcall_sync("%s 1 0 0 1 %s 1 dead s 9 7 T O 0", w, id);
    assert_int_equal(days(2), 1);
    (void)fcall("later_v1_fire %s 1 s %s %s - 2025b 3 3 2026001 2026366 9 0", w, revision(),
                field("next_ms"));
    assert_string_equal(at(1, 0, -1), "fired");
    assert_int_equal(days(3), 2);
    (void)redis("STRLEN R:cal:s:2026");
    assert_in_range(int_at(-1), 200, 256);
    (void)redis("PEXPIRETIME R:cal:s:2026");
    assert_true(int_at(-1) == (int64_t)(20819 + 400) * 86400000); /* 400 days behind 2027-01-01 */
    (void)fcall("later_schedule_calendar s 2026");
    assert_true(reply_len(fx.last) > 200);
    assert_string_equal(fcall("later_schedule_calendar s 2025"), "");
    assert_refused("ELATER_ARGS", "later_schedule_calendar s 26");
}

static void test_schedules_are_mended(void **state)
{
    const char *w = worker(), *known, *next;

    (void)state;
    plan(w, now_ms() - 1000, "");
    (void)redis("HSET R:schedules broken x");
    (void)redis("HSET R:cursors lost runs=1");
    assert_starts(fcall("later_v1_audit schedules '' 100"),
                  "[ 2 [broken-schedule broken  its definition is corrupt");
    assert_starts(fcall("later_v1_repair schedules '' 100"), "[ 2 [broken-schedule broken");
    assert_starts(fcall("later_v1_repair cursors '' 100"), "[ 2 [leftover lost");
    assert_string_equal(fcall("later_v1_audit schedules '' 100"), "[ 1]");
    assert_string_equal(fcall("later_v1_audit cursors '' 100"), "[ 1]");
    (void)redis("HSET R:cal:s:2026 a b"); /* a calendar keeps no job from coming */
    assert_int_equal(come(w), 1);
    known = revision();
    next = field("next_ms");
    (void)redis("SET R:schedule:paused x");
    assert_refused("ELATER_TYPE", "later_v1_fire %s 1 s %s %s - x 0 0 1 %s 2026330", w, known, next,
                   next);
}

/* A part of a schedule that cannot be read is told, and keeps no other schedule from its jobs. */
static void damage(const char *was, const char *is, const char *want)
{
    const char *w = (fx_clear(NULL), worker()), *whole, *at_word, *of_s, *of_t;
    const char *argv[] = {"HSET", ROOT ":schedules", "s", NULL};

    assert_string_equal(set("s every 1s splay 1s overlap skip priority 3 key k p"), "added");
    assert_string_equal(set("t every 1s queue other p"), "added");
    of_s = revision();
    (void)fcall("later_schedules t");
    of_t = named("revision");
    (void)redis("HGET R:schedules s");
    whole = text("%s", reply_str(fx.last));
    at_word = strstr(whole, was);
    assert_non_null(at_word);
    argv[3] = text("%.*s%s%s", (int)(at_word - whole), whole, is, at_word + strlen(was));
    (void)send_args(4, argv, NULL);
    assert_starts(fcall("later_v1_fire %s 2 s %s - - x 0 0 1 5 2026001 t %s - - x 0 0 1 5 2026001",
                        w, of_s, of_t),
                  "[");
    assert_string_equal(at(2, 0, -1), "fired");
    assert_int_equal(jobs("other"), 1);
    assert_starts(fcall("later_schedules"), "[");
    if (want != NULL)
        assert_starts(fcall("later_v1_audit schedules '' 100"),
                      text("[ 2 [broken-schedule s %s", want));
    assert_starts(fcall("later_v1_repair schedules '' 100"), "[ 2 [broken-schedule s ");
}

static void test_damage_stays_in_its_schedule(void **state)
{
    (void)state;
    damage("splay=1000", "splay=nan", " its definition is corrupt");
    damage("revision=", "revision=x", " its definition is corrupt");
    damage("key k", "key", "s a part of its definition is corrupt: ELATER_OPTION");
    damage("priority 3", "priority x", "s a part of its definition is corrupt: ELATER_OPTION");
    damage("overlap=skip", "overlap=", "s a part of its definition is corrupt: overlap");
    damage("when=every", "when=never", "s a part of its definition is corrupt: when");
    damage("queue=s", "queue=\xff", "\xff a part of its definition is corrupt: ELATER_QUEUE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_definition),
        FX_TEST(test_refused),
        FX_TEST(test_bounds_from_now),
        FX_TEST(test_too_many),
        FX_TEST(test_fired_once),
        FX_TEST(test_edits),
        FX_TEST(test_zones),
        FX_TEST(test_pause_and_missed),
        FX_TEST(test_overlap_skip),
        FX_TEST(test_overlap_queue_and_replace),
        FX_TEST(test_run),
        FX_TEST(test_forced_beside),
        FX_TEST(test_run_that_is_to_come),
        FX_TEST(test_run_that_has_come),
        FX_TEST(test_moved_away),
        FX_TEST(test_refused_later),
        FX_TEST(test_files),
        FX_TEST(test_pages_and_changes),
        FX_TEST(test_calendar),
        FX_TEST(test_schedules_are_mended),
        FX_TEST(test_damage_stays_in_its_schedule),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
