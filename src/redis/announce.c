#include "redis/announce.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

/* Never freed: threads that connect may ask until the process ends. */
static char **announced;

static int check_pair(const char *pair, struct err *err)
{
    const char *to = strchr(pair, '=');
    CLEANUP_FREE char *from = to != NULL ? mem_dup(pair, (size_t)(to - pair)) : NULL;
    const char *sides[] = {from, to != NULL ? to + 1 : NULL};
    struct url unused;

    for (size_t i = 0; i < 2; i++) {
        const char *at = sides[i];

        if (at == NULL || url_next_host(&at, 0, &unused, err) < 0 || *at != '\0' ||
            unused.port == 0)
            return err_set(err, ERR_CONFIG,
                           "announce '%.80s' is not HOST:PORT (as the sentinels or the cluster say "
                           "it), and HOST:PORT (as it is reached from here)",
                           pair);
    }
    return 0;
}

int announce_use(char *const *pairs, struct err *err)
{
    for (size_t i = 0; pairs != NULL && pairs[i] != NULL; i++)
        if (check_pair(pairs[i], err) < 0)
            return -1;
    mem_free_list(announced);
    announced = pairs != NULL ? mem_dup_list(pairs, 0, NULL) : NULL;
    return 0;
}

const char *announce_place(const struct url *url, char out[ANNOUNCE_PLACE_MAX])
{
    (void)snprintf(out, ANNOUNCE_PLACE_MAX, strchr(url->host, ':') != NULL ? "[%s]:%d" : "%s:%d",
                   url->host, url->port);
    return out;
}

void announce_translate(struct url *url)
{
    char place[ANNOUNCE_PLACE_MAX];
    struct err ignored = ERR_INIT;

    (void)announce_place(url, place);
    for (char **pair = announced; pair != NULL && *pair != NULL; pair++) {
        size_t n = strcspn(*pair, "=");
        const char *to = *pair + n + 1;

        if (strlen(place) != n || memcmp(place, *pair, n) != 0)
            continue;
        (void)url_next_host(&to, 0, url, &ignored); /* was checked */
        return;
    }
}
