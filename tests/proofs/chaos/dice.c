#include "dice.h"

uint64_t dice_next(struct dice *d)
{
    uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int dice_below(struct dice *d, int n)
{
    return (int)(dice_next(d) % (uint64_t)n);
}

bool dice_percent(struct dice *d, int p)
{
    return dice_below(d, 100) < p;
}
