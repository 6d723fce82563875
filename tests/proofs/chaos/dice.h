/*
 * Random numbers from a seed: the same numbers in every run.
 */
#ifndef LATER_TESTS_CHAOS_DICE_H
#define LATER_TESTS_CHAOS_DICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PICK(d, a) (a)[dice_below(d, (int)COUNT(a))]

struct dice {
    uint64_t state;
};

uint64_t dice_next(struct dice *d);
int dice_below(struct dice *d, int n); /* 0 ... n - 1 */
bool dice_percent(struct dice *d, int p);

#endif
