/* Which signals a command waits for: of some, those that its caller does not ignore (nohup). A
 * blocked signal is queued even if it is ignored, so these must stay as they are. */
#ifndef LATER_CLI_SIGNAL_SET_H
#define LATER_CLI_SIGNAL_SET_H

#include <signal.h>
#include <stddef.h>

void signal_set_add(sigset_t *set, const int *signals, size_t n);

#endif
