/*
 * A namespace that is cut into shards: N roots, NAMESPACE.0 and so on, which share nothing (see
 * doc/cluster.md). One of them is the present one, and gets the calls. Where there are no
 * shards nothing here does anything.
 *
 * What has a name (a batch, a schedule, a rate, a lock of a command) is in the shard of its name.
 * A job is in the shard of its key; without one, of its unique key; without both, of its token
 * (that of `import --once` names the shard which the job was in), or in any. The shard of a text
 * is its CRC-16 modulo N (base/shard.h).
 *
 * Ids are made in each shard, so two shards may have a job of the same id. ID.SHARD names one of
 * them; an id alone is looked for in all, and refused where several have it.
 */
#ifndef LATER_ASK_SHARDS_H
#define LATER_ASK_SHARDS_H

#include "ask/server.h"

#define SHARDS_ID 24 /* bytes of an id with its shard */

/* How many rounds a question to all takes: 1 where there are no shards. */
int shards_count(const struct ask_server *s);
/* Make it the present one. On a cluster each has a connection of its own, which stays. */
void shards_use(struct ask_server *s, int shard);
/* Make that of this text the present one. */
void shards_use_name(struct ask_server *s, const void *text, size_t n);

/* Where a function's shard comes from. */
enum shards_by {
    SHARDS_PRESENT, /* nothing in the call tells: the present one is meant */
    SHARDS_BY_NAME, /* its first argument */
    SHARDS_BY_JOB,  /* the one in which there is a job of this id or unique key */
    SHARDS_BY_BULK, /* the same of a bulk */
    SHARDS_BY_ADD   /* its options, as above */
};
enum shards_by shards_by(const char *function);

/*
 * Make the shard that the arguments tell the present one. An id becomes one without .SHARD in
 * ret_id, else ret_id stays as it is. 0, or -1 with err: code USAGE where the arguments tell two
 * shards, FORMAT where two have the id; as the question where an id is looked for.
 */
int shards_choose(struct ask_server *s, enum shards_by by, int argc, const char *const *argv,
                  const size_t *lens, char ret_id[SHARDS_ID], struct err *err);
/* Is it an add that tells no shard, so that it goes to any? */
bool shards_is_any(int argc, const char *const *argv, const size_t *lens);
/* Of "jABC.3" the shard becomes the present one, and ret_id the id. False: the text names none. */
bool shards_take_id(struct ask_server *s, const char *text, char ret_id[SHARDS_ID]);
/* "jABC.3" for a job of the present shard; the id as it is where there are no shards. */
const char *shards_show_id(const struct ask_server *s, const char *id, char out[SHARDS_ID]);

#endif
