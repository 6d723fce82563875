/*
 * Topics in random calls: what subscribes, what files declare, and what is published.
 */
#include "maker.h"

#include <stdio.h>

static const char *const SUBSCRIPTIONS[] = {"a", "a", "a.*", "a.b", "a.b.*", "*"};

static const char *subscription_arg(struct maker *k)
{
    static const char *const bad[] = {"", "-a", "a*", "*.a", "a b", "{a}"};
    bool is_bad = percent(k, 2);
    const char *name = is_bad ? PICK(k, bad) : PICK(k, SUBSCRIPTIONS);

    arg(k, name);
    return is_bad ? NULL : name;
}

void make_subscribe(struct maker *k)
{
    bool is_end = percent(k, 35);
    const char *what;
    int q;

    begin(k, is_end ? "later_unsubscribe" : "later_subscribe");
    what = subscription_arg(k);
    q = queue_arg(k);
    model_subscribe(k->m, what, q, is_end, k->want);
}

void make_topics(struct maker *k)
{
    if (model_count_topics(k->m) <= 1 && percent(k, 70)) {
        begin(k, "later_topics");
        model_topics(k->m, k->want);
        return;
    }
    begin(k, percent(k, 50) ? "later_v1_audit" : "later_v1_repair");
    arg(k, "topics");
    arg(k, "");
    number(k, 200);
    model_topic_audit(k->m, k->want);
}

void make_declare_topics(struct maker *k)
{
    static struct model_declared all[3];
    int64_t epoch = pick_epoch(k, !percent(k, 3));
    int64_t read_ms = MODEL_MS(k->m) + (percent(k, 20) ? 5000 : -any(k, 10000));
    size_t n = (size_t)below(k, 4);

    begin(k, "later_v1_declare_topics");
    number(k, epoch);
    number(k, read_ms);
    arg(k, percent(k, 50) ? "last" : "more");
    number(k, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        all[i] = (struct model_declared){.n = (size_t)below(k, MODEL_FILE_TOPICS + 1)};
        number(k, 1 + (int64_t)all[i].n);
        all[i].queue = queue_arg(k);
        for (size_t t = 0; t < all[i].n; t++) {
            all[i].name[t] = subscription_arg(k);
            all[i].is_bad |= all[i].name[t] == NULL;
        }
    }
    model_declare_topics(k->m, epoch, read_ms, n, all, k->want);
}

void copy_options(struct maker *k, struct model_options *o)
{
    static const char *const tokens[] = {"t1", "t2"};

    *o = no_options(k->m);
    if (percent(k, 20)) {
        name(k, "in");
        o->due = MODEL_MS(k->m) + duration_arg(k, 5000);
    }
    if (percent(k, 20)) {
        name(k, "priority");
        number(k, o->priority = below(k, 10));
    }
    if (percent(k, 40)) {
        name(k, "key");
        arg(k, o->key = percent(k, 70) ? "a" : "b");
    }
    if (percent(k, 15)) {
        name(k, "attempts");
        number(k, o->a = 1 + below(k, 9));
    }
    if (percent(k, 20)) {
        name(k, "keep");
        o->k = duration_arg(k, 1000000);
    }
    if (percent(k, 30)) {
        name(k, "token");
        arg(k, o->token = PICK(k, tokens));
    }
    if (!percent(k, 2))
        return;
    name(k, "lock");
    arg(k, "l1");
    o->refusal = "ELATER_OPTION";
}

void make_publish(struct maker *k)
{
    static const char *const topics[] = {"a", "a", "a.b", "a.b", "a.b.c", "z"};
    struct model_options o;
    struct bytes b = payload(k);
    bool is_bad = percent(k, 1);
    const char *topic = is_bad ? "a.*" : PICK(k, topics);

    begin(k, "later_publish");
    arg(k, topic);
    copy_options(k, &o);
    /* Often once more what was published before. */
    if (o.token != NULL && percent(k, 80))
        b = (struct bytes){"x", 1};
    args_bytes(k->args, b.p, b.n);
    model_publish_topic(k->m, is_bad ? NULL : topic, &o, b, k->want);
}
