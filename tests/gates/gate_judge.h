/*
 * The judge of a gate proof: reads the ledger of gate_handler and tells how many jobs ran at once,
 * in which order, and how many started in a period. Times are CLOCK_MONOTONIC in us, and the lines
 * are sorted by them. Fences are Redis' clock in us when the job was claimed.
 *
 * A start without an end counts as running for ever; handlers that are killed need the referee of
 * gate_handler. One thread. A line that cannot be read ends the test program.
 */
#ifndef LATER_TESTS_GATES_GATE_JUDGE_H
#define LATER_TESTS_GATES_GATE_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gate_line {
    int64_t us;
    bool is_start;
    char id[16];
    int attempt;
    char key[32]; /* "-": no key */
    int64_t fence;
    char queue[32];
};

struct gate_judge {
    struct gate_line *lines; /* by time; ends before starts of the same time */
    size_t n;
};

/* Read the lines of this queue (NULL: all), without "clash" lines. */
void gate_judge_read(struct gate_judge *ret, const char *path, const char *queue);
void gate_judge_done(struct gate_judge *b);

size_t gate_judge_starts(const struct gate_judge *b);
/* The first start of a job; NULL: none. Points into b. */
const struct gate_line *gate_judge_start(const struct gate_judge *b, const char *id);

/* The most that ran at once: of all (NULL) or of one key; of the key with the most. */
int gate_judge_most(const struct gate_judge *b, const char *key);
int gate_judge_most_of_a_key(const struct gate_judge *b);
/* How many ran on average between the first and the last start. */
double gate_judge_average(const struct gate_judge *b);

/*
 * For a gate of `limit` places that was always full: the time from each end to the start that it
 * let in (end i lets in start limit + i), in us, sorted. Returns how many; *ret is the caller's to
 * free.
 */
size_t gate_judge_handovers(const struct gate_judge *b, size_t limit, int64_t **ret);
/* A quantile of sorted values (permille 500: the median); 0 without values. */
int64_t gate_quantile(const int64_t *sorted, size_t n, int permille);

/*
 * The most and fewest starts, by fence, in any window of window_us that begins at or after from_us.
 * Windows for the fewest end before the last start. 0 if there is no such window.
 */
void gate_judge_windows(const struct gate_judge *b, int64_t window_us, int64_t from_us,
                        int *ret_most, int *ret_fewest);
/* The most in any window that begins at a multiple of window_us. */
int gate_judge_most_aligned(const struct gate_judge *b, int64_t window_us);

#endif
