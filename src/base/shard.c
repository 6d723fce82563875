#include "base/shard.h"

#include <stdio.h>
#include <string.h>

#include "base/crc16.h"

int shard_of(const void *text, size_t n, int shards)
{
    return (int)(crc16(text, n) % (unsigned)shards);
}

const char *shard_root(const char *ns, int shard, char out[SHARD_ROOT_MAX])
{
    (void)snprintf(out, SHARD_ROOT_MAX, "%.*s.%d", SHARD_BASE_LONG, ns, shard);
    return out;
}

bool shard_fits(const char *ns)
{
    return strlen(ns) <= SHARD_BASE_LONG;
}
