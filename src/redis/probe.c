#include "redis/probe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/thread.h"
#include "loop/mailbox.h"
#include "redis/client.h"
#include "redis/cluster.h"
#include "redis/error_reply.h"
#include "redis/sentinel.h"

#define STACK_BYTES (256 * 1024)

/* The request and the result of one thread; owner_lock protects `owner`. */
struct probing {
    struct mail mail; /* first */
    struct url url;
    enum probe_what what;
    char ns[80];
    int64_t timeout_ms;
    struct probe_result result;
    struct probe *owner; /* NULL: nobody waits any more */
};

struct probe {
    struct mailbox *box;
    probe_f *cb;
    void *arg;
    struct probing *job; /* under way */
};

/* Protects job->owner; held over the post, so that the owner is not freed between check and post.
 */
static pthread_mutex_t owner_lock = PTHREAD_MUTEX_INITIALIZER;

/* A promoted replica keeps the number of the history that it continues; any other server has
 * zeros. */
static void read_history(struct probe_result *r, const char *info)
{
    char before[48];

    preflight_value(info, "master_replid", r->replid, sizeof(r->replid));
    preflight_value(info, "master_replid2", before, sizeof(before));
    r->is_promoted = before[strspn(before, "0")] != '\0';
}

static int read_info(struct client *c, const struct url *by, struct probe_result *r,
                     struct err *err)
{
    static const char *const info[] = {"INFO"};
    struct reply *reply = client_call(c, 1, info, NULL, err);

    /* A server that does not tell may be as good as any. */
    if (reply == NULL && err->code != ERR_UNAVAILABLE) {
        preflight_unknown(&r->preflight);
        return 0;
    }
    if (reply == NULL)
        return -1;
    preflight_value(reply_str(reply), "redis_version", r->server, sizeof(r->server));
    preflight_server(&r->preflight, reply_str(reply), by);
    read_history(r, reply_str(reply));
    reply_free(reply);
    return 0;
}

/* A library that lib_ensure left alone may be too new for us, or pinned and too old. */
static int check_library(const struct lib_state *lib, struct err *err)
{
    if (lib->number < LIB_LEAST)
        return err_set(err, ERR_CONFIG,
                       "library %ld is pinned on the server, this program needs %d: replace it by "
                       "this program's later setup --force",
                       lib->number, LIB_LEAST);
    if (lib->protocol == LIB_PROTOCOL || lib->protocol == LIB_PROTOCOL + 1)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "library %ld on the server has protocol %ld, this program has %d: upgrade this "
                   "program, or run its later setup --downgrade",
                   lib->number, lib->protocol, LIB_PROTOCOL);
}

static enum error_class class_from(const struct err *err)
{
    enum error_class class = error_reply_class(err->text);

    if (err->code == ERR_UNFIT)
        return ERROR_CLASS_UNFIT;
    if (class != ERROR_CLASS_CALL)
        return class;
    if (err->code == ERR_CONFIG || err->code == ERR_DENIED)
        return ERROR_CLASS_DENIED;
    return err->code == ERR_UNAVAILABLE ? ERROR_CLASS_LINK : ERROR_CLASS_CALL;
}

/* CLIENT LIST shows this name. A user without that right is as good without it. */
static void give_name(struct client *c)
{
    static const char *const name[] = {"CLIENT", "SETNAME", "laterd"};
    struct err ignored = ERR_INIT;

    reply_free(client_call(c, 3, name, NULL, &ignored));
}

/* ---- a cluster: functions do not travel with a slot */

/* The slot of our namespace may be elsewhere, so no key is named. But where there is one endpoint
 * for all slots, a call without a key may be refused (ElastiCache Serverless). */
static void load_at_primary(void *arg, const struct url *at, bool has_all, struct client *primary,
                            const struct err *why)
{
    struct probing *job = arg;
    const char *ns = has_all ? job->ns : NULL;
    struct lib_state lib;
    struct err err = *why;

    if (primary == NULL || lib_ensure(primary, ns, LIB_ENSURE, &lib, &err) < 0)
        preflight_not_loaded(&job->result.preflight, at, err.text);
}

static void load_everywhere(struct probing *job)
{
    struct err ignored = ERR_INIT; /* the owner of our slot has been asked, too */

    if (job->url.nodes[0] != '\0')
        (void)cluster_primaries(&job->url, job->timeout_ms, load_at_primary, job, &ignored);
}

static bool has_moved(struct probing *job)
{
    load_everywhere(job);
    return job->url.nodes[0] != '\0' ? cluster_has_moved(&job->url, job->timeout_ms)
                                     : sentinel_has_moved(&job->url);
}

/* Is it fit for workers of this namespace? */
static int check_server(struct probing *job, struct client *c, struct err *err)
{
    struct probe_result *r = &job->result;

    if (read_info(c, &job->url, r, err) < 0 ||
        lib_ensure(c, job->ns, LIB_ENSURE, &r->lib, err) < 0 || check_library(&r->lib, err) < 0)
        return -1;
    load_everywhere(job);
    return preflight_rights(&r->preflight, c, job->ns, err);
}

static void try_server(struct probing *job)
{
    struct probe_result *r = &job->result;
    struct err err = ERR_INIT;
    struct client *c = client_open(&job->url, job->timeout_ms, &err);

    r->url = job->url;
    if (c != NULL && (job->what == PROBE_CONNECT || check_server(job, c, &err) == 0)) {
        client_get_url(c, &r->url);
        give_name(c);
        r->wire = client_take_wire(c, &err);
        c = NULL;
    }
    if (r->wire == NULL) {
        r->class = class_from(&err);
        memcpy(r->text, err.text, sizeof(r->text));
    }
    client_close(c);
}

static void ask_password(struct probing *job)
{
    struct probe_result *r = &job->result;
    struct err err = ERR_INIT;

    r->url = job->url;
    if (job->url.ask_password != NULL && job->url.ask_password(&r->url, &err) < 0) {
        r->class = class_from(&err);
        memcpy(r->text, err.text, sizeof(r->text));
    }
}

static void job_free(struct probing *job)
{
    wire_close(job->result.wire);
    explicit_bzero(job, sizeof(*job));
    free(job);
}

static void *thread(void *arg)
{
    struct probing *job = arg;

    if (job->what == PROBE_PASSWORD)
        ask_password(job);
    else if (job->what == PROBE_MASTER)
        job->result.has_moved = has_moved(job);
    else
        try_server(job);
    (void)pthread_mutex_lock(&owner_lock);
    if (job->owner != NULL)
        mailbox_post(job->owner->box, &job->mail);
    else
        job_free(job);
    (void)pthread_mutex_unlock(&owner_lock);
    return NULL;
}

static void on_mail(void *arg, struct mail *mail)
{
    struct probe *p = arg;
    struct probing *job = (struct probing *)(void *)mail;

    if (p->job == job) {
        p->job = NULL;
        p->cb(p->arg, &job->result);
    }
    job_free(job);
}

struct probe *probe_new(struct loop *loop, probe_f *cb, void *arg)
{
    struct probe *p = mem_new(sizeof(*p));

    p->cb = cb;
    p->arg = arg;
    p->box = mailbox_new(loop, on_mail, NULL, p);
    if (p->box == NULL) {
        free(p);
        return NULL;
    }
    return p;
}

void probe_cancel(struct probe *p)
{
    if (p->job == NULL)
        return;
    /* Either it has not posted yet and sees that nobody waits, or on_mail sees it. */
    (void)pthread_mutex_lock(&owner_lock);
    p->job->owner = NULL;
    (void)pthread_mutex_unlock(&owner_lock);
    p->job = NULL;
}

void probe_free(struct probe *p)
{
    if (p == NULL)
        return;
    probe_cancel(p);
    /* The thread of a result that has come may not have returned from its post. */
    (void)pthread_mutex_lock(&owner_lock);
    (void)pthread_mutex_unlock(&owner_lock);
    mailbox_free(p->box);
    free(p);
}

int probe_start(struct probe *p, enum probe_what what, const struct url *url, const char *ns,
                int64_t timeout_ms)
{
    struct probing *job;

    if (p->job != NULL)
        return 0;
    job = mem_new(sizeof(*job));
    job->what = what;
    job->url = *url;
    text_copy(job->ns, sizeof(job->ns), ns);
    url_set_namespace(&job->url, ns);
    job->timeout_ms = timeout_ms;
    job->owner = p;
    p->job = job;
    if (thread_start(thread, job, STACK_BYTES, NULL) == 0)
        return 0;
    p->job = NULL;
    job_free(job);
    return -1;
}
