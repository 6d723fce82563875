/*
 * What an overview asks, in the model: pages of queues, dead jobs by reason, when jobs are due.
 */
#include "model_gates.h"

#include <stdio.h>
#include <string.h>

void model_queue_page(struct model *m, const char *after, int count, struct buf *out)
{
    static const int sorted[MODEL_QUEUES] = {3, 2, 0, 1}; /* 0 Q-7_x mail sms */
    int shown[MODEL_QUEUES], n = 0;
    struct model_job *row[MODEL_JOBS];

    for (int i = 0; i < MODEL_QUEUES && n < count; i++)
        if (m->queue[sorted[i]].is_known && strcmp(m->queue[sorted[i]].name, after) > 0)
            shown[n++] = sorted[i];
    buf_puts(out, "[ ");
    out_int(out, MODEL_MS(m));
    out_text(out, n == count ? m->queue[shown[n - 1]].name : "");
    buf_puts(out, "[ ");
    for (int i = 0; i < n; i++)
        model_stats_of(m, shown[i], out);
    buf_puts(out, "] [ ");
    for (int i = 0; i < n; i++) {
        out_text(out, "");
        out_int(out, (int64_t)model_jobs(m, shown[i], JOB_PARKED, -1, row));
    }
    buf_puts(out, "] ] ");
}

/* ---- reasons */

struct reason {
    char text[600];
    int64_t count, first, last;
    const char *id;
    struct buf deaths; /* "STEP JOBS " of each run of deaths in one step */
    int64_t step, in_step;
};

/* Write the run of deaths that ends here. */
static void end_run(struct reason *r)
{
    if (r->in_step > 0) {
        out_int(&r->deaths, r->step);
        out_int(&r->deaths, r->in_step);
    }
    r->in_step = 0;
}

static void count_death(struct reason *r, int64_t step)
{
    if (r->in_step > 0 && r->step != step)
        end_run(r);
    r->step = step;
    r->in_step++;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool ends_in(const char *text, size_t n, const char *word)
{
    return n >= strlen(word) && memcmp(text + n - strlen(word), word, strlen(word)) == 0;
}

/* Each number of the text becomes a *, but one behind these words. */
static void fold(const char *text, size_t n, char *to)
{
    bool stays = false;

    for (size_t i = 0; i < n; i++) {
        bool begins = is_digit(text[i]) && (i == 0 || !is_digit(text[i - 1]));

        if (begins)
            stays = ends_in(text, i, "exit status ") || ends_in(text, i, "signal ");
        if (!is_digit(text[i]) || stays)
            *to++ = text[i];
        else if (begins)
            *to++ = '*';
    }
    *to = '\0';
}

/* Jobs come the last first. Returns how many reasons there are. */
static size_t count_reason(struct reason *list, size_t n, const struct model_job *j, int64_t from,
                           int64_t step)
{
    long long when;
    int at = 0;
    char text[600];
    size_t i = 0;

    if (sscanf(j->error, "%*s %*d %lld %*d%n", &when, &at) != 1 || at == 0)
        return n;
    fold(j->error + at + 1, strcspn(j->error + at + 1, "\n"), text);
    while (i < n && strcmp(list[i].text, text) != 0)
        i++;
    if (i == n) {
        list[i] = (struct reason){.first = when, .last = when, .id = j->id, .deaths = BUF_INIT};
        (void)snprintf(list[i].text, sizeof(list[i].text), "%s", text);
        n++;
    }
    list[i].count++;
    list[i].first = when < list[i].first ? when : list[i].first;
    if (when > list[i].last) {
        list[i].last = when;
        list[i].id = j->id;
    }
    if (from >= 0 && when >= from)
        count_death(&list[i], (when - from) / step);
    return n;
}

void model_reasons(struct model *m, int q, int count, int64_t from, int64_t step, struct buf *out)
{
    static struct reason list[MODEL_JOBS];
    struct model_job *row[MODEL_JOBS];
    size_t n = model_jobs(m, q, JOB_DEAD, -1, row), seen = n < (size_t)count ? n : (size_t)count;
    size_t reasons = 0;
    char next[64] = "";

    for (size_t i = 0; i < seen; i++)
        reasons = count_reason(list, reasons, row[n - 1 - i], from, step);
    if (seen < n)
        (void)snprintf(next, sizeof(next), "%lld %s", (long long)row[n - seen]->score,
                       row[n - seen]->id);
    buf_puts(out, "[ ");
    out_text(out, next);
    out_int(out, (int64_t)seen);
    for (size_t i = 0; i < reasons; i++) {
        buf_puts(out, "[ ");
        out_text(out, list[i].text);
        out_int(out, list[i].count);
        out_int(out, list[i].first);
        out_int(out, list[i].last);
        out_text(out, list[i].id);
        end_run(&list[i]);
        if (from >= 0)
            buf_printf(out, "[ %s] ", buf_str(&list[i].deaths));
        buf_done(&list[i].deaths);
        buf_puts(out, "] ");
    }
    buf_puts(out, "] ");
}

/* ---- due times */

bool model_has_large_raw(struct model *m, int q)
{
    struct model_raw *raw[MODEL_RAWS];
    size_t n = model_raws(m, q, raw);

    for (size_t i = 0; i < n; i++)
        if (raw[i]->member.n > 49152)
            return true;
    return false;
}

void model_ahead(struct model *m, int q, int64_t from, int64_t step, int steps, struct buf *out)
{
    struct model_job *row[MODEL_JOBS];
    struct model_raw *raw[MODEL_RAWS];
    size_t jobs = model_jobs(m, q, JOB_WAITING, -1, row), raws = model_raws(m, q, raw);

    buf_puts(out, "[ ");
    for (int i = 0; i < steps; i++, from += step) {
        int64_t n = 0;

        for (size_t k = 0; k < jobs; k++)
            n += row[k]->score >= from && row[k]->score < from + step;
        for (size_t k = 0; k < raws; k++)
            n += raw[k]->score >= (double)from && raw[k]->score < (double)(from + step);
        out_int(out, n);
    }
    buf_puts(out, "] ");
}
