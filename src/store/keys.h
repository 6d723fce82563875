/*
 * The keys that laterd writes or reads: which ones are ours, and what type each has. Pure.
 */
#ifndef LATER_STORE_KEYS_H
#define LATER_STORE_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Is this key (n bytes, then a NUL), which begins with later:, one of namespace ns? Also true for
 * keys of other namespaces, which do not concern us.
 */
bool keys_is_ours(const char *ns, const char *key, size_t n);

/*
 * The type that TYPE must say of the key later:{NS}:<rest> (rest: n bytes); "" for a reserved name,
 * which may have any type; NULL for a key that is not ours.
 */
const char *keys_type(const char *rest, size_t n);

/*
 * If rest names a queue's set of ids (q:<queue>:<p>, pin:<queue>:<target>, or solo: dead: done:
 * parked: and the queue): the queue's name, within rest, and its length in *ret_len. Else NULL.
 */
const char *keys_queue_of_set(const char *rest, size_t n, size_t *ret_len);

#endif
