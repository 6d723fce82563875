/*
 * A bound for what a server can make us allocate: hiredis takes an array's announced length on
 * trust, and one of 1,000,000,000 elements keeps a thread busy for most of a minute.
 */
#ifndef LATER_REDIS_BOUND_H
#define LATER_REDIS_BOUND_H

struct redisReader;

/* Longer arrays break the connection ("Out of memory"). Any thread. */
void bound_reader(struct redisReader *reader);

#endif
