#include "cli/bulk/retry_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/listing.h"
#include "base/buf.h"
#include "cli/args/queue_name.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/row.h"

#define ID_BYTES 13 /* with its NUL */

/*
 * Collect all ids before the first retry: a retry removes its job from the very set that the cursor
 * counts in. Also, retrying jobs that die meanwhile would never end if a handler fails at once.
 */
static int collect(struct cli *cli, const struct retry_order *order, struct buf *ids,
                   struct err *err)
{
    struct listing list;

    listing_init(&list, order->queue, "dead");
    while (!list.is_over) {
        struct reply *r = listing_next(&list, &cli->server, LISTING_PAGE, err);

        if (r == NULL)
            return -1;
        for (size_t i = 1; i < reply_count(r); i++) {
            const struct reply *id = reply_at(reply_at(r, i), ROW_ID);

            if (reply_len(id) == ID_BYTES - 1 && row_is_wanted(&order->filter, reply_at(r, i)))
                buf_add(ids, reply_str(id), ID_BYTES);
        }
        reply_free(r);
    }
    return 0;
}

/* It is no failure if somebody else retried, cancelled or started the job meanwhile. */
static bool is_overtaken(const struct err *err)
{
    return ask_is_refusal(err, "ELATER_STATE") || ask_is_refusal(err, "ELATER_NOJOB");
}

/* It is due in so many ms. 1: retried. 0: it was not dead any more. -1 with err. */
static int retry(struct cli *cli, const struct retry_order *order, const char *id, int64_t ms,
                 struct err *err)
{
    char when[32];
    struct reply *r;

    (void)snprintf(when, sizeof(when), "+%lldms", (long long)ms);
    r = ask_words(&cli->server, err, "later_retry", id, when,
                  order->is_from_start ? "from_start" : NULL, NULL);
    if (r == NULL)
        return is_overtaken(err) ? 0 : -1;
    reply_free(r);
    return 1;
}

static void show(const struct cli *cli, const char *queue, size_t retried)
{
    if (cli->json) {
        json_t *line = json_object();

        json_put_text(line, "queue", queue, strlen(queue));
        json_put_int(line, "retried", (int64_t)retried);
        json_print(line);
        return;
    }
    out_printf("%zu %s retried\n", retried, retried == 1 ? "job" : "jobs");
}

int retry_all(struct cli *cli, const struct retry_order *order, struct err *err)
{
    CLEANUP_BUF struct buf ids = BUF_INIT;
    size_t n, retried = 0;
    int result = 0;

    if (collect(cli, order, &ids, err) < 0)
        return -1;
    n = ids.len / ID_BYTES;
    if (n == 0 && queue_name_check(cli, order->queue, err) < 0)
        return -1;
    if (n == 0 && (order->filter.reason != NULL || order->filter.key != NULL))
        return err_set(err, ERR_INPUT,
                       "no dead job of queue %.64s has that %s: later ls %.64s --by reason lists "
                       "what there is",
                       order->queue, order->filter.reason != NULL ? "reason" : "key", order->queue);
    for (size_t i = 0; i < n && result >= 0; i++) {
        /* In floating point: the product of spread and i could overflow. */
        double share = (double)i / (double)n;

        result = retry(cli, order, ids.data + i * ID_BYTES,
                       (int64_t)((double)order->spread_ms * share), err);
        retried += result > 0;
    }
    show(cli, order->queue, retried);
    return result < 0 ? -1 : 0;
}
