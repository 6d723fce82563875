/*
 * The service manager's side of sd_notify(3): a socket that laterd tells how it is. One at a time;
 * what cannot be done ends the test program.
 */
#ifndef LATER_TESTS_SUPPORT_NOTES_H
#define LATER_TESTS_SUPPORT_NOTES_H

#include <stdbool.h>

/* Listen on dir/notify; whatever is launched from now on tells it, with a watchdog of 2 s. */
void notes_open(const char *dir);
/* What is launched from now on tells nobody. */
void notes_for_no_others(void);
void notes_close(void);
/* Until one begins with text; false when none came in time. */
bool notes_told(const char *text, int deadline_ms);
/* Forget what has come so far. */
void notes_drop(void);

#endif
