/* A small Redis client for the measuring programs: calls of C strings that must succeed. */
#ifndef LATER_BENCH_CLIENT_H
#define LATER_BENCH_CLIENT_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <hiredis/hiredis.h>

static inline double client_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void client_give_up(const char *text)
{
    (void)fprintf(stderr, "%s\n", text);
    exit(69);
}

static inline redisContext *client_connect(const char *port)
{
    redisContext *c = redisConnect("127.0.0.1", atoi(port));

    if (c == NULL || c->err != 0)
        client_give_up(c == NULL ? "no memory" : c->errstr);
    return c;
}

/* The next answer, owned by the caller; an error ends the program. */
static inline redisReply *client_answer(redisContext *c)
{
    redisReply *r = NULL;

    if (redisGetReply(c, (void **)&r) != REDIS_OK)
        client_give_up(c->errstr);
    if (r->type == REDIS_REPLY_ERROR)
        client_give_up(r->str);
    return r;
}

#endif
