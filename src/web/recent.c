#include "web/recent.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct answer {
    char *question;
    struct buf body;
    struct mono at;
};

struct recent {
    struct answer of[RECENT_MAX];
    size_t next; /* the oldest one */
};

struct recent *recent_new(void)
{
    return mem_new(sizeof(struct recent));
}

static void clear(struct answer *a)
{
    free(a->question);
    buf_done(&a->body);
    *a = (struct answer){.question = NULL, .body = BUF_INIT};
}

void recent_forget(struct recent *r)
{
    for (size_t i = 0; i < RECENT_MAX; i++)
        clear(&r->of[i]);
}

void recent_free(struct recent *r)
{
    if (r == NULL)
        return;
    recent_forget(r);
    free(r);
}

const struct buf *recent_find(struct recent *r, const char *question, struct mono now)
{
    for (size_t i = 0; i < RECENT_MAX; i++) {
        struct answer *a = &r->of[i];

        if (a->question != NULL && strcmp(a->question, question) == 0 &&
            mono_before(now, mono_add_ms(a->at, RECENT_MS)))
            return &a->body;
    }
    return NULL;
}

void recent_keep(struct recent *r, const char *question, const struct buf *body, struct mono now)
{
    struct answer *a = &r->of[r->next];

    if (body->len > RECENT_BYTES_MAX)
        return;
    r->next = (r->next + 1) % RECENT_MAX;
    clear(a);
    a->question = mem_strdup(question);
    buf_add(&a->body, body->data, body->len);
    a->at = now;
}
