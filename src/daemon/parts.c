#include "daemon/parts.h"

#include <stddef.h>

int parts_init(struct parts *p, struct loop *loop, struct link *link, struct store_redis *store,
               const struct conf *conf)
{
    const char *ns = conf->root;

    p->gate_settings = gate_settings_new(store);
    p->schedule_settings = file_settings_new(link, ns, &file_schedules);
    p->topic_settings = file_settings_new(link, ns, &file_topics);
    p->schedules = schedules_new(loop, link, store, ns, conf->redis_timeout);
    p->foreign_queues = foreign_queues_new(loop, link, ns, conf->redis_timeout);
    p->bulks = bulks_new(loop, link, ns);
    return p->schedules == NULL || p->foreign_queues == NULL || p->bulks == NULL ? -1 : 0;
}

void parts_free(struct parts *p)
{
    gate_settings_free(p->gate_settings);
    file_settings_free(p->schedule_settings);
    file_settings_free(p->topic_settings);
    schedules_free(p->schedules);
    foreign_queues_free(p->foreign_queues);
    bulks_free(p->bulks);
}

void parts_set(const struct parts *p, const struct conf *conf)
{
    gate_settings_set(p->gate_settings, conf);
    file_settings_set(p->schedule_settings, conf);
    file_settings_set(p->topic_settings, conf);
}

void parts_registered(const struct parts *p, int64_t epoch)
{
    gate_settings_registered(p->gate_settings, epoch);
    file_settings_registered(p->schedule_settings, epoch);
    file_settings_registered(p->topic_settings, epoch);
    schedules_registered(p->schedules, epoch);
    foreign_queues_registered(p->foreign_queues, epoch);
    bulks_registered(p->bulks, epoch);
}

void parts_note_date(const struct parts *p, int64_t now_us)
{
    file_settings_note_time(p->schedule_settings, now_us);
    file_settings_note_time(p->topic_settings, now_us);
}

void parts_note_time(const struct parts *p, int64_t now_us)
{
    schedules_note_time(p->schedules, now_us);
    foreign_queues_note_time(p->foreign_queues, now_us);
}

void parts_beat(const struct parts *p, const char *schedules)
{
    gate_settings_beat(p->gate_settings);
    file_settings_beat(p->schedule_settings);
    file_settings_beat(p->topic_settings);
    schedules_beat(p->schedules, schedules);
    foreign_queues_beat(p->foreign_queues);
}

void parts_link_down(const struct parts *p)
{
    gate_settings_link_down(p->gate_settings);
    file_settings_link_down(p->schedule_settings);
    file_settings_link_down(p->topic_settings);
    schedules_link_down(p->schedules);
    foreign_queues_link_down(p->foreign_queues);
    bulks_link_down(p->bulks);
}

void parts_stop(const struct parts *p)
{
    schedules_stop(p->schedules);
    foreign_queues_stop(p->foreign_queues);
    bulks_stop(p->bulks);
}
