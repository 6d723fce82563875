#include "cli/args/recents.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/show/out.h"

#define WHO 320 /* bytes, with the NUL */

/* By its number: to look the name up takes longer than the call, and most of what it takes are
 * allocations inside libc, which does not survive when one of them fails. */
void recents_who(char *out, size_t cap)
{
    char host[65] = "";

    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(out, cap, "%lu@%s", (unsigned long)geteuid(), host);
    for (char *c = out; *c != '\0'; c++) {
        if ((unsigned char)*c <= ' ' || *c == '\x7f')
            *c = '_';
    }
}

void recents_note(struct cli *cli, const char *const *ids, size_t n)
{
    char who[WHO];

    if (cli->server.target.shards > 0)
        return;
    (void)out_flush();
    recents_who(who, sizeof(who));
    /* A call has fewer arguments than a list has ids. */
    for (size_t from = 0; from < n; from += ASK_CALL_MAX - 1) {
        struct ask_call call = {.n = 0};

        ask_call_puts(&call, who);
        for (size_t i = from; i < n && call.n < ASK_CALL_MAX; i++)
            ask_call_puts(&call, ids[i]);
        reply_free(ask_aside(&cli->server, "later_v1_recent", &call));
    }
}

void recents_note_rows(struct cli *cli, const struct reply *r, size_t from, size_t column)
{
    const char *ids[RECENTS_MAX];
    size_t n = 0, rows = reply_count(r);

    if (rows > from + RECENTS_MAX)
        from = rows - RECENTS_MAX;
    for (size_t i = from; i < rows; i++)
        ids[n++] = reply_str(reply_at(reply_at(r, i), column));
    recents_note(cli, ids, n);
}

/* @ is 1, @N is N. 0, or -1 with code USAGE. */
static int read_place(const char *operand, int64_t *ret, struct err *err)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;

    *ret = 1;
    if (operand[1] == '\0' || (operand[1] != '0' && strlen(operand) < 12 &&
                               text_parse_int(operand + 1, 1, INT64_MAX, ret) == 0))
        return 0;
    text_escape(&safe, operand, strlen(operand));
    text_cut(&safe, 48);
    return err_set(err, ERR_USAGE,
                   "'%s' names no job: @ is the one that you added last, @2 the one before, up to "
                   "@%d; a unique key is QUEUE@KEY",
                   buf_str(&safe), RECENTS_MAX);
}

static int refuse(int64_t place, size_t n, struct err *err)
{
    char who[WHO];

    recents_who(who, sizeof(who));
    if (place > RECENTS_MAX)
        return err_set(err, ERR_INPUT, "@%lld: only the last %d jobs of a user are remembered",
                       (long long)place, RECENTS_MAX);
    if (n == 0)
        return err_set(err, ERR_INPUT,
                       "@: %.200s has added no job here with later in the last 30 days", who);
    return err_set(err, ERR_INPUT,
                   "@%lld: %.200s has added only %zu job%s here in the last 30 days",
                   (long long)place, who, n, n == 1 ? "" : "s");
}

/* The list of this user; NULL with err. */
static struct reply *ask(struct cli *cli, struct err *err)
{
    char who[WHO];

    recents_who(who, sizeof(who));
    return ask_words(&cli->server, err, "later_v1_recents", who, NULL);
}

/* The id at this place. 0 or -1. */
static int find(const struct reply *list, int64_t place, char id[RECENTS_ID], struct err *err)
{
    size_t n = reply_count(list);
    const struct reply *found;

    if (place > RECENTS_MAX || (size_t)place > n)
        return refuse(place, n, err);
    found = reply_at(list, (size_t)place - 1);
    if (reply_len(found) >= RECENTS_ID)
        return err_set(err, ERR_DATA, "the list of your jobs has something that is no job id");
    text_copy(id, RECENTS_ID, reply_str(found));
    return 0;
}

static bool takes_ids(const struct cli_verb *verb)
{
    return strncmp(verb->synopsis, "ID", 2) == 0 && !isalpha((unsigned char)verb->synopsis[2]);
}

static int need_whole(struct cli *cli, struct err *err)
{
    if (ask_target(&cli->server, err) < 0)
        return -1;
    return cli->server.target.shards == 0
               ? 0
               : err_set(err, ERR_USAGE,
                         "@: the jobs that you added last are not remembered where a namespace is "
                         "cut into shards: write the id");
}

int recents_read(struct cli *cli, struct err *err)
{
    struct reply *list = NULL;
    int rc = 0;

    if (!takes_ids(cli->verb))
        return 0;
    for (int i = 0; rc == 0 && i < cli->argc; i++) {
        int64_t place;
        char *id;

        if (cli->argv[i][0] != '@')
            continue;
        rc = need_whole(cli, err) < 0 ? -1 : read_place(cli->argv[i], &place, err);
        if (rc == 0 && list == NULL && (list = ask(cli, err)) == NULL)
            rc = -1;
        if (cli->recent == NULL)
            cli->recent = mem_new((size_t)cli->argc * RECENTS_ID);
        id = cli->recent + (size_t)i * RECENTS_ID;
        if (rc == 0 && (rc = find(list, place, id, err)) == 0)
            cli->argv[i] = id;
    }
    reply_free(list);
    return rc;
}
