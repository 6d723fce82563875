/*
 * Tells Redis the schedules of this daemon's configuration, after each registration and reload, in
 * pieces and one after the other, and again with the next beat until Redis has taken them. The file
 * that was read last holds for the fleet. A file without the section says nothing; a reload that
 * takes the section out says that there are none.
 *
 * All functions but schedule_settings_new take NULL. Main thread.
 */
#ifndef LATER_DAEMON_SCHEDULE_SETTINGS_H
#define LATER_DAEMON_SCHEDULE_SETTINGS_H

#include "conf/conf.h"
#include "redis/link.h"

struct schedule_settings;

struct schedule_settings *schedule_settings_new(struct link *link, const char *ns);
void schedule_settings_free(struct schedule_settings *s);

/* A configuration that was read just now; it is not kept. */
void schedule_settings_set(struct schedule_settings *s, const struct conf *conf);

/* The worker was registered under this epoch. */
void schedule_settings_registered(struct schedule_settings *s, int64_t epoch);
/* Redis said what its clock shows. */
void schedule_settings_hear(struct schedule_settings *s, int64_t now_us);
void schedule_settings_beat(struct schedule_settings *s);
/* Answers that have not come will not come. */
void schedule_settings_link_down(struct schedule_settings *s);

#endif
