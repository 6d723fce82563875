/*
 * The command that runs while a permit of a gate is held. Starts it in a process group of its own,
 * gives it the terminal where a shell would, signals it and watches for its end. Main thread;
 * blocks while the command starts.
 *
 * The terminal. If standard input and output are a terminal and we are in its foreground, the
 * command's group becomes the foreground at once. Otherwise this happens when the command was
 * stopped for using the terminal and we are in the foreground. We take the terminal back at the
 * end. Ctrl-Z is ignored, and a command that stops itself on it (an editor) is continued: a holder
 * must go on. If Ctrl-C or Ctrl-\ ended the command, our own group gets the signal too, as if all
 * had been in the foreground.
 */
#ifndef LATER_CLI_HOLD_COMMAND_H
#define LATER_CLI_HOLD_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "loop/loop.h"

struct command;

/* This process got one of the signals that end programs. */
typedef void command_signal_f(void *arg, int sig);
typedef void command_end_f(void *arg, int status); /* 128 + n for signal n */

/*
 * Call it before any thread exists: from here on signals come through the loop. Ignored signals
 * stay ignored, for the command too. NULL: no descriptors.
 */
struct command *command_new(struct loop *loop, command_signal_f *on_signal, command_end_f *on_end,
                            void *arg);
/* The command must have ended. NULL is fine. */
void command_free(struct command *c);

/* Returns the pid, and on_end follows later; or -1 with err: errnum says why. */
pid_t command_start(struct command *c, char *const *argv, char *const *envp, struct err *err);
/* Send sig (0 is fine) to the command's group. Without a command nothing happens. */
void command_kill(const struct command *c, int sig);
/* The signal that ended the command if that was Ctrl-C or Ctrl-\ on its terminal, else 0. We should
 * end by it, too: then a shell that runs a script stops, as it does without us. */
int command_interrupted(const struct command *c);
/* End this process by sig. Returns if the inherited mask blocks sig, or if we are pid 1. */
void command_die(struct command *c, int sig);

/* The exit status of a command that could not be started for err->errnum. Sets err's text. */
int command_not_run(const char *command, struct err *err);

#endif
