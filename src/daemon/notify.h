/*
 * Messages to systemd (sd_notify(3), systemd.service(5)). Nothing is sent where there is no socket.
 * Main thread.
 */
#ifndef LATER_DAEMON_NOTIFY_H
#define LATER_DAEMON_NOTIFY_H

#include <stdint.h>

/* Call it once, before any thread exists. It removes the variables from the environment, so that no
 * handler speaks in our name. */
void notify_init(void);
void notify_ready(void);
void notify_reloading(void); /* notify_ready ends it */
/* The stop may take this long. It can only extend TimeoutStopSec=, not shorten it. */
void notify_stopping(int64_t at_most_ms);
/* One line for `systemctl status`; send at most once a second. */
void notify_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Milliseconds between watchdog pings; 0: systemd wants none. */
long notify_watchdog_ms(void);
void notify_watchdog(void);

#endif
