/*
 * The fault proxy (tests/fault/proxy.c) from a test: started before a redis-server, given orders.
 * What cannot be done ends the test program.
 */
#ifndef LATER_TESTS_FAULT_PROXY_CLIENT_H
#define LATER_TESTS_FAULT_PROXY_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "../support/proc.h"
#include "../support/redis.h"

struct proxy {
    struct proc proc;
    int control;
    char url[48];   /* what laterd is given instead of the server's */
    char said[256]; /* the text of the last answer: see `said` in proxy.c */
};

/* Between whoever connects to p->url and r; its control socket and its log are in r's folder. */
void proxy_start(struct proxy *p, const struct test_redis *r);
/* Safe to call when it was not started (all zero) or twice. */
void proxy_stop(struct proxy *p);
/* One order or question of proxy.c, printf-style; returns its number when it is in force. */
int64_t proxy_tell(struct proxy *p, const char *order, ...) __attribute__((format(printf, 2, 3)));
/* Until its rules have applied so many times since the start (`fired` in proxy.c). */
bool proxy_until_fired(struct proxy *p, int64_t n, int deadline_ms);
/* A text as orders have it, in hex; valid until the next call, cut after 511 bytes. */
const char *proxy_hex(const char *text);

#endif
