#include "daemon/file_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/shard.h"

#define PIECE 50        /* in a call */
#define PIECE_WORDS 600 /* or as many of them as have so many words: a call is short */

/* The words of one schedule, as later_schedule_set takes them, or a queue and its topics. */
struct words {
    char **at; /* NULL-ended */
    size_t n;
    char *refusal; /* that was logged last, or NULL */
};

/* How far the telling is. A piece that is under way when the file is read again is OUTDATED: its
 * answer counts for nothing. */
enum telling { DONE, WANTED, UNDER_WAY, OUTDATED };

struct file_settings {
    struct link *link;
    const struct file_kind *kind;
    char root[80];
    char epoch[24]; /* "": not registered */
    struct words *all;
    size_t n;
    bool is_said; /* else the file says nothing, and nothing is told */
    enum telling state;
    size_t told;          /* how many were sent */
    size_t piece;         /* the first one of the piece under way */
    bool has_refused;     /* one of those that were told since the first piece */
    struct mono read_at;  /* when the file was read */
    int64_t read_ms;      /* the same by Redis' clock, as it was told first; 0: not yet */
    struct mono received; /* when Redis told now_us; 0: never */
    int64_t now_us;
    char refusal[160]; /* of the whole call, as it was logged last */
};

static void forget(struct file_settings *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->all[i].refusal);
        mem_free_list(s->all[i].at);
    }
    free(s->all);
    s->all = NULL;
    s->n = 0;
}

struct file_settings *file_settings_new(struct link *link, const char *ns,
                                        const struct file_kind *kind)
{
    struct file_settings *s = mem_new(sizeof(*s));

    s->link = link;
    s->kind = kind;
    (void)snprintf(s->root, sizeof(s->root), "later:{%s}", ns);
    return s;
}

void file_settings_free(struct file_settings *s)
{
    if (s == NULL)
        return;
    forget(s);
    free(s);
}

/* ---- telling */

/* When the file was read, by Redis' clock, in ms. It stays, whatever the clocks do: the same
 * reading is told with the same time. */
static int64_t read_ms(struct file_settings *s)
{
    if (s->read_ms == 0)
        s->read_ms = (s->now_us + mono_until_us(s->received, s->read_at)) / 1000;
    return s->read_ms;
}

static void on_declared(void *arg, const struct reply *r);

/* How many are in the piece that begins with this one. */
static size_t piece_size(const struct file_settings *s, size_t from)
{
    size_t n = 0, words = 0;

    while (from + n < s->n && n < PIECE && (n == 0 || words + s->all[from + n].n <= PIECE_WORDS))
        words += s->all[from + n++].n;
    return n;
}

/* Send the next piece. The last one, which may be empty, lets Redis remove what the file has not.
 */
static void tell(struct file_settings *s)
{
    size_t from = s->told, n = piece_size(s, from), nwords = 8, at = 0;
    CLEANUP_FREE const char **words = NULL;
    CLEANUP_FREE char(*counts)[24] = mem_new((n + 1) * sizeof(*counts));
    char when[24], pieces[24];

    if (s->state != WANTED || s->epoch[0] == '\0' || s->received.us == 0)
        return;
    for (size_t i = 0; i < n; i++)
        nwords += s->all[from + i].n + 1;
    words = mem_new(nwords * sizeof(*words));
    (void)snprintf(when, sizeof(when), "%lld", (long long)read_ms(s));
    (void)snprintf(pieces, sizeof(pieces), "%zu", n);
    words[at++] = "FCALL";
    words[at++] = s->kind->function;
    words[at++] = "1";
    words[at++] = s->root;
    words[at++] = s->epoch;
    words[at++] = when;
    words[at++] = from + n == s->n ? "last" : "more";
    words[at++] = pieces;
    for (size_t i = 0; i < n; i++) {
        const struct words *one = &s->all[from + i];

        (void)snprintf(counts[i], sizeof(counts[i]), "%zu", one->n);
        words[at++] = counts[i];
        memcpy(words + at, one->at, one->n * sizeof(*words));
        at += one->n;
    }
    s->piece = from;
    s->told = 0;
    if (link_call(s->link, (int)at, words, NULL, on_declared, s) < 0)
        return; /* told again once the link is up */
    s->state = UNDER_WAY;
    s->told = from + n;
}

/* What became of one of them. */
static void take_row(struct file_settings *s, struct words *one, const char *status)
{
    const char *name = one->at[0];
    bool is_refused = strncmp(status, "ELATER_", 7) == 0;

    if (strcmp(status, "added") == 0 || strcmp(status, "changed") == 0)
        log_notice("event=declared kind=%s name=%s status=%s", s->kind->what, name, status);
    else if (strcmp(status, "older") == 0)
        log_info(
            "event=declared kind=%s name=%s status=older reason=\"a file that was read later says "
            "what holds\"",
            s->kind->what, name);
    else if (is_refused && (one->refusal == NULL || strcmp(one->refusal, status) != 0))
        log_warn("event=declare-refused kind=%s name=%s reason=\"%s\"", s->kind->what, name,
                 status);
    free(one->refusal);
    one->refusal = is_refused ? mem_strdup(status) : NULL;
    s->has_refused = s->has_refused || is_refused;
}

static void on_declared(void *arg, const struct reply *r)
{
    struct file_settings *s = arg;
    bool has_more = false, is_outdated = s->state == OUTDATED;

    s->state = WANTED;
    if (is_outdated) {
        tell(s);
        return;
    }
    if (reply_kind(r) != REPLY_ARRAY) {
        s->told = 0; /* told again with the next beat */
        if (strncmp(s->refusal, reply_str(r), sizeof(s->refusal) - 1) != 0)
            log_warn("event=declares-refused function=%s reason=\"%s\" effect=\"what the "
                     "configuration says is not in force yet\"",
                     s->kind->function, reply_str(r));
        (void)snprintf(s->refusal, sizeof(s->refusal), "%s", reply_str(r));
        return;
    }
    for (size_t i = 0; i < reply_count(r); i++) {
        const struct reply *row = reply_at(r, i);

        if (reply_len(reply_at(row, 0)) == 0)
            has_more = true;
        else if (s->piece + i < s->told)
            take_row(s, &s->all[s->piece + i], reply_str(reply_at(row, 1)));
    }
    if (s->told < s->n || has_more) {
        tell(s);
        return;
    }
    /* What was refused may be taken later, when its limit is there: told again with the next
     * beat. */
    s->state = s->has_refused ? WANTED : DONE;
    s->has_refused = false;
    s->told = 0;
    s->refusal[0] = '\0';
}

/* ---- the daemon */

/* Tell all from the first one on. */
static void begin(struct file_settings *s)
{
    s->state = s->state == UNDER_WAY || s->state == OUTDATED ? OUTDATED : WANTED;
    s->told = 0;
    s->has_refused = false;
    tell(s);
}

/* ---- what files say */

static struct words *add_words(struct file_settings *s)
{
    s->all = mem_grow(s->all, s->n + 1, sizeof(*s->all));
    s->all[s->n] = (struct words){NULL, 0, NULL};
    return &s->all[s->n++];
}

/* A schedule is in the shard of its name: else each shard would add its jobs. */
static bool take_schedules(struct file_settings *s, const struct conf *conf)
{
    for (size_t i = 0; i < conf->nschedules; i++) {
        const char *name = conf->schedules[i].name;
        struct words *one;

        if (conf->shards > 0 && shard_of(name, strlen(name), (int)conf->shards) != conf->shard)
            continue;
        one = add_words(s);
        one->at = conf_schedule_words(&conf->schedules[i], &one->n);
    }
    return conf->has_schedules;
}

/* A queue whose topics are not written says nothing; `topics: []` says that it has none. */
static bool take_topics(struct file_settings *s, const struct conf *conf)
{
    for (size_t i = 0; i < conf->nqueues; i++) {
        struct words *one;

        if (!conf_queue_says_topics(&conf->queues[i]))
            continue;
        one = add_words(s);
        mem_list_add(&one->at, &one->n, mem_strdup(conf->queues[i].name));
        for (size_t k = 0; k < conf->queues[i].topics.n; k++)
            mem_list_add(&one->at, &one->n, mem_strdup(conf->queues[i].topics.at[k]));
    }
    return s->n > 0;
}

const struct file_kind file_schedules = {"later_v1_declare_schedules", "schedule", take_schedules};
const struct file_kind file_topics = {"later_v1_declare_topics", "topics", take_topics};

void file_settings_set(struct file_settings *s, const struct conf *conf)
{
    bool was_said;

    if (s == NULL)
        return;
    was_said = s->is_said;
    s->read_at = mono_now();
    s->read_ms = 0;
    forget(s);
    s->is_said = s->kind->take(s, conf);
    if (s->is_said || was_said)
        begin(s);
}

void file_settings_registered(struct file_settings *s, int64_t epoch)
{
    if (s == NULL)
        return;
    (void)snprintf(s->epoch, sizeof(s->epoch), "%lld", (long long)epoch);
    if (s->is_said || s->state != DONE)
        begin(s);
}

void file_settings_note_time(struct file_settings *s, int64_t now_us)
{
    if (s == NULL || now_us <= 0)
        return;
    s->now_us = now_us;
    s->received = mono_now();
}

void file_settings_beat(struct file_settings *s)
{
    if (s != NULL)
        tell(s);
}

void file_settings_link_down(struct file_settings *s)
{
    if (s == NULL)
        return;
    if (s->state != DONE)
        s->state = WANTED;
    s->told = 0;
}
