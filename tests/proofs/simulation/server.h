/*
 * The real redis-server of the simulation with the real library. There is one RESP 3 connection,
 * which hears the wake channel, too: what a command publishes has arrived with its reply. The
 * server reads its wall clock from a mapped file, so TIME and all TTLs are virtual.
 */
#ifndef LATER_TESTS_SIMULATION_SERVER_H
#define LATER_TESTS_SIMULATION_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "redis/reply.h"

#define SERVER_ROOT "later:{default}"
#define SERVER_WAKES_MAX 64

/* without: the check to take out of the library (`checks` in server.c), or NULL. A failure ends the
 * program. */
void server_start(const char *without);
void server_stop(void);

/* One command at the world's time. The caller owns the reply, which is never NULL but may be an
 * error. */
struct reply *server_call(int argc, const char *const *argv, const size_t *lens);
/* The same, with the words of one line. */
struct reply *server_ask(const char *words);
/* One command that must succeed. */
void server_define(const char *words);
/* Many commands in one round trip: server_queue for each, then server_answer for each, in order. */
void server_queue(const char *words);
struct reply *server_answer(void);
/* What the last call published on the wake channel. */
size_t server_wakes(const char *const **ret);

/* An error reply of our own. */
struct reply *server_error(const char *text);

/* Empty the database. */
void server_flush(void);
/* server_save keeps one copy of the present data; server_lose restores it. */
void server_save(void);
void server_lose(void);

#endif
