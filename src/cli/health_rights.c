/* What workers say of the rights and commands that they miss. */
#include "cli/health.h"

#include <stdio.h>
#include <string.h>

#include "cli/show/replies.h"

/* A worker whose calls are refused says so each time it connects anew. */
#define HINDERED_MS 30000

/* "missing-right:HOST PID TEXT" of the last half minute. Where TEXT begins, or NULL. */
static const char *hindrance(const struct reply *notes, size_t i, int64_t now_ms)
{
    const char *note = reply_str(reply_at(notes, i)), *pid;

    if (strncmp(note, "missing-right:", 14) != 0 ||
        now_ms - reply_int(reply_at(notes, i + 1)) > HINDERED_MS)
        return NULL;
    pid = strchr(note, ' ');
    return pid != NULL && strchr(pid + 1, ' ') != NULL ? strchr(pid + 1, ' ') + 1 : NULL;
}

void health_rights_judge(struct health *h, const struct reply *r)
{
    const struct reply *notes = reply_at(r, HEALTH_NOTES);
    int64_t now_ms = reply_int(reply_at(r, HEALTH_NOW));

    for (size_t i = 0; i + 1 < reply_count(notes); i += 2) {
        const char *note = reply_str(reply_at(notes, i)), *text = hindrance(notes, i, now_ms);

        if (text != NULL)
            health_add(h->causes, "cause", "missing-right", "worker on %.*s: %.250s",
                       (int)(text - note) - 15, note + 14, text);
    }
}

bool health_is_hindered(const struct reply *r, const char *epoch)
{
    const struct reply *workers = reply_at(r, HEALTH_WORKERS), *notes = reply_at(r, HEALTH_NOTES);
    char name[128] = "";

    for (size_t i = 0; i < reply_count(workers); i++) {
        const struct reply *w = reply_at(workers, i);

        if (reply_is(reply_at(w, WORKER_EPOCH), epoch))
            (void)snprintf(name, sizeof(name), "%.64s %.20s ", reply_str(reply_at(w, WORKER_HOST)),
                           reply_str(reply_at(w, WORKER_PID)));
    }
    for (size_t i = 0; i + 1 < reply_count(notes) && name[0] != '\0'; i += 2) {
        if (hindrance(notes, i, reply_int(reply_at(r, HEALTH_NOW))) != NULL &&
            strncmp(reply_str(reply_at(notes, i)) + 14, name, strlen(name)) == 0)
            return true;
    }
    return false;
}
