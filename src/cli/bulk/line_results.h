/*
 * What became of the lines that were sent, as spans of line numbers. Until something fails there is
 * one span, and after it come only the calls that were under way.
 */
#ifndef LATER_CLI_BULK_LINE_RESULTS_H
#define LATER_CLI_BULK_LINE_RESULTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define LINE_RESULTS_SPANS 72

enum line_result { LINE_ADDED, LINE_REFUSED, LINE_UNKNOWN };

struct line_results {
    struct {
        enum line_result result;
        uint64_t first, last;
    } span[LINE_RESULTS_SPANS];
    int n;
    uint64_t count[3]; /* lines, by result */
};

/* Count the result of the next n lines from `first` on. Call it in the order of the file. */
void line_results_add(struct line_results *t, enum line_result result, uint64_t first, uint64_t n);
/* Append "lines 1 to 5120, 5377 to 5632" for the lines with this result; nothing if none has it. */
void line_results_put(const struct line_results *t, enum line_result result, struct buf *out);
/* A new array: [[1, 5120], [5377, 5632]]. */
json_t *line_results_json(const struct line_results *t, enum line_result result);

#endif
