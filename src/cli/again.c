#include "cli/again.h"

#include <poll.h>
#include <stdio.h>

#include "cli/complain.h"

#define PAUSE_FIRST_MS 250
#define PAUSE_MAX_MS 5000

bool again_after(struct again *a, struct cli *cli, struct mono deadline, const struct err *err)
{
    int64_t left_ms = mono_until_us(mono_now(), deadline) / 1000;

    if (!a->has_begun || err->code != ERR_UNAVAILABLE || left_ms <= 0)
        return false;
    if (a->pause_ms == 0) {
        complain(cli, err);
        (void)fputs("later: goes on waiting, and tries again\n", stderr);
        a->pause_ms = PAUSE_FIRST_MS;
    } else if (a->pause_ms < PAUSE_MAX_MS) {
        a->pause_ms *= 2;
    }
    ask_disconnect(&cli->server);
    (void)poll(NULL, 0, (int)(a->pause_ms < left_ms ? a->pause_ms : left_ms));
    return true;
}

void again_well(struct again *a)
{
    a->has_begun = true;
    a->pause_ms = 0;
}
