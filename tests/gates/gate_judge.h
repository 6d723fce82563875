/*
 * The judge of a gate proof: reads what gate_handler wrote and answers how many ran at once, how
 * they followed each other, how many started in a time. Times are CLOCK_MONOTONIC in us, by which
 * the lines are sorted; fences are numbers of Redis' clock in us when the job was claimed.
 *
 * A start without an end runs for ever: a killed handler is a matter for the referee of
 * gate_handler. One thread; a line that cannot be read ends the test program.
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
    char key[32]; /* "-" without one */
    int64_t fence;
    char queue[32];
};

struct gate_judge {
    struct gate_line *lines; /* by time, ends before starts */
    size_t n;
};

/* The lines of this queue (NULL: all), but those of clashes. */
void gate_judge_read(struct gate_judge *ret, const char *path, const char *queue);
void gate_judge_done(struct gate_judge *b);

size_t gate_judge_starts(const struct gate_judge *b);
/* The first start of a job, NULL if there is none. */
const struct gate_line *gate_judge_start(const struct gate_judge *b, const char *id);

/* Most that ran at once: of all (NULL), of one key; of whichever key had most. */
int gate_judge_most(const struct gate_judge *b, const char *key);
int gate_judge_most_of_a_key(const struct gate_judge *b);
/* How many ran on average between the first start and the last start. */
double gate_judge_average(const struct gate_judge *b);

/*
 * Of a gate of `limit` places that was always full: the time from each end to the start that it
 * let in (the i-th end lets in start limit + i), in us, sorted. Returns how many; *ret is the
 * caller's.
 */
size_t gate_judge_handovers(const struct gate_judge *b, size_t limit, int64_t **ret);
/* Of sorted values: 500 is the median. 0 of none. */
int64_t gate_quantile(const int64_t *sorted, size_t n, int permille);

/*
 * Most and fewest starts, by their fences, in any window of so many us that begins at or after
 * from_us; for the fewest, which ends before the last start as well. 0 and 0 without such.
 */
void gate_judge_windows(const struct gate_judge *b, int64_t window_us, int64_t from_us,
                        int *ret_most, int *ret_fewest);
/* The same for windows that begin at multiples of window_us. */
int gate_judge_most_aligned(const struct gate_judge *b, int64_t window_us);

#endif
