#include "worker/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "run/process/pidstat.h"

static size_t read_small(const char *path, char *out, size_t cap)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, cap - 1) : -1;

    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return strlen(out);
}

void identity_read(struct identity *id)
{
    unsigned char random[16] = {0};

    memset(id, 0, sizeof(*id));
    if (gethostname(id->host, sizeof(id->host) - 1) < 0 || id->host[0] == '\0')
        (void)snprintf(id->host, sizeof(id->host), "unknown");
    (void)read_small("/proc/sys/kernel/random/boot_id", id->boot, sizeof(id->boot));
    origin_process_read(&id->process);
    (void)getrandom(random, sizeof(random), 0);
    for (size_t i = 0; i < sizeof(random); i++)
        (void)snprintf(id->instance + 2 * i, 3, "%02x", random[i]);
}

enum identity_sight identity_see(const struct identity *me, const struct store_peer *peer)
{
    int64_t pid, start;
    struct pidstat p;

    if (me->boot[0] == '\0' || me->process.pidns[0] == '\0')
        return IDENTITY_ELSEWHERE;
    if (strcmp(me->host, peer->host) != 0 || strcmp(me->boot, peer->boot) != 0 ||
        strcmp(me->process.pidns, peer->pidns) != 0)
        return IDENTITY_ELSEWHERE;
    if (text_parse_int(peer->pid, 1, INT32_MAX, &pid) < 0 ||
        text_parse_int(peer->pstart, 0, INT64_MAX, &start) < 0)
        return IDENTITY_ELSEWHERE;
    /* A process that is not seen may still live: /proc may hide it (hidepid), or no descriptor is
     * left to read it. */
    if (pidstat_read((pid_t)pid, &p) < 0)
        return kill((pid_t)pid, 0) < 0 && errno == ESRCH ? IDENTITY_GONE : IDENTITY_ELSEWHERE;
    if (p.start != start || pidstat_is_dead(&p))
        return IDENTITY_GONE;
    return p.state == 'T' || p.state == 't' ? IDENTITY_STOPPED : IDENTITY_LIVES;
}

bool identity_is_gone(const struct identity *me, const struct store_peer *peer)
{
    return identity_see(me, peer) == IDENTITY_GONE;
}

bool identity_is_of_other_boot(const struct identity *me, const struct store_peer *peer)
{
    return me->boot[0] != '\0' && peer->boot[0] != '\0' && strcmp(me->host, peer->host) == 0 &&
           strcmp(me->boot, peer->boot) != 0;
}
