/*
 * The jobs that this user added last with `later`, and their short names: @ is the last one, @2 the
 * one before, up to @100. Redis keeps a list for each UID@HOST, for 30 days. A QUEUE@KEY is no
 * such name: it does not begin with @. Where a namespace is cut into shards there are no such
 * names.
 */
#ifndef LATER_CLI_ARGS_RECENTS_H
#define LATER_CLI_ARGS_RECENTS_H

#include "cli/cli.h"

#define RECENTS_MAX 100 /* ids of a list, and of a call */
#define RECENTS_ID 13   /* bytes of an id, with its NUL */

/* Note these jobs as added, the last one last. Whoever may not do that does without. */
void recents_note(struct cli *cli, const char *const *ids, size_t n);
/* The same for rows [.., id, ..] of a reply, from row `from` on. column: of the id. */
void recents_note_rows(struct cli *cli, const struct reply *r, size_t from, size_t column);

/* Who this user is to recents_note; out has no spaces. */
void recents_who(char *out, size_t cap);

/* Put ids for the operands @ and @N of a verb whose operands are ids. 0, or -1 with code USAGE (no
 * such name), INPUT (there are fewer jobs), or as ask_fcall. */
int recents_read(struct cli *cli, struct err *err);

#endif
