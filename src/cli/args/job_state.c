#include "cli/args/job_state.h"

#include <string.h>

#include "base/buf.h"
#include "base/text.h"

static const char *const names[JOB_STATE_MAX + 1] = {"due",  "parked", "running",
                                                     "dead", "done",   NULL};

const char *job_state_name(enum job_state state)
{
    return names[state];
}

int job_state_parse(const char *name, enum job_state *ret, struct err *err)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    const char *near;

    for (int i = 0; i < JOB_STATE_MAX; i++) {
        *ret = (enum job_state)i;
        if (strcmp(names[i], name) == 0)
            return 0;
    }
    near = text_nearest(name, names);
    text_escape(&safe, name, strlen(name));
    text_cut(&safe, 48);
    if (near != NULL)
        return err_set(err, ERR_USAGE, "--state '%s': did you mean %s?", buf_str(&safe), near);
    return err_set(err, ERR_USAGE, "--state '%s': there are due, parked, running, dead and done",
                   buf_str(&safe));
}

int job_states_parse(const char *text, bool is_wanted[JOB_STATE_MAX], struct err *err)
{
    if (strcmp(text, "all") == 0) {
        memset(is_wanted, true, JOB_STATE_MAX * sizeof(*is_wanted));
        return 0;
    }
    while (text != NULL) {
        size_t n = strcspn(text, ",");
        CLEANUP_BUF struct buf name = BUF_INIT;
        enum job_state state;

        buf_add(&name, text, n);
        if (job_state_parse(buf_str(&name), &state, err) < 0)
            return -1;
        is_wanted[state] = true;
        text = text[n] == ',' ? text + n + 1 : NULL;
    }
    return 0;
}
