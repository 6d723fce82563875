/*
 * The parts of a daemon that tell Redis what the configuration says, or fetch work for it from
 * elsewhere: gates, schedules and topics of the configuration, schedules that fire, queues of other
 * systems, bulks. All begin when the worker is registered, go on at its beats, wait while the link
 * is down, and end with the daemon.
 *
 * Main thread.
 */
#ifndef LATER_DAEMON_PARTS_H
#define LATER_DAEMON_PARTS_H

#include <stdint.h>

#include "conf/conf.h"
#include "daemon/bulks.h"
#include "daemon/file_settings.h"
#include "daemon/foreign_queues.h"
#include "daemon/gate_settings.h"
#include "daemon/schedules.h"

struct parts {
    struct gate_settings *gate_settings;
    struct file_settings *schedule_settings, *topic_settings;
    struct schedules *schedules;
    struct foreign_queues *foreign_queues;
    struct bulks *bulks;
};

/* conf: namespace and redis_timeout are read. -1: no descriptors; parts_free is called all the
 * same. */
int parts_init(struct parts *p, struct loop *loop, struct link *link, struct store_redis *store,
               const struct conf *conf);
void parts_free(struct parts *p);
/* At the start, and again when the configuration was read anew: gates, schedules and topics. */
void parts_set(const struct parts *p, const struct conf *conf);
void parts_registered(const struct parts *p, int64_t epoch);
/* Redis told its time: for the date of settings, before parts_registered. */
void parts_note_date(const struct parts *p, int64_t now_us);
/* The same, for what is timed to the millisecond. */
void parts_note_time(const struct parts *p, int64_t now_us);
/* A beat was answered. schedules: what it said of them */
void parts_beat(const struct parts *p, const char *schedules);
void parts_link_down(const struct parts *p);
/* Begin nothing more. */
void parts_stop(const struct parts *p);

#endif
