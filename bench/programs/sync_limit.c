/*
 * How many jobs a second can the library itself handle? This worker only calls the sync function,
 * one call at a time on an otherwise idle connection. Each call has the results of all jobs that
 * the call before handed out.
 *
 *   sync_limit PORT QUEUE CLAIMS     CLAIMS: the most jobs in a call (at most 512)
 *
 * The jobs exist and are due before it starts. The drain rate of laterd is compared with this rate.
 */
#include <string.h>
#include <unistd.h>

#include "client.h"

#define ROOT "later:{default}"
#define CLAIMS_MAX 512
#define NUMBERS_MAX (2 * CLAIMS_MAX + 16)
#define MAX_PAYLOAD "1048576"

/* Indexes in the answer of the sync. */
enum { SYNC_STATUS = 1, SYNC_GROUPS = 3, SYNC_REFUSED = 9 };
/* A group of claims: queue, fence, start, attempt, crashes, gated, then for each job its id, due
 * time and record. */
enum { GROUP_QUEUE = 0, GROUP_START = 2, GROUP_COMMON = 6, GROUP_FIELDS = 3 };

struct call {
    const char *argv[32 + 4 * CLAIMS_MAX];
    size_t len[32 + 4 * CLAIMS_MAX];
    int n;
    char numbers[NUMBERS_MAX][24];
    size_t nnumbers;
};

static void put_bytes(struct call *call, const char *p, size_t n)
{
    call->argv[call->n] = p;
    call->len[call->n++] = n;
}

static void put(struct call *call, const char *text)
{
    put_bytes(call, text, strlen(text));
}

static void put_number(struct call *call, long long number)
{
    char *text = call->numbers[call->nnumbers++];

    (void)snprintf(text, sizeof(call->numbers[0]), "%lld", number);
    put(call, text);
}

static redisReply *perform(redisContext *c, struct call *call)
{
    if (redisAppendCommandArgv(c, call->n, call->argv, call->len) != REDIS_OK)
        client_give_up("no memory");
    return client_answer(c);
}

static const redisReply *at(const redisReply *r, size_t i)
{
    if (r->type != REDIS_REPLY_ARRAY || i >= r->elements)
        client_give_up("the library answered in a shape that is not known");
    return r->element[i];
}

/* Register as a worker without held jobs: SEEN INSTANCE SEQ OLD, fields, configuration, adopted. */
static void enter(redisContext *c, const char *queue, char epoch[32])
{
    struct call call = {.n = 0};
    char instance[40];
    const char *const words[] = {
        "FCALL", "later_v1_register", "1",      ROOT,   "0",      instance, "1", "0", "3",
        "host",  "sync-limit",        "places", "1024", "queues", queue,    "0", "0"};
    redisReply *r;

    (void)snprintf(instance, sizeof(instance), "sync-limit-%ld", (long)getpid());
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        put(&call, words[i]);
    r = perform(c, &call);
    (void)snprintf(epoch, 32, "%s", at(r, 1)->str == NULL ? "" : at(r, 1)->str);
    freeReplyObject(r);
}

static size_t group_jobs(const redisReply *group)
{
    return group->elements < GROUP_COMMON ? 0 : (group->elements - GROUP_COMMON) / GROUP_FIELDS;
}

/* How many jobs does the answer hand out? */
static size_t claimed(const redisReply *r)
{
    const redisReply *groups = at(r, SYNC_GROUPS);
    size_t n = 0;

    for (size_t i = 0; i < groups->elements; i++)
        n += group_jobs(groups->element[i]);
    return n;
}

/* Add the results: all claimed jobs are done, with nothing to keep. */
static void put_groups(struct call *call, const redisReply *groups)
{
    put_number(call, (long long)groups->elements);
    for (size_t i = 0; i < groups->elements; i++) {
        const redisReply *group = groups->element[i];
        size_t n = group_jobs(group);

        put_bytes(call, at(group, GROUP_QUEUE)->str, at(group, GROUP_QUEUE)->len);
        put_number(call, at(group, GROUP_START)->integer);
        put_number(call, (long long)n);
        for (size_t k = 0; k < n; k++) {
            const redisReply *id = at(group, GROUP_COMMON + GROUP_FIELDS * k);

            put_bytes(call, id->str, id->len);
        }
    }
}

/* One sync: sends the results for the last answer (NULL: none), returns the next answer. */
static redisReply *do_sync(redisContext *c, const char *epoch, const char *queue, const char *most,
                           const redisReply *last)
{
    static struct call call;
    static const redisReply nothing = {.type = REDIS_REPLY_ARRAY};
    const char *const words[] = {"FCALL", "later_v1_sync", "1", ROOT, epoch, "1", "0", most};
    const char *const room[] = {"1", queue, most, MAX_PAYLOAD};
    redisReply *r;

    call.n = 0;
    call.nnumbers = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        put(&call, words[i]);
    put(&call, "0");
    for (size_t i = 0; i < sizeof(room) / sizeof(room[0]); i++)
        put(&call, room[i]);
    put_groups(&call, last == NULL ? &nothing : at(last, SYNC_GROUPS));
    r = perform(c, &call);
    if (at(r, SYNC_STATUS)->str == NULL || strcmp(at(r, SYNC_STATUS)->str, "ok") != 0)
        client_give_up("the sync was refused");
    return r;
}

/* Every result must have been accepted: the answer names none. */
static void need_taken(const redisReply *r)
{
    if (at(r, SYNC_REFUSED)->elements > 0)
        client_give_up("a result was not taken");
}

int main(int argc, char **argv)
{
    char epoch[32];
    redisContext *c;
    redisReply *last = NULL, *r;
    double from, seconds;
    size_t done = 0, calls = 0;
    int most;

    if (argc != 4 || (most = atoi(argv[3])) < 1 || most > CLAIMS_MAX) {
        (void)fprintf(stderr, "usage: sync_limit PORT QUEUE CLAIMS\n");
        return 64;
    }
    c = client_connect(argv[1]);
    enter(c, argv[2], epoch);
    from = client_seconds();
    do {
        r = do_sync(c, epoch, argv[2], argv[3], last);
        need_taken(r);
        calls++;
        if (last != NULL) {
            done += claimed(last);
            freeReplyObject(last);
        }
        last = r;
    } while (claimed(last) > 0);
    seconds = client_seconds() - from;
    (void)printf("{\"n\": %zu, \"per_s\": %.1f, \"calls\": %zu}\n", done, (double)done / seconds,
                 calls);
    freeReplyObject(last);
    redisFree(c);
    return 0;
}
