#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "judge.h"
#include "rates.h"
#include "finding.h"

#define START_US INT64_C(1767225600000000)

void world_init(struct world *w)
{
    memset(w, 0, sizeof(*w));
    for (int s = 0; s < SPACES; s++)
        w->space[s] = mem_new(sizeof(struct ledger));
}

/* Set what each queue asks of all its jobs, once, before there are any. */
static void choose_gates(struct world *w, struct ledger *l)
{
    for (int q = 1; q < QUEUES; q++) {
        struct buf text = BUF_INIT;

        if (dice_percent(&w->dice, 25))
            l->queue_lock[q] = dice_below(&w->dice, LOCKS);
        if (dice_percent(&w->dice, 30))
            l->queue_sem[q] = dice_below(&w->dice, LIMITED);
        if (dice_percent(&w->dice, 30))
            l->queue_rate[q] = dice_below(&w->dice, LIMITED);
        if (dice_percent(&w->dice, 30))
            buf_puts(&text, dice_percent(&w->dice, 50) ? " fair=1" : " fair=1 w=3:2");
        if (l->queue_lock[q] >= 0)
            buf_printf(&text, " lock=%s", names_lock[l->queue_lock[q]]);
        if (l->queue_sem[q] >= 0)
            buf_printf(&text, " sem=%s", names_limited[l->queue_sem[q]]);
        if (l->queue_rate[q] >= 0)
            buf_printf(&text, " rate=%s", names_limited[l->queue_rate[q]]);
        if (text.len > 0) {
            call_begin(&w->call, "HSET");
            call_printf(&w->call, "%s:queues", l->root);
            call_text(&w->call, names_queue[q]);
            call_text(&w->call, buf_str(&text) + 1);
            w->l = l;
            world_tell(w, ROLE_ALL);
        }
        buf_done(&text);
    }
}

void world_clear(struct world *w, uint64_t seed)
{
    w->dice.state = seed;
    w->now_us = w->latest_us = START_US + (int64_t)(dice_next(&w->dice) % 1000000000);
    w->serial = 0;
    w->is_disturbed = false;
    finding_clear();
    rates_clear();
    arena_set_time(w->now_us);
    arena_clear(dice_percent(&w->dice, 70) ? 2 : 16);
    judge_start();
    for (int s = 0; s < SPACES; s++) {
        ledger_clear(w->space[s], s);
        choose_gates(w, w->space[s]);
    }
}

void world_move_clock(struct world *w, int64_t us)
{
    w->now_us += us;
    if (w->now_us < START_US)
        w->now_us = START_US;
    if (w->now_us > w->latest_us)
        w->latest_us = w->now_us;
    if (us < 0)
        rates_set_back();
    for (int s = 0; s < SPACES; s++) {
        ledger_end_leases(w->space[s], NOW_MS(w));
        w->space[s]->latest_ms = w->latest_us / 1000;
    }
    arena_set_time(w->now_us);
}

void world_begin(struct world *w, const char *function)
{
    call_function(&w->call, function, w->l->root);
}

/* ---- printing */

static void print_reply(const struct reply *r, struct buf *out)
{
    switch (reply_kind(r)) {
    case REPLY_NIL:
        buf_puts(out, "nil");
        break;
    case REPLY_INT:
        buf_printf(out, "%lld", (long long)reply_int(r));
        break;
    case REPLY_ERROR:
    case REPLY_STR:
        buf_printf(out, "\"%.100s\"", reply_str(r));
        break;
    case REPLY_ARRAY:
        buf_puts(out, "[");
        for (size_t i = 0; i < reply_count(r); i++) {
            buf_puts(out, i > 0 ? " " : "");
            print_reply(reply_at(r, i), out);
        }
        buf_puts(out, "]");
        break;
    }
}

static void print(const struct world *w, enum role role, const struct reply *r, const char *error)
{
    static const char *const roles[ROLES] = {"", "producer: ", "caller: ", "worker: ", "admin: "};
    struct buf line = BUF_INIT;

    buf_printf(&line, "%lld us  %s", (long long)w->now_us, roles[role]);
    call_show(&w->call, &line);
    buf_puts(&line, "\n    -> ");
    if (r != NULL)
        print_reply(r, &line);
    else
        buf_puts(&line, error);
    (void)printf("%s\n", buf_str(&line));
    buf_done(&line);
}

/* ---- calling */

/* May a refusal have this text? ELATER_TYPE only while a foreign key is there. */
static bool is_known_refusal(const struct world *w, const char *text)
{
    if (strncmp(text, "ELATER_", 7) != 0 || strncmp(text, "ELATER_BUG", 10) == 0)
        return false;
    return w->is_disturbed || strncmp(text, "ELATER_TYPE", 11) != 0;
}

struct reply *world_ask(struct world *w, enum role role)
{
    struct err err = ERR_INIT;
    struct reply *r = arena_ask(w->has_no_roles ? ROLE_ALL : role, w->l->space, &w->call, &err);

    w->calls++;
    w->is_refused = r == NULL;
    ledger_permit(w->l);
    if (w->is_printed)
        print(w, role, r, err.text);
    if (r == NULL && !is_known_refusal(w, err.text))
        finding_break("error", "%s %s: %s", w->l->root, call_word(&w->call, 1), err.text);
    return r;
}

void world_tell(struct world *w, enum role role)
{
    reply_free(world_ask(w, role));
}

void world_judge(struct world *w)
{
    if (!w->is_disturbed)
        judge_all(w->l);
    else
        w->l->is_blurred = true;
}
