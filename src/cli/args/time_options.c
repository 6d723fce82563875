#include "cli/args/time_options.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "cli/args/when.h"
#include "cli/show/out.h"

static int64_t local_offset(int64_t utc_s)
{
    time_t seconds = (time_t)utc_s;
    struct tm tm;

    return localtime_r(&seconds, &tm) != NULL ? tm.tm_gmtoff : 0;
}

static void tell(const struct when *w, const char *text)
{
    char instant[48];

    if (w->kind == WHEN_SKIPPED)
        (void)fprintf(stderr, "later: the clocks skip '%s': it is %s\n", text,
                      out_instant(w->ms, instant));
    if (w->kind == WHEN_TWICE)
        (void)fprintf(stderr, "later: the clocks show '%s' twice: it is %s\n", text,
                      out_instant(w->ms, instant));
}

static int read_time(struct cli *cli, const char *text, char out[CLI_TIME_MAX], struct err *err)
{
    int64_t now_ms = 0;
    struct when w;

    if (when_needs_clock(text) && ask_time(&cli->server, &now_ms, err) < 0)
        return err->code != ERR_DENIED
                   ? -1
                   : err_set(err, ERR_DENIED,
                             "Redis does not tell its time (TIME): write 2030-01-31T09:00:00Z or "
                             "in 90m");
    if (when_parse(text, now_ms, local_offset, &w, err) < 0)
        return -1;
    tell(&w, text);
    if (w.kind == WHEN_SPAN)
        (void)snprintf(out, CLI_TIME_MAX, "+%lldms", (long long)w.ms);
    else
        (void)snprintf(out, CLI_TIME_MAX, "%lld", (long long)w.ms);
    return 0;
}

int time_options_read(struct cli *cli, struct err *err)
{
    const struct cli_option *o = cli->verb->options;

    tzset();
    for (size_t i = 0; o != NULL && o[i].name != NULL; i++) {
        const char *text = cli->value[i];
        char *out = cli->time_text[i];
        int64_t ms;

        if (text == NULL || o[i].arg == NULL)
            continue;
        if (strcmp(o[i].arg, "TIME") == 0 && !when_is_machine(text)) {
            if (read_time(cli, text, out, err) < 0)
                return -1;
            cli->value[i] = out;
        } else if (strcmp(o[i].arg, "D") == 0 && text_parse_duration(text, &ms) < 0 &&
                   when_parse_span(text, &ms) == 0) {
            (void)snprintf(out, CLI_TIME_MAX, "%lldms", (long long)ms);
            cli->value[i] = out;
        }
    }
    return 0;
}
