/*
 * The pool thread's side of an exec_slot (the other side is in run/exec/exec.h).
 */
#ifndef LATER_RUN_EXEC_EXEC_SLOT_H
#define LATER_RUN_EXEC_EXEC_SLOT_H

#include "run/exec/exec.h"

#define EXEC_SLOT_BUFFER 65536 /* one whole pipe */

/* Readable while there is something to take. */
int exec_slot_fd(const struct exec_slot *slot);
/* What was asked since the last call (bits of enum exec_control). */
unsigned exec_slot_take(struct exec_slot *slot);
/* A sign of life of what runs here; MONO_NEVER: none is to be expected any more. */
void exec_slot_say(struct exec_slot *slot, struct mono when);
/* The job of this slot has ended: from here to the next arm every control is dropped. */
void exec_slot_disarm(struct exec_slot *slot);
/* EXEC_SLOT_BUFFER bytes of room for reading, kept from job to job. */
char *exec_slot_buffer(struct exec_slot *slot);

#endif
