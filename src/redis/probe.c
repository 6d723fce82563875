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
#include "redis/error_reply.h"

#define STACK_BYTES (256 * 1024)

/* The request and the result of one thread; owner_lock protects `owner`. */
struct probing {
    struct mail mail; /* first */
    struct url url;
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

static int read_info(struct client *c, struct probe_result *r, struct err *err)
{
    static const char *const info[] = {"INFO"};
    struct reply *reply = client_call(c, 1, info, NULL, err);

    if (reply == NULL)
        return -1;
    preflight_value(reply_str(reply), "redis_version", r->server, sizeof(r->server));
    preflight_read(&r->preflight, reply_str(reply));
    reply_free(reply);
    if (strtol(r->server, NULL, 10) < 7)
        return err_set(err, ERR_CONFIG, "the server is version %s, 7.0 is the oldest that works",
                       r->server[0] != '\0' ? r->server : "unknown");
    return 0;
}

/* A library that lib_ensure left alone may be too new for us, or pinned and too old. */
static int check_library(const struct lib_state *lib, struct err *err)
{
    if (lib->number < LIB_LEAST)
        return err_set(err, ERR_CONFIG,
                       "library %ld is pinned on the server, this program needs %d: upgrade it by "
                       "this program's later setup --downgrade",
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

    if (class != ERROR_CLASS_CALL)
        return class;
    if (err->code == ERR_CONFIG || err->code == ERR_DENIED)
        return ERROR_CLASS_DENIED;
    return err->code == ERR_UNAVAILABLE ? ERROR_CLASS_LINK : ERROR_CLASS_CALL;
}

static void try_server(struct probing *job)
{
    struct probe_result *r = &job->result;
    struct err err = ERR_INIT;
    struct client *c = client_open(&job->url, job->timeout_ms, &err);

    r->url = job->url;
    if (c != NULL && read_info(c, r, &err) == 0 && lib_ensure(c, LIB_ENSURE, &r->lib, &err) == 0 &&
        check_library(&r->lib, &err) == 0 &&
        preflight_rights(&r->preflight, c, job->ns, &err) == 0) {
        if (!job->url.is_unix && client_peer(c)[0] != '\0')
            (void)snprintf(r->url.host, sizeof(r->url.host), "%.255s", client_peer(c));
    } else {
        r->class = class_from(&err);
        memcpy(r->text, err.text, sizeof(r->text));
    }
    client_close(c);
}

static void *thread(void *arg)
{
    struct probing *job = arg;

    try_server(job);
    (void)pthread_mutex_lock(&owner_lock);
    if (job->owner != NULL)
        mailbox_post(job->owner->box, &job->mail);
    else
        free(job);
    (void)pthread_mutex_unlock(&owner_lock);
    return NULL;
}

static void on_mail(void *arg, struct mail *mail)
{
    struct probe *p = arg;
    struct probing *job = (struct probing *)(void *)mail;

    p->job = NULL;
    p->cb(p->arg, &job->result);
    explicit_bzero(job, sizeof(*job));
    free(job);
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

static void forget(void *arg, const struct probe_result *result)
{
    (void)arg;
    (void)result;
}

void probe_free(struct probe *p)
{
    if (p == NULL)
        return;
    (void)pthread_mutex_lock(&owner_lock);
    if (p->job != NULL)
        p->job->owner = NULL;
    (void)pthread_mutex_unlock(&owner_lock);
    p->cb = forget;
    mailbox_free(p->box);
    free(p);
}

int probe_start(struct probe *p, const struct url *url, const char *ns, int64_t timeout_ms)
{
    struct probing *job;

    if (p->job != NULL)
        return 0;
    job = mem_new(sizeof(*job));
    job->url = *url;
    text_copy(job->ns, sizeof(job->ns), ns);
    job->timeout_ms = timeout_ms;
    job->owner = p;
    p->job = job;
    if (thread_start(thread, job, STACK_BYTES, NULL) == 0)
        return 0;
    p->job = NULL;
    free(job);
    return -1;
}
