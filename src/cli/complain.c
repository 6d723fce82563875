#include "cli/complain.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/access.h"
#include "base/buf.h"
#include "base/text.h"
#include "cli/show/out.h"

int complain_status(const struct err *err)
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
        {"ELATER_SEEN", 65},    {"ELATER_NOBULK", 66},     {"ELATER_BUG", 70},
    };

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (ask_is_refusal(err, refusals[i].code))
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
        text_escape(line, target_user(target), strlen(target_user(target)));
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

void complain(const struct cli *cli, const struct err *err)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    char where[320] = "";

    /* On a terminal, the output so far must stand before the error. */
    (void)out_flush();
    buf_puts(&line, "later: ");
    if (err->code == ERR_REFUSED)
        put_refusal(&line, err->text);
    else if (cli->server.has_target &&
             (err->code == ERR_UNAVAILABLE || err->code == ERR_DENIED || err->code == ERR_DATA))
        put_server_error(&line, &cli->server.target, err->text);
    else
        text_escape(&line, err->text, strlen(err->text));
    if (ask_is_refusal(err, "ELATER_NOJOB") || ask_is_refusal(err, "ELATER_WORKER")) {
        buf_printf(&line, ", namespace %s, ", cli->server.target.ns);
        target_show(&cli->server.target, &line);
    }
    if (cli->server.has_target)
        (void)url_show(&cli->server.target.url, where);
    if (cli->server.has_target && cli->server.client == NULL && err->code == ERR_UNAVAILABLE &&
        strncmp(err->text, where, strlen(where)) == 0)
        put_connect_cure(&line, &cli->server.target.url);
    (void)fprintf(stderr, "%s\n", buf_str(&line));
}
