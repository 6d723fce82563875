#include "cli/args/payload.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PAYLOAD_MAX (512UL << 20) /* Redis' limit for one argument */
#define READ_STEP (64UL << 10)

/* Read standard input to its end, byte for byte. */
static int read_stdin(struct buf *payload, struct err *err)
{
    for (;;) {
        char *end = buf_reserve(payload, READ_STEP);
        ssize_t n = read(STDIN_FILENO, end, READ_STEP);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, errno, "cannot read the payload from standard input");
        if (n == 0)
            return 0;
        payload->len += (size_t)n;
        if (payload->len > PAYLOAD_MAX)
            return err_set(err, ERR_DATA, "the payload is larger than 512 MiB");
    }
}

int payload_take(const struct cli *cli, int at, struct buf *payload, struct err *err)
{
    const char *given = cli->argc > at ? cli->argv[at] : NULL;

    if (given != NULL && strcmp(given, "-") != 0) {
        buf_puts(payload, given);
        return 0;
    }
    if (given == NULL && isatty(STDIN_FILENO))
        return err_set(err, ERR_USAGE,
                       "the payload is missing: write it at the end, or - and type it");
    return read_stdin(payload, err);
}
