#include "redis/bound.h"

#include <hiredis/hiredis.h>
#include <pthread.h>

/* Many times what any answer to us has. Arrays may be nested, seven deep. */
#define ELEMENTS_MAX (1 << 20)

#if HIREDIS_MAJOR >= 1
typedef size_t count_type;
#else
typedef int count_type;
#endif

/* original: hiredis' own functions. They have no public name, but every new reader has them. */
static redisReplyObjectFunctions original, bounded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *create_array(const redisReadTask *task, count_type elements)
{
    return elements > ELEMENTS_MAX ? NULL : original.createArray(task, elements);
}

void bound_reader(struct redisReader *reader)
{
    (void)pthread_mutex_lock(&lock);
    if (bounded.createArray == NULL) {
        original = bounded = *reader->fn;
        bounded.createArray = create_array;
    }
    (void)pthread_mutex_unlock(&lock);
    reader->fn = &bounded;
}
