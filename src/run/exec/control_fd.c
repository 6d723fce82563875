#include "run/exec/control_fd.h"

#include <string.h>

#include "base/log.h"

static const struct {
    const char *word;
    enum control_kind kind;
} words[] = {
    {"progress", CONTROL_PROGRESS}, {"retry-in", CONTROL_RETRY_IN},
    {"reason", CONTROL_REASON},     {"result", CONTROL_RESULT},
    {"log", CONTROL_LOG},           {"add", CONTROL_ADD},
    {"filter", CONTROL_FILTER},     {"checkpoint", CONTROL_CHECKPOINT},
};

#define WORDS (sizeof(((struct control_fd *)NULL)->words) / sizeof(struct control_word))

static enum control_kind word_kind(const char *p, size_t n)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i].word) == n && memcmp(words[i].word, p, n) == 0)
            return words[i].kind;
    return CONTROL_OTHER;
}

void control_line_parse(const char *line, size_t n, struct control_line *ret)
{
    const char *space = n > 0 ? memchr(line, ' ', n) : NULL;
    size_t word = space != NULL ? (size_t)(space - line) : n;
    size_t skip = space != NULL ? word + 1 : n;

    *ret = (struct control_line){word_kind(line, word), line + skip, n - skip, 0};
    if (ret->kind == CONTROL_RETRY_IN && !run_parse_retry_in(ret->text, ret->len, &ret->ms))
        ret->kind = CONTROL_OTHER;
}

void control_fd_init(struct control_fd *c, struct output *output, struct run_report *ret,
                     control_told_f *tell, void *arg)
{
    *c = (struct control_fd){.output = output, .ret = ret, .tell = tell, .arg = arg};
    lines_init(&c->lines, CONTROL_LINE_BYTES);
}

void control_fd_done(struct control_fd *c)
{
    lines_done(&c->lines);
    buf_done(&c->reason);
    buf_done(&c->filter);
    for (size_t i = 0; i < WORDS; i++)
        buf_done(&c->words[i].text);
}

/* What is cut off may be missed by the next job of a chain. */
static void tell_cut(struct control_fd *c)
{
    if (!c->is_result_cut)
        log_warn("event=result-cut job=%s queue=%s kept=%d", c->output->id, c->output->queue,
                 RUN_RESULT_BYTES);
    c->is_result_cut = true;
}

static void add_result(struct control_fd *c, const char *p, size_t n, bool cut)
{
    struct buf *result = &c->ret->result;
    size_t cap;

    if (c->has_result && result->len < RUN_RESULT_BYTES)
        buf_add(result, "\n", 1);
    c->has_result = true;
    cap = RUN_RESULT_BYTES - result->len;
    buf_add(result, p, n < cap ? n : cap);
    if (cut || n > cap)
        tell_cut(c);
}

static void log_other(const struct control_fd *c, const char *p, size_t n)
{
    log_debug("job=%s queue=%s stream=fd3 msg=\"not understood\" line=%.*s", c->output->id,
              c->output->queue, (int)(n < 64 ? n : 64), p);
}

static void on_payload(void *arg, const char *p, size_t n)
{
    struct control_fd *c = arg;

    children_payload(&c->ret->children, p, n);
}

static void add_child(struct control_fd *c, const struct control_line *said, bool cut)
{
    struct children *children = &c->ret->children;
    size_t len;

    if (c->is_ending)
        children_end(children, true);
    else if (children_line(children, said->text, said->len, cut, &len) == 0)
        lines_expect(&c->lines, len, on_payload);
}

static void note_word(struct control_fd *c, enum run_word word, const struct control_line *said)
{
    struct control_word *w = &c->words[word];

    buf_clear(&w->text);
    buf_add(&w->text, said->text, said->len);
    w->waits = true;
}

static void on_line(void *arg, const char *line, size_t n, bool cut)
{
    struct control_fd *c = arg;
    struct control_line said;

    if (children_end_payload(&c->ret->children, n))
        return;
    control_line_parse(line, n, &said);
    switch (said.kind) {
    case CONTROL_PROGRESS:
        note_word(c, RUN_PROGRESS, &said);
        break;
    case CONTROL_CHECKPOINT:
        if (run_checkpoint_fits(c->output->id, c->output->queue, said.text, said.len, cut))
            note_word(c, RUN_CHECKPOINT, &said);
        break;
    case CONTROL_RETRY_IN:
        c->ret->retry_in_ms = said.ms;
        break;
    case CONTROL_REASON:
        buf_clear(&c->reason);
        buf_add(&c->reason, said.text, said.len);
        break;
    case CONTROL_FILTER:
        /* What those before it have said is not why this one fails. */
        buf_clear(&c->reason);
        output_forget_error(c->output);
        c->ret->retry_in_ms = -1;
        buf_clear(&c->filter);
        buf_add(&c->filter, said.text, said.len);
        break;
    case CONTROL_RESULT:
        add_result(c, said.text, said.len, cut);
        break;
    case CONTROL_LOG:
        output_line(c->output, "log", said.text, said.len, cut);
        break;
    case CONTROL_ADD:
        add_child(c, &said, cut);
        break;
    case CONTROL_OTHER:
        log_other(c, line, n);
        break;
    }
}

void control_fd_add(struct control_fd *c, const char *p, size_t n)
{
    lines_feed(&c->lines, p, n, on_line, c);
}

static void hand_on(struct control_fd *c, enum run_word word)
{
    struct control_word *w = &c->words[word];

    if (w->waits && c->tell != NULL)
        c->tell(c->arg, word, buf_str(&w->text), w->text.len);
    w->waits = false;
}

struct mono control_fd_tick(struct control_fd *c, struct mono now)
{
    struct mono next = MONO_NEVER;

    for (size_t i = 0; i < WORDS; i++) {
        struct control_word *w = &c->words[i];

        if (!w->waits)
            continue;
        if (mono_before(now, w->at)) {
            next = mono_min(next, w->at);
            continue;
        }
        hand_on(c, (enum run_word)i);
        w->at = mono_add_ms(now, CONTROL_TELL_MS);
    }
    return next;
}

void control_fd_end(struct control_fd *c)
{
    c->is_ending = true;
    lines_end(&c->lines, on_line, c);
    children_end(&c->ret->children, false);
    for (size_t i = 0; i < WORDS; i++)
        hand_on(c, (enum run_word)i);
}
