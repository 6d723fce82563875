/*
 * Prose of the tables (conf.def, struct cli_verb) as mdoc(7). Every byte of it comes out as itself:
 * nothing in a text is a macro or an escape.
 */
#ifndef LATER_MAN_ROFF_H
#define LATER_MAN_ROFF_H

#include <stddef.h>

#include "base/buf.h"

/* Within a line, not at its start. */
void roff_text(struct buf *out, const char *text, size_t n);

/* One argument of a macro, in quotes. */
void roff_arg(struct buf *out, const char *text);

/*
 * The words of a paragraph, on lines of their own, a new one after each sentence. What stands
 * between two backticks is bold.
 */
void roff_paragraph(struct buf *out, const char *text, size_t n);

/* Paragraphs, and between them examples and tables: lines that begin with blanks. */
void roff_prose(struct buf *out, const char *prose);

#endif
