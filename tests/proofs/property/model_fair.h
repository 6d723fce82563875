/*
 * Fair queues in the model (doc/fair.md): who is next is found by a plain list of tenants with
 * their virtual times. Not a word of it is taken from src/lua/fair/.
 */
#ifndef LATER_TESTS_PROPERTY_MODEL_FAIR_H
#define LATER_TESTS_PROPERTY_MODEL_FAIR_H

#include "model.h"
#include "rows.h"

/* ---- jobs that wait */

/* Do the tenants of the queue take turns? */
bool fair_shares(const struct model *m, int q);
/* The job waits, in its queue. */
void fair_put(struct model *m, struct model_job *j);
/* It does not any more, and nobody has claimed it. */
void fair_leave(struct model *m, struct model_job *j);

/* ---- a sync */

/* The queue becomes fair, or is so no more: do a part of that. Returns whether something is left.
 */
bool fair_advance(struct model *m, int q);
/* All tenants with due jobs wait for nothing else. */
void fair_again(struct model *m, int q);

/* Whose turn it is: at most `room` jobs, and the tenants that were asked. */
struct fair_turns {
    struct model_job **job;
    size_t n;
    struct model_tenant *met[MODEL_TENANTS];
    size_t nmet;
    bool may_be_more; /* as many tenants were read as there is room */
    bool may_share;   /* two of them have due jobs, while nobody shares */
};
/* A sync begins: none of its jobs has ended yet. */
void fair_sync(struct model *m, int q);
void fair_turns(struct model *m, int q, int64_t room, struct fair_turns *t);
/* Those that were handled have no turn any more. */
void fair_turns_end(struct model *m, int q, const struct fair_turns *t);
/* Has no tenant a due job? */
bool fair_is_idle(const struct model *m, int q);

/* ---- charges */

/* The job starts; began: the virtual time of its queue before; is_its_turn: no gate let it in, and
 * it is no suspect. It is noted in what the job holds. */
void fair_start(struct model *m, struct model_job *j, int64_t began, bool is_its_turn);
/* The job with this line in what it holds ends, or waits again. */
void fair_finish(struct model *m, const char *line);

/* ---- the rest */

/* A worker says that a queue is fair, "fair=1" and weights, or is not, "". Its gates stay. */
void model_declare_fair(struct model *m, int64_t epoch, int q, const char *text, struct buf *out);
void fair_tidy(struct model *m, int q);
void fair_forget(struct model *m, int q);
void fair_set_time(struct model *m);
void fair_render(struct model *m, struct rows *rows);
/* What a value of R:queues begins with. */
const char *fair_words(const struct model *m, int q);
const char *fair_broken(struct model *m);

/* What the calls of this process have done with fair queues. */
struct fair_counts {
    uint64_t claims, changes; /* jobs; how often the next one was of another tenant */
    uint64_t debts, resets, indexed, dropped;
    uint64_t shares, early; /* spans of sharing; ends of jobs that started before theirs */
};
struct fair_counts *fair_counts(void);

#endif
