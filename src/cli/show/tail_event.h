/*
 * What is published on R:events (src/lua/v1/tail.lua): a head, then an event a line. From a
 * stranger as far as we know: what is not as it should be is refused. Pure.
 */
#ifndef LATER_CLI_SHOW_TAIL_EVENT_H
#define LATER_CLI_SHOW_TAIL_EVENT_H

#include <stddef.h>
#include <stdint.h>

struct tail_head {
    int64_t now_ms;
    int64_t left_out; /* events before these that were not told */
};

enum tail_number { TAIL_DUE_MS, TAIL_START, TAIL_ATTEMPT, TAIL_CODE, TAIL_NUMBERS };

struct tail_event {
    char event[16], id[16], queue[80]; /* "-": not known */
    int64_t numbers[TAIL_NUMBERS];     /* -1: none */
    const char *text;                  /* in the line, to be escaped */
    size_t text_len;
};

/* A line without its LF. 0, or -1 when it is none of ours. */
int tail_head_parse(const char *line, size_t n, struct tail_head *ret);
int tail_event_parse(const char *line, size_t n, struct tail_event *ret);

#endif
