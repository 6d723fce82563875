/*
 * The last step before a command: the program itself, in the process that becomes the command,
 * looks at the time once more. Whoever made that process may have stood still between its own look
 * and that (SIGSTOP, a suspended machine), and another may be at the place by now.
 *
 * What is left is a process that is stopped itself between this look and exec.
 */
#ifndef LATER_CLI_HOLD_LOCK_START_H
#define LATER_CLI_HOLD_LOCK_START_H

#include <stdint.h>

#define LOCK_START_ARG "--start" /* UNTIL_US COMMAND...: the program's first argument for this */

/*
 * The arguments that start argv unless CLOCK_BOOTTIME has come to until_us; INT64_MAX: whenever it
 * is. The caller's: mem_free_list.
 */
char **lock_start_argv(int64_t until_us, char *const *argv);

/* What the program does with LOCK_START_ARG, before anything else; args are those behind it.
 * Returns the exit status when it does not become the command, having said why. */
int lock_start_main(char **args);

#endif
