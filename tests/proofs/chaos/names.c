#include "names.h"

#include <string.h>

const char *const names_queue[QUEUES] = {"mail", "sms", "web", "img"};
const char *const names_lock[LOCKS] = {"a", "b", "user:1", "user:2"};
const char *const names_limited[LIMITED] = {"x", "y", "t:1", "t:2"};
const char *const names_defined[DEFINED] = {"x", "y", "t:{key}"};
const char *const names_key[KEYS] = {"1", "2"};
const char *const names_unique[UNIQUES] = {"u1", "u2", "u:3"};
const char *const names_owner[OWNERS] = {"ann", "bob", "cid", "dan", "eve"};
const char *const names_space[SPACES] = {"later:{one}", "later:{two}"};
const char *const names_batch[BATCHES] = {"b1", "b2", "b3", "b4", "b5"};
const int names_priority[PRIORITIES] = {1, 5, 8};

int names_find(const char *const *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return i;
    return -1;
}
