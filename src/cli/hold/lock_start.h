/*
 * The last step before a command starts. This program runs once more, in the process that becomes
 * the command, and checks the time again. The process that started it may have stood still after
 * its own check (SIGSTOP, a suspended machine), and another holder may have the permit by now.
 *
 * One gap is left: this process may itself be stopped between its check and exec.
 */
#ifndef LATER_CLI_HOLD_LOCK_START_H
#define LATER_CLI_HOLD_LOCK_START_H

#include <stdint.h>

#define LOCK_LOST_STATUS 75      /* the permit was lost, or may have been before the command ran */
#define LOCK_START_ARG "--start" /* the program's first argument; UNTIL_US COMMAND... follow */

/*
 * The arguments that start argv unless CLOCK_BOOTTIME has reached until_us (INT64_MAX: at any
 * time). The caller frees them with mem_free_list.
 */
char **lock_start_argv(int64_t until_us, char *const *argv);

/* What the program does with LOCK_START_ARG, before anything else. args: the arguments after it. If
 * the command does not start, prints the reason and returns the exit status. */
int lock_start_main(char **args);

#endif
