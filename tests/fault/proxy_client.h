/*
 * Starts and commands the fault proxy (tests/fault/proxy.c), which stands before a redis-server.
 * Errors end the test program.
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
    char url[48];   /* the proxy's address, for laterd */
    char said[256]; /* text of the last answer: see `said` in proxy.c */
};

/* Start it as a proxy for server r. Its control socket and its log are in r's folder. */
void proxy_start(struct proxy *p, const struct test_redis *r);
/* Does nothing if it was not started (all zero) or is stopped. */
void proxy_stop(struct proxy *p);
/* Send one order or question of proxy.c, printf-style. Returns the number in its answer, once it
 * has taken effect. */
int64_t proxy_tell(struct proxy *p, const char *order, ...) __attribute__((format(printf, 2, 3)));
/* Wait until its rules have applied n times since the start (`fired` in proxy.c). */
bool proxy_until_fired(struct proxy *p, int64_t n, int deadline_ms);
/* The text in hex, as orders need it; valid until the next call; cut after 511 bytes. */
const char *proxy_hex(const char *text);

#endif
