#include "health/server.h"

#include "base/error_class.h"
#include "redis/error_reply.h"
#include "redis/preflight.h"

/* Call later_add without arguments. The server refuses writes before the library notices that there
 * is nothing to add: whatever refuses the producers' adds refuses this one. */
static void find_refusal(struct health *h, struct ask_server *s)
{
    struct err err = ERR_INIT;
    struct reply *r = ask_words(s, &err, "later_add", NULL);
    enum error_class class = r == NULL ? error_reply_class(err.text) : ERROR_CLASS_NONE;

    reply_free(r);
    if (class == ERROR_CLASS_FULL || class == ERROR_CLASS_MOVED)
        health_add(h->causes, "cause", "adds-refused", "Redis refuses every add: %.250s", err.text);
}

/* If this user may not ask, say nothing: the rights of the daemon's user are what matters. */
static void judge_server(struct health *h, struct ask_server *s)
{
    static const char *const info[] = {"INFO"};
    struct err ignored = ERR_INIT;
    struct preflight found = {.n = 0};
    struct reply *r = client_call(s->client, 1, info, NULL, &ignored);

    if (r != NULL)
        preflight_server(&found, reply_str(r), &s->target.url);
    reply_free(r);
    for (size_t i = 0; i < found.n; i++)
        health_add(h->warnings, "warning", found.at[i].check, "%s", found.at[i].text);
}

void health_server_judge(struct health *h, struct ask_server *s)
{
    find_refusal(h, s);
    judge_server(h, s);
}
