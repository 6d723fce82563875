#include "judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "batch.h"
#include "chain.h"
#include "child.h"
#include "finding.h"

/* Read everything in one call, one row per thing. A key of a foreign type counts as empty: foreign
 * keys are only planted where no key is. */
static const char LOOK[] =
    "local R, out = ARGV[1], {}\n"
    "local function read(...)\n"
    "  local r = redis.pcall(...)\n"
    "  return r.err and {} or r\n"
    "end\n"
    "local function set(letter, key)\n"
    "  for _, id in ipairs(read('ZRANGE', R .. key, 0, -1)) do out[#out + 1] = letter .. id end\n"
    "end\n"
    "for _, id in ipairs(read('HKEYS', R .. ':jobs')) do out[#out + 1] = 'J' .. id end\n"
    "for q in string.gmatch(ARGV[2], '%S+') do\n"
    "  for p in string.gmatch(ARGV[3], '%S+') do set('W', ':q:' .. q .. ':' .. p) end\n"
    "  set('W', ':solo:' .. q) set('W', ':parked:' .. q) set('D', ':dead:' .. q)\n"
    "  set('K', ':done:' .. q) set('M', ':due:' .. q)\n"
    "end\n"
    "local running = read('ZRANGE', R .. ':running', 0, -1, 'WITHSCORES')\n"
    "for i = 1, #running, 2 do out[#out + 1] = 'R' .. running[i] .. ' ' .. running[i + 1] end\n"
    "for name in string.gmatch(ARGV[4], '%S+') do\n"
    "  local row = read('HMGET', R .. ':lock:' .. name, 'holder', 'until')\n"
    "  if row[1] then out[#out + 1] = 'L' .. name .. ' ' .. row[1] end\n"
    "end\n"
    "for name in string.gmatch(ARGV[5], '%S+') do\n"
    "  local row = read('ZRANGE', R .. ':sem:' .. name, 0, -1, 'WITHSCORES')\n"
    "  for i = 1, #row, 2 do\n"
    "    out[#out + 1] = 'S' .. name .. ' ' .. row[i] .. ' ' .. row[i + 1]\n"
    "  end\n"
    "end\n"
    "return out";

static char sha[41];

/* What judge_all number `look` saw of a job. */
struct sight {
    unsigned look;
    int states, n;
    bool has_record;
    int64_t epoch;
};

static struct sight sights[LEDGER_JOBS];
static unsigned looks;
static struct call call;

static void put_list(const char *const *list, int n)
{
    struct buf all = BUF_INIT;

    for (int i = 0; i < n; i++)
        buf_printf(&all, "%s ", list[i]);
    call_text(&call, buf_str(&all));
    buf_done(&all);
}

void judge_start(void)
{
    struct reply *r;

    call_begin(&call, "SCRIPT");
    call_text(&call, "LOAD");
    call_text(&call, LOOK);
    r = arena_must(&call);
    (void)snprintf(sha, sizeof(sha), "%s", reply_str(r));
    reply_free(r);
    batch_start();
}

static struct reply *look(const struct ledger *l)
{
    char priorities[8 * PRIORITIES] = "";

    for (int i = 0; i < PRIORITIES; i++)
        (void)snprintf(priorities + strlen(priorities), sizeof(priorities) - strlen(priorities),
                       "%d ", names_priority[i]);
    call_begin(&call, "EVALSHA_RO");
    call_text(&call, sha);
    call_text(&call, "0");
    call_text(&call, l->root);
    put_list(names_queue, QUEUES);
    call_text(&call, priorities);
    put_list(names_lock, LOCKS);
    put_list(names_limited, LIMITED);
    return arena_must(&call);
}

/* ---- raw members */

static struct raw *find_raw(struct ledger *l, const char *payload)
{
    for (int i = l->raws - 1; i >= 0; i--)
        if (strcmp(l->raw[i].payload, payload) == 0)
            return &l->raw[i];
    return NULL;
}

/* Add the job of a record that no answer told of: a raw member gets a record when it parks or dies,
 * and the end of a job may cause another one. */
static struct job *meet(struct ledger *l, const char *id)
{
    const char *body;
    struct reply *r;
    struct raw *raw;
    struct job *j = NULL;

    call_begin(&call, "HGET");
    call_printf(&call, "%s:jobs", l->root);
    call_text(&call, id);
    r = arena_must(&call);
    body = strchr(reply_str(r), '\n');
    j = chain_meet(l, id, reply_str(r));
    if (j != NULL) {
        reply_free(r);
        return j;
    }
    raw = body != NULL ? find_raw(l, body + 1) : NULL;
    if (raw == NULL || !raw->waits) {
        finding_break("unknown", "%s nobody added %s", l->root, id);
    } else {
        raw->waits = false;
        j = ledger_add(l, id, raw->queue);
    }
    reply_free(r);
    return j;
}

static void check_raws(struct ledger *l, const struct reply *rows)
{
    static unsigned char there[LEDGER_RAWS];

    memset(there, 0, (size_t)l->raws);
    for (size_t i = 0; i < reply_count(rows); i++) {
        const char *row = reply_str(reply_at(rows, i));
        struct raw *raw = row[0] == 'M' ? find_raw(l, row + 1) : NULL;

        if (raw != NULL)
            there[raw - l->raw] = 1;
        if (raw != NULL && !raw->waits)
            finding_break("raw", "%s the raw member %s was started and waits again", l->root,
                          row + 1);
    }
    for (int i = 0; i < l->raws; i++)
        if (l->raw[i].waits && there[i] == 0) {
            if (!l->raw[i].may_go)
                finding_break("raw", "%s the raw member %s is lost", l->root, l->raw[i].payload);
            l->raw[i].waits = false;
        } else {
            l->raw[i].may_go = false;
        }
}

/* ---- jobs */

static struct sight *sight_of(const struct ledger *l, const struct job *j)
{
    struct sight *s = &sights[j - l->job];

    if (s->look != looks)
        *s = (struct sight){.look = looks};
    return s;
}

static void see_row(struct ledger *l, const char *row)
{
    static const char letters[] = "WRDK";
    const char *kind = strchr(letters, row[0]);
    char id[16];
    struct job *j;
    struct sight *s;

    if ((kind == NULL && row[0] != 'J') || strlen(row) < 13)
        return;
    (void)snprintf(id, sizeof(id), "%.12s", row + 1);
    j = ledger_find(l, id);
    if (j == NULL && row[0] == 'J')
        j = meet(l, id);
    if (j == NULL) {
        finding_break("unknown", "%s %s stands in a set (%c) and nobody added it", l->root, id,
                      row[0]);
        return;
    }
    s = sight_of(l, j);
    if (kind == NULL) {
        s->has_record = true;
        return;
    }
    s->n++;
    s->states |= 1 << (kind - letters);
    if (row[0] == 'R')
        s->epoch = strtoll(row + 13, NULL, 10);
}

/* How the job may have ended that is where it is now, and might have been in the states `may`. */
static int ended_as(const struct job *j, int may)
{
    if (ledger_is_live(j))
        return 1 << END_NONE;
    if (j->may == DEAD)
        return 1 << END_DEAD;
    if (j->ended != 1 << END_NONE)
        return j->ended;
    return 1 << END_CANCELLED | ((may & DEAD) != 0 ? 1 << END_DEAD : 0);
}

static void check_job(struct ledger *l, struct job *j)
{
    struct sight *s = sight_of(l, j);
    int may = j->may, is = s->n == 0 ? GONE : s->states;

    if ((may & (DEAD | DONE)) != 0)
        may |= GONE;
    if ((may & WAITS) != 0 && j->may_expire)
        may |= DEAD | GONE;
    if (s->n > 1 || s->has_record != (s->n == 1))
        finding_break("state", "%s %s stands in %d sets (%s), %s record; it should be %s", l->root,
                      j->id, s->n, ledger_states(s->states), s->has_record ? "with a" : "without a",
                      ledger_states(may));
    else if ((is & may) == 0)
        finding_break("lost", "%s %s is %s and should be %s (start %lld, epoch %lld)", l->root,
                      j->id, ledger_states(is), ledger_states(may), (long long)j->start,
                      (long long)j->epoch);
    else if (is == RUNS && s->epoch != j->epoch)
        finding_break("owner", "%s %s runs under %lld, it was given to %lld", l->root, j->id,
                      (long long)s->epoch, (long long)j->epoch);
    j->may = is;
    j->ended = ended_as(j, may);
    if (is == DEAD)
        chain_dies(j);
}

static void check_jobs(struct ledger *l, const struct reply *rows)
{
    for (size_t i = 0; i < reply_count(rows); i++)
        see_row(l, reply_str(reply_at(rows, i)));
    l->alive = 0;
    for (int i = 0; i < l->jobs; i++) {
        struct job *j = &l->job[i];

        if (j->may != GONE || sights[i].look == looks)
            check_job(l, j);
        l->alive += ledger_is_live(j);
    }
}

/* ---- unique keys */

/* For each unique key of a queue, at most one job may wait and one may run. */
static void check_unique(const struct ledger *l)
{
    int waits[QUEUES][UNIQUES] = {{0}}, runs[QUEUES][UNIQUES] = {{0}};

    for (int i = 0; i < l->jobs; i++) {
        const struct job *j = &l->job[i];

        if (j->unique < 0 || !ledger_is_live(j))
            continue;
        waits[j->queue][j->unique] += j->may == WAITS;
        runs[j->queue][j->unique] += j->may == RUNS;
        if (waits[j->queue][j->unique] > 1 || runs[j->queue][j->unique] > 1)
            finding_break("unique", "%s %s is not the only one that is %s under %s@%s", l->root,
                          j->id, ledger_states(j->may), names_queue[j->queue],
                          names_unique[j->unique]);
    }
}

/* ---- gates */

/* Does this row say that holder has this lock or a permit of this semaphore? Rows: `L<name>
 * <holder>`, `S<name> <holder> <until>`. */
static bool is_row(const char *row, char kind, const char *name, const char *holder)
{
    size_t n = strlen(name), h = strlen(holder);

    return row[0] == kind && strncmp(row + 1, name, n) == 0 && row[n + 1] == ' ' &&
           strncmp(row + n + 2, holder, h) == 0 &&
           (row[n + 2 + h] == '\0' || row[n + 2 + h] == ' ');
}

static bool has_row(const struct reply *rows, char kind, const char *name, const char *holder)
{
    for (size_t i = reply_count(rows); i-- > 0;) {
        const char *row = reply_str(reply_at(rows, i));

        if (row[0] != 'L' && row[0] != 'S')
            return false; /* these rows come last */
        if (is_row(row, kind, name, holder))
            return true;
    }
    return false;
}

static void check_holder(const struct ledger *l, const struct reply *rows, char kind, int name,
                         const char *holder)
{
    const char *gate = kind == 'L' ? names_lock[name] : names_limited[name];

    if (!has_row(rows, kind, gate, holder))
        finding_break("gate", "%s %s is inside %s:%s and does not hold it", l->root, holder,
                      kind == 'L' ? "lock" : "sem", gate);
}

static void check_running(const struct ledger *l, const struct reply *rows, const struct job *j)
{
    for (int i = 0; i < LOCKS; i++)
        if (ledger_needs_lock(l, j, i))
            check_holder(l, rows, 'L', i, j->id);
    for (int i = 0; i < LIMITED; i++)
        if (ledger_needs_sem(l, j, i))
            check_holder(l, rows, 'S', i, j->id);
}

static void check_callers(const struct ledger *l, const struct reply *rows)
{
    for (int o = 0; o < OWNERS; o++) {
        char who[40];

        (void)snprintf(who, sizeof(who), "=%s", names_owner[o]);
        for (int i = 0; i < LOCKS + LIMITED; i++) {
            const struct lease *lease = i < LOCKS ? &l->lock[i][o] : &l->sem[i - LOCKS][o];

            if (lease->is_held)
                check_holder(l, rows, i < LOCKS ? 'L' : 'S', i < LOCKS ? i : i - LOCKS, who);
        }
    }
}

static void check_programs(const struct ledger *l, const struct reply *rows)
{
    for (int i = 0; i < l->workers; i++) {
        const struct worker *w = &l->worker[i];
        char who[40];

        (void)snprintf(who, sizeof(who), "@%lld", (long long)w->epoch);
        if (w->is_there && w->holds)
            check_holder(l, rows, w->gate < LOCKS ? 'L' : 'S',
                         w->gate < LOCKS ? w->gate : w->gate - LOCKS, who);
    }
}

static void check_permits(struct ledger *l, const struct reply *rows)
{
    for (int i = 0; i < LIMITED; i++) {
        size_t n = strlen(names_limited[i]);
        int64_t taken = 0;

        for (size_t k = reply_count(rows); k-- > 0;) {
            const char *row = reply_str(reply_at(rows, k));

            if (row[0] != 'S')
                break;
            taken += strncmp(row + 1, names_limited[i], n) == 0 && row[n + 1] == ' ';
        }
        if (taken > l->permits[i])
            finding_break("permits", "%s sem:%s has let in %lld, %lld are the most", l->root,
                          names_limited[i], (long long)taken, (long long)l->permits[i]);
        l->permits[i] = taken;
    }
}

static void check_gates(struct ledger *l, const struct reply *rows)
{
    for (int i = 0; i < l->jobs; i++)
        if (l->job[i].may == RUNS)
            check_running(l, rows, &l->job[i]);
    check_callers(l, rows);
    check_programs(l, rows);
    check_permits(l, rows);
}

void judge_all(struct ledger *l)
{
    struct reply *rows = look(l);

    looks++;
    check_jobs(l, rows);
    chain_check(l);
    child_check(l);
    batch_check(l);
    l->is_blurred = false;
    check_raws(l, rows);
    check_unique(l);
    check_gates(l, rows);
    reply_free(rows);
}

/* ---- the end */

static void check_key(const struct ledger *l, const char *key)
{
    static const char *const left[] = {
        "lock:",    "sem:",   "wait:",    "line:",         "parked",    "holds",
        "aside:",   "timers", "granted:", "rate:granted:", "running",   "cancel",
        "progress", "q:",     "due:",     "solo:",         "batch:open"};
    const char *name = key + strlen(l->root) + 1;

    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        if (strncmp(name, left[i], strlen(left[i])) == 0)
            finding_break(strncmp(name, "sem:", 4) == 0 ? "lease" : "left",
                          "%s is left when all is over", key);
}

static struct reply *keys_of(const struct ledger *l)
{
    call_begin(&call, "KEYS");
    call_printf(&call, "%s:*", l->root);
    return arena_must(&call);
}

void judge_end(struct ledger *l)
{
    struct reply *keys;

    judge_all(l);
    for (int i = 0; i < l->jobs; i++)
        if (ledger_is_live(&l->job[i]))
            finding_break("never", "%s %s is %s still, with every gate open and workers for all",
                          l->root, l->job[i].id, ledger_states(l->job[i].may));
    keys = keys_of(l);
    for (size_t i = 0; i < reply_count(keys); i++)
        check_key(l, reply_str(reply_at(keys, i)));
    reply_free(keys);
}

/* ---- what is over */

static void check_waits(const struct ledger *l, int64_t before_ms)
{
    struct reply *r;

    call_begin(&call, "HGETALL");
    call_printf(&call, "%s:parked", l->root);
    r = arena_must(&call);
    for (size_t i = 0; i + 1 < reply_count(r); i += 2) {
        const char *who = reply_str(reply_at(r, i));
        const char *until = strchr(reply_str(reply_at(r, i + 1)), ' ');

        if (who[0] == '=' && until != NULL && strtoll(until, NULL, 10) < before_ms)
            finding_break("wait", "%s the wait of %.*s at %s was over at%s and it still waits",
                          l->root, (int)strcspn(who, "\n"), who, who + strcspn(who, "\n") + 1,
                          until);
    }
    reply_free(r);
}

/* When the last lease of this semaphore ends; 0: nobody holds a permit. */
static double last_lease(const struct reply *rows, const char *name)
{
    size_t n = strlen(name);
    double last = 0;

    for (size_t i = 0; i < reply_count(rows); i++) {
        const char *row = reply_str(reply_at(rows, i));

        if (row[0] == 'S' && strncmp(row + 1, name, n) == 0 && row[n + 1] == ' ') {
            double until = strtod(strrchr(row, ' '), NULL);

            last = until > last ? until : last;
        }
    }
    return last;
}

void judge_leftovers(struct ledger *l, int64_t now_ms, int64_t for_ms)
{
    struct reply *rows = look(l);

    check_waits(l, now_ms - for_ms);
    for (int i = 0; i < LIMITED; i++) {
        double last = last_lease(rows, names_limited[i]);

        if (last > 0 && last < (double)(now_ms - for_ms))
            finding_break("lease", "%s the last lease of sem:%s was over at %.0f, its key is there",
                          l->root, names_limited[i], last);
    }
    reply_free(rows);
}
