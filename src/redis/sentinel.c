#include "redis/sentinel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "redis/announce.h"

#define ANSWER_MS 500 /* for the connect and for each answer of one sentinel */

/* Never freed: threads that connect may ask until the process ends. */
static char *login_user, *login_file;

/* "HOST:PORT" of the sentinel that answered last. */
static pthread_mutex_t front_lock = PTHREAD_MUTEX_INITIALIZER;
static char front[ANNOUNCE_PLACE_MAX];

void sentinel_use(const char *user, const char *password_file)
{
    free(login_user);
    free(login_file);
    login_user = user[0] != '\0' ? mem_strdup(user) : NULL;
    login_file = password_file[0] != '\0' ? mem_strdup(password_file) : NULL;
}

/* ---- one sentinel */

/* What it says into ret. 1: an address, 0: it does not know the name, -1 with err. */
static int read_address(const struct reply *r, struct url *ret, struct err *err)
{
    const struct reply *host = reply_at(r, 0), *port = reply_at(r, 1);
    int64_t n;

    if (reply_kind(r) == REPLY_NIL)
        return 0;
    if (reply_count(r) != 2 || reply_len(host) == 0 || reply_len(host) >= sizeof(ret->host) ||
        strlen(reply_str(host)) != reply_len(host) ||
        text_parse_int(reply_str(port), 1, 65535, &n) < 0)
        return err_set(err, ERR_UNAVAILABLE, "what it answers is no address");
    text_copy(ret->host, sizeof(ret->host), reply_str(host));
    ret->port = (int)n;
    return 1;
}

/* The cures of a server's errors name settings for Redis; a sentinel has its own. */
static void name_cure(struct err *err)
{
    static const struct {
        const char *holds, *say;
        enum err_code code; /* NONE: as it was */
    } rows[] = {
        {"unknown command", "it is no sentinel (a Redis server? sentinels listen on port 26379)",
         ERR_CONFIG},
        {"NOAUTH", "NOAUTH, it wants a password: sentinel_password_file", ERR_NONE},
        {"WRONGPASS", "WRONGPASS: look into sentinel_password_file and sentinel_user", ERR_NONE},
        {"without any password configured", "it has no password: give no sentinel_password_file",
         ERR_NONE},
        {"write rediss://", "it hangs up before any answer; if it speaks TLS, write sentinels://",
         ERR_NONE},
        {"write redis://", "no TLS handshake in time; if it speaks none, write sentinel://",
         ERR_NONE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strstr(err->text, rows[i].holds) == NULL)
            continue;
        (void)err_set(err, rows[i].code != ERR_NONE ? rows[i].code : err->code, "%s", rows[i].say);
        return;
    }
}

static int ask(const struct url *sentinel, struct url *ret, struct err *err)
{
    const char *call[] = {"SENTINEL", "get-master-addr-by-name", ret->master};
    struct client *c = client_connect(sentinel, ANSWER_MS, err);
    struct reply *r = c != NULL ? client_call(c, 3, call, NULL, err) : NULL;
    int known = r != NULL ? read_address(r, ret, err) : -1;

    if (r == NULL)
        name_cure(err);
    reply_free(r);
    client_close(c);
    return known;
}

/* ---- all of them */

struct asking {
    struct url sentinel; /* the one that is asked, with what is the same for all */
    struct buf reasons;
    char last[200]; /* reason */
    size_t asked, ignorant;
    enum err_code code; /* of the last one that did not answer */
};

static int begin(struct asking *a, const struct url *url, struct err *err)
{
    a->sentinel.is_tls = url->is_tls;
    a->sentinel.tls = url->tls;
    if (login_user != NULL)
        text_copy(a->sentinel.user, sizeof(a->sentinel.user), login_user);
    if (login_file != NULL && url_read_password(login_file, &a->sentinel, err) < 0)
        return err_wrap(err, "sentinel_password_file");
    return 0;
}

/* The reason of one. The first has place for its cure, the others are short. */
static void add_reason(struct asking *a, const char *place, const char *text)
{
    char own[320];
    size_t n = strlen(url_show(&a->sentinel, own));

    if (strncmp(text, own, n) == 0 && strncmp(text + n, ": ", 2) == 0)
        text += n + 2;
    if (strncmp(text, a->last, sizeof(a->last) - 1) == 0)
        text = "the same";
    else
        text_copy(a->last, sizeof(a->last), text);
    if (a->reasons.len == 0)
        buf_printf(&a->reasons, "%s: %.140s", place, text);
    else
        buf_printf(&a->reasons, "; %s: %.60s", place, text);
}

static bool is_front(const char *place)
{
    bool is;

    (void)pthread_mutex_lock(&front_lock);
    is = strcmp(front, place) == 0;
    (void)pthread_mutex_unlock(&front_lock);
    return is;
}

static void set_front(const char *place)
{
    (void)pthread_mutex_lock(&front_lock);
    text_copy(front, sizeof(front), place);
    (void)pthread_mutex_unlock(&front_lock);
}

/* Ask those that are (or are not) at the front. True: one has told. */
static bool ask_some(struct asking *a, struct url *url, bool at_front)
{
    const char *at = url->sentinels;
    char place[ANNOUNCE_PLACE_MAX];

    while (*at != '\0') {
        struct err why = ERR_INIT;
        int known;

        if (url_next_host(&at, URL_SENTINEL_PORT, &a->sentinel, &why) < 0)
            return false;
        (void)announce_place(&a->sentinel, place);
        if (is_front(place) != at_front)
            continue;
        a->asked++;
        known = ask(&a->sentinel, url, &why);
        if (known > 0) {
            set_front(place);
            return true;
        }
        a->ignorant += known == 0;
        if (known < 0)
            a->code = why.code;
        add_reason(a, place, known == 0 ? "does not know it" : why.text);
    }
    return false;
}

static int refuse(const struct asking *a, const char *master, struct err *err)
{
    bool is_final = a->code == ERR_CONFIG || a->code == ERR_DENIED;

    if (a->ignorant == a->asked)
        return err_set(err, ERR_CONFIG,
                       "no sentinel knows a master '%s' (redis-cli -p 26379 SENTINEL masters lists "
                       "the names): asked %s",
                       master, buf_str((struct buf *)&a->reasons));
    if (a->ignorant > 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "no sentinel that answers knows a master '%s', and not all answer: %s",
                       master, buf_str((struct buf *)&a->reasons));
    return err_set(err, is_final ? a->code : ERR_UNAVAILABLE, "no sentinel answers for '%s': %s",
                   master, buf_str((struct buf *)&a->reasons));
}

int sentinel_resolve(struct url *url, struct err *err)
{
    struct asking a = {.code = ERR_UNAVAILABLE};
    int result = begin(&a, url, err);

    if (result == 0 && !ask_some(&a, url, true) && !ask_some(&a, url, false))
        result = refuse(&a, url->master, err);
    if (result == 0) {
        announce_translate(url);
        text_copy(url->name, sizeof(url->name), url->host);
        url->sentinels[0] = '\0';
    }
    buf_done(&a.reasons);
    explicit_bzero(&a.sentinel, sizeof(a.sentinel));
    return result;
}

/* The one behind this place in the list; behind the last one, the first. */
static void set_front_behind(const char *list, const char *place)
{
    struct url one;
    struct err ignored = ERR_INIT;
    char first[ANNOUNCE_PLACE_MAX] = "", here[ANNOUNCE_PLACE_MAX];
    bool is_next = false;

    for (const char *at = list; *at != '\0';) {
        if (url_next_host(&at, URL_SENTINEL_PORT, &one, &ignored) < 0)
            return;
        (void)announce_place(&one, here);
        if (first[0] == '\0')
            text_copy(first, sizeof(first), here);
        if (is_next) {
            set_front(here);
            return;
        }
        is_next = strcmp(here, place) == 0;
    }
    set_front(first);
}

void sentinel_doubt(const struct url *url)
{
    char place[ANNOUNCE_PLACE_MAX];

    (void)pthread_mutex_lock(&front_lock);
    text_copy(place, sizeof(place), front);
    (void)pthread_mutex_unlock(&front_lock);
    set_front_behind(url->sentinels, place);
}

/* ---- is it still there? */

/* 1: another server than the one that url names, 0: that one, -1: no answer. */
static int names_another(const struct url *sentinel, const struct url *url)
{
    struct url said = {.port = 0};
    struct err ignored = ERR_INIT;

    text_copy(said.master, sizeof(said.master), url->master);
    if (ask(sentinel, &said, &ignored) <= 0)
        return -1;
    announce_translate(&said);
    return said.port != url->port ||
           (strcmp(said.host, url->name) != 0 && strcmp(said.host, url->host) != 0);
}

bool sentinel_has_moved(const struct url *url)
{
    static atomic_uint turn;
    struct asking a = {.code = ERR_UNAVAILABLE};
    struct err ignored = ERR_INIT;
    size_t n = url_list_count(url->sentinels), first = atomic_fetch_add(&turn, 1) % n;
    size_t answers = 0, others = 0;
    char place[2][ANNOUNCE_PLACE_MAX] = {"", ""};
    bool has_moved;

    if (begin(&a, url, &ignored) < 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        int is_other;

        if (url_list_host(url->sentinels, (first + i) % n, URL_SENTINEL_PORT, &a.sentinel,
                          &ignored) < 0)
            break;
        is_other = names_another(&a.sentinel, url);
        if (is_other < 0)
            continue;
        answers++;
        others += (size_t)is_other;
        /* Mostly the first that is asked says that all is as it was. */
        if (others == 0)
            break;
        (void)announce_place(&a.sentinel, place[is_other]);
    }
    explicit_bzero(&a.sentinel, sizeof(a.sentinel));
    has_moved = 2 * others > answers;
    if (others > 0)
        set_front(place[has_moved]);
    return has_moved;
}

/* ---- the server that they named */

int sentinel_check_role(struct client *c, const char *master, struct err *err)
{
    static const char *const call[] = {"ROLE"};
    struct reply *r = client_call(c, 1, call, NULL, err);
    const struct reply *role = reply_at(r, 0);
    int result = -1;

    if (r == NULL)
        return -1;
    if (reply_is(role, "master"))
        result = 0;
    else if (reply_is(role, "slave"))
        (void)err_set(err, ERR_UNAVAILABLE,
                      "the sentinels name it as master '%s', but it is a replica of %.60s:%lld: a "
                      "failover is under way, or they are wrong (redis-cli -p 26379 SENTINEL reset "
                      "%s)",
                      master, reply_str(reply_at(r, 1)), (long long)reply_int(reply_at(r, 2)),
                      master);
    else if (reply_is(role, "sentinel"))
        (void)err_set(err, ERR_UNAVAILABLE,
                      "the sentinels name it as master '%s', but it is a sentinel itself: SENTINEL "
                      "MONITOR the Redis server in its place",
                      master);
    else
        (void)err_set(err, ERR_UNAVAILABLE, "it does not say that it is a master");
    reply_free(r);
    return result;
}
