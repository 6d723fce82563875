/* Broadcasts in random calls. */
#include "maker.h"

void make_broadcast(struct maker *k)
{
    static const char *const words[] = {"worker", "host"};
    int per = below(k, 3);
    struct bytes b = payload(k);
    struct model_options o;
    int q;

    begin(k, "later_broadcast");
    q = queue_arg(k);
    if (per < 2) {
        name(k, "per");
        arg(k, words[per]);
    }
    copy_options(k, &o);
    /* One of a host that goes has to be over when it is found: else it waits for the host. */
    if (o.refusal == NULL && percent(k, per == 1 ? 90 : 30)) {
        name(k, "expire");
        o.x = duration_arg(k, per == 1 ? 100 : 100000);
        o.x = o.x > 0 ? o.x : MODEL_NONE;
        o.refusal = o.x == MODEL_NONE ? "ELATER_TIME" : NULL;
    }
    if (o.token != NULL && percent(k, 80))
        b = (struct bytes){"x", 1};
    args_bytes(k->args, b.p, b.n);
    model_broadcast(k->m, q, per == 1, &o, b, k->want);
}
