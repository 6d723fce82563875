#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/access.h"
#include "base/buf.h"
#include "base/text.h"
#include "cli/args/args.h"
#include "cli/args/recents.h"
#include "cli/args/time_options.h"
#include "cli/help.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

#define ASIDE_MS 500           /* what is asked besides the answer holds nobody up for longer */
#define STATUS_READER_GONE 141 /* as if SIGPIPE had ended this program */

const struct cli_verb *const cli_verbs[] = {
    &cmd_add,   &cmd_show,     &cmd_explain,    &cmd_wait,     &cmd_ls,        &cmd_cancel,
    &cmd_retry, &cmd_run_now,  &cmd_reschedule, &cmd_pause,    &cmd_resume,    &cmd_quiet,
    &cmd_stats, &cmd_workers,  &cmd_limits,     &cmd_throttle, &cmd_lock,      &cmd_sem,
    &cmd_once,  &cmd_gates,    &cmd_purge,      &cmd_export,   &cmd_import,    &cmd_tail,
    &cmd_batch, &cmd_schedule, &cmd_publish,    &cmd_topic,    &cmd_broadcast, &cmd_top,
    &cmd_seen,  &cmd_find,     &cmd_health,     &cmd_fsck,     &cmd_setup,     &cmd_cli,
    NULL,
};

const struct cli_verb *cli_verb(const char *name)
{
    for (size_t i = 0; cli_verbs[i] != NULL; i++)
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    return NULL;
}

const char *cli_value(const struct cli *cli, const char *option)
{
    const struct cli_option *o = cli->verb->options;

    for (size_t i = 0; o != NULL && o[i].name != NULL; i++)
        if (strcmp(o[i].name, option) == 0)
            return cli->value[i];
    return NULL;
}

int cli_duration(const struct cli *cli, const char *option, int64_t *ret_ms, struct err *err)
{
    const char *text = cli_value(cli, option);

    if (text == NULL || text_parse_duration(text, ret_ms) == 0)
        return 0;
    return err_set(err, ERR_USAGE, "--%s %.40s is no duration: write it like 250ms 10s 5m 2h 7d",
                   option, text);
}

int cli_target(struct cli *cli, struct err *err)
{
    if (cli->has_target)
        return 0;
    if (target_find(&cli->flags, &cli->target, err) < 0)
        return -1;
    cli->has_target = true;
    if (cli->target.warning.code != ERR_NONE)
        (void)fprintf(stderr, "later: warning: %s (the rest of the file is not used)\n",
                      cli->target.warning.text);
    return 0;
}

#define FAILOVER_PAUSE_MS 100

/* While sentinels fail over, the master that they name does not answer or is none yet. */
static bool may_try_again(const struct cli *cli, const struct err *err, struct mono deadline)
{
    if (cli->target.url.sentinels[0] == '\0' || err->code != ERR_UNAVAILABLE ||
        !mono_before(mono_add_ms(mono_now(), FAILOVER_PAUSE_MS), deadline))
        return false;
    (void)poll(NULL, 0, FAILOVER_PAUSE_MS);
    return true;
}

int cli_connect(struct cli *cli, struct err *err)
{
    struct mono deadline;

    if (cli->client != NULL)
        return 0;
    if (cli_target(cli, err) < 0)
        return -1;
    deadline = mono_add_ms(mono_now(), cli->target.timeout_ms);
    do {
        cli->client = client_open(&cli->target.url, cli->target.timeout_ms, err);
    } while (cli->client == NULL && may_try_again(cli, err, deadline));
    return cli->client != NULL ? 0 : -1;
}

void cli_disconnect(struct cli *cli)
{
    client_close(cli->client);
    cli->client = NULL;
}

void cli_call_add(struct cli_call *call, const char *p, size_t n)
{
    if (call->n == CLI_CALL_MAX)
        return; /* does not happen: see CLI_OPTIONS_MAX */
    call->argv[call->n] = p;
    call->lens[call->n++] = n;
}

void cli_call_puts(struct cli_call *call, const char *s)
{
    cli_call_add(call, s, strlen(s));
}

void cli_call_options(struct cli_call *call, const struct cli *cli, const char *const *options)
{
    for (; *options != NULL; options++) {
        const char *value = cli_value(cli, *options);

        if (value == NULL)
            continue;
        cli_call_puts(call, *options);
        cli_call_puts(call, value);
    }
}

static const char *user_of(const struct target *target)
{
    return target->url.user[0] != '\0' ? target->url.user : "default";
}

/* Redis names the command, which is always FCALL: say which function was refused to whom. */
static void name_refused(const struct cli *cli, const char *function, struct err *err)
{
    if (err->code == ERR_DENIED && strstr(err->text, "(a right is missing") != NULL)
        (void)err_wrap(err, "user %s, function %s", user_of(&cli->target), function);
}

struct reply *cli_fcall(struct cli *cli, const char *function, const struct cli_call *call,
                        struct err *err)
{
    struct reply *r;

    if (cli_connect(cli, err) < 0)
        return NULL;
    r = client_fcall(cli->client, cli->target.ns, function, call->n, call->argv, call->lens, err);
    if (r == NULL)
        name_refused(cli, function, err);
    return r;
}

struct reply *cli_ask(struct cli *cli, const char *function, const struct cli_call *call,
                      struct err *err)
{
    struct reply *r;

    if (cli_connect(cli, err) < 0 || client_fcall_send(cli->client, cli->target.ns, function,
                                                       call->n, call->argv, call->lens, err) < 0)
        return NULL;
    r = client_answer(cli->client, err);
    if (r == NULL)
        name_refused(cli, function, err);
    return r;
}

struct reply *cli_ask_aside(struct cli *cli, const char *function, const struct cli_call *call)
{
    struct err ignored = ERR_INIT;
    struct reply *r;

    if (cli->client == NULL)
        return NULL;
    (void)out_flush();
    if (cli->target.timeout_ms > ASIDE_MS)
        client_set_timeout(cli->client, ASIDE_MS);
    r = cli_ask(cli, function, call, &ignored);
    if (client_is_broken(cli->client))
        cli_disconnect(cli);
    else
        client_set_timeout(cli->client, cli->target.timeout_ms);
    return r;
}

bool cli_lacks_function(const struct err *err)
{
    return strstr(err->text, "Function not found") != NULL;
}

struct client *cli_subscribe(struct cli *cli, const char *channel, struct err *err)
{
    CLEANUP_BUF struct buf name = BUF_INIT;
    const char *argv[2] = {"SUBSCRIBE", NULL};
    struct client *ears;
    struct reply *r;
    struct url url;

    if (cli_connect(cli, err) < 0)
        return NULL;
    /* A host name may stand for several servers: subscribe at the one that gets our calls. */
    client_get_url(cli->client, &url);
    ears = client_open(&url, cli->target.timeout_ms, err);
    explicit_bzero(&url, sizeof(url));
    if (ears == NULL)
        return NULL;
    buf_printf(&name, "later:{%s}:%s", cli->target.ns, channel);
    argv[1] = buf_str(&name);
    r = client_call(ears, 2, argv, NULL, err);
    if (r == NULL) {
        client_close(ears);
        return NULL;
    }
    reply_free(r);
    return ears;
}

int cli_ask_time(struct cli *cli, int64_t *ret_ms, struct err *err)
{
    static const char *const ask[] = {"TIME"};
    struct reply *r;
    int64_t seconds;

    if (cli_connect(cli, err) < 0 || (r = client_call(cli->client, 1, ask, NULL, err)) == NULL)
        return -1;
    seconds = reply_int(reply_at(r, 0));
    *ret_ms = seconds > 0 && seconds < INT64_MAX / 2000
                  ? seconds * 1000 + reply_int(reply_at(r, 1)) / 1000
                  : 0;
    reply_free(r);
    return *ret_ms > 0 ? 0 : err_set(err, ERR_DATA, "the answer to TIME is no time");
}

int64_t cli_now_ms(struct cli *cli)
{
    struct err ignored = ERR_INIT;
    int64_t ms;

    return cli_ask_time(cli, &ms, &ignored) == 0 ? ms : 0;
}

bool cli_is_refusal(const struct err *err, const char *code)
{
    size_t n = strlen(code);

    return err->code == ERR_REFUSED && strncmp(err->text, code, n) == 0 &&
           (err->text[n] == ' ' || err->text[n] == '\0');
}

int cli_status(const struct err *err)
{
    static const struct {
        const char *code;
        int status;
    } refusals[] = {
        {"ELATER_NOJOB", 66},   {"ELATER_WORKER", 66},     {"ELATER_FULL", 75},
        {"ELATER_ARGS", 65},    {"ELATER_QUEUE", 65},      {"ELATER_OPTION", 65},
        {"ELATER_TIME", 65},    {"ELATER_SIZE", 65},       {"ELATER_KEY", 65},
        {"ELATER_TOKEN", 65},   {"ELATER_ROOT", 65},       {"ELATER_BATCH", 65},
        {"ELATER_NOBATCH", 66}, {"ELATER_NOSCHEDULE", 66}, {"ELATER_SCHEDULE", 65},
        {"ELATER_TOPIC", 65},   {"ELATER_GATE", 65},       {"ELATER_LIMIT", 65},
        {"ELATER_SEEN", 65},    {"ELATER_BUG", 70},
    };

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (cli_is_refusal(err, refusals[i].code))
            return refusals[i].status;
    return err_exit_status(err);
}

/* Write a text of the library with the verbs of this command in the place of its functions: a cure
 * that names later_limit_set is none for who has a shell. */
static void put_with_verbs(struct buf *line, const char *text)
{
    static const struct {
        const char *function, *verb;
    } words[] = {
        {"later_limit_set", "later limits set"}, {"later_schedule_set", "later schedule add"},
        {"later_batch", "later batch add"},      {"later_retry", "later retry"},
        {"later_run_now", "later run-now"},      {"later_seen_del", "later seen rm"},
    };
    const char *at = strstr(text, "later_");
    size_t n = at != NULL ? strspn(at, "abcdefghijklmnopqrstuvwxyz_") : 0;

    text_escape(line, text, at != NULL ? (size_t)(at - text) : strlen(text));
    if (at == NULL)
        return;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i].function) == n && strncmp(words[i].function, at, n) == 0) {
            buf_puts(line, words[i].verb);
            at += n;
            break;
        }
    }
    text_escape(line, at, strlen(at));
}

/* Write "ELATER_X what" as "what [ELATER_X]": the words are for people, the code for searching. */
static void put_refusal(struct buf *line, const char *text)
{
    size_t code = strcspn(text, " ");

    if (strncmp(text, "ELATER_", 7) != 0 || text[code] == '\0') {
        text_escape(line, text, strlen(text));
        return;
    }
    put_with_verbs(line, text + code + 1);
    buf_puts(line, " [");
    text_escape(line, text, code);
    buf_puts(line, "]");
}

/* Write the server with the source of its name, who we are to it if that is what it is about, then
 * the text without the client's own prefix. */
static void put_server_error(struct buf *line, const struct target *target, const char *text)
{
    CLEANUP_BUF struct buf server = BUF_INIT;
    char where[320];
    size_t n = strlen(url_show(&target->url, where));

    target_show(target, &server);
    text_escape(line, server.data, server.len);
    buf_puts(line, ": ");
    if (strncmp(text, where, n) == 0 && strncmp(text + n, ": ", 2) == 0)
        text += n + 2;
    if (strncmp(text, "user ", 5) != 0 &&
        (strstr(text, "NOPERM ") != NULL || strstr(text, "WRONGPASS ") != NULL)) {
        buf_puts(line, "user ");
        text_escape(line, user_of(target), strlen(user_of(target)));
        buf_puts(line, ": ");
    }
    text_escape(line, text, strlen(text));
}

/* What helps who cannot connect: the server is not there, or its socket is not for this user. */
static void put_connect_cure(struct buf *line, const struct url *url)
{
    CLEANUP_BUF struct buf cure = BUF_INIT;

    if (url->is_unix)
        access_cure(url->host, R_OK | W_OK, &cure);
    if (cure.len > 0)
        buf_printf(line, ": %s", buf_str(&cure));
    else
        buf_puts(line, "\nlater: start that server, or name another one with --redis URL, "
                       "LATER_REDIS_URL or a configuration file");
}

void cli_complain(const struct cli *cli, const struct err *err)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    char where[320] = "";

    /* On a terminal, the output so far must stand before the error. */
    (void)out_flush();
    buf_puts(&line, "later: ");
    if (err->code == ERR_REFUSED)
        put_refusal(&line, err->text);
    else if (cli->has_target &&
             (err->code == ERR_UNAVAILABLE || err->code == ERR_DENIED || err->code == ERR_DATA))
        put_server_error(&line, &cli->target, err->text);
    else
        text_escape(&line, err->text, strlen(err->text));
    if (cli_is_refusal(err, "ELATER_NOJOB") || cli_is_refusal(err, "ELATER_WORKER")) {
        buf_printf(&line, ", namespace %s, ", cli->target.ns);
        target_show(&cli->target, &line);
    }
    if (cli->has_target)
        (void)url_show(&cli->target.url, where);
    if (cli->has_target && cli->client == NULL && err->code == ERR_UNAVAILABLE &&
        strncmp(err->text, where, strlen(where)) == 0)
        put_connect_cure(&line, &cli->target.url);
    (void)fprintf(stderr, "%s\n", buf_str(&line));
}

/* A script that reads JSON Lines gets each failure as an object, too. */
static void print_failure(const char *operand, const struct err *err)
{
    json_t *line = json_object();

    json_put_text(line, "id", operand, strlen(operand));
    json_put_text(line, "status", "failed", 6);
    json_put_text(line, "error", err->text, strlen(err->text));
    json_print(line);
}

int cli_each(struct cli *cli, int (*one)(struct cli *cli, const char *operand, struct err *err))
{
    int status = 0;

    for (int i = 0; i < cli->argc; i++) {
        struct err err = ERR_INIT;

        if (one(cli, cli->argv[i], &err) == 0)
            continue;
        cli_complain(cli, &err);
        if (cli->json)
            print_failure(cli->argv[i], &err);
        if (status == 0)
            status = cli_status(&err);
        if (err.code == ERR_UNAVAILABLE || err.code == ERR_DENIED)
            break;
    }
    return status;
}

/* What the command has done is done, and its answer is lost: the begin of it goes where it can be
 * read, such as the id of a job. */
static void tell_lost(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    const char *lost;
    size_t n, all = out_lost(&lost, &n);

    for (size_t from = 0, line; from < n; from += line + 1) {
        const char *end = memchr(lost + from, '\n', n - from);

        line = end != NULL ? (size_t)(end - lost) - from : n - from;
        text_escape(&text, lost + from, line);
        buf_puts(&text, "\n");
    }
    (void)fprintf(stderr, "later: not written (%zu bytes%s):\n%s", all,
                  all > n ? ", the begin of them" : "", buf_str(&text));
}

/* Output that could not be written makes the command fail. */
static int finish(struct cli *cli, int status)
{
    struct err err = ERR_INIT;

    cli_disconnect(cli);
    for (size_t i = 0; i < CLI_OPTIONS_MAX; i++)
        free(cli->joined[i]);
    free(cli->recent);
    if (out_finish(&err) == 0)
        return status;
    if (err.errnum == EPIPE)
        return STATUS_READER_GONE;
    cli_complain(cli, &err);
    tell_lost();
    return status != 0 ? status : cli_status(&err);
}

int cli_main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct cli cli = {0};
    int status;

    out_init();
    switch (args_parse(&cli, argc, argv, &err)) {
    case ARGS_RUN:
        status = time_options_read(&cli, &err) < 0 || recents_read(&cli, &err) < 0
                     ? -1
                     : cli.verb->run(&cli, &err);
        break;
    case ARGS_HELP:
        status = cli.verb != NULL ? help_verb(cli.verb) : help_all();
        break;
    case ARGS_VERSION:
        status = help_version();
        break;
    case ARGS_BAD:
    default:
        status = -1;
    }
    if (status < 0) {
        cli_complain(&cli, &err);
        status = cli_status(&err);
    }
    return finish(&cli, status);
}
