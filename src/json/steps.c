#include "json/steps.h"

#include <string.h>

#include "json/put.h"

/* The digits in front of end. -1: others, or too many. */
static long digits(const char *p, const char *end)
{
    long n = 0;

    if (p == end || end - p > 8)
        return -1;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9')
            return -1;
        n = 10 * n + (*p - '0');
    }
    return n;
}

bool steps_next(const struct reply *packed, size_t *at, struct kept_step *ret)
{
    size_t all = reply_len(packed);
    const char *p = reply_str(packed) + *at, *lf, *space;
    long n;

    if (*at >= all || (lf = memchr(p, '\n', all - *at)) == NULL)
        return false;
    space = memchr(p, ' ', (size_t)(lf - p));
    n = space != NULL ? digits(space + 1, lf) : -1;
    if (n < 0 || (size_t)n > all - *at - (size_t)(lf + 1 - p))
        return false;
    *ret = (struct kept_step){p, lf + 1, (size_t)(space - p), (size_t)n};
    *at += (size_t)(lf + 1 - p) + (size_t)n;
    return true;
}

json_t *steps_to_json(const struct reply *packed)
{
    json_t *steps = NULL;
    struct kept_step s;

    for (size_t at = 0; steps_next(packed, &at, &s);) {
        json_t *step = json_object();

        json_put_text(step, "name", s.name, s.name_len);
        json_put_bytes(step, "output", s.output, s.output_len);
        steps = steps != NULL ? steps : json_array();
        (void)json_array_append_new(steps, step);
    }
    return steps;
}
