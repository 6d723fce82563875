#include "batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "chain.h"
#include "finding.h"

#define SHORT_MS 3000 /* keeps up to this may be over in the call in which the batch ends */

/* One row per batch, `B<name> <definition>`, and one per member, `Z<name> <id> <state>`. A key of a
 * foreign type counts as empty. */
static const char LOOK[] =
    "local R, out = ARGV[1], {}\n"
    "local function read(...)\n"
    "  local r = redis.pcall(...)\n"
    "  return r.err and {} or r\n"
    "end\n"
    "local all = read('HGETALL', R .. ':batches')\n"
    "for i = 1, #all, 2 do out[#out + 1] = 'B' .. all[i] .. ' ' .. all[i + 1] end\n"
    "for name in string.gmatch(ARGV[2], '%S+') do\n"
    "  local row = read('ZRANGE', R .. ':members:' .. name, 0, -1, 'WITHSCORES')\n"
    "  for i = 1, #row, 2 do\n"
    "    out[#out + 1] = 'Z' .. name .. ' ' .. row[i] .. ' ' .. row[i + 1]\n"
    "  end\n"
    "end\n"
    "return out";

static const char *const callbacks[CALLBACKS] = {"finally", "then", "on_dead"};
static const char *const ends[ENDS] = {"live", "done", "dead", "cancelled"};

static char sha[41];
static struct call call;

/* What Redis has of the batch of a name. */
static struct sight {
    bool is_there, is_sealed, is_cancelled;
    int64_t ended_ms;
    bool is_called[CALLBACKS];
    int members;
} sights[BATCHES];

void batch_start(void)
{
    struct reply *r;

    call_begin(&call, "SCRIPT");
    call_text(&call, "LOAD");
    call_text(&call, LOOK);
    r = arena_must(&call);
    (void)snprintf(sha, sizeof(sha), "%s", reply_str(r));
    reply_free(r);
}

/* ---- what answers tell */

struct batch *batch_of(struct ledger *l, int name)
{
    for (int i = l->batches - 1; i >= 0; i--)
        if (l->batch[i].name == name)
            return l->batch[i].is_there ? &l->batch[i] : NULL;
    return NULL;
}

void batch_opened(struct ledger *l, const struct batch *opened)
{
    struct batch *was = batch_of(l, opened->name);

    if (was != NULL && !l->is_blurred)
        finding_break("batch", "%s %s is opened, and it is there", l->root,
                      names_batch[opened->name]);
    if (was != NULL)
        was->is_there = false;
    l->batch[l->batches] = *opened;
    l->batch[l->batches++].is_there = true;
}

void batch_join(struct ledger *l, int batch, const struct job *parent)
{
    const struct batch *b = batch >= 0 ? &l->batch[batch] : NULL;

    if (b != NULL &&
        (b->is_cancelled || (b->is_sealed && (parent == NULL || parent->batch != batch))))
        finding_break("batch", "%s a job joins %s, which is %s", l->root, names_batch[b->name],
                      b->is_cancelled ? "cancelled" : "sealed");
}

void batch_cancelled(struct ledger *l, struct batch *b)
{
    b->is_sealed = b->is_cancelled = true;
    for (int i = 0; i < l->jobs; i++) {
        struct job *j = &l->job[i];

        if (j->batch < 0 || &l->batch[j->batch] != b || !ledger_is_live(j))
            continue;
        if ((j->may & RUNS) != 0)
            j->cancelling = true;
        if ((j->may & WAITS) != 0)
            j->may = (j->may & ~WAITS) | DONE | GONE;
    }
}

bool batch_is_cancelled(const struct ledger *l, const struct job *j)
{
    return j->batch >= 0 && l->batch[j->batch].is_there && l->batch[j->batch].is_cancelled;
}

bool batch_is_hindered(const struct ledger *l, const char *name)
{
    for (int i = l->batches - 1; i >= 0; i--)
        if (strcmp(names_batch[l->batch[i].name], name) == 0)
            return l->batch[i].is_hindered || l->is_blurred;
    return false;
}

/* ---- callbacks */

static struct batch *find_serial(struct ledger *l, const char *record)
{
    const char *body = strchr(record, '\n');
    int serial;

    if (body == NULL || sscanf(body + 1, "batch %d", &serial) != 1)
        return NULL;
    for (int i = l->batches - 1; i >= 0; i--)
        if (l->batch[i].serial == serial)
            return &l->batch[i];
    return NULL;
}

/* Which callback is this the queue of? CALLBACKS: none. */
static int which(const struct batch *b, const char *record)
{
    int w = 0;

    while (w < CALLBACKS &&
           (b->callback[w] < 0 || strncmp(record + 1, names_queue[b->callback[w]],
                                          strlen(names_queue[b->callback[w]])) != 0))
        w++;
    return w;
}

struct job *batch_meet(struct ledger *l, const char *id, const char *record)
{
    char told[64];
    struct batch *b;
    struct tally n = {0};
    int w;

    if (!chain_field(record, 'B', told))
        return NULL;
    b = find_serial(l, record);
    w = b != NULL ? which(b, record) : CALLBACKS;
    if (w == CALLBACKS || strncmp(told, names_batch[b->name], strlen(names_batch[0])) != 0 ||
        sscanf(told + strlen(names_batch[0]), ",%d,%d,%d,%d", &n.total, &n.of[END_DONE],
               &n.of[END_DEAD], &n.of[END_CANCELLED]) != 4) {
        finding_break("callback", "%s %s is the callback of no batch: %.80s", l->root, id, record);
        return NULL;
    }
    if (b->called[w]++ > 0)
        finding_break("callback", "%s %s: %s of %s has come before", l->root, id, callbacks[w],
                      names_batch[b->name]);
    b->told[w] = n;
    b->is_new[w] = true;
    return ledger_add(l, id, b->callback[w]);
}

static bool is_told_right(const struct batch *b, int w, const struct tally *n, bool is_blurred)
{
    const struct tally *t = &b->told[w];
    int ended = t->of[END_DONE] + t->of[END_DEAD] + t->of[END_CANCELLED];

    if (w == ON_DEATH)
        return t->total <= n->total && ended <= t->total && t->of[END_DEAD] >= 1;
    if (ended != t->total || t->total > n->total || (w == ON_ALL_DONE && t->of[END_DONE] < ended))
        return false;
    return is_blurred || memcmp(&t->of[1], &n->of[1], sizeof(t->of) - sizeof(t->of[0])) == 0;
}

static void check_told(const struct ledger *l, struct batch *b, const struct tally *n)
{
    for (int w = 0; w < CALLBACKS; w++) {
        const struct tally *t = &b->told[w];

        if (b->is_new[w] && !is_told_right(b, w, n, l->is_blurred))
            finding_break("callback",
                          "%s %s of %s is told %d: %d done, %d dead, %d cancelled; it has %d: "
                          "%d %d %d",
                          l->root, callbacks[w], names_batch[b->name], t->total, t->of[END_DONE],
                          t->of[END_DEAD], t->of[END_CANCELLED], n->total, n->of[END_DONE],
                          n->of[END_DEAD], n->of[END_CANCELLED]);
        b->is_new[w] = false;
    }
}

/* ---- one batch */

static struct tally count(const struct ledger *l, const struct batch *b, bool *has_died)
{
    struct tally n = {0};

    for (int i = 0; i < l->jobs; i++) {
        const struct job *j = &l->job[i];

        if (j->batch < 0 || &l->batch[j->batch] != b)
            continue;
        n.total++;
        *has_died |= j->has_died;
        for (int e = 0; e < ENDS; e++)
            n.of[e] += j->ended == 1 << e;
    }
    return n;
}

/* Something that the batch owes is missing. */
static void owe(const struct ledger *l, struct batch *b, const char *what)
{
    if (l->is_blurred)
        b->is_hindered = true;
    if (!b->is_hindered)
        finding_break("callback", "%s %s owes its %s", l->root, names_batch[b->name], what);
}

static void check_callbacks(const struct ledger *l, struct batch *b, const struct tally *n,
                            bool has_died)
{
    bool is_over = b->is_sealed && n->of[END_NONE] == 0;
    const bool owed[CALLBACKS] = {b->has_ended |= is_over, is_over && n->of[END_DONE] == n->total,
                                  has_died};

    for (int w = 0; w < CALLBACKS; w++) {
        if (b->callback[w] >= 0 && owed[w] && b->called[w] == 0)
            owe(l, b, callbacks[w]);
        else if (b->called[w] > 0 && !owed[w] && (w != ON_END || !l->is_blurred))
            finding_break("callback", "%s %s of %s has come, and is not due", l->root, callbacks[w],
                          names_batch[b->name]);
        else if (b->called[w] > 0 && w == ON_END)
            b->has_ended = true;
    }
    check_told(l, b, n);
}

/* The definition agrees with what the answers told, and with the jobs of its callbacks. */
static void check_sight(const struct ledger *l, struct batch *b, const struct tally *n)
{
    const struct sight *s = &sights[b->name];
    bool is_over = b->is_sealed && n->of[END_NONE] == 0;

    if (s->is_sealed != b->is_sealed || s->is_cancelled != b->is_cancelled)
        finding_break("batch", "%s %s is %ssealed and %scancelled", l->root, names_batch[b->name],
                      s->is_sealed ? "" : "not ", s->is_cancelled ? "" : "not ");
    if (s->members != n->total)
        finding_break("batch", "%s %s has %d members, %d joined", l->root, names_batch[b->name],
                      s->members, n->total);
    if (is_over && s->ended_ms == 0)
        owe(l, b, "end");
    else if (!is_over && s->ended_ms > 0)
        finding_break("batch", "%s %s has ended with %d live members", l->root,
                      names_batch[b->name], n->of[END_NONE]);
    b->until_ms = s->ended_ms > 0 ? s->ended_ms + b->keep_ms : 0;
    for (int w = 0; w < CALLBACKS; w++) {
        if (l->is_blurred && s->is_called[w] && b->called[w] == 0)
            b->called[w] = 1; /* it came, and was purged unseen */
        if (s->is_called[w] != (b->called[w] > 0))
            finding_break("callback", "%s %s says that its %s has %scome", l->root,
                          names_batch[b->name], callbacks[w], s->is_called[w] ? "" : "not ");
    }
}

/* It is not there any more: its time must be over, and all that it owed must have come. */
static void check_forgotten(const struct ledger *l, struct batch *b, const struct tally *n)
{
    bool may = b->until_ms > 0 ? b->until_ms <= l->latest_ms : b->keep_ms <= SHORT_MS;

    if (!l->is_blurred && (!may || !b->is_sealed || n->of[END_NONE] > 0))
        finding_break("batch", "%s %s is gone, with %d live members, kept until %lld", l->root,
                      names_batch[b->name], n->of[END_NONE], (long long)b->until_ms);
    b->is_there = false;
}

static void check_batch(const struct ledger *l, struct batch *b)
{
    bool has_died = false, is_there = sights[b->name].is_there, was_hindered = b->is_hindered;
    struct tally n = count(l, b, &has_died);

    if (is_there)
        check_sight(l, b, &n);
    else
        check_forgotten(l, b, &n);
    if (is_there || !l->is_blurred)
        check_callbacks(l, b, &n, has_died);
    b->is_hindered |= was_hindered;
}

/* ---- the look */

static struct reply *look(const struct ledger *l)
{
    char names[8 * BATCHES] = "";

    for (int i = 0; i < BATCHES; i++)
        (void)snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s ", names_batch[i]);
    call_begin(&call, "EVALSHA_RO");
    call_text(&call, sha);
    call_text(&call, "0");
    call_text(&call, l->root);
    call_text(&call, names);
    return arena_must(&call);
}

/* The value of this field of a definition; "" if it has none. */
static void field(const char *row, const char *name, char value[64])
{
    char key[24];
    const char *at, *end = strchr(row, '\n');

    (void)snprintf(key, sizeof(key), " %s=", name);
    at = strstr(row, key);
    value[0] = '\0';
    if (at != NULL && end != NULL && at < end)
        (void)snprintf(value, 64, "%.*s", (int)strcspn(at + strlen(key), " \n"), at + strlen(key));
}

static void see_batch(struct ledger *l, const char *row)
{
    char name[8], value[64];
    const struct batch *b;
    struct sight *s;
    int at;

    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(row + 1, " "), row + 1);
    at = names_find(names_batch, BATCHES, name);
    b = at >= 0 ? batch_of(l, at) : NULL;
    if (b == NULL) {
        finding_break("batch", "%s there is %s, which nobody opened", l->root, row + 1);
        return;
    }
    s = &sights[at];
    s->is_there = true;
    field(row, "sealed_ms", value);
    s->is_sealed = value[0] != '\0';
    field(row, "cancelled_ms", value);
    s->is_cancelled = value[0] != '\0';
    field(row, "ended_ms", value);
    s->ended_ms = strtoll(value, NULL, 10);
    field(row, "fired", value);
    for (int w = 0; w < CALLBACKS; w++)
        s->is_called[w] = strstr(value, callbacks[w]) != NULL;
}

/* A member whose job came and went while foreign keys were there. */
static struct job *meet_member(struct ledger *l, const struct batch *b, const char *id)
{
    struct job *j = l->is_blurred ? ledger_add(l, id, 0) : NULL;

    if (j == NULL) {
        finding_break("batch", "%s %s is a member of %s, and nobody added it", l->root, id,
                      names_batch[b->name]);
        return NULL;
    }
    j->may = GONE;
    j->batch = (int)(b - l->batch);
    j->ended = 1 << END_DONE | 1 << END_DEAD | 1 << END_CANCELLED;
    return j;
}

static void see_member(struct ledger *l, const char *row)
{
    char name[8], id[16];
    int state, at;
    struct batch *b;
    struct job *j;

    if (sscanf(row, "Z%7s %15s %d", name, id, &state) != 3 || state < 0 || state >= ENDS) {
        finding_break("batch", "%s has the member %s", l->root, row);
        return;
    }
    at = names_find(names_batch, BATCHES, name);
    b = batch_of(l, at);
    if (b == NULL) {
        finding_break("batch", "%s %s is a member of no batch", l->root, row);
        return;
    }
    j = ledger_find(l, id);
    if (j == NULL)
        j = meet_member(l, b, id);
    if (j == NULL)
        return;
    sights[at].members++;
    if (j->batch < 0 || &l->batch[j->batch] != b)
        finding_break("batch", "%s %s is a member of %s and did not join it", l->root, id, name);
    else if ((j->ended >> state) % 2 == 0)
        finding_break("member", "%s %s is %s in %s, and it is %s (ended %d)", l->root, id,
                      ends[state], name, ledger_states(j->may), j->ended);
    j->ended = 1 << state;
    j->has_died |= state == END_DEAD;
}

void batch_check(struct ledger *l)
{
    struct reply *rows;

    if (l->batches == 0)
        return;
    memset(sights, 0, sizeof(sights));
    rows = look(l);
    for (size_t i = 0; i < reply_count(rows); i++) {
        const char *row = reply_str(reply_at(rows, i));

        (row[0] == 'B' ? see_batch : see_member)(l, row);
    }
    reply_free(rows);
    for (int name = 0; name < BATCHES; name++) {
        struct batch *b = batch_of(l, name);

        if (b != NULL)
            check_batch(l, b);
    }
}

void batch_check_ended(const struct ledger *l)
{
    for (int i = 0; i < l->batches; i++)
        if (l->batch[i].is_there && l->batch[i].until_ms == 0)
            finding_break("batch", "%s %s has not ended when all is over", l->root,
                          names_batch[l->batch[i].name]);
}
