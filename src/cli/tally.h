/*
 * What became of the lines that were sent, span by span. Until something fails that is one span,
 * and after it come only the calls that were under way.
 */
#ifndef LATER_CLI_TALLY_H
#define LATER_CLI_TALLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define TALLY_SPANS 72

enum tally_fate { TALLY_ADDED, TALLY_REFUSED, TALLY_UNKNOWN };

struct tally {
    struct {
        enum tally_fate fate;
        uint64_t first, last;
    } span[TALLY_SPANS];
    int n;
    uint64_t count[3]; /* lines, by fate */
};

/* The next n lines from `first` on; spans are noted in the order of the file. */
void tally_note(struct tally *t, enum tally_fate fate, uint64_t first, uint64_t n);
/* Append "lines 1 to 5120, 5377 to 5632"; nothing when there is none. */
void tally_put(const struct tally *t, enum tally_fate fate, struct buf *out);
/* [[1, 5120], [5377, 5632]] */
json_t *tally_json(const struct tally *t, enum tally_fate fate);

#endif
