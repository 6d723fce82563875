/*
 * What the pages and completions are filled with: lists made from the tables of the programs. Each
 * appends whole lines.
 */
#ifndef LATER_MAN_PARTS_H
#define LATER_MAN_PARTS_H

#include "base/buf.h"

/* For manual pages (mdoc). */
void page_verbs(struct buf *out);
void page_globals(struct buf *out);
void page_daemon_options(struct buf *out);
void page_config_files(struct buf *out);
void page_settings(struct buf *out);
void page_queue_settings(struct buf *out);
void page_own_settings(struct buf *out);
void page_limit_settings(struct buf *out);
void page_schedule_settings(struct buf *out);

/* For bash: branches of a case. */
void bash_verbs(struct buf *out);
void bash_options(struct buf *out);
void bash_values(struct buf *out);
void bash_operands(struct buf *out);
void bash_daemon_options(struct buf *out);
void bash_daemon_values(struct buf *out);

/* For zsh: arguments of _describe and _arguments. */
void zsh_verbs(struct buf *out);
void zsh_globals(struct buf *out);
void zsh_arguments(struct buf *out);
void zsh_daemon_options(struct buf *out);

#endif
