#include "base/log_journal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/text.h"

static const struct sockaddr_un journal = {AF_UNIX, "/run/systemd/journal/socket"};
static int sock = -1;

static const struct {
    const char *event, *key, *value, *id;
} alerts[] = {
#define ALERT(event, key, value, id) {event, key, value, id},
#include "base/log_alerts.def"
#undef ALERT
};

const char *log_journal_id(const struct log_event *r)
{
    const struct log_field *event = log_event_find(r, "event"), *f;

    for (size_t i = 0; event != NULL && i < sizeof(alerts) / sizeof(alerts[0]); i++) {
        if (!log_field_is(r, event, alerts[i].event))
            continue;
        f = log_event_find(r, alerts[i].key);
        if (alerts[i].key[0] == '\0' || (f != NULL && log_field_is(r, f, alerts[i].value)))
            return alerts[i].id;
    }
    return NULL;
}

/* Keys come from our own formats: only letters, digits, - and _. */
static void put_name(const struct log_field *f, struct buf *out)
{
    buf_puts(out, "LATERD_");
    for (size_t i = 0; i < f->key_len; i++) {
        char c = f->key[i] == '-' ? '_' : (char)toupper((unsigned char)f->key[i]);

        buf_add(out, &c, 1);
    }
    buf_puts(out, "=");
}

void log_journal_write(const struct log_event *r, int64_t worker, struct buf *out)
{
    const char *id = log_journal_id(r);
    size_t budget = LOG_SHOWN_MAX;

    buf_puts(out, "MESSAGE=");
    log_event_show(r, out);
    buf_printf(out, "\nPRIORITY=%d\nSYSLOG_IDENTIFIER=%s\n", r->level,
               program_invocation_short_name);
    if (id != NULL)
        buf_printf(out, "MESSAGE_ID=%s\n", id);
    if (worker != 0)
        buf_printf(out, "LATERD_WORKER=%" PRId64 "\n", worker);
    for (unsigned i = 0; i < r->nfields; i++) {
        put_name(&r->fields[i], out);
        (void)log_field_show(r, &r->fields[i], &budget, out);
        buf_puts(out, "\n");
    }
}

void log_journal_open(void)
{
    if (sock < 0)
        sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* The socket stays unconnected: the journal may have been restarted since the last event. */
int log_journal_send(const struct log_event *r, int64_t worker)
{
    CLEANUP_BUF struct buf datagram = BUF_INIT;
    ssize_t n;

    if (sock < 0)
        return -1;
    log_journal_write(r, worker, &datagram);
    do
        n = sendto(sock, datagram.data, datagram.len, MSG_NOSIGNAL | MSG_DONTWAIT,
                   (const struct sockaddr *)&journal, sizeof(journal));
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)datagram.len ? 0 : -1;
}
