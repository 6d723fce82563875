/*
 * The pool thread's side of an exec_slot (the other side is in run/exec/exec.h).
 */
#ifndef LATER_RUN_EXEC_EXEC_SLOT_H
#define LATER_RUN_EXEC_EXEC_SLOT_H

#include "run/exec/exec.h"

#define EXEC_SLOT_BUFFER 65536 /* capacity of a pipe */

/* Readable while a control request waits. */
int exec_slot_fd(const struct exec_slot *slot);
/* Control requests since the last call (bits of enum exec_control), 0: none. */
unsigned exec_slot_take(struct exec_slot *slot);
/* The job gave a sign of life at this time; MONO_NEVER: expect none any more. */
void exec_slot_say(struct exec_slot *slot, struct mono when);
/* The job has ended: until the next exec_slot_arm every control request is dropped. */
void exec_slot_disarm(struct exec_slot *slot);
/* EXEC_SLOT_BUFFER bytes to read into, owned by the slot. */
char *exec_slot_buffer(struct exec_slot *slot);

#endif
