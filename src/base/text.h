/*
 * Text from outside: escaping for terminals and logs, numbers, durations, sizes, names.
 * Pure; no allocation except into a struct buf.
 */
#ifndef LATER_BASE_TEXT_H
#define LATER_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Append n bytes so that they are safe to show: valid printable UTF-8 stays; control bytes, C1
 * controls, bidirectional overrides and invalid bytes become \xNN. A backslash stays as it is.
 */
void text_escape(struct buf *out, const void *p, size_t n);

/* The same, and a double quote becomes \x22: it would end a value in the log, and text from outside
 * could forge the keys after it. */
void text_quote(struct buf *out, const void *p, size_t n);

/* Shorten b to at most max bytes, including a "..." at the end, without splitting a UTF-8 sequence.
 */
void text_cut(struct buf *b, size_t max);

/* Copy s, or as much of it as fits in size bytes with its NUL. size > 0; no overlap. */
void text_copy(char *out, size_t size, const char *s);

#define TEXT_DIGITS_MAX 20

/* Write the decimal digits of n, up to TEXT_DIGITS_MAX, to the bytes before end. -> the first */
char *text_digits(char *end, uint64_t n);

/* FNV-1a (Fowler, Noll, Vo): for tables in memory whose names no attacker chooses. */
uint32_t text_hash(const char *s);

/* Length in bytes of the valid UTF-8 sequence at p (1 to 4), or 0 when it is not valid. */
size_t text_utf8_len(const unsigned char *p, size_t n);
/* How many of these n bytes are valid UTF-8 from the begin on. Fewer than 4 behind them may be a
 * character that was cut. */
size_t text_utf8_prefix(const char *text, size_t n);

/* Decimal digits only (a leading '-' is allowed if min < 0), within [min, max]; -1 when not. */
int text_parse_int(const char *s, int64_t min, int64_t max, int64_t *ret);

/* "250ms" "10s" "5m" "2h" "7d": digits and a unit, nothing else. Milliseconds; -1 when not. */
int text_parse_duration(const char *s, int64_t *ret_ms);

/* Write the shortest exact form to out and return it: "5m" for 300000. */
const char *text_duration(int64_t ms, char out[24]);

/* "512" "64KiB" "1MiB" "1GiB" (also K M G): bytes; -1 when not. */
int text_parse_size(const char *s, int64_t *ret_bytes);
/* "4m 59s", "2d 3h", "250ms": for people; cut, not rounded. Returns out. */
const char *text_span(int64_t ms, char out[48]);
/* As text_duration. */
const char *text_size(int64_t bytes, char out[24]);

/* [A-Za-z0-9][A-Za-z0-9_-]{0,63} */
bool text_is_queue_name(const char *s, size_t n);
/* Cut the next word, and the space behind it, off the *n bytes at *p. False if there is none or it
 * does not fit into word with its NUL. */
bool text_take_word(const char **p, size_t *n, char *word, size_t cap);
/* The same for a word that is a number from 0 on. */
bool text_take_int(const char **p, size_t *n, int64_t *ret);

/* The nearest to word of the NULL-ended names, if it is near enough to suggest, else NULL. */
const char *text_nearest(const char *word, const char *const *names);

#endif
