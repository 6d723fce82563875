/*
 * The command that runs at a place: started in a process group of its own, given the terminal where
 * a shell would give it, signalled, watched for its end. Main thread; blocks while it starts.
 *
 * The terminal. With standard input and output on a terminal that is ours the command's group
 * becomes its foreground at once, else when it is stopped for touching the terminal, as soon as we
 * are in the foreground; we take it back at the end. Ctrl-Z is ignored, and a command that stops
 * itself for it (an editor) is continued: who holds a place must go on. What Ctrl-C or Ctrl-\ ended
 * ends our own group too, as if all had been in the foreground.
 */
#ifndef LATER_CLI_HOLD_COMMAND_H
#define LATER_CLI_HOLD_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "loop/loop.h"

struct command;

/* A signal for this process that ends programs. */
typedef void command_signal_f(void *arg, int sig);
typedef void command_end_f(void *arg, int status); /* 128 + n for signal n */

/*
 * Before any thread exists: from here on signals come by the loop. Those that were ignored stay so,
 * for the command too. NULL: no descriptors.
 */
struct command *command_new(struct loop *loop, command_signal_f *on_signal, command_end_f *on_end,
                            void *arg);
/* The command must have ended. NULL is fine. */
void command_free(struct command *c);

/* Its pid, or -1 with err: errnum says why. on_end follows later. */
pid_t command_start(struct command *c, char *const *argv, char *const *envp, struct err *err);
/* To its group; 0 and no command are fine. */
void command_kill(const struct command *c, int sig);
/* Ctrl-C or Ctrl-\ on the terminal that it had: the signal that ended it, else 0. For us to end by,
 * too: a shell that runs a script stops then, as it does without us. */
int command_interrupted(const struct command *c);
/* As this program does to end by a signal; returns when that is ignored. */
void command_die(struct command *c, int sig);

#endif
