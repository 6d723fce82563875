#include "daemon/schedules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "daemon/schedule_table.h"
#include "sched/server_clock.h"

#define ITEMS_MAX 100  /* schedules in a call of later_v1_fire, and their times together */
#define EARLY_MS 1     /* Redis' clock was not there yet: ask again after this */
#define FAILED_MS 1000 /* the call was refused */
#define CLOSER_US 50   /* the alarm is set anew if the clock is known better by this */
#define SECOND_MS 3    /* where another daemon was first last time, it is again: come after it */
#define ITEM_WORDS 8   /* of a schedule in that call, without its times */
#define DAYS_MAX 100   /* missed days of a schedule that are told */
#define UNREAD_MAX 16  /* schedules that cannot be read and are looked after */
#define NUMBER_BYTES 24

/* A call of later_v1_fire: its words, and the schedules that it is about. */
struct fire {
    const char *words[6 + ITEMS_MAX * (ITEM_WORDS + 2) + 2 * CATCH_UP_TIMES + DAYS_MAX];
    char numbers[ITEMS_MAX * (6 + 2) + 2 * CATCH_UP_TIMES + DAYS_MAX][NUMBER_BYTES];
    struct schedule *at[ITEMS_MAX]; /* stay until the answer: nothing is read meanwhile */
    int nwords, nnumbers;
    size_t n, ntimes;
};

/* The call under way: there is one at a time. */
enum call { NONE, READING, FIRING };

/* A schedule that cannot be read, as health is told of it. tz: its zone, if that is why. */
struct unread {
    char *note, *tz;
};

struct schedules {
    struct loop_alarm *alarm;
    struct link *link;
    struct store_redis *store;
    int64_t answer_ms; /* no answer takes longer */
    char root[80];
    char zones[SCHEDULE_ZONES_MAX]; /* version of the time zones of this host */
    char epoch[NUMBER_BYTES];       /* "": not registered */
    struct server_clock clock;
    struct mono asked;            /* when the call under way was sent */
    struct schedule_table known;  /* what fires */
    struct schedule_table coming; /* while all are read again */
    struct unread unread[UNREAD_MAX];
    size_t nunread;
    char changed[NUMBER_BYTES];  /* of what is known; "": nothing is */
    char changing[NUMBER_BYTES]; /* of the first page of what is coming */
    bool is_first_page;
    enum call call;
    bool is_stale; /* read again once nothing is under way */
    bool is_stopped, has_told_zones;
    bool is_second; /* another daemon has added the last jobs */
    struct fire fire;
};

static void go_on(struct schedules *s);

/* ---- the clock of Redis */

static void note_time(struct schedules *s, int64_t now_us)
{
    (void)server_clock_note_time(&s->clock, s->asked, mono_now(), now_us);
}

static int64_t redis_now_ms(const struct schedules *s)
{
    return server_clock_ms(&s->clock, mono_now());
}

/* ---- those that cannot be read */

static void forget_unread(struct schedules *s)
{
    for (size_t i = 0; i < s->nunread; i++) {
        free(s->unread[i].note);
        free(s->unread[i].tz);
    }
    s->nunread = 0;
}

static bool has_zone(const char *tz)
{
    struct zone *zone = zone_new(tz, NULL);

    zone_free(zone);
    return zone != NULL;
}

static void tell_unread(struct schedules *s, const char *note, const char *tz)
{
    (void)store_note(s->store, "bad-schedule", note);
    if (s->nunread == UNREAD_MAX)
        return;
    s->unread[s->nunread++] =
        (struct unread){mem_strdup(note), has_zone(tz) ? NULL : mem_strdup(tz)};
}

/* Health forgets after ten minutes what it is told once. A damaged file of the time zones may have
 * been put right, of which no call tells. */
static void look_after_unread(struct schedules *s)
{
    for (size_t i = 0; i < s->nunread; i++) {
        const struct unread *u = &s->unread[i];

        if (u->tz != NULL && has_zone(u->tz))
            s->is_stale = true;
        else
            (void)store_note(s->store, "bad-schedule", u->note);
    }
}

/* ---- reading all schedules */

static void on_page(void *arg, const struct reply *r);

static void read_page(struct schedules *s, const char *cursor)
{
    const char *argv[] = {"FCALL", "later_v1_schedules", "1", s->root, cursor};

    s->asked = mono_now();
    if (link_call(s->link, 5, argv, NULL, on_page, s) == 0)
        s->call = READING;
    else
        s->is_stale = true;
}

static void read_all(struct schedules *s)
{
    schedule_table_done(&s->coming);
    forget_unread(s);
    s->is_stale = false;
    s->is_first_page = true;
    read_page(s, "0");
}

static void take_row(struct schedules *s, const struct reply *row)
{
    char name[SCHEDULE_NAME_MAX + 1];
    struct err err = ERR_INIT;
    CLEANUP_FREE char *note = NULL;

    if (schedule_table_take(&s->coming, row, name, &err) == 0)
        return;
    note = mem_printf("%s %s", name, err.text);
    tell_unread(s, note, reply_str(reply_named(row, "tz")));
    log_warn("event=bad-schedule schedule=%s reason=\"%s\" effect=\"it adds no jobs\"", name,
             err.text);
}

/* Health says so; the log once. */
static void tell_zones(struct schedules *s, const struct schedule *one)
{
    if (s->has_told_zones || one->rule.timing.every_ms > 0 || strcmp(s->zones, one->zones) >= 0)
        return;
    s->has_told_zones = true;
    (void)store_note(s->store, "zone-differs", s->zones);
    log_warn("event=zone-differs here=%s fleet=%s reason=\"another worker has newer time zones\" "
             "effect=\"it plans, and this one only adds what is planned\" cure=\"update tzdata "
             "and restart\"",
             s->zones, one->zones);
}

static void on_page(void *arg, const struct reply *r)
{
    struct schedules *s = arg;
    const char *cursor = reply_str(reply_at(r, 2));

    s->call = NONE;
    if (reply_kind(r) != REPLY_ARRAY || reply_count(r) < 3) {
        s->is_stale = true; /* tried again with the next beat */
        return;
    }
    note_time(s, reply_int(reply_at(r, 0)));
    if (s->is_first_page)
        text_copy(s->changing, sizeof(s->changing), reply_str(reply_at(r, 1)));
    s->is_first_page = false;
    for (size_t i = 3; i < reply_count(r); i++)
        take_row(s, reply_at(r, i));
    if (strcmp(cursor, "0") != 0) {
        read_page(s, cursor);
        return;
    }
    schedule_table_done(&s->known);
    s->known = s->coming;
    schedule_table_init(&s->coming);
    for (size_t i = 0; i < s->known.n; i++)
        tell_zones(s, s->known.heap[i]);
    memcpy(s->changed, s->changing, sizeof(s->changed));
    go_on(s);
}

/* ---- firing */

static void put(struct fire *f, const char *word)
{
    f->words[f->nwords++] = word;
}

static void put_number(struct fire *f, int64_t n)
{
    char *text = f->numbers[f->nnumbers++];

    (void)snprintf(text, NUMBER_BYTES, "%lld", (long long)n);
    put(f, text);
}

static void put_time(struct fire *f, int64_t ms)
{
    if (ms == TIMING_NEVER)
        put(f, "-");
    else
        put_number(f, ms);
}

/* Whether the time zones of this host are newer than those by which it was planned. */
static bool is_older_plan(const struct schedules *s, const struct schedule *one)
{
    return one->rule.timing.every_ms == 0 && strcmp(s->zones, one->zones) > 0;
}

/* The first occurrence that Redis takes. It takes none up to the last one, which is to come if its
 * clock was set back and the schedule planned anew. */
static int64_t first_open(const struct schedule *one)
{
    return one->last_ms < one->next_ms ? one->next_ms : catch_up_first(&one->rule, one->last_ms);
}

/* What is to be told about a schedule now. False: nothing. */
static bool plan(const struct schedules *s, const struct schedule *one, int64_t now_ms,
                 struct catch_up_plan *ret)
{
    if (!one->is_planned || (one->next_ms > now_ms && is_older_plan(s, one))) {
        *ret = (struct catch_up_plan){.next = catch_up_first(&one->rule, now_ms)};
        return one->is_planned || ret->next != TIMING_NEVER;
    }
    catch_up_decide(&one->rule, first_open(one), now_ms, ret);
    return ret->n > 0 || ret->missed > 0;
}

/* How many days have missed occurrences, and which. */
static void put_missed_days(struct fire *f, struct schedule *one, const struct catch_up_plan *p)
{
    struct zone *zone = one->rule.timing.zone;
    int64_t days[DAYS_MAX], at_ms = first_open(one), end_ms = p->n > 0 ? p->at[0] : p->next;
    size_t n = 0;

    for (; p->missed > 0 && at_ms < end_ms && n < DAYS_MAX; n++) {
        days[n] = zone_day(zone, at_ms / 1000);
        at_ms = catch_up_first(&one->rule, zone_next_day_s(zone, at_ms / 1000) * 1000 - 1);
    }
    put_number(f, (int64_t)n);
    for (size_t i = 0; i < n; i++)
        put_number(f, days[i]);
    f->ntimes += n;
}

static void put_item(struct schedules *s, struct schedule *one, const struct catch_up_plan *p)
{
    struct fire *f = &s->fire;

    f->at[f->n++] = one;
    put(f, one->name);
    put_number(f, one->revision);
    put_time(f, one->is_planned ? one->next_ms : TIMING_NEVER);
    put_time(f, p->next);
    put(f, s->zones);
    put_number(f, p->missed);
    put_missed_days(f, one, p);
    put_number(f, (int64_t)p->n);
    for (size_t i = 0; i < p->n; i++) {
        put_number(f, p->at[i]);
        put_number(f, zone_day(one->rule.timing.zone, p->at[i] / 1000));
    }
    f->ntimes += p->n;
}

static void on_fired(void *arg, const struct reply *r);

/* Put what is due into a call, as much as fits. A schedule that is in it is asked about no more
 * until the answer has come. */
static void collect(struct schedules *s)
{
    int64_t now_ms = redis_now_ms(s);
    struct schedule *one;

    s->fire.n = s->fire.ntimes = 0;
    s->fire.nwords = 6;
    s->fire.nnumbers = 0;
    while (s->fire.n < ITEMS_MAX && (one = schedule_table_first(&s->known)) != NULL &&
           one->ask_ms <= now_ms) {
        struct catch_up_plan p;
        bool has_news = plan(s, one, now_ms, &p);
        int64_t open_ms;

        if (has_news && s->fire.n > 0 &&
            s->fire.ntimes + p.n + (p.missed > 0 ? DAYS_MAX : 0) > ITEMS_MAX)
            return;
        if (has_news)
            put_item(s, one, &p);
        open_ms = first_open(one);
        schedule_table_ask_at(&s->known, one,
                              !has_news && open_ms > now_ms ? open_ms : TIMING_NEVER);
    }
}

static void fire(struct schedules *s)
{
    static const char *const front[] = {"FCALL", "later_v1_fire", "1"};
    char count[NUMBER_BYTES];

    collect(s);
    if (s->fire.n == 0)
        return;
    (void)snprintf(count, sizeof(count), "%zu", s->fire.n);
    memcpy(s->fire.words, front, sizeof(front));
    s->fire.words[3] = s->root;
    s->fire.words[4] = s->epoch;
    s->fire.words[5] = count;
    s->asked = mono_now();
    if (link_call(s->link, s->fire.nwords, s->fire.words, NULL, on_fired, s) == 0)
        s->call = FIRING;
}

/* What Redis has of a schedule after the call. */
static void take_item(struct schedules *s, struct schedule *one, const struct reply *item)
{
    const struct reply *last = reply_at(item, 2), *next = reply_at(item, 3);

    if (reply_is(reply_at(item, 0), "gone") || reply_int(reply_at(item, 1)) != one->revision) {
        s->is_stale = true;
        return;
    }
    one->is_planned = true;
    one->next_ms = reply_is(next, "-") ? TIMING_NEVER : reply_int(next);
    one->last_ms = reply_is(last, "-") ? 0 : reply_int(last);
    text_copy(one->zones, sizeof(one->zones), reply_str(reply_at(item, 4)));
    if (reply_is(reply_at(item, 0), "early"))
        schedule_table_ask_at(&s->known, one, redis_now_ms(s) + EARLY_MS);
    else if (is_older_plan(s, one) && one->next_ms != TIMING_NEVER)
        schedule_table_ask_at(&s->known, one, 0);
    else
        schedule_table_ask_at(&s->known, one, first_open(one));
}

static void on_fired(void *arg, const struct reply *r)
{
    struct schedules *s = arg;

    s->call = NONE;
    if (reply_kind(r) == REPLY_ARRAY)
        note_time(s, reply_int(reply_at(r, 0)));
    s->is_second = reply_is(reply_at(reply_at(r, 1), 0), "moved");
    for (size_t i = 0; i < s->fire.n; i++) {
        struct schedule *one = s->fire.at[i];

        if (reply_kind(r) != REPLY_ARRAY || reply_count(r) <= i + 1) {
            schedule_table_ask_at(&s->known, one, redis_now_ms(s) + FAILED_MS);
            continue;
        }
        take_item(s, one, reply_at(r, i + 1));
        tell_zones(s, one);
    }
    go_on(s);
}

/* ---- what comes next */

static bool is_idle(const struct schedules *s)
{
    return s->call == NONE && !s->is_stopped && s->epoch[0] != '\0';
}

static void set_alarm(struct schedules *s)
{
    const struct schedule *first = schedule_table_first(&s->known);

    if (is_idle(s) && first != NULL && first->ask_ms != TIMING_NEVER)
        loop_alarm_set(s->alarm,
                       server_clock_at(&s->clock, first->ask_ms + (s->is_second ? SECOND_MS : 0)));
}

/* Read or fire, or set the alarm for the next one. */
static void go_on(struct schedules *s)
{
    loop_alarm_set(s->alarm, MONO_NEVER);
    if (!is_idle(s))
        return;
    if (s->is_stale) {
        read_all(s);
        return;
    }
    fire(s);
    set_alarm(s);
}

static void on_alarm(void *arg)
{
    go_on(arg);
}

/* ---- the daemon */

struct schedules *schedules_new(struct loop *loop, struct link *link, struct store_redis *store,
                                const char *ns, int64_t answer_ms)
{
    struct schedules *s = mem_new(sizeof(*s));

    s->link = link;
    s->store = store;
    s->answer_ms = answer_ms;
    (void)snprintf(s->root, sizeof(s->root), "later:{%s}", ns);
    zone_database_version(s->zones);
    if (s->zones[0] == '\0')
        (void)snprintf(s->zones, sizeof(s->zones), "0"); /* the oldest of all */
    s->alarm = loop_alarm_new(loop, on_alarm, s);
    if (s->alarm != NULL)
        return s;
    free(s);
    return NULL;
}

void schedules_free(struct schedules *s)
{
    if (s == NULL)
        return;
    loop_alarm_free(s->alarm);
    schedule_table_done(&s->known);
    schedule_table_done(&s->coming);
    forget_unread(s);
    free(s);
}

void schedules_registered(struct schedules *s, int64_t epoch)
{
    if (s == NULL)
        return;
    (void)snprintf(s->epoch, sizeof(s->epoch), "%lld", (long long)epoch);
    schedules_wake(s);
}

void schedules_wake(struct schedules *s)
{
    if (s == NULL)
        return;
    s->is_stale = true;
    go_on(s);
}

void schedules_note_time(struct schedules *s, int64_t now_us)
{
    int64_t was_us;

    if (s == NULL || now_us <= 0)
        return;
    was_us = s->clock.behind_us;
    (void)server_clock_note_time(&s->clock, mono_add_ms(mono_now(), -s->answer_ms), mono_now(),
                                 now_us);
    if (was_us - s->clock.behind_us > CLOSER_US)
        set_alarm(s);
}

void schedules_beat(struct schedules *s, const char *changed)
{
    if (s == NULL)
        return;
    s->is_stale = s->is_stale || strcmp(s->changed, changed) != 0;
    look_after_unread(s);
    go_on(s);
}

void schedules_link_down(struct schedules *s)
{
    if (s == NULL)
        return;
    s->call = NONE;
    s->is_stale = true;
    loop_alarm_set(s->alarm, MONO_NEVER);
}

void schedules_stop(struct schedules *s)
{
    if (s == NULL)
        return;
    s->is_stopped = true;
    loop_alarm_set(s->alarm, MONO_NEVER);
}
