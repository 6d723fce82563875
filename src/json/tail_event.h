/*
 * Parses what is published on R:events (src/lua/calls/tail.lua): a first line about the message,
 * then one event per line. Anybody might have published it, so what is malformed is refused. Pure.
 */
#ifndef LATER_JSON_TAIL_EVENT_H
#define LATER_JSON_TAIL_EVENT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct tail_page {
    int64_t now_ms;
    int64_t left_out; /* events before these that were not published */
};

enum tail_number { TAIL_DUE_MS, TAIL_START, TAIL_ATTEMPT, TAIL_CODE, TAIL_NUMBERS };

struct tail_event {
    char event[16], id[16], queue[80]; /* "-": not known */
    int64_t numbers[TAIL_NUMBERS];     /* -1: none */
    const char *text;                  /* points into the line; not escaped */
    size_t text_len;
};

/* line: without its LF. 0, or -1 if it is malformed. */
int tail_page_parse(const char *line, size_t n, struct tail_page *ret);
int tail_event_parse(const char *line, size_t n, struct tail_event *ret);

json_t *tail_event_to_json(const struct tail_event *e, int64_t now_ms);

#endif
