/*
 * TLS over a connected socket (OpenSSL 3): at least 1.2, the server's name always sent, its chain
 * and name always checked. The files are read at each tls_open, so that a certificate that was
 * renewed needs no reload.
 *
 * Errors: CONFIG for what an operator has to cure (a file, a certificate of either side, a server
 * that speaks no TLS), with the cure; UNAVAILABLE for a link that broke.
 */
#ifndef LATER_REDIS_TLS_H
#define LATER_REDIS_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "redis/url.h"

struct tls;

/* Read the files and prepare; no byte is sent. The descriptor stays the caller's. NULL with err. */
struct tls *tls_open(int fd, const struct url *url, struct err *err);
void tls_close(struct tls *t); /* NULL is fine; says goodbye if the connection takes it */

/* 1: done, 0: wait for what tls_wants_write says and call again, -1: err. */
int tls_handshake(struct tls *t, struct err *err);
/* Bytes read or written; 0: none for now; -1: err. */
long tls_read(struct tls *t, void *to, size_t n, struct err *err);
long tls_write(struct tls *t, const void *from, size_t n, struct err *err);
/* Bytes were taken off the socket that tls_read has not given out yet. */
bool tls_has_more(const struct tls *t);
/* The last call that could not go on waits for the socket to take bytes, not to have some. */
bool tls_wants_write(const struct tls *t);
/* The protocol that is spoken: "TLSv1.3". */
const char *tls_protocol(const struct tls *t);

#endif
