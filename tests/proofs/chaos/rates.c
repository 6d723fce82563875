#include "rates.h"

#include <string.h>

#include "finding.h"

#define STARTS 4096

enum { GCRA, SLIDING, FIXED }; /* the indexes of `algorithms` in moves_gates.c */

static struct passed {
    int64_t at_us[STARTS];
    int n;
    int64_t free;
} passed[SPACES][LIMITED];

void rates_clear(void)
{
    for (int s = 0; s < SPACES; s++)
        for (int i = 0; i < LIMITED; i++)
            passed[s][i].n = 0, passed[s][i].free = 0;
}

void rates_change(const struct ledger *l, int limited, int64_t granted)
{
    passed[l->space][limited].n = 0;
    passed[l->space][limited].free = granted;
}

void rates_set_back(void)
{
    for (int s = 0; s < SPACES; s++)
        for (int i = 0; i < LIMITED; i++)
            passed[s][i].n = 0;
}

static bool is_over(const struct limit *limit, int64_t us, int n, int64_t from, int64_t to)
{
    int64_t per_us = limit->per_ms * 1000;

    if (limit->algorithm == SLIDING)
        return us < per_us && n > limit->n;
    if (limit->algorithm == FIXED)
        return from / per_us == to / per_us && n > limit->n;
    return (double)n > (double)limit->burst + (double)us * (double)limit->n / (double)per_us + 1e-3;
}

static void check(const struct ledger *l, int limited, const struct passed *p)
{
    const struct limit *limit = ledger_limit(l, limited);
    int64_t now = p->at_us[p->n - 1];

    for (int i = 0; i < p->n; i++)
        if (is_over(limit, now - p->at_us[i], p->n - i, p->at_us[i], now)) {
            finding_break(
                "rate", "%s %d starts passed rate:%s (%lld in %lld ms, burst %lld) in %lld us",
                l->root, p->n - i, names_limited[limited], (long long)limit->n,
                (long long)limit->per_ms, (long long)limit->burst, (long long)(now - p->at_us[i]));
            return;
        }
}

void rates_pass(const struct ledger *l, int limited, int n, int64_t now_us)
{
    struct passed *p = &passed[l->space][limited];

    for (int i = 0; i < n; i++) {
        if (p->free > 0) {
            p->free--;
            continue;
        }
        if (p->n == STARTS) {
            memmove(p->at_us, p->at_us + STARTS / 2, sizeof(p->at_us) / 2);
            p->n = STARTS / 2;
        }
        p->at_us[p->n++] = now_us;
    }
    if (p->n > 0 && ledger_limit(l, limited)->kind == LIMIT_RATE)
        check(l, limited, p);
}
