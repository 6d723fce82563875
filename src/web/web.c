#include "web/web.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
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

struct web {
    const struct conf *conf;
    struct head_rules rules;
    char **hosts;
    struct access_rules access;
    struct api api;
    struct recent *recent;
    struct tail *tail;
    struct mono rests_until;
    struct http *http;
    struct door *door;
};

/* ---- requests */

/* api v1 NS tail */
static bool is_tail(const struct web *w, const struct http_request *r)
{
    return !r->is_post && r->n == 4 && strcmp(r->segment[3], "tail") == 0 &&
           strcmp(r->segment[2], w->api.read.target.ns) == 0;
}

/* Whatever needs Redis goes through here: a Redis that hangs holds up the loop once, and then has
 * its rest. */
static void ask(struct web *w, const struct http_request *r, const char *who, struct http_answer *a)
{
    bool answered;

    if (mono_before(mono_now(), w->rests_until)) {
        refuse(a, 503, NULL, "Redis did not answer a moment ago: it is asked again in a second");
        return;
    }
    answered = is_tail(w, r) ? tail_answer(w->tail, r, a) : api_answer(&w->api, r, who, a);
    if (!answered)
        w->rests_until = mono_add_ms(mono_now(), REST_MS);
}

static void look(struct web *w, const struct http_request *r, const char *who,
                 struct http_answer *a)
{
    const struct buf *known = recent_find(w->recent, r->target, mono_now());

    if (known != NULL) {
        a->status = 200;
        a->type = "application/json";
        buf_add(&a->body, known->data, known->len);
        return;
    }
    ask(w, r, who, a);
    if (a->status == 200 && a->attachment == NULL && !is_tail(w, r))
        recent_keep(w->recent, r->target, &a->body, mono_now());
}

static void change(struct web *w, const struct http_request *r, const char *who,
                   struct http_answer *a)
{
    ask(w, r, who, a);
    recent_forget(w->recent);
    log_notice("event=changed who=\"%s\" what=\"%.200s\" status=%u", who, r->target, a->status);
}

static void on_request(void *arg, const struct http_request *r, struct http_answer *a)
{
    struct web *w = arg;
    char who[ACCESS_WHO_MAX];

    if (page_answer(r, a))
        return;
    if (r->n < 2 || strcmp(r->segment[0], "api") != 0 || strcmp(r->segment[1], "v1") != 0)
        refuse(a, 404, NULL, "there is nothing at this address");
    else if (!access_check(&w->access, r, who))
        refuse(a, 401, NULL, "give the token: Authorization: Bearer TOKEN");
    else if (r->is_post)
        change(w, r, who, a);
    else
        look(w, r, who, a);
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
static int find_servers(struct web *w, const struct target_flags *flags, struct err *err)
{
    struct url *write = &w->api.write.target.url;

    if (find_server(&w->api.read, flags, err) < 0 || find_server(&w->api.write, flags, err) < 0)
        return -1;
    if (w->conf->web_write_user[0] == '\0')
        return 0;
    text_copy(write->user, sizeof(write->user), w->conf->web_write_user);
    write->password[0] = '\0';
    write->ask_password = NULL;
    if (w->conf->web_write_password_file[0] != '\0' &&
        url_read_password(w->conf->web_write_password_file, write, err) < 0)
        return err_wrap(err, "web.write_password_file");
    return 0;
}

static int start(struct web *w, struct loop *loop, const struct target_flags *flags,
                 struct err *err)
{
    if (check_settings(w->conf, err) < 0 || read_access(w, err) < 0 ||
        find_servers(w, flags, err) < 0)
        return -1;
    read_hosts(w);
    w->api.may_write = w->conf->web_write != 0;
    w->api.shows_payloads = w->conf->web_payloads != 0;
    w->tail = tail_new(loop, &w->api.read);
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
    w->api.all_queues = all_queues_new();
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
    tail_free(w->tail);
    ask_disconnect(&w->api.read);
    ask_disconnect(&w->api.write);
    recent_free(w->recent);
    json_decref(w->api.health.value);
    json_decref(w->api.history.value);
    all_queues_free(w->api.all_queues);
    mem_free_list(w->hosts);
    explicit_bzero(&w->access, sizeof(w->access));
    free(w);
}

const char *web_token(const struct web *w)
{
    return w->access.token;
}
