/*
 * The shards of a namespace: NAMESPACE.0, NAMESPACE.1 and so on, each with keys of its own, and
 * which of them a text belongs to (doc/cluster.md). Pure.
 */
#ifndef LATER_BASE_SHARD_H
#define LATER_BASE_SHARD_H

#include <stdbool.h>
#include <stddef.h>

#define SHARDS_MAX 64      /* as many as `shards` may be */
#define SHARD_ROOT_MAX 65  /* bytes of a name between the braces of keys, with its NUL */
#define SHARD_BASE_LONG 61 /* letters of a namespace that can be cut */

/* The CRC-16 of the text (base/crc16.h) modulo the number of shards: a contract, since producers
 * without `later` compute it, too. shards > 0. */
int shard_of(const void *text, size_t n, int shards);
/* Its name, for a namespace that can be cut. */
const char *shard_root(const char *ns, int shard, char out[SHARD_ROOT_MAX]);
/* Is the namespace short enough? */
bool shard_fits(const char *ns);

#endif
