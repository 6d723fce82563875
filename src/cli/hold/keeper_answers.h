/* The answers to what the keeper asked: events like those of keeper.h. */
#ifndef LATER_CLI_HOLD_KEEPER_ANSWERS_H
#define LATER_CLI_HOLD_KEEPER_ANSWERS_H

#include "cli/hold/keeper.h"

void keeper_on_registered(struct keeper *k, struct mono now, const struct store_register_reply *r);
void keeper_on_limit(struct keeper *k, struct mono now, const char *limit);
void keeper_on_beat(struct keeper *k, struct mono now, const struct store_beat_reply *r);
void keeper_on_entered(struct keeper *k, struct mono now, const struct gate_enter_reply *r);
void keeper_on_beats(struct keeper *k, struct mono now, const struct gate_beats_reply *r);
/* The answer to ops.clear, which may be under way beside a question. */
void keeper_on_cleared(struct keeper *k, struct mono now, int64_t victim, bool is_clear);
void keeper_on_reaped(struct keeper *k, struct mono now, enum store_reap status, int64_t moved);
void keeper_on_done_asked(struct keeper *k, struct mono now, bool is_done);
void keeper_on_done_told(struct keeper *k, struct mono now);
void keeper_on_left(struct keeper *k, struct mono now, bool is_clean);
void keeper_on_error(struct keeper *k, struct mono now, enum error_class class, const char *text);

#endif
