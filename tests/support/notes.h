/*
 * The service manager's side of sd_notify(3): a socket to which laterd tells its state. One at a
 * time. Failures end the test program.
 */
#ifndef LATER_TESTS_SUPPORT_NOTES_H
#define LATER_TESTS_SUPPORT_NOTES_H

#include <stdbool.h>

/* Listen on dir/notify. Processes started from now on report there; their watchdog has 2 s. */
void notes_open(const char *dir);
/* Processes that are started from now on report nowhere. */
void notes_for_no_others(void);
void notes_close(void);
/* Wait for a message that begins with text; false at the deadline. */
bool notes_told(const char *text, int deadline_ms);
/* Forget the messages that have come so far. */
void notes_drop(void);

#endif
