/*
 * How many jobs a second the library itself lets through: a worker that does nothing but call the
 * step function, one call at a time on an otherwise idle connection, each with the results of all
 * jobs that the call before it handed out.
 *
 *   step_limit PORT QUEUE CLAIMS     CLAIMS: the most jobs a call (at most 512)
 *
 * The jobs are there and due before it starts. What laterd drains is compared with this.
 */
#include <string.h>
#include <unistd.h>

#include "client.h"

#define ROOT "later:{default}"
#define CLAIMS_MAX 512
#define RESULT_FIELDS 8
#define NUMBERS_MAX (CLAIMS_MAX + 16)
#define MAX_PAYLOAD "1048576"

/* Where things stand in the answer of the step, and in a claim. */
enum { STEP_STATUS = 1, STEP_ANSWERS = 2, STEP_CLAIMS = 3, STEP_REFUSED = 9, STEP_SHORT = 10 };
enum { CLAIM_ID = 0, CLAIM_QUEUE = 1, CLAIM_START = 2 };
/* A short list: a queue, a fence, then for each job its id, due time and record. */
enum { SHORT_QUEUE = 0, SHORT_FIRST = 2, SHORT_FIELDS = 3 };

struct call {
    const char *argv[32 + RESULT_FIELDS * CLAIMS_MAX];
    size_t len[32 + RESULT_FIELDS * CLAIMS_MAX];
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

/* Enter as a worker without held jobs: SEEN INSTANCE SEQ OLD, fields, configuration, adopted. */
static void enter(redisContext *c, const char *queue, char epoch[32])
{
    struct call call = {.n = 0};
    char instance[40];
    const char *const words[] = {
        "FCALL", "later_v1_register", "1",      ROOT,   "0",      instance, "1", "0", "3",
        "host",  "step-limit",        "places", "1024", "queues", queue,    "0", "0"};
    redisReply *r;

    (void)snprintf(instance, sizeof(instance), "step-limit-%ld", (long)getpid());
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        put(&call, words[i]);
    r = perform(c, &call);
    (void)snprintf(epoch, 32, "%s", at(r, 1)->str == NULL ? "" : at(r, 1)->str);
    freeReplyObject(r);
}

static size_t short_jobs(const redisReply *list)
{
    return list->elements < SHORT_FIRST ? 0 : (list->elements - SHORT_FIRST) / SHORT_FIELDS;
}

/* How many jobs the answer hands out, the long and the short. */
static size_t claimed(const redisReply *r)
{
    const redisReply *lists = at(r, STEP_SHORT);
    size_t n = at(r, STEP_CLAIMS)->elements;

    for (size_t i = 0; i < lists->elements; i++)
        n += short_jobs(lists->element[i]);
    return n;
}

/* Long claims as results: done, nothing is kept. */
static void put_results(struct call *call, const redisReply *claims)
{
    put_number(call, (long long)claims->elements);
    for (size_t i = 0; i < claims->elements; i++) {
        const redisReply *claim = claims->element[i];
        const redisReply *start = at(claim, CLAIM_START);

        put_bytes(call, at(claim, CLAIM_ID)->str, at(claim, CLAIM_ID)->len);
        if (start->type == REDIS_REPLY_INTEGER)
            put_number(call, start->integer);
        else
            put_bytes(call, start->str, start->len);
        put(call, "done");
        put_bytes(call, at(claim, CLAIM_QUEUE)->str, at(claim, CLAIM_QUEUE)->len);
        put(call, "0");
        put(call, "0");
        put(call, "");
        put(call, "");
    }
}

/* Short claims as groups of results. */
static void put_groups(struct call *call, const redisReply *lists)
{
    put_number(call, (long long)lists->elements);
    for (size_t i = 0; i < lists->elements; i++) {
        const redisReply *list = lists->element[i];
        size_t n = short_jobs(list);

        put_bytes(call, at(list, SHORT_QUEUE)->str, at(list, SHORT_QUEUE)->len);
        put_number(call, (long long)n);
        for (size_t k = 0; k < n; k++) {
            const redisReply *id = at(list, SHORT_FIRST + SHORT_FIELDS * k);

            put_bytes(call, id->str, id->len);
        }
    }
}

/* One step: results of the last answer (NULL: none) in, the next answer out. */
static redisReply *step(redisContext *c, const char *epoch, const char *queue, const char *most,
                        const redisReply *last)
{
    static struct call call;
    static const redisReply nothing = {.type = REDIS_REPLY_ARRAY};
    const char *const words[] = {"FCALL", "later_v1_step", "1", ROOT, epoch, "1", "0", most};
    const char *const room[] = {"1", queue, most, MAX_PAYLOAD};
    redisReply *r;

    call.n = 0;
    call.nnumbers = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        put(&call, words[i]);
    put_results(&call, last == NULL ? &nothing : at(last, STEP_CLAIMS));
    for (size_t i = 0; i < sizeof(room) / sizeof(room[0]); i++)
        put(&call, room[i]);
    put_groups(&call, last == NULL ? &nothing : at(last, STEP_SHORT));
    r = perform(c, &call);
    if (at(r, STEP_STATUS)->str == NULL || strcmp(at(r, STEP_STATUS)->str, "ok") != 0)
        client_give_up("the step was refused");
    return r;
}

/* What is counted as done must have been taken: long results say ok, of the short none is named. */
static void need_taken(const redisReply *r)
{
    const redisReply *answers = at(r, STEP_ANSWERS);

    for (size_t i = 0; i < answers->elements; i++) {
        if (answers->element[i]->str == NULL || strcmp(answers->element[i]->str, "ok") != 0)
            client_give_up("a result was not taken");
    }
    if (at(r, STEP_REFUSED)->elements > 0)
        client_give_up("a short result was not taken");
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
        (void)fprintf(stderr, "usage: step_limit PORT QUEUE CLAIMS\n");
        return 64;
    }
    c = client_connect(argv[1]);
    enter(c, argv[2], epoch);
    from = client_seconds();
    do {
        r = step(c, epoch, argv[2], argv[3], last);
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
