/*
 * A producer that adds as fast as one connection accepts. It adds N jobs and prints how many a
 * second were confirmed.
 *
 *   add_jobs PORT QUEUE N BYTES add|many [FROM_MS [SPAN_MS]]
 *
 * add: one later_add for each job, pipelined. many: later_add_many, with as many jobs in a call as
 * `later add --from` sends. FROM_MS: the due time in Unix milliseconds, 0: at once. SPAN_MS: due at
 * random in this span after FROM_MS; with `many` there is one due time for each call. QUEUE may be
 * NAME:K: the jobs go in turn to the queues NAME0 to NAME<K-1>.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "client.h"

#define ROOT "later:{default}"
#define ADDS_IN_FLIGHT 256
#define CALLS_IN_FLIGHT 4
#define PER_CALL 128
#define PAYLOAD_MAX (1L << 20)

struct plan {
    const char *queue;
    size_t name_len;
    long queues; /* 0: one queue, the name as given */
    long n;
    size_t bytes;
    bool many;
    int64_t from_ms, span_ms;
    char *payload;
};

/* The same numbers in every run, so that runs are alike (xorshift32). */
static uint32_t dice(void)
{
    static uint32_t x = 2463534242u;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x;
}

/* Send one call with `jobs` payloads of equal bytes. */
static void send_call(redisContext *c, const struct plan *p, long call, long jobs)
{
    const char *argv[8 + PER_CALL];
    size_t len[8 + PER_CALL];
    char name[80], due[24];
    int n = 0;

    if (p->queues > 0)
        (void)snprintf(name, sizeof(name), "%.*s%ld", (int)p->name_len, p->queue, call % p->queues);
    else
        (void)snprintf(name, sizeof(name), "%s", p->queue);
    argv[n++] = "FCALL";
    argv[n++] = p->many ? "later_add_many" : "later_add";
    argv[n++] = "1";
    argv[n++] = ROOT;
    argv[n++] = name;
    if (p->from_ms > 0) {
        int64_t at = p->from_ms + (p->span_ms > 0 ? (int64_t)dice() % p->span_ms : 0);

        (void)snprintf(due, sizeof(due), "%" PRId64, at);
        argv[n++] = "at";
        argv[n++] = due;
    }
    for (int i = 0; i < n; i++)
        len[i] = strlen(argv[i]);
    for (long i = 0; i < jobs; i++) {
        argv[n] = p->payload;
        len[n++] = p->bytes;
    }
    if (redisAppendCommandArgv(c, n, argv, len) != REDIS_OK)
        client_give_up("no memory");
}

static void add_all(redisContext *c, const struct plan *p)
{
    long in_flight = 0, most = p->many ? CALLS_IN_FLIGHT : ADDS_IN_FLIGHT;
    long per_call = p->many ? PER_CALL : 1;

    for (long sent = 0, call = 0; sent < p->n || in_flight > 0;) {
        while (sent < p->n && in_flight < most) {
            long jobs = p->n - sent < per_call ? p->n - sent : per_call;

            send_call(c, p, call++, jobs);
            sent += jobs;
            in_flight++;
        }
        /* Read half of the answers, so that one write carries many calls and the server always has
         * work. */
        for (long i = 0; i < (most + 1) / 2 && in_flight > 0; i++, in_flight--)
            freeReplyObject(client_answer(c));
    }
}

int main(int argc, char **argv)
{
    struct plan p = {0};
    const char *colon;
    redisContext *c;
    double from, seconds;

    if (argc < 6 || argc > 8) {
        (void)fprintf(stderr, "usage: add_jobs PORT QUEUE N BYTES add|many [FROM_MS [SPAN_MS]]\n");
        return 64;
    }
    p.queue = argv[2];
    colon = strchr(p.queue, ':');
    p.name_len = colon == NULL ? strlen(p.queue) : (size_t)(colon - p.queue);
    p.queues = colon == NULL ? 0 : atol(colon + 1);
    p.n = atol(argv[3]);
    p.bytes = (size_t)atol(argv[4]);
    p.many = strcmp(argv[5], "many") == 0;
    p.from_ms = argc > 6 ? atoll(argv[6]) : 0;
    p.span_ms = argc > 7 ? atoll(argv[7]) : 0;
    if (p.bytes > PAYLOAD_MAX)
        return 64;
    p.payload = malloc(p.bytes + 1);
    if (p.payload == NULL)
        return 71;
    memset(p.payload, 'x', p.bytes);
    c = client_connect(argv[1]);
    from = client_seconds();
    add_all(c, &p);
    seconds = client_seconds() - from;
    (void)printf("{\"n\": %ld, \"per_s\": %.1f, \"seconds\": %.4f}\n", p.n, (double)p.n / seconds,
                 seconds);
    redisFree(c);
    free(p.payload);
    return 0;
}
