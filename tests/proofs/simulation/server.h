/*
 * The real redis-server of the simulation, with the real library in it. One connection, RESP 3,
 * which hears the wake channel as well: what a command publishes is there when its reply is. Its
 * wall clock is a mapped file that says what time it is, so TIME and all TTLs are virtual.
 */
#ifndef LATER_TESTS_SIMULATION_SERVER_H
#define LATER_TESTS_SIMULATION_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "redis/reply.h"

#define SERVER_ROOT "later:{default}"
#define SERVER_WAKES_MAX 64

/* without: the library with that check taken out (server.c, checks), or NULL. What cannot be done
 * ends the program. */
void server_start(const char *without);
void server_stop(void);

/* One command at the world's time; the reply (never NULL, may be an error) is the caller's. */
struct reply *server_call(int argc, const char *const *argv, const size_t *lens);
/* The same, of one line of words. */
struct reply *server_ask(const char *words);
/* One command, of which nothing but success is expected. */
void server_define(const char *words);
/* Many commands in one trip: server_queue each, then server_answer for each, in order. */
void server_queue(const char *words);
struct reply *server_answer(void);
/* What the last call published on the wake channel. */
size_t server_wakes(const char *const **ret);

/* An error reply of our own. */
struct reply *server_error(const char *text);

/* An empty database. */
void server_flush(void);
/* Keep the data as it is now (one copy); put the copy in its place. */
void server_save(void);
void server_lose(void);

#endif
