/*
 * The door: accepts connections, looks at the head of each request without taking it (MSG_PEEK),
 * answers those that head.h refuses, and lets the others in. So the HTTP library behind it only
 * sees requests that have one meaning. There are at most DOOR_MAX connections, at the door and
 * inside; more wait in the kernel's queue. One request a connection.
 */
#ifndef LATER_WEB_DOOR_H
#define LATER_WEB_DOOR_H

#include "base/err.h"
#include "loop/loop.h"
#include "web/head.h"

#define DOOR_MAX 64
#define DOOR_HEAD_MS 10000 /* for a whole head */

struct door;

/* Take over the descriptor. False: it could not be served, and is closed. */
typedef bool door_in_f(void *arg, int fd);

/* Listen at ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH. NULL with err. rules stay the caller's. */
struct door *door_new(struct loop *loop, const char *listen, const struct head_rules *rules,
                      door_in_f *in, void *arg, struct err *err);
void door_free(struct door *d);
/* A connection that was let in has ended. */
void door_left(struct door *d);

#endif
