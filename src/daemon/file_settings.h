/*
 * Tells Redis what the configuration of this daemon says for the whole fleet: schedules, or topics.
 * It is told after each registration and reload, in pieces and one after the other, and again with
 * the next beat until Redis has taken it. The file that was read last holds. A file that says
 * nothing of it changes nothing. A reload that takes the schedules out says that there are none; of
 * a queue whose topics are taken out it says nothing.
 *
 * All functions but file_settings_new take NULL. Main thread.
 */
#ifndef LATER_DAEMON_FILE_SETTINGS_H
#define LATER_DAEMON_FILE_SETTINGS_H

#include "conf/conf.h"
#include "redis/link.h"

struct file_settings;

/* What is told. */
struct file_kind {
    const char *function;
    const char *what; /* what each one is, in the log */
    /* Take what the file says. False: it says nothing. */
    bool (*take)(struct file_settings *s, const struct conf *conf);
};
extern const struct file_kind file_schedules, file_topics;

struct file_settings *file_settings_new(struct link *link, const char *ns,
                                        const struct file_kind *kind);
void file_settings_free(struct file_settings *s);

/* A configuration that was read just now; it is not kept. */
void file_settings_set(struct file_settings *s, const struct conf *conf);

/* The worker was registered under this epoch. */
void file_settings_registered(struct file_settings *s, int64_t epoch);
/* Redis said what its clock shows. */
void file_settings_note_time(struct file_settings *s, int64_t now_us);
void file_settings_beat(struct file_settings *s);
/* Answers that have not come will not come. */
void file_settings_link_down(struct file_settings *s);

#endif
