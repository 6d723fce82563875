#include "run/report.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

#define DURATION_MAX 32 /* bytes: digits and a unit; longer text is no duration */

void run_report_init(struct run_report *r)
{
    *r = (struct run_report){.retry_in_ms = -1, .result = BUF_INIT, .output = BUF_INIT};
}

void run_report_done(struct run_report *r)
{
    buf_done(&r->result);
    children_done(&r->children);
    buf_done(&r->output);
}

bool run_parse_retry_in(const char *p, size_t n, int64_t *ret_ms)
{
    char copy[DURATION_MAX + 1];
    int64_t ms;

    if (n == 0 || n > DURATION_MAX || memchr(p, '\0', n) != NULL)
        return false;
    memcpy(copy, p, n);
    copy[n] = '\0';
    if (text_parse_duration(copy, &ms) != 0 || ms > RUN_RETRY_IN_MAX_MS)
        return false;
    *ret_ms = ms;
    return true;
}

bool run_checkpoint_fits(const char *id, const char *queue, const char *p, size_t n, bool cut)
{
    bool is_long = cut || n > RUN_CHECKPOINT_BYTES;

    if (!is_long && memchr(p, '\0', n) == NULL)
        return true;
    log_warn("event=checkpoint-refused job=%s queue=%s bytes=%s%zu reason=\"%s\"", id, queue,
             cut ? ">" : "", n,
             is_long ? "a checkpoint has at most 4096 bytes" : "it has a NUL byte");
    return false;
}

void run_describe_status(const siginfo_t *st, char *out, size_t size)
{
    const char *name = sigdescr_np(st->si_status);

    if (st->si_pid == 0)
        (void)snprintf(out, size, "ended, but somebody else took its exit status");
    else if (st->si_code == CLD_EXITED)
        (void)snprintf(out, size, "exit status %d", st->si_status);
    else if (name != NULL)
        (void)snprintf(out, size, "killed by signal %d (%s)", st->si_status, name);
    else
        (void)snprintf(out, size, "killed by signal %d", st->si_status);
}

void run_describe_cause(enum run_end cause, int64_t timeout_ms, char *out, size_t size)
{
    char length[24];

    if (cause == RUN_TIMED_OUT)
        (void)snprintf(out, size, "timed out after %s", text_duration(timeout_ms, length));
    else
        text_copy(out, size, cause == RUN_CANCELLED ? "cancelled" : "stopped");
}

/* Set r->text to "why: words". why may be ""; without words (n is 0), otherwise stands for them. */
static void tell(struct run_report *r, const char *why, const char *p, size_t n,
                 const char *otherwise)
{
    CLEANUP_BUF struct buf shown = BUF_INIT;

    if (why[0] == '\0' && n == 0) {
        text_copy(r->text, sizeof(r->text), otherwise);
        return;
    }
    if (why[0] != '\0')
        buf_printf(&shown, "%s: ", why);
    if (n > 0)
        text_quote(&shown, p, n);
    else
        buf_puts(&shown, otherwise);
    text_cut(&shown, sizeof(r->text) - 1);
    text_copy(r->text, sizeof(r->text), buf_str(&shown));
}

void run_report_reason(struct run_report *r, const char *p, size_t n)
{
    if (n > 0)
        tell(r, "", p, n, "");
}

void run_report_say(struct run_report *r, enum run_end said, const char *p, size_t n,
                    enum run_end cause, const char *why)
{
    static const struct {
        int code;
        const char *text;
    } means[] = {[RUN_SAID_OK] = {0, "ok"},
                 [RUN_SAID_RETRY] = {75, "it asked for another try"},
                 [RUN_SAID_FAIL] = {1, "it failed"},
                 [RUN_SAID_DEAD] = {65, "it will never work"}};

    r->end = said;
    r->code = means[said].code;
    if (said == RUN_SAID_OK) {
        tell(r, "", NULL, 0, means[said].text);
    } else if (cause != RUN_EXITED && said != RUN_SAID_DEAD) {
        r->end = cause;
        r->code = SIGTERM;
        tell(r, why, p, n, means[said].text);
    } else {
        tell(r, "", p, n, means[said].text);
    }
}
