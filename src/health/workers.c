#include "health/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/replies.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "conf/conf.h"

/* Cut the next part off *p, which ends at sep or at the end. NULL: there is none. */
static char *next_part(char **p, const char *sep)
{
    char *part = strsep(p, sep);

    while (part != NULL && part[0] == '\0')
        part = strsep(p, sep);
    return part;
}

/* Is this said of the queue already? kind: "cause" or "warning", as the list. */
static bool is_said(const json_t *list, const char *kind, const char *name, const char *queue)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *of = json_string_value(json_object_get(one, "queue"));

        if (of != NULL && strcmp(of, queue) == 0 &&
            strcmp(json_string_value(json_object_get(one, kind)), name) == 0)
            return true;
    }
    return false;
}

/* "mail REASON" LF "sms REASON" LF */
static void judge_defects(struct health *h, const struct reply *w)
{
    CLEANUP_FREE char *lines = mem_strdup(reply_str(reply_at(w, WORKER_DEFECTS)));
    char *rest = lines, *line, name[160];

    health_worker_name(w, name);
    while ((line = next_part(&rest, "\n")) != NULL) {
        char *why = strchr(line, ' ');

        if (why == NULL || !text_is_queue_name(line, (size_t)(why - line)))
            continue;
        *why++ = '\0';
        if (!is_said(h->causes, "cause", "handler", line))
            health_add_queue(h->warnings, "warning", "handler", line,
                             "%s cannot run queue %s: %.250s", name, line, why);
    }
}

static bool serves(const struct reply *w, const char *queue)
{
    const char *list = reply_str(reply_at(w, WORKER_SERVES)), *at = list;
    size_t n = strlen(queue);

    while ((at = strstr(at, queue)) != NULL) {
        if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == '\0'))
            return true;
        at += n;
    }
    return false;
}

/* The mode of a queue in "mail=stream,sms=plugin"; exec where it does not stand there. */
static void mode_in(const struct reply *w, const char *queue, char mode[16])
{
    CLEANUP_FREE char *list = mem_strdup(reply_str(reply_at(w, WORKER_MODES)));
    char *rest = list, *part;
    size_t n = strlen(queue);

    text_copy(mode, 16, "exec");
    while ((part = next_part(&rest, ",")) != NULL) {
        if (strncmp(part, queue, n) == 0 && part[n] == '=')
            text_copy(mode, 16, part + n + 1);
    }
}

static bool is_alive(const struct reply *w)
{
    return !reply_is(reply_at(w, WORKER_COUNTER), "dead");
}

/* Compare the mode of a queue of worker w with those of all workers: a warning for the first. */
static void judge_mode(struct health *h, const struct reply *r, const struct reply *w,
                       const char *queue, const char *mode)
{
    char name[160], other[160], others_mode[16];

    for (size_t i = 1; i < reply_count(r); i++) {
        const struct reply *o = reply_at(r, i);

        if (o == w || !is_alive(o) || reply_count(o) <= WORKER_MODES || !serves(o, queue))
            continue;
        mode_in(o, queue, others_mode);
        if (strcmp(mode, others_mode) == 0)
            continue;
        health_worker_name(w, name);
        health_worker_name(o, other);
        health_add_queue(h->warnings, "warning", "mode-differs", queue,
                         "queue %s has mode %s on %s and mode %s on %s: make their files alike",
                         queue, mode, name, others_mode, other);
        return;
    }
}

static void judge_modes(struct health *h, const struct reply *r, const struct reply *w)
{
    CLEANUP_FREE char *list = mem_strdup(reply_str(reply_at(w, WORKER_MODES)));
    char *rest = list, *part;

    while ((part = next_part(&rest, ",")) != NULL) {
        char *mode = strchr(part, '=');

        if (mode == NULL || !text_is_queue_name(part, (size_t)(mode - part)))
            continue;
        *mode++ = '\0';
        mode[strnlen(mode, 15)] = '\0';
        if (!is_said(h->warnings, "warning", "mode-differs", part))
            judge_mode(h, r, w, part, mode);
    }
}

static void judge_reload(struct health *h, const struct reply *w)
{
    const struct reply *why = reply_at(w, WORKER_RELOAD);
    char name[160];

    if (reply_len(why) == 0)
        return;
    health_worker_name(w, name);
    if (strncmp(reply_str(why), CONF_NEEDS_RESTART, strlen(CONF_NEEDS_RESTART)) == 0) {
        (void)health_add(h->warnings, "warning", "restart-needed",
                         "%s runs with other settings than its file has: %.300s", name,
                         reply_str(why));
        return;
    }
    (void)health_add(h->warnings, "warning", "reload-refused",
                     "%s runs with its old configuration, since a reload was refused: %.300s", name,
                     reply_str(why));
}

void health_workers_judge(struct health *h, struct ask_server *s)
{
    struct err ignored = ERR_INIT;
    struct reply *r = ask_words(s, &ignored, "later_v1_workers", NULL);

    for (size_t i = 1; i < reply_count(r); i++) {
        if (!is_alive(reply_at(r, i)) || reply_count(reply_at(r, i)) <= WORKER_DEFECTS)
            continue;
        judge_defects(h, reply_at(r, i));
        judge_modes(h, r, reply_at(r, i));
        judge_reload(h, reply_at(r, i));
    }
    reply_free(r);
}

/* ---- the rights and commands that they miss */

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
