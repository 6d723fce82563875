/*
 * What systemd is told (sd_notify(3), systemd.service(5)); nothing where there is no socket.
 * The variable is taken out of the environment, so that no handler speaks in our name.
 */
#ifndef LATER_DAEMON_NOTIFY_H
#define LATER_DAEMON_NOTIFY_H

#include <stdint.h>

void notify_init(void);
void notify_ready(void);
void notify_reloading(void); /* notify_ready ends it */
/* So long the stop may take, whatever TimeoutStopSec= says, which this only extends. */
void notify_stopping(int64_t at_most_ms);
/* One line for `systemctl status`; send at most once a second. */
void notify_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Milliseconds between watchdog pings, 0: none asked for. */
long notify_watchdog_ms(void);
void notify_watchdog(void);

#endif
