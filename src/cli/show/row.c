#include "cli/show/row.h"

#include <fnmatch.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/show/groups.h"

/* The reason as it is, as `ls --by reason` shows it, or as a pattern. */
static bool has_reason(const struct reply *row, const char *pattern)
{
    CLEANUP_BUF struct buf text = BUF_INIT, folded = BUF_INIT;
    struct outcome outcome;

    if (job_row_outcome(row, &outcome) < 0)
        return false;
    buf_add(&text, outcome.reason, outcome.reason_len);
    groups_fold(outcome.reason, outcome.reason_len, &folded);
    return strcmp(buf_str(&text), pattern) == 0 || strcmp(buf_str(&folded), pattern) == 0 ||
           fnmatch(pattern, buf_str(&text), 0) == 0;
}

int row_filter_read(const struct cli *cli, struct row_filter *ret, struct err *err)
{
    ret->key = cli_value(cli, "key");
    ret->reason = cli_value(cli, "reason");
    /* An unset variable of a script must not mean every job without a key. */
    if (ret->key != NULL && ret->key[0] == '\0')
        return err_set(err, ERR_USAGE, "--key is empty: give the key of the jobs that are meant");
    return 0;
}

bool row_is_wanted(const struct row_filter *filter, const struct reply *row)
{
    const struct reply *key = reply_at(row, ROW_KEY);

    if (filter->key != NULL && !reply_is(key, filter->key))
        return false;
    return filter->reason == NULL || has_reason(row, filter->reason);
}
