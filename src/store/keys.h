/*
 * The keys that laterd writes or reads: which ones are ours, and what type each has. Pure.
 */
#ifndef LATER_STORE_KEYS_H
#define LATER_STORE_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Is this key (n bytes, a NUL behind), which begins with later:, one of namespace ns? Also true for
 * those of other namespaces, which are none of our business.
 */
bool keys_is_ours(const char *ns, const char *key, size_t n);

/*
 * What follows later:{NS}: (n bytes): the type that Redis must say of it, "" for a name that is
 * reserved and may have any, NULL for one that is not ours.
 */
const char *keys_type(const char *rest, size_t n);

/*
 * The queue of one of its sets of ids, q:<queue>:<p> solo:<queue> dead:<queue> done:<queue>, in
 * rest; its length in *ret_len. NULL when it is none.
 */
const char *keys_queue_of_set(const char *rest, size_t n, size_t *ret_len);

#endif
