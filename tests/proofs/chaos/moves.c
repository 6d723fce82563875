#include "moves.h"

#define ADDS 3 /* the first moves of the table add jobs */

/* The weights say how often each move is made. */
static const struct {
    int weight;
    void (*move)(struct world *w);
} moves[] = {{170, move_add},     {25, move_add_many}, {15, move_add_raw},   {35, move_cancel},
             {35, move_job},      {15, move_pause},    {4, move_purge},      {15, move_read},
             {15, move_register}, {30, move_beat},     {15, move_reconcile}, {10, move_reap},
             {6, move_leave},     {20, move_tidy},     {25, move_program},   {320, move_sync},
             {70, move_lock},     {50, move_unlock},   {15, move_renew},     {20, move_throttle},
             {60, move_limit},    {30, move_foreign},  {60, move_batch},     {60, move_keep}};

static void choose(struct world *w)
{
    bool is_crowded = w->l->alive > CROWD && dice_percent(&w->dice, 80);
    int all = 0, at;
    size_t i = 0;

    for (size_t k = 0; k < COUNT(moves); k++)
        all += moves[k].weight;
    at = dice_below(&w->dice, all);
    while (at >= moves[i].weight)
        at -= moves[i++].weight;
    (is_crowded && i < ADDS ? move_sync : moves[i].move)(w);
}

/* Mostly a little; sometimes a jump, also back. */
static void pass_time(struct world *w)
{
    int percent = dice_below(&w->dice, 1000);

    if (percent < 600)
        world_move_clock(w, 1 + dice_below(&w->dice, 3000));
    else if (percent < 800)
        world_move_clock(w, dice_below(&w->dice, 100000));
    else if (percent < 900)
        world_move_clock(w, dice_below(&w->dice, 1500000));
    else if (percent < 910)
        world_move_clock(w, dice_below(&w->dice, 20000000));
    else if (percent < 912)
        world_move_clock(w, INT64_C(3600000000));
    else if (percent < 914)
        world_move_clock(w, -INT64_C(3600000000));
    else if (percent < 920)
        world_move_clock(w, -dice_below(&w->dice, 3000000));
}

void move_any(struct world *w)
{
    w->l = w->space[dice_percent(&w->dice, 70) ? 0 : 1];
    pass_time(w);
    foreign_go_on(w);
    choose(w);
    world_judge(w);
}
