/*
 * Limits what a server can make us allocate: hiredis trusts the announced length of an array, and
 * one of 1,000,000,000 elements keeps a thread busy for most of a minute.
 */
#ifndef LATER_REDIS_BOUND_H
#define LATER_REDIS_BOUND_H

struct redisReader;

/* From now on an array over 2^20 elements breaks the connection ("Out of memory"). Any thread. */
void bound_reader(struct redisReader *reader);

#endif
