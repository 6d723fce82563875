/*
 * Schedules in random calls: what producers set, what files declare, and what workers fire.
 */
#include "maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const NAMES[] = {"mail", "nightly", "nightly", "s:2", "Q-7_x"};

/* ---- names */

/* Mostly one that is there. */
static const char *any_schedule(struct maker *k)
{
    for (int i = 0; i < 8; i++) {
        const struct model_schedule *s = &k->m->schedule[below(k, MODEL_SCHEDULES)];

        if (s->is_there && percent(k, 97))
            return s->name;
    }
    return PICK(k, NAMES);
}

/* Add a name that may be none. Returns NULL then. */
static const char *name_arg(struct maker *k, const char *name)
{
    static const char *const bad[] = {"", "-n", "a b", "{n}", "n\n"};
    bool is_bad = percent(k, 2);

    arg(k, is_bad ? PICK(k, bad) : name);
    return is_bad ? NULL : name;
}

static size_t count_there(const struct model *m)
{
    size_t n = 0;

    for (int i = 0; i < MODEL_SCHEDULES; i++)
        n += m->schedule[i].is_there;
    return n;
}

/* ---- a definition */

static void refuse(struct model_schedule_options *o, const char *code)
{
    if (o->refusal == NULL)
        o->refusal = code;
}

/* Add an option of the jobs, and what Redis keeps of it. */
static void job_option(struct maker *k, struct model_schedule *s, const char *what,
                       const char *value)
{
    size_t n = strlen(s->options);

    name(k, what);
    arg(k, value);
    (void)snprintf(s->options + n, sizeof(s->options) - n, "%s%s %s", n > 0 ? " " : "", what,
                   value);
}

static int64_t job_ms(struct maker *k, struct model_schedule *s, const char *what, int64_t most)
{
    int64_t n = 1 + any(k, most);
    char text[32];

    (void)snprintf(text, sizeof(text), "%lldms", (long long)n);
    job_option(k, s, what, text);
    return n;
}

static void gate_of_jobs(struct maker *k, struct model_schedule *s)
{
    static const char *const names[] = {"lock", "sem", "rate"};
    static const char *const gates[][3] = {
        {"l1", "l2", "user:{key}"}, {"s1", "s2", "t:{key}"}, {"r1", "r2", "q:{key}"}};

    for (int i = 0; i < MODEL_KINDS; i++)
        if (percent(k, k->m->is_gated ? 30 : 6))
            job_option(k, s, names[i], s->o.gate[i] = PICK(k, gates[i]));
}

static void chain_of_jobs(struct maker *k, struct model_schedule *s)
{
    struct model_chain *chain = &s->o.chain;

    while (chain->thens < 3 && percent(k, 15)) {
        chain->then[chain->thens] = below(k, MODEL_QUEUES);
        job_option(k, s, "then", k->m->queue[chain->then[chain->thens]].name);
        chain->thens++;
    }
    if (!percent(k, 15))
        return;
    chain->on_dead = below(k, MODEL_QUEUES);
    job_option(k, s, "on_dead", k->m->queue[chain->on_dead].name);
}

static void options_of_jobs(struct maker *k, struct model_schedule *s)
{
    char text[16];

    if (percent(k, 20)) {
        s->o.priority = below(k, 10);
        (void)snprintf(text, sizeof(text), "%d", s->o.priority);
        job_option(k, s, "priority", text);
    }
    if (percent(k, 30))
        job_option(k, s, "key", s->o.key = percent(k, 70) ? "a" : "b");
    if (percent(k, 10)) {
        s->o.a = 1 + below(k, 9);
        (void)snprintf(text, sizeof(text), "%lld", (long long)s->o.a);
        job_option(k, s, "attempts", text);
    }
    if (percent(k, 8))
        s->o.t = job_ms(k, s, "timeout", 100000);
    if (percent(k, 8))
        s->o.x = job_ms(k, s, "expire", 100000);
    if (percent(k, 25))
        s->o.k = job_ms(k, s, "keep", 1000000);
    gate_of_jobs(k, s);
    chain_of_jobs(k, s);
}

static void when_args(struct maker *k, struct model_schedule_options *o)
{
    static const char *const crons[] = {"30 2 * * *", "*/5 * * * * *", "@daily", "0 0 1 1 mon#2"};
    static const char *const everies[] = {"90s", "1000ms", "1H", "2d"};
    bool is_cron = percent(k, 50), is_bad = percent(k, 1);
    const char *text = is_bad    ? is_cron ? "61 * *" : "999ms"
                       : is_cron ? PICK(k, crons)
                                 : PICK(k, everies);

    name(k, is_cron ? "cron" : "every");
    arg(k, text);
    if (is_bad)
        refuse(o, is_cron ? "ELATER_SCHEDULE" : "ELATER_TIME");
    (void)snprintf(o->s.when, sizeof(o->s.when), "%s %s", is_cron ? "cron" : "every", text);
}

static int64_t instant_arg(struct maker *k, const char *what)
{
    int64_t ms = MODEL_MS(k->m) + any(k, 100000000) - 1000000;
    char text[32];

    name(k, what);
    if (percent(k, 70) || ms < MODEL_MS(k->m)) {
        number(k, ms);
        return ms;
    }
    (void)snprintf(text, sizeof(text), "+%lldms", (long long)(ms - MODEL_MS(k->m)));
    arg(k, text);
    return ms;
}

/* from or until; a file has to name a fixed time. */
static int64_t bound_arg(struct maker *k, struct model_schedule_options *o, const char *what)
{
    int64_t ms = instant_arg(k, what);

    if (o->is_file && buf_str(&k->args->arg[k->args->n - 1])[0] == '+')
        refuse(o, "ELATER_TIME");
    return ms;
}

static void timing_args(struct maker *k, struct model_schedule_options *o)
{
    struct model_schedule *s = &o->s;
    static const char *const zones[] = {"Europe/Berlin", "UTC", "America/New_York"};

    if (percent(k, 30)) {
        name(k, "tz");
        arg(k, s->tz = PICK(k, zones));
    }
    if (percent(k, 10))
        s->from_ms = bound_arg(k, o, "from");
    if (percent(k, 10))
        s->until_ms = bound_arg(k, o, "until");
    if (percent(k, 20)) {
        name(k, "splay");
        s->splay_ms = duration_arg(k, 100000);
    }
    if (percent(k, 20)) {
        name(k, "catch_up_window");
        s->window_ms = 1 + any(k, 100000);
        number(k, s->window_ms);
        buf_puts(&k->args->arg[k->args->n - 1], "ms");
    }
}

static void choices(struct maker *k, struct model_schedule_options *o)
{
    static const char *const overlaps[] = {"allow", "skip", "skip", "queue", "replace"};
    static const char *const catch_ups[] = {"none", "last", "all"};

    if (percent(k, 75)) {
        name(k, "overlap");
        arg(k, o->s.overlap = PICK(k, overlaps));
    }
    if (percent(k, 30)) {
        name(k, "catch_up");
        arg(k, o->s.catch_up = PICK(k, catch_ups));
    }
    if (percent(k, 1)) {
        name(k, "overlap");
        arg(k, "sometimes");
        refuse(o, "ELATER_OPTION");
    }
}

static int queue_called(const struct model *m, const char *name)
{
    for (int q = 0; q < MODEL_QUEUES; q++)
        if (strcmp(m->queue[q].name, name) == 0)
            return q;
    return -1;
}

/* A queue must be known to the model. */
static void choose_queue(struct maker *k, struct model_schedule *s, const char *what)
{
    s->queue = queue_called(k->m, what);
    if (s->queue >= 0 ? percent(k, 50) : strcmp(what, "s:2") == 0 && percent(k, 5))
        return;
    name(k, "queue");
    s->queue = queue_arg(k);
}

/* Behind the name. */
static void definition_args(struct maker *k, const char *what, bool is_file,
                            struct model_schedule_options *o)
{
    struct model_schedule *s = &o->s;

    *o = (struct model_schedule_options){.is_file = is_file,
                                         .s = {.tz = "UTC",
                                               .overlap = "allow",
                                               .catch_up = "last",
                                               .window_ms = 86400000,
                                               .splay_ms = MODEL_NONE,
                                               .from_ms = MODEL_NONE,
                                               .until_ms = MODEL_NONE}};
    s->o = no_options(k->m);
    s->name = what;
    when_args(k, o);
    choose_queue(k, s, what);
    choices(k, o);
    timing_args(k, o);
    options_of_jobs(k, s);
    s->payload = payload(k);
    args_bytes(k->args, s->payload.p, s->payload.n);
}

/* Add a word, and behind it others with spaces between them. */
static void words_args(struct maker *k, const char *text)
{
    char copy[192], *rest, *word;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        arg(k, word);
}

static void number_option(struct maker *k, const char *what, int64_t n, const char *unit)
{
    if (n == MODEL_NONE)
        return;
    name(k, what);
    number(k, n);
    buf_puts(&k->args->arg[k->args->n - 1], unit);
}

/* What is set already; or with another payload, which leaves its timing. */
static void repeat_args(struct maker *k, const struct model_schedule *was,
                        struct model_schedule_options *o)
{
    const char *space = strchr(was->when, ' ');
    char kind[16];

    *o = (struct model_schedule_options){.s = *was};
    (void)snprintf(kind, sizeof(kind), "%.*s", (int)(space - was->when), was->when);
    name(k, kind);
    arg(k, space + 1);
    words_args(k, was->options);
    number_option(k, "splay", was->splay_ms, "ms");
    number_option(k, "catch_up_window", was->window_ms, "ms");
    number_option(k, "from", was->from_ms, "");
    number_option(k, "until", was->until_ms, "");
    name(k, "tz");
    arg(k, was->tz);
    name(k, "overlap");
    arg(k, was->overlap);
    name(k, "catch_up");
    arg(k, was->catch_up);
    name(k, "queue");
    arg(k, k->m->queue[was->queue].name);
    o->s.payload = percent(k, 60) ? was->payload : payload(k);
    args_bytes(k->args, o->s.payload.p, o->s.payload.n);
}

static void one_definition(struct maker *k, const char *what, bool is_file,
                           struct model_schedule_options *o)
{
    const struct model_schedule *was = schedule_of(k->m, what);

    arg(k, what);
    if (was->is_there && percent(k, 40))
        repeat_args(k, was, o);
    else
        definition_args(k, what, is_file, o);
}

void make_schedule_set(struct maker *k)
{
    const char *what = percent(k, 50) ? PICK(k, NAMES) : any_schedule(k);
    struct model_schedule_options o;
    int slot;

    begin(k, "later_schedule_set");
    slot = k->args->n;
    one_definition(k, what, false, &o);
    if (percent(k, 2)) {
        o.s.name = NULL;
        buf_puts(&k->args->arg[slot], "{}");
    }
    model_schedule_set(k->m, &o, k->want);
}

/* What a file declares. Most files are read about now. */
void make_declare(struct maker *k)
{
    static struct model_schedule_options all[3];
    int64_t epoch = pick_epoch(k, !percent(k, 3)), read_ms;
    size_t n = (size_t)below(k, 4);
    bool is_last = percent(k, 40);

    read_ms = MODEL_MS(k->m) + (percent(k, 20) ? 5000 : -any(k, 10000));
    begin(k, "later_v1_declare_schedules");
    number(k, epoch);
    number(k, read_ms);
    arg(k, is_last ? "last" : "more");
    number(k, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        int slot = k->args->n;
        char text[24];

        arg(k, "");
        one_definition(k, percent(k, 50) ? PICK(k, NAMES) : any_schedule(k), true, &all[i]);
        (void)snprintf(text, sizeof(text), "%d", k->args->n - slot - 1);
        buf_puts(&k->args->arg[slot], text);
    }
    model_declare(k->m, epoch, read_ms, is_last, n, all, k->want);
}

/* ---- what is done to one */

void make_schedule_del(struct maker *k)
{
    const char *what;

    begin(k, "later_schedule_del");
    what = name_arg(k, any_schedule(k));
    model_schedule_del(k->m, what, k->want);
}

void make_schedule_pause(struct maker *k)
{
    int64_t for_ms = MODEL_NONE;
    const char *what;

    begin(k, "later_schedule_pause");
    what = name_arg(k, any_schedule(k));
    name(k, "by");
    arg(k, "ann");
    name(k, "reason");
    arg(k, "why not");
    if (percent(k, 70)) {
        name(k, "for");
        for_ms = duration_arg(k, 100000);
    }
    model_schedule_pause(k->m, what, "ann", "why not", for_ms, k->want);
}

void make_schedule_resume(struct maker *k)
{
    const char *what;

    begin(k, "later_schedule_resume");
    what = name_arg(k, any_schedule(k));
    model_schedule_resume(k->m, what, k->want);
}

void make_schedule_run(struct maker *k)
{
    int64_t at = MODEL_NONE, occurrence = MODEL_NONE;
    bool is_forced = percent(k, 30);
    const char *what;

    begin(k, "later_schedule_run");
    what = name_arg(k, any_schedule(k));
    if (percent(k, 30)) {
        name(k, "at");
        at = time_arg(k);
    }
    if (is_forced)
        name(k, "force");
    if (percent(k, 30))
        occurrence = instant_arg(k, "for");
    model_schedule_run(k->m, what, at, occurrence, is_forced, k->want);
}

/* ---- shown */

void make_schedule_show(struct maker *k)
{
    const char *what;
    time_t now = (time_t)(k->m->now_us / 1000000);
    struct tm tm;

    if (gmtime_r(&now, &tm) == NULL)
        abort();
    begin(k, percent(k, 50) ? "later_schedules" : "later_schedule_calendar");
    what = name_arg(k, any_schedule(k));
    if (strcmp(buf_str(&k->args->arg[1]), "later_schedules") == 0) {
        model_schedule_show(k->m, what, k->want);
        return;
    }
    number(k, tm.tm_year + 1900);
    model_schedule_calendar(k->m, what, tm.tm_year + 1900, k->want);
}

void make_schedules(struct maker *k)
{
    bool is_page = percent(k, 50), of_cursors = percent(k, 50);

    if (count_there(k->m) > 1 || percent(k, 40)) {
        begin(k, percent(k, 50) ? "later_v1_audit" : "later_v1_repair");
        arg(k, of_cursors ? "cursors" : "schedules");
        arg(k, "");
        number(k, 200);
        model_schedule_audit(k->m, of_cursors, k->want);
        return;
    }
    begin(k, is_page ? "later_v1_schedules" : "later_schedules");
    if (is_page)
        number(k, 0);
    model_schedules(k->m, is_page, k->want);
}

/* ---- fire */

/* The day of this time in UTC, as calendars have it; now and then none. */
static int64_t day_of(struct maker *k, int64_t ms)
{
    time_t t = (time_t)(ms / 1000);
    struct tm tm;

    if (percent(k, 10) || gmtime_r(&t, &tm) == NULL)
        return 0;
    return (int64_t)(tm.tm_year + 1900) * 1000 + tm.tm_yday + 1;
}

/* Times that rise; mostly from the next occurrence on, and none that is to come. */
static void choose_times(struct maker *k, const struct model_schedule *s, struct model_fire *f)
{
    int64_t now = MODEL_MS(k->m);
    int64_t at = f->next != MODEL_NONE && f->next <= now && percent(k, 85) ? f->next
                 : s->last != MODEL_NONE && s->last < now && percent(k, 80)
                     ? s->last + 1 + any(k, now - s->last)
                     : now - any(k, 100000);
    size_t most = percent(k, 25) ? 0 : percent(k, 70) ? 1 : MODEL_OCCURRENCES;

    f->times = 0;
    while (f->times < most && (at <= now || percent(k, 2))) {
        f->at[f->times] = at;
        f->day[f->times++] = day_of(k, at);
        at += 1 + any(k, 60000);
    }
}

static void choose_fire(struct maker *k, struct model_fire *f)
{
    static const char *const zones[] = {"2026a", "2026a", "2026a", "2025b", "2026b"};
    const struct model_schedule *s = schedule_of(k->m, any_schedule(k));
    bool is_planned = s->planned == s->revision;

    *f = (struct model_fire){.name = s->name, .revision = s->revision, .zones = PICK(k, zones)};
    f->next = is_planned ? s->next : MODEL_NONE;
    if (percent(k, 4))
        f->revision++;
    if (percent(k, 4))
        f->next = f->next == MODEL_NONE ? MODEL_MS(k->m) : MODEL_NONE;
    choose_times(k, s, f);
    f->new_next = percent(k, 5) ? MODEL_NONE : MODEL_MS(k->m) + 1 + any(k, 100000);
    if (!percent(k, 15))
        return;
    f->missed = 1 + any(k, 2000);
    f->missed_days = (size_t)below(k, 3);
    for (size_t i = 0; i < f->missed_days; i++)
        f->missed_day[i] = day_of(k, MODEL_MS(k->m) - any(k, 86400000));
}

static void number_or_dash(struct maker *k, int64_t n)
{
    if (n == MODEL_NONE)
        arg(k, "-");
    else
        number(k, n);
}

static void fire_args(struct maker *k, const struct model_fire *f)
{
    arg(k, f->name);
    number(k, f->revision);
    number_or_dash(k, f->next);
    number_or_dash(k, f->new_next);
    arg(k, f->zones);
    number(k, f->missed);
    number(k, (int64_t)f->missed_days);
    for (size_t i = 0; i < f->missed_days; i++)
        number(k, f->missed_day[i]);
    number(k, (int64_t)f->times);
    for (size_t i = 0; i < f->times; i++) {
        number(k, f->at[i]);
        number(k, f->day[i]);
    }
}

void make_fire(struct maker *k)
{
    static struct model_fire item[3];
    int64_t epoch = pick_epoch(k, !percent(k, 3));
    size_t n = 1 + (size_t)below(k, 3);

    begin(k, "later_v1_fire");
    number(k, epoch);
    number(k, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        choose_fire(k, &item[i]);
        fire_args(k, &item[i]);
    }
    model_fire(k->m, epoch, n, item, k->want);
}
