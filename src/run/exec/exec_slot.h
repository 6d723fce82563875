/*
 * What a place of the pool has for the job that runs there: control requests (an eventfd), and its
 * signs of life. Reused from job to job. A control call that comes after its job has ended carries
 * that job's serial, so it is dropped.
 */
#ifndef LATER_RUN_EXEC_EXEC_SLOT_H
#define LATER_RUN_EXEC_EXEC_SLOT_H

#include <stdint.h>

#include "base/clock.h"

#define EXEC_SLOT_BUFFER 65536 /* capacity of a pipe */

/*
 * What other threads may ask of a running job, by any number of exec_slot_control calls, from any
 * thread. STOP and CANCEL: SIGTERM to the process group at once, SIGKILL after kill_grace_ms.
 * KILL: SIGKILL at once.
 */
enum exec_control { EXEC_CONTROL_STOP = 1, EXEC_CONTROL_CANCEL = 2, EXEC_CONTROL_KILL = 4 };

struct exec_slot;
struct exec_slot *exec_slot_new(void); /* NULL: no descriptor left */
void exec_slot_free(struct exec_slot *slot);
/* Prepare the slot for its next job. Returns the serial for exec_slot_control. Main thread. */
uint64_t exec_slot_arm(struct exec_slot *slot);
void exec_slot_control(struct exec_slot *slot, uint64_t serial, enum exec_control what);
/* The first sign of life of the job, when it was started (0: not yet), and its last one. */
void exec_slot_heard(const struct exec_slot *slot, struct mono *ret_taken, struct mono *ret_said);

/* ---- on the pool thread */

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
