/*
 * The memory that a worker and its guard share; for guard.c and guard_main.c only. Both run the
 * same program, so the table needs no version.
 */
#ifndef LATER_RUN_GUARD_GUARD_TABLE_H
#define LATER_RUN_GUARD_GUARD_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "run/process/origin.h"

#define GUARD_MAGIC INT64_C(0x6c61746572677264)
#define GUARD_PIPE_FD 0 /* the other end closes when the worker ends */
#define GUARD_TABLE_FD 3

/* The guard writes `killed`, the worker everything else. */
struct guard_place {
    _Atomic int64_t fence;      /* 0: no guarded job runs here */
    _Atomic int64_t killed;     /* fence of the job that the guard killed last; 0: none */
    _Atomic int64_t spawned_us; /* the process `pid` began before this time */
    _Atomic int64_t pid;        /* 0: not known or none */
};

struct guard_table {
    int64_t magic;
    char worker[ORIGIN_WORKER]; /* the WORKER in the origin of its processes (origin.h) */
    int64_t unacked_us;
    int64_t nplaces;
    _Atomic int64_t acked_us; /* when the last acknowledged beat was sent; 0: never */
    atomic_bool is_formatted; /* log in the format that guard_main was given */
    struct guard_place places[];
};

#endif
