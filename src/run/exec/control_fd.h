/*
 * Descriptor 3, on which a handler may tell the daemon more than an exit status does
 * (doc/protocol.md, handler contract). One line each, at most CONTROL_LINE_BYTES, longer ones cut:
 *
 *   progress TEXT       how far it is; shown, not kept
 *   retry-in DURATION   if this attempt fails or asks for another: when (the last one said holds)
 *   result TEXT         kept with the outcome; several are joined by LF up to RUN_RESULT_BYTES
 *   log TEXT            a line for the log
 *
 * What is not understood is logged at debug and ignored: a handler cannot break the daemon here.
 */
#ifndef LATER_RUN_EXEC_CONTROL_FD_H
#define LATER_RUN_EXEC_CONTROL_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "run/exec/exec.h"
#include "run/lines.h"
#include "run/exec/output.h"

#define CONTROL_LINE_BYTES 4096
#define CONTROL_PROGRESS_MS 100 /* progress is handed on at most this often; the latest wins */

enum control_kind {
    CONTROL_OTHER,
    CONTROL_PROGRESS,
    CONTROL_RETRY_IN,
    CONTROL_RESULT,
    CONTROL_LOG,
};

struct control_line {
    enum control_kind kind;
    const char *text; /* behind the word and one space; into the line that was parsed */
    size_t len;
    int64_t ms; /* RETRY_IN */
};

/* Pure. A retry-in whose duration is not one is OTHER. */
void control_line_parse(const char *line, size_t n, struct control_line *ret);

/* The state of one attempt; nothing in it is owned but the buffers. */
struct control_fd {
    struct lines lines;
    struct output *output;
    const struct exec_hooks *hooks;
    struct run_result *ret;
    bool has_result;
    struct buf progress; /* the latest one not handed on */
    bool has_progress;
    struct mono progress_at; /* when the next may be handed on */
};

void control_fd_init(struct control_fd *c, struct output *output, const struct exec_hooks *hooks,
                     struct run_result *ret);
void control_fd_done(struct control_fd *c);
void control_fd_add(struct control_fd *c, const char *p, size_t n);
/* Hand on progress whose time has come; returns when to call again (MONO_NEVER: nothing waits). */
struct mono control_fd_tick(struct control_fd *c, struct mono now);
/* The stream has ended: what is left goes out. */
void control_fd_end(struct control_fd *c);

#endif
