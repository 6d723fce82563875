/* `later schedule`: what it prints, refuses and answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/env.h"
#include "command.h"

static void test_next_of_an_expression(void **state)
{
    (void)state;
    assert_int_equal(run("schedule", "next", "30 2 * * *", "--tz", "Europe/Berlin", "-n", "3",
                         "--after", "2026-03-27T12:00:00Z"),
                     0);
    assert_says(&out, "2026-03-28 02:30:00 +01:00  2026-03-28T01:30:00Z");
    assert_says(&out, "2026-03-29 03:00:00 +02:00  2026-03-29T01:00:00Z");
    assert_says(&out, "(the clock goes forward by 1h that day)\n2026-03-30 02:30:00 +02:00");
    assert_int_equal(run("--json", "schedule", "next", "*/20 * * * *", "--tz", "Europe/Berlin",
                         "--count", "4", "--after", "2026-10-25T02:39:59+02:00"),
                     0);
    assert_out("{\"ms\":1792888800000,\"at\":\"2026-10-25T02:40:00+02:00\"}\n"
               "{\"ms\":1792890000000,\"at\":\"2026-10-25T02:00:00+01:00\"}\n"
               "{\"ms\":1792891200000,\"at\":\"2026-10-25T02:20:00+01:00\"}\n"
               "{\"ms\":1792892400000,\"at\":\"2026-10-25T02:40:00+01:00\"}\n");
    assert_int_equal(run("--json", "schedule", "next", "every 90s", "-n", "1", "--after",
                         "1970-01-01T00:00:01Z"),
                     0);
    assert_out("{\"ms\":90000,\"at\":\"1970-01-01T00:01:30+00:00\"}\n");
    assert_int_equal(
        run("--json", "schedule", "next", "@daily", "-n", "1", "--after", "1970-01-01T00:00:01Z"),
        0);
    assert_out("{\"ms\":86400000,\"at\":\"1970-01-02T00:00:00+00:00\"}\n");
}

static void test_refused(void **state)
{
    static const struct {
        const char *argv[6];
        int status;
        const char *says;
    } rows[] = {
        {{"next", "61 * * * *"}, 65, "column 1: '61' is no minute: write 0 to 59"},
        {{"next", "0 0 30 2 *"}, 65, "has no occurrence in the nine years"},
        {{"next", "@reboot"}, 65, "@reboot is no time"},
        {{"next", "@daily", "--tz", "Europe/Berln"}, 65, "there is no time zone 'Europe/Berln'"},
        {{"next", "@daily", "-n", "0"}, 64, "write 1 to 10000"},
        {{"next", "@daily", "--after", "x"}, 65, "x"},
        {{"next", "s", "--tz", "UTC"}, 64, "--tz goes with an expression"},
        {{"next", "s"}, 66, "there is no schedule 's'"},
        {{"add", "s", "cron", "* * *"}, 65, "5 fields"},
        {{"add", "s", "cron", "0 0 30 2 *"}, 65, "has no occurrence in nine years"},
        {{"add", "s", "every", "0s"}, 65, "no duration from 1s on"},
        {{"add", "s", "at", "0s"}, 65, "neither cron nor every"},
        {{"add", "s", "every"}, 64, "takes NAME cron EXPRESSION|every D [PAYLOAD]"},
        {{"add", "s", "every", "1s", "--force"}, 64, "--force does not belong to"},
        {{"add", "s s", "every", "1s"}, 65, "is no name of a schedule"},
        {{"add", "s.s", "every", "1s"}, 65, "give --queue QUEUE [ELATER_QUEUE]"},
        {{"add", "s", "every", "1s", "--queue", "a b"}, 65, "'a b' is no queue name"},
        {{"add", "s", "every", "1s", "--then", "a b"}, 65, "'a b' is no queue name"},
        {{"show", "s"}, 66, "there is no schedule 's': later schedule add makes it"},
        {{"rm", "s"}, 66, "there is no schedule"},
        {{"pause", "s"}, 66, "there is no schedule"},
        {{"lst"}, 64, "did you mean ls?"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const *a = rows[i].argv;
        int status = run("schedule", a[0], a[1], a[2], a[3], a[4], a[5]);

        if (status != rows[i].status)
            fail_msg("row %zu: %d: %s", i, status, buf_str(&err));
        assert_says(&err, rows[i].says);
    }
}

static void test_its_life(void **state)
{
    char id[16];

    (void)state;
    assert_int_equal(run("schedule", "add", "s", "cron", "30 2 * * *", "--tz", "Europe/Berlin",
                         "--queue", "q", "--then", "a,b", "--overlap", "skip", "the payload"),
                     0);
    assert_out("s added\n");
    assert_int_equal(run("--json", "schedule", "add", "s", "cron", "30 2 * * *", "--tz",
                         "Europe/Berlin", "--queue", "q", "--then", "a,b", "--overlap", "skip",
                         "the payload"),
                     0);
    assert_out("{\"schedule\":\"s\",\"status\":\"same\"}\n");
    assert_int_equal(run("schedule", "show", "s"), 0);
    assert_says(&out, "when              cron 30 2 * * *\n");
    assert_says(&out, "options           then a then b\n");
    assert_says(&out, "payload           the payload\n");
    assert_int_equal(run("schedule", "next", "s", "-n", "1"), 0);
    assert_says(&out, " 02:30:00 +0");
    assert_int_equal(run("schedule", "pause", "s", "--for", "0s"), 65);
    assert_says(&err, "for must be longer than nothing");
    assert_int_equal(run("schedule", "pause", "s", "--reason", "tea", "--for", "1h30m"), 0);
    assert_out("s paused\n");
    assert_int_equal(run("schedule", "ls"), 0);
    assert_says(&out, "s         cron 30 2 * * *  Europe/Berlin  q      paused");
    assert_int_equal(run("schedule", "show", "s"), 0);
    assert_says(&out, " tea\n");
    assert_says(&out, "\npaused until      20");
    assert_int_equal(run("--json", "schedule", "show", "s"), 0);
    assert_says(&out, "\"paused\":{\"until_ms\":");
    assert_says(&out, "\"reason\":\"tea\"}");
    assert_int_equal(run("schedule", "resume", "s"), 0);
    assert_out("s resumed\n");
    assert_int_equal(run("schedule", "resume", "s"), 0);
    assert_out("s is not paused\n");
    assert_int_equal(run("--json", "schedule", "run-now", "s"), 0);
    assert_int_equal(sscanf(buf_str(&out), "{\"id\":\"%15[a-z0-9]\"", id), 1);
    assert_int_equal(run("show", id), 0);
    assert_says(&out, "schedule          s\n");
    assert_says(&out, "occurrence        20");
    assert_int_equal(count("ZCARD", ROOT ":q:q:5"), 1);
    assert_int_equal(run("schedule", "run-now", "s"), 1);
    assert_says(&err, "the last job of this schedule has not ended");
    assert_int_equal(run("--json", "schedule", "run-now", "s", "--force", "--at", "+1h"), 0);
    assert_says(&out, "\"status\":\"added\"");
    assert_int_equal(run("--json", "schedule", "ls"), 0);
    assert_says(&out, "{\"schedule\":\"s\",\"when\":\"cron 30 2 * * *\"");
    assert_int_equal(run("schedule", "rm", "s"), 0);
    assert_out("s deleted\n");
    assert_int_equal(count("ZCARD", ROOT ":q:q:5"), 2); /* its jobs stay */
}

/* By name; and a period in the unit that people would write, where a file gives it in ms. */
static void test_ls(void **state)
{
    static const char *const names[] = {"m", "b", "x", "a", "k"};
    const char *at;

    (void)state;
    for (size_t i = 0; i < 300; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "%s%zu", names[i % 5], 100 + i);
        do_redis("FCALL", "later_schedule_set", "1", ROOT, name, "every", "5000ms", "queue", "q",
                 "x");
    }
    do_redis("FCALL", "later_schedule_set", "1", ROOT, "z1", "every", "1500ms", "queue", "q", "x");
    do_redis("FCALL", "later_schedule_set", "1", ROOT, "z2", "every", "90s", "queue", "q", "x");
    assert_int_equal(run("schedule", "ls"), 0);
    assert_says(&out, "\na103      every 5s ");
    assert_says(&out, "\nz1        every 1500ms ");
    assert_says(&out, "\nz2        every 90s ");
    at = strchr(buf_str(&out), '\n') + 1;
    for (size_t i = 0; i < 301; i++) {
        const char *next = strchr(at, '\n') + 1;

        assert_true(strncmp(at, next, strcspn(at, " ")) < 0);
        at = next;
    }
    assert_int_equal(run("schedule", "show", "a103"), 0);
    assert_says(&out, "when              every 5s\n");
    assert_int_equal(run("--json", "schedule", "ls"), 0);
    assert_says(&out, "{\"schedule\":\"a103\",\"when\":\"every 5000ms\"");
}

/* What counts from now does so in each of its forms. */
static void test_bounds_from_now(void **state)
{
    static const char *const forms[] = {"+7d", "in 7d", "7d"};
    static const char *const names[] = {"from_ms", "until_ms"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(run("schedule", "add", "s", "every", "1s", "--from", "now", "--until",
                             forms[i], "--queue", "q"),
                         0);
        assert_int_equal(run("schedule", "show", "s"), 0);
        assert_says(&out, "until             20");
        assert_says(&out, "in 6d 23h");
        for (size_t k = 0; k < 2; k++) {
            struct reply *r = test_fcall(&redis, "later_schedules", "s", NULL);

            assert_true(reply_named_int(r, names[k], 0) > INT64_C(1700000000000));
            reply_free(r);
        }
        assert_int_equal(run("schedule", "next", "s", "-n", "1"), 0);
        assert_says(&out, "Z");
    }
}

/* Set the bits of these days of 2023 in a row; the day is that of the year, from 1 on. */
static void mark(int row, const int *days)
{
    for (; *days > 0; days++) {
        char offset[16];

        (void)snprintf(offset, sizeof(offset), "%d", 512 * row + *days - 1);
        do_redis("SETBIT", ROOT ":cal:s:2023", offset, "1");
    }
}

/* 1 January 2023 is a Sunday. */
static void test_calendar(void **state)
{
    (void)state;
    mark(0, (const int[]){1, 2, 3, 4, 5, 6, 365, 0});
    mark(1, (const int[]){1, 2, 4, 5, 0});
    mark(2, (const int[]){3, 0});
    mark(3, (const int[]){365, 0});
    assert_int_equal(run("schedule", "calendar", "s", "--year", "2023"), 0);
    assert_says(&out, "2023\n    Jan ");
    assert_says(&out, "Mon  o");
    assert_says(&out, "\n     F."); /* Tuesday the 3rd */
    assert_says(&out, "\nFri  ?.");
    assert_says(&out, ".m\n");
    assert_says(&out, "7 days due, 4 ok, 1 failed, 1 missed\n");
    assert_says(&out, "first failure: 2023-01-03\nstreak: 0 days now, 2 the longest\n");
    assert_int_equal(count("STRLEN", ROOT ":cal:s:2023"), 64 * 3 + 46);
    assert_int_equal(run("--json", "schedule", "calendar", "s", "--year", "2023"), 0);
    assert_says(&out, "\"ok\":[\"2023-01-01\",\"2023-01-02\",\"2023-01-04\",\"2023-01-05\"]");
    assert_says(&out, "\"missed\":[\"2023-12-31\"],\"first_failure\":\"2023-01-03\",\"streak\":0,"
                      "\"longest_streak\":2}");
    assert_int_equal(run("schedule", "calendar", "s", "--year", "23"), 64);
    assert_int_equal(run("schedule", "calendar", "none"), 66);
    assert_says(&err, "there is no schedule 'none'");
    assert_int_equal(run("schedule", "add", "new", "every", "1h"), 0);
    assert_int_equal(run("schedule", "calendar", "new"), 0);
    assert_says(&out, "0 days due, 0 ok");
}

static void test_health_and_metrics(void **state)
{
    struct reply *r;
    char cursor[160];

    (void)state;
    assert_int_equal(run("schedule", "add", "s", "every", "1h"), 0);
    r = test_fcall(&redis, "later_schedules", "s", NULL);
    (void)snprintf(
        cursor, sizeof(cursor),
        "revision=%s last=1700000000000 next=1700003600000 zones=x runs=3 skipped=1 missed=2",
        reply_str(reply_named(r, "revision")));
    reply_free(r);
    do_redis("HSET", ROOT ":cursors", "s", cursor);
    do_redis("FCALL", "later_v1_note", "1", ROOT, "bad-schedule", "t column 1: bad");
    do_redis("FCALL", "later_v1_note", "1", ROOT, "zone-differs", "2024a");
    (void)run("health");
    assert_says(&out, "degraded: late-schedule: schedule s was due ");
    assert_says(&out, "degraded: bad-schedule: schedule t: column 1: bad: its jobs are not added");
    assert_says(&out, "warning: zone-differs: a worker has the time zones of 2024a");
    assert_int_equal(run("stats", "--prometheus"), 0);
    assert_says(&out,
                "laterd_schedule_last_timestamp_seconds{namespace=\"default\",schedule=\"s\"} "
                "1700000000.000\n");
    assert_says(&out,
                "laterd_schedule_next_timestamp_seconds{namespace=\"default\",schedule=\"s\"} "
                "1700003600.000\n");
    assert_says(&out, "laterd_schedule_missed_total{namespace=\"default\",schedule=\"s\"} 2\n");
    assert_says(&out, "laterd_attention{namespace=\"default\",kind=\"zone-differs\"} 1\n");
}

/* No import has a reason to warn that nobody serves its queue. */
static int serve_queues(void **state)
{
    char epoch[24];

    flush_all(state);
    register_worker("cron,q", epoch);
    return 0;
}

static void test_import(void **state)
{
    static const char crontab[] = "# m h dom mon dow command\n"
                                  "MAILTO=root\n"
                                  "CRON_TZ=Europe/Berlin\n"
                                  "30 2 * * * /usr/bin/backup --all\n"
                                  "61 * * * * x\n"
                                  "@reboot y\n"
                                  "0 0 * * * cat%in\n"
                                  "*/5 * * * * date +\\%F\n";

    (void)state;
    assert_int_equal(feed(crontab, "schedule", "import", "-", "--queue", "cron", "--dry-run"), 1);
    assert_int_equal(count("HLEN", ROOT ":schedules"), 0);
    assert_int_equal(feed(crontab, "schedule", "import", "-", "--queue", "cron"), 1);
    assert_out("line 2: left out: MAILTO: look at dead jobs, or at later health\n"
               "line 4: stdin-4 added (Europe/Berlin)\n"
               "line 5: left out: column 1: '61' is no minute: write 0 to 59\n"
               "line 6: left out: @reboot is no time: add a job where the system starts\n"
               "line 7: left out: its command has a %: put what it reads into a file\n"
               "line 8: stdin-8 added (Europe/Berlin)\n");
    assert_string_equal(buf_str(&err), "");
    assert_int_equal(run("schedule", "show", "stdin-4"), 0);
    assert_says(&out, "when              cron 30 2 * * *\ntime zone         Europe/Berlin\n"
                      "queue             cron\n");
    assert_says(&out, "payload           /usr/bin/backup --all\n");
    assert_int_equal(run("schedule", "show", "stdin-8"), 0);
    assert_says(&out, "payload           date +%F\n");
    assert_int_equal(feed("@daily www-data x\n", "--json", "schedule", "import", "-", "--queue",
                          "cron", "--system"),
                     0);
    assert_out(
        "{\"line\":1,\"schedule\":\"stdin-1\",\"status\":\"added\",\"tz\":\"UTC\",\"reason\":"
        "\"it ran as www-data: that is user of the queue\"}\n");
    assert_int_equal(run("schedule", "import", "/nosuch"), 64);
}

/* Nothing that is there is replaced: neither by another file, nor by the same one after an edit. */
static void test_import_of_a_second_file(void **state)
{
    (void)state;
    assert_int_equal(feed("@daily a\n@hourly b\n", "schedule", "import", "-", "--queue", "q"), 0);
    assert_int_equal(run("schedule", "add", "stdin-2", "cron", "@hourly", "--queue", "q",
                         "--overlap", "skip", "b"),
                     0);
    assert_int_equal(feed("@daily c\n@hourly b\n", "schedule", "import", "-", "--queue", "q"), 1);
    assert_out("line 1: stdin-1 left out: the name is taken by another schedule: give --prefix "
               "PREFIX, or remove that one (later schedule rm stdin-1)\n"
               "line 2: stdin-2 same (UTC)\n");
    assert_int_equal(run("schedule", "show", "stdin-1"), 0);
    assert_says(&out, "payload           a\n");
    assert_int_equal(run("schedule", "show", "stdin-2"), 0);
    assert_says(&out, "overlap           skip\n");
    assert_int_equal(feed("@daily c\n", "schedule", "import", "-", "--queue", "q", "--dry-run"), 1);
    assert_says(&out, "the name is taken");
    assert_int_equal(
        feed("@daily c\n", "schedule", "import", "-", "--queue", "q", "--prefix", "host-2"), 0);
    assert_out("line 1: host-2-1 added (UTC)\n");
    assert_int_equal(
        feed("@daily c\n", "schedule", "import", "-", "--queue", "q", "--prefix", "-x"), 64);
    assert_says(&err, "--prefix: write up to 100 letters");
}

/* cron times by CRON_TZ alone; where nobody names a zone, it is said which one holds. */
static void test_import_zones(void **state)
{
    (void)state;
    assert_int_equal(feed("TZ=Asia/Tokyo\n@daily a\n", "schedule", "import", "-", "--queue", "q"),
                     1);
    assert_out("line 1: left out: TZ: it is the zone of the commands, put it under env of the "
               "queue; that of the times is CRON_TZ, or --tz\n"
               "line 2: stdin-2 added (UTC)\n");
    assert_says(&err, "later: from line 2 on the times are taken in UTC, since neither --tz nor "
                      "CRON_TZ says another zone (cron takes that of its host)\n");
    assert_int_equal(feed("@daily a\nCRON_TZ=Asia/Tokyo\n@daily b\n", "schedule", "import", "-",
                          "--queue", "q", "--tz", "Europe/Berlin", "--prefix", "z"),
                     0);
    assert_out("line 1: z-1 added (Europe/Berlin)\nline 3: z-3 added (Asia/Tokyo)\n");
    assert_string_equal(buf_str(&err), "");
}

/* Line ends of Windows are none of the commands. */
static void test_import_line_ends(void **state)
{
    (void)state;
    assert_int_equal(feed("CRON_TZ=Asia/Tokyo\r\n\r\n@daily a b\r\n30 2 * * * c\r\n", "schedule",
                          "import", "-", "--queue", "q"),
                     0);
    assert_out("line 3: stdin-3 added (Asia/Tokyo)\nline 4: stdin-4 added (Asia/Tokyo)\n");
    assert_int_equal(run("--json", "schedule", "show", "stdin-3"), 0);
    assert_says(&out, "\"payload\":\"a b\"}");
}

/* With the users of a system's crontab as commands, or the commands as users, nothing is taken. */
static void test_import_of_the_other_kind(void **state)
{
    (void)state;
    assert_int_equal(run("schedule", "import", "/etc/crontab", "--queue", "q"), 64);
    assert_says(&err, "/etc/crontab is a system's crontab, whose entries name a user: write "
                      "--system");
    assert_int_equal(feed("@daily elsewhere a\n17 * * * * www-data\tcd / && run\n", "schedule",
                          "import", "-", "--queue", "q"),
                     64);
    assert_says(&err, "line 2 would run 'www-data'");
    assert_says(&err, "write --system");
    assert_int_equal(
        feed("@daily /usr/bin/backup all\n", "schedule", "import", "-", "--queue", "q", "--system"),
        64);
    assert_says(&err, "line 1 has no user before its command");
    assert_int_equal(
        feed("@daily sleep 5\n", "schedule", "import", "-", "--queue", "q", "--system"), 64);
    assert_says(&err, "line 1 has no user before its command, but 'sleep'");
    assert_int_equal(feed("@daily nobody sleep 5\n@daily elsewhere sleep 5\n", "schedule", "import",
                          "-", "--queue", "q", "--system", "--dry-run"),
                     0);
    assert_out(
        "line 1: stdin-1 checked (UTC): sleep 5 (it ran as nobody: that is user of the queue)\n"
        "line 2: stdin-2 checked (UTC): sleep 5 (it ran as elsewhere: that is user of the "
        "queue)\n");
    assert_int_equal(count("HLEN", ROOT ":schedules"), 0);
}

static void test_import_without_a_file(void **state)
{
    (void)state;
    assert_int_equal(run("schedule", "import", "/nosuch", "--queue", "q"), 66);
    assert_says(&err, "cannot read /nosuch: No such file or directory");
    assert_int_equal(run("schedule", "import", "/tmp", "--queue", "q"), 66);
    assert_says(&err, "/tmp is a folder: name a file");
}

/* A job keeps what it was added for when it moves. */
static void test_export_and_import(void **state)
{
    CLEANUP_FREE char *record = NULL, *lines = NULL;
    struct reply *r;
    char id[16];

    (void)state;
    (void)run("schedule", "add", "s", "every", "1h", "--queue", "q", "x");
    assert_int_equal(run("--json", "schedule", "run-now", "s"), 0);
    assert_int_equal(sscanf(buf_str(&out), "{\"id\":\"%15[a-z0-9]\"", id), 1);
    do_redis("HSET", ROOT ":jobs", id, "-q S=s O=1767225600000 Y=2026001\nx");
    assert_int_equal(run("export", "q"), 0);
    assert_says(&out, "\"schedule\":\"s\",\"occurrence_ms\":1767225600000,\"day\":2026001");
    lines = mem_strdup(buf_str(&out));
    do_redis("FLUSHALL");
    assert_int_equal(feed(lines, "import", "q", "-"), 0);
    r = test_redis_call(&redis, "HVALS", ROOT ":jobs", NULL);
    record = mem_strdup(reply_str(reply_at(r, 0)));
    reply_free(r);
    assert_string_equal(record, "-q S=s O=1767225600000 Y=2026001\nx");
}

static void test_backfill(void **state)
{
    (void)state;
    assert_int_equal(run("schedule", "add", "s", "cron", "@daily", "--queue", "q"), 0);
    assert_int_equal(run("schedule", "backfill", "s", "--from", "2026-01-01T00:00:00Z", "--to",
                         "2026-01-10T00:00:00Z", "--spread", "1h"),
                     0);
    assert_out("10 jobs added\n");
    assert_int_equal(count("ZCARD", ROOT ":q:q:5"), 10);
    assert_int_equal(run("--json", "schedule", "backfill", "s", "--from", "2026-01-01T00:00:01Z",
                         "--to", "2026-01-01T23:00:00Z"),
                     0);
    assert_out("{\"schedule\":\"s\",\"added\":0}\n");
    assert_int_equal(run("schedule", "backfill", "s", "--from", "2026-01-01T00:00:00Z", "--to",
                         "2026-01-10T00:00:00Z", "--limit", "9"),
                     64);
    assert_says(&err, "there are more than 9 occurrences");
    assert_int_equal(run("schedule", "backfill", "s", "--from", "2026-01-01T00:00:00Z", "--to",
                         "2026-01-10T00:00:00Z", "--spread", "106751991167d"),
                     64);
    assert_says(&err, "--spread is longer than 100 years");
    assert_int_equal(run("schedule", "next", "every 106751991167d"), 65);
    assert_int_equal(run("schedule", "backfill", "s", "--from", "2026-01-01T00:00:00Z"), 64);
    assert_says(&err, "write --from TIME --to TIME");
    assert_int_equal(
        run("schedule", "backfill", "none", "--from", "1700000000000", "--to", "1700000000001"),
        66);
    assert_int_equal(count("ZCARD", ROOT ":q:q:5"), 10);
    assert_int_equal(run("schedule", "backfill", "s", "--from", "2026-01-01T00:00:00Z", "--to",
                         "2026-01-01T00:00:00Z"),
                     0);
    assert_out("1 job added\n");
}

/* What is to come is added by the schedule itself, and so would be there twice. */
static void test_backfill_of_what_is_to_come(void **state)
{
    (void)state;
    assert_int_equal(run("schedule", "add", "s", "cron", "@daily", "--queue", "q"), 0);
    assert_int_equal(run("schedule", "backfill", "s", "--from", "now", "--to", "in 30d"), 65);
    assert_says(&err, "--to is in the future");
    assert_says(&err, "--to now");
    assert_int_equal(run("schedule", "backfill", "s", "--from", "2026-01-02T00:00:00Z", "--to",
                         "2026-01-01T00:00:00Z"),
                     64);
    assert_says(&err, "--from is later than --to");
    assert_int_equal(count("ZCARD", ROOT ":q:q:5"), 0);
    assert_int_equal(run("schedule", "backfill", "s", "--from", "now", "--to", "now"), 0);
    assert_int_equal(
        run("schedule", "backfill", "s", "--from", "@1767225600", "--to", "@1767312000"), 0);
    assert_out("2 jobs added\n");
    assert_int_equal(run("schedule", "next", "@daily", "-n", "1", "--after", "@1767225600"), 0);
    assert_says(&out, "2026-01-02T00:00:00Z");
    assert_int_equal(run("schedule", "next", "@daily", "-n", "1", "--after", "now"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_next_of_an_expression, flush_all),
        cmocka_unit_test_setup(test_refused, flush_all),
        cmocka_unit_test_setup(test_its_life, flush_all),
        cmocka_unit_test_setup(test_ls, flush_all),
        cmocka_unit_test_setup(test_bounds_from_now, flush_all),
        cmocka_unit_test_setup(test_calendar, flush_all),
        cmocka_unit_test_setup(test_backfill, flush_all),
        cmocka_unit_test_setup(test_backfill_of_what_is_to_come, flush_all),
        cmocka_unit_test_setup(test_import_without_a_file, flush_all),
        cmocka_unit_test_setup(test_export_and_import, flush_all),
        cmocka_unit_test_setup(test_import, serve_queues),
        cmocka_unit_test_setup(test_import_of_a_second_file, flush_all),
        cmocka_unit_test_setup(test_import_zones, serve_queues),
        cmocka_unit_test_setup(test_import_line_ends, flush_all),
        cmocka_unit_test_setup(test_import_of_the_other_kind, flush_all),
        cmocka_unit_test_setup(test_health_and_metrics, flush_all),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
