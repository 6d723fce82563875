/*
 * What a worker and its guard share; for guard.c and guard_main.c only. Both run the same program,
 * so there is no version. All of it is in memory that the two map.
 */
#ifndef LATER_RUN_GUARD_GUARD_TABLE_H
#define LATER_RUN_GUARD_GUARD_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "run/process/origin.h"

#define GUARD_MAGIC INT64_C(0x6c61746572677264)
#define GUARD_PIPE_FD 0 /* it ends with the worker */
#define GUARD_TABLE_FD 3

/* Written by the worker, `killed` by the guard. */
struct guard_slot {
    _Atomic int64_t fence;      /* 0: nothing runs that holds a lock */
    _Atomic int64_t killed;     /* the fence of what the guard killed last */
    _Atomic int64_t spawned_us; /* the process below is not younger than this */
    _Atomic int64_t pid;        /* 0: not known */
};

struct guard_table {
    int64_t magic;
    char worker[ORIGIN_WORKER]; /* of the origin of what it starts (origin.h) */
    int64_t silence_us;
    int64_t nslots;
    _Atomic int64_t acked_us; /* 0: never */
    atomic_bool is_formatted; /* the log's lines are in the form that the program gave guard_main */
    struct guard_slot slots[];
};

#endif
