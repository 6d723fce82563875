#include "web/web.h"

#include <stdlib.h>
#include <string.h>

#include "ask/shards.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "json/put.h"
#include "web/access.h"
#include "web/all_queues.h"
#include "web/api.h"
#include "web/door.h"
#include "web/http.h"
#include "web/listen.h"
#include "web/page.h"
#include "web/recent.h"
#include "web/refusal.h"
#include "web/tail.h"

/* A question holds up all others: a server that does not answer in time (call.h) is given up, and
 * then left alone for a moment. */
#define REST_MS 1000

/* A namespace; or one of its shards, which share nothing here, either. */
struct place {
    struct api api;
    struct tail *tail;
    struct mono rests_until;
};

struct web {
    const struct conf *conf;
    struct head_rules rules;
    char **hosts;
    struct access_rules access;
    struct place *places;
    size_t nplaces;
    struct recent *recent;
    struct http *http;
    struct door *door;
};

/* ---- requests */

/* api v1 NS tail */
static bool is_tail(const struct http_request *r)
{
    return !r->is_post && r->n == 4 && strcmp(r->segment[3], "tail") == 0;
}

/* api v1 NS ...; NULL: there is none of this name. */
static struct place *find_place(struct web *w, const struct http_request *r)
{
    for (size_t i = 0; r->n > 3 && i < w->nplaces; i++)
        if (strcmp(r->segment[2], w->places[i].api.read.target.ns) == 0)
            return &w->places[i];
    return NULL;
}

/* Whatever needs Redis goes through here: a Redis that hangs holds up the loop once, and then has
 * its rest. */
static void ask(struct place *p, const struct http_request *r, const char *who,
                struct http_answer *a)
{
    bool answered;

    if (mono_before(mono_now(), p->rests_until)) {
        refuse(a, 503, NULL, "Redis did not answer a moment ago: it is asked again in a second");
        return;
    }
    answered = is_tail(r) ? tail_answer(p->tail, r, a) : api_answer(&p->api, r, who, a);
    if (!answered)
        p->rests_until = mono_add_ms(mono_now(), REST_MS);
}

/* Which namespaces there are, and what may be done. */
static void say_hello(const struct web *w, struct http_answer *a)
{
    json_t *object = json_object(), *list = json_array();

    for (size_t i = 0; i < w->nplaces; i++)
        (void)json_array_append_new(list, json_string(w->places[i].api.read.target.ns));
    json_put(object, "namespaces", list);
    json_put(object, "write", json_boolean(w->conf->web_write != 0));
    json_put(object, "payloads", json_boolean(w->conf->web_payloads != 0));
    json_put(object, "version", json_string(PACKAGE_VERSION));
    a->status = 200;
    a->type = "application/json";
    json_write(&a->body, object);
    json_decref(object);
}

static void look(struct web *w, struct place *p, const struct http_request *r, const char *who,
                 struct http_answer *a)
{
    const struct buf *known = recent_find(w->recent, r->target, mono_now());

    if (known != NULL) {
        a->status = 200;
        a->type = "application/json";
        buf_add(&a->body, known->data, known->len);
        return;
    }
    ask(p, r, who, a);
    if (a->status == 200 && a->attachment == NULL && !is_tail(r))
        recent_keep(w->recent, r->target, &a->body, mono_now());
}

static void change(struct web *w, struct place *p, const struct http_request *r, const char *who,
                   struct http_answer *a)
{
    ask(p, r, who, a);
    recent_forget(w->recent);
    log_notice("event=changed who=\"%s\" what=\"%.200s\" status=%u", who, r->target, a->status);
}

static void on_request(void *arg, const struct http_request *r, struct http_answer *a)
{
    struct web *w = arg;
    struct place *p = find_place(w, r);
    char who[ACCESS_WHO_MAX];

    if (page_answer(r, a))
        return;
    if (r->n < 2 || strcmp(r->segment[0], "api") != 0 || strcmp(r->segment[1], "v1") != 0)
        refuse(a, 404, NULL, "there is nothing at this address");
    else if (!access_check(&w->access, r, who))
        refuse(a, 401, NULL, "give the token: Authorization: Bearer TOKEN");
    else if (!r->is_post && r->n == 3 && r->segment[2][0] == '\0')
        say_hello(w, a);
    else if (p == NULL)
        refuse(a, 404, NULL, "there is nothing at this address");
    else if (r->is_post)
        change(w, p, r, who, a);
    else
        look(w, p, r, who, a);
}

static void on_left(void *arg)
{
    struct web *w = arg;

    if (w->door != NULL)
        door_left(w->door);
}

static bool on_guest(void *arg, int fd)
{
    struct web *w = arg;

    return http_take(w->http, fd);
}

/* ---- settings */

static int check_settings(const struct conf *conf, struct err *err)
{
    bool is_unix = listen_is_unix(conf->web_listen);

    if (conf->web_user_header[0] != '\0' && !is_unix)
        return err_set(err, ERR_CONFIG,
                       "web.user_header needs web.listen: unix:/PATH: at a port anybody could say "
                       "who he is");
    if (!listen_is_local(conf->web_listen) && conf->web_token_file[0] == '\0')
        return err_set(err, ERR_CONFIG,
                       "web.listen %.100s can be reached from other hosts (or is no address): give "
                       "web.token_file, or listen at 127.0.0.1:8377",
                       conf->web_listen);
    return 0;
}

/* The address itself, localhost with its port, and those of web.hosts. */
static void read_hosts(struct web *w)
{
    const char *port = strrchr(w->conf->web_listen, ':');
    size_t n = 0;

    w->hosts = mem_new(sizeof(char *));
    mem_list_add(&w->hosts, &n, mem_strdup(w->conf->web_listen));
    if (port != NULL)
        mem_list_add(&w->hosts, &n, mem_printf("localhost%s", port));
    for (size_t i = 0; i < w->conf->web_hosts.n; i++)
        mem_list_add(&w->hosts, &n, mem_strdup(w->conf->web_hosts.at[i]));
    w->rules.hosts = (const char *const *)w->hosts;
    w->rules.any_host = listen_is_unix(w->conf->web_listen) && w->conf->web_hosts.n == 0;
}

static int read_access(struct web *w, struct err *err)
{
    w->access.user_header = w->conf->web_user_header;
    return w->access.user_header[0] != '\0'
               ? 0
               : access_token(w->conf->web_token_file, w->access.token, err);
}

static int find_server(struct ask_server *s, const struct target_flags *flags, struct err *err)
{
    s->flags = *flags;
    if (ask_target(s, err) < 0)
        return -1;
    if (s->target.timeout_ms > ANSWER_MS)
        s->target.timeout_ms = ANSWER_MS;
    return 0;
}

/* Reads and writes have a user each: what looks cannot change, whatever it is sent. */
static int find_writer(const struct conf *conf, struct ask_server *s, const struct ask_server *read,
                       struct err *err)
{
    struct url *url = &s->target.url;

    s->target = read->target;
    s->has_target = true;
    if (conf->web_write_user[0] == '\0')
        return 0;
    text_copy(url->user, sizeof(url->user), conf->web_write_user);
    url->password[0] = '\0';
    url->ask_password = NULL;
    if (conf->web_write_password_file[0] != '\0' &&
        url_read_password(conf->web_write_password_file, url, err) < 0)
        return err_wrap(err, "web.write_password_file");
    return 0;
}

/* The one of this shard becomes a target of its own. */
static void take_shard(struct target *t, int shard)
{
    if (t->shards > 0)
        target_use_shard(t, shard);
    t->shards = 0;
}

static int add_places(struct web *w, struct loop *loop, const struct target_flags *flags,
                      struct err *err)
{
    struct ask_server all = {.client = NULL};

    if (find_server(&all, flags, err) < 0)
        return -1;
    w->nplaces = (size_t)shards_count(&all);
    w->places = mem_new(w->nplaces * sizeof(*w->places));
    for (size_t i = 0; i < w->nplaces; i++) {
        struct api *api = &w->places[i].api;

        api->read = all;
        api->shard = (int)i;
        api->shards = all.target.shards;
        take_shard(&api->read.target, (int)i);
        if (find_writer(w->conf, &api->write, &api->read, err) < 0)
            return -1;
        api->may_write = w->conf->web_write != 0;
        api->shows_payloads = w->conf->web_payloads != 0;
        api->all_queues = all_queues_new();
        w->places[i].tail = tail_new(loop, &api->read);
    }
    return 0;
}

static void place_done(struct place *p)
{
    tail_free(p->tail);
    ask_disconnect(&p->api.read);
    ask_disconnect(&p->api.write);
    json_decref(p->api.health.value);
    json_decref(p->api.history.value);
    all_queues_free(p->api.all_queues);
}

static int start(struct web *w, struct loop *loop, const struct target_flags *flags,
                 struct err *err)
{
    if (check_settings(w->conf, err) < 0 || read_access(w, err) < 0 ||
        add_places(w, loop, flags, err) < 0)
        return -1;
    read_hosts(w);
    w->http = http_new(loop, on_request, on_left, w);
    if (w->http == NULL)
        return err_set(err, ERR_SYSTEM, "the HTTP library does not start");
    w->door = door_new(loop, w->conf->web_listen, &w->rules, on_guest, w, err);
    return w->door != NULL ? 0 : -1;
}

struct web *web_new(struct loop *loop, const struct conf *conf, const struct target_flags *flags,
                    struct err *err)
{
    struct web *w = mem_new(sizeof(*w));

    w->conf = conf;
    w->recent = recent_new();
    if (start(w, loop, flags, err) == 0)
        return w;
    web_free(w);
    return NULL;
}

void web_free(struct web *w)
{
    if (w == NULL)
        return;
    door_free(w->door);
    w->door = NULL;
    http_free(w->http);
    for (size_t i = 0; i < w->nplaces; i++)
        place_done(&w->places[i]);
    free(w->places);
    recent_free(w->recent);
    mem_free_list(w->hosts);
    explicit_bzero(&w->access, sizeof(w->access));
    free(w);
}

const char *web_token(const struct web *w)
{
    return w->access.token;
}
